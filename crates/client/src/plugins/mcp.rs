//! A bridge to an MCP server: its tools become tools of this client.
//!
//! The server runs as a child process that speaks on its standard input and output, or is reached over HTTP. A server
//! that dies gives errors for the model to read; the rest of the program goes on. The child, and what it started,
//! ends when the plugin is taken out.

mod fit;
mod name;
mod result;

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use process_wrap::tokio::{CommandWrap, KillOnDrop, ProcessGroup};
use reqwest::header::{HeaderName, HeaderValue};
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, ClientRequest, ListToolsRequest, PaginatedRequestParams,
    ProtocolVersion,
};
use rmcp::service::{
    ClientInitializeError, ClientLifecycleMode, Peer, RoleClient, RunningService, serve_client_with_lifecycle,
};
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use rmcp::transport::{StreamableHttpClientTransport, TokioChildProcess};
use rustix::process::{Pid, Signal, kill_process_group};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader};
use tokio::process::ChildStderr;
use tokio_util::task::AbortOnDropHandle;

use crate::plugin::{BoxError, Hooks, Plugin};
use crate::tool::{Definition, Tool, ToolCall, ToolError};

/// How long a server may take to start and to list its tools.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(120);
/// How long the SDK waits for an answer to its first question before it takes a server for an old one.
const PROBE_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a server may take to end when it is told to.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);
/// Most bytes of a line that a child says of itself.
const LINE_BYTES_MAX: u64 = 4 * 1024;
/// Most pages of tools that are asked for.
const PAGES_MAX: usize = 50;

/// A server that did not become a plugin.
#[derive(Debug, thiserror::Error)]
#[error("the MCP server {server:?} cannot be used: {reason}")]
pub struct McpError {
    server: String,
    reason: String,
}

/// An MCP server, and how to reach it.
#[derive(Debug, Clone)]
pub struct McpServer {
    name: String,
    reach: Reach,
    only: Option<BTreeSet<String>>,
}

#[derive(Debug, Clone)]
enum Reach {
    Command {
        program: OsString,
        arguments: Vec<OsString>,
        environment: Vec<(OsString, OsString)>,
    },
    Http {
        url: String,
        headers: Vec<(HeaderName, HeaderValue)>,
    },
}

/// A server that is connected.
#[derive(Debug)]
pub struct Bridge {
    /// Its tools, named `mcp_<server>_<tool>`; the plugin is named `mcp:<server>`.
    pub plugin: Plugin,
    /// Tools that were simplified or left out, in words.
    pub warnings: Vec<String>,
}

impl McpServer {
    /// A server that runs as a child process.
    pub fn command<A: Into<OsString>>(
        name: impl Into<String>,
        program: impl Into<OsString>,
        arguments: impl IntoIterator<Item = A>,
    ) -> Self {
        Self {
            name: name.into(),
            reach: Reach::Command {
                program: program.into(),
                arguments: arguments.into_iter().map(Into::into).collect(),
                environment: Vec::new(),
            },
            only: None,
        }
    }

    /// A server at an address (streamable HTTP).
    pub fn http(name: impl Into<String>, url: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            reach: Reach::Http {
                url: url.into(),
                headers: Vec::new(),
            },
            only: None,
        }
    }

    /// Sets a variable in the environment of a child process. Of this program's own it sees only what a program
    /// needs to find its way (`PATH`, `HOME`, the language, …), so no key that was meant for this one.
    pub fn env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        if let Reach::Command { environment, .. } = &mut self.reach {
            environment.push((name.into(), value.into()));
        }
        self
    }

    /// Sends a header with every request to an address, such as `Authorization`.
    pub fn header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        if let Reach::Http { headers, .. } = &mut self.reach {
            headers.push((name, value));
        }
        self
    }

    /// Takes these tools only, by the names that the server gives them. A gateway takes ten tools with a message
    /// unless it is set up otherwise.
    pub fn only<T: Into<String>>(mut self, tools: impl IntoIterator<Item = T>) -> Self {
        self.only = Some(tools.into_iter().map(Into::into).collect());
        self
    }

    /// Starts or reaches the server and asks for its tools.
    pub async fn connect(self) -> Result<Bridge, McpError> {
        let server = self.name.clone();
        let failed = |reason: String| McpError {
            server: server.clone(),
            reason,
        };
        let work = async {
            let connection = self.reach.connect_in_any_era().await?;
            let tools = listed(connection.service.peer()).await?;
            Ok((connection, tools))
        };
        let connected = tokio::time::timeout(CONNECT_TIMEOUT, work).await;
        let (connection, tools) = connected
            .map_err(|_| failed(format!("no answer within {CONNECT_TIMEOUT:?}")))?
            .map_err(failed)?;
        Ok(self.bridge(connection, tools))
    }

    fn bridge(&self, connection: Connection, tools: Vec<Value>) -> Bridge {
        let mut warnings = Vec::new();
        let mut plugin = Plugin::new(format!("mcp:{}", self.name), env!("CARGO_PKG_VERSION"));
        let mut taken = BTreeSet::new();
        for tool in tools {
            let listed = match Listed::deserialize(&tool) {
                Ok(listed) => listed,
                Err(error) => {
                    warnings.push(format!("a tool was left out: {error}"));
                    continue;
                }
            };
            if self
                .only
                .as_ref()
                .is_some_and(|only| !only.contains(&listed.name))
            {
                continue;
            }
            let name = name::joined(&self.name, &listed.name);
            match fit::definition(name, &listed.description.unwrap_or_default(), listed.input_schema) {
                Ok((definition, _)) if !taken.insert(definition.name.clone()) => {
                    warnings.push(format!(
                        "{} was left out: there are two of that name",
                        listed.name
                    ));
                }
                Ok((definition, simplified)) => {
                    if simplified {
                        warnings.push(format!("the schema of {} was simplified", listed.name));
                    }
                    plugin = plugin.tool(bridged(
                        definition,
                        listed.name,
                        connection.service.peer().clone(),
                    ));
                }
                Err(why) => warnings.push(format!("{} was left out: {why}", listed.name)),
            }
        }
        for warning in &warnings {
            tracing::warn!(server = self.name, "{warning}");
        }
        let life = Life {
            connection: Mutex::new(Some(connection)),
        };
        Bridge {
            plugin: plugin.hooks(life),
            warnings,
        }
    }
}

