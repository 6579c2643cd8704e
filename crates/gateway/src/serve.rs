//! `toolgate serve`: puts the parts together, runs them, and takes them down in order.

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use anyhow::{Context, anyhow, bail};
use futures_util::FutureExt as _;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use toolgate_a2a_push::{PushParts, Pusher};
use toolgate_access::file_links::FileLinks;
use toolgate_access::{Access, AccessSettings, Auth, ClaimNames, Maker, keys};
use toolgate_console::HAS_CONSOLE;
use toolgate_door_a2a::{A2aParts, conformance};
use toolgate_door_http::Resources;
use toolgate_door_mcp::through::{Limits, Through};
use toolgate_door_mcp::{Entrance, McpParts};
use toolgate_door_rtc::RtcPort;
use toolgate_egress::Egress;
use toolgate_engine::Engine;
use toolgate_engine::bus::Bus;
use toolgate_engine::clock::SystemClock;
use toolgate_engine::deletion::Deletions;
use toolgate_engine::feed::BacklogLimits;
use toolgate_engine::outbox::Outbox;
use toolgate_engine::push_configs::PushConfigs;
use toolgate_engine::record_updater::RecordUpdater;
use toolgate_engine::records::Records;
use toolgate_engine::retention::Retention;
use toolgate_engine::sources::Sources;
use toolgate_engine::store::{Directory, Store};
use toolgate_engine::workspace::{Workspace, WorkspaceLimits};
use toolgate_http::in_flight::USER_PART;
use toolgate_http::meter::{Meter, MeterLimits};
use toolgate_http::session_cookie::SessionCookie;
use toolgate_http::{Http, HttpSettings, Shared};
use toolgate_kernel::id::{NodeId, ProjectId};
use toolgate_models::{ModelSettings, Models};
use toolgate_plugins::{PluginSource, Plugins, PluginsParts};
use toolgate_remote_agents::{RemoteAgentParts, RemoteAgents};
use toolgate_sandbox::{Compute, Sandbox, SandboxOptions};
use toolgate_sources::oauth::{EncryptionKey, SignInParts};
use toolgate_sources::{McpServers, McpServersParts, McpSource, Spawning};
use toolgate_store::Storage;
use toolgate_tools::knowledge::Library;
use toolgate_tools::notify::Deliveries;
use toolgate_tools::readable::{READER, Reader};
use toolgate_tools::{Editor, Planner, Toolkit};
use toolgate_worker::Workers;

use crate::agents::Folder;
use crate::bus::{NodeBus, share_rates};
use crate::commands::warnings_of_folder;
use crate::data::DataDir;
use crate::exposed::ExposedServers;
use crate::listen::Ends;
use crate::projects::ProjectResolver;
use crate::settings::{self, Settings};
use crate::storage;
use crate::telemetry::Telemetry;
use crate::welcome::{ConsoleLink, NO_CONSOLE, Welcome};
use crate::{doors, listen, output, project};

/// How much longer than the engine everything together may take to drain.
const DRAIN_SLACK: Duration = Duration::from_secs(2);
/// Longest wait for the store to close once everything else has ended.
const STORE_CLOSE: Duration = Duration::from_secs(5);

/// Whether callers need a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Entry {
    /// Every caller shows a key.
    Keys,
    /// Everybody is the default project's backend.
    Open,
}

/// What becomes of a start on a database that is damaged, half imported or gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Damage {
    /// It is refused.
    Refused,
    /// It goes on, without looking for damage.
    Accepted,
}

/// Serves until a signal asks it to stop, then drains. An error says what to do about it.
pub fn run(settings: Settings, entry: Entry, damage: Damage) -> anyhow::Result<()> {
    let telemetry = Telemetry::start(&settings.log, &settings.telemetry)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let served = runtime.block_on(serve(&settings, entry, damage, &telemetry));
    // Whatever still runs after the drain has had its time.
    runtime.shutdown_background();
    telemetry.flush();
    served
}

