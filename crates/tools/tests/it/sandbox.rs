//! What code in a sandbox is given of a call.

use std::sync::{Arc, Mutex};

use serde_json::json;
use toolgate_engine::tools::{CallContext, SandboxContext};

use crate::server::context;

#[test]
fn a_sandbox_is_given_the_call_and_only_the_grants_that_it_needs() {
    let told = Arc::new(Mutex::new(Vec::new()));
    let heard = told.clone();
    let whole = CallContext {
        grants: ["net", "mail"].map(str::to_owned).into(),
        progress: Arc::new(move |progress| heard.lock().unwrap().push(progress.to_value())),
        ..context()
    };
    // Every member is named: one that is added is looked at here, whether code that is not ours may see it.
    let SandboxContext {
        call,
        grants,
        deadline,
        now,
        cancel,
        progress,
    } = whole.sandboxed(&["disk", "net"].map(str::to_owned));
    assert_eq!((call, deadline, now), (whole.call, whole.deadline, whole.now));
    assert_eq!(grants, ["net"]);
    progress(json!({"done": 1}).into());
    assert_eq!(*told.lock().unwrap(), [json!({"done": 1})]);
    whole.cancel.cancel();
    assert!(cancel.is_cancelled());
}
