//! Whether a stored package may run. Asked before each call and while it runs, so that a revocation counts at once.

use serde::{Deserialize, Serialize};
use toolgate_engine::tools::CallFailure;

use crate::index::{Index, Signed, Stored};
use crate::settings::{Mode, PluginSettings};

/// How far a package that may run is trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Trust {
    /// A curator of the project has signed all of it.
    Verified,
    /// A curator of the project has signed its tools.
    ToolsOnly,
    /// Nobody has signed it: only in development mode.
    Unsigned,
}

/// Why a package may not run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stopped {
    /// It is not stored, or no longer.
    Gone,
    /// It, its signer or its key was revoked; the words say which.
    Revoked(String),
    /// The project runs in production mode, and it is not signed well enough.
    NotVerified(String),
}

impl Stopped {
    /// In words, for people.
    pub fn words(&self) -> &str {
        match self {
            Self::Gone => "its package is no longer stored",
            Self::Revoked(words) | Self::NotVerified(words) => words,
        }
    }

    /// For the model, before a call.
    pub(crate) fn not_called(&self) -> CallFailure {
        match self {
            Self::Gone => CallFailure::removed(),
            Self::Revoked(words) | Self::NotVerified(words) => CallFailure::unavailable(format!(
                "{words}, and the call was not made; go on without this tool"
            )),
        }
    }
}

impl Index {
    /// Whether a package may run as things are now.
    pub fn trust(&self, hash: &str, settings: &PluginSettings) -> Result<Trust, Stopped> {
        let package = self.packages.get(hash);
        if self.is_revoked(hash, package) {
            return Err(revoked("this version of the plugin"));
        }
        let package = package.ok_or(Stopped::Gone)?;
        if let Some((curator, key)) = package.signed.by() {
            self.signer(curator, key)?;
        }
        trust_of(&package.signed, &package.permissions, settings).map_err(Stopped::NotVerified)
    }

    /// Whether a package was revoked: itself, or its tools where nobody has signed that they are those of another version.
    pub(crate) fn is_revoked(&self, hash: &str, package: Option<&Stored>) -> bool {
        let by_tools = |package: &Stored| match (&package.signed, &package.content_hash) {
            (Signed::Verified { .. }, _) | (_, None) => false,
            (Signed::ToolsOnly { .. } | Signed::Unsigned, Some(content)) => {
                self.revoked_contents.contains_key(content)
            }
        };
        self.revoked.contains_key(hash) || package.is_some_and(by_tools)
    }

    /// Whether this package is stored with a signature over all of it that still counts.
    pub(crate) fn holds_verified(&self, hash: &str) -> bool {
        let Some(Signed::Verified { curator, key }) = self.packages.get(hash).map(|package| &package.signed)
        else {
            return false;
        };
        self.signer(curator, key).is_ok()
    }

    /// Whether what this key of this curator has signed may run.
    fn signer(&self, curator: &str, key: &str) -> Result<(), Stopped> {
        let untrusted = || {
            Stopped::Revoked(format!(
                "the curator {curator:?} that signed it is no longer trusted"
            ))
        };
        let known = self.curators.get(curator).ok_or_else(untrusted)?;
        if known.revoked.is_some() {
            return Err(revoked(&format!("the curator {curator:?} that signed it")));
        }
        let is_revoked = known.keys.get(key).map(|key| key.revoked.is_some());
        let is_retired = known.retired.contains_key(key).then_some(true);
        match is_revoked.or(is_retired).ok_or_else(untrusted)? {
            true => Err(revoked(&format!(
                "the key {key:?} of the curator {curator:?} that signed it"
            ))),
            false => Ok(()),
        }
    }

    /// The current package of an installed plugin and how far it is trusted, or why it may not run.
    pub fn running(
        &self,
        plugin: &str,
        settings: &PluginSettings,
    ) -> Result<(&str, &Stored, Trust), Stopped> {
        let (hash, package) = self.current(plugin).ok_or(Stopped::Gone)?;
        Ok((hash, package, self.trust(hash, settings)?))
    }
}

/// How far a signature is trusted by a project with these settings; the error says what is lacking.
pub(crate) fn trust_of(
    signed: &Signed,
    permissions: &[String],
    settings: &PluginSettings,
) -> Result<Trust, String> {
    match (signed, settings.mode) {
        (Signed::Verified { .. }, _) => Ok(Trust::Verified),
        (Signed::ToolsOnly { .. }, Mode::Development) => Ok(Trust::ToolsOnly),
        (Signed::ToolsOnly { .. }, Mode::Production) => {
            match settings.tools_only_signatures && permissions.is_empty() {
                true => Ok(Trust::ToolsOnly),
                false => Err("its signature covers its tools only, not its permissions and version; production mode \
                              needs a packageSignature, or the setting plugins.tools_only_signatures for a package \
                              without permissions"
                    .into()),
            }
        }
        (Signed::Unsigned, Mode::Development) => Ok(Trust::Unsigned),
        (Signed::Unsigned, Mode::Production) => Err(
            "it is not signed, and production mode runs signed plugins only; have a curator of the project sign it, or \
             set plugins.mode to \"development\""
                .into(),
        ),
    }
}

/// The operator's reason is left out: these words reach the model.
fn revoked(what: &str) -> Stopped {
    Stopped::Revoked(format!("{what} was revoked"))
}
