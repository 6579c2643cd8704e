//! Definitions in each vendor's form, from the real binary.

use serde_json::json;
use toolgate_testkit::model_server::ModelServer;

use crate::harness::{gateway, soon};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backend_reads_definitions_in_the_form_of_each_vendor() {
    let models = ModelServer::start().await;
    let gateway = gateway(&models).await;
    let schema = json!({"type": "object"});
    let said = "The tool clock.";
    for (vendor, pointer, documented) in [
        (
            "openai",
            "/tools/1",
            json!({"type": "function", "function": {"name": "clock", "description": said, "parameters": schema}}),
        ),
        (
            "anthropic",
            "/tools/1",
            json!({"name": "clock", "description": said, "input_schema": schema}),
        ),
        (
            "google",
            "/tools/0/functionDeclarations/1",
            json!({"name": "clock", "description": said, "parametersJsonSchema": schema}),
        ),
    ] {
        let path = format!("/v1/tools?agent=worker&format={vendor}");
        let told = soon("the definitions", gateway.api().get(&path)).await;
        assert_eq!(told.body.pointer(pointer), Some(&documented), "{told:?}");
    }
}
