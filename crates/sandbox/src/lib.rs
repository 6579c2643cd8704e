//! Code that others wrote: JavaScript function bodies of plugins and of `compute` tools, each call in a fresh realm in a
//! confined child process of the gateway.
//!
//! [`Sandbox::run`] is the way in: it takes a [`Job`] and a [`Host`], which is all that the code can reach. What the
//! worker says is untrusted: it is parsed strictly, counted, and bounded (`wire`, `session`). The worker's side is [`work`].
//!
//! Nothing here knows what a plugin is. Start with `job`, then `sandbox`.

mod compute;
mod fetch;
mod host;
mod job;
mod sandbox;
mod session;
mod syntax;
mod wire;
mod work;

pub use compute::Compute;
pub use fetch::GuardedFetch;
pub use host::{FetchRequest, FetchResponse, Host, LogLevel, NoHost, StorageOp, one_line};
pub use job::{CODE_BYTES_MAX, FailureKind, Job, JobLimits, ScriptFailure};
pub use sandbox::{Sandbox, SandboxOptions};
pub use syntax::SyntaxChecker;
pub use toolgate_worker::{Protection, Seal};
pub use work::{RUN_SCRIPT, work, work_with_probe};

#[doc(hidden)]
pub use wire::{Said, Wish};
