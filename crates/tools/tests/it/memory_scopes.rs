//! Whose memories are: a person's, a space's, an agent's.

use serde_json::{Value, json};
use toolgate_engine::AgentError;
use toolgate_engine::store::EntityRecord;
use toolgate_kernel::id::{EntityId, SpaceId};
use toolgate_kernel::message::Message;
use toolgate_kernel::time::Time;
use uuid::Uuid;

use crate::world::{World, message, on_every_store, project};

fn contents(told: &Value) -> Vec<&str> {
    let memories = told["memories"].as_array().unwrap();
    let mut contents: Vec<&str> = memories
        .iter()
        .map(|memory| memory["content"].as_str().unwrap())
        .collect();
    contents.sort_unstable();
    contents
}

async fn person(world: &World, name: &str) -> EntityId {
    let record = EntityRecord {
        id: EntityId::new(Uuid::now_v7()),
        project: project(),
        subject: name.into(),
        kind: "person".into(),
        name: None,
        metadata: None,
        grants: Vec::new(),
        created: Time(0),
    };
    world.store.put_entity(record).await.unwrap().id
}

/// A space of these people.
async fn space_of(world: &World, people: &[EntityId]) -> SpaceId {
    let space = world.space().await;
    for person in people {
        world.store.add_member(space, *person).await.unwrap();
    }
    space
}

/// Who speaks, where, to which agent.
struct Talk<'w> {
    world: &'w World,
    space: SpaceId,
    person: EntityId,
    agent: &'static str,
}

impl Talk<'_> {
    async fn call(&self, tool: &str, input: Value) -> Result<Value, String> {
        let words = json!([[tool, input]]).to_string();
        let said = Message {
            from: Some(self.person),
            ..message(words)
        };
        self.world.say_in(self.space, self.agent, said).await
    }
    async fn remember(&self, content: &str) -> Value {
        let input = json!({"topic": "pin", "content": content});
        self.call("setMemory", input).await.unwrap()
    }
    async fn recall(&self) -> Value {
        self.call("getMemory", json!({})).await.unwrap()
    }
}

