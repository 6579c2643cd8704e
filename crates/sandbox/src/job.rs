//! One call of somebody's code, and why it may give no result.

use std::sync::Arc;
use std::time::Duration;

use toolgate_engine::tools::CallFailure;
use toolgate_fair::Share;
use toolgate_kernel::call::ErrorCode;
use toolgate_kernel::json::Json;

/// Longest code, in bytes.
pub const CODE_BYTES_MAX: usize = 256 << 10;
/// Most memory that a call may be given.
pub(crate) const MEMORY_BYTES_MAX: usize = 128 << 20;
/// Largest result that a call may be given room for.
pub(crate) const OUTPUT_BYTES_MAX: usize = 8 << 20;
/// Most CPU time that a call may be given.
pub(crate) const CPU_MAX: Duration = Duration::from_secs(30);

/// One call of somebody's code.
#[derive(Debug, Clone)]
pub struct Job {
    /// Whose share of the workers it takes.
    pub share: Share,
    /// Whose code it is: a hash of whatever tells owners apart, such as the project and the package. No process ever
    /// works for two owners.
    pub owner: [u8; 32],
    /// A JavaScript function body, which may be asynchronous, with `args`; at most [`CODE_BYTES_MAX`].
    pub code: Arc<str>,
    /// What `args` is.
    pub args: Json,
    /// What it may use.
    pub limits: JobLimits,
}

/// What a call may use. What is more than the sandbox permits is cut to that.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JobLimits {
    /// Time by the clock, from when the worker is given the call, with everything that it waits for.
    pub wall: Duration,
    /// CPU time.
    pub cpu: Duration,
    /// Memory of the code.
    pub memory_bytes: usize,
    /// Largest result, as JSON.
    pub output_bytes: usize,
}

impl Default for JobLimits {
    fn default() -> Self {
        Self {
            wall: Duration::from_secs(30),
            cpu: Duration::from_secs(2),
            memory_bytes: 64 << 20,
            output_bytes: 1 << 20,
        }
    }
}

/// Why a call gave no result, in words for the author of the code.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ScriptFailure {
    /// Why, for programs.
    pub kind: FailureKind,
    /// Why, in words.
    pub message: String,
}

/// Why a call gave no result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FailureKind {
    /// The code threw, or waits for what never comes.
    Threw,
    /// The code is not JavaScript.
    Syntax,
    /// It used up its CPU time or its time by the clock.
    Timeout,
    /// It used up its memory.
    Memory,
    /// Its result is larger than permitted, or is no JSON that the gateway accepts.
    OutputTooLarge,
    /// It broke the rules of the sandbox: too many or too large requests at once.
    Forbidden,
    /// Its process died.
    Crashed,
    /// Too many calls wait already.
    Busy,
    /// No process can be started.
    Unavailable,
}

impl ScriptFailure {
    /// With this kind.
    pub fn new(kind: FailureKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
        }
    }
}

impl From<ScriptFailure> for CallFailure {
    fn from(failure: ScriptFailure) -> Self {
        let code = match failure.kind {
            FailureKind::Threw | FailureKind::Syntax | FailureKind::Crashed => ErrorCode::ExecutionFailed,
            FailureKind::Timeout => ErrorCode::Timeout,
            FailureKind::Memory | FailureKind::OutputTooLarge => ErrorCode::LimitExceeded,
            FailureKind::Forbidden => ErrorCode::PermissionDenied,
            FailureKind::Busy | FailureKind::Unavailable => ErrorCode::Unavailable,
        };
        Self::new(code, failure.message)
    }
}
