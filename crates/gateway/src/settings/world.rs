//! How tools reach the world outside.

use std::collections::BTreeMap;

use anyhow::Context;
use serde::Deserialize;
use toolgate_kernel::agent::Secret;
use toolgate_tools::{AllowList, Secrets, World};

use super::Settings;

/// A secret in the environment; `TOOLGATE_SECRET_KEY` is the project's own key and no secret of a tool's.
const SECRET_PREFIX: &str = "TOOLGATE_SECRET_";
const OWN_KEY: &str = "KEY";

/// Where tools may go.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Outside {
    /// Besides the public internet.
    pub allow: Vec<String>,
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
    pub fn world(&self) -> anyhow::Result<World> {
        let secrets: BTreeMap<_, _> = self.secrets.clone();
        Ok(World {
            allow: AllowList::new(&self.outside.allow).context("the setting `outside.allow`")?,
            secrets: Secrets::new(secrets).context("the settings in `secrets`")?,
        })
    }
}
