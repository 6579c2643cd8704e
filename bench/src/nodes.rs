//! The scenario that pauses, on one node with SQLite, on one to three nodes with PostgreSQL and Redis, and on servers that keep
//! workflows; then what following from another node costs, and what many viewers cost one node.
//!
//! A run is started on one node and answered on the next, so that with more than one node every run crosses nodes.

use std::cell::RefCell;
use std::fs;
use std::net::SocketAddr;
use std::process::Command;
use std::rc::Rc;
use std::time::{Duration, Instant};

use anyhow::Context;
use tokio::task::JoinSet;

use crate::Options;
use crate::durable::{Durable, DurableClient};
use crate::http::Connection;
use crate::process;
use crate::protocol::{AGENT, Client, KEY, PAUSING, Protocol, agent_config};
use crate::report::{number, quantile, table};
use crate::server::{GATEWAY_SETTINGS, Running, free_address};
use crate::services::Service;
use crate::viewers;

const CONCURRENCIES: [usize; 2] = [1, 16];
const NODES: [usize; 3] = [1, 2, 3];
const WARM_UP: Duration = Duration::from_secs(2);

/// What is measured.
struct System {
    title: String,
    kind: Kind,
    /// Spoken to in turn.
    processes: Vec<Running>,
}

#[derive(Clone, Copy)]
enum Kind {
    Gateway,
    Durable(Durable),
}

/// Everything that several systems share.
struct Shared {
    model: String,
    postgres: Service,
    redis: Service,
}

/// One measured combination of system and concurrency.
struct Cell {
    system: usize,
    concurrency: usize,
    runs_per_second: f64,
    /// From the start of a run to its pause, and from the result to its end, in ms.
    pauses: Vec<f64>,
    resumes: Vec<f64>,
    /// CPU of the nodes, and of what they share, per run in ms.
    cpu: f64,
    shared_cpu: f64,
}

pub async fn run(options: &Options) -> anyhow::Result<String> {
    let stub = Running::stub(options).await?;
    let shared = Shared {
        model: format!("http://{}/v1", stub.address),
        postgres: Service::postgres()?,
        redis: Service::redis()?,
    };
    let systems = systems(options, &shared).await?;
    let mut cells = Vec::new();
    for system in 0..systems.len() {
        measure(&systems, system, 16, WARM_UP, &shared).await?;
    }
    for pass in 0..options.passes as usize {
        for concurrency in CONCURRENCIES {
            for turn in 0..systems.len() {
                let system = (turn + pass) % systems.len();
                let time = Duration::from_secs_f64(options.seconds);
                let cell = measure(&systems, system, concurrency, time, &shared).await?;
                eprintln!(
                    "pass {} at {:>2} {:>28} {:>8.1} runs/s {:>8.3} + {:.3} ms CPU",
                    pass + 1,
                    concurrency,
                    systems[system].title,
                    cell.runs_per_second,
                    cell.cpu,
                    cell.shared_cpu
                );
                cells.push(cell);
            }
        }
    }
    let mut out = report(&systems, &cells);
    let one = &systems[0].processes;
    let three = &systems[NODES.len()].processes;
    out += &viewers::crossing(&addresses(one), "1 node, SQLite").await?;
    out += &viewers::crossing(&addresses(three), "3 nodes, PostgreSQL and Redis").await?;
    drop(systems);
    let node = start_node(options, &shared.model, &[]).await?;
    out += &viewers::many(&node, options.viewers).await?;
    Ok(out)
}

async fn systems(options: &Options, shared: &Shared) -> anyhow::Result<Vec<System>> {
    let mut systems = vec![System {
        title: "1 node, SQLite".into(),
        kind: Kind::Gateway,
        processes: vec![start_node(options, &shared.model, &[]).await?],
    }];
    for count in NODES {
        let store = shared.postgres.database(&format!("nodes_{count}"))?;
        // Each system has a part of the one Redis for itself.
        let bus = format!("{}/{count}", shared.redis.redis_url());
        let places = [("TOOLGATE_STORE", store.as_str()), ("TOOLGATE_BUS", bus.as_str())];
        let mut processes = Vec::new();
        for _ in 0..count {
            processes.push(start_node(options, &shared.model, &places).await?);
        }
        systems.push(System {
            title: format!("{count} of PostgreSQL and Redis"),
            kind: Kind::Gateway,
            processes,
        });
    }
    for kind in [Durable::Restate, Durable::Dbos] {
        systems.push(System {
            title: kind.title().into(),
            kind: Kind::Durable(kind),
            processes: kind.start(options, &shared.model, &shared.postgres).await?,
        });
    }
    Ok(systems)
}

async fn start_node(options: &Options, model: &str, places: &[(&str, &str)]) -> anyhow::Result<Running> {
    let address = free_address()?;
    let data = options.work.join(format!("data-{}", address.port()));
    fs::create_dir_all(&data)?;
    let mut command = Command::new(&options.gateway);
    command.arg("serve").arg("--data").arg(&data);
    command.args(["--listen", &address.to_string()]);
    command.envs(GATEWAY_SETTINGS).env("TOOLGATE_SECRET_KEY", KEY);
    command.envs(places.iter().copied());
    let name = format!("node-{}", address.port());
    let node = Running::start(&mut command, address, &name, "/readyz", options).await?;
    Connection::new(address, &format!("authorization: Bearer {KEY}\r\n"))
        .json(
            "PUT",
            &format!("/v1/agents/{AGENT}"),
            &agent_config(AGENT, model, None),
        )
        .await?;
    Ok(node)
}