/// A server that answers.
struct Connection {
    service: RunningService<RoleClient, ()>,
    /// Dropped after the service: a server that ends in order may do so first.
    _family: Option<Family>,
    /// Reads what the child says of itself.
    _listener: Option<AbortOnDropHandle<()>>,
}

/// A child and everything it started. Ends with this value.
struct Family {
    group: Pid,
}

impl Drop for Family {
    fn drop(&mut self) {
        // All of them may have ended already.
        let _ = kill_process_group(self.group, Signal::KILL);
    }
}

/// What is needed of a tool. Read one by one, so that one malformed tool does not hide the others.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Listed {
    name: String,
    #[serde(default)]
    description: Option<String>,
    input_schema: Value,
}

impl Reach {
    /// Asks a server which protocol it speaks. One that starts so slowly that its answer comes after the question was
    /// given up is started again and spoken to as one of each kind.
    async fn connect_in_any_era(&self) -> Result<Connection, String> {
        let preferred_versions = vec![ProtocolVersion::LATEST];
        let auto = ClientLifecycleMode::Auto {
            preferred_versions: preferred_versions.clone(),
            legacy_version: None,
        };
        let discover = ClientLifecycleMode::Discover { preferred_versions };
        let mut failure = String::new();
        for lifecycle in [auto, ClientLifecycleMode::Initialize, discover] {
            let began = Instant::now();
            match self.connect(lifecycle).await {
                Ok(connection) => return Ok(connection),
                Err(error) if began.elapsed() < PROBE_TIMEOUT => return Err(error),
                Err(error) => failure = error,
            }
        }
        Err(failure)
    }

    async fn connect(&self, lifecycle: ClientLifecycleMode) -> Result<Connection, String> {
        match self {
            Self::Command {
                program,
                arguments,
                environment,
            } => {
                let mut command = CommandWrap::with_new(program, |command| {
                    command.args(arguments).env_clear();
                    command.envs(std::env::vars_os().filter(|(name, _)| is_inherited(name)));
                    command.envs(environment.iter().cloned());
                });
                // A group of its own: what the server starts ends with it, and Ctrl-C at the terminal is not for it.
                command.wrap(KillOnDrop).wrap(ProcessGroup::leader());
                let spawned = TokioChildProcess::builder(command).stderr(Stdio::piped()).spawn();
                let (child, stderr) =
                    spawned.map_err(|error| format!("{} does not start: {error}", program.display()))?;
                let group = child.id().and_then(|id| Pid::from_raw(id.try_into().ok()?));
                let family = group.map(|group| Family { group });
                let last_words = Arc::new(Mutex::new(String::new()));
                let listener = stderr.map(|stderr| listen(stderr, last_words.clone()));
                let connected = serve_client_with_lifecycle((), child, lifecycle).await;
                let service = connected.map_err(|error| {
                    let words = last_words.lock().unwrap_or_else(PoisonError::into_inner);
                    match words.as_str() {
                        "" => cause(&error),
                        words => format!("{}; it said: {words}", cause(&error)),
                    }
                })?;
                Ok(Connection {
                    service,
                    _family: family,
                    _listener: listener,
                })
            }
            Self::Http { url, headers } => {
                let config = StreamableHttpClientTransportConfig::with_uri(url.as_str())
                    .custom_headers(headers.iter().cloned().collect());
                let transport = StreamableHttpClientTransport::from_config(config);
                let connected = serve_client_with_lifecycle((), transport, lifecycle).await;
                let service = connected.map_err(|error| cause(&error))?;
                Ok(Connection {
                    service,
                    _family: None,
                    _listener: None,
                })
            }
        }
    }
}

