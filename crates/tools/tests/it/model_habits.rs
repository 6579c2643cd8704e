//! How a small model fills in the tools' schemas: its recorded arguments do what was asked, or are refused with the next
//! call in words. The clock of these tests is at Friday 2027-01-15. Habits that the kernel handles are in its
//! `model_habits.rs`.

use std::sync::Arc;

use serde_json::{Value, json};
use toolgate_engine::workspace::{Workspace, WorkspaceLimits};
use toolgate_store::MemoryStore;
use toolgate_tools::knowledge::Library;
use toolgate_tools::readable::Reader;
use toolgate_tools::{Parts, PlanLimits, Toolkit};

use crate::notify::deliveries;
use crate::world::{World, on_every_store};

async fn call(world: &World, tool: &str, input: Value) -> Value {
    world.call("ada", tool, input).await.unwrap()
}

async fn refused(world: &World, tool: &str, input: Value) -> String {
    world.call("ada", tool, input).await.unwrap_err()
}

on_every_store! {
    // 1. Fills an optional id.
    async fn an_invented_id_of_a_memory_counts_as_left_out(world) {
        let invented = json!({"topic": "shoe size", "content": "43", "id": "shoe_size_43"});
        assert_eq!(call(world, "setMemory", invented).await["action"], "created");
        let told = call(world, "getMemory", json!({"topic": "shoe size"})).await;
        assert_eq!(told["memories"][0]["content"], "43");
    }

    // 2. The id is the thing's name.
    async fn an_invented_id_of_a_plan_lists_the_plans(world) {
        let plan = call(world, "createPlan", json!({"message": "Call the dentist", "inSeconds": 3600})).await;
        let told = call(world, "getPlan", json!({"id": "tomorrow"})).await;
        assert_eq!((&told["totalPlans"], &told["plans"][0]["id"]), (&json!(1), &plan["id"]));
        let id = plan["id"].as_str().unwrap();
        let words = refused(world, "cancelPlan", json!({"id": "dentistReminder"})).await;
        let next = format!("Your plans: {id} (Call the dentist). Call cancelPlan again with one of these ids.");
        assert!(words.contains(&next), "{words}");
        let gone = call(world, "cancelPlan", json!({"id": "call the dentist"})).await;
        assert_eq!((&gone["cancelled"]["id"], &gone["cancelled"]["status"]), (&plan["id"], &json!("cancelled")));
    }

    // 3. Empty text for "none".
    async fn empty_text_counts_as_left_out(world) {
        let space = world.space().await;
        world.call_in(space, "ada", "vfs_write", json!({"path": "a", "content": ""})).await.unwrap();
        let told = world.call_in(space, "ada", "vfs_list", json!({"prefix": "", "after": ""})).await.unwrap();
        assert_eq!(told["files"][0]["path"], "a");
        assert_eq!(call(world, "getPlan", json!({"id": ""})).await["totalPlans"], 0);
        assert_eq!(call(world, "getMemory", json!({"topic": "", "query": ""})).await["totalMemories"], 0);
    }

    // 4. Does not know today.
    async fn a_moment_that_is_over_is_refused_with_the_date(world) {
        let words = refused(world, "createPlan", json!({"message": "x", "at": "2023-04-02T09:00:00Z"})).await;
        let next = "Today is Friday 2027-01-15, tomorrow is Saturday 2027-01-16. Call createPlan again with the right day.";
        assert!(words.contains(next), "{words}");
    }

    // 5. Alternatives at once.
    async fn of_several_times_of_a_plan_the_one_that_means_something_counts(world) {
        let both = json!({"message": "check", "at": "2023-04-01T08:30:00Z", "everySeconds": 86400});
        assert_eq!(call(world, "createPlan", both).await["schedule"], json!({"everySeconds": 86400}));
        let both = json!({"message": "ring", "at": "2027-01-15T08:10:30Z", "inSeconds": 600});
        assert!(call(world, "createPlan", both).await["nextAt"].as_str().unwrap().starts_with("2027-01-15T08:10:0"));
        let three = json!({"message": "x", "at": "2023-04-01T08:30:00Z", "everySeconds": 86400, "cron": "0 8 * * 1-5"});
        let words = refused(world, "createPlan", three).await;
        assert!(words.contains("Call createPlan again with cron alone, without everySeconds."), "{words}");
        let two = json!({"message": "x", "at": "2027-02-01T08:30:00Z", "everySeconds": 86400});
        let words = refused(world, "createPlan", two).await;
        assert!(words.contains("Call createPlan again with everySeconds alone, without at."), "{words}");
        let words = refused(world, "createPlan", json!({"message": "x"})).await;
        assert!(words.contains("exactly one of inSeconds, at, everySeconds and cron"), "{words}");
        let words = refused(world, "createPlan", json!({"message": "x", "inSeconds": 5})).await;
        assert!(words.contains("Call createPlan again with inSeconds 60."), "{words}");
    }

    // 6. Repeats the default.
    async fn a_default_may_be_given(world) {
        let space = world.space().await;
        world.call_in(space, "ada", "vfs_write", json!({"path": "a", "content": "x", "encoding": "text"})).await.unwrap();
        let read = json!({"path": "a", "offset": 0, "length": 65536});
        assert_eq!(world.call_in(space, "ada", "vfs_read", read).await.unwrap()["content"], "x");
    }

    // 8. Invents guards.
    async fn an_invented_version_deletes_or_is_told_which_there_is(world) {
        let space = world.space().await;
        let call = async |tool: &str, input| world.call_in(space, "ada", tool, input).await;
        let guarded = json!({"path": "shopping.txt", "expectedVersion": 1});
        for content in ["milk", "milk, eggs"] {
            call("vfs_write", json!({"path": "shopping.txt", "content": content})).await.unwrap();
        }
        let words = call("vfs_delete", guarded.clone()).await.unwrap_err();
        let next = "the file is now at version 2; nothing was deleted. Call vfs_delete again without expectedVersion.";
        assert!(words.contains(next), "{words}");
        assert_eq!(call("vfs_delete", json!({"path": "shopping.txt"})).await.unwrap()["deleted"], true);
    }

    // 12. "Forget" as content.
    async fn forgetting_is_not_remembered(world) {
        call(world, "setMemory", json!({"topic": "monthly salary", "content": "3000"})).await;
        let words = refused(world, "setMemory", json!({"topic": "salary", "content": "forget", "id": "salary"})).await;
        assert!(words.contains("Call setMemory again with topic \\\"salary\\\" alone, without content"), "{words}");
        let none = call(world, "setMemory", json!({"topic": "salary", "content": ""})).await;
        assert_eq!((&none["count"], &none["topics"]), (&json!(0), &json!(["monthly salary"])));
        let gone = call(world, "setMemory", json!({"topic": "monthly salary", "id": "salary"})).await;
        assert_eq!((&gone["action"], &gone["count"]), (&json!("forgotten"), &json!(1)));
        assert_eq!(call(world, "setMemory", json!({"topic": "salary"})).await["count"], 0);
    }

    // 13. Narrow search.
    async fn a_memory_of_another_topic_is_found_by_its_words(world) {
        call(world, "setMemory", json!({"topic": "nut allergy", "content": "My sister must not eat nuts"})).await;
        call(world, "setMemory", json!({"topic": "car", "content": "The car is red"})).await;
        for narrow in [json!({"topic": "allergy", "query": "sister", "limit": 1}), json!({"topic": "allergy"})] {
            let told = call(world, "getMemory", narrow).await;
            assert_eq!(told["memories"].as_array().unwrap().len(), 1, "{told}");
            assert_eq!(told["memories"][0]["topic"], "nut allergy");
        }
        let none = call(world, "getMemory", json!({"topic": "weather"})).await;
        assert_eq!((&none["memories"], &none["topics"]), (&json!([]), &json!({"car": 1, "nut allergy": 1})));
    }

    // 14. Absolute paths.
    async fn a_leading_slash_of_a_path_is_dropped(world) {
        let space = world.space().await;
        let call = async |tool: &str, input| world.call_in(space, "ada", tool, input).await.unwrap();
        let written = call("vfs_write", json!({"path": "/home/user/hello.py", "content": "print()"})).await;
        assert_eq!(written["path"], "home/user/hello.py");
        assert_eq!(call("vfs_read", json!({"path": "/home/user/hello.py"})).await["content"], "print()");
        assert_eq!(call("vfs_list", json!({"prefix": "/home"})).await["files"][0]["path"], "home/user/hello.py");
        assert_eq!(call("vfs_delete", json!({"path": "//home/user/hello.py"})).await["deleted"], true);
    }

    // 15. Creates instead of updating.
    async fn a_goal_that_is_done_is_updated_by_its_description(world) {
        call(world, "setGoals", json!({"goals": [{"description": "Finish the report!", "priority": 3}]})).await;
        for id in [json!(null), json!(""), json!("report")] {
            let mut goal = json!({"description": "finish the report", "isCompleted": true});
            if !id.is_null() {
                goal["id"] = id;
            }
            let set = call(world, "setGoals", json!({"goals": [goal]})).await;
            assert_eq!((&set["totalGoals"], &set["goalsModified"][0]["action"]), (&json!(1), &json!("updated")));
            assert_eq!((&set["currentGoals"][0]["isCompleted"], &set["currentGoals"][0]["priority"]), (&json!(true), &json!(3)));
        }
        let again = call(world, "setGoals", json!({"goals": [{"description": "finish the report"}]})).await;
        assert_eq!(again["totalGoals"], 2, "a goal that says nothing of being done is a new one");
    }

    async fn an_equal_plan_or_notification_of_one_run_is_made_once(world) {
        let space = world.space().await;
        for plan in [json!({"message": "check", "everySeconds": 600}), json!({"message": "ring", "inSeconds": 600})] {
            let twice = world.calls_in(space, "ada", &[("createPlan", plan.clone()), ("createPlan", plan)]).await;
            assert_eq!(twice[0].as_ref().unwrap()["id"], twice[1].as_ref().unwrap()["id"]);
        }
        assert_eq!(call(world, "getPlan", json!({})).await["totalPlans"], 2);
        // Another run may mean it again.
        call(world, "createPlan", json!({"message": "check", "everySeconds": 600})).await;
        assert_eq!(call(world, "getPlan", json!({})).await["totalPlans"], 3);

        let mail = json!({"title": "Lunch", "body": "at noon", "channels": ["space", "mail"]});
        let other = json!({"title": "Lunch", "body": "at one", "channels": ["space", "mail"]});
        let calls = [("sendNotification", mail.clone()), ("sendNotification", mail.clone()), ("sendNotification", other)];
        let sent = world.calls_in(space, "ada", &calls).await;
        assert!(sent.iter().all(|sent| sent.as_ref().unwrap()["queued"] == json!(["mail"])), "{sent:?}");
        let queued = async || {
            let page = world.outbox.list(crate::world::project(), None, None, 10).await.unwrap();
            page.len()
        };
        assert_eq!(queued().await, 2);
        call(world, "sendNotification", mail).await;
        assert_eq!(queued().await, 3);
    }
}

