//! A server, and how to reach it.

mod era;

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use reqwest::header::{HeaderName, HeaderValue};
use rmcp::service::{ClientInitializeError, ClientLifecycleMode, serve_client_with_lifecycle};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::common::client_side_sse::ExponentialBackoff;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use tokio::sync::watch;

use crate::bounded_requests::BoundedRequests;
use crate::client::{Abilities, Desk, Handler};
use crate::connection::Connection;
use crate::http_client::BoundedClient;
use crate::oauth::{Authorizer, Challenge, OAuthError, SIGN_INS_MAX, WithToken};
use crate::process::{Hide, Keeper, Launch, Log, MESSAGE_BYTES_MAX};
use era::Connected;

/// How long a server may take to start and to say which protocol it speaks.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(120);
/// Name that the client gives of itself unless it is set otherwise.
const CLIENT_NAME: &str = "toolgate";
/// Attempts to resume a stream, and the pause before the first; the pause doubles each time. Two seconds together.
const RESUME_ATTEMPTS_MAX: usize = 3;
const RESUME_PAUSE_FIRST: Duration = Duration::from_millis(300);

/// A server that cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("the MCP server {server:?} cannot be used: {reason}")]
pub struct McpError {
    server: String,
    reason: String,
    challenge: Option<Challenge>,
}

impl McpError {
    /// What the server wants, if it wants somebody to sign in.
    pub fn needs_authorization(&self) -> Option<&Challenge> {
        self.challenge.as_ref()
    }
}

/// Why there is no connection.
struct Failure {
    reason: String,
    challenge: Option<Challenge>,
    /// The server may speak the older protocol: it answers what it does not know with an empty result, or names older
    /// revisions only.
    may_be_legacy: bool,
}

/// An MCP server, and how to reach it.
#[derive(Clone)]
pub struct Server {
    name: String,
    reach: Reach,
    abilities: Abilities,
    /// The protocol revision that it spoke before.
    protocol: Option<String>,
}

