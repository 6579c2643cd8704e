//! What the gateway adds to a call of an MCP server's tool, and an agent that calls one beside the AI SDK's.
//!
//! One server (`echo`) is called by one `rmcp` client in three ways, in turn: directly, through the gateway, and
//! as a run of the gateway.

use std::fmt::Write;
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use rmcp::model::{CallToolRequestParams, JsonObject, ProtocolVersion};
use rmcp::service::{ClientLifecycleMode, Peer, RoleClient, RunningService, serve_client_with_lifecycle};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use tokio::task::JoinSet;

use crate::Options;
use crate::echo::TOOL;
use crate::load::{Limit, Measured, drive as drive_agent, measure};
use crate::plan::WARM_UP;
use crate::process;
use crate::protocol::{AGENT, KEY, MCP};
use crate::report::{number, quantile, table};
use crate::server::{Kind, Running, Server, UPSTREAM};
use crate::stub::ECHO_INPUT;

const CONCURRENCIES: [usize; 2] = [1, 16];
const WARM_UP_CALLS: Duration = Duration::from_secs(1);
const CALL_TIMEOUT: Duration = Duration::from_secs(60);
const MS_PER_SECOND: f64 = 1e3;

/// How the tool is called.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    /// The client speaks to the server itself.
    Direct,
    /// The gateway passes the call on and keeps nothing.
    Through,
    /// The call is a run of the gateway in a space of its own, every event synced.
    Run,
}

impl Way {
    const ALL: [Self; 3] = [Self::Direct, Self::Through, Self::Run];

    fn title(self) -> &'static str {
        match self {
            Self::Direct => "direct",
            Self::Through => "through",
            Self::Run => "run",
        }
    }
}

/// The calls of one way at one concurrency, all passes together.
struct Calls {
    way: Way,
    concurrency: usize,
    took_ms: Vec<f64>,
    seconds: f64,
    gateway_cpu_ms: f64,
}

impl Calls {
    fn p(&self, q: f64) -> f64 {
        quantile(self.took_ms.iter().copied(), q)
    }
    fn per_second(&self) -> f64 {
        self.took_ms.len() as f64 / self.seconds
    }
    fn cpu_ms(&self) -> f64 {
        self.gateway_cpu_ms / self.took_ms.len() as f64
    }
}

/// Measures and renders both tables.
pub async fn run(options: &Options) -> anyhow::Result<String> {
    let stub = Running::stub(options).await?;
    let echo = Running::echo(options).await?;
    let model = format!("http://{}/v1", stub.address);
    let tools = format!("http://{}/mcp", echo.address);
    let gateway = Server::start(Kind::Gateway, options, &model, Some(&tools)).await?;
    let aisdk = Server::start(Kind::Aisdk, options, &model, Some(&tools)).await?;

    let noise = Noise::start();
    let calls = calls(options, &gateway, &tools).await?;
    let helpers: Vec<u32> = stub.pids().into_iter().chain(echo.pids()).collect();
    let agents = agents(options, [&gateway, &aisdk], &helpers).await?;

    let mut out = String::new();
    if cfg!(debug_assertions) {
        out += "DEBUG BUILD of the bench, of its MCP server and, unless GATEWAY named another, of the gateway: only ratios mean something.\n";
    }
    writeln!(
        out,
        "gateway {}; the machine was busy with {:.1} cores on average, the bench included\n",
        options.gateway.display(),
        noise.cores()
    )?;
    out += &render_calls(&calls);
    out += &render_agents(&agents);
    Ok(out)
}

/// How busy the whole machine has been.
struct Noise {
    begun: Instant,
    before: f64,
}

impl Noise {
    fn start() -> Self {
        Self {
            begun: Instant::now(),
            before: process::machine(),
        }
    }
    fn cores(&self) -> f64 {
        (process::machine() - self.before) / self.begun.elapsed().as_secs_f64()
    }
}

async fn calls(options: &Options, gateway: &Server, tools: &str) -> anyhow::Result<Vec<Calls>> {
    let at = gateway.process.address;
    let mut clients = Vec::new();
    for way in Way::ALL {
        let url = match way {
            Way::Direct => tools.to_owned(),
            Way::Through => format!("http://{at}/mcp/servers/{UPSTREAM}"),
            Way::Run => format!("http://{at}/mcp/agents/{AGENT}"),
        };
        let client = connect(&url, way)
            .await
            .with_context(|| format!("connect to {url}"))?;
        drive(&client, 1, WARM_UP_CALLS)
            .await
            .with_context(|| format!("a call by {url}"))?;
        clients.push((way, client));
    }
    let mut all = Vec::new();
    for concurrency in CONCURRENCIES {
        all.extend(Way::ALL.map(|way| Calls {
            way,
            concurrency,
            took_ms: Vec::new(),
            seconds: 0.0,
            gateway_cpu_ms: 0.0,
        }));
    }
    let pids = gateway.process.pids();
    for _ in 0..options.passes {
        for cell in &mut all {
            let (_, client) = clients
                .iter()
                .find(|(way, _)| *way == cell.way)
                .context("a client")?;
            let (begun, before) = (Instant::now(), process::cpu(&pids));
            let took = drive(client, cell.concurrency, Duration::from_secs_f64(options.seconds)).await?;
            cell.gateway_cpu_ms += (process::cpu(&pids) - before) * MS_PER_SECOND;
            cell.seconds += begun.elapsed().as_secs_f64();
            cell.took_ms.extend(took);
        }
    }
    Ok(all)
}

