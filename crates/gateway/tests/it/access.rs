//! Who may start an agent. To everybody else it is an agent that does not exist, on every route of every door.

use serde_json::{Value, json};
use toolgate_testkit::model_server::ModelServer;

use crate::harness::{Answer, Api, Gateway, gateway, put_agent};

const ACCESSES: [&str; 5] = ["unsaid", "spaces", "backend", "groups", "public"];

fn agent(models: &ModelServer, access: Option<Value>) -> Value {
    let mut config = json!({
        "instructions": "script: say:hello",
        "model": {"provider": "openai", "name": "script", "baseUrl": models.base_url(), "apiKey": "none"},
        "tools": [{"name": "ask", "description": "Asks.", "executionType": "basic", "execution": null}],
    });
    if let Some(access) = access {
        config["access"] = access;
    }
    config
}

/// A gateway with one agent of each kind, each named for its audience.
async fn world(models: &ModelServer) -> Gateway {
    let gateway = gateway(models).await;
    for name in ACCESSES {
        let access = match name {
            "unsaid" => None,
            "groups" => Some(json!({"groups": ["staff", "owners"]})),
            word => Some(json!(word)),
        };
        put_agent(&gateway.api(), name, &agent(models, access)).await;
    }
    gateway
}

/// What every way to an agent answers, with the agent's name taken out.
async fn tried(user: &Api, agent: &str) -> Vec<Answer> {
    let own = user.post("/v1/spaces", &json!({})).await.text("id");
    let turn = json!({"messages": [{"id": "m", "role": "user", "parts": [{"type": "text", "text": "hi"}]}]});
    let mut in_chat = turn.clone();
    in_chat["id"] = json!("a-chat-of-mine");
    let answers = [
        user.post("/v1/runs", &json!({"agent": agent, "message": "hi"}))
            .await,
        user.post(
            "/v1/runs",
            &json!({"agent": agent, "message": "hi", "space": own}),
        )
        .await,
        user.post(
            &format!("/v1/spaces/{own}/messages"),
            &json!({"agent": agent, "content": "hi"}),
        )
        .await,
        user.post("/v1/spaces", &json!({"agent": agent})).await,
        user.post(&format!("/v1/agents/{agent}/chat"), &turn).await,
        user.post(&format!("/v1/agents/{agent}/chat"), &in_chat).await,
        user.get(&format!("/v1/agents/{agent}/chat/a-chat-of-mine")).await,
        user.get(&format!("/v1/agents/{agent}/chat/a-chat-of-mine/stream"))
            .await,
        user.get(&format!("/v1/tools?agent={agent}")).await,
        user.get(&format!("/v1/agents/{agent}")).await,
    ];
    let unnamed = |answer: Answer| Answer {
        body: serde_json::from_str(&answer.body.to_string().replace(agent, "AGENT")).expect("JSON"),
        ..answer
    };
    answers.into_iter().map(unnamed).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_that_one_may_not_start_looks_like_one_that_does_not_exist() {
    let models = ModelServer::start().await;
    let gateway = world(&models).await;
    let ada = gateway.api().as_user("ada");
    let unknown = tried(&ada, "nobody").await;
    assert_eq!(unknown[0].status, 404, "{unknown:?}");
    for agent in ["unsaid", "spaces", "backend", "groups"] {
        assert_eq!(tried(&ada, agent).await, unknown, "{agent}");
    }
    let other = gateway
        .api()
        .as_member_of("ada", &json!({"groups": ["guests"], "roles": ["staff"]}));
    assert_eq!(tried(&other, "groups").await, unknown);
    assert!(gateway.api().runs().await.is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_answers_those_whom_its_author_named() {
    let models = ModelServer::start().await;
    let gateway = world(&models).await;
    let (backend, ada) = (gateway.api(), gateway.api().as_user("ada"));
    let of_staff = backend.as_member_of("bob", &json!({"groups": ["guests", "staff"]}));
    let of_one = backend.as_member_of("cy", &json!({"groups": "owners"}));
    for (who, agent) in [(&ada, "public"), (&of_staff, "groups"), (&of_one, "groups")] {
        let answers = tried(who, agent).await;
        let done: Vec<u16> = answers.iter().map(|answer| answer.status).collect();
        assert_eq!(
            done,
            [201, 201, 202, 201, 200, 200, 200, 204, 200, 403],
            "{answers:?}"
        );
        assert_eq!(answers[8].body["tools"][0]["name"], "ask");
    }
    for agent in ACCESSES {
        let started = backend
            .post("/v1/runs", &json!({"agent": agent, "message": "hi"}))
            .await;
        assert_eq!(started.status, 201, "{agent}: {started:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_space_that_a_backend_gave_an_agent_lets_its_members_talk_to_it() {
    let models = ModelServer::start().await;
    let gateway = world(&models).await;
    let (backend, ada) = (gateway.api(), gateway.api().as_user("ada"));
    for (agent, allowed) in [
        ("unsaid", true),
        ("spaces", true),
        ("backend", false),
        ("groups", false),
    ] {
        let given = json!({"agent": agent, "members": ["ada"]});
        let space = backend.post("/v1/spaces", &given).await.text("id");
        let path = format!("/v1/spaces/{space}/messages");
        let said = ada.post(&path, &json!({"content": "hi"})).await;
        assert_eq!(said.status, if allowed { 202 } else { 404 }, "{agent}: {said:?}");
        let chat = json!({"id": space, "message": "hi"});
        let chatted = ada.post(&format!("/v1/agents/{agent}/chat"), &chat).await;
        assert_eq!(
            chatted.status,
            if allowed { 200 } else { 404 },
            "{agent}: {chatted:?}"
        );
        // It is this agent that the space was given, and no other one.
        let other = ["spaces", "unsaid"][usize::from(agent == "spaces")];
        let said = ada.post(&path, &json!({"content": "hi", "agent": other})).await;
        assert_eq!(said.status, 404, "{agent}: {said:?}");
    }
    // A run that a backend starts in a space of its own gives that space its agent, too.
    let started = backend
        .post("/v1/runs", &json!({"agent": "spaces", "message": "hi"}))
        .await;
    let space = started.text("spaceId");
    let joined = backend
        .put(&format!("/v1/spaces/{space}/members/ada"), &json!({}))
        .await;
    assert_eq!(joined.status, 204, "{joined:?}");
    let said = ada
        .post(&format!("/v1/spaces/{space}/messages"), &json!({"content": "hi"}))
        .await;
    assert_eq!(said.status, 202, "{said:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backend_reads_who_a_member_is_and_what_it_may_do() {
    let models = ModelServer::start().await;
    let gateway = world(&models).await;
    let (backend, ada) = (gateway.api(), gateway.api().as_user("ada"));
    let space = backend.post("/v1/spaces", &json!({})).await.text("id");
    let member = format!("/v1/spaces/{space}/members/ada");
    assert_eq!(backend.get(&member).await.status, 404);
    let given = json!({"role": "manager", "grants": ["refund"]});
    assert_eq!(backend.put(&member, &given).await.status, 204);
    let read = backend.get(&member).await;
    assert_eq!(read.body["entity"]["subject"], "ada");
    assert_eq!(read.body["role"], "manager");
    assert_eq!(read.body["grants"], json!(["refund"]));

    // By its id, as runs and spaces name it, the same is found; for a user nothing is.
    let id = read.body["entity"]["id"].as_str().unwrap().to_owned();
    let by_id = backend.get(&format!("/v1/spaces/{space}/members/{id}")).await;
    assert_eq!(by_id.body, read.body);
    let entity = format!("/v1/entities/{id}");
    assert_eq!(backend.get(&entity).await.text("subject"), "ada");
    assert_eq!(ada.get(&entity).await.status, 404);
    assert_eq!(ada.get(&member).await.status, 403);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_space_that_a_user_made_is_not_one_that_a_backend_gave() {
    let models = ModelServer::start().await;
    let gateway = world(&models).await;
    let (backend, ada) = (gateway.api(), gateway.api().as_user("ada"));
    let space = ada
        .post("/v1/spaces", &json!({"agent": "public"}))
        .await
        .text("id");
    let say = async || {
        let path = format!("/v1/spaces/{space}/messages");
        ada.post(&path, &json!({"content": "hi"})).await.status
    };
    assert_eq!(say().await, 202);
    put_agent(&backend, "public", &agent(&models, Some(json!("spaces")))).await;
    assert_eq!(say().await, 404);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_of_the_backend_is_called_by_other_agents() {
    let models = ModelServer::start().await;
    let gateway = world(&models).await;
    let mut front = agent(&models, Some(json!("public")));
    front["instructions"] = json!("script: call:ask_backend input:{\"prompt\":\"x\"} say:done");
    front["tools"] = json!([
        {"name": "ask_backend", "description": "Asks.", "executionType": "ai-agent", "execution": {"agent": "backend"}},
    ]);
    put_agent(&gateway.api(), "front", &front).await;
    let ada = gateway.api().as_user("ada");
    let started = ada
        .post("/v1/runs", &json!({"agent": "front", "message": "go"}))
        .await;
    let events = gateway.api().finished(&started.text("runId")).await;
    let output = events.iter().find(|event| event.kind == "tool-output-available");
    assert!(
        output.expect("an output").data.to_string().contains("hello"),
        "{events:#?}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_agent_of_a_fresh_start_answers_every_user() {
    let models = ModelServer::start().await;
    let gateway = Gateway::start(&[]).await;
    let ada = gateway.api().as_user("ada");
    let turn = json!({"message": "hello"});
    assert_eq!(ada.post("/api/chat", &turn).await.status, 200);
    // Also once its author has replaced it, as long as it does not say otherwise.
    put_agent(&gateway.api(), "default", &agent(&models, None)).await;
    assert_eq!(ada.post("/api/chat", &turn).await.status, 200);
    put_agent(&gateway.api(), "default", &agent(&models, Some(json!("backend")))).await;
    assert_eq!(ada.post("/api/chat", &turn).await.status, 404);
}
