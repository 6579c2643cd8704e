//! The document: everything that a package may hold, read once, all problems at once.

mod read;

use std::collections::BTreeMap;
use std::sync::Arc;

use semver::{Version, VersionReq};
use serde_json::{Map, Value};
use toolgate_kernel::name::ToolName;
use toolgate_kernel::problem::Problem;

use crate::canonical;
use crate::hash::{ContentHash, PackageHash};
use crate::id::{CuratorId, KeyId, PluginId};
use crate::permission::Permissions;
use crate::strict_json;

/// Largest document.
pub const DOCUMENT_BYTES_MAX: usize = 1 << 20;
/// Most tools of one package.
pub const TOOLS_MAX: usize = 64;
/// Most bytes of one tool's code.
pub const CODE_BYTES_MAX: usize = 256 << 10;
/// Most other plugins that one depends on.
pub const DEPENDENCIES_MAX: usize = 32;

/// Members that the package hash leaves out: the signatures themselves, and where a copy was found.
pub const UNSIGNED_MEMBERS: [&str; 5] = [
    "packageHash",
    "signature",
    "packageSignature",
    "sourceUrl",
    "installedAt",
];

/// A document that was read and found valid. Whether its signatures hold is for [`crate::verify()`] to say.
#[derive(Debug, Clone)]
pub struct Package {
    id: PluginId,
    name: String,
    version: Version,
    description: Option<String>,
    tools: Vec<PackageTool>,
    permissions: Permissions,
    dependencies: BTreeMap<PluginId, VersionReq>,
    engine: Option<VersionReq>,
    source_url: Option<String>,
    pub(crate) claims: Claims,
    content_hash: ContentHash,
    hash: PackageHash,
    document: Value,
}

/// One tool of a package.
#[derive(Debug, Clone)]
pub struct PackageTool {
    /// What the model calls it.
    pub name: ToolName,
    /// The definition as it is written, without `executorCode`.
    pub definition: Value,
    /// The body of the function that runs it.
    pub executor_code: Arc<str>,
}

/// What a document says of its own hashes and signatures. Nothing of it is believed before it was verified.
#[derive(Debug, Clone, Default)]
pub(crate) struct Claims {
    pub content_hash: Option<ContentHash>,
    pub package_hash: Option<PackageHash>,
    pub signature: Option<Vec<u8>>,
    pub package_signature: Option<Vec<u8>>,
    pub curator: Option<CuratorId>,
    pub key: Option<KeyId>,
}

impl Package {
    /// Reads a document. Gives all problems, each with its JSON pointer.
    pub fn parse(bytes: &[u8]) -> Result<Self, Vec<Problem>> {
        if bytes.len() > DOCUMENT_BYTES_MAX {
            return Err(vec![too_large(bytes.len())]);
        }
        read::package(strict_json::parse(bytes)?)
    }

    /// Reads a document that was parsed already, by someone who knows that no member occurs twice.
    pub fn from_value(document: Value) -> Result<Self, Vec<Problem>> {
        let bytes = canonical::canonical(&document)?.len();
        if bytes > DOCUMENT_BYTES_MAX {
            return Err(vec![too_large(bytes)]);
        }
        read::package(document)
    }

    /// The plugin's id.
    pub fn id(&self) -> &PluginId {
        &self.id
    }
    /// Name for people.
    pub fn name(&self) -> &str {
        &self.name
    }
    /// The version.
    pub fn version(&self) -> &Version {
        &self.version
    }
    /// What it is for, in the author's words.
    pub fn description(&self) -> Option<&str> {
        self.description.as_deref()
    }
    /// The tools, in the order they are written; never empty.
    pub fn tools(&self) -> &[PackageTool] {
        &self.tools
    }
    /// What its code asks the sandbox for.
    pub fn permissions(&self) -> &Permissions {
        &self.permissions
    }
    /// Other plugins that it needs, each with a version range.
    pub fn dependencies(&self) -> &BTreeMap<PluginId, VersionReq> {
        &self.dependencies
    }
    /// Gateway versions that it works with; any, if there is none.
    pub fn engine(&self) -> Option<&VersionReq> {
        self.engine.as_ref()
    }
    /// Where the document says it can be fetched from. No signature covers it.
    pub fn source_url(&self) -> Option<&str> {
        self.source_url.as_deref()
    }
    /// Who the document says has signed it. Not verified.
    pub fn claimed_curator(&self) -> Option<&CuratorId> {
        self.claims.curator.as_ref()
    }
    /// Hash of the tools alone, computed.
    pub fn content_hash(&self) -> ContentHash {
        self.content_hash
    }
    /// Hash of the whole document without its signatures, computed: the content address.
    pub fn hash(&self) -> PackageHash {
        self.hash
    }
    /// The document as it was written, without `installedAt`.
    pub fn document(&self) -> &Value {
        &self.document
    }
}

/// The content hash of a `tools` value whose numbers were checked.
pub(crate) fn content_hash(tools: &Value) -> ContentHash {
    ContentHash::of(canonical::text(tools).as_bytes())
}

/// The package hash of a document whose numbers were checked.
pub(crate) fn package_hash(document: &Map<String, Value>) -> PackageHash {
    let covered: Map<String, Value> = document
        .iter()
        .filter(|(name, _)| !UNSIGNED_MEMBERS.contains(&name.as_str()))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    PackageHash::of(canonical::text(&Value::Object(covered)).as_bytes())
}

fn too_large(bytes: usize) -> Problem {
    let words = format!("the package has {bytes} bytes; at most {DOCUMENT_BYTES_MAX} are allowed");
    Problem::new("", words)
}
