//! The MCP servers of a project over REST. What real servers do is tested with the binary.

use serde_json::json;

use crate::world::World;

#[tokio::test]
async fn a_server_is_added_shown_without_its_values_and_removed() {
    let world = World::new().await;
    let backend = world.backend();
    let config =
        json!({"url": "https://mcp.example.invalid/mcp", "headers": {"Authorization": "Bearer hush-hush"}});
    let put = backend.put("/v1/mcp/servers/search", config).await.expect(200);
    assert_eq!(put["config"]["headers"], json!({"Authorization": "***"}));
    assert_eq!((&put["origin"], &put["tools"]), (&json!("project"), &json!([])));
    let list = backend.get("/v1/mcp/servers").await.expect(200);
    assert!(!list.to_string().contains("hush-hush"), "{list}");
    assert_eq!(list["servers"][0]["name"], "search");

    let masked = backend
        .put("/v1/mcp/servers/search", put["config"].clone())
        .await
        .expect(422);
    assert_eq!(masked["errors"][0]["pointer"], "/headers", "{masked}");
    world.stranger().get("/v1/mcp/servers/search").await.expect(404);
    world.user("ada").get("/v1/mcp/servers").await.expect(403);
    backend.delete("/v1/mcp/servers/search").await.expect(204);
    backend.delete("/v1/mcp/servers/search").await.expect(404);
}

#[tokio::test]
async fn what_may_not_be_reached_or_started_is_refused_with_the_setting() {
    let world = World::new().await;
    let backend = world.backend();
    let put = async |name: &str, config| backend.put(&format!("/v1/mcp/servers/{name}"), config).await;
    let command = put("x", json!({"command": "sh"})).await;
    assert_eq!(command.code(403), "COMMAND_NOT_PERMITTED");
    let inside = put("x", json!({"url": "http://169.254.169.254/"}))
        .await
        .expect(422);
    assert_eq!(inside["errors"][0]["pointer"], "/url", "{inside}");
    put("a.b", json!({"url": "https://a.test/"})).await.expect(422);
    let decided = backend
        .post("/v1/mcp/servers/none/tools/t/approve", json!({}))
        .await;
    decided.expect(404);
}
