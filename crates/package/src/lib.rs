//! Plugin packages: one JSON document with tools and their code, hashed, signed and checked.
//!
//! Start with [`Package::parse`] (what a document may be), then [`canonical`] (what is hashed), then [`sign()`] and
//! [`verify()`] (who vouches for it), then [`audit()`] (what a reviewer should look at). No engine, no IO, no clock: code is
//! never run here, not even parsed; the sandbox does that.

pub mod audit;
pub mod canonical;
pub mod curator;
pub mod document;
pub mod hash;
pub mod id;
pub mod key;
pub mod permission;
pub mod sign;
pub mod strict_json;
pub mod verify;

pub use audit::{Audit, audit};
pub use curator::{CuratorKey, CuratorKeys};
pub use document::{Package, PackageTool};
pub use hash::{ContentHash, PackageHash};
pub use id::{CuratorId, KeyId, PluginId};
pub use key::{Algorithm, PublicKey, SigningKey};
pub use permission::{HostPattern, Permissions};
pub use semver::{Version, VersionReq};
pub use sign::{SignError, sign};
pub use verify::{Rejection, Verification, verify};

/// The published JSON Schema of a package, version 1.
pub const SCHEMA: &str = include_str!("../plugin.schema.json");
