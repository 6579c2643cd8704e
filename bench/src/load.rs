//! The closed loop: so many clients, each starting its next run when the one before has ended.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::{Duration, Instant};

use anyhow::Context;
use tokio::task::JoinSet;

use crate::process;
use crate::protocol::{Client, Paused, Scenario, Timing};
use crate::server::{Kind, Server};

const RUN_TIMEOUT: Duration = Duration::from_secs(120);
const MEMORY_POLL: Duration = Duration::from_millis(100);
/// A server that fails this often is not worth more time.
const FAULTS_MAX: usize = 20;

/// When a load starts no more runs.
#[derive(Clone, Copy)]
pub struct Limit {
    pub time: Duration,
    pub runs: usize,
}

/// What became of a load.
#[derive(Default)]
pub struct Load {
    pub timings: Vec<Timing>,
    pub faults: Vec<String>,
    pub seconds: f64,
}

/// One measured combination of server, scenario and concurrency.
pub struct Measured {
    pub server: Kind,
    pub scenario: &'static str,
    pub concurrency: usize,
    pub load: Load,
    /// CPU of the server.
    pub cpu_ms_per_run: f64,
    /// Largest resident memory of the server.
    pub memory_mib: f64,
    /// Cores that processes outside the bench kept busy: how far to trust the clock.
    pub noise_cores: f64,
}

/// Drives one cell and takes the server's accounts before and after.
pub async fn measure(
    server: &Server,
    stub: &[u32],
    scenario: &'static Scenario,
    concurrency: usize,
    limit: Limit,
) -> Measured {
    let pids = server.process.pids();
    let ours: Vec<u32> = pids
        .iter()
        .chain(stub)
        .copied()
        .chain([std::process::id()])
        .collect();
    let peak = Rc::new(Cell::new(process::memory(&pids)));
    let watch = tokio::task::spawn_local({
        let (peak, pids) = (peak.clone(), pids.clone());
        async move {
            loop {
                tokio::time::sleep(MEMORY_POLL).await;
                peak.set(peak.get().max(process::memory(&pids)));
            }
        }
    });
    let before = (process::cpu(&pids), process::cpu(&ours), process::machine());
    let load = drive(server, scenario, concurrency, limit).await;
    let after = (process::cpu(&pids), process::cpu(&ours), process::machine());
    watch.abort();
    Measured {
        server: server.kind,
        scenario: scenario.name,
        concurrency,
        cpu_ms_per_run: (after.0 - before.0) * 1e3 / load.timings.len() as f64,
        memory_mib: peak.get(),
        noise_cores: ((after.2 - before.2) - (after.1 - before.1)).max(0.0) / load.seconds,
        load,
    }
}

/// Every client ends its last run, so that the server's CPU time covers exactly the runs counted.
pub async fn drive(server: &Server, scenario: &'static Scenario, concurrency: usize, limit: Limit) -> Load {
    let begun = Instant::now();
    let left = Rc::new(Cell::new(limit.runs));
    let load = Rc::new(RefCell::new(Load::default()));
    let mut clients = JoinSet::new();
    for _ in 0..concurrency {
        let mut client = Client::new(server.process.address, server.kind.protocol());
        let (left, load) = (left.clone(), load.clone());
        clients.spawn_local(async move {
            while begun.elapsed() < limit.time && left.get() > 0 && load.borrow().faults.len() < FAULTS_MAX {
                left.set(left.get() - 1);
                let ended = in_time(client.run(scenario)).await;
                let mut load = load.borrow_mut();
                match ended {
                    Ok(timing) => load.timings.push(timing),
                    Err(fault) => load.faults.push(format!("{fault:#}")),
                }
            }
        });
    }
    while clients.join_next().await.is_some() {}
    let mut load = load.take();
    load.seconds = begun.elapsed().as_secs_f64();
    load
}

/// Starts `count` runs and leaves them waiting for their client tool.
pub async fn pause(
    server: &Server,
    scenario: &'static Scenario,
    concurrency: usize,
    count: usize,
) -> anyhow::Result<Vec<Paused>> {
    let mut clients = JoinSet::new();
    for number in 0..concurrency {
        let share = count / concurrency + usize::from(number < count % concurrency);
        let mut client = Client::new(server.process.address, server.kind.protocol());
        clients.spawn_local(async move {
            let mut paused = Vec::with_capacity(share);
            for _ in 0..share {
                paused.push(in_time(client.pause(scenario)).await?);
            }
            anyhow::Ok(paused)
        });
    }
    let mut paused = Vec::with_capacity(count);
    while let Some(ended) = clients.join_next().await {
        paused.extend(ended??);
    }
    Ok(paused)
}

async fn in_time<T>(work: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    tokio::time::timeout(RUN_TIMEOUT, work)
        .await
        .context("the run takes too long")?
}