/// Whether a child sees this variable of ours: where things are and how to speak, nothing else.
fn is_inherited(name: &OsStr) -> bool {
    const NAMES: [&str; 18] = [
        "PATH",
        "HOME",
        "USER",
        "LOGNAME",
        "SHELL",
        "TERM",
        "TZ",
        "LANG",
        "LANGUAGE",
        "TMPDIR",
        "TMP",
        "TEMP",
        "SystemRoot",
        "USERPROFILE",
        "APPDATA",
        "LOCALAPPDATA",
        "SSL_CERT_FILE",
        "SSL_CERT_DIR",
    ];
    let Some(name) = name.to_str() else { return false };
    NAMES.iter().any(|known| known.eq_ignore_ascii_case(name))
        || name.starts_with("LC_")
        || name.starts_with("XDG_")
}

/// What went wrong at the bottom: what stands above it names types of the transport.
fn cause(error: &ClientInitializeError) -> String {
    let mut deepest: &dyn std::error::Error = match error {
        ClientInitializeError::TransportError { error, .. } => &*error.error,
        other => other,
    };
    while let Some(source) = deepest.source() {
        deepest = source;
    }
    deepest.to_string()
}

/// Reads what a child says of itself, for the log, and keeps its last line.
fn listen(stderr: ChildStderr, last_words: Arc<Mutex<String>>) -> AbortOnDropHandle<()> {
    AbortOnDropHandle::new(tokio::spawn(async move {
        let mut stderr = BufReader::new(stderr);
        let mut line = Vec::new();
        // A line that is too long is taken for several.
        while let Ok(1..) = (&mut stderr)
            .take(LINE_BYTES_MAX)
            .read_until(b'\n', &mut line)
            .await
        {
            let words = String::from_utf8_lossy(&line).trim_end().to_owned();
            tracing::debug!(line = words, "MCP server");
            if !words.is_empty() {
                *last_words.lock().unwrap_or_else(PoisonError::into_inner) = words;
            }
            line.clear();
        }
    }))
}

/// All tools of a server, as they were written.
async fn listed(peer: &Peer<RoleClient>) -> Result<Vec<Value>, String> {
    let mut tools = Vec::new();
    let mut cursor: Option<String> = None;
    for _ in 0..PAGES_MAX {
        let params = PaginatedRequestParams::default().with_cursor(cursor.take());
        let request = ClientRequest::ListToolsRequest(ListToolsRequest::with_param(params));
        let page = peer
            .send_request(request)
            .await
            .map_err(|error| error.to_string())?;
        let mut page = serde_json::to_value(page).map_err(|error| error.to_string())?;
        match page["tools"].take() {
            Value::Array(more) => tools.extend(more),
            _ => return Err("it lists no tools".into()),
        }
        match page["nextCursor"].take() {
            Value::String(next) => cursor = Some(next),
            _ => break,
        }
    }
    Ok(tools)
}

/// A tool that asks the server.
fn bridged(definition: Definition, original: String, peer: Peer<RoleClient>) -> Tool {
    let original: Arc<str> = original.into();
    Tool::new(definition, move |call: ToolCall| {
        let (peer, original) = (peer.clone(), original.clone());
        async move {
            if peer.is_transport_closed() {
                return Err(ToolError::new("the MCP server of this tool is gone"));
            }
            let mut params = CallToolRequestParams::new(original.to_string());
            params.arguments = call.input.as_object().cloned();
            // Dropped when the time of the tool is over or nobody waits any more: the server is then told to stop.
            match peer.call_tool_once(params).await? {
                CallToolResponse::Complete(done) => result::outcome(done),
                CallToolResponse::InputRequired(_) => Err(ToolError::new(
                    "the MCP server asks for something that only a person can give",
                )),
                CallToolResponse::Task(_) => Err(ToolError::new(
                    "the MCP server made a task of this call, which cannot be waited for",
                )),
                _ => Err(ToolError::new("the MCP server gave an answer of an unknown kind")),
            }
        }
    })
}

/// Ends the connection, and with it the child.
struct Life {
    connection: Mutex<Option<Connection>>,
}

#[crate::async_trait]
impl Hooks for Life {
    async fn on_unregister(&self) -> Result<(), BoxError> {
        let connection = self
            .connection
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if let Some(mut connection) = connection {
            connection.service.close_with_timeout(CLOSE_TIMEOUT).await?;
        }
        Ok(())
    }
}

/// A schema that says nothing.
fn anything() -> Value {
    json!({"type": "object"})
}
