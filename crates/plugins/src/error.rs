//! Why something was not done with a plugin.

use toolgate_egress::EgressError;
use toolgate_engine::store::StoreError;
use toolgate_engine::tool_names::NamesUnknown;
use toolgate_kernel::problem::Problem;

/// Why something was not done. Nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum PluginError {
    /// The document is not a package.
    #[error("the document is not a valid package")]
    Invalid(Vec<Problem>),
    /// It is one, but these things stand against the change.
    #[error("the change is refused")]
    Refused(Vec<Refused>),
    /// There is no such plugin, package, curator or key.
    #[error("there is no {0}")]
    Missing(String),
    /// The package could not be fetched.
    #[error("the package could not be fetched: {0}")]
    Fetch(#[from] EgressError),
    /// What was fetched is another package.
    #[error("the package at sourceUrl has the hash {found}, expected {expected}")]
    OtherPackage {
        /// Hash of what was fetched.
        found: String,
        /// Hash that was asked for.
        expected: String,
    },
    /// The project does not sign, or not for this key.
    #[error("{0}")]
    CannotSign(String),
    /// Whether the names of its tools are free is not known.
    #[error(transparent)]
    NamesUnknown(NamesUnknown),
    /// The store did not do it.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<NamesUnknown> for PluginError {
    fn from(unknown: NamesUnknown) -> Self {
        match unknown {
            NamesUnknown::Store(error) => error.into(),
            unknown @ NamesUnknown::Source { .. } => Self::NamesUnknown(unknown),
        }
    }
}

/// One thing that stands against a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    /// Kind of the reason, for programs.
    pub reason: Reason,
    /// The reason in words, with its place in the document.
    pub problem: Problem,
}

/// Kinds of reasons against a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// Its signature does not hold, or there is none where one is needed.
    NotVerified,
    /// It, its signer or its key was revoked.
    Revoked,
    /// It needs another version of the gateway.
    Engine,
    /// A plugin that it needs is missing, or it is needed by one.
    Dependency,
    /// A name that it uses is taken.
    NameConflict,
    /// A limit of the project would be exceeded.
    LimitExceeded,
}

impl Reason {
    /// As it is written in answers.
    pub fn code(self) -> &'static str {
        match self {
            Self::NotVerified => "NOT_VERIFIED",
            Self::Revoked => "REVOKED",
            Self::Engine => "ENGINE_MISMATCH",
            Self::Dependency => "DEPENDENCY",
            Self::NameConflict => "NAME_CONFLICT",
            Self::LimitExceeded => "LIMIT_EXCEEDED",
        }
    }

    /// A refusal for this reason.
    pub(crate) fn at(self, pointer: impl Into<String>, words: impl Into<String>) -> Refused {
        Refused {
            reason: self,
            problem: Problem::new(pointer, words),
        }
    }
}
