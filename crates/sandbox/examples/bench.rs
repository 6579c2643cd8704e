//! Measures the sandbox, and Node's `vm` beside it, in one run:
//! `cargo run --release -p toolgate-sandbox --example bench`.
//!
//! A trivial call (`return args.n + 1`): what is left is the sandbox's own work. Latencies are medians in microseconds as
//! the caller sees them; "others during an attack" is the median of one tenant's calls while another tenant's calls
//! keep processors or memory busy, divided by the median before.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use toolgate_fair::Share;
use toolgate_sandbox::{Job, JobLimits, NoHost, Sandbox, SandboxOptions};

const WARM_CALLS: usize = 2_000;
const COLD_CALLS: usize = 40;
const ATTACKED_CALLS: usize = 300;
const AT_ONCE: usize = 8;
/// What is asked for: warm and cold in microseconds, calls per second.
const GOALS: (f64, f64, f64) = (250.0, 15_000.0, 3_000.0);

fn main() -> std::io::Result<()> {
    let mut arguments = std::env::args().skip(1);
    if arguments.next().as_deref() == Some(toolgate_sandbox::RUN_SCRIPT.argument) {
        return toolgate_sandbox::work(&arguments.collect::<Vec<_>>());
    }
    // As the gateway does: cargo and make leave files open.
    toolgate_worker::keep_descriptors_from_workers();
    // On a thread of the runtime, as calls of the gateway are.
    tokio::runtime::Runtime::new()?
        .block_on(async { tokio::spawn(measure()).await })
        .map_err(std::io::Error::other)
}

async fn measure() {
    let sandbox = sandbox();
    let protection = sandbox.protection().await.expect("a worker starts");
    println!("protections missing: {:?}", protection.missing());
    latencies(&sandbox, 1, 200).await;
    let warm = latencies(&sandbox, 1, WARM_CALLS).await;
    let paused = paused(&sandbox).await;
    let per_second = throughput(&sandbox).await;
    let cold = cold().await;
    println!(
        "warm call        p50 {:7.0} µs   p99 {:7.0} µs   goal p50 {:.0}",
        warm.0, warm.1, GOALS.0
    );
    println!(
        "warm, 2 ms apart p50 {:7.0} µs   p99 {:7.0} µs",
        paused.0, paused.1
    );
    println!(
        "cold call        p50 {:7.0} µs   p99 {:7.0} µs   goal p50 {:.0}",
        cold.0, cold.1, GOALS.1
    );
    println!(
        "calls per second     {per_second:7.0}      {AT_ONCE} at once, goal {:.0}",
        GOALS.2
    );
    memory();
    for (name, code) in [
        ("endless loops", "while (true) {}"),
        (
            "memory bombs",
            "const all = []; for (;;) all.push(new Array(1000).fill(1))",
        ),
        ("native bombs", "return String(3n ** 30000000n).length"),
    ] {
        let during = attacked(&sandbox, code).await;
        println!(
            "others during {name:14} p50 {:7.0} µs   p99 {:7.0} µs   ratio of p50 {:.2}",
            during.0,
            during.1,
            during.0 / warm.0
        );
    }
    node();
}

fn sandbox() -> Sandbox {
    let program = std::env::current_exe().expect("this program");
    Sandbox::new(program, SandboxOptions::default())
}

fn job(tenant: u8, user: u128, code: &str, args: Value) -> Job {
    Job {
        share: Share {
            tenant: tenant.into(),
            user: Some(user),
        },
        owner: [tenant; 32],
        code: code.into(),
        args: args.into(),
        limits: JobLimits {
            cpu: Duration::from_secs(1),
            ..JobLimits::default()
        },
    }
}

async fn call(sandbox: &Sandbox, tenant: u8, user: u128, n: usize) -> f64 {
    let start = Instant::now();
    let ran = sandbox
        .run(
            job(tenant, user, "return args.n + 1", json!({"n": n})),
            Arc::new(NoHost),
        )
        .await;
    assert_eq!(ran.expect("it runs").to_value(), json!(n + 1));
    start.elapsed().as_secs_f64() * 1e6
}