async fn serve(
    settings: &Settings,
    entry: Entry,
    damage: Damage,
    telemetry: &Telemetry,
) -> anyhow::Result<()> {
    let signals = Signals::listen()?;
    toolgate_worker::keep_descriptors_from_workers();
    // Bound before anything is made: a second start by mistake must not print keys and then fail.
    let listener = bind(&settings.listen).await?;
    let address = listener.local_addr()?;
    if entry == Entry::Open && !address.ip().is_loopback() {
        bail!(
            "--no-auth lets everybody in, so it works on loopback only; {address} is not, use --listen 127.0.0.1:8787"
        );
    }
    let rtc = settings.rtc.bind(address).await?;
    let model = settings.model.address()?;
    if let Some(folder) = &settings.agents {
        Folder::check(folder)?;
        // Before the keys, which are shown once: who sees that a file is wrong may start again.
        output::print(&warnings_of_folder(folder, settings).await?)?;
    }
    let data = DataDir::open(&settings.data)?;
    data.check_writable()?;
    let storage::Opened {
        store,
        place,
        starting,
    } = storage::open(settings, &data, damage).await?;
    data.sign();
    let workspace = Workspace::new(store.clone(), WorkspaceLimits::default());
    let embeddings = settings.embeddings.model()?;
    let program = std::env::current_exe().context("the gateway's own program, which reads documents")?;
    let own_program = program.clone();
    let sandbox = Sandbox::new(program.clone(), SandboxOptions::default());
    let sandbox_lacks = sandbox_lacks(&sandbox).await;
    let workers = Workers::new(program, READER);
    let reader = Arc::new(Reader::in_workers(workers));
    let egress = Egress::with_requests(settings.engine.outbound_requests());
    let library = Library::new(store.clone(), reader.clone());
    let knowledge = Arc::new(match embeddings {
        Some(model) => library.with_embeddings(model, &egress),
        None => library,
    });
    let outbox = Arc::new(Outbox::new(store.clone(), Arc::new(SystemClock)));
    let channels = settings.notifications.channels()?;
    let deliveries = Arc::new(Deliveries::new(outbox.clone(), channels, &egress));
    let projects = Arc::new(ProjectResolver::new(settings, store.clone())?);
    let tools = Toolkit::standard(toolgate_tools::Parts {
        store: store.clone(),
        records: store.clone(),
        plans: settings.plans.limits(),
        egress: egress.clone(),
        outbound: projects.clone(),
        workspace: workspace.clone(),
        knowledge: knowledge.clone(),
        deliveries: deliveries.clone(),
        reader,
    });
    let plugins = Plugins::new(PluginsParts {
        records: store.clone(),
        clock: Arc::new(SystemClock),
        resolver: projects.clone(),
        egress: egress.clone(),
        engine: env!("CARGO_PKG_VERSION")
            .parse()
            .context("the gateway's own version")?,
    });
    let of_plugins = Arc::new(PluginSource::new(plugins.clone(), sandbox.clone()));
    let key = storage::encryption_key(settings, &data, &*store).await?;
    let sign_ins = sign_ins(settings, key, address)?;
    let mcp = mcp_servers(
        store.clone(),
        projects.clone(),
        egress.clone(),
        &workspace,
        &own_program,
        settings,
        sign_ins,
    );
    let of_servers = Arc::new(McpSource::new(mcp.clone()));
    let of_remote_agents = Arc::new(RemoteAgents::new(RemoteAgentParts {
        records: store.clone(),
        clock: Arc::new(SystemClock),
        egress: egress.clone(),
        outbound: projects.clone(),
        workspace: workspace.clone(),
    }));
    let sources = sources(tools, sandbox)
        .with(of_plugins)
        .with(of_servers)
        .with(of_remote_agents);
    let (push_egress, push_outbound) = (egress.clone(), projects.clone());
    let rules = projects.clone();
    let node = storage::node(settings, &data)?;
    let bus = NodeBus::join(settings).await?;
    let engine = engine(store.clone(), bus.get(), sources, projects, node.id, settings);
    let project = greet(&engine, &*store, settings, address, &place).await?;
    drop(starting);
    if let Some(model) = model
        && let Some(doubt) = settings::doubt(&model, address.port(), settings.vendors.direct).await
    {
        tracing::warn!("the setting model.base_url (TOOLGATE_MODEL_BASE_URL) may be wrong: {doubt}");
    }
    settings.warn_of_unpriced_models();
    if settings.a2a.conformance_agent {
        let agent = conformance::AGENT.parse().expect("a name");
        engine
            .put_agent(project, &agent, conformance::config().into())
            .await?;
    }
    mcp.warm(project).await?;

    let agents = match &settings.agents {
        Some(folder) => Some(Folder::open(folder, engine.clone(), store.clone(), project).await?),
        None => None,
    };

    let auth = match entry {
        Entry::Keys => Auth::Keys,
        Entry::Open => Auth::Open(project),
    };
    let stop = CancellationToken::new();
    let public_url = settings.files.address()?;
    let cookie = SessionCookie::new(address.port(), public_url.as_deref());
    let access = access(store.clone(), store.clone(), &engine, auth, egress, settings)?;
    if settings.console.enabled {
        let url = public_url.unwrap_or_else(|| url(address));
        let words = match HAS_CONSOLE {
            true => console_link(&access, entry, project, &url).await?.to_string(),
            false => NO_CONSOLE.to_owned(),
        };
        output::print(&words)?;
    }
    let leaving = CancellationToken::new();
    let ends = Ends {
        leaving: leaving.clone(),
        stop: stop.clone(),
    };
    let shared = shared(engine.clone(), access, cookie, settings, ends.clone());
    let rates = share_rates(shared.clone(), stop.clone());
    let mcp_door = McpParts {
        workspace: workspace.clone(),
        records: store.clone(),
        entrance: Entrance {
            public_url: settings.files.address()?,
            hosts: settings.http.hosts.clone(),
            authorization_servers: settings.jwt.issuer.clone().into_iter().collect(),
        },
    };
    let deletions = Arc::new(Deletions::new(engine.clone(), store.clone(), rules.clone()));
    let retention = Retention::new(
        engine.clone(),
        deletions.clone(),
        rules,
        settings.retention.apply_every,
    );
    let resources = Resources {
        records: store.clone(),
        deletions: deletions.clone(),
        state: Arc::new(Editor {
            updater: RecordUpdater::new(store.clone()),
            plans: settings.plans.limits(),
        }),
        workspace,
        links: FileLinks::new(store.clone(), settings.files.links()),
        public_url: settings.files.address()?,
        knowledge: knowledge.clone(),
        plugins,
        mcp: mcp.clone(),
        outbox,
        metrics: telemetry.figures(),
        openapi: LazyLock::new(doors::openapi),
        first_agent: project::first_agent(),
        prices: settings.prices.told(),
        sandbox_lacks,
    };
    let through = Through::new(Arc::new(ExposedServers(mcp.clone())), Limits::default());
    let push_configs = PushConfigs::new(store.clone(), Arc::new(SystemClock));
    let pusher = Pusher::new(PushParts {
        engine: engine.clone(),
        directory: store.clone(),
        configs: push_configs.clone(),
        egress: push_egress,
        outbound: push_outbound,
        secret: settings.a2a.push_secret.clone(),
    });
    let a2a_door = A2aParts {
        default_project: project,
        public_url: settings.files.address()?,
        push: Some(push_configs),
        settings: settings.a2a.door()?,
    };
    let door = doors::router(
        shared.clone(),
        resources,
        mcp_door,
        through,
        a2a_door,
        rtc.as_ref().map(RtcPort::door),
        settings.console.enabled,
    );
    let upkeep = AbortOnDropHandle::new(tokio::spawn(telemetry.upkeep()));
    tracing::info!(%address, access = ?entry, "ready");
    let planner = Planner::new(engine.clone(), store.clone(), settings.plans.limits());
    let limits = settings.http.connections.limits();
    let mut parts = parts(engine, deliveries, &stop);
    parts.spawn(pusher.run(stop.clone()).map(Ok));
    parts.spawn(listen::serve(listener, door, limits, ends).map(Ok));
    parts.spawn(rates.map(Ok));
    parts.spawn(planner.watch(stop.clone()).map(Ok));
    if let Some(rtc) = rtc {
        tracing::info!(addresses = ?rtc.candidates(), "data channels are answered");
        parts.spawn(rtc.run(shared, stop.clone()).map(Ok));
    }
    until_stopped(
        &mut parts,
        &stop,
        |stop| async move { deletions.work(stop).await },
    );
    until_stopped(
        &mut parts,
        &stop,
        |stop| async move { retention.work(stop).await },
    );
    until_stopped(&mut parts, &stop, |stop| async move {
        knowledge.upkeep(&SystemClock, stop).await;
    });
    until_stopped(&mut parts, &stop, |stop| async move { mcp.run(stop).await });
    if let Some(agents) = agents {
        parts.spawn(agents.watch(stop.clone()).map(Ok));
    }
    let notice = Notice {
        leaving,
        lasts: settings.drain_notice,
    };
    until_signalled(parts, notice, stop, signals, settings.drain).await?;
    bus.leave().await;

    drop(upkeep);
    if tokio::time::timeout(STORE_CLOSE, store.close()).await.is_err() {
        tracing::warn!("the store did not close in time; what was acknowledged is stored");
    }
    data.unsign();
    tracing::info!("stopped");
    Ok(())
}

