//! What a server was given is not passed on, in any pair of eras.

use std::sync::Arc;

use serde_json::{Value, json};
use toolgate_testkit_mcp::Eras;

use crate::caller::{Caller, response};
use crate::gateway::{By, Gateway};

/// Stands for a secret: what the fixture says.
const SECRET: &str = "simple text";

fn hide(json: &str) -> Option<String> {
    json.contains(SECRET).then(|| json.replace(SECRET, "[secret]"))
}

#[tokio::test(flavor = "multi_thread")]
async fn results_and_lists_are_passed_on_without_what_the_server_was_given() {
    for eras in [Eras::Legacy, Eras::Modern] {
        let gateway = Gateway::before_with(eras, By::Pipe, |exposed| exposed.hide = Arc::new(hide)).await;
        let ann = Caller::user(&gateway.url, "ann");
        let session = ann.session().await;
        let list = json!({"jsonrpc": "2.0", "id": 3, "method": "tools/list", "params": {}});
        let told = [
            ann.call("test_simple_text").await,
            response(session.call_in_session("test_simple_text").await).await,
            ann.ask("tools/list", json!({})).await,
            response(session.send(&list).await).await,
        ];
        for told in &told {
            let told = told.to_string();
            assert!(!told.contains(SECRET), "{eras:?}: {told}");
        }
        let text = |told: &Value| told["result"]["content"][0]["text"].clone();
        assert_eq!(text(&told[0]), json!("This is a [secret] response for testing."));
        assert_eq!(text(&told[1]), text(&told[0]));
    }
}
