//! Why a call failed.

use serde::{Deserialize, Serialize};

/// Why a call gave no output; one per way that a model, a client or an operator would act differently.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum ErrorCode {
    /// No such tool.
    NotFound,
    /// The input does not fit the schema.
    ValidationFailed,
    /// Something else has to happen first.
    PrerequisitesNotMet,
    /// The agent was not given what the tool needs.
    PermissionDenied,
    /// A limit of the run is used up.
    LimitExceeded,
    /// A person said no, or said nothing in time.
    Denied,
    /// No answer in time.
    Timeout,
    /// The run was cancelled.
    Cancelled,
    /// The user said something new instead of answering.
    Superseded,
    /// The tool failed.
    ExecutionFailed,
    /// The gateway stopped while it ran: nobody knows whether it happened.
    Interrupted,
    /// Whoever runs it is not there.
    Unavailable,
    /// The output does not fit the tool's output schema.
    InvalidOutput,
}

impl ErrorCode {
    /// As it is written in JSON and in the store.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NotFound => "NOT_FOUND",
            Self::ValidationFailed => "VALIDATION_FAILED",
            Self::PrerequisitesNotMet => "PREREQUISITES_NOT_MET",
            Self::PermissionDenied => "PERMISSION_DENIED",
            Self::LimitExceeded => "LIMIT_EXCEEDED",
            Self::Denied => "DENIED",
            Self::Timeout => "TIMEOUT",
            Self::Cancelled => "CANCELLED",
            Self::Superseded => "SUPERSEDED",
            Self::ExecutionFailed => "EXECUTION_FAILED",
            Self::Interrupted => "INTERRUPTED",
            Self::Unavailable => "UNAVAILABLE",
            Self::InvalidOutput => "INVALID_OUTPUT",
        }
    }
    /// The code that `text` names.
    pub fn parse(text: &str) -> Option<Self> {
        use ErrorCode::*;
        [
            NotFound,
            ValidationFailed,
            PrerequisitesNotMet,
            PermissionDenied,
            LimitExceeded,
            Denied,
            Timeout,
            Cancelled,
            Superseded,
            ExecutionFailed,
            Interrupted,
            Unavailable,
            InvalidOutput,
        ]
        .into_iter()
        .find(|code| code.as_str() == text)
    }
}
