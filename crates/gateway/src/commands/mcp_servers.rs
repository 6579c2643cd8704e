//! `toolgate mcp servers`: the MCP servers of a project of a running gateway.

use std::io::IsTerminal as _;
use std::process::{ExitCode, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use axum::http::Method;
use clap::{Args, Subcommand};
use serde_json::{Map, Value, json};

use super::api::text;
use super::plugin::Remote;
use crate::output;

/// How long a person has for a sign-in.
const SIGN_IN_TIME: Duration = Duration::from_secs(10 * 60);
/// How often the gateway is asked whether somebody has signed in.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// Longest text that is shown of a value that differs.
const SHOWN_CHARS_MAX: usize = 200;

#[derive(Debug, Subcommand)]
pub enum Servers {
    /// Add a server and connect it: a program after `--`, or an address
    Add(Add),
    /// List the servers with their status
    List(List),
    /// Connect a server now and show its tools
    Test(One),
    /// Sign in to a server that asks for it, in a browser
    Login(Login),
    /// Remove a server
    Remove(One),
    /// Accept the definition of a tool that waits for a review
    Approve(Decide),
    /// Reject the definition of a tool
    Reject(Decide),
}

impl Servers {
    pub fn run(self) -> anyhow::Result<ExitCode> {
        match self {
            Self::Add(add) => add.run(),
            Self::List(list) => list.run(),
            Self::Test(one) => one.test(),
            Self::Login(login) => login.run(),
            Self::Remove(one) => one.remove(),
            Self::Approve(decide) => decide.run("approve"),
            Self::Reject(decide) => decide.run("reject"),
        }
    }
}

#[derive(Debug, Args)]
pub struct Add {
    /// Name of the server, which the names of its tools begin with
    name: String,
    /// Address of a server (streamable HTTP)
    #[arg(value_name = "ADDRESS", conflicts_with = "command")]
    address: Option<String>,
    /// Header to send to the address, as `Name: value`; a value may be ${secret.NAME}
    #[arg(long, value_name = "HEADER")]
    header: Vec<String>,
    /// Variable of the program, as `NAME=value`; a value may be ${secret.NAME}
    #[arg(long, value_name = "VARIABLE")]
    env: Vec<String>,
    /// Which definitions wait for a review: never, flagged or always
    #[arg(long)]
    review: Option<String>,
    /// The program and its arguments
    #[arg(last = true)]
    command: Vec<String>,
    #[command(flatten)]
    remote: Remote,
}

impl Add {
    fn run(self) -> anyhow::Result<ExitCode> {
        let mut config = match (&self.address, self.command.split_first()) {
            (Some(address), None) => json!({ "url": address }),
            (None, Some((program, arguments))) => json!({ "command": program, "args": arguments }),
            (None, None) | (Some(_), Some(_)) => bail!(
                "expected an address, as in `add search https://mcp.example.com/mcp`, or a program, as in `add time -- uvx \
                 mcp-server-time`"
            ),
        };
        for (section, given, between) in [("headers", &self.header, ':'), ("env", &self.env, '=')] {
            if !given.is_empty() {
                config[section] = Value::Object(pairs(given, between)?);
            }
        }
        if let Some(review) = &self.review {
            config["review"] = review.as_str().into();
        }
        let path = ["mcp", "servers", &self.name];
        self.remote
            .send(Method::PUT, &path, &[], Some(config.to_string()))?;
        tested(&self.remote, &self.name)
    }
}

#[derive(Debug, Args)]
pub struct List {
    /// Print what the gateway answers, as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    remote: Remote,
}

impl List {
    fn run(self) -> anyhow::Result<ExitCode> {
        let list = self.remote.send(Method::GET, &["mcp", "servers"], &[], None)?;
        if self.json {
            output::print(&format!("{list:#}\n"))?;
            return Ok(ExitCode::SUCCESS);
        }
        for server in list["servers"].as_array().into_iter().flatten() {
            output::print(&line(server))?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

#[derive(Debug, Args)]
pub struct One {
    /// Name of the server
    name: String,
    #[command(flatten)]
    remote: Remote,
}

impl One {
    fn test(self) -> anyhow::Result<ExitCode> {
        tested(&self.remote, &self.name)
    }

    fn remove(self) -> anyhow::Result<ExitCode> {
        self.remote
            .send(Method::DELETE, &["mcp", "servers", &self.name], &[], None)?;
        output::print(&format!("removed {}\n", self.name))?;
        Ok(ExitCode::SUCCESS)
    }
}

#[derive(Debug, Args)]
pub struct Login {
    /// Name of the server
    name: String,
    /// Only print the address, and do not wait until somebody has signed in
    #[arg(long)]
    no_wait: bool,
    /// Do not open the address in the browser of this machine, which is done when the command runs in a terminal
    #[arg(long)]
    no_browser: bool,
    #[command(flatten)]
    remote: Remote,
}

/// Programs that open an address in the browser of whoever sits here.
#[cfg(target_os = "macos")]
const OPENER: &str = "open";
#[cfg(not(target_os = "macos"))]
const OPENER: &str = "xdg-open";

/// Opens an address in a browser, if there is one: whoever has none has the address before their eyes.
fn open_in_browser(address: &str) {
    // The address is the authorization server's: nothing but a page is opened.
    if !address.starts_with("https://") && !address.starts_with("http://") {
        return;
    }
    let opened = std::process::Command::new(OPENER)
        .arg(address)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    if let Ok(mut opener) = opened {
        // It hands the address on and ends; a browser that it became is not waited for.
        std::thread::spawn(move || opener.wait());
    }
}

impl Login {
    fn run(self) -> anyhow::Result<ExitCode> {
        let path = ["mcp", "servers", &self.name, "authorize"];
        let begun = self.remote.send(Method::POST, &path, &[], None)?;
        let address = text(&begun, "authorizeUrl");
        output::print(&format!(
            "Open this address in a browser and sign in:\n\n  {address}\n\n"
        ))?;
        if !self.no_browser && std::io::stdout().is_terminal() {
            open_in_browser(address);
        }
        if self.no_wait {
            return Ok(ExitCode::SUCCESS);
        }
        let since = Instant::now();
        let path = ["mcp", "servers", &self.name];
        while since.elapsed() < SIGN_IN_TIME {
            std::thread::sleep(POLL_INTERVAL);
            let server = self.remote.send(Method::GET, &path, &[], None)?;
            if server["status"] == "ready" && server["needsSignIn"] == false {
                output::print(&shown(&server))?;
                return Ok(ExitCode::SUCCESS);
            }
        }
        bail!(
            "nobody has signed in within {} minutes; begin again",
            SIGN_IN_TIME.as_secs() / 60
        )
    }
}

#[derive(Debug, Args)]
pub struct Decide {
    /// Name of the server
    server: String,
    /// The server's own name of the tool
    tool: String,
    /// Hash of the definition that was looked at, as `test` shows it
    #[arg(long)]
    hash: Option<String>,
    #[command(flatten)]
    remote: Remote,
}

impl Decide {
    fn run(self, decision: &str) -> anyhow::Result<ExitCode> {
        let body = match &self.hash {
            Some(hash) => json!({ "hash": hash }),
            None => json!({}),
        };
        let path = ["mcp", "servers", &self.server, "tools", &self.tool, decision];
        let server = self
            .remote
            .send(Method::POST, &path, &[], Some(body.to_string()))?;
        output::print(&shown(&server))?;
        Ok(ExitCode::SUCCESS)
    }
}

/// Connects a server and shows what came of it; fails if it is not ready.
fn tested(remote: &Remote, name: &str) -> anyhow::Result<ExitCode> {
    let server = remote.send(Method::POST, &["mcp", "servers", name, "test"], &[], None)?;
    output::print(&shown(&server))?;
    Ok(match server["status"] == "ready" {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}

/// One line of a server.
fn line(server: &Value) -> String {
    let tools = server["tools"].as_array().map_or(0, Vec::len);
    let held = server["held"].as_u64().unwrap_or_default();
    let mut line = format!(
        "{}  {}  {tools} tools",
        text(server, "name"),
        text(server, "status")
    );
    if held > 0 {
        line.push_str(&format!(", {held} held for review"));
    }
    if let Some(protocol) = server["protocol"].as_str() {
        line.push_str(&format!("  MCP {protocol}"));
    }
    if let Some(reason) = server["reason"].as_str() {
        line.push_str(&format!("  {reason}"));
    }
    line + "\n"
}

/// A server with its tools, and what there is to review.
fn shown(server: &Value) -> String {
    let mut shown = line(server);
    for tool in server["tools"].as_array().into_iter().flatten() {
        let state = match (text(tool, "state"), tool["why"].as_str()) {
            ("accepted", _) => String::new(),
            (state, None) => format!("  {state}"),
            (state, Some(why)) => format!("  {state} ({why})"),
        };
        shown.push_str(&format!("  {}{state}\n", text(tool, "name")));
        for difference in tool["diff"].as_array().into_iter().flatten() {
            let side = |name: &str| cut(&difference[name]);
            shown.push_str(&format!(
                "    {}\n    - {}\n    + {}\n",
                text(difference, "pointer"),
                side("before"),
                side("after")
            ));
        }
        for flag in tool["flags"].as_array().into_iter().flatten() {
            let (pointer, reason, seen) = (text(flag, "pointer"), text(flag, "reason"), text(flag, "seen"));
            shown.push_str(&format!("    {pointer} {reason}: {seen}\n"));
        }
    }
    for warning in server["warnings"].as_array().into_iter().flatten() {
        shown.push_str(&format!("  warning: {}\n", warning.as_str().unwrap_or_default()));
    }
    shown
}

/// A value on one line, without what a terminal would take for an order.
fn cut(value: &Value) -> String {
    let written = match value {
        Value::Null => "(nothing)".to_owned(),
        value => value.to_string(),
    };
    let plain = written.chars().map(|c| if c.is_control() { ' ' } else { c });
    plain.take(SHOWN_CHARS_MAX).collect()
}

/// `Name: value` or `NAME=value`, several.
fn pairs(given: &[String], between: char) -> anyhow::Result<Map<String, Value>> {
    let mut pairs = Map::new();
    for pair in given {
        let (name, value) = pair
            .split_once(between)
            .with_context(|| format!("{pair:?} has no {between:?} between its name and its value"))?;
        pairs.insert(name.trim().to_owned(), value.trim().into());
    }
    Ok(pairs)
}
