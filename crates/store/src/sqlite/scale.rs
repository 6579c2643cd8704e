//! The steps that SQLite's machine takes for each read, on small and large databases.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use rusqlite::Connection;
use toolgate_engine::consumption::{Consumer, Days};
use toolgate_engine::records::{Listing, Owner, RecordSet};
use toolgate_engine::store::{LogPlace, LogRange, LookedAtMax};
use toolgate_engine::usage::Day;
use toolgate_kernel::event::Seq;
use toolgate_kernel::id::SpaceId;
use toolgate_kernel::time::Time;

use super::column::rows;
use super::fault::Fault;
use super::holdings::LogSizes;
use super::run_lists::{RecentValues, recent_count, recent_page};
use super::{
    activity, consumption, holdings, log, open_alone, readers, records, retention, run_lists, runs, spaces,
    usage,
};
use crate::scale::{self, LARGE_SIZES, Read, SIZES, Sample, project, user};
use crate::walk::sides;

const FILL: &str = include_str!("../scale/sqlite.sql");

/// Steps by which a read may grow.
const MORE: u64 = 2_000;

struct Measuring {
    db: Connection,
    steps: Arc<AtomicU64>,
    reads: Vec<Read>,
}

impl Measuring {
    fn read<T>(&mut self, name: &str, read: impl Fn(&Connection) -> Result<T, Fault>) {
        self.steps.store(0, Ordering::Relaxed);
        let begun = Instant::now();
        drop(read(&self.db).expect(name));
        let time = begun.elapsed().as_secs_f64() * 1_000.0;
        let steps = self.steps.load(Ordering::Relaxed);
        self.reads.push((name.into(), steps, time));
    }
}

fn filled(directory: &Path, sample: &Sample) -> Measuring {
    let path = directory.join(format!("{}.db", sample.now().0));
    let (db, _lock) = open_alone(&path).expect("the database opens");
    db.execute_batch(&format!("BEGIN; {}; COMMIT", sample.filled_in(FILL)))
        .expect("filled");
    drop(db);
    let mut db = readers::open(&path).expect("the database opens");
    let steps = Arc::new(AtomicU64::new(0));
    let counted = steps.clone();
    let count = move || {
        counted.fetch_add(1, Ordering::Relaxed);
        false
    };
    db.progress_handler(1, Some(count)).expect("counted");
    Measuring {
        db,
        steps,
        reads: Vec::new(),
    }
}

fn costs(directory: &Path, sample: &Sample, looked_at_max: LookedAtMax) -> Vec<Read> {
    let mut measuring = filled(directory, sample);
    lists(&mut measuring, sample, looked_at_max);
    logs(&mut measuring, sample);
    figures(&mut measuring, sample);
    work(&mut measuring, sample);
    deletion(&mut measuring, sample);
    measuring.reads
}

fn lists(measuring: &mut Measuring, sample: &Sample, looked_at_max: LookedAtMax) {
    for (name, filter) in scale::run_lists(sample, looked_at_max) {
        measuring.read(name, |db| run_lists::list(db, project(), &filter));
    }
    for (name, filter) in scale::recent_lists(sample) {
        let values = RecentValues::of(project(), &filter);
        measuring.read(name, |db| {
            for is_open in sides(&filter.statuses) {
                let page = recent_page(&filter, is_open, &values);
                rows(db, &page.sql, &page.values[..], runs::record)?;
            }
            Ok(())
        });
    }
    for (name, filter) in scale::recent_counts() {
        let values = RecentValues::of(project(), &filter);
        measuring.read(name, |db| {
            for is_open in sides(&filter.statuses) {
                let count = recent_count(&filter, is_open, &values);
                rows(db, &count.sql, &count.values[..], |row| Ok(row.get::<_, i64>(0)?))?;
            }
            Ok(())
        });
    }
    for (name, filter) in scale::asking_lists(sample) {
        measuring.read(name, |db| run_lists::asking(db, project(), &filter));
    }
    measuring.read("spaces", |db| spaces::list(db, project(), None, None, 50));
    measuring.read("spaces of a user", |db| {
        spaces::list(db, project(), Some(user(5)), None, 50)
    });
}

