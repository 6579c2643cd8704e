//! What is measured, in which order.

use std::fmt::{self, Display, Formatter};
use std::time::Duration;

use anyhow::Context;

use crate::Options;
use crate::load::{Limit, Measured, drive, measure, pause};
use crate::process;
use crate::protocol::{AGENT, Client, PAUSING, SCENARIOS, WINDOWED_AGENT};
use crate::report::number;
use crate::server::{Kind, Running, Server};
use crate::worst;

pub const CONCURRENCIES: [usize; 3] = [1, 16, 64];
/// Earlier messages in a space.
pub const HISTORIES: [usize; 4] = [10, 100, 1_000, 10_000];
/// Up to so many they are said in runs; more of them are posted, which is faster.
const TALKED_MAX: usize = 1_000;
/// A just-in-time compiler has seen the code after so many runs.
pub const WARM_UP: Limit = Limit {
    time: Duration::from_secs(15),
    runs: 600,
};
const WARM_UP_SCENARIO: Limit = Limit {
    time: Duration::from_millis(700),
    runs: 600,
};
/// Long enough for allocators and collectors to give back what they mean to.
const REST: Duration = Duration::from_secs(2);
/// Paused runs that are resumed, as proof that they can be.
const RESUMED: usize = 200;
/// Spaces with a history.
const SPACES: usize = 8;
/// Runs measured in each space. Each adds two messages; the middle one sees the history that is named.
const RUNS_PER_SPACE: usize = 9;

/// Everything that was found out.
#[derive(Default)]
pub struct Findings {
    pub cells: Vec<Measured>,
    /// Resident MiB of a server that has served nothing yet.
    pub idle: Vec<(Kind, f64)>,
    pub paused: Option<PausedRuns>,
    /// Most MiB that the gateway used under the worst allowed requests.
    pub worst: Option<f64>,
    /// Earlier messages, and the CPU per run in ms.
    pub history: Vec<(usize, f64)>,
    /// The same of an agent with a context window.
    pub windowed_history: Vec<(usize, f64)>,
    /// The same of the baseline.
    pub baseline_history: Vec<(usize, f64)>,
}

/// The gateway's memory before and with runs that wait, and what they take of the disk, in MiB.
pub struct PausedRuns {
    pub count: usize,
    pub before: f64,
    pub with: f64,
    pub disk: f64,
    pub resumed: usize,
}

impl Display for PausedRuns {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let per_run = self.disk * 1024.0 / self.count as f64;
        writeln!(
            f,
            "gateway with {} paused runs: {} MiB, {} MiB before; {} MiB of disk, {} KiB per run; {} of them resumed",
            self.count,
            number(self.with),
            number(self.before),
            number(self.disk),
            number(per_run),
            self.resumed
        )
    }
}

impl Findings {
    /// Whether every run of the gateway itself was right. What goes wrong at a peer is told, and is the peer's.
    pub fn gateway_is_right(&self) -> bool {
        let of_gateway = |cell: &&Measured| cell.server == Kind::Gateway;
        self.cells
            .iter()
            .filter(of_gateway)
            .all(|cell| cell.load.faults.is_empty())
    }

    /// Every run that did not go as it should.
    pub fn faults(&self) -> impl Iterator<Item = String> {
        self.cells.iter().flat_map(|cell| {
            let place = format!(
                "{} {} at {}",
                cell.server.title(),
                cell.scenario,
                cell.concurrency
            );
            cell.load
                .faults
                .iter()
                .map(move |fault| format!("{place}: {fault}"))
        })
    }
}

pub async fn run(options: &Options) -> anyhow::Result<Findings> {
    let stub = Running::stub(options).await?;
    let model = format!("http://{}/v1", stub.address);
    let mut findings = Findings::default();
    let mut servers = Vec::new();
    for &kind in &options.servers {
        let server = Server::start(kind, options, &model, None).await?;
        tokio::time::sleep(REST).await;
        findings
            .idle
            .push((kind, process::memory(&server.process.pids())));
        servers.push(server);
    }
    check(&servers).await?;
    if options.check {
        return Ok(findings);
    }
    cells(options, &stub, &servers, &mut findings).await;
    drop(servers);
    if options.servers.contains(&Kind::Gateway) {
        findings.paused = Some(paused(options, &model).await.context("paused runs")?);
        let server = Server::start(Kind::Gateway, options, &model, None).await?;
        let peak = worst::peak(&server).await.context("the worst requests")?;
        eprintln!("the worst allowed requests: {peak:.1} MiB at most");
        findings.worst = Some(peak);
        let long = "long conversations";
        let of = |kind, agent| history(kind, agent, options, &model);
        findings.history = of(Kind::Gateway, AGENT).await.context(long)?;
        findings.windowed_history = of(Kind::Gateway, WINDOWED_AGENT).await.context(long)?;
        if options.baseline.is_some() {
            findings.baseline_history = of(Kind::Baseline, AGENT).await.context(long)?;
        }
    }
    Ok(findings)
}

/// Runs each scenario once on each server: a mistake shows before minutes are spent.
async fn check(servers: &[Server]) -> anyhow::Result<()> {
    for server in servers {
        let mut client = Client::new(server.process.address, server.kind.protocol());
        for scenario in &SCENARIOS {
            let place = || format!("{} {}", server.kind.title(), scenario.name);
            let timing = client.run(scenario).await.with_context(place)?;
            eprintln!(
                "{:>8} {} {:>8.2} ms",
                server.kind.title(),
                scenario.name,
                timing.whole.as_secs_f64() * 1e3
            );
        }
    }
    Ok(())
}

