//! What is stored of the plugins of a project.
//!
//! One record set (owner: the project, kind: `plugin`) holds
//! - `index`: curators, installed plugins and what there is to know of each stored package,
//! - `package:<hash>`: a package as it was signed,
//! - `data:<number>`: the key-value storage of one installation.
//!
//! Every change expects the version of `index` that it has read, so changes are made one after the other, on whichever
//! node.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use toolgate_engine::record_index::ReadIndex;
use toolgate_engine::records::{Owner, Record, RecordSet};
use toolgate_engine::store::StoreError;
use toolgate_kernel::id::ProjectId;
use toolgate_kernel::time::Time;

/// An index as it was read.
pub(crate) type Read = ReadIndex<Index>;

/// Kind of the records.
const KIND: &str = "plugin";

/// Records of a project's plugins.
pub(crate) fn record_set(project: ProjectId) -> RecordSet {
    RecordSet {
        project,
        owner: Owner::Project,
        kind: KIND,
    }
}

/// The index, from its record.
pub(crate) fn read(record: Option<Record>) -> Result<Read, StoreError> {
    ReadIndex::of(record, "plugins")
}

/// Id of the record that holds a package.
pub(crate) fn package_id(hash: &str) -> String {
    format!("package:{hash}")
}

/// Everything that is known of a project's plugins but the packages themselves.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Index {
    /// Who may sign, by id.
    pub curators: BTreeMap<String, Curator>,
    /// Installed plugins, by id.
    pub plugins: BTreeMap<String, Installed>,
    /// Stored packages, by hash; also versions that are not current, and those of removed plugins.
    pub packages: BTreeMap<String, Stored>,
    /// Packages that must not run, by hash; stays when a package is purged.
    pub revoked: BTreeMap<String, Revocation>,
    /// Content hashes of revoked packages: without a signature over all of it, a package is known by its tools alone.
    pub revoked_contents: BTreeMap<String, Revocation>,
    /// Installations so far: gives each its own storage.
    pub installations: u64,
}

/// An installed plugin.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Installed {
    /// Hash of the package whose tools are offered.
    pub current: String,
    /// Hashes of the packages before it, oldest first: what a rollback goes back to.
    #[serde(default)]
    pub history: Vec<String>,
    /// Id of the record with its key-value storage.
    pub data: String,
    /// Time at which the plugin was installed.
    pub installed_at: Time,
    /// Time at which its current package was chosen.
    pub updated_at: Time,
}

/// What there is to know of a stored package.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Stored {
    /// Id of the plugin.
    pub plugin: String,
    /// Name of the plugin, for people.
    pub name: String,
    /// Version of the package.
    pub version: String,
    /// Bytes of the document.
    pub bytes: u64,
    /// Names of its tools.
    pub tools: Vec<String>,
    /// Permissions that it asks for, as it writes them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub permissions: Vec<String>,
    /// Version ranges of the plugins that it needs, by id.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub dependencies: BTreeMap<String, String>,
    /// Range of gateway versions that it needs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub engine: Option<String>,
    /// Hash of its tools.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content_hash: Option<String>,
    /// What its signature was found to be when it was stored.
    pub signed: Signed,
    /// SHA-256 of the document as it is stored, signatures included; none for one of before it was kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub document_hash: Option<String>,
    /// Address that it was fetched from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_url: Option<String>,
    /// Time at which it was stored.
    pub added_at: Time,
}

/// What the signature of a package was found to be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "state")]
pub enum Signed {
    /// There is none.
    Unsigned,
    /// It covers the tools, but not the permissions, the version and the id.
    ToolsOnly {
        /// Curator that signed.
        curator: String,
        /// Id of the curator's key.
        key: String,
    },
    /// It covers the whole package.
    Verified {
        /// Curator that signed.
        curator: String,
        /// Id of the curator's key.
        key: String,
    },
}

impl Signed {
    /// Curator and key of the signature.
    pub fn by(&self) -> Option<(&str, &str)> {
        match self {
            Self::Unsigned => None,
            Self::ToolsOnly { curator, key } | Self::Verified { curator, key } => Some((curator, key)),
        }
    }
}

/// Somebody who may sign plugins for a project.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Curator {
    /// Name of the curator, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Public keys, by id.
    #[serde(default)]
    pub keys: BTreeMap<String, Key>,
    /// Keys that were revoked long ago, by id: of each what is needed so that it never counts again.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub retired: BTreeMap<String, Retired>,
    /// Time at which the curator was added.
    pub added_at: Time,
    /// Set when nothing that the curator has signed may run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revoked: Option<Revocation>,
}

/// A public key of a curator. Its text never changes: a new key has a new id.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Key {
    /// The public key: SubjectPublicKeyInfo in PEM.
    pub public_key: String,
    /// Algorithm of its signatures.
    pub algorithm: String,
    /// Time before which it verifies nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_before: Option<Time>,
    /// Time from which nothing more is installed by it. What was installed before goes on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<Time>,
    /// Time at which it was added.
    pub added_at: Time,
    /// Set when nothing that it has signed may run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revoked: Option<Revocation>,
}

/// A key that was revoked long ago.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Retired {
    /// SHA-256 of its PEM text.
    pub key_hash: String,
    /// Time of the revocation.
    pub time: Time,
}

/// That something must not run any more.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Revocation {
    /// Time of the revocation.
    pub time: Time,
    /// Why, in the operator's words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl Index {
    /// Packages of one plugin, by hash.
    pub fn versions<'i>(&'i self, plugin: &'i str) -> impl Iterator<Item = (&'i String, &'i Stored)> {
        self.packages
            .iter()
            .filter(move |(_, package)| package.plugin == plugin)
    }
    /// The current package of an installed plugin, with its hash.
    pub fn current(&self, plugin: &str) -> Option<(&str, &Stored)> {
        let hash = &self.plugins.get(plugin)?.current;
        Some((hash, self.packages.get(hash)?))
    }
    /// Hash of the package whose stored document, signatures included, has this hash.
    pub fn package_of_document(&self, document_hash: &str) -> Option<&str> {
        let same = |package: &Stored| package.document_hash.as_deref() == Some(document_hash);
        let found = self.packages.iter().find(|(_, package)| same(package));
        found.map(|(hash, _)| hash.as_str())
    }
    /// Bytes of the stored packages.
    pub fn bytes(&self) -> u64 {
        self.packages.values().map(|package| package.bytes).sum()
    }
}