/// Median and 99th percentile of calls one after the other.
async fn latencies(sandbox: &Sandbox, tenant: u8, count: usize) -> (f64, f64) {
    let mut times = Vec::with_capacity(count);
    for n in 0..count {
        times.push(call(sandbox, tenant, 1, n).await);
    }
    percentiles(times)
}

/// The same with pauses, in which the worker makes the realm of the next call.
async fn paused(sandbox: &Sandbox) -> (f64, f64) {
    let mut times = Vec::new();
    for n in 0..WARM_CALLS / 4 {
        tokio::time::sleep(Duration::from_millis(2)).await;
        times.push(call(sandbox, 1, 1, n).await);
    }
    percentiles(times)
}

fn percentiles(mut times: Vec<f64>) -> (f64, f64) {
    times.sort_by(f64::total_cmp);
    (times[times.len() / 2], times[times.len() * 99 / 100])
}

/// Each call in a process that was started for it.
async fn cold() -> (f64, f64) {
    let mut times = Vec::new();
    for n in 0..COLD_CALLS {
        times.push(call(&sandbox(), 1, 1, n).await);
    }
    percentiles(times)
}

async fn throughput(sandbox: &Sandbox) -> f64 {
    let start = Instant::now();
    let each = 1_000;
    let callers = (0..AT_ONCE).map(|caller| {
        let sandbox = sandbox.clone();
        tokio::spawn(async move {
            for n in 0..each {
                call(&sandbox, 1, caller as u128, n).await;
            }
        })
    });
    for caller in callers.collect::<Vec<_>>() {
        caller.await.expect("no panic");
    }
    (AT_ONCE * each) as f64 / start.elapsed().as_secs_f64()
}

/// The latencies of one tenant while another attacks, with as many calls as it may have.
async fn attacked(sandbox: &Sandbox, code: &'static str) -> (f64, f64) {
    let attackers: Vec<_> = (0..8u128)
        .map(|user| {
            let sandbox = sandbox.clone();
            tokio::spawn(async move {
                loop {
                    // It fails, as it should.
                    let _ = sandbox
                        .run(job(9, user % 4, code, json!({})), Arc::new(NoHost))
                        .await;
                }
            })
        })
        .collect();
    // They have begun, and are known for what they are.
    tokio::time::sleep(Duration::from_millis(300)).await;
    let during = latencies(sandbox, 1, ATTACKED_CALLS).await;
    attackers.into_iter().for_each(|attacker| attacker.abort());
    during
}

/// What the warm workers of this program take.
fn memory() {
    let own = std::process::id().to_string();
    let mut sizes = Vec::new();
    for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let folder = entry.path();
        let Ok(status) = std::fs::read_to_string(folder.join("status")) else {
            continue;
        };
        let field = |text: &str, name: &str| {
            let line = text.lines().find(|line| line.starts_with(name))?;
            Some(line.split_whitespace().nth(1)?.to_owned())
        };
        if field(&status, "PPid:").as_deref() == Some(&own) {
            let rollup = std::fs::read_to_string(folder.join("smaps_rollup")).unwrap_or_default();
            let number =
                |text: Option<String>| text.and_then(|text| text.parse::<u64>().ok()).unwrap_or_default();
            let private = number(field(&rollup, "Private_Dirty:")) + number(field(&rollup, "Private_Clean:"));
            sizes.push((number(field(&status, "VmRSS:")), private));
        }
    }
    sizes.sort_unstable();
    if let Some((resident, private)) = sizes.get(sizes.len() / 2) {
        println!(
            "memory of a warm worker: {resident} KiB resident, {private} KiB of its own ({} workers)",
            sizes.len()
        );
    }
}

fn node() {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/bench.mjs");
    let Ok(ran) = std::process::Command::new("node").arg(script).output() else {
        println!("Node is not here to compare with");
        return;
    };
    let figures: Value = serde_json::from_slice(&ran.stdout).unwrap_or_default();
    let number = |name: &str| figures[name].as_f64().unwrap_or(f64::NAN);
    println!(
        "Node, vm in a worker thread: warm p50 {:.0} µs, cold p50 {:.0} µs, {:.0} calls per second (2 threads)",
        number("warm"),
        number("cold"),
        number("perSecond")
    );
    println!("Node, a process for each call: p50 {:.0} µs", number("spawned"));
}
