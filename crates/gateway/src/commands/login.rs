//! `toolgate login`: makes a link that signs a browser in to the console of a running gateway.

use anyhow::bail;
use axum::http::Method;
use clap::Args;
use serde_json::json;

use super::api::{Api, text};
use crate::output;

#[derive(Debug, Args)]
pub struct Login {
    /// The project to sign in to; naming one needs the operator's key [default: that of the secret key]
    #[arg(long, value_name = "NAME")]
    project: Option<String>,
    /// Address of the gateway
    #[arg(long, env = "TOOLGATE_URL", default_value = "http://127.0.0.1:8787")]
    url: String,
    /// A secret key of the project
    #[arg(long, env = "TOOLGATE_SECRET_KEY", hide_env_values = true)]
    secret_key: Option<String>,
    /// The operator's key: the session may manage projects too
    #[arg(long, env = "TOOLGATE_OPERATOR_KEY", hide_env_values = true)]
    operator_key: Option<String>,
}

impl Login {
    /// Prints the link, which works once.
    pub fn run(self) -> anyhow::Result<()> {
        let (key, body) = match (self.project, self.operator_key, self.secret_key) {
            (Some(project), Some(key), _) => (key, json!({ "project": project })),
            (Some(_), None, _) => bail!("--project needs the operator's key, set TOOLGATE_OPERATOR_KEY"),
            (None, _, Some(key)) | (None, Some(key), None) => (key, json!({})),
            (None, None, None) => bail!(
                "no key; set TOOLGATE_SECRET_KEY to a secret key of the project, or TOOLGATE_OPERATOR_KEY to the operator's"
            ),
        };
        let api = Api { url: self.url, key };
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let path = ["login-codes"];
        let made = runtime.block_on(api.send(Method::POST, &path, &[], Some(body.to_string())))?;
        output::print(&format!("{}\n", text(&made, "url")))?;
        Ok(())
    }
}
