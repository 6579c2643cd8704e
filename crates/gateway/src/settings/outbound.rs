//! Outbound network access of tools.

use std::collections::BTreeMap;

use anyhow::{Context, bail};
use serde::Deserialize;
use toolgate_egress::{AllowList, Secrets};
use toolgate_kernel::agent::Secret;
use toolgate_tools::{Manners, OutboundSettings};

use super::{Settings, text};

/// A secret in the environment; `TOOLGATE_SECRET_KEY` is the project's own key and no secret of a tool's.
pub(super) const SECRET_PREFIX: &str = "TOOLGATE_SECRET_";
pub(super) const OWN_KEY: &str = "KEY";

/// Outbound network access of tools.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Outside {
    /// Besides the public internet.
    pub allow: Vec<String>,
    /// Origins that `request` tools may pass the token of the user on to.
    pub user_token: Vec<String>,
    /// Leave pages alone whose owner asks for it.
    pub robots: bool,
}

impl Default for Outside {
    fn default() -> Self {
        Self {
            allow: Vec::new(),
            user_token: Vec::new(),
            robots: true,
        }
    }
}

/// Web search provider.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Search {
    /// Gemini when there is a Google key, otherwise nobody.
    pub engine: SearchEngine,
    /// Where, when not at the vendor's own address.
    #[serde(deserialize_with = "text::optional")]
    pub base_url: Option<String>,
    /// The model that Gemini answers with.
    pub model: String,
}

/// A search engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SearchEngine {
    /// Gemini when there is a Google key.
    Auto,
    /// Nobody.
    None,
    /// Gemini with Google's search.
    Gemini,
    /// A SearXNG server.
    Searxng,
}

impl Default for Search {
    fn default() -> Self {
        Self {
            engine: SearchEngine::Auto,
            base_url: None,
            model: "gemini-3.5-flash".into(),
        }
    }
}

/// Image provider.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Images {
    /// An OpenAI-compatible server.
    #[serde(deserialize_with = "text::optional")]
    pub base_url: Option<String>,
    /// What the server calls the model.
    #[serde(deserialize_with = "text::optional")]
    pub model: Option<String>,
    /// The server's key.
    #[serde(deserialize_with = "text::secret")]
    pub api_key: Option<Secret>,
}

/// An origin: scheme, host and port, nothing else.
fn read_origin(text: &str) -> anyhow::Result<url::Origin> {
    let url: Option<url::Url> = text.parse().ok();
    let url = url.filter(|url| matches!(url.scheme(), "https" | "http") && url.has_host());
    let is_whole = |url: &url::Url| url.path() == "/" && url.query().is_none() && url.username().is_empty();
    match url.filter(is_whole) {
        Some(url) => Ok(url.origin()),
        None => bail!(
            "the setting `outside.user_token` has {text:?}, expected an origin such as \"https://api.example.com\""
        ),
    }
}

impl Settings {
    /// Adds the secrets of tools that stand in the environment; they win over the file's.
    pub fn add_secrets(&mut self, environment: impl Iterator<Item = (String, String)>) {
        let named = environment.filter_map(|(name, text)| {
            let name = name.strip_prefix(SECRET_PREFIX).filter(|name| *name != OWN_KEY)?;
            Some((name.to_owned(), Secret::new(text))).filter(|(_, secret)| !secret.expose().is_empty())
        });
        self.secrets.extend(named);
    }

    /// As the tools take it.
    pub fn outbound_settings(&self) -> anyhow::Result<OutboundSettings> {
        Ok(OutboundSettings {
            allow: AllowList::new(&self.outside.allow).context("the setting `outside.allow`")?,
            user_token: self
                .outside
                .user_token
                .iter()
                .map(|origin| read_origin(origin))
                .collect::<anyhow::Result<_>>()?,
            search: self.search_engine()?,
            images: self.image_server()?,
            manners: match self.outside.robots {
                true => Manners::Polite,
                false => Manners::Blunt,
            },
            secrets: Secrets::new(self.secrets_of_tools()).context("the settings in `secrets`")?,
        })
    }

    /// The secrets but the key that signs plugins: whoever writes a tool could send it away.
    fn secrets_of_tools(&self) -> BTreeMap<String, Secret> {
        let mut secrets = self.secrets.clone();
        if let Some(signing) = &self.plugins.signing.secret {
            secrets.remove(signing);
        }
        secrets
    }

    fn search_engine(&self) -> anyhow::Result<toolgate_tools::Search> {
        let base_url = text::address("search.base_url", &self.search.base_url)?;
        let gemini = |key: &Secret, base_url| toolgate_tools::Search::Gemini {
            key: key.clone(),
            model: self.search.model.clone(),
            base_url,
        };
        Ok(match (self.search.engine, &self.vendors.google_key, base_url) {
            (SearchEngine::None, _, _) | (SearchEngine::Auto, None, _) => toolgate_tools::Search::Nobody,
            (SearchEngine::Auto | SearchEngine::Gemini, Some(key), base_url) => gemini(key, base_url),
            (SearchEngine::Gemini, None, _) => {
                bail!(
                    "the setting `search.engine` is \"gemini\", which needs the setting `vendors.google_key`"
                )
            }
            (SearchEngine::Searxng, _, Some(base_url)) => toolgate_tools::Search::Searxng { base_url },
            (SearchEngine::Searxng, _, None) => {
                bail!("the setting `search.engine` is \"searxng\", which needs the setting `search.base_url`")
            }
        })
    }

    /// The vendor's key goes to the vendor only.
    fn image_server(&self) -> anyhow::Result<toolgate_tools::Images> {
        let base_url = text::address("images.base_url", &self.images.base_url)?;
        let vendors = || self.vendors.openai_key.clone().filter(|_| base_url.is_none());
        Ok(toolgate_tools::Images {
            key: self.images.api_key.clone().or_else(vendors),
            model: self.images.model.clone(),
            base_url,
        })
    }
}
