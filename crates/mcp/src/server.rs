//! A server, and how to reach it.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use process_wrap::tokio::{CommandWrap, KillOnDrop, ProcessGroup};
use reqwest::header::{HeaderName, HeaderValue};
use rmcp::model::ProtocolVersion;
use rmcp::service::{ClientInitializeError, ClientLifecycleMode, serve_client_with_lifecycle};
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use rmcp::transport::{StreamableHttpClientTransport, TokioChildProcess};
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader};
use tokio::process::ChildStderr;
use tokio_util::task::AbortOnDropHandle;

use crate::connection::Connection;

/// How long a server may take to start and to say which protocol it speaks.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(120);
/// How long the SDK waits for a response to its first request before it takes a server for one of the older protocol.
const PROBE_TIMEOUT: Duration = Duration::from_secs(10);
/// Most bytes of a line of a child's standard error. A longer one counts as several.
const LINE_BYTES_MAX: u64 = 4 * 1024;

/// A server that cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("the MCP server {server:?} cannot be used: {reason}")]
pub struct McpError {
    server: String,
    reason: String,
}

/// An MCP server, and how to reach it.
#[derive(Clone)]
pub struct Server {
    name: String,
    reach: Reach,
}

#[derive(Clone)]
enum Reach {
    Command {
        program: OsString,
        arguments: Vec<OsString>,
        environment: Vec<(OsString, OsString)>,
    },
    Http {
        url: String,
        headers: Vec<(HeaderName, HeaderValue)>,
        client: Option<reqwest::Client>,
    },
}

impl Server {
    /// A server that runs as a child process and speaks on its standard input and output.
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
        }
    }

    /// A server at an address (streamable HTTP).
    pub fn http(name: impl Into<String>, url: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            reach: Reach::Http {
                url: url.into(),
                headers: Vec::new(),
                client: None,
            },
        }
    }

    /// Its name, which the names of its tools begin with.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Gives a child process those of these variables that a program needs to find its way (`PATH`, `HOME`, the
    /// language, …), so no key that was meant for this one. Without this it has none but those of [`Server::env`].
    pub fn inherit(mut self, variables: impl IntoIterator<Item = (OsString, OsString)>) -> Self {
        if let Reach::Command { environment, .. } = &mut self.reach {
            environment.extend(variables.into_iter().filter(|(name, _)| is_inherited(name)));
        }
        self
    }

    /// Sets a variable in the environment of a child process.
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

    /// Sends requests to an address with this client, which decides what may be reached.
    pub fn client(mut self, with: reqwest::Client) -> Self {
        if let Reach::Http { client, .. } = &mut self.reach {
            *client = Some(with);
        }
        self
    }

    /// Starts or reaches the server.
    pub async fn connect(&self) -> Result<Connection, McpError> {
        let connected = tokio::time::timeout(CONNECT_TIMEOUT, self.reach.connect_in_any_era()).await;
        let late = || Err(format!("no answer within {CONNECT_TIMEOUT:?}"));
        connected
            .unwrap_or_else(|_| late())
            .map_err(|reason| self.error(reason))
    }

    /// This server cannot be used for this reason.
    pub fn error(&self, reason: impl Into<String>) -> McpError {
        McpError {
            server: self.name.clone(),
            reason: reason.into(),
        }
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        // How it is reached may hold keys.
        out.debug_struct("Server")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

impl Reach {
    /// Asks a server which protocol it speaks. One that starts so slowly that its response comes after the request was
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
            } => start(program, arguments, environment, lifecycle).await,
            Self::Http { url, headers, client } => {
                let config = StreamableHttpClientTransportConfig::with_uri(url.as_str())
                    .custom_headers(headers.iter().cloned().collect());
                let transport = match client {
                    Some(client) => StreamableHttpClientTransport::with_client(client.clone(), config),
                    None => StreamableHttpClientTransport::from_config(config),
                };
                let connected = serve_client_with_lifecycle((), transport, lifecycle).await;
                let service = connected.map_err(|error| cause(&error))?;
                Ok(Connection::new(service, None))
            }
        }
    }
}

async fn start(
    program: &OsStr,
    arguments: &[OsString],
    environment: &[(OsString, OsString)],
    lifecycle: ClientLifecycleMode,
) -> Result<Connection, String> {
    let mut command = CommandWrap::with_new(program, |command| {
        command.args(arguments).env_clear();
        command.envs(environment.iter().cloned());
    });
    // A group of its own: what the server starts ends with it, and Ctrl-C at the terminal is not for it.
    command.wrap(KillOnDrop).wrap(ProcessGroup::leader());
    let spawned = TokioChildProcess::builder(command).stderr(Stdio::piped()).spawn();
    let (child, stderr) =
        spawned.map_err(|error| format!("{} does not start: {error}", program.display()))?;
    let last_line = Arc::new(Mutex::new(String::new()));
    let group = child.id().and_then(|id| Pid::from_raw(id.try_into().ok()?));
    let process = ServerProcess {
        group,
        _stderr: stderr.map(|stderr| drain(stderr, last_line.clone())),
    };
    let connected = serve_client_with_lifecycle((), child, lifecycle).await;
    let service = connected.map_err(|error| {
        let line = last_line.lock().unwrap_or_else(PoisonError::into_inner);
        match line.as_str() {
            "" => cause(&error),
            line => format!("{}; it said: {line}", cause(&error)),
        }
    })?;
    Ok(Connection::new(service, Some(process)))
}

/// A child and everything it started. Killed when dropped.
pub(crate) struct ServerProcess {
    group: Option<Pid>,
    /// Reads the child's standard error.
    _stderr: Option<AbortOnDropHandle<()>>,
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        // All of them may have ended already.
        if let Some(group) = self.group {
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}

/// Logs the standard error of a child and keeps its last line: a pipe that nobody reads would block the child.
fn drain(stderr: ChildStderr, last_line: Arc<Mutex<String>>) -> AbortOnDropHandle<()> {
    AbortOnDropHandle::new(tokio::spawn(async move {
        let mut stderr = BufReader::new(stderr);
        let mut line = Vec::new();
        while let Ok(1..) = (&mut stderr)
            .take(LINE_BYTES_MAX)
            .read_until(b'\n', &mut line)
            .await
        {
            let text = String::from_utf8_lossy(&line).trim_end().to_owned();
            tracing::debug!(line = text, "MCP server");
            if !text.is_empty() {
                *last_line.lock().unwrap_or_else(PoisonError::into_inner) = text;
            }
            line.clear();
        }
    }))
}

/// Whether a child may see this variable: where things are and which language to speak, nothing else.
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

/// The cause at the bottom: what stands above it names types of the transport.
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