/// Tools of a gateway without webhook and mail.
async fn toolkit() -> Toolkit {
    let world = World::in_memory().await;
    let store = Arc::new(MemoryStore::new());
    let reader = Arc::new(Reader::here());
    Toolkit::standard(Parts {
        store: store.clone(),
        records: store.clone(),
        workspace: Workspace::new(store.clone(), WorkspaceLimits::default()),
        knowledge: Arc::new(Library::new(store, reader.clone())),
        deliveries: Arc::new(deliveries(&world, None, None)),
        reader,
        plans: PlanLimits::default(),
        egress: toolgate_egress::Egress::new(),
        outbound: Arc::new(toolgate_tools::OutboundSettings::default()),
    })
}

// 7. Copies the description's example; 1, 2, 8 and 9: fills in members that it is offered.
#[tokio::test]
async fn definitions_have_no_examples_in_optional_members_and_offer_nothing_to_make_up() {
    let toolkit = toolkit().await;
    for tool in toolkit.all() {
        let schema = tool.action().parameters;
        let required = schema["required"].as_array().cloned().unwrap_or_default();
        for (member, of) in schema["properties"].as_object().expect("an object") {
            let words = of["description"].as_str().unwrap_or_default().to_lowercase();
            let has_example = ["such as", "as in", "e.g.", "for example", "\""]
                .iter()
                .any(|mark| words.contains(mark));
            let name = tool.name();
            assert!(
                required.contains(&json!(member)) || !has_example,
                "{name} {member}: {words}"
            );
        }
    }
    for (tool, member) in [
        ("setMemory", "id"),
        ("getPlan", "id"),
        ("vfs_delete", "expectedVersion"),
        ("updateSpaceMetadata", "title"),
        ("sendNotification", "channels"),
    ] {
        let schema = toolkit.get(tool).expect("a tool").action().parameters;
        assert_eq!(schema["properties"][member], Value::Null, "{tool} {member}");
    }
    // 6. Repeats the default.
    let fetch = toolkit.get("web_fetch").expect("a tool").action().parameters;
    assert!(fetch["properties"]["maxLength"]["maximum"].as_u64().unwrap() >= 50_000);
}
