//! What a durable write costs: producers start runs and end them, two appends of five events each, every one
//! acknowledged after its fsync. Between appends
//! a producer may think, as a run does while it waits for its model.
//! Runs on SQLite, and with `postgres` as the last argument on both, one after the other, several times.
//! `append_bench [producers] [seconds] [milliseconds of thinking] [calls counted per run] [directory] [postgres]`

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use toolgate_engine::consumption::{Consumed, Consumption};
use toolgate_engine::store::{Append, LeaseWrite, LogRange, RunRecord, RunWrite, SpaceRecord, Store};
use toolgate_engine::usage::{Latency, ToolUse};
use toolgate_kernel::event::{
    EndReason, Event, FinishReason, RunFinish, RunStatus, Said, Seq, Status, StepFinish, StepStart, TextEnd,
    Usage,
};
use toolgate_kernel::id::{MessageId, NodeId, ProjectId, RunId, SpaceId};
use toolgate_kernel::message::{Message, Part};
use toolgate_kernel::time::Time;
use toolgate_store::{PostgresOptions, PostgresStore, SqliteOptions, SqliteStore};
use toolgate_testkit::postgres_server::{Durability, PostgresServer};

const EVENTS: usize = 5;

#[tokio::main]
async fn main() {
    let mut arguments = std::env::args().skip(1);
    let mut number = |default| {
        arguments
            .next()
            .map_or(default, |text| text.parse().expect("a number"))
    };
    let (producers, seconds, thinks) = (number(64), number(5), Duration::from_millis(number(0)));
    let calls = number(0);
    let scratch = tempfile::tempdir().expect("a directory");
    let directory = arguments.next().map_or(scratch.path().to_owned(), PathBuf::from);
    let load = Load {
        producers,
        seconds,
        thinks,
        calls,
    };
    let server =
        (arguments.next().as_deref() == Some("postgres")).then(|| PostgresServer::start(Durability::Full));
    let rounds = if server.is_some() { 3 } else { 1 };
    for round in 0..rounds {
        let path = directory.join(format!("bench{round}.db"));
        let store = SqliteStore::open(&path, SqliteOptions::default()).expect("a store");
        measure("SQLite, synchronous=FULL", Arc::new(store), &load, &cpu_time).await;
        if let Some(server) = &server {
            let address = server.database().parse().expect("an address");
            let store = PostgresStore::open(&address, PostgresOptions::default())
                .await
                .expect("a store");
            let cpu = || cpu_time() + server.cpu_time();
            measure(
                "PostgreSQL, fsync=on, CPU of the server included",
                Arc::new(store),
                &load,
                &cpu,
            )
            .await;
        }
    }
}

/// What the producers do.
struct Load {
    producers: u64,
    seconds: u64,
    thinks: Duration,
    calls: u64,
}

async fn measure(name: &str, store: Arc<dyn Store>, load: &Load, cpu_time: &dyn Fn() -> Duration) {
    let (started, cpu) = (Instant::now(), cpu_time());
    let end = started + Duration::from_secs(load.seconds);
    let tasks: Vec<_> = (0..load.producers)
        .map(|n| tokio::spawn(produce(store.clone(), n, end, load.thinks, load.calls)))
        .collect();
    let mut waits = Vec::new();
    for task in tasks {
        waits.extend(task.await.expect("a producer"));
    }
    let (took, cpu) = (started.elapsed().as_secs_f64(), cpu_time() - cpu);

    waits.sort_unstable();
    let appends = waits.len();
    let per_second = appends as f64 / took;
    println!("{name}: {} producers, {EVENTS} events per append", load.producers);
    println!(
        "  {:.0} events/s, {per_second:.0} appends/s",
        per_second * EVENTS as f64
    );
    println!(
        "  {:.1} CPU µs per append",
        cpu.as_secs_f64() * 1e6 / appends as f64
    );
    println!(
        "  p50 {:?}, p99 {:?}",
        waits[appends / 2],
        waits[appends * 99 / 100]
    );
    measure_reads(&*store, cpu_time).await;
    store.close().await;
}

/// What it costs to read back the first run, again and again.
async fn measure_reads(store: &dyn Store, cpu_time: &dyn Fn() -> Duration) {
    const READS: u32 = 5_000;
    let run = RunId::from_bytes([0; 16]);
    let (started, cpu) = (Instant::now(), cpu_time());
    for _ in 0..READS {
        store.run(run).await.expect("a read").expect("the run");
    }
    let row = (started.elapsed() / READS, (cpu_time() - cpu) / READS);
    let (started, cpu) = (Instant::now(), cpu_time());
    for _ in 0..READS {
        assert_eq!(
            store
                .run_log(run, LogRange::default())
                .await
                .expect("a read")
                .entries
                .len(),
            2
        );
    }
    let log = (started.elapsed() / READS, (cpu_time() - cpu) / READS);
    println!(
        "  a run's row {:?} (CPU {:?}), its log {:?} (CPU {:?})",
        row.0, row.1, log.0, log.1
    );
}