/// Says where the gateway is, makes what the project still needs, and shows it.
async fn greet(
    engine: &Engine,
    directory: &dyn Directory,
    settings: &Settings,
    address: SocketAddr,
    place: &str,
) -> anyhow::Result<ProjectId> {
    let url = url(address);
    // Nobody reads on behind a pipe that was closed, as by `head`: the gateway serves all the same.
    output::print(&format!(
        "Toolgate {} listens on {url}, data in {place}\nModel: {}\n",
        env!("CARGO_PKG_VERSION"),
        settings.model.sentence()
    ))?;
    project::ensure(engine, directory, settings, |fresh| {
        output::print(&Welcome { fresh, url: &url }.to_string()).map(drop)
    })
    .await
}

/// What to open in a browser: with a login code that is good once, unless everybody is let in anyway.
async fn console_link(
    access: &Access,
    entry: Entry,
    project: ProjectId,
    url: &str,
) -> anyhow::Result<ConsoleLink> {
    let code = match entry {
        Entry::Keys => Some(access.make_login_code(project, Maker::Start).await?.code),
        Entry::Open => None,
    };
    Ok(ConsoleLink {
        url: url.to_owned(),
        code,
    })
}

type Parts = JoinSet<anyhow::Result<()>>;

/// Starts what runs until `stop` fires.
fn parts(engine: Engine, deliveries: Arc<Deliveries>, stop: &CancellationToken) -> Parts {
    let mut parts = JoinSet::new();
    until_stopped(&mut parts, stop, |stop| async move { engine.drive(stop).await });
    until_stopped(
        &mut parts,
        stop,
        |stop| async move { deliveries.work(stop).await },
    );
    parts
}

