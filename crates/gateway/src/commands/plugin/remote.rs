//! `toolgate plugin install | list | remove | trust`: the plugins of a project of a running gateway.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use axum::http::Method;
use clap::Args;
use serde_json::{Value, json};
use toolgate_package::key::PEM_BYTES_MAX;
use toolgate_package::{CuratorId, PackageHash, PluginId};

use super::file::{Source, read_bounded};
use crate::commands::api::{Api, text};
use crate::output;

/// Where the gateway is, and the key of the project.
#[derive(Debug, Args)]
pub struct Remote {
    /// Address of the gateway
    #[arg(
        long,
        value_name = "URL",
        env = "TOOLGATE_URL",
        default_value = "http://127.0.0.1:8787"
    )]
    url: String,
    /// Secret key of the project, as the gateway printed it at its first start
    #[arg(
        long = "secret-key",
        value_name = "KEY",
        env = "TOOLGATE_SECRET_KEY",
        hide_env_values = true
    )]
    secret_key: Option<String>,
}

impl Remote {
    /// Sends one request; gives the body of the answer.
    pub fn send(
        &self,
        method: Method,
        path: &[&str],
        flags: &[&str],
        body: Option<String>,
    ) -> anyhow::Result<Value> {
        let key = self.secret_key.clone().context(
            "no key; set TOOLGATE_SECRET_KEY to the secret key of the project, which the gateway printed at its first start",
        )?;
        let api = Api {
            url: self.url.clone(),
            key,
        };
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        runtime.block_on(api.send(method, path, flags, body))
    }
}

#[derive(Debug, Args)]
pub struct Install {
    /// Package file, a folder with a plugin.json, or the address of a package
    package: String,
    /// packageHash of the package at an address, as its publisher tells it
    #[arg(long, value_name = "HASH")]
    hash: Option<PackageHash>,
    /// Only say who signed it, what it may do and what would change
    #[arg(long)]
    dry_run: bool,
    /// Accept that another curator than so far has signed it
    #[arg(long)]
    replace_curator: bool,
    #[command(flatten)]
    remote: Remote,
}

impl Install {
    pub fn run(self) -> anyhow::Result<ExitCode> {
        let is_address = self.package.starts_with("https://") || self.package.starts_with("http://");
        let body = match (is_address, self.hash) {
            (true, Some(hash)) => json!({ "sourceUrl": self.package, "packageHash": hash }),
            (true, None) => bail!(
                "an address can give another package tomorrow; say which one is meant with --hash, the packageHash that its publisher tells"
            ),
            (false, hash) => {
                let source = Source::read(self.package.as_ref())?;
                let package = source.package()?;
                if let Some(hash) = hash.filter(|hash| *hash != package.hash()) {
                    bail!("the package has the hash {}, not {hash}", package.hash());
                }
                package.document().clone()
            }
        };
        let flags = [("dryRun", self.dry_run), ("replaceCurator", self.replace_curator)];
        let flags: Vec<&str> = flags
            .iter()
            .filter(|(_, set)| *set)
            .map(|(name, _)| *name)
            .collect();
        let review = self
            .remote
            .send(Method::POST, &["plugins"], &flags, Some(body.to_string()))
            .map_err(with_hint)?;
        output::print(&reviewed(&review))?;
        // A dry run that finds problems is a check that fails.
        Ok(match items(&review["problems"]).next() {
            None => ExitCode::SUCCESS,
            Some(_) => ExitCode::FAILURE,
        })
    }
}

/// Says how to let a curator in.
fn with_hint(error: anyhow::Error) -> anyhow::Error {
    match error.to_string().contains("is not trusted here") {
        true => error.context(
            "nothing was installed; if you trust the curator: toolgate plugin trust CURATOR --key FILE",
        ),
        false => error,
    }
}

/// What an installation did, or would do.
fn reviewed(review: &Value) -> String {
    let package = &review["package"];
    let did = match (review["installed"].as_bool(), text(review, "action")) {
        (_, "none") => "is installed already",
        (Some(true), _) => "installed",
        _ => "would be installed",
    };
    let mut told = format!(
        "{} {} {did}\nsignature    {}\ntools        {}\n",
        text(package, "plugin"),
        text(package, "version"),
        signed(&package["verification"]),
        names(&package["tools"]),
    );
    for permission in items(&package["permissions"]) {
        let added = match permission["added"].as_bool() {
            Some(true) => " (new)",
            _ => "",
        };
        told.push_str(&format!(
            "permission   {}: {}{added}\n",
            text(permission, "permission"),
            text(permission, "description")
        ));
    }
    for change in items(&review["tools"]["changed"]) {
        told.push_str(&format!(
            "changed      {}: {} {} → {}\n",
            text(change, "tool"),
            text(change, "member"),
            shortened(&change["from"]),
            shortened(&change["to"]),
        ));
    }
    for tool in items(&review["tools"]["otherCode"]).filter_map(Value::as_str) {
        told.push_str(&format!("changed      {tool}: its code\n"));
    }
    for warning in items(&review["audit"]["warnings"]).filter_map(Value::as_str) {
        told.push_str(&format!("warning      {warning}\n"));
    }
    for problem in items(&review["problems"]) {
        told.push_str(&format!(
            "problem      {}: {}\n",
            text(problem, "code"),
            text(problem, "message")
        ));
    }
    told
}

