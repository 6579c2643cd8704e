//! What may be set. Defaults, file, environment and flags become one value, read once and handed down.
//!
//! `assets/toolgate.toml` shows every setting with its default; a test holds it to the types below. The name
//! of a setting in the environment follows from its place in that file.

mod a2a;
mod budgets;
mod client_tools;
mod connections;
mod console;
mod content;
mod embeddings;
pub mod environment;
mod files;
mod mcp;
mod model;
mod notifications;
mod origins;
mod outbound;
mod plans;
mod plugins;
mod postgres;
mod prices;
mod project;
mod retention;
mod rtc;
mod sessions;
mod text;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;
use serde::Deserialize;
use toolgate_engine::store::{IdentityProvider, NODE_LEASE};
use toolgate_fair::Shares;
use toolgate_kernel::agent::Secret;

pub use a2a::A2a;
pub use budgets::Budgets;
pub use client_tools::ClientTools;
pub use connections::Connections;
pub use console::Console;
pub use content::{Content, Quotas};
pub use embeddings::Embeddings;
pub use files::Files;
pub use mcp::Mcp;
pub use model::{Model, doubt};
pub use notifications::Notifications;
pub use outbound::{Images, Outside, Search};
pub use plans::Plans;
pub use plugins::Plugins;
pub use postgres::Postgres;
pub use prices::Prices;
pub use project::{DEFAULT_PROJECT, ProjectOverlay};
pub use retention::{ArchivePlace, Retention, RetentionAges};
pub use rtc::Rtc;
pub use sessions::Sessions;

/// Every setting with its default, written for people.
pub const SAMPLE: &str = include_str!("../assets/toolgate.toml");

/// Everything that may be set.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// Address to listen on.
    pub listen: String,
    /// Data directory.
    pub data: PathBuf,
    /// URL of the PostgreSQL database; without one the data is in SQLite, in the data directory.
    #[serde(deserialize_with = "text::secret")]
    pub store: Option<Secret>,
    /// What joins the nodes that share a store: the address of a Redis server, or `postgres`.
    #[serde(deserialize_with = "text::secret")]
    pub bus: Option<Secret>,
    /// A folder with the default project's agents as files.
    #[serde(deserialize_with = "text::path")]
    pub agents: Option<PathBuf>,
    /// The operator's key, which manages projects; without one nobody does.
    #[serde(deserialize_with = "text::secret")]
    pub operator_key: Option<Secret>,
    /// The default project's secret key.
    #[serde(deserialize_with = "text::secret")]
    pub secret_key: Option<Secret>,
    /// The default project's public key.
    #[serde(deserialize_with = "text::secret")]
    pub public_key: Option<Secret>,
    /// Signs the tokens of the default project's users.
    #[serde(deserialize_with = "text::secret")]
    pub jwt_secret: Option<Secret>,
    /// Encrypts the tokens of MCP servers at rest.
    #[serde(deserialize_with = "text::secret")]
    pub encryption_key: Option<Secret>,
    /// How long requests are still served after the gateway was told to stop, while it says that it is not ready.
    #[serde(deserialize_with = "text::duration")]
    pub drain_notice: Duration,
    /// How long a step under way may go on once the gateway stops.
    #[serde(deserialize_with = "text::duration")]
    pub drain: Duration,
    /// Connections to PostgreSQL.
    pub postgres: Postgres,
    /// What tokens of users say.
    pub jwt: Jwt,
    /// The HTTP door.
    pub http: Http,
    /// What requests may store.
    pub content: Content,
    /// What one user may have.
    pub quotas: Quotas,
    /// The engine.
    pub engine: Engine,
    /// Tools that requests bring.
    pub client_tools: ClientTools,
    /// Outbound network access of tools.
    pub outside: Outside,
    /// What `request` tools may send by name.
    #[serde(deserialize_with = "text::secrets")]
    pub secrets: BTreeMap<String, Secret>,
    /// Web search provider.
    pub search: Search,
    /// Image provider.
    pub images: Images,
    /// The model of agents that name none.
    pub model: Model,
    /// The model that tells what documents mean.
    pub embeddings: Embeddings,
    /// Links to files of spaces.
    pub files: Files,
    /// The web console.
    pub console: Console,
    /// Browsers that have signed in.
    pub sessions: Sessions,
    /// Prices of models.
    pub prices: Prices,
    /// What projects, their users and their agents may consume.
    pub budgets: Budgets,
    /// Where notifications go besides the space.
    pub notifications: Notifications,
    /// Limits on plans.
    pub plans: Plans,
    /// How long what has ended is kept.
    pub retention: Retention,
    /// Plugins.
    pub plugins: Plugins,
    /// MCP servers.
    pub mcp: Mcp,
    /// The A2A door.
    pub a2a: A2a,
    /// The data channel.
    pub rtc: Rtc,
    /// The vendors of models.
    pub vendors: Vendors,
    /// Logs.
    pub log: Log,
    /// Traces.
    pub telemetry: Telemetry,
    /// Settings of projects other than the gateway's own, by the project's name.
    pub projects: BTreeMap<String, ProjectOverlay>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            listen: "127.0.0.1:8787".into(),
            data: "./toolgate-data".into(),
            store: None,
            bus: None,
            agents: None,
            operator_key: None,
            secret_key: None,
            public_key: None,
            jwt_secret: None,
            encryption_key: None,
            drain_notice: Duration::ZERO,
            drain: Duration::from_secs(10),
            postgres: Postgres::default(),
            jwt: Jwt::default(),
            http: Http::default(),
            content: Content::default(),
            quotas: Quotas::default(),
            engine: Engine::default(),
            client_tools: ClientTools::default(),
            outside: Outside::default(),
            secrets: BTreeMap::new(),
            search: Search::default(),
            images: Images::default(),
            model: Model::default(),
            embeddings: Embeddings::default(),
            files: Files::default(),
            console: Console::default(),
            sessions: Sessions::default(),
            prices: Prices::default(),
            budgets: Budgets::default(),
            notifications: Notifications::default(),
            plans: Plans::default(),
            retention: Retention::default(),
            plugins: Plugins::default(),
            mcp: Mcp::default(),
            a2a: A2a::default(),
            rtc: Rtc::default(),
            vendors: Vendors::default(),
            log: Log::default(),
            telemetry: Telemetry::default(),
            projects: BTreeMap::new(),
        }
    }
}

