//! Calls of client tools, and definitions.

use std::time::Duration;

use reqwest::Method;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use toolgate_kernel::event::Seq;
use toolgate_kernel::id::{CallId, RunId};
use toolgate_kernel::time::Time;

use crate::client::Client;
use crate::error::{Error, Fault};
use crate::http::Patience;
use crate::tool::{Definition, ToolError};

/// A result is stored. The same result again gets the same receipt.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Receipt {
    /// Which call.
    pub tool_call_id: CallId,
    /// Its run.
    pub run_id: RunId,
    /// The place of the event that settled it.
    pub seq: Seq,
    /// When it was stored.
    pub time: Time,
}

/// A call is ours to execute.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Claimed {
    /// Which call.
    pub tool_call_id: CallId,
    /// Its run.
    pub run_id: RunId,
    /// The tool.
    pub tool_name: String,
    /// What to run it with.
    pub input: Value,
    /// Until when, unless it is claimed again.
    pub until: Time,
    /// When the call is given up whoever holds it.
    pub deadline: Time,
}

/// Answers calls, claims them, tells how far they are; checks definitions.
#[derive(Debug, Clone, Copy)]
pub struct Tools<'a> {
    pub(crate) client: &'a Client,
}

impl Tools<'_> {
    /// Answers a call. Sent again for two minutes when the gateway is away: the first result counts, the same
    /// again gets the same receipt.
    pub async fn submit(&self, call: CallId, outcome: &Result<Value, ToolError>) -> Result<Receipt, Error> {
        let body = match outcome {
            Ok(result) => json!({"toolCallId": call, "result": result}),
            Err(error) => json!({"toolCallId": call, "error": {"message": error.message()}}),
        };
        let path = format!("v1/runs/{}/tool-results", call.run);
        let http = self.client.http();
        http.send(Method::POST, &path, &body, Patience::Long).await
    }

    /// Claims a call for `lease`, so that nobody else executes it too; again to keep it.
    pub async fn claim(&self, call: CallId, lease: Duration) -> Result<Claimed, Error> {
        let body = json!({"holder": self.client.holder(), "leaseSeconds": lease.as_secs().max(1)});
        let path = format!("v1/calls/{call}/claim");
        let http = self.client.http();
        http.send(Method::POST, &path, &body, Patience::Brief).await
    }

    /// Gives a claimed call back: it is offered again.
    pub async fn release(&self, call: CallId) -> Result<(), Error> {
        let body = json!({"holder": self.client.holder()});
        let path = format!("v1/calls/{call}/release");
        self.client.http().tell(&path, &body, Patience::Brief).await
    }

    /// Tells whoever watches how far a call is: any JSON.
    pub async fn progress(&self, call: CallId, progress: impl Serialize) -> Result<(), Error> {
        let path = format!("v1/calls/{call}/progress");
        let body = json!({"progress": serde_json::to_value(progress).unwrap_or_default()});
        self.client.http().tell(&path, &body, Patience::Once).await
    }

    /// Everything that the gateway finds wrong with definitions.
    pub async fn validate(&self, definitions: &[Definition]) -> Result<Vec<Fault>, Error> {
        #[derive(Deserialize)]
        struct Validated {
            errors: Vec<Fault>,
        }
        let body = json!({"tools": definitions});
        let http = self.client.http();
        let validated: Validated = http
            .send(Method::POST, "v1/tools/validate", &body, Patience::Brief)
            .await?;
        Ok(validated.errors)
    }
}
