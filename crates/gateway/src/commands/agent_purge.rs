//! `toolgate agent purge`: deletes an agent with all that it has stored, in a running gateway.

use anyhow::{Context, bail};
use axum::http::Method;
use clap::Args;

use super::api::Api;
use crate::output;

#[derive(Debug, Args)]
pub struct Purge {
    /// The agent, also a retired one
    name: String,
    /// Do it without asking
    #[arg(long)]
    yes: bool,
    /// Address of the gateway
    #[arg(long, env = "TOOLGATE_URL", default_value = "http://127.0.0.1:8787")]
    url: String,
    /// A secret key of the agent's project
    #[arg(long, env = "TOOLGATE_SECRET_KEY", hide_env_values = true)]
    secret_key: Option<String>,
}

impl Purge {
    /// Does what was asked and prints what came of it.
    pub fn run(self) -> anyhow::Result<()> {
        let name = self.name.as_str();
        let key = self
            .secret_key
            .context("no secret key; set TOOLGATE_SECRET_KEY to one of the agent's project")?;
        if !self.yes {
            bail!(
                "this cancels the runs of {name} and deletes its configuration, goals, plans, knowledge and the memories in its own scope; say --yes to do it"
            );
        }
        let api = Api { url: self.url, key };
        let path = ["agents", name];
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let told = runtime.block_on(api.send(Method::DELETE, &path, &["purge"], None))?;
        let count = |kind: &str| told["deleted"][kind].as_u64().unwrap_or_default();
        let deleted = format!(
            "{} goals, {} memories, {} plans and {} parts of documents",
            count("goals"),
            count("memories"),
            count("plans"),
            count("knowledgeParts")
        );
        output::print(&format!("purged {name}: deleted {deleted}\n"))?;
        Ok(())
    }
}
