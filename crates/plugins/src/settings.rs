//! What a project's settings say of plugins.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use toolgate_egress::AllowList;
use toolgate_engine::store::StoreError;
use toolgate_kernel::agent::Secret;
use toolgate_kernel::id::ProjectId;

/// Which plugins may run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mode {
    /// Only those that a curator of the project has signed.
    #[default]
    Production,
    /// Unsigned ones too, which are marked as such wherever they show.
    Development,
}

/// Who may add curators and their keys. Revoking them is always open to the project too.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CuratorsOf {
    /// The project, with a secret key, and the operator.
    #[default]
    Project,
    /// The operator alone.
    Operator,
}

/// What a project's settings say of plugins.
#[derive(Debug, Clone, Default)]
pub struct PluginSettings {
    /// Which plugins may run.
    pub mode: Mode,
    /// Who may add curators.
    pub curators: CuratorsOf,
    /// In production mode, also run packages whose signature covers their tools only and that ask for no permission.
    pub tools_only_signatures: bool,
    /// Limits of one project.
    pub limits: PluginLimits,
    /// Addresses that plugins may be fetched from, and may reach themselves if their permissions name them, besides the
    /// public internet.
    pub allow: AllowList,
    /// The key with which the project signs; none if it does not.
    pub signing: Option<Signing>,
}

/// Limits on the plugins of one project.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PluginLimits {
    /// Most installed plugins.
    pub installed: usize,
    /// Most stored packages: every version counts, also those of removed plugins until they are purged.
    pub packages: usize,
    /// Most bytes of stored packages.
    pub bytes: u64,
    /// Most bytes that one plugin may keep in its key-value storage.
    pub storage_bytes: usize,
    /// Longest call, whatever the tool's definition says.
    pub call: Duration,
}

impl Default for PluginLimits {
    fn default() -> Self {
        Self {
            installed: 100,
            packages: 300,
            bytes: 64 << 20,
            storage_bytes: 256 << 10,
            call: Duration::from_secs(60),
        }
    }
}

/// The key with which a project signs plugins.
#[derive(Debug, Clone)]
pub struct Signing {
    /// Curator that signs.
    pub curator: String,
    /// Id of the curator's key.
    pub key: Option<String>,
    /// The private key: PKCS#8 in PEM; none if the secret that is to hold it is not set.
    pub private_key: Option<Secret>,
    /// Ids of the API keys that may have something signed.
    pub allowed: Vec<String>,
}

/// Resolves the settings of projects. Asked for every call, so an implementation remembers.
#[async_trait]
pub trait PluginResolver: Send + Sync {
    /// As the project's settings are now.
    async fn plugin_settings(&self, project: ProjectId) -> Result<Arc<PluginSettings>, StoreError>;
}

/// The same for every project.
#[async_trait]
impl PluginResolver for PluginSettings {
    async fn plugin_settings(&self, _: ProjectId) -> Result<Arc<PluginSettings>, StoreError> {
        Ok(Arc::new(self.clone()))
    }
}
