//! Links to files of spaces: `[files]`.

use std::time::Duration;

use serde::Deserialize;
use toolgate_access::file_links::LinkLimits;

use super::text;

/// Links to files.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Files {
    /// Lifetime of a link whose maker asks for none.
    #[serde(deserialize_with = "text::duration")]
    pub link_lifetime: Duration,
    /// Longest lifetime of a link.
    #[serde(deserialize_with = "text::duration")]
    pub link_lifetime_max: Duration,
    /// Address that users reach the gateway at; links begin with it.
    #[serde(deserialize_with = "text::optional")]
    pub public_url: Option<String>,
}

impl Default for Files {
    fn default() -> Self {
        let LinkLimits {
            lifetime,
            lifetime_max,
        } = LinkLimits::default();
        Self {
            link_lifetime: lifetime,
            link_lifetime_max: lifetime_max,
            public_url: None,
        }
    }
}

impl Files {
    /// How long links last.
    pub fn links(&self) -> LinkLimits {
        LinkLimits {
            lifetime: self.link_lifetime,
            lifetime_max: self.link_lifetime_max,
        }
    }

    /// What links begin with, without a slash at its end.
    pub fn address(&self) -> anyhow::Result<Option<String>> {
        let url = text::address("files.public_url", &self.public_url)?;
        Ok(url.map(|url| url.as_str().trim_end_matches('/').to_owned()))
    }
}
