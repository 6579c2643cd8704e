//! The installed plugins of a project: who may sign them, which versions are stored, what they depend on, and the source
//! of their tools (`executionType: plugin`).
//!
//! Start with [`Plugins`]: everything an operator does. `index` is what is stored, `trust` says whether a package may
//! run, `plan` finds what stands against a change before anything changes. [`PluginSource`] offers the tools to agents
//! and runs their calls in the sandbox.
//!
//! A change is one amendment of one record set, so a crash leaves all of it or nothing. A package never changes: it is
//! stored under its hash, and a run that has pinned it goes on with it until it is revoked or purged. Nothing here parses
//! or checks signatures (`toolgate-package`), or runs code (`toolgate-sandbox`).

mod cache;
mod curators;
mod error;
mod host;
mod index;
mod plan;
mod plugins;
mod review;
mod revoke;
mod settings;
mod signing;
mod source;
mod storage;
mod trust;
mod versions;

pub use curators::{NewCurator, NewKey};
pub use error::{PluginError, Reason, Refused};
pub use index::{Curator, Index, Installed, Key, Retired, Revocation, Signed, Stored};
pub use plugins::{Candidate, Install, Plugins, PluginsParts, RollBack, Signature, StoredDocument};
pub use review::{Action, MemberChange, PermissionWords, Review, ToolChanges, permission_words};
pub use revoke::Revoke;
pub use settings::{CuratorsOf, Mode, PluginLimits, PluginResolver, PluginSettings, Signing};
pub use source::{PinnedTool, PluginSource, SOURCE};
pub use trust::{Stopped, Trust};
