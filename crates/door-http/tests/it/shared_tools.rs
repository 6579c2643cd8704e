//! Tools that the agents of a project share, over HTTP.

use serde_json::{Value, json};

use crate::world::World;

const PATH: &str = "/v1/shared-tools/lookup_order";

fn lookup() -> Value {
    json!({
        "description": "Looks up an order.", "executionType": "prompt", "category": "orders",
        "execution": {"prompt": "{{id}}", "model": {"provider": "openai", "name": "m", "apiKey": "very-secret"}},
    })
}

#[tokio::test]
async fn a_shared_tool_is_stored_shown_and_removed_by_a_backend() {
    let world = World::new().await;
    let made = world.backend().put(PATH, lookup()).await.expect(201);
    assert_eq!(
        (&made["name"], &made["version"]),
        (&json!("lookup_order"), &json!(1))
    );
    assert_eq!(made["definition"]["name"], "lookup_order");
    let read = world.backend().get(PATH).await.expect(200);
    assert_eq!(read, made);
    let all = world.backend().get("/v1/shared-tools").await.expect(200);
    assert_eq!(all["sharedTools"], json!([made]));
    for shown in [&read, &all] {
        assert!(!shown.to_string().contains("very-secret"), "{shown}");
    }
    world.backend().put(PATH, lookup()).await.expect(200);
    let agent = json!({"model": {"provider": "demo"}, "tools": ["lookup_order"]});
    world.backend().put("/v1/agents/clerk", agent).await.expect(201);

    // Tools that users may not know of are not told to them.
    let user = world.user("ada");
    for denied in [
        user.get(PATH).await,
        user.get("/v1/shared-tools").await,
        user.put(PATH, lookup()).await,
        user.delete(PATH).await,
    ] {
        assert_eq!(denied.code(403), "FORBIDDEN");
    }
    world.backend().delete(PATH).await.expect(204);
    assert_eq!(world.backend().get(PATH).await.code(404), "NOT_FOUND");
}

#[tokio::test]
async fn the_list_of_tools_says_where_each_comes_from() {
    let world = World::new().await;
    world.backend().put(PATH, lookup()).await.expect(201);
    let own = json!({"name": "own", "description": "Own.", "executionType": "basic"});
    let agent = json!({"model": {"provider": "demo"}, "tools": ["lookup_order", "echo", own]});
    world.backend().put("/v1/agents/clerk", agent).await.expect(201);
    let list = world.backend().get("/v1/tools").await.expect(200);
    let tools = list["tools"].as_array().unwrap().iter();
    let told: Vec<Value> = tools
        .filter(|tool| tool["agent"] == "clerk" || tool.get("agent").is_none())
        .map(|tool| json!([tool["agent"], tool["name"], tool["source"]]))
        .collect();
    assert_eq!(
        told,
        [
            json!(["clerk", "echo", "built-in"]),
            json!(["clerk", "lookup_order", "shared"]),
            json!(["clerk", "own", "agent"]),
            json!([null, "lookup_order", "shared"]),
        ]
    );
    let orders = world
        .backend()
        .get("/v1/tools?category=orders&agent=clerk")
        .await
        .expect(200);
    assert_eq!(orders["tools"].as_array().unwrap().len(), 1);
    let seen = world.user("ada").get("/v1/tools").await.expect(200);
    assert!(!seen.to_string().contains("lookup_order"), "{seen}");
    assert!(!seen.to_string().contains("source"), "{seen}");
}

#[tokio::test]
async fn all_that_is_wrong_with_a_shared_tool_is_told_at_once() {
    let world = World::new().await;
    let wrong = json!({"name": "other", "parameters": {"type": "string"}, "executionType": "nothing"});
    let refused = world.backend().put(PATH, wrong).await.expect(422);
    let pointers: Vec<&str> = refused["errors"]
        .as_array()
        .unwrap()
        .iter()
        .map(|error| error["pointer"].as_str().unwrap())
        .collect();
    assert_eq!(pointers, ["/name", "/executionType", "/parameters"]);
    let taken = world.backend().put("/v1/shared-tools/echo", lookup()).await;
    let taken = taken.expect(422);
    assert_eq!(taken["errors"][0]["pointer"], "/name");
    world
        .backend()
        .put("/v1/shared-tools/no%20name", lookup())
        .await
        .expect(422);
}

#[tokio::test]
async fn a_change_that_somebody_else_made_is_not_written_over() {
    let world = World::new().await;
    let with = |header: &'static str, value: &'static str| world.backend().with(header, value);
    with("if-none-match", "*").put(PATH, lookup()).await.expect(201);
    assert_eq!(
        with("if-none-match", "*").put(PATH, lookup()).await.code(412),
        "CHANGED"
    );
    let other = json!({"description": "Other."});
    with("if-match", "\"1\"")
        .put(PATH, other.clone())
        .await
        .expect(200);
    assert_eq!(
        with("if-match", "\"1\"").put(PATH, lookup()).await.code(412),
        "CHANGED"
    );
    assert_eq!(with("if-match", "\"1\"").delete(PATH).await.code(412), "CHANGED");
    assert_eq!(world.backend().get(PATH).await.expect(200)["version"], 2);
    with("if-match", "\"2\"").delete(PATH).await.expect(204);
}