/// Starts a part that cannot fail.
fn until_stopped<W: Future<Output = ()> + Send + 'static>(
    parts: &mut Parts,
    stop: &CancellationToken,
    work: impl FnOnce(CancellationToken) -> W,
) {
    parts.spawn(work(stop.clone()).map(Ok));
}

/// Tells balancers that the gateway goes.
struct Notice {
    leaving: CancellationToken,
    /// How long requests are still served.
    lasts: Duration,
}

/// Runs the parts until a signal comes or one of them ends, then drains them. A second signal ends the wait.
async fn until_signalled(
    mut parts: Parts,
    notice: Notice,
    stop: CancellationToken,
    mut signals: Signals,
    limit: Duration,
) -> anyhow::Result<()> {
    let ended = tokio::select! {
        name = signals.next() => {
            tracing::info!(signal = name, notice = ?notice.lasts, "draining");
            notice.leaving.cancel();
            // A second signal ends the notice.
            let _ = tokio::time::timeout(notice.lasts, signals.next()).await;
            Ok(())
        }
        part = parts.join_next() => Err(early_end(part)),
    };
    stop.cancel();
    let drained = tokio::select! {
        drained = drain(parts, limit + DRAIN_SLACK) => drained,
        name = signals.next() => Err(anyhow!("stopped at once by a second {name}; what was acknowledged is stored")),
    };
    ended.and(drained)
}

