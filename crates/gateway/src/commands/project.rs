//! `toolgate project`: manages the projects of a running gateway, with the operator's key.

use anyhow::{Context, bail};
use axum::http::Method;
use clap::{Args, Subcommand, ValueEnum};
use serde_json::json;

use super::api::{Api, lines, text};
use crate::output;

/// Manages projects, the tenants of a gateway.
#[derive(Debug, Args)]
pub struct Project {
    /// Address of the gateway
    #[arg(
        long,
        global = true,
        env = "TOOLGATE_URL",
        default_value = "http://127.0.0.1:8787"
    )]
    url: String,
    /// The operator's key, as the gateway has it in its settings
    #[arg(long, global = true, env = "TOOLGATE_OPERATOR_KEY", hide_env_values = true)]
    operator_key: Option<String>,
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Creates a project and prints its keys once
    Create {
        /// Lower-case letters, digits and hyphens
        name: String,
    },
    /// Lists the projects
    List,
    /// Lists the keys of a project, makes one, or removes one
    Keys {
        /// The project
        name: String,
        /// Make a key of this kind and print it once
        #[arg(long, value_name = "KIND", conflicts_with = "remove")]
        create: Option<Kind>,
        /// Remove the key with this id
        #[arg(long, value_name = "ID")]
        remove: Option<String>,
    },
    /// Removes a project with everything in it
    Remove {
        /// The project
        name: String,
        /// Do it without asking
        #[arg(long)]
        yes: bool,
    },
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Kind {
    Secret,
    Public,
}

impl Project {
    /// Does what was asked and prints what came of it.
    pub fn run(self) -> anyhow::Result<()> {
        let key = self.operator_key.context(
            "no operator key; set TOOLGATE_OPERATOR_KEY to the one that the gateway was started with",
        )?;
        let gateway = Api { url: self.url, key };
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        output::print(&runtime.block_on(act(&gateway, self.action))?)?;
        Ok(())
    }
}

/// Does what was asked; gives what to print.
async fn act(gateway: &Api, action: Action) -> anyhow::Result<String> {
    match action {
        Action::Create { name } => {
            let made = gateway
                .send(
                    Method::POST,
                    &["projects"],
                    &[],
                    Some(json!({ "name": name }).to_string()),
                )
                .await?;
            Ok(format!(
                "project     {}\nsecret key  {}\npublic key  {}\nJWT secret  {}\n\nThey are shown only now.\n",
                text(&made, "name"),
                text(&made, "secretKey"),
                text(&made, "publicKey"),
                text(&made, "jwtSecret"),
            ))
        }
        Action::List => {
            let listed = gateway.send(Method::GET, &["projects"], &[], None).await?;
            Ok(lines(&listed["projects"], &["name", "id", "createdAt"]))
        }
        Action::Keys {
            name,
            create: Some(kind),
            ..
        } => {
            let kind = match kind {
                Kind::Secret => "secret",
                Kind::Public => "public",
            };
            let path = ["projects", &name, "keys"];
            let made = gateway
                .send(
                    Method::POST,
                    &path,
                    &[],
                    Some(json!({ "kind": kind }).to_string()),
                )
                .await?;
            Ok(format!("{}\n", text(&made, "key")))
        }
        Action::Keys {
            name,
            remove: Some(id),
            ..
        } => {
            gateway
                .send(Method::DELETE, &["projects", &name, "keys", &id], &[], None)
                .await?;
            Ok(format!("removed {id}\n"))
        }
        Action::Keys { name, .. } => {
            let listed = gateway
                .send(Method::GET, &["projects", &name, "keys"], &[], None)
                .await?;
            Ok(lines(&listed["keys"], &["id", "kind", "hint", "createdAt"]))
        }
        Action::Remove { name, yes } => {
            if !yes {
                bail!("this removes {name} with its agents, runs, files and keys; say --yes to do it");
            }
            gateway
                .send(Method::DELETE, &["projects", &name], &[], None)
                .await?;
            Ok(format!("removed {name}\n"))
        }
    }
}
