//! Plans of agents, over crashes.

use reqwest::Method;
use serde_json::{Value, json};
use toolgate_kernel::time::Time;
use toolgate_testkit::model_server::ModelServer;

use crate::harness::{Api, Gateway, LOOK, api_answer, put_agent, soon, worker};

fn now() -> Time {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    Time(since.expect("after 1970").as_millis() as i64)
}

/// Waits until the clock of this machine is past a moment.
async fn past(moment: Time) {
    while now() <= moment {
        tokio::time::sleep(LOOK).await;
    }
}

/// What the agent's plans are, as it reads them itself.
async fn plans(api: &Api, models: &ModelServer) -> Value {
    let run = api.start("call:getPlan text:1").await["runId"]
        .as_str()
        .expect("an id")
        .to_owned();
    api.finished(&run).await;
    let last = models.conversations();
    let result = last
        .last()
        .expect("asked")
        .iter()
        .rfind(|message| message["role"] == "tool")
        .cloned();
    let text = result.expect("a result")["content"]
        .as_str()
        .expect("a text")
        .to_owned();
    serde_json::from_str(&text).expect("JSON")
}

/// A run of a space besides those that are known, once there is one.
async fn new_run(api: &Api, space: &str, known: &[&str]) -> String {
    let of_space = format!("/v1/runs?space={space}");
    soon("the plan's run", async {
        loop {
            let runs = api.get(&of_space).await.body["runs"].clone();
            let mut ids = runs.as_array().expect("runs").iter().map(|run| &run["id"]);
            if let Some(new) = ids.find(|id| !known.contains(&id.as_str().expect("an id"))) {
                return new.as_str().expect("an id").to_owned();
            }
            tokio::time::sleep(LOOK).await;
        }
    })
    .await
}

#[tokio::test]
async fn a_due_plan_leaves_an_open_approval_alone_and_is_never_the_users_words() {
    let models = ModelServer::start().await;
    let gateway = Gateway::start(&[("TOOLGATE_PLANS_AHEAD_MIN", "1ms")]).await;
    let api = gateway.api();
    let mut config = worker(&models);
    let action =
        json!({"name": "createPlan", "executionType": "prebuilt", "execution": {"action": "createPlan"}});
    config["tools"].as_array_mut().expect("tools").push(action);
    config["access"] = "public".into();
    put_agent(&api, "worker", &config).await;
    // The second plan is due later, in another space: once it runs, the first was looked at.
    let due = now().0 + 3_000;
    let mut spaces = Vec::new();
    for after in [0, 500] {
        let input = json!({"message": "text:3", "at": Time(due + after).to_string()});
        let started = api.start(&format!("call:createPlan input:{input} text:1")).await;
        let id = |member: &str| started[member].as_str().expect("an id").to_owned();
        api.finished(&id("runId")).await;
        spaces.push((id("spaceId"), id("runId")));
    }
    let [(space, first), (other, second)] = &spaces[..] else {
        panic!("two spaces");
    };
    let body = json!({"message": "call:risky text:2", "agent": "worker"});
    let posted = api.post(&format!("/v1/spaces/{space}/messages"), &body).await;
    let guarded = posted.text("runId");
    let mut stream = api.follow(&guarded, 0).await;
    let asked = stream
        .until("a question", |event| event.kind == "tool-approval-request")
        .await;
    new_run(&api, other, &[second]).await;
    let open = api.get("/v1/approvals?status=open").await;
    assert_eq!(
        open.body["approvals"][0]["approvalId"], asked.data["approvalId"],
        "{open:?}"
    );
    let path = format!("/v1/approvals/{}", asked.text("approvalId"));
    assert!(api.post(&path, &json!({"approved": true})).await.is_success());
    api.finished(&guarded).await;

    let planned = new_run(&api, space, &[first, &guarded]).await;
    let events = api.finished(&planned).await;
    let said = events
        .iter()
        .find(|event| event.kind == "message")
        .expect("a message");
    assert_eq!(said.data["message"]["origin"]["type"], "plan", "{said:?}");
    assert_eq!(said.data["message"].get("from"), None);
    let conversations = models.conversations();
    let told = conversations
        .iter()
        .flat_map(|conversation| conversation.iter())
        .filter(|message| message.to_string().contains("not the user"));
    assert!(told.count() > 0, "{conversations:?}");
    let past = api.get(&format!("/v1/agents/worker/chat/{space}")).await;
    let messages = past.body["messages"].as_array().expect("messages");
    let of_plans: Vec<_> = messages
        .iter()
        .filter(|message| message["role"] == "system")
        .collect();
    assert_eq!(of_plans.len(), 1, "{messages:?}");
    assert_eq!(of_plans[0]["metadata"]["origin"]["type"], "plan");
}