/// Starts and ends runs until `end`; gives how long each append took.
async fn produce(
    store: Arc<dyn Store>,
    producer: u64,
    end: Instant,
    thinks: Duration,
    calls: u64,
) -> Vec<Duration> {
    let mut waits = Vec::new();
    for n in 0.. {
        if Instant::now() > end {
            break;
        }
        // In the order of time, as real ids are.
        let id = (u128::from(n as u64) << 64 | u128::from(producer)).to_be_bytes();
        let started = Instant::now();
        let entry = store.append(begin(id)).await.expect("the run is stored");
        waits.push(started.elapsed());
        think(thinks).await;
        let started = Instant::now();
        store
            .append(finish(id, entry.last(), calls))
            .await
            .expect("its end is stored");
        waits.push(started.elapsed());
        think(thinks).await;
    }
    waits
}

async fn think(time: Duration) {
    if !time.is_zero() {
        tokio::time::sleep(time).await;
    }
}

fn begin(id: [u8; 16]) -> Append {
    let (project, space, run) = (
        ProjectId::from_bytes([1; 16]),
        SpaceId::from_bytes(id),
        RunId::from_bytes(id),
    );
    let record = RunRecord {
        tool: None,
        user: None,
        title: None,
        tokens: 0,
        id: run,
        project,
        space,
        agent: "default".parse().expect("a name"),
        revision: 1,
        parent: None,
        root: run,
        status: Status::Running,
        created: Time(1),
        updated: Time(1),
        version: Seq::default(),
        wake_at: None,
        node: Some(NodeId::from_bytes([2; 16])),
        epoch: 1,
        lane: 0,
        wakes: 0,
    };
    let row = SpaceRecord {
        id: space,
        project,
        title: None,
        agent: None,
        metadata: None,
        by_backend: true,
        members: Vec::new(),
        created: Time(1),
    };
    let parts = vec![Part::Text {
        text: "What is the weather like in Reykjavík this week?".into(),
    }];
    let message = Message::new(MessageId::from_bytes(id), None, parts);
    let moved = |status| Event::from(RunStatus { status });
    Append {
        space,
        run: RunWrite::Create {
            record: Box::new(record),
            space: Some(Box::new(row)),
            descendants_max: None,
            definitions: Default::default(),
        },
        events: vec![
            Said { message }.into(),
            moved(Status::Queued),
            moved(Status::Running),
            StepStart { step: 1 }.into(),
            StepStart { step: 1 }.into(),
        ],
        usage: Vec::new(),
        consumption: Vec::new(),
        above: None,
        wakes: Vec::new(),
        time: Time(1),
        idempotency: Vec::new(),
    }
}

fn finish(id: [u8; 16], version: Seq, calls: u64) -> Append {
    let used = |n| ToolUse {
        project: ProjectId::from_bytes([1; 16]),
        tool: "search".into(),
        code: None,
        latency: Latency((u64::from(id[7]) + n) as u16 % 100),
    };
    let usage = Usage {
        input_tokens: 120,
        output_tokens: 20,
        ..Usage::default()
    };
    let text = "It will rain on most days, with a dry and windy Thursday in between.".to_owned();
    Append {
        space: SpaceId::from_bytes(id),
        run: RunWrite::Extend {
            id: RunId::from_bytes(id),
            version,
            epoch: 1,
            status: Status::Completed,
            wake_at: None,
            lease: LeaseWrite::Release,
        },
        events: vec![
            TextEnd {
                id: "1".into(),
                text: text.clone(),
            }
            .into(),
            TextEnd { id: "2".into(), text }.into(),
            StepFinish {
                step: 1,
                reason: FinishReason::Stop,
                usage,
            }
            .into(),
            RunStatus {
                status: Status::Completed,
            }
            .into(),
            RunFinish {
                status: Status::Completed,
                reason: EndReason::Stop,
                usage,
                error: None,
            }
            .into(),
        ],
        usage: (0..calls).map(used).collect(),
        consumption: vec![Consumption {
            project: ProjectId::from_bytes([1; 16]),
            agent: "default".parse().expect("a name"),
            user: None,
            model: "demo:demo".into(),
            consumed: Consumed {
                requests: 1,
                input_tokens: usage.input_tokens,
                output_tokens: usage.output_tokens,
                ..Consumed::default()
            },
        }],
        above: None,
        wakes: Vec::new(),
        time: Time(2),
        idempotency: Vec::new(),
    }
}

/// What this process has used so far, in user and system time. Zero where there is no `/proc`.
fn cpu_time() -> Duration {
    const TICKS_PER_SECOND: u64 = 100;
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The name in parentheses may hold spaces: count from behind it.
    let after = stat.rsplit_once(") ").map_or("", |(_, after)| after);
    let ticks: u64 = after
        .split(' ')
        .skip(11)
        .take(2)
        .filter_map(|field| field.parse::<u64>().ok())
        .sum();
    Duration::from_millis(ticks * 1000 / TICKS_PER_SECOND)
}