impl Settings {
    /// What the file, when there is one, and the environment of this process say.
    pub fn of_process(file: Option<&Path>) -> anyhow::Result<Self> {
        Self::load(file, |name| std::env::var(name).ok())
    }

    /// The defaults, overlaid by `file` when there is one, overlaid by the environment.
    pub fn load(file: Option<&Path>, env: impl Fn(&str) -> Option<String>) -> anyhow::Result<Self> {
        let text = match file {
            Some(path) => std::fs::read_to_string(path)
                .with_context(|| format!("cannot read the settings in {}", path.display()))?,
            None => String::new(),
        };
        let whence = || file.map(|path| path.display().to_string()).unwrap_or_default();
        // Read into the types first: only here does an error know its line.
        toml::from_str::<Self>(&text).with_context(whence)?;
        let table = text.parse().with_context(whence)?;
        environment::overlay(table, env)
    }
}

/// What tokens of users say.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Jwt {
    /// Claim that names the user's groups.
    pub groups_claim: String,
    /// Claim that names the user's roles.
    pub roles_claim: String,
    /// Address of the published keys of an identity provider that signs tokens for the project `default`.
    #[serde(deserialize_with = "text::optional")]
    pub jwks_url: Option<String>,
    /// What `iss` of its tokens must be.
    #[serde(deserialize_with = "text::optional")]
    pub issuer: Option<String>,
    /// What `aud` of its tokens must name.
    #[serde(deserialize_with = "text::optional")]
    pub audience: Option<String>,
}

impl Jwt {
    /// The identity provider of the project `default`.
    pub fn identity_provider(&self) -> Option<IdentityProvider> {
        self.jwks_url.clone().map(|jwks_url| IdentityProvider {
            jwks_url,
            issuer: self.issuer.clone(),
            audience: self.audience.clone(),
        })
    }
}