#[derive(Clone)]
pub(crate) enum Reach {
    Command(Launch),
    Http {
        url: String,
        headers: Vec<(HeaderName, HeaderValue)>,
        client: Option<reqwest::Client>,
        authorizer: Option<Arc<Authorizer>>,
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
            reach: Reach::Command(Launch {
                program: program.into(),
                arguments: arguments.into_iter().map(Into::into).collect(),
                environment: Vec::new(),
                directory: None,
                keeper: None,
                hide: None,
                log: None,
                restarts: None,
            }),
            abilities: Abilities::default(),
            protocol: None,
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
                authorizer: None,
            },
            abilities: Abilities::default(),
            protocol: None,
        }
    }

    /// Its name, which the names of its tools begin with.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Gives a child process those of these variables that a program needs to find its way (`PATH`, `HOME`, the
    /// language, …), so no key that was meant for this one. Without this it has none but those of [`Server::env`].
    pub fn inherit(mut self, variables: impl IntoIterator<Item = (OsString, OsString)>) -> Self {
        if let Reach::Command(Launch { environment, .. }) = &mut self.reach {
            environment.extend(variables.into_iter().filter(|(name, _)| is_inherited(name)));
        }
        self
    }

    /// Sets a variable in the environment of a child process.
    pub fn env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        if let Reach::Command(Launch { environment, .. }) = &mut self.reach {
            environment.push((name.into(), value.into()));
        }
        self
    }

    /// Starts a child process in this directory.
    pub fn directory(mut self, path: impl Into<PathBuf>) -> Self {
        if let Reach::Command(Launch { directory, .. }) = &mut self.reach {
            *directory = Some(path.into());
        }
        self
    }

    /// Runs a child process under a keeper.
    pub fn keeper(mut self, with: Keeper) -> Self {
        if let Reach::Command(Launch { keeper, .. }) = &mut self.reach {
            *keeper = Some(with);
        }
        self
    }

    /// Hides secrets in what a child process writes to its standard error, before it is logged.
    pub fn hide(mut self, with: Hide) -> Self {
        if let Reach::Command(Launch { hide, .. }) = &mut self.reach {
            *hide = Some(with);
        }
        self
    }

    /// Gives `to` each line that a child process writes to its standard error, secrets hidden.
    pub fn log(mut self, to: Log) -> Self {
        if let Reach::Command(Launch { log, .. }) = &mut self.reach {
            *log = Some(to);
        }
        self
    }

    /// Ends the child processes of links whenever `count` changes. Links that are made later start new ones.
    pub fn restarts(mut self, count: watch::Receiver<u64>) -> Self {
        if let Reach::Command(Launch { restarts, .. }) = &mut self.reach {
            *restarts = Some(count);
        }
        self
    }

    /// Lets the server do these things.
    pub fn abilities(mut self, abilities: Abilities) -> Self {
        self.abilities = abilities;
        self
    }

    /// Begins with the protocol revision that the server spoke before. Without one, or if that fails, it is asked.
    pub fn protocol(mut self, before: Option<String>) -> Self {
        self.protocol = before;
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

    /// Signs in to an address as this identity when it asks for that.
    pub fn authorizer(mut self, with: Arc<Authorizer>) -> Self {
        if let Reach::Http { authorizer, .. } = &mut self.reach {
            *authorizer = Some(with);
        }
        self
    }

    /// How to reach it.
    pub(crate) fn reach(&self) -> &Reach {
        &self.reach
    }

    /// Starts or reaches the server. The time that a person takes to sign in does not count.
    pub async fn connect(&self) -> Result<Connection, McpError> {
        let mut sign_ins = 0;
        loop {
            let connected = tokio::time::timeout(CONNECT_TIMEOUT, self.connect_in_any_era()).await;
            let late = || Err(format!("no answer within {CONNECT_TIMEOUT:?}").into());
            let failure = match connected.unwrap_or_else(|_| late()) {
                Ok(Connected::Certain(connection)) => return Ok(connection),
                Ok(Connected::Guessed(connection)) => return Ok(self.ask_once_more(connection).await),
                Err(failure) => failure,
            };
            match (&failure.challenge, self.reach.authorizer()) {
                (Some(challenge), Some(authorizer)) if sign_ins < SIGN_INS_MAX => {
                    let satisfied = authorizer.satisfy(challenge).await;
                    satisfied.map_err(|error| self.refused(error))?;
                    sign_ins += 1;
                }
                _ => return Err(self.failed(failure)),
            }
        }
    }

    fn handler(&self) -> Handler {
        Handler {
            desk: Arc::new(Desk::default()),
            abilities: self.abilities,
            identity: (CLIENT_NAME.into(), env!("CARGO_PKG_VERSION").into()),
        }
    }

    /// This server cannot be used for this reason.
    pub fn error(&self, reason: impl Into<String>) -> McpError {
        McpError {
            server: self.name.clone(),
            reason: reason.into(),
            challenge: None,
        }
    }

    fn failed(&self, failure: Failure) -> McpError {
        McpError {
            server: self.name.clone(),
            reason: failure.reason,
            challenge: failure.challenge,
        }
    }

    /// This server cannot be used because nobody is signed in.
    pub(crate) fn refused(&self, error: OAuthError) -> McpError {
        McpError {
            server: self.name.clone(),
            reason: error.to_string(),
            challenge: match error {
                OAuthError::NeedsAuthorization(challenge) => Some(challenge),
                _ => None,
            },
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

impl From<String> for Failure {
    fn from(reason: String) -> Self {
        Self {
            reason,
            challenge: None,
            may_be_legacy: false,
        }
    }
}

impl From<ClientInitializeError> for Failure {
    fn from(error: ClientInitializeError) -> Self {
        Self {
            reason: cause(&error),
            challenge: Challenge::of_connecting(&error),
            may_be_legacy: matches!(
                error,
                ClientInitializeError::ExpectedInitResult(Some(_))
                    | ClientInitializeError::NoCompatibleProtocolVersion { .. }
            ),
        }
    }
}

impl Reach {
    fn authorizer(&self) -> Option<&Arc<Authorizer>> {
        match self {
            Self::Command(_) => None,
            Self::Http { authorizer, .. } => authorizer.as_ref(),
        }
    }

    async fn connect(&self, handler: Handler, lifecycle: ClientLifecycleMode) -> Result<Connection, Failure> {
        match self {
            Self::Command(launch) => {
                let started = launch.start();
                let (mut process, transport) =
                    started.map_err(|error| format!("{} does not start: {error}", launch.name()))?;
                let transport = BoundedRequests::new(transport);
                match serve_client_with_lifecycle(handler, transport, lifecycle).await {
                    Ok(service) => Ok(Connection::new(service, Some(process), None)),
                    Err(error) => {
                        let mut failure = Failure::from(error);
                        match process.last_line().await.as_str() {
                            "" => {}
                            line => failure.reason = format!("{}; it said: {line}", failure.reason),
                        }
                        Err(failure)
                    }
                }
            }
            Self::Http {
                url,
                headers,
                client,
                authorizer,
            } => {
                let mut config = StreamableHttpClientTransportConfig::with_uri(url.as_str())
                    .custom_headers(headers.iter().cloned().collect())
                    .max_sse_event_size(MESSAGE_BYTES_MAX);
                config.retry_config = Arc::new(resume_attempts());
                let http = client.clone().map_or_else(BoundedClient::default, BoundedClient);
                let service = match authorizer {
                    None => {
                        let transport = StreamableHttpClientTransport::with_client(http, config);
                        let transport = BoundedRequests::new(transport);
                        serve_client_with_lifecycle(handler, transport, lifecycle).await
                    }
                    Some(authorizer) => {
                        let authorizer = authorizer.clone();
                        let client = WithToken { http, authorizer };
                        let transport = StreamableHttpClientTransport::with_client(client, config);
                        let transport = BoundedRequests::new(transport);
                        serve_client_with_lifecycle(handler, transport, lifecycle).await
                    }
                };
                Ok(Connection::new(service?, None, authorizer.clone()))
            }
        }
    }
}

/// How often a stream that was cut off in the middle of a call is resumed. The SDK's own default is without end: a call
/// of a server that has died would hang until its time limit.
fn resume_attempts() -> ExponentialBackoff {
    let mut attempts = ExponentialBackoff::default();
    attempts.base_duration = RESUME_PAUSE_FIRST;
    attempts.max_times = Some(RESUME_ATTEMPTS_MAX);
    attempts
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

fn cause(error: &ClientInitializeError) -> String {
    match error {
        ClientInitializeError::TransportError { error, .. } => deepest_cause(&*error.error),
        other => deepest_cause(other),
    }
}

/// The cause at the bottom: what stands above it names types of the transport.
pub(crate) fn deepest_cause(error: &(dyn std::error::Error + 'static)) -> String {
    let mut deepest = error;
    while let Some(source) = deepest.source() {
        deepest = source;
    }
    deepest.to_string()
}