/// Waits for every part, but no longer than `limit`.
async fn drain(mut parts: Parts, limit: Duration) -> anyhow::Result<()> {
    let all = async {
        let mut first = Ok(());
        while let Some(ended) = parts.join_next().await {
            first = first.and(ended.map_err(anyhow::Error::from).flatten());
        }
        first
    };
    tokio::time::timeout(limit, all).await.unwrap_or_else(|_| {
        tracing::warn!(?limit, "some requests did not end in time and are cut");
        Ok(())
    })
}

fn early_end(part: Option<Result<anyhow::Result<()>, tokio::task::JoinError>>) -> anyhow::Error {
    match part {
        Some(Err(panic)) => anyhow!(panic).context("a part of the gateway failed"),
        Some(Ok(Err(error))) => error,
        Some(Ok(Ok(()))) | None => anyhow!("a part of the gateway ended by itself"),
    }
}

async fn bind(listen: &str) -> anyhow::Result<TcpListener> {
    TcpListener::bind(listen).await.map_err(|error| {
        let advice = match error.kind() {
            ErrorKind::AddrInUse => {
                "something listens there already; stop it, or choose another address with --listen"
            }
            ErrorKind::PermissionDenied => "this user may not; choose a port above 1023 with --listen",
            ErrorKind::AddrNotAvailable => "this machine has no such address; try --listen 127.0.0.1:8787",
            _ => "expected an address like 127.0.0.1:8787",
        };
        anyhow!(error).context(format!("cannot listen on {listen}: {advice}"))
    })
}

/// Where a person on this machine reaches `address`.
fn url(address: SocketAddr) -> String {
    match address.ip().is_unspecified() {
        true => format!("http://localhost:{}", address.port()),
        false => format!("http://{address}"),
    }
}

/// Every tool source of the gateway: a new one is a line here.
pub(crate) fn sources(tools: Toolkit, sandbox: Sandbox) -> Sources {
    tools.sources().with(Arc::new(Compute::new(sandbox)))
}

/// The MCP servers of projects, kept by this program.
fn mcp_servers(
    records: Arc<dyn Storage>,
    resolver: Arc<ProjectResolver>,
    egress: Egress,
    workspace: &Workspace,
    own_program: &Path,
    settings: &Settings,
    sign_ins: SignInParts,
) -> McpServers {
    McpServers::new(McpServersParts {
        records,
        clock: Arc::new(SystemClock),
        resolver,
        egress,
        spawning: Spawning {
            keeper: Some(own_program.to_owned()),
            environment: std::env::vars_os().collect(),
            limits: settings.mcp.processes(),
        },
        workspace: workspace.clone(),
        sign_ins: Some(sign_ins),
    })
}

/// What sign-ins to MCP servers need: a key, and the address that browsers come back to.
fn sign_ins(settings: &Settings, key: EncryptionKey, address: SocketAddr) -> anyhow::Result<SignInParts> {
    let reached = match address.ip().is_unspecified() {
        true => format!("http://localhost:{}", address.port()),
        false => format!("http://{address}"),
    };
    Ok(SignInParts {
        key,
        public_url: settings.files.address()?.unwrap_or(reached),
    })
}

/// The protections of the sandbox that this machine lacks. Whoever runs the gateway is told at the start.
async fn sandbox_lacks(sandbox: &Sandbox) -> Vec<String> {
    let protection = match sandbox.protection().await {
        Ok(protection) => protection,
        Err(error) => {
            tracing::warn!(%error, "the sandbox cannot be tried: calls of `compute` tools and plugins may fail");
            return vec!["worker".into()];
        }
    };
    for (name, reason) in protection.missing() {
        tracing::warn!(
            protection = name,
            reason,
            "code in the sandbox runs without one of its protections"
        );
    }
    protection
        .missing()
        .into_iter()
        .map(|(name, _)| name.into())
        .collect()
}