impl Default for Jwt {
    fn default() -> Self {
        Self {
            groups_claim: "groups".into(),
            roles_claim: "roles".into(),
            jwks_url: None,
            issuer: None,
            audience: None,
        }
    }
}

/// The HTTP door.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Http {
    /// Largest request body.
    pub body_bytes_max: usize,
    /// Longest wait for the next bytes of a request body.
    #[serde(deserialize_with = "text::duration")]
    pub body_timeout: Duration,
    /// Bytes of requests and answers in memory.
    pub in_flight_bytes_max: usize,
    /// How often a silent stream says that it lives.
    #[serde(deserialize_with = "text::duration")]
    pub heartbeat: Duration,
    /// Longest wait for a run within one request.
    #[serde(deserialize_with = "text::duration")]
    pub wait_max: Duration,
    /// Origins that browsers may call from; `*` for any.
    pub origins: Vec<String>,
    /// Hosts that `/mcp` answers to besides loopback; empty for any.
    pub hosts: Vec<String>,
    /// Connections of clients.
    pub connections: Connections,
    /// Requests of one caller.
    pub rate: Rate,
}

impl Default for Http {
    fn default() -> Self {
        Self {
            body_bytes_max: 8 * 1024 * 1024,
            body_timeout: Duration::from_secs(15),
            in_flight_bytes_max: 64 << 20,
            heartbeat: Duration::from_secs(15),
            wait_max: Duration::from_secs(60),
            origins: Vec::new(),
            hosts: Vec::new(),
            connections: Connections::default(),
            rate: Rate::default(),
        }
    }
}

impl Http {
    /// Refuses origins that could never match.
    pub fn check_origins(&self) -> anyhow::Result<()> {
        origins::check(&self.origins)
    }
}

/// Requests of one secret key.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Rate {
    /// Per second, in the long run.
    pub per_second: u32,
    /// At once.
    pub burst: u32,
    /// Requests of one user.
    pub public: PublicRate,
}

impl Default for Rate {
    fn default() -> Self {
        Self {
            per_second: 1000,
            burst: 2000,
            public: PublicRate::default(),
        }
    }
}

/// Requests of one user, whichever public key it comes with.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PublicRate {
    /// Per second, in the long run.
    pub per_second: u32,
    /// At once.
    pub burst: u32,
}

impl Default for PublicRate {
    fn default() -> Self {
        Self {
            per_second: 50,
            burst: 200,
        }
    }
}

impl Rate {
    /// As access takes them.
    pub fn rates(&self) -> toolgate_access::Rates {
        let rate = |per_second, burst| toolgate_access::Rate { per_second, burst };
        toolgate_access::Rates {
            secret: rate(self.per_second, self.burst),
            public: rate(self.public.per_second, self.public.burst),
        }
    }
}

/// The engine.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Engine {
    /// Runs that may be at work at once.
    pub runs_active_max: usize,
    /// Of these, of one project; 0 for seven eighths.
    pub runs_active_per_project: usize,
    /// Of these, for one user; 0 for a quarter.
    pub runs_active_per_user: usize,
    /// Requests to models at once.
    pub model_calls_max: usize,
    /// Of these, of one project; 0 for seven eighths.
    pub model_calls_per_project: usize,
    /// Of these, for one user; 0 for a quarter.
    pub model_calls_per_user: usize,
    /// Outbound requests of tools at once.
    pub outbound_requests_max: usize,
    /// Of these, of one project; 0 for seven eighths.
    pub outbound_requests_per_project: usize,
    /// Of these, for one user; 0 for a quarter.
    pub outbound_requests_per_user: usize,
    /// Calls of one run on the gateway's side at once.
    pub parallel_calls: usize,
    /// Bytes of events that may wait for a reader before it is cut.
    pub reader_backlog_bytes: usize,
    /// How long a reader may take none of what waits for it before it is cut.
    #[serde(deserialize_with = "text::duration")]
    pub reader_stall: Duration,
    /// Stored bytes of a space that a model is given at most.
    pub history_bytes_max: usize,
    /// How long a node may be silent before others take over its runs.
    #[serde(deserialize_with = "text::duration")]
    pub node_lease: Duration,
}

