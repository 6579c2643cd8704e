//! Where a run stands, why it ended, and what it used.

use serde::{Deserialize, Serialize};

/// Where a run stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// Accepted, not yet picked up.
    Queued,
    /// The model or a tool on the gateway's side is at work.
    Running,
    /// Only client tools are open.
    WaitingTool,
    /// A person has to decide.
    WaitingApproval,
    /// A durable pause.
    WaitingTime,
    /// Ended with an answer.
    Completed,
    /// Ended without one.
    Failed,
    /// Ended because somebody asked.
    Cancelled,
}

impl Status {
    /// Every status.
    pub const ALL: [Self; 8] = [
        Self::Queued,
        Self::Running,
        Self::WaitingTool,
        Self::WaitingApproval,
        Self::WaitingTime,
        Self::Completed,
        Self::Failed,
        Self::Cancelled,
    ];
    /// Every status that is not final.
    pub const OPEN: [Self; 5] = [
        Self::Queued,
        Self::Running,
        Self::WaitingTool,
        Self::WaitingApproval,
        Self::WaitingTime,
    ];

    /// As it is written in JSON and in the store.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Running => "running",
            Self::WaitingTool => "waiting_tool",
            Self::WaitingApproval => "waiting_approval",
            Self::WaitingTime => "waiting_time",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }
    /// The status that `text` names.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == text)
    }
    /// Whether the run goes on only when a person or a client says something.
    pub fn asks(self) -> bool {
        match self {
            Self::WaitingTool | Self::WaitingApproval => true,
            Self::Queued
            | Self::Running
            | Self::WaitingTime
            | Self::Completed
            | Self::Failed
            | Self::Cancelled => false,
        }
    }
    /// Nothing more will happen.
    pub fn is_final(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Cancelled)
    }
}

/// Why the model stopped, one enum for every vendor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FinishReason {
    /// It had said all.
    Stop,
    /// It ran out of output tokens.
    Length,
    /// A filter of the vendor's stopped it.
    ContentFilter,
    /// It asked for tools.
    ToolCalls,
    /// It failed.
    Error,
    /// A reason we do not know.
    Other,
}

/// Tokens of one step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Usage {
    /// Tokens read.
    pub input_tokens: u64,
    /// Tokens written, reasoning included.
    pub output_tokens: u64,
    /// Of those written, how many were reasoning.
    #[serde(skip_serializing_if = "is_zero")]
    pub reasoning_tokens: u64,
    /// Of those read, how many came from the vendor's cache.
    #[serde(skip_serializing_if = "is_zero")]
    pub cached_tokens: u64,
    /// The vendor has reported none, at least for a part: it was estimated from bytes.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub estimated: bool,
}

impl Usage {
    /// All of them.
    pub fn total(self) -> u64 {
        self.input_tokens + self.output_tokens
    }
}

fn is_zero(n: &u64) -> bool {
    *n == 0
}

/// Why a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EndReason {
    /// The model had said all.
    Stop,
    /// The model ran out of output tokens.
    Length,
    /// A filter of the vendor's.
    ContentFilter,
    /// `loop.maxSteps` was reached.
    MaxSteps,
    /// A limit of the run was reached.
    Limit,
    /// The model could not be asked.
    ModelError,
    /// The answer does not have the form that it must have.
    InvalidOutput,
    /// The call that the run was for gave no output.
    ToolError,
    /// Somebody asked for it.
    Cancelled,
}

impl EndReason {
    /// As it is written in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Stop => "stop",
            Self::Length => "length",
            Self::ContentFilter => "content-filter",
            Self::MaxSteps => "max-steps",
            Self::Limit => "limit",
            Self::ModelError => "model-error",
            Self::InvalidOutput => "invalid-output",
            Self::ToolError => "tool-error",
            Self::Cancelled => "cancelled",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_those_of_the_json() {
        for status in Status::ALL {
            assert_eq!(serde_json::to_value(status).unwrap(), status.as_str());
        }
        for reason in [
            EndReason::Stop,
            EndReason::Length,
            EndReason::ContentFilter,
            EndReason::MaxSteps,
            EndReason::Limit,
            EndReason::ModelError,
            EndReason::InvalidOutput,
            EndReason::ToolError,
            EndReason::Cancelled,
        ] {
            assert_eq!(serde_json::to_value(reason).unwrap(), reason.as_str());
        }
    }
}
