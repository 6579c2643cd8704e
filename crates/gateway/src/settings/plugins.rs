//! Which plugins may run, and how much they may take.

use std::time::Duration;

use serde::Deserialize;
use toolgate_egress::AllowList;
use toolgate_kernel::agent::Secret;
use toolgate_plugins::{PluginLimits, PluginSettings};

use super::{Settings, text};

/// Plugins of a project.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Plugins {
    /// Which plugins may run.
    pub mode: Mode,
    /// Who may add curators.
    pub curators: CuratorsOf,
    /// In production mode, also run packages whose signature covers their tools only and that ask for no permission.
    pub tools_only_signatures: bool,
    /// Most installed plugins.
    pub installed_max: usize,
    /// Most stored packages, old versions included.
    pub packages_max: usize,
    /// Most bytes of stored packages.
    pub bytes_max: u64,
    /// Most bytes in the key-value storage of one plugin.
    pub storage_bytes_max: usize,
    /// Longest call of a plugin's tool.
    #[serde(deserialize_with = "text::duration")]
    pub call_timeout: Duration,
    /// The key with which the project signs.
    pub signing: Signing,
}

/// Which plugins may run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Only those that a curator of the project has signed.
    Production,
    /// Unsigned ones too.
    Development,
}

/// Who may add curators.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CuratorsOf {
    /// The project's secret keys, and the operator.
    Project,
    /// The operator alone.
    Operator,
}

/// The key with which a project signs plugins.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Signing {
    /// Id of the curator that signs; nobody does without one.
    #[serde(deserialize_with = "text::optional")]
    pub curator: Option<String>,
    /// Id of the curator's key.
    #[serde(deserialize_with = "text::optional")]
    pub key_id: Option<String>,
    /// Name of the secret that holds the private key; no tool can send that secret.
    #[serde(deserialize_with = "text::optional")]
    pub secret: Option<String>,
    /// The private key, once the settings of a project were put together: then no tool finds it among the secrets.
    #[serde(skip)]
    pub private_key: Option<Secret>,
    /// Ids of the API keys that may have something signed.
    pub keys: Vec<String>,
}

impl Default for Plugins {
    fn default() -> Self {
        let PluginLimits {
            installed,
            packages,
            bytes,
            storage_bytes,
            call,
        } = PluginLimits::default();
        Self {
            mode: Mode::Production,
            curators: CuratorsOf::Project,
            tools_only_signatures: false,
            installed_max: installed,
            packages_max: packages,
            bytes_max: bytes,
            storage_bytes_max: storage_bytes,
            call_timeout: call,
            signing: Signing::default(),
        }
    }
}

impl Settings {
    /// As the plugins take it, with what tools may reach.
    pub fn plugin_settings(&self, allow: AllowList) -> PluginSettings {
        let plugins = &self.plugins;
        let signing = plugins
            .signing
            .curator
            .clone()
            .map(|curator| toolgate_plugins::Signing {
                curator,
                key: plugins.signing.key_id.clone(),
                private_key: plugins.signing.private_key.clone(),
                allowed: plugins.signing.keys.clone(),
            });
        PluginSettings {
            mode: match plugins.mode {
                Mode::Production => toolgate_plugins::Mode::Production,
                Mode::Development => toolgate_plugins::Mode::Development,
            },
            curators: match plugins.curators {
                CuratorsOf::Project => toolgate_plugins::CuratorsOf::Project,
                CuratorsOf::Operator => toolgate_plugins::CuratorsOf::Operator,
            },
            tools_only_signatures: plugins.tools_only_signatures,
            limits: PluginLimits {
                installed: plugins.installed_max,
                packages: plugins.packages_max,
                bytes: plugins.bytes_max,
                storage_bytes: plugins.storage_bytes_max,
                call: plugins.call_timeout,
            },
            allow,
            signing,
        }
    }
}