on_every_store! {
    async fn what_a_person_says_is_that_persons_in_every_space_and_nobody_elses(world) {
        let (ada, bob) = (person(world, "ada").await, person(world, "bob").await);
        let together = space_of(world, &[ada, bob]).await;
        let own = space_of(world, &[ada]).await;
        let talk = |space, person, agent| Talk { world, space, person, agent };
        let kept = talk(together, ada, "ada").remember("1234").await;
        assert_eq!(kept["scope"], "user");
        assert_eq!(contents(&talk(together, bob, "ada").recall().await), [""; 0]);
        let found = talk(together, bob, "ada").call("getMemory", json!({"query": "1234 pin"})).await.unwrap();
        assert_eq!(contents(&found), [""; 0]);
        // An id that somebody else was told does not help, and neither does the topic.
        for theft in [json!({"topic": "pin", "id": kept["id"], "content": "0"}), json!({"topic": "pin", "id": kept["id"]})] {
            let refused = talk(together, bob, "ada").call("setMemory", theft).await.unwrap_err();
            assert!(refused.contains("NotFound"), "{refused}");
        }
        let forgot = talk(together, bob, "ada").call("setMemory", json!({"topic": "pin"})).await.unwrap();
        assert_eq!(forgot["count"], 0);
        // Every agent of the project knows its person, in every space; a run that works for nobody knows none.
        for agent in ["ada", "bob"] {
            assert_eq!(contents(&talk(own, ada, agent).recall().await), ["1234"]);
        }
        assert_eq!(contents(&world.call_in(together, "ada", "getMemory", json!({})).await.unwrap()), [""; 0]);
    }

    async fn a_run_for_nobody_remembers_as_the_agent_and_everybody_hears_of_it(world) {
        let ada = person(world, "ada").await;
        let kept = world.call("ada", "setMemory", json!({"topic": "pin", "content": "shop"})).await.unwrap();
        assert_eq!(kept["scope"], "agent");
        let space = space_of(world, &[ada]).await;
        let talk = Talk { world, space, person: ada, agent: "ada" };
        talk.remember("mine").await;
        assert_eq!(contents(&talk.recall().await), ["mine", "shop"]);
        assert_eq!(contents(&Talk { agent: "bob", ..talk }.recall().await), ["mine"]);
        let talk = Talk { world, space, person: ada, agent: "ada" };
        let forgot = talk.call("setMemory", json!({"topic": "pin"})).await.unwrap();
        assert_eq!((&forgot["scope"], &forgot["count"]), (&json!("user"), &json!(1)));
        assert_eq!(contents(&talk.recall().await), ["shop"]);
    }

    async fn a_persons_run_neither_changes_nor_erases_what_all_recall(world) {
        let ada = person(world, "ada").await;
        let space = space_of(world, &[ada]).await;
        let name = "team".parse().unwrap();
        let note = json!({"name": "note", "executionType": "prebuilt", "execution": {"action": "setMemory", "scope": "space"}});
        let config = json!({"model": {"provider": "demo"}, "tools": ["setMemory", "getMemory", note]});
        world.engine.put_agent(project(), &name, config.into()).await.unwrap();
        let talk = Talk { world, space, person: ada, agent: "team" };
        let shop = world.call("team", "setMemory", json!({"topic": "shop", "content": "open"})).await.unwrap();
        let lunch = talk.call("note", json!({"topic": "lunch", "content": "noon"})).await.unwrap();
        for (kept, whose) in [(shop, "everybody you work for"), (lunch, "of this space")] {
            for change in [
                json!({"topic": kept["topic"], "id": kept["id"], "content": "0"}),
                json!({"topic": kept["topic"], "id": kept["id"]}),
                json!({"topic": kept["topic"]}),
            ] {
                let refused = talk.call("setMemory", change).await.unwrap_err();
                assert!(refused.contains(whose) && refused.contains("Call setMemory again"), "{refused}");
            }
        }
        assert_eq!(contents(&talk.recall().await), ["noon", "open"]);
        // Where the author chose it, it can be forgotten.
        let forgot = talk.call("note", json!({"topic": "lunch"})).await.unwrap();
        assert_eq!(forgot["count"], 1);
        assert_eq!(contents(&talk.recall().await), ["open"]);
    }

    async fn what_is_remembered_of_somebody_who_left_is_not_told_in_the_space(world) {
        let (ada, bob) = (person(world, "ada").await, person(world, "bob").await);
        let space = space_of(world, &[ada, bob]).await;
        let talk = Talk { world, space, person: ada, agent: "ada" };
        talk.remember("1234").await;
        // A plan that ada asked for works for ada.
        let plan = |call: Value| Message { on_behalf_of: vec![ada], ..message(json!([call]).to_string()) };
        let due = plan(json!(["getMemory", {}]));
        assert_eq!(contents(&world.say_in(space, "ada", due).await.unwrap()), ["1234"]);
        world.store.remove_member(space, ada).await.unwrap();
        let due = plan(json!(["getMemory", {}]));
        assert_eq!(contents(&world.say_in(space, "ada", due).await.unwrap()), [""; 0]);
        let due = plan(json!(["setMemory", {"topic": "pin", "content": "5"}]));
        let refused = world.say_in(space, "ada", due).await.unwrap_err();
        assert!(refused.contains("no longer a member"), "{refused}");
        let elsewhere = Talk { space: space_of(world, &[ada]).await, ..talk };
        assert_eq!(contents(&elsewhere.recall().await), ["1234"]);
    }

    async fn the_author_of_an_agent_chooses_another_scope_and_the_model_does_not(world) {
        let (ada, bob) = (person(world, "ada").await, person(world, "bob").await);
        let name = "team".parse().unwrap();
        let tool = |name: &str, action: &str, scope: Value| {
            json!({"name": name, "executionType": "prebuilt", "execution": {"action": action, "scope": scope}})
        };
        let config = json!({"model": {"provider": "demo"}, "tools": [
            "setMemory", "getMemory", tool("note", "setMemory", json!("space")), tool("own", "getMemory", json!("user")),
        ]});
        world.engine.put_agent(project(), &name, config.into()).await.unwrap();
        let space = space_of(world, &[ada, bob]).await;
        let talk = |space, person| Talk { world, space, person, agent: "team" };
        let noted = talk(space, ada).call("note", json!({"topic": "lunch", "content": "noon"})).await.unwrap();
        assert_eq!(noted["scope"], "space");
        let chosen = json!({"topic": "pin", "content": "1234", "scope": "agent"});
        assert_eq!(talk(space, ada).call("setMemory", chosen).await.unwrap()["scope"], "user");
        assert_eq!(contents(&talk(space, bob).recall().await), ["noon"]);
        assert_eq!(contents(&talk(space, ada).call("own", json!({"scope": "space"})).await.unwrap()), ["1234"]);
        assert_eq!(contents(&talk(space_of(world, &[bob]).await, bob).recall().await), [""; 0]);

        for (action, scope) in [("setMemory", "world"), ("getGoals", "user")] {
            let config = json!({"tools": [tool("wrong", action, json!(scope))]});
            let put = world.engine.put_agent(project(), &name, config.into()).await;
            let Err(AgentError::Invalid(problems)) = put else { panic!("{scope} is no scope of {action}") };
            assert_eq!(problems[0].pointer, "/tools/0/execution/scope");
        }
    }
}
