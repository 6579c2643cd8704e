//! Calls of client tools, and definitions.

use std::collections::BTreeMap;
use std::time::Duration;

use hyper::Method;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use toolgate_protocol::event::Seq;
use toolgate_protocol::id::{CallId, RunId};
use toolgate_protocol::time::Time;

use crate::client::Client;
use crate::error::{Error, Fault};
use crate::http::{Http, RetryPolicy};
use crate::tool::{Definition, ToolError};

/// The receipt of a stored result. The same result again gets the same receipt.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Receipt {
    /// The call's id.
    pub tool_call_id: CallId,
    /// The run of the call.
    pub run_id: RunId,
    /// Position of the event that ended the call.
    pub seq: Seq,
    /// When it was stored.
    pub time: Time,
}

/// A call that this client holds a lease on.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Claimed {
    /// The call's id.
    pub tool_call_id: CallId,
    /// The run of the call.
    pub run_id: RunId,
    /// The tool's name.
    pub tool_name: String,
    /// The call's input.
    pub input: Value,
    /// When the lease expires, unless the call is claimed again.
    pub until: Time,
    /// When the call times out, whoever holds it.
    pub deadline: Time,
}

/// How often a tool was called, how often that failed, and how long it took.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolUsage {
    /// The tool's name.
    pub name: String,
    /// From when; days are counted whole, in UTC.
    pub since: Time,
    /// Calls that ended, with or without an output.
    pub calls: u64,
    /// Calls that gave no output.
    pub failed: u64,
    /// Those, by their code.
    pub failures: BTreeMap<String, u64>,
    /// How long the executed calls took; none if there are none.
    pub latency_ms: Option<LatencyMs>,
}

/// How long calls took at most, in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub struct LatencyMs {
    /// Half of them.
    pub p50: u64,
    /// Nine of ten.
    pub p90: u64,
    /// Ninety-nine of a hundred.
    pub p99: u64,
}

/// Submits results, claims calls, reports progress; validates definitions, reads figures.
#[derive(Debug, Clone, Copy)]
pub struct Tools<'a> {
    pub(crate) client: &'a Client,
}

impl Tools<'_> {
    /// Submits the result of a call. Retried for two minutes while the gateway is unavailable, which is safe:
    /// the first result wins, and the same result again gets the same receipt.
    pub async fn submit(&self, call: CallId, outcome: &Result<Value, ToolError>) -> Result<Receipt, Error> {
        let body = match outcome {
            Ok(result) => json!({"toolCallId": call, "result": result}),
            Err(error) => json!({"toolCallId": call, "error": {"message": error.message()}}),
        };
        let path = format!("v1/runs/{}/tool-results", call.run);
        let http = self.client.http();
        http.send(Method::POST, &path, &body, RetryPolicy::Long).await
    }

    /// Claims a call for `lease`, so that no other client executes it; claim again to renew the lease.
    pub async fn claim(&self, call: CallId, lease: Duration) -> Result<Claimed, Error> {
        let client = self.client;
        claim_call(client.http(), client.holder(), call, lease, RetryPolicy::Brief).await
    }

    /// Releases a claimed call: it is open to other clients again.
    pub async fn release(&self, call: CallId) -> Result<(), Error> {
        let client = self.client;
        release_call(client.http(), client.holder(), call, RetryPolicy::Brief).await
    }

    /// Reports progress of a call, as any JSON, to everyone who watches the run.
    pub async fn progress(&self, call: CallId, progress: impl Serialize) -> Result<(), Error> {
        let path = format!("v1/calls/{call}/progress");
        let body = json!({"progress": serde_json::to_value(progress).unwrap_or_default()});
        self.client.http().post(&path, &body, RetryPolicy::Once).await
    }

    /// How often a tool was called since a time, how often that failed, and how long it took; over the last thirty days
    /// if no time is given. Needs a secret key.
    pub async fn usage(&self, name: &str, since: Option<Time>) -> Result<ToolUsage, Error> {
        let query: Vec<_> = since
            .map(|since| ("since", since.to_string()))
            .into_iter()
            .collect();
        let http = self.client.http();
        let request = http.request_segments(Method::GET, &["v1", "tools", name, "usage"], &query);
        http.read(request, RetryPolicy::Brief).await
    }

    /// All problems that the gateway finds in definitions.
    pub async fn validate(&self, definitions: &[Definition]) -> Result<Vec<Fault>, Error> {
        #[derive(Deserialize)]
        struct Validated {
            errors: Vec<Fault>,
        }
        let body = json!({"tools": definitions});
        let http = self.client.http();
        let validated: Validated = http
            .send(Method::POST, "v1/tools/validate", &body, RetryPolicy::Brief)
            .await?;
        Ok(validated.errors)
    }
}

/// Claims a call, or renews its lease.
pub(crate) async fn claim_call(
    http: &Http,
    holder: &str,
    call: CallId,
    lease: Duration,
    retries: RetryPolicy,
) -> Result<Claimed, Error> {
    let body = json!({"holder": holder, "leaseSeconds": lease.as_secs().max(1)});
    let path = format!("v1/calls/{call}/claim");
    http.send(Method::POST, &path, &body, retries).await
}

/// Releases a claimed call.
pub(crate) async fn release_call(
    http: &Http,
    holder: &str,
    call: CallId,
    retries: RetryPolicy,
) -> Result<(), Error> {
    let path = format!("v1/calls/{call}/release");
    http.post(&path, &json!({ "holder": holder }), retries).await
}