async fn connect(url: &str, way: Way) -> anyhow::Result<RunningService<RoleClient, ()>> {
    let mut config = StreamableHttpClientTransportConfig::with_uri(url);
    if way != Way::Direct {
        config = config.auth_header(KEY);
    }
    let lifecycle = ClientLifecycleMode::Discover {
        preferred_versions: vec![ProtocolVersion::V_2026_07_28],
    };
    let transport = StreamableHttpClientTransport::from_config(config);
    Ok(serve_client_with_lifecycle((), transport, lifecycle).await?)
}

/// The milliseconds of each call; every caller starts its next call when the one before has ended.
async fn drive(peer: &Peer<RoleClient>, concurrency: usize, time: Duration) -> anyhow::Result<Vec<f64>> {
    let begun = Instant::now();
    let input: JsonObject = serde_json::from_str(ECHO_INPUT)?;
    let mut callers = JoinSet::new();
    for _ in 0..concurrency {
        let (peer, input) = (peer.clone(), input.clone());
        callers.spawn_local(async move {
            let mut took = Vec::new();
            while begun.elapsed() < time {
                let started = Instant::now();
                tokio::time::timeout(CALL_TIMEOUT, call(&peer, &input))
                    .await
                    .context("the call takes too long")??;
                took.push(started.elapsed().as_secs_f64() * MS_PER_SECOND);
            }
            anyhow::Ok(took)
        });
    }
    let mut all = Vec::new();
    while let Some(took) = callers.join_next().await {
        all.extend(took??);
    }
    Ok(all)
}

/// One call, verified.
async fn call(peer: &Peer<RoleClient>, input: &JsonObject) -> anyhow::Result<()> {
    let request = CallToolRequestParams::new(TOOL).with_arguments(input.clone());
    let result = peer.call_tool(request).await?;
    let text = result.content.first().and_then(|block| block.as_text());
    let text = text.with_context(|| format!("no text in {result:?}"))?;
    let output: JsonObject = serde_json::from_str(&text.text).with_context(|| text.text.clone())?;
    ensure!(output == *input, "the tool answered {}", text.text);
    Ok(())
}

/// The same agent on both servers in turn, each pass by itself.
async fn agents(options: &Options, servers: [&Server; 2], helpers: &[u32]) -> anyhow::Result<Vec<Measured>> {
    let limit = Limit {
        time: Duration::from_secs_f64(options.seconds),
        runs: usize::MAX,
    };
    let mut all = Vec::new();
    for server in servers {
        drive_agent(server, &MCP, 1, WARM_UP).await;
    }
    for _ in 0..options.passes {
        for concurrency in CONCURRENCIES {
            for server in servers {
                let cell = measure(server, helpers, &MCP, concurrency, limit).await;
                if let Some(fault) = cell.load.faults.first() {
                    bail!("{}: {fault}", server.kind.title());
                }
                all.push(cell);
            }
        }
    }
    Ok(all)
}

fn render_calls(all: &[Calls]) -> String {
    let head =
        "at|way|calls/s|p50 ms|p95 ms|gateway CPU ms/call|calls/s to direct|p50 to direct|p95 to direct";
    let mut rows = vec![head.split('|').map(String::from).collect()];
    for cell in all {
        let direct = all
            .iter()
            .find(|other| other.way == Way::Direct && other.concurrency == cell.concurrency);
        let times = |value: fn(&Calls) -> f64| {
            direct.map_or_else(String::new, |direct| {
                format!("{:.2}", value(cell) / value(direct))
            })
        };
        rows.push(vec![
            cell.concurrency.to_string(),
            cell.way.title().into(),
            number(cell.per_second()),
            number(cell.p(0.5)),
            number(cell.p(0.95)),
            number(cell.cpu_ms()),
            times(Calls::per_second),
            times(|calls| calls.p(0.5)),
            times(|calls| calls.p(0.95)),
        ]);
    }
    format!("A call of one MCP tool by the rmcp client\n\n{}\n", table(&rows))
}

fn render_agents(all: &[Measured]) -> String {
    let head = "at|agent|runs/s|p50 ms|CPU ms/run|runs/s to AI SDK|p50 to AI SDK|CPU to AI SDK";
    let mut rows = vec![head.split('|').map(String::from).collect()];
    for concurrency in CONCURRENCIES {
        let peer = agent_figures(all, Kind::Aisdk, concurrency);
        for kind in [Kind::Gateway, Kind::Aisdk] {
            let own = agent_figures(all, kind, concurrency);
            let mut row = vec![concurrency.to_string(), kind.title().into()];
            row.extend(own.map(number));
            row.extend(
                own.iter()
                    .zip(peer)
                    .map(|(own, peer)| format!("{:.2}", own / peer)),
            );
            rows.push(row);
        }
    }
    format!("An agent: {}\n\n{}\n", MCP.title, table(&rows))
}

/// Runs per second, p50 and CPU per run, over all passes.
fn agent_figures(all: &[Measured], kind: Kind, concurrency: usize) -> [f64; 3] {
    let cells = || {
        all.iter()
            .filter(move |cell| cell.server == kind && cell.concurrency == concurrency)
    };
    let runs = |cell: &Measured| cell.load.timings.len() as f64;
    let count: f64 = cells().map(runs).sum();
    let seconds: f64 = cells().map(|cell| cell.load.seconds).sum();
    let cpu: f64 = cells().map(|cell| cell.cpu_ms_per_run * runs(cell)).sum();
    let whole = cells().flat_map(|cell| &cell.load.timings);
    let p50 = quantile(
        whole.map(|timing| timing.whole.as_secs_f64() * MS_PER_SECOND),
        0.5,
    );
    [count / seconds, p50, cpu / count]
}