impl Default for Engine {
    fn default() -> Self {
        Self {
            runs_active_max: 1024,
            runs_active_per_project: 0,
            runs_active_per_user: 0,
            model_calls_max: 1024,
            model_calls_per_project: 0,
            model_calls_per_user: 0,
            outbound_requests_max: 256,
            outbound_requests_per_project: 0,
            outbound_requests_per_user: 0,
            parallel_calls: 8,
            reader_backlog_bytes: 2 << 20,
            reader_stall: Duration::from_secs(30),
            history_bytes_max: 2 << 20,
            node_lease: NODE_LEASE,
        }
    }
}

impl Engine {
    /// Runs at work.
    pub fn runs_active(&self) -> Shares {
        shares(
            self.runs_active_max,
            self.runs_active_per_project,
            self.runs_active_per_user,
        )
    }
    /// Requests to models.
    pub fn model_calls(&self) -> Shares {
        shares(
            self.model_calls_max,
            self.model_calls_per_project,
            self.model_calls_per_user,
        )
    }
    /// Outbound requests of tools.
    pub fn outbound_requests(&self) -> Shares {
        shares(
            self.outbound_requests_max,
            self.outbound_requests_per_project,
            self.outbound_requests_per_user,
        )
    }
}

/// What all, one project and one user may take; zero for the default of the last two.
fn shares(all: usize, tenant: usize, user: usize) -> Shares {
    let all = all.max(1);
    let default = Shares::of(all);
    let or = |own: usize, default: usize| if own == 0 { default } else { own.min(all) };
    Shares {
        all,
        tenant: or(tenant, default.tenant),
        user: or(user, default.user),
    }
}

/// The vendors of models.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Vendors {
    /// Key for OpenAI.
    #[serde(deserialize_with = "text::secret")]
    pub openai_key: Option<Secret>,
    /// Key for Anthropic.
    #[serde(deserialize_with = "text::secret")]
    pub anthropic_key: Option<Secret>,
    /// Key for Gemini.
    #[serde(deserialize_with = "text::secret")]
    pub google_key: Option<Secret>,
    /// Longest wait for a connection.
    #[serde(deserialize_with = "text::duration")]
    pub connect_timeout: Duration,
    /// Longest silence: before a reply begins, and in the middle of it.
    #[serde(deserialize_with = "text::duration")]
    pub idle_timeout: Duration,
    /// How often a request is tried before the first byte of a reply.
    pub attempts: u32,
    /// How long a fast model is left alone between two reads.
    #[serde(deserialize_with = "text::duration")]
    pub pace: Duration,
    /// Speak to `http://` servers without a proxy.
    pub direct: bool,
}

impl Default for Vendors {
    fn default() -> Self {
        Self {
            openai_key: None,
            anthropic_key: None,
            google_key: None,
            connect_timeout: Duration::from_secs(10),
            idle_timeout: Duration::from_secs(300),
            attempts: 3,
            pace: Duration::from_millis(2),
            direct: true,
        }
    }
}

/// Logs.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Log {
    /// Format of log lines.
    pub format: LogFormat,
    /// Which of them, as `tracing` writes it.
    pub level: String,
}

impl Default for Log {
    fn default() -> Self {
        Self {
            format: LogFormat::Auto,
            level: "info".into(),
        }
    }
}

/// Format of log lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// Text on a terminal, JSON elsewhere.
    Auto,
    /// For people.
    Text,
    /// For programs.
    Json,
}

/// Traces.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Telemetry {
    /// Address of the OpenTelemetry collector.
    #[serde(deserialize_with = "text::optional")]
    pub otlp_endpoint: Option<String>,
    /// What they call this process.
    pub service_name: String,
}

impl Default for Telemetry {
    fn default() -> Self {
        Self {
            otlp_endpoint: None,
            service_name: "toolgate".into(),
        }
    }
}

#[cfg(test)]
mod tests;
