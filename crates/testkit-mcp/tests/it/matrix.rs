//! What a client sees of a server does not depend on the eras that they speak, nor on how the server is reached.

use rmcp::model::{CallToolResponse, GetTaskParams, SubscriptionFilter};
use serde_json::{Value, json};
use toolgate_testkit_mcp::Eras;

use crate::client::{Client, Era, params, text};
use crate::gateway::{By, Gateway, HELD, PATIENCE, soon};

macro_rules! cells {
    ($($name:ident: $client:expr, $server:expr, $by:expr;)*) => {
        $(#[tokio::test(flavor = "multi_thread")]
        async fn $name() {
            check($client, $server, $by).await;
        })*
    };
}

cells! {
    a_modern_client_and_a_modern_server: Era::Modern, Eras::Modern, By::Http;
    a_modern_client_and_a_modern_server_on_a_pipe: Era::Modern, Eras::Modern, By::Pipe;
    a_modern_client_and_a_legacy_server: Era::Modern, Eras::Legacy, By::Http;
    a_modern_client_and_a_legacy_server_on_a_pipe: Era::Modern, Eras::Legacy, By::Pipe;
    a_legacy_client_and_a_modern_server: Era::Legacy, Eras::Modern, By::Http;
    a_legacy_client_and_a_modern_server_on_a_pipe: Era::Legacy, Eras::Modern, By::Pipe;
    a_legacy_client_and_a_legacy_server: Era::Legacy, Eras::Legacy, By::Http;
    a_legacy_client_and_a_legacy_server_on_a_pipe: Era::Legacy, Eras::Legacy, By::Pipe;
}

async fn check(era: Era, server: Eras, by: By) {
    let gateway = Gateway::before(server, by).await;
    let client = Client::connect(&gateway.url, era).await;
    lists(&client).await;
    calls(&client).await;
    asks(&client).await;
    hears_of_changes(&client, era, server, by).await;
    makes_tasks(&client, era, server).await;
    cancels(&client, &gateway, by).await;
}

async fn lists(client: &Client) {
    let tools = soon("list", client.service.list_all_tools()).await.unwrap();
    let structured = tools.iter().find(|tool| tool.name == "structured").unwrap();
    let structured = serde_json::to_value(structured).unwrap();
    assert_eq!(structured["_meta"]["example.org/kept"], json!({"b": 1, "a": 2}));
    assert_eq!(structured["outputSchema"]["required"], json!(["sum"]));
    assert!(
        !tools.iter().any(|tool| tool.name == HELD),
        "a tool that is held is listed"
    );
    let resources = soon("resources", client.service.list_all_resources())
        .await
        .unwrap();
    assert_eq!(resources.len(), 3);
}

async fn calls(client: &Client) {
    let done = client.call("structured", json!({"a": 2, "b": 3})).await;
    assert_eq!(done.structured_content, Some(json!({"sum": 5})));
    let failed = client.call("test_error_handling", json!({})).await;
    assert_eq!(failed.is_error, Some(true));
    // What does not fit is told to the model; the server is not asked.
    let misfit = client.call("structured", json!({"a": 2})).await;
    assert_eq!(misfit.is_error, Some(true));
    assert!(text(&misfit).contains('b'), "{misfit:?}");
    let held = soon(HELD, client.service.call_tool(params(HELD, json!({})))).await;
    assert!(held.is_err(), "a tool that is held is called");
    client.call("test_tool_with_progress", json!({})).await;
    for progress in ["progress 0", "progress 50", "progress 100"] {
        client.hears(progress).await;
    }
}

async fn asks(client: &Client) {
    let greeted = client
        .call("test_input_required_result_elicitation", json!({}))
        .await;
    assert_eq!(text(&greeted), "Hello, Ada!");
    client.hears("asked What is your name?").await;
    let twice = client
        .call("test_input_required_result_multi_round", json!({}))
        .await;
    assert!(text(&twice).contains("blue"), "{twice:?}");
    client.hears("asked Step 1: What is your name?").await;
    client.hears("asked Step 2: What is your favorite color?").await;
}

async fn hears_of_changes(client: &Client, era: Era, server: Eras, by: By) {
    if era == Era::Legacy {
        client.call("test_trigger_tool_change", json!({})).await;
        return client.hears("tools changed").await;
    }
    if server == Eras::Legacy && by == By::Pipe {
        // Each connection is a process of its own: none hears of what happens in another.
        return;
    }
    let filter: SubscriptionFilter = serde_json::from_value(json!({"toolsListChanged": true})).unwrap();
    let mut changes = soon("listen", client.service.listen(filter)).await.unwrap();
    client.call("test_trigger_tool_change", json!({})).await;
    let change = soon("tools changed", changes.next()).await;
    let change = format!("{change:?}");
    assert!(change.contains("ToolListChanged"), "{change}");
}

async fn makes_tasks(client: &Client, era: Era, server: Eras) {
    if era == Era::Modern && server == Eras::Modern {
        return follows_a_task(client).await;
    }
    // Waited for, here or at the server.
    let done = client.call("slow_compute", json!({"seconds": 0})).await;
    assert_eq!(text(&done), "Computed");
    let deleted = client.call("confirm_delete", json!({"filename": "a.txt"})).await;
    assert_eq!(text(&deleted), "Deleted a.txt");
    client.hears("asked Delete it?").await;
    if server == Eras::Modern {
        let failed = client.call("failing_job", json!({})).await;
        assert_eq!(failed.is_error, Some(true));
        let broken = client
            .service
            .call_tool(params("protocol_error_job", json!({})))
            .await;
        assert!(broken.unwrap_err().to_string().contains("The server failed"));
    }
}

async fn follows_a_task(client: &Client) {
    let called = client
        .service
        .call_tool_once(params("slow_compute", json!({"seconds": 0})))
        .await;
    let CallToolResponse::Task(created) = called.unwrap() else {
        panic!("no task")
    };
    let done = async {
        loop {
            let state = client
                .service
                .get_task(GetTaskParams::new(created.task.task_id.clone()))
                .await
                .unwrap();
            let state: Value = serde_json::to_value(state).unwrap();
            if state["status"] == "completed" {
                return state;
            }
        }
    };
    let state = soon("task", done).await;
    assert_eq!(state["result"]["content"][0]["text"], "Computed");
}

async fn cancels(client: &Client, gateway: &Gateway, by: By) {
    {
        let mut call = Box::pin(
            client
                .service
                .call_tool_once(params("wait_until_cancelled", json!({}))),
        );
        tokio::select! {
            early = &mut call => panic!("it ended by itself: {early:?}"),
            () = client.hears("progress 0") => {}
        }
    }
    if by == By::Http {
        let counted = async {
            while gateway.fixture.cancelled_calls() == 0 {
                tokio::task::yield_now().await;
            }
        };
        let counted = tokio::time::timeout(PATIENCE, counted).await;
        counted.expect("the server hears that the call was cancelled");
    }
    // The connection is as good as before.
    let greeted = client.call("greet", json!({"name": "Ada"})).await;
    assert_eq!(text(&greeted), "Hello, Ada!");
}
