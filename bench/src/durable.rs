//! The scenario that pauses, at servers that keep workflows: Restate and DBOS. A run asks the model, waits for the result of
//! its call, asks the model again and ends.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Context, ensure};
use serde_json::{Value, json};

use crate::Options;
use crate::http::Connection;
use crate::protocol::PAUSING;
use crate::server::{Running, free_address};
use crate::services::Service;
use crate::stub::TOKEN;

/// Which server keeps the workflow.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Durable {
    /// Its own server in front of a service on Node.
    Restate,
    /// A Python process with its state in PostgreSQL.
    Dbos,
}

impl Durable {
    pub fn title(self) -> &'static str {
        match self {
            Self::Restate => "Restate, 1 node",
            Self::Dbos => "DBOS, PostgreSQL",
        }
    }

    /// Starts the server and everything it needs but PostgreSQL; the first one is spoken to.
    pub async fn start(
        self,
        options: &Options,
        model: &str,
        postgres: &Service,
    ) -> anyhow::Result<Vec<Running>> {
        match self {
            Self::Restate => restate(options, model).await,
            Self::Dbos => {
                let address = free_address()?;
                let mut command = Command::new(options.dbos.as_ref().context("--dbos is missing")?);
                command.arg(peers().join("dbos/server.py"));
                command.args([&address.port().to_string(), model, &postgres.database("dbos")?]);
                let server = Running::start(&mut command, address, "dbos", "/healthz", options).await?;
                Ok(vec![server])
            }
        }
    }
}

fn peers() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("peers")
}

async fn restate(options: &Options, model: &str) -> anyhow::Result<Vec<Running>> {
    let folder = options.restate.as_ref().context("--restate is missing")?;
    let (service, ingress, admin) = (free_address()?, free_address()?, free_address()?);
    let data = options.work.join(format!("restate-{}", ingress.port()));
    fs::create_dir_all(&data)?;
    let mut command = Command::new(restate_program(folder)?);
    command.args(["--node-name", "bench", "--base-dir"]).arg(&data);
    command.envs([
        ("RESTATE_INGRESS__BIND_ADDRESS", ingress.to_string()),
        ("RESTATE_ADMIN__BIND_ADDRESS", admin.to_string()),
        ("RESTATE_BIND_ADDRESS", free_address()?.to_string()),
        ("RESTATE_LOG_FILTER", "warn".to_owned()),
        ("DO_NOT_TRACK", "1".to_owned()),
    ]);
    let server = Running::start(&mut command, ingress, "restate", "/restate/health", options).await?;
    let mut command = Command::new(&options.node);
    command
        .env("NODE_ENV", "production")
        .arg(folder.join("service.mjs"));
    command.args([&service.port().to_string(), model]);
    let log = fs::File::create(options.work.join("restate-service.log"))?;
    let code = Running::spawned(command.stdout(log.try_clone()?).stderr(log), service)?;
    register(admin, service).await?;
    Ok(vec![server, code])
}

/// The program itself: the script in front of it would leave it behind when it is killed.
fn restate_program(folder: &Path) -> anyhow::Result<PathBuf> {
    let packages = fs::read_dir(folder.join("node_modules/@restatedev"))?;
    let program = |package: fs::DirEntry| package.path().join("bin/restate-server");
    let mut programs = packages.flatten().map(program).filter(|path| path.is_file());
    programs
        .find(|path| path.to_string_lossy().contains("restate-server-"))
        .context("Restate's server has no package for this platform")
}

/// Tells Restate where the service is, once both answer.
async fn register(admin: SocketAddr, service: SocketAddr) -> anyhow::Result<()> {
    let body = json!({"uri": format!("http://{service}"), "force": true}).to_string();
    let mut last = None;
    for _ in 0..100 {
        match Connection::new(admin, "")
            .json("POST", "/deployments", &body)
            .await
        {
            Ok(_) => return Ok(()),
            Err(fault) => last = Some(fault),
        }
        tokio::time::sleep(std::time::Duration::from_millis(200)).await;
    }
    Err(last.expect("it was tried")).context("the service cannot be registered with Restate")
}

/// Whoever starts workflows and executes their calls.
pub struct DurableClient {
    kind: Durable,
    connection: Connection,
}

static NEXT: AtomicU64 = AtomicU64::new(0);

impl DurableClient {
    pub fn new(kind: Durable, server: SocketAddr) -> Self {
        let connection = Connection::new(server, "");
        Self { kind, connection }
    }

    /// Starts a workflow and returns when it waits.
    pub async fn pause(&mut self) -> anyhow::Result<String> {
        let id = format!(
            "bench-{}-{}",
            std::process::id(),
            NEXT.fetch_add(1, Ordering::Relaxed)
        );
        let body = json!({"prompt": PAUSING.prompt()}).to_string();
        let call = match self.kind {
            Durable::Restate => {
                self.connection
                    .json("POST", &format!("/bench/{id}/run/send"), &body)
                    .await?;
                self.connection
                    .json("POST", &format!("/bench/{id}/call"), "")
                    .await?
            }
            Durable::Dbos => {
                self.connection
                    .json("POST", &format!("/runs/{id}"), &body)
                    .await?
            }
        };
        ensure!(call["name"] == "ask_user", "no call: {call}");
        Ok(id)
    }

    /// Brings the result and returns when the workflow has ended.
    pub async fn resume(&mut self, id: &str) -> anyhow::Result<()> {
        let result = json!({"choice": "red"}).to_string();
        let end: Value = match self.kind {
            Durable::Restate => {
                self.connection
                    .json("POST", &format!("/bench/{id}/result"), &result)
                    .await?;
                self.connection
                    .json("GET", &format!("/restate/workflow/bench/{id}/attach"), "")
                    .await?
            }
            Durable::Dbos => {
                self.connection
                    .json("POST", &format!("/runs/{id}/result"), &result)
                    .await?
            }
        };
        let bytes = end["text"].as_str().map_or(0, str::len);
        ensure!(
            bytes == PAUSING.tokens * TOKEN.len(),
            "{bytes} bytes of text: {end}"
        );
        Ok(())
    }
}