/// All servers are up and take turns cell by cell, so that what disturbs one disturbs the others as well.
async fn cells(options: &Options, stub: &Running, servers: &[Server], findings: &mut Findings) {
    for server in servers {
        drive(server, &SCENARIOS[0], 16, WARM_UP).await;
        for scenario in &SCENARIOS {
            drive(server, scenario, 4, WARM_UP_SCENARIO).await;
        }
    }
    let limit = Limit {
        time: Duration::from_secs_f64(options.seconds),
        runs: usize::MAX,
    };
    let stub = stub.pids();
    for pass in 0..options.passes as usize {
        for scenario in &SCENARIOS {
            for concurrency in CONCURRENCIES {
                for turn in 0..servers.len() {
                    let server = &servers[(turn + pass) % servers.len()];
                    let cell = measure(server, &stub, scenario, concurrency, limit).await;
                    eprintln!(
                        "pass {} {} {:>2} {:>8} {:>7} runs {:>8.1}/s {:>9.3} ms CPU, {:.1} cores of noise",
                        pass + 1,
                        scenario.name,
                        concurrency,
                        server.kind.title(),
                        cell.load.timings.len(),
                        cell.load.timings.len() as f64 / cell.load.seconds,
                        cell.cpu_ms_per_run,
                        cell.noise_cores,
                    );
                    findings.cells.push(cell);
                }
            }
        }
    }
}

/// A fresh gateway's memory and disk before and after many runs were left waiting.
pub async fn paused(options: &Options, model: &str) -> anyhow::Result<PausedRuns> {
    let server = Server::start(Kind::Gateway, options, model, None).await?;
    let pids = server.process.pids();
    drive(&server, PAUSING, 16, WARM_UP).await;
    tokio::time::sleep(REST).await;
    let before = process::memory(&pids);
    let data = server.data.as_deref().context("a gateway has a data folder")?;
    let disk_before = process::disk(data)?;
    let mut waiting = pause(&server, PAUSING, 16, options.paused).await?;
    tokio::time::sleep(REST).await;
    let with = process::memory(&pids);
    let disk = process::disk(data)? - disk_before;
    let (count, resumed) = (waiting.len(), RESUMED.min(waiting.len()));
    eprintln!("{count} runs wait: {before:.1} MiB before, {with:.1} MiB with them");
    let mut client = Client::new(server.process.address, server.kind.protocol());
    for run in waiting.drain(..resumed) {
        client.resume(PAUSING, run).await?;
    }
    Ok(PausedRuns {
        count,
        before,
        with,
        disk,
        resumed,
    })
}

/// The CPU per run of a build of the gateway where much was said before.
async fn history(
    kind: Kind,
    agent: &'static str,
    options: &Options,
    model: &str,
) -> anyhow::Result<Vec<(usize, f64)>> {
    let server = Server::start(kind, options, model, None).await?;
    let pids = server.process.pids();
    drive(&server, &SCENARIOS[0], 16, WARM_UP).await;
    let mut clients = Vec::new();
    for _ in 0..SPACES {
        let client = Client::new(server.process.address, server.kind.protocol());
        let mut client = client.asking(agent);
        client.enter_new_space().await?;
        clients.push(client);
    }
    let (mut found, mut messages) = (Vec::new(), 0);
    for history in HISTORIES {
        // One run more before those that are measured.
        let first = history - 1 - RUNS_PER_SPACE;
        clients = match history <= TALKED_MAX {
            true => talk(clients, (first - messages) / 2).await?,
            false => fill(clients, first - messages).await?,
        };
        // The first run behind so much more cuts it, once.
        clients = talk(clients, 1).await?;
        let before = process::cpu(&pids);
        clients = talk(clients, RUNS_PER_SPACE).await?;
        let cpu_ms = (process::cpu(&pids) - before) * 1e3 / (SPACES * RUNS_PER_SPACE) as f64;
        messages = first + 2 + 2 * RUNS_PER_SPACE;
        eprintln!(
            "{} {agent} with {history} earlier messages: {cpu_ms:.3} ms CPU per run",
            kind.title()
        );
        found.push((history, cpu_ms));
    }
    Ok(found)
}

/// Every client posts so many messages to its space.
async fn fill(clients: Vec<Client>, messages: usize) -> anyhow::Result<Vec<Client>> {
    let mut filling = tokio::task::JoinSet::new();
    for mut client in clients {
        filling.spawn_local(async move {
            client.fill(messages).await?;
            anyhow::Ok(client)
        });
    }
    let mut clients = Vec::new();
    while let Some(ended) = filling.join_next().await {
        clients.push(ended??);
    }
    Ok(clients)
}

/// Every client has so many runs in its space, one after the other.
async fn talk(clients: Vec<Client>, runs: usize) -> anyhow::Result<Vec<Client>> {
    let mut talking = tokio::task::JoinSet::new();
    for mut client in clients {
        talking.spawn_local(async move {
            for _ in 0..runs {
                client.run(&SCENARIOS[0]).await?;
            }
            anyhow::Ok(client)
        });
    }
    let mut clients = Vec::new();
    while let Some(ended) = talking.join_next().await {
        clients.push(ended??);
    }
    Ok(clients)
}
