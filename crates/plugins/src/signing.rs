//! Signs packages with the key of a project.

use toolgate_package::SigningKey;
use toolgate_package::id::BadId;

use crate::error::PluginError;
use crate::plugins::{Candidate, Signature};
use crate::settings::Signing;

impl Signing {
    /// Signs a package. Takes some milliseconds with an RSA key.
    pub(crate) fn sign(&self, candidate: Candidate) -> Result<Signature, PluginError> {
        let private_key = self.private_key.as_ref().map_or("", |key| key.expose());
        let private_key = SigningKey::from_pem(private_key).map_err(unusable)?;
        let curator = self.curator.parse().map_err(|bad: BadId| unusable(bad))?;
        let id = self.key.as_deref().map(str::parse).transpose();
        let id = id.map_err(|bad: BadId| unusable(bad))?;
        let document = candidate.package.document().clone();
        let document = toolgate_package::sign(document, &private_key, &curator, id.as_ref());
        Ok(Signature {
            document: document.map_err(|error| PluginError::Invalid(error.0))?,
            audit: candidate.audit,
        })
    }
}

/// The settings are wrong: whoever asks for a signature cannot help it, and learns nothing of the key.
fn unusable(error: impl std::fmt::Display) -> PluginError {
    tracing::warn!(%error, "plugins.signing in the settings of a project cannot be used");
    PluginError::CannotSign("the project's signing key cannot be used; see the log".into())
}
