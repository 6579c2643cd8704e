//! Approvals.

use hyper::Method;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use toolgate_protocol::event::Seq;
use toolgate_protocol::id::{ApprovalId, CallId, RunId};

use crate::client::Client;
use crate::error::Error;
use crate::http::RetryPolicy;

/// A decision on an approval.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Decision {
    approved: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    input: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    remember: Option<bool>,
}

impl Decision {
    /// Approves the call as it is.
    pub fn yes() -> Self {
        Self {
            approved: true,
            input: None,
            reason: None,
            remember: None,
        }
    }
    /// Approves this call alone, also where the tool would remember a yes for later calls.
    pub fn yes_once() -> Self {
        Self {
            remember: Some(false),
            ..Self::yes()
        }
    }
    /// Approves the call with this input instead, which is validated again.
    pub fn yes_with(input: Value) -> Self {
        Self {
            input: Some(input),
            ..Self::yes()
        }
    }
    /// Rejects the call.
    pub fn no() -> Self {
        Self {
            approved: false,
            ..Self::yes()
        }
    }
    /// Rejects the call with a reason, which the model reads.
    pub fn no_because(reason: impl Into<String>) -> Self {
        Self {
            reason: Some(reason.into()),
            ..Self::no()
        }
    }
}

/// The receipt of a stored decision. The same decision again gets the same receipt.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Decided {
    /// The approval's id.
    pub approval_id: ApprovalId,
    /// The call that waited for it.
    pub tool_call_id: CallId,
    /// The run of the call.
    pub run_id: RunId,
    /// Whether the call was approved.
    pub approved: bool,
    /// Whether the yes stands for later calls too, until it is revoked.
    #[serde(default)]
    pub remembered: bool,
    /// Position of the decision's event.
    pub seq: Seq,
}

/// Decides approvals.
#[derive(Debug, Clone, Copy)]
pub struct Approvals<'a> {
    pub(crate) client: &'a Client,
}

impl Approvals<'_> {
    /// Stores a decision. The first one wins; a different one fails with a conflict.
    pub async fn decide(&self, approval: ApprovalId, decision: &Decision) -> Result<Decided, Error> {
        let path = format!("v1/approvals/{approval}");
        let http = self.client.http();
        http.send(Method::POST, &path, decision, RetryPolicy::Long).await
    }
}