fn engine(
    store: Arc<dyn Store>,
    bus: Arc<dyn Bus>,
    tools: Sources,
    projects: Arc<ProjectResolver>,
    node: NodeId,
    settings: &Settings,
) -> Engine {
    let vendors = &settings.vendors;
    let models = Models::new(ModelSettings {
        openai_key: vendors.openai_key.clone(),
        anthropic_key: vendors.anthropic_key.clone(),
        google_key: vendors.google_key.clone(),
        connect_timeout: vendors.connect_timeout,
        idle_timeout: vendors.idle_timeout,
        attempts: vendors.attempts,
        pace: vendors.pace,
        direct: vendors.direct,
    });
    let parts = toolgate_engine::Parts {
        store,
        model: Arc::new(models),
        tools,
        clock: Arc::new(SystemClock),
        bus,
    };
    let settings = toolgate_engine::Settings {
        node,
        runs_active: settings.engine.runs_active(),
        model_calls: settings.engine.model_calls(),
        parallel_calls: settings.engine.parallel_calls,
        reader_backlog: BacklogLimits {
            bytes: settings.engine.reader_backlog_bytes,
            stall: settings.engine.reader_stall,
        },
        history_bytes_max: settings.engine.history_bytes_max,
        quotas: settings.quotas.limits(),
        drain: settings.drain,
        node_lease: settings.engine.node_lease,
        projects,
        always_evict: false,
    };
    Engine::new(parts, settings)
}

fn access(
    store: Arc<dyn Store>,
    records: Arc<dyn Records>,
    engine: &Engine,
    auth: Auth,
    egress: Egress,
    settings: &Settings,
) -> anyhow::Result<Access> {
    if let Some(key) = &settings.operator_key {
        keys::check_operator(key.expose())
            .map_err(|reason| anyhow!("the key in TOOLGATE_OPERATOR_KEY will not do: {reason}"))?;
    }
    let settings = AccessSettings {
        auth,
        rate: settings.http.rate.rates(),
        claims: ClaimNames {
            groups: settings.jwt.groups_claim.clone(),
            roles: settings.jwt.roles_claim.clone(),
        },
        operator_key: settings.operator_key.clone(),
        egress,
        records,
        sessions: settings.sessions.limits(),
    };
    let revocations = engine.revocations().clone();
    Ok(Access::new(
        store.clone(),
        store,
        Arc::new(SystemClock),
        revocations,
        settings,
    ))
}

/// What the HTTP doors share.
fn shared(
    engine: Engine,
    access: Access,
    session_cookie: SessionCookie,
    settings: &Settings,
    ends: Ends,
) -> Shared {
    Arc::new(Http {
        engine,
        access,
        in_flight: Meter::new(MeterLimits {
            all: settings.http.in_flight_bytes_max,
            user: (settings.http.in_flight_bytes_max / USER_PART).max(settings.http.body_bytes_max),
        }),
        streams: Meter::new(MeterLimits {
            all: usize::MAX,
            user: settings.quotas.streams,
        }),
        settings: HttpSettings {
            body_bytes_max: settings.http.body_bytes_max,
            body_timeout: settings.http.body_timeout,
            content: settings.content.limits(),
            heartbeat: settings.http.heartbeat,
            wait_max: settings.http.wait_max,
            origins: settings.http.origins.clone(),
            session_cookie,
            leaving: ends.leaving,
            stop: ends.stop,
        },
    })
}

/// The signals that ask the process to stop.
struct Signals {
    terminate: tokio::signal::unix::Signal,
    interrupt: tokio::signal::unix::Signal,
}

impl Signals {
    /// From now on they no longer end the process by themselves.
    fn listen() -> anyhow::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }

    /// Waits for one and gives its name.
    async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.terminate.recv() => "SIGTERM",
            _ = self.interrupt.recv() => "SIGINT",
        }
    }
}
