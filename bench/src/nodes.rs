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
use crate::plan;
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

/// How long the parts of a round trip took.
struct Trip {
    /// From the start of the run until it waits.
    pause: Duration,
    /// From the result to the first word of the next model step; to the end of the run for who does not stream it.
    next_word: Duration,
    /// From the result to the end of the run.
    resume: Duration,
}

/// One measured combination of system and concurrency.
struct Cell {
    system: usize,
    concurrency: usize,
    runs_per_second: f64,
    trips: Vec<Trip>,
    /// CPU of the nodes, and of what they share, per run in ms.
    cpu: f64,
    shared_cpu: f64,
}

impl Cell {
    /// A quantile of one part of the round trips in ms.
    fn part(&self, q: f64, part: impl Fn(&Trip) -> Duration) -> f64 {
        quantile(self.trips.iter().map(|trip| part(trip).as_secs_f64() * 1e3), q)
    }
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
    // All viewers come from one address, each with one connection.
    let room = [
        ("TOOLGATE_HTTP_CONNECTIONS_MAX", "20000"),
        ("TOOLGATE_HTTP_CONNECTIONS_PER_ADDRESS_MAX", "0"),
    ];
    let node = start_node(options, &shared.model, &room).await?;
    out += &viewers::many(&node, options.viewers).await?;
    drop(node);
    out += &plan::paused(options, &shared.model).await?.to_string();
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

async fn start_node(options: &Options, model: &str, settings: &[(&str, &str)]) -> anyhow::Result<Running> {
    let address = free_address()?;
    let data = options.work.join(format!("data-{}", address.port()));
    fs::create_dir_all(&data)?;
    let mut command = Command::new(&options.gateway);
    command.arg("serve").arg("--data").arg(&data);
    command.args(["--listen", &address.to_string()]);
    command.envs(GATEWAY_SETTINGS).env("TOOLGATE_SECRET_KEY", KEY);
    command.envs(settings.iter().copied());
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
    let trips = Rc::new(RefCell::new(Vec::new()));
    let mut clients = JoinSet::new();
    for number in 0..concurrency {
        let (trips, kind, nodes) = (trips.clone(), system.kind, addresses(&system.processes));
        clients.spawn_local(async move {
            let mut client = Executor::new(kind, &nodes, number);
            while begun.elapsed() < time {
                let trip = client.round_trip().await?;
                trips.borrow_mut().push(trip);
            }
            anyhow::Ok(())
        });
    }
    while let Some(ended) = clients.join_next().await {
        ended?.with_context(|| system.title.clone())?;
    }
    let seconds = begun.elapsed().as_secs_f64();
    let after = (process::cpu(&own), process::cpu(&others()));
    let trips = trips.take();
    let runs = trips.len() as f64;
    Ok(Cell {
        system: at,
        concurrency,
        runs_per_second: runs / seconds,
        trips,
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

    async fn round_trip(&mut self) -> anyhow::Result<Trip> {
        let started = Instant::now();
        match self {
            Self::Gateway { nodes, turn } => {
                let (first, next) = (*turn % nodes.len(), (*turn + 1) % nodes.len());
                *turn += 1;
                let paused = nodes[first].pause(PAUSING).await?;
                let pause = started.elapsed();
                let timing = nodes[next].resume(PAUSING, paused).await?;
                Ok(Trip {
                    pause,
                    next_word: timing.first_token.saturating_sub(pause),
                    resume: timing.whole - pause,
                })
            }
            Self::Durable(client) => {
                let id = client.pause().await?;
                let pause = started.elapsed();
                client.resume(&id).await?;
                let resume = started.elapsed() - pause;
                Ok(Trip {
                    pause,
                    next_word: resume,
                    resume,
                })
            }
        }
    }
}

const COLUMNS: &str = "at|system|runs/s|start to pause p50 ms|result to next word p50 ms|result to end p50 ms|p99 ms|CPU ms/run|shared CPU ms/run|runs/s to SQLite|CPU to SQLite";

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
                number(median(at, &|cell| cell.part(0.5, |trip| trip.pause))),
                match system.kind {
                    Kind::Gateway => number(median(at, &|cell| cell.part(0.5, |trip| trip.next_word))),
                    Kind::Durable(_) => String::new(),
                },
                number(median(at, &|cell| cell.part(0.5, |trip| trip.resume))),
                number(median(at, &|cell| cell.part(0.99, |trip| trip.resume))),
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
