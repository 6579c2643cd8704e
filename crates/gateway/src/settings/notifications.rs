//! Where notifications go besides the space.

use anyhow::{Context, bail};
use serde::Deserialize;
use toolgate_kernel::agent::Secret;
use toolgate_tools::notify::{Channels, Mail, MailSettings, Security, Webhook};

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
    /// A server that mail is handed to.
    pub smtp: Smtp,
}

/// A server that mail is handed to; there is no mail when no host is set.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Smtp {
    /// The server.
    #[serde(deserialize_with = "text::optional")]
    pub host: Option<String>,
    /// Its port; 0 for the usual one.
    pub port: u16,
    /// Encryption of the connection.
    pub security: Security,
    /// User name at the mail server.
    #[serde(deserialize_with = "text::optional")]
    pub user: Option<String>,
    /// With what.
    #[serde(deserialize_with = "text::secret")]
    pub password: Option<Secret>,
    /// Sender address.
    pub from: String,
    /// Recipients.
    pub to: Vec<String>,
}

impl Notifications {
    /// The channels that are configured.
    pub fn channels(&self) -> anyhow::Result<Channels> {
        let url = text::address("notifications.webhook_url", &self.webhook_url)?;
        let webhook = url.map(|url| Webhook {
            url,
            secret: self.webhook_secret.clone(),
        });
        if self.smtp.user.is_some() != self.smtp.password.is_some() {
            bail!("the settings in [notifications.smtp]: user and password go together");
        }
        let mail = self.smtp.settings().map(Mail::new).transpose();
        Ok(Channels {
            webhook,
            mail: mail.context("the settings in [notifications.smtp]")?,
        })
    }
}

impl Smtp {
    fn settings(&self) -> Option<MailSettings> {
        Some(MailSettings {
            host: self.host.clone()?,
            port: (self.port != 0).then_some(self.port),
            security: self.security,
            login: self.user.clone().zip(self.password.clone()),
            from: self.from.clone(),
            to: self.to.clone(),
        })
    }
}
