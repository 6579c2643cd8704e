//! Where notifications go besides the space.

use serde::Deserialize;
use toolgate_kernel::agent::Secret;
use toolgate_tools::notify::Webhook;

use super::text;

/// Where notifications go besides the space.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Notifications {
    /// An address that is posted to.
    #[serde(deserialize_with = "text::optional")]
    pub webhook_url: Option<String>,
    /// Signs what is posted.
    #[serde(deserialize_with = "text::secret")]
    pub webhook_secret: Option<Secret>,
}

impl Notifications {
    /// The webhook, when there is one.
    pub fn webhook(&self) -> anyhow::Result<Option<Webhook>> {
        let url = text::address("notifications.webhook_url", &self.webhook_url)?;
        Ok(url.map(|url| Webhook {
            url,
            secret: self.webhook_secret.clone(),
        }))
    }
}