fn logs(measuring: &mut Measuring, sample: &Sample) {
    let page = LogRange {
        limit: 100,
        ..LogRange::default()
    };
    let behind = LogRange {
        after: Seq(sample.runs as u64 / 50 * 8_000_000),
        ..page
    };
    let newest = LogRange {
        limit: 100,
        ..LogRange::newest()
    };
    let (large, run) = (sample.space(1).to_bytes(), sample.run(sample.runs / 2).to_bytes());
    measuring.read("events of a large space", |db| {
        log::read(db, log::OF_SPACE, large, page)
    });
    measuring.read("its events after a cursor", |db| {
        log::read(db, log::OF_SPACE, large, behind)
    });
    measuring.read("its newest events", |db| {
        log::read(db, log::OF_SPACE_BACKWARDS, large, newest)
    });
    measuring.read("events of a run", |db| log::read(db, log::OF_RUN, run, page));
    measuring.read("newest events of a run", |db| {
        log::read(db, log::OF_RUN_BACKWARDS, run, newest)
    });
    measuring.read("the last place of a space", |db| log::tail(db, sample.space(1)));
}

/// A project's sums are over what its days have: they grow with its users, and not with its age.
fn figures(measuring: &mut Measuring, sample: &Sample) {
    let today = Day::of(sample.now());
    let days = Days {
        first: today,
        last: today,
    };
    let some_hours_ago = Time(sample.now().0 - 6 * 3_600_000);
    measuring.read("activity", |db| activity::since(db, project(), some_hours_ago));
    measuring.read("usage of a tool", |db| {
        usage::since(db, project(), "lookup", today)
    });
    measuring.read("a user's consumption", |db| {
        consumption::sum(db, project(), &Consumer::User(user(5)), days)
    });
    measuring.read("what a user holds", |db| {
        holdings::of(db, &LogSizes::default(), project(), user(5))
    });
}

/// What a node that starts, and each that runs, looks for.
fn work(measuring: &mut Measuring, sample: &Sample) {
    let now = sample.now();
    let deliveries = RecordSet {
        project: project(),
        owner: Owner::Project,
        kind: "delivery",
    };
    let listing = Listing {
        limit: 50,
        ..Listing::default()
    };
    let plans = RecordSet {
        owner: Owner::Space(sample.space(1)),
        kind: "plan",
        ..deliveries
    };
    measuring.read("runs to claim", |db| runs::claimable(db, now, 100));
    measuring.read("the next wake-up", runs::next_wake);
    measuring.read("due deliveries", |db| records::due(db, "delivery", now, 50));
    measuring.read("the next plan", |db| records::next_due(db, "plan"));
    measuring.read("deliveries", |db| records::list(db, deliveries, &listing));
    measuring.read("plans of a large space", |db| records::list(db, plans, &listing));
}

/// What retention looks for.
fn deletion(measuring: &mut Measuring, sample: &Sample) {
    let before = sample.long_ago();
    let first = SpaceId::from_bytes([0; 16]);
    let begin = LogPlace {
        space: first,
        seq: Seq(0),
    };
    measuring.read("trees to delete", |db| {
        runs::ended_trees(db, project(), before, 100)
    });
    measuring.read("spaces with loose entries", |db| {
        retention::loose_spaces(db, project(), before, first, 100)
    });
    measuring.read("loose entries", |db| {
        retention::loose_entries(db, sample.space(1), before, (Time(0), Seq(0)), 100)
    });
    measuring.read("entries with a name", |db| {
        retention::find_entries(db, project(), "user5", begin, 500)
    });
}

fn measured(sizes: &[Sample], looked_at_max: LookedAtMax) -> Vec<scale::Cost> {
    let directory = tempfile::tempdir().expect("a directory");
    let reads = sizes
        .iter()
        .map(|sample| costs(directory.path(), sample, looked_at_max));
    scale::side_by_side(reads.collect())
}

#[test]
fn no_read_takes_more_steps_in_a_larger_database() {
    let grown = scale::grown(&measured(&SIZES, LookedAtMax(100)), MORE);
    assert!(grown.is_empty(), "{grown:#?}");
}

#[test]
#[ignore = "takes minutes, and 4 GB of disk"]
fn ten_million_events_in_sqlite() {
    println!(
        "{}",
        scale::table(&measured(&LARGE_SIZES, LookedAtMax::default()), "steps")
    );
}