/// A member of a tool in one line; the whole is in the answer of the gateway.
fn shortened(value: &Value) -> String {
    const CHARS_MAX: usize = 160;
    let text = match value {
        Value::Null => return "(none)".into(),
        value => value.to_string(),
    };
    match text.char_indices().nth(CHARS_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

#[derive(Debug, Args)]
pub struct List {
    /// Print the answer of the gateway as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    remote: Remote,
}

impl List {
    pub fn run(self) -> anyhow::Result<ExitCode> {
        let listed = self.remote.send(Method::GET, &["plugins"], &[], None)?;
        let told = match self.json {
            true => format!("{}\n", serde_json::to_string_pretty(&listed)?),
            false => items(&listed["plugins"]).map(line).collect(),
        };
        if told.is_empty() {
            eprintln!("no plugins are installed");
        }
        output::print(&told)?;
        Ok(ExitCode::SUCCESS)
    }
}

fn line(plugin: &Value) -> String {
    let current = &plugin["current"];
    let mut line = format!(
        "{}  {}  {}  {}",
        text(plugin, "id"),
        text(current, "version"),
        signed(&current["verification"]),
        names(&current["tools"]),
    );
    if let Some(reason) = plugin["stoppedBecause"].as_str() {
        line.push_str(&format!("  stopped: {reason}"));
    }
    line + "\n"
}

#[derive(Debug, Args)]
pub struct Remove {
    /// Id of the plugin
    plugin: PluginId,
    /// Delete its stored packages too; runs under way that use them cannot go on with its tools
    #[arg(long)]
    purge: bool,
    #[command(flatten)]
    remote: Remote,
}

impl Remove {
    pub fn run(self) -> anyhow::Result<ExitCode> {
        let flags: &[&str] = if self.purge { &["purge"] } else { &[] };
        self.remote
            .send(Method::DELETE, &["plugins", self.plugin.as_str()], flags, None)?;
        output::print(&format!("removed {}\n", self.plugin))?;
        Ok(ExitCode::SUCCESS)
    }
}

#[derive(Debug, Args)]
pub struct Trust {
    /// Id of the curator, as it stands in what they sign
    curator: CuratorId,
    /// Their public key in PEM; the ones they have stay
    #[arg(long, value_name = "FILE")]
    key: PathBuf,
    /// As the operator, for the project of this name: needed where plugins.curators is "operator"
    #[arg(long, value_name = "NAME", requires = "operator_key")]
    project: Option<String>,
    /// The operator's key, as the gateway has it in its settings
    #[arg(
        long,
        value_name = "KEY",
        env = "TOOLGATE_OPERATOR_KEY",
        hide_env_values = true
    )]
    operator_key: Option<String>,
    #[command(flatten)]
    remote: Remote,
}

impl Trust {
    pub fn run(self) -> anyhow::Result<ExitCode> {
        let pem = String::from_utf8(read_bounded(&self.key, PEM_BYTES_MAX)?)
            .with_context(|| format!("{} is not PEM", self.key.display()))?;
        let key = toolgate_package::PublicKey::from_pem(&pem)
            .with_context(|| format!("{} is not a public key", self.key.display()))?;
        let body = json!({ "keys": [{ "publicKey": pem }] }).to_string();
        let curator = self.curator.as_str();
        match (&self.project, self.operator_key) {
            (Some(project), Some(key)) => {
                let remote = Remote {
                    secret_key: Some(key),
                    ..self.remote
                };
                let path = ["projects", project, "curators", curator];
                remote.send(Method::PUT, &path, &[], Some(body))?;
            }
            (None, _) | (_, None) => {
                let path = ["curators", curator];
                self.remote.send(Method::PUT, &path, &[], Some(body))?;
            }
        }
        output::print(&format!(
            "packages that {} signs with the key {} can be installed\n",
            self.curator,
            key.fingerprint()
        ))?;
        Ok(ExitCode::SUCCESS)
    }
}

fn signed(verification: &Value) -> String {
    let state = text(verification, "state");
    match verification["curator"].as_str() {
        Some(curator) => format!("{state} by {curator}"),
        None => state.to_owned(),
    }
}

fn names(list: &Value) -> String {
    let names: Vec<&str> = items(list).filter_map(Value::as_str).collect();
    names.join(", ")
}

fn items(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten()
}
