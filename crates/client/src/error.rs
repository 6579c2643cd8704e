//! Errors, each with a stable code.

use std::fmt;

use serde::Deserialize;
use serde_json::Value;

use crate::plugin::BoxError;

/// Why a request or a registration failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The gateway rejected the request.
    #[error("{0}")]
    Refused(Box<Problem>),
    /// The gateway did not answer.
    #[error("the gateway at {url} cannot be reached")]
    Unreachable {
        /// The gateway's URL.
        url: String,
        /// The cause.
        #[source]
        cause: BoxError,
    },
    /// The gateway's answer cannot be parsed by this version of the SDK.
    #[error("the gateway's answer cannot be read: {0}")]
    Protocol(String),
    /// The client was built, or called, with an invalid value.
    #[error("{0}")]
    Setup(String),
    /// A plugin or one of its hooks failed.
    #[error(transparent)]
    Plugin(#[from] PluginError),
}

impl Error {
    /// The error's code, which is stable: the gateway's own code if it answered.
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

    /// All problems of the request, each with its JSON pointer.
    pub fn faults(&self) -> &[Fault] {
        match self {
            Self::Refused(problem) => &problem.errors,
            Self::Plugin(PluginError::BadTools { faults, .. }) => faults,
            _ => &[],
        }
    }

    /// Whether nothing was done and a retry may succeed.
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::Unreachable { .. } => true,
            // A budget begins anew at midnight or with the next month: nobody waits that long in a request.
            Self::Refused(problem) => {
                matches!(problem.status, 408 | 429 | 502..=504) && problem.code != "BUDGET_EXCEEDED"
            }
            Self::Protocol(_) | Self::Setup(_) | Self::Plugin(_) => false,
        }
    }
}

impl Error {
    /// Whether the gateway may accept the same request later: it is away, overloaded or failing.
    pub(crate) fn is_passing(&self) -> bool {
        self.is_retryable() || self.status().is_some_and(|status| status >= 500)
    }
}

/// An error response of the gateway (RFC 9457).
#[derive(Debug, Clone, Deserialize)]
pub struct Problem {
    /// The HTTP status.
    pub status: u16,
    /// The error code, such as `NOT_FOUND`.
    pub code: String,
    /// The error message.
    pub detail: String,
    /// All problems of the request.
    #[serde(default)]
    pub errors: Vec<Fault>,
    /// On a conflict: the winning receipt.
    #[serde(default)]
    pub winner: Option<Value>,
    /// On a conflict: the client that holds the lease, and until when.
    #[serde(default)]
    pub claim: Option<Value>,
    /// How long to wait before a retry, from `Retry-After`.
    #[serde(skip)]
    pub retry_after: Option<std::time::Duration>,
}

impl fmt::Display for Problem {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} ({})", self.detail, self.code)?;
        write_faults(out, &self.errors)
    }
}

/// One problem of a request.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Fault {
    /// JSON pointer to the invalid value.
    pub pointer: String,
    /// What was seen and what would have been right.
    pub message: String,
}

fn write_faults(out: &mut fmt::Formatter<'_>, faults: &[Fault]) -> fmt::Result {
    faults
        .iter()
        .try_for_each(|fault| write!(out, "\n  {}: {}", fault.pointer, fault.message))
}

/// Why a plugin was not registered or not removed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PluginError {
    /// The plugin has no name.
    #[error("a plugin needs a name")]
    Unnamed,
    /// The plugin has no version.
    #[error("the plugin {0:?} needs a version")]
    Unversioned(String),
    /// Another plugin has the same name.
    #[error("a plugin named {0:?} is already registered")]
    Registered(String),
    /// No plugin has this name.
    #[error("there is no plugin named {0:?}")]
    Unknown(String),
    /// Definitions that the gateway would reject.
    #[error("the tools of the plugin {plugin:?} are invalid{}", Listed(faults))]
    BadTools {
        /// The plugin's name.
        plugin: String,
        /// All problems of its definitions.
        faults: Vec<Fault>,
    },
    /// Another plugin has a tool of this name.
    #[error("the tool {tool:?} of the plugin {plugin:?} is already registered by {holder:?}")]
    Conflict {
        /// The tool's name.
        tool: String,
        /// The plugin that was being registered.
        plugin: String,
        /// The plugin that already has the tool.
        holder: String,
    },
    /// An executor for a tool that the plugin does not define.
    #[error("the plugin {plugin:?} has an executor for {tool:?}, which is not one of its tools")]
    Orphan {
        /// The tool name of the executor.
        tool: String,
        /// The plugin's name.
        plugin: String,
    },
    /// A tool that nothing of the plugin executes: each of its calls would fail.
    #[error(
        "the plugin {plugin:?} has no executor for {tool:?}, expected one of the tool or of the plugin, or hooks"
    )]
    Unexecuted {
        /// The tool's name.
        tool: String,
        /// The plugin's name.
        plugin: String,
    },
    /// A hook returned an error.
    #[error("{hook} of the plugin {plugin:?} failed")]
    Hook {
        /// The hook's name, such as `on_register`.
        hook: &'static str,
        /// The plugin's name.
        plugin: String,
        /// The hook's error.
        #[source]
        cause: BoxError,
    },
}

impl PluginError {
    fn code(&self) -> &'static str {
        match self {
            Self::Unnamed
            | Self::Unversioned(_)
            | Self::BadTools { .. }
            | Self::Orphan { .. }
            | Self::Unexecuted { .. } => "PLUGIN_INVALID",
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
