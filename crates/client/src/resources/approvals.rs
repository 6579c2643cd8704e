//! Questions to a person.

use reqwest::Method;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use toolgate_kernel::event::Seq;
use toolgate_kernel::id::{ApprovalId, CallId, RunId};

use crate::client::Client;
use crate::error::Error;
use crate::http::Patience;

/// A person's answer.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Decision {
    approved: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    input: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

impl Decision {
    /// Yes, as it is.
    pub fn yes() -> Self {
        Self {
            approved: true,
            input: None,
            reason: None,
        }
    }
    /// Yes, with this input instead. It is validated again.
    pub fn yes_with(input: Value) -> Self {
        Self {
            input: Some(input),
            ..Self::yes()
        }
    }
    /// No.
    pub fn no() -> Self {
        Self {
            approved: false,
            ..Self::yes()
        }
    }
    /// No, and the model is told why.
    pub fn no_because(reason: impl Into<String>) -> Self {
        Self {
            reason: Some(reason.into()),
            ..Self::no()
        }
    }
}

/// A decision is stored. The same decision again gets the same receipt.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Decided {
    /// Which question.
    pub approval_id: ApprovalId,
    /// Which call.
    pub tool_call_id: CallId,
    /// Its run.
    pub run_id: RunId,
    /// Yes or no.
    pub approved: bool,
    /// The place of the decision.
    pub seq: Seq,
}

/// Answers questions.
#[derive(Debug, Clone, Copy)]
pub struct Approvals<'a> {
    pub(crate) client: &'a Client,
}

impl Approvals<'_> {
    /// Decides. The first decision counts; another one is a conflict.
    pub async fn decide(&self, approval: ApprovalId, decision: &Decision) -> Result<Decided, Error> {
        let path = format!("v1/approvals/{approval}");
        let http = self.client.http();
        http.send(Method::POST, &path, decision, Patience::Long).await
    }
}
