//! Code in real worker processes.

mod escapes;
mod fetching;
mod probes;
mod running;
mod wire;

use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use serde_json::{Value, json};
use toolgate_fair::Share;
use toolgate_kernel::json::Json;
use toolgate_sandbox::{
    FailureKind, FetchRequest, FetchResponse, Host, Job, JobLimits, LogLevel, NoHost, Sandbox,
    SandboxOptions, ScriptFailure, StorageOp,
};

fn program() -> PathBuf {
    env!("CARGO_BIN_EXE_toolgate-sandbox-fixture").into()
}

fn sandbox() -> Sandbox {
    Sandbox::new(program(), SandboxOptions::default())
}

/// A call of the tenant, with limits that end hostile code soon and harmless code never.
fn job(tenant: u8, code: &str, args: Value) -> Job {
    Job {
        share: Share {
            tenant: tenant.into(),
            user: Some(1),
        },
        owner: [tenant; 32],
        code: code.into(),
        args: args.into(),
        limits: JobLimits {
            wall: Duration::from_secs(30),
            cpu: Duration::from_millis(200),
            memory_bytes: 32 << 20,
            output_bytes: 64 << 10,
        },
    }
}

async fn run(sandbox: &Sandbox, code: &str) -> Result<Value, ScriptFailure> {
    let ran = sandbox.run(job(1, code, json!({})), Arc::new(NoHost)).await;
    ran.map(|output| output.to_value())
}

/// A host with a memory, which fetches nothing but what is scripted.
#[derive(Default)]
struct Notebook {
    log: Mutex<Vec<String>>,
    kept: Mutex<std::collections::BTreeMap<String, Json>>,
}

#[async_trait]
impl Host for Notebook {
    async fn fetch(&self, request: FetchRequest) -> Result<FetchResponse, String> {
        Ok(FetchResponse {
            status: 200,
            url: request.url.clone(),
            headers: vec![("content-type".into(), "text/plain".into())],
            body: request.url.into_bytes(),
        })
    }
    async fn storage(&self, operation: StorageOp) -> Result<Option<Json>, String> {
        let mut kept = self.kept.lock().expect("no panic");
        Ok(match operation {
            StorageOp::Get { key } => kept.get(&key).cloned(),
            StorageOp::Set { key, value } => {
                kept.insert(key, value);
                None
            }
            StorageOp::Delete { key } => {
                kept.remove(&key);
                None
            }
            StorageOp::List { prefix } => {
                let keys: Vec<_> = kept.keys().filter(|key| key.starts_with(&prefix)).collect();
                Some(json!(keys).into())
            }
        })
    }
    fn log(&self, level: LogLevel, text: &str) {
        self.log
            .lock()
            .expect("no panic")
            .push(format!("{level:?} {text}"));
    }
}

#[track_caller]
fn kind(ran: Result<Value, ScriptFailure>) -> FailureKind {
    ran.expect_err("it fails").kind
}
