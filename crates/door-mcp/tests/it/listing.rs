use serde_json::{Value, json};

use crate::talk::{Incoming, MODERN, NOTHING, Session, ask, modern, post, read, send, world};

fn names(list: &Value) -> Vec<&str> {
    let tools = list["tools"].as_array().unwrap().iter();
    tools.map(|tool| tool["name"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn a_backend_is_offered_the_agents_tools_all_named_ones_and_the_agents() {
    let world = world().await;
    let answer = ask(&world.backend(), "tools/list", json!({}), NOTHING).await;
    let list = answer.result();
    let names = names(list);
    for expected in ["ask", "mirror", "guarded", "slow", "context", "ask_default"] {
        assert!(names.contains(&expected), "{expected} is missing: {names:?}");
    }
    let mut sorted = names.clone();
    sorted.sort_unstable();
    assert_eq!(names, sorted);
    assert_eq!(list["resultType"], "complete");
    assert_eq!(list["cacheScope"], "private");
    assert_eq!(list["ttlMs"], 0);
    let again = ask(&world.backend(), "tools/list", json!({}), NOTHING).await;
    assert_eq!(again.result(), list);
}

#[tokio::test]
async fn a_user_is_offered_what_it_may_see() {
    let world = world().await;
    let answer = ask(&world.user("ann"), "tools/list", json!({}), NOTHING).await;
    assert_eq!(
        names(answer.result()),
        ["ask", "ask_default", "guarded_ask", "open_mirror"]
    );
}

#[tokio::test]
async fn an_agent_that_one_may_not_start_looks_like_one_that_does_not_exist() {
    let world = world().await;
    let hidden = json!({"instructions": "x", "access": "backend", "model": {"provider": "demo"}});
    let name = "hidden".parse().unwrap();
    let project = toolgate_testkit_http::world::project(1);
    world
        .engine
        .put_agent(project, &name, hidden.into())
        .await
        .unwrap();
    let message = crate::talk::modern("tools/list", json!({}), NOTHING);
    let at = |client| async move { read(post(client, "/mcp/agents/hidden", &message.clone()).await).await };
    let told = at(&world.user("ann")).await;
    assert_eq!(told.status, 404);
    let listed = ask(&world.backend(), "tools/list", json!({}), NOTHING).await;
    assert!(names(listed.result()).contains(&"ask_hidden"));
    let prompts = ask(&world.user("ann"), "prompts/list", json!({}), NOTHING).await;
    assert_eq!(prompts.result()["prompts"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn a_legacy_client_reads_a_list_that_it_can_take() {
    let world = world().await;
    let session = Session::begin(&world.backend(), json!({})).await;
    let answer = session.ask("tools/list", json!({})).await;
    let list = answer.result();
    assert!(names(list).contains(&"mirror"));
    assert_eq!(list.get("resultType"), None);
    for tool in list["tools"].as_array().unwrap() {
        let schema = &tool["outputSchema"];
        assert!(schema.is_null() || schema["type"] == "object", "{tool}");
    }
}

#[tokio::test]
async fn a_client_can_ask_what_the_server_is() {
    let world = world().await;
    let answer = ask(&world.backend(), "server/discover", json!({}), NOTHING).await;
    let told = answer.result();
    assert!(
        told["supportedVersions"]
            .as_array()
            .unwrap()
            .contains(&json!(MODERN)),
        "{told}"
    );
    assert!(
        told["capabilities"]["extensions"]
            .get("io.modelcontextprotocol/tasks")
            .is_some(),
        "{told}"
    );
}

#[tokio::test]
async fn an_agent_is_a_prompt_that_tells_nothing_of_its_instructions() {
    let world = world().await;
    let params = json!({"name": "default", "arguments": {"message": "good day"}});
    let answer = ask(&world.user("ann"), "prompts/get", params, NOTHING).await;
    let text = answer.result()["messages"][0]["content"]["text"]
        .as_str()
        .unwrap()
        .to_owned();
    assert!(
        text.contains("ask_default") && text.contains("good day"),
        "{text}"
    );
    assert!(!text.contains("Do as the test says"));
    let unknown = ask(
        &world.user("ann"),
        "prompts/get",
        json!({"name": "none"}),
        NOTHING,
    )
    .await;
    assert_eq!(unknown.error()["code"], -32602);
}

#[tokio::test]
async fn a_changed_list_is_told_in_both_eras() {
    let world = world().await;
    let session = Session::begin(&world.backend(), json!({})).await;
    let client = session
        .client()
        .with("accept", "text/event-stream")
        .with("host", "localhost");
    let mut legacy = Incoming::of(
        client
            .raw(http::Method::GET, "/mcp", axum::body::Body::empty())
            .await,
    );
    let filter = json!({"notifications": {"toolsListChanged": true}});
    let message = modern("subscriptions/listen", filter, NOTHING);
    let mut listening = Incoming::of(send(&world.backend(), &message).await);
    let told = listening.next().await.unwrap();
    assert_eq!(told["params"]["notifications"], json!({"toolsListChanged": true}));
    let agent = json!({"instructions": "x", "model": {"provider": "demo"}});
    let name = "another".parse().unwrap();
    let project = toolgate_testkit_http::world::project(1);
    world
        .engine
        .put_agent(project, &name, agent.into())
        .await
        .unwrap();
    for stream in [&mut listening, &mut legacy] {
        let told = stream.next().await.unwrap();
        assert_eq!(told["method"], "notifications/tools/list_changed");
    }
}