fn addresses(processes: &[Running]) -> Vec<SocketAddr> {
    processes.iter().map(|process| process.address).collect()
}

async fn measure(
    systems: &[System],
    at: usize,
    concurrency: usize,
    time: Duration,
    shared: &Shared,
) -> anyhow::Result<Cell> {
    let system = &systems[at];
    let own: Vec<u32> = system.processes.iter().flat_map(Running::pids).collect();
    // Sessions come and go with their processes, so what the shared ones have used is counted by their parents' trees.
    let others = || [shared.postgres.pids(), shared.redis.pids()].concat();
    let before = (process::cpu(&own), process::cpu(&others()));
    let begun = Instant::now();
    let times = Rc::new(RefCell::new(Vec::new()));
    let mut clients = JoinSet::new();
    for number in 0..concurrency {
        let (times, kind, nodes) = (times.clone(), system.kind, addresses(&system.processes));
        clients.spawn_local(async move {
            let mut client = Executor::new(kind, &nodes, number);
            while begun.elapsed() < time {
                let timing = client.round_trip().await?;
                times.borrow_mut().push(timing);
            }
            anyhow::Ok(())
        });
    }
    while let Some(ended) = clients.join_next().await {
        ended?.with_context(|| system.title.clone())?;
    }
    let seconds = begun.elapsed().as_secs_f64();
    let after = (process::cpu(&own), process::cpu(&others()));
    let times = times.take();
    let runs = times.len() as f64;
    Ok(Cell {
        system: at,
        concurrency,
        runs_per_second: runs / seconds,
        pauses: times.iter().map(|(pause, _)| pause.as_secs_f64() * 1e3).collect(),
        resumes: times
            .iter()
            .map(|(_, resume)| resume.as_secs_f64() * 1e3)
            .collect(),
        cpu: (after.0 - before.0) * 1e3 / runs,
        shared_cpu: (after.1 - before.1).max(0.0) * 1e3 / runs,
    })
}

/// A client that starts runs on one node and answers them on the next.
enum Executor {
    Gateway { nodes: Vec<Client>, turn: usize },
    Durable(DurableClient),
}

impl Executor {
    fn new(kind: Kind, nodes: &[SocketAddr], number: usize) -> Self {
        match kind {
            Kind::Gateway => Self::Gateway {
                nodes: nodes
                    .iter()
                    .map(|&node| Client::new(node, Protocol::Native))
                    .collect(),
                turn: number,
            },
            Kind::Durable(kind) => Self::Durable(DurableClient::new(kind, nodes[0])),
        }
    }

    /// How long it took until the run waited, and from the result until it had ended.
    async fn round_trip(&mut self) -> anyhow::Result<(Duration, Duration)> {
        let started = Instant::now();
        match self {
            Self::Gateway { nodes, turn } => {
                let (first, next) = (*turn % nodes.len(), (*turn + 1) % nodes.len());
                *turn += 1;
                let paused = nodes[first].pause(PAUSING).await?;
                let answered = Instant::now();
                nodes[next].resume(PAUSING, paused).await?;
                Ok((answered - started, answered.elapsed()))
            }
            Self::Durable(client) => {
                let id = client.pause().await?;
                let answered = Instant::now();
                client.resume(&id).await?;
                Ok((answered - started, answered.elapsed()))
            }
        }
    }
}

const COLUMNS: &str = "at|system|runs/s|start to pause p50 ms|result to end p50 ms|p99 ms|CPU ms/run|shared CPU ms/run|runs/s to SQLite|CPU to SQLite";

fn report(systems: &[System], cells: &[Cell]) -> String {
    let mut rows = vec![COLUMNS.split('|').map(String::from).collect::<Vec<_>>()];
    for concurrency in CONCURRENCIES {
        let median = |system: usize, value: &dyn Fn(&Cell) -> f64| {
            let of = |cell: &&Cell| cell.system == system && cell.concurrency == concurrency;
            quantile(cells.iter().filter(of).map(value), 0.5)
        };
        let rate = |system| median(system, &|cell| cell.runs_per_second);
        let all_cpu = |system| median(system, &|cell| cell.cpu + cell.shared_cpu);
        for (at, system) in systems.iter().enumerate() {
            rows.push(vec![
                concurrency.to_string(),
                system.title.clone(),
                number(rate(at)),
                number(median(at, &|cell| quantile(cell.pauses.iter().copied(), 0.5))),
                number(median(at, &|cell| quantile(cell.resumes.iter().copied(), 0.5))),
                number(median(at, &|cell| quantile(cell.resumes.iter().copied(), 0.99))),
                number(median(at, &|cell| cell.cpu)),
                number(median(at, &|cell| cell.shared_cpu)),
                format!("{}x", number(rate(at) / rate(0))),
                format!("{}x", number(all_cpu(at) / all_cpu(0))),
            ]);
        }
    }
    format!(
        "\nA client tool round trip, started on one node and answered on the next\n\n{}",
        table(&rows)
    )
}