#[tokio::test]
async fn goals_memories_and_plans_are_listed_changed_and_deleted_by_those_whose_they_are() {
    let models = ModelServer::start().await;
    let gateway = Gateway::start(&[]).await;
    let api = gateway.api();
    let mut config = worker(&models);
    for action in ["createPlan", "setMemory", "getMemory", "setGoals"] {
        let tool = json!({"name": action, "executionType": "prebuilt", "execution": {"action": action}});
        config["tools"].as_array_mut().expect("tools").push(tool);
    }
    config["access"] = "public".into();
    put_agent(&api, "worker", &config).await;
    let (ada, bob) = (api.as_user("ada"), api.as_user("bob"));
    let plan = json!({"message": "text:1", "everySeconds": 3600});
    let memory = json!({"topic": "color", "content": "Zq7-blue"});
    let goals = json!({"goals": [{"description": "win"}]});
    let script = format!(
        "call:createPlan input:{plan} call:setMemory input:{memory} call:setGoals input:{goals} text:1"
    );
    let run = ada.start(&script).await;
    api.finished(run["runId"].as_str().expect("an id")).await;

    let listed = async |api: &Api, path: &str| {
        let page = api.get(&format!("/v1/{path}")).await;
        assert_eq!(page.status, 200, "{page:?}");
        page.body["records"].as_array().expect("records").clone()
    };
    let at = |kind: &str, record: &Value, query: &str| {
        let id = record["id"].as_str().expect("an id");
        format!("/v1/{kind}/{id}?{query}")
    };
    let remove = async |api: &Api, path: &str| api.send(Method::DELETE, path, &Value::Null).await.status;
    let change = async |api: &Api, path: &str, body: Value| api.send(Method::PATCH, path, &body).await;

    let nothing: [Value; 0] = [];
    assert_eq!(listed(&api, "goals?agent=worker").await[0]["description"], "win");
    assert_eq!(listed(&bob, "plans?agent=worker").await, nothing);
    let plans = listed(&ada, "plans?agent=worker").await;
    assert_eq!(plans, listed(&api, "plans?agent=worker").await);
    assert_eq!(plans[0]["status"], "active");
    assert!(plans[0]["nextAt"].is_string(), "{plans:?}");

    // A goal is the agent's: for backends alone.
    let goal = listed(&api, "goals?agent=worker").await.remove(0);
    let path = at("goals", &goal, "agent=worker");
    assert_eq!(ada.get("/v1/goals?agent=worker").await.status, 403);
    assert_eq!(
        change(&ada, &path, json!({"isCompleted": true})).await.status,
        403
    );
    assert_eq!(remove(&ada, &path).await, 403);
    let changed = change(&api, &path, json!({"isCompleted": true, "priority": 3})).await;
    assert_eq!(
        (changed.status, &changed.body["version"]),
        (200, &json!(2)),
        "{changed:?}"
    );
    assert_eq!(
        (&changed.body["isCompleted"], &changed.body["description"]),
        (&json!(true), &json!("win"))
    );
    let wrong = change(&api, &path, json!({"priority": "high", "colour": 1})).await;
    assert_eq!(
        (wrong.status, wrong.body["errors"].as_array().map(Vec::len)),
        (422, Some(2)),
        "{wrong:?}"
    );
    assert_eq!(change(&api, &path, json!({})).await.status, 422);
    assert_eq!(remove(&api, &path).await, 204);
    assert_eq!(listed(&api, "goals?agent=worker").await, nothing);

    // A memory is the person's whom the run worked for.
    assert_eq!(listed(&api, "memories?agent=worker").await, nothing);
    let memory = listed(&ada, "memories").await.remove(0);
    assert_eq!(memory["content"], "Zq7-blue");
    assert_eq!(
        listed(&api, "memories?user=ada").await,
        std::slice::from_ref(&memory)
    );
    assert_eq!(listed(&bob, "memories").await, nothing);
    for query in ["?agent=worker", "?user=ada", "?user=bob"] {
        assert_eq!(
            bob.get(&format!("/v1/memories{query}")).await.status,
            403,
            "{query}"
        );
    }
    for query in ["", "?user=ada&agent=worker"] {
        assert_eq!(
            api.get(&format!("/v1/memories{query}")).await.status,
            400,
            "{query}"
        );
    }
    assert_eq!(api.get("/v1/memories?user=nobody").await.status, 404);
    let space = run["spaceId"].as_str().expect("an id");
    assert_eq!(listed(&ada, &format!("memories?space={space}")).await, nothing);
    assert_eq!(bob.get(&format!("/v1/memories?space={space}")).await.status, 404);
    let path = at("memories", &memory, "");
    assert_eq!(change(&bob, &path, json!({"content": "red"})).await.status, 404);
    assert_eq!(remove(&bob, &path).await, 404);
    assert_eq!(
        change(
            &ada,
            &at("memories", &memory, &format!("space={space}")),
            json!({"content": "x"})
        )
        .await
        .status,
        403
    );
    let changed = change(
        &ada,
        &path,
        json!({"content": "green", "topic": "Favourite colour"}),
    )
    .await;
    assert_eq!(
        (changed.status, &changed.body["content"]),
        (200, &json!("green")),
        "{changed:?}"
    );
    let memory = listed(&ada, "memories").await.remove(0);
    assert_eq!(memory, changed.body);
    let of_ada = at("memories", &memory, "user=ada");
    let stale = api.request(Method::PATCH, &of_ada).header("if-match", "\"7\"");
    let stale = api_answer(stale.json(&json!({"content": "x"})))
        .await
        .expect("an answer");
    assert_eq!(
        (stale.status, stale.text("code")),
        (412, "CHANGED".into()),
        "{stale:?}"
    );
    let stale = api.request(Method::DELETE, &of_ada).header("if-match", "\"7\"");
    assert_eq!(api_answer(stale).await.expect("an answer").status, 412);
    let fresh = api.request(Method::PATCH, &of_ada).header("if-match", "\"1\"");
    let fresh = api_answer(fresh.json(&json!({"content": "teal"})))
        .await
        .expect("an answer");
    assert_eq!(fresh.status, 200, "{fresh:?}");
    let recall = ada.start(r#"call:getMemory input:{"query":"teal"} text:1"#).await;
    api.finished(recall["runId"].as_str().expect("an id")).await;
    assert!(format!("{:?}", models.conversations()).contains("Favourite colour"));
    assert_eq!(remove(&ada, &at("memories", &memory, "")).await, 204);
    assert_eq!(listed(&api, "memories?user=ada").await, nothing);

    // A plan is the agent's, and whoever asked for it may change its time and end it.
    let path = at("plans", &plans[0], "agent=worker");
    assert_eq!(change(&bob, &path, json!({"message": "mine"})).await.status, 404);
    let changed = change(
        &ada,
        &path,
        json!({"cron": "0 9 * * 1", "timeZone": "Europe/Rome"}),
    )
    .await;
    assert_eq!(changed.status, 200, "{changed:?}");
    assert_eq!(
        changed.body["schedule"]["cron"]["timeZone"], "Europe/Rome",
        "{changed:?}"
    );
    let wrong = change(&ada, &path, json!({"at": "2020-01-01T00:00:00Z"})).await;
    assert_eq!(wrong.status, 422, "{wrong:?}");
    assert!(!wrong.text("detail").contains("createPlan"), "{wrong:?}");
    let ended = change(&ada, &path, json!({"status": "cancelled"})).await;
    assert_eq!(
        (&ended.body["status"], ended.body.get("nextAt")),
        (&json!("cancelled"), None),
        "{ended:?}"
    );
    assert_eq!(remove(&bob, &path).await, 404);
    assert_eq!(remove(&ada, &path).await, 204);
    assert_eq!(remove(&ada, &path).await, 404);
    assert_eq!(listed(&api, "plans?agent=worker").await, nothing);
    assert_eq!(api.get("/v1/plans").await.status, 400, "whose?");
}

#[tokio::test]
async fn a_plan_that_was_due_while_the_gateway_was_down_runs_exactly_once() {
    let models = ModelServer::start().await;
    let mut gateway = Gateway::start(&[("TOOLGATE_PLANS_AHEAD_MIN", "1ms")]).await;
    let api = gateway.api();
    let mut config = worker(&models);
    let action =
        |name: &str| json!({"name": name, "executionType": "prebuilt", "execution": {"action": name}});
    config["tools"] = json!([action("createPlan"), action("getPlan")]);
    put_agent(&api, "worker", &config).await;
    let due = Time(now().0 + 4_000);
    let input = json!({"message": "text:3", "at": due.to_string()});
    let started = api.start(&format!("call:createPlan input:{input} text:1")).await;
    let (run, space) = (
        started["runId"].as_str().expect("an id"),
        started["spaceId"].as_str().expect("an id"),
    );
    api.finished(run).await;
    gateway.kill();
    past(due).await;
    gateway.spawn();
    gateway.ready().await;

    let of_space = format!("/v1/runs?space={space}");
    let planned = soon("the plan's run", async {
        loop {
            let runs = api.get(&of_space).await.body["runs"]
                .as_array()
                .expect("runs")
                .clone();
            let new = runs.iter().find(|listed| listed["id"] != run);
            if let Some(new) = new {
                return new["id"].as_str().expect("an id").to_owned();
            }
            tokio::time::sleep(LOOK).await;
        }
    })
    .await;
    api.finished(&planned).await;
    gateway.crash().await;
    let seen = plans(&api, &models).await;
    assert_eq!(seen["plans"][0]["status"], "done", "{seen}");
    assert_eq!(seen["plans"][0]["runs"], 1, "{seen}");
    let runs = api.get(&of_space).await;
    assert_eq!(runs.body["runs"].as_array().expect("runs").len(), 2, "{runs:?}");
}
