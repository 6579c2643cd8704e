//! What can go wrong, with a stable code for each.

use std::fmt;

use serde::Deserialize;
use serde_json::Value;

use crate::plugin::BoxError;

/// Why something was not done.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The gateway answered and said no.
    #[error("{0}")]
    Refused(Box<Problem>),
    /// The gateway did not answer.
    #[error("cannot reach the gateway at {url}")]
    Unreachable {
        /// Where it should be.
        url: String,
        /// What went wrong.
        #[source]
        cause: BoxError,
    },
    /// The gateway answered something that this version does not understand.
    #[error("the gateway's answer makes no sense: {0}")]
    Protocol(String),
    /// The client was set up with something that cannot work.
    #[error("{0}")]
    Setup(String),
    /// A plugin, or one of its hooks.
    #[error(transparent)]
    Plugin(#[from] PluginError),
}

impl Error {
    /// Stable, for programs: the gateway's own code where it answered.
    pub fn code(&self) -> &str {
        match self {
            Self::Refused(problem) => &problem.code,
            Self::Unreachable { .. } => "UNREACHABLE",
            Self::Protocol(_) => "PROTOCOL",
            Self::Setup(_) => "SETUP",
            Self::Plugin(error) => error.code(),
        }
    }

    /// The HTTP status, where the gateway answered.
    pub fn status(&self) -> Option<u16> {
        match self {
            Self::Refused(problem) => Some(problem.status),
            _ => None,
        }
    }

    /// Everything that is wrong with what was sent, each with its place.
    pub fn faults(&self) -> &[Fault] {
        match self {
            Self::Refused(problem) => &problem.errors,
            Self::Plugin(PluginError::BadTools { faults, .. }) => faults,
            _ => &[],
        }
    }

    /// Nothing was done, and the same may work in a moment.
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::Unreachable { .. } => true,
            Self::Refused(problem) => matches!(problem.status, 408 | 429 | 502..=504),
            Self::Protocol(_) | Self::Setup(_) | Self::Plugin(_) => false,
        }
    }
}

/// What the gateway says when it says no (RFC 9457).
#[derive(Debug, Clone, Deserialize)]
pub struct Problem {
    /// The HTTP status.
    pub status: u16,
    /// What went wrong, for programs.
    pub code: String,
    /// What went wrong, in words.
    pub detail: String,
    /// Everything that is wrong with what was sent.
    #[serde(default)]
    pub errors: Vec<Fault>,
    /// On a conflict: the answer that holds.
    #[serde(default)]
    pub winner: Option<Value>,
    /// On a conflict: who holds the call, and until when.
    #[serde(default)]
    pub claim: Option<Value>,
    /// When to come back.
    #[serde(skip)]
    pub retry_after: Option<std::time::Duration>,
}

impl fmt::Display for Problem {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} ({})", self.detail, self.code)?;
        write_faults(out, &self.errors)
    }
}

/// One thing wrong, and where.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Fault {
    /// JSON pointer to the value at fault.
    pub pointer: String,
    /// What was seen and what would have been right.
    pub message: String,
}

fn write_faults(out: &mut fmt::Formatter<'_>, faults: &[Fault]) -> fmt::Result {
    faults
        .iter()
        .try_for_each(|fault| write!(out, "\n  {}: {}", fault.pointer, fault.message))
}

/// Why a plugin was not taken, or not let go.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PluginError {
    /// It has no name.
    #[error("a plugin needs a name")]
    Unnamed,
    /// It has no version.
    #[error("the plugin {0:?} needs a version")]
    Unversioned(String),
    /// Another one has its name.
    #[error("a plugin named {0:?} is registered already")]
    Registered(String),
    /// There is none of this name.
    #[error("there is no plugin named {0:?}")]
    Unknown(String),
    /// Definitions that the gateway would not take.
    #[error("the tools of the plugin {plugin:?} will not do{}", Listed(faults))]
    BadTools {
        /// Whose.
        plugin: String,
        /// Everything that is wrong with them.
        faults: Vec<Fault>,
    },
    /// A tool's name is taken.
    #[error("the tool {tool:?} of the plugin {plugin:?} is one of {holder:?} already")]
    Conflict {
        /// The name.
        tool: String,
        /// Who wants it.
        plugin: String,
        /// Who has it.
        holder: String,
    },
    /// An executor for a tool that is not defined.
    #[error("the plugin {plugin:?} has an executor for {tool:?}, which is none of its tools")]
    Orphan {
        /// The name it was given for.
        tool: String,
        /// Whose.
        plugin: String,
    },
    /// A hook failed.
    #[error("{hook} of the plugin {plugin:?} failed")]
    Hook {
        /// Which hook.
        hook: &'static str,
        /// Whose.
        plugin: String,
        /// What it said.
        #[source]
        cause: BoxError,
    },
}

impl PluginError {
    fn code(&self) -> &'static str {
        match self {
            Self::Unnamed | Self::Unversioned(_) | Self::BadTools { .. } | Self::Orphan { .. } => {
                "PLUGIN_INVALID"
            }
            Self::Registered(_) | Self::Conflict { .. } => "PLUGIN_CONFLICT",
            Self::Unknown(_) => "PLUGIN_UNKNOWN",
            Self::Hook { .. } => "PLUGIN_HOOK_FAILED",
        }
    }
}

struct Listed<'a>(&'a [Fault]);

impl fmt::Display for Listed<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_faults(out, self.0)
    }
}
