//! `toolgate project`: manages the projects of a running gateway, with the operator's key.

use std::time::Duration;

use anyhow::{Context, bail};
use axum::http::header::{AUTHORIZATION, CONTENT_TYPE};
use axum::http::{HeaderMap, HeaderValue, Method};
use clap::{Args, Subcommand, ValueEnum};
use serde_json::{Value, json};
use toolgate_egress::{BodyLimit, Egress, Policy, Proxy, Request};

use crate::output;

/// Longest wait for the gateway: removing a large project takes a while.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(120);
/// Most bytes of an answer.
const ANSWER_BYTES_MAX: usize = 16 << 20;

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
        let gateway = Gateway { url: self.url, key };
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        output::print(&runtime.block_on(act(&gateway, self.action))?)?;
        Ok(())
    }
}

/// Does what was asked; gives what to print.
async fn act(gateway: &Gateway, action: Action) -> anyhow::Result<String> {
    match action {
        Action::Create { name } => {
            let made = gateway
                .send(Method::POST, &["projects"], Some(json!({ "name": name })))
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
            let listed = gateway.send(Method::GET, &["projects"], None).await?;
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
                .send(Method::POST, &path, Some(json!({ "kind": kind })))
                .await?;
            Ok(format!("{}\n", text(&made, "key")))
        }
        Action::Keys {
            name,
            remove: Some(id),
            ..
        } => {
            gateway
                .send(Method::DELETE, &["projects", &name, "keys", &id], None)
                .await?;
            Ok(format!("removed {id}\n"))
        }
        Action::Keys { name, .. } => {
            let listed = gateway
                .send(Method::GET, &["projects", &name, "keys"], None)
                .await?;
            Ok(lines(&listed["keys"], &["id", "kind", "hint", "createdAt"]))
        }
        Action::Remove { name, yes } => {
            if !yes {
                bail!("this removes {name} with its agents, runs, files and keys; say --yes to do it");
            }
            gateway.send(Method::DELETE, &["projects", &name], None).await?;
            Ok(format!("removed {name}\n"))
        }
    }
}

/// A running gateway, and the key that opens its projects.
struct Gateway {
    url: String,
    key: String,
}

impl Gateway {
    async fn send(&self, method: Method, path: &[&str], body: Option<Value>) -> anyhow::Result<Value> {
        let mut url: url::Url = self.url.parse().with_context(|| {
            format!(
                "{:?} is no address, expected one like http://127.0.0.1:8787",
                self.url
            )
        })?;
        url.path_segments_mut()
            .map_err(|()| anyhow::anyhow!("{:?} is no address of a gateway", self.url))?
            .pop_if_empty()
            .push("v1")
            .extend(path);
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let bearer = HeaderValue::try_from(format!("Bearer {}", self.key));
        headers.insert(AUTHORIZATION, bearer.context("the operator key cannot be sent")?);
        // The person who types the address may go wherever it leads.
        let policy = Policy::trusted(Proxy::Environment).within(ANSWER_TIMEOUT);
        let request = Request {
            method,
            url,
            headers,
            body: body.map(|body| body.to_string().into()),
            limit: BodyLimit::Whole(ANSWER_BYTES_MAX),
        };
        let answer = Egress::new().client(policy).send(request).await;
        let answer = answer.with_context(|| format!("no gateway answers at {}", self.url))?;
        let status = answer.status;
        let body: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
        if !status.is_success() {
            bail!("{}", problem(status.as_u16(), &body));
        }
        Ok(body)
    }
}

/// The error message of a response: its detail, or every problem with its pointer when there are several.
fn problem(status: u16, body: &Value) -> String {
    let mut message = match body["detail"].as_str() {
        Some(detail) => detail.to_owned(),
        None => format!("the gateway answered {status}"),
    };
    let problems = body["errors"].as_array().map_or(&[][..], Vec::as_slice);
    // The detail repeats the only one.
    if problems.len() > 1 {
        for problem in problems {
            let (pointer, text) = (text(problem, "pointer"), text(problem, "message"));
            message.push_str(&format!("\n  {pointer} {text}"));
        }
    }
    message
}

fn text<'a>(value: &'a Value, member: &str) -> &'a str {
    value[member].as_str().unwrap_or("-")
}

/// One line per item, with these members.
fn lines(items: &Value, members: &[&str]) -> String {
    let items = items.as_array().into_iter().flatten();
    items
        .map(|item| {
            let cells: Vec<&str> = members.iter().map(|member| text(item, member)).collect();
            cells.join("  ") + "\n"
        })
        .collect()
}
