//! The pages that PostgreSQL touches for each read, in small and large databases.

use std::time::Duration;

use toolgate_engine::store::{LookedAtMax, RECENT_COUNT_MAX};
use toolgate_engine::usage::Day;
use toolgate_testkit::postgres_server::PostgresServer;
use uuid::Uuid;

use super::column::{Id, Param};
use super::pool::Lease;
use super::run_lists::{ListValues, recent_sql, statement};
use super::{
    PostgresAddress, PostgresOptions, activity, connect_and_migrate, consumption, holdings, log, records,
    retention, run_lists, runs, spaces, usage,
};
use crate::scale::{self, LARGE_SIZES, Read, SIZES, Sample, project, user};

const FILL: &str = include_str!("../scale/postgres.sql");

/// Pages by which a read may grow: another level of an index for each row that it looks up.
const MORE: u64 = 150;

struct Measuring {
    lease: Lease,
    reads: Vec<Read>,
}

impl Measuring {
    async fn read(&mut self, name: &str, sql: &str, values: &[Param<'_>]) {
        let explain = format!("EXPLAIN (ANALYZE, BUFFERS) {sql}");
        let rows = self.lease.client.query(&explain, values).await.expect(sql);
        let lines: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
        // The first line of buffers is that of the whole.
        let buffers = lines.iter().find(|line| line.contains("Buffers: "));
        let words = buffers.map_or("", |line| line).split(' ');
        let number = |word: &str| {
            let number = word.strip_prefix("hit=").or_else(|| word.strip_prefix("read="))?;
            number.parse::<u64>().ok()
        };
        let pages = words.filter_map(number).sum();
        let time = lines
            .iter()
            .find_map(|line| line.strip_prefix("Execution Time: "));
        let time = time.and_then(|time| time.strip_suffix(" ms")?.parse().ok());
        if std::env::var_os("TOOLGATE_SHOW_PLANS").is_some() {
            eprintln!("## {name}\n{}\n", lines.join("\n"));
        }
        self.reads.push((name.into(), pages, time.expect("a time")));
    }
}

async fn filled(sample: &Sample) -> Measuring {
    let address: PostgresAddress = PostgresServer::shared().database().parse().expect("an address");
    let options = PostgresOptions {
        statement_timeout: Duration::from_secs(1_800),
        ..PostgresOptions::default()
    };
    let lease = connect_and_migrate(&address, options).await.expect("a database");
    let fill = format!("BEGIN; {}; COMMIT", sample.filled_in(FILL));
    lease.client.batch_execute(&fill).await.expect("filled");
    // Every row is looked at: of a sample the planner may choose another plan each time.
    for sql in ["SET default_statistics_target = 1000", "VACUUM ANALYZE"] {
        lease.client.batch_execute(sql).await.expect("counted");
    }
    Measuring {
        lease,
        reads: Vec::new(),
    }
}

async fn costs(sample: &Sample, looked_at_max: LookedAtMax) -> Vec<Read> {
    let mut measuring = filled(sample).await;
    lists(&mut measuring, sample, looked_at_max).await;
    recent(&mut measuring, sample).await;
    logs(&mut measuring, sample).await;
    figures(&mut measuring, sample).await;
    work(&mut measuring, sample).await;
    deletion(&mut measuring, sample).await;
    measuring.reads
}

async fn lists(measuring: &mut Measuring, sample: &Sample, looked_at_max: LookedAtMax) {
    for (name, filter) in scale::run_lists(sample, looked_at_max) {
        let values = ListValues::of(project(), &filter);
        let statement = statement(&filter, &values);
        measuring.read(name, &statement.sql, &statement.values).await;
    }
    for (name, filter) in scale::asking_lists(sample) {
        let values: [Param<'_>; 7] = [
            &project().uuid(),
            &Uuid::max(),
            &filter.space.map(Id::uuid),
            &None::<String>,
            &filter.member.map(Id::uuid),
            &(filter.limit as i64),
            &(filter.looked_at_max.0 as i64),
        ];
        measuring.read(name, run_lists::ASKING, &values).await;
    }
    let (project, user, limit) = (project().uuid(), user(5).uuid(), 50_i64);
    measuring
        .read("spaces", spaces::OF_PROJECT, &[&project, &Uuid::max(), &limit])
        .await;
    let values: [Param<'_>; 4] = [&user, &Uuid::max(), &limit, &project];
    measuring
        .read("spaces of a user", spaces::OF_MEMBER, &values)
        .await;
}

async fn recent(measuring: &mut Measuring, sample: &Sample) {
    for (name, filter) in scale::recent_lists(sample) {
        let statuses: Vec<&str> = filter.statuses.iter().map(|status| status.as_str()).collect();
        let statuses = (!statuses.is_empty()).then_some(statuses);
        let (time, id) = filter.before.unzip();
        let (time, id) = (time.map(|time| time.0), id.map(Id::uuid));
        let project = project().uuid();
        let agent = filter.agent.as_ref().map(|agent| agent.as_str());
        let (space, member) = (filter.space.map(Id::uuid), filter.member.map(Id::uuid));
        let (since, limit) = (None::<i64>, filter.limit as i64);
        let values: [Param<'_>; 9] = [
            &project, &agent, &space, &member, &statuses, &since, &time, &id, &limit,
        ];
        let [page, _] = recent_sql(&filter);
        measuring.read(name, &page, &values).await;
    }
    for (name, filter) in scale::recent_counts() {
        let project = project().uuid();
        let agent = filter.agent.as_ref().map(|agent| agent.as_str());
        let (nobody, statuses, since) = (None::<Uuid>, None::<Vec<&str>>, None::<i64>);
        let values: [Param<'_>; 7] = [
            &project,
            &agent,
            &nobody,
            &nobody,
            &statuses,
            &since,
            &(RECENT_COUNT_MAX as i64),
        ];
        let [_, count] = recent_sql(&filter);
        measuring.read(name, &count, &values).await;
    }
}

async fn logs(measuring: &mut Measuring, sample: &Sample) {
    let (large, run) = (sample.space(1).uuid(), sample.run(sample.runs / 2).uuid());
    let (start, behind, end) = (0_i64, sample.runs / 50 * 8_000_000, i64::MAX);
    let (limit, bytes) = (101_i64, 1_i64 << 20);
    for (name, sql, of, after) in [
        ("events of a large space", log::OF_SPACE, &large, &start),
        ("its events after a cursor", log::OF_SPACE, &large, &behind),
        ("its newest events", log::OF_SPACE_BACKWARDS, &large, &start),
        ("events of a run", log::OF_RUN, &run, &start),
        ("newest events of a run", log::OF_RUN_BACKWARDS, &run, &start),
    ] {
        measuring
            .read(name, sql, &[of, after, &end, &limit, &bytes])
            .await;
    }
    measuring
        .read("the last place of a space", log::TAIL, &[&large])
        .await;
}

/// A project's sums are over what its days have: they grow with its users, and not with its age.
async fn figures(measuring: &mut Measuring, sample: &Sample) {
    let (project, user) = (project().uuid(), user(5).uuid());
    let today = Day::of(sample.now()).0;
    let some_hours_ago = sample.now().0 - 6 * 3_600_000;
    measuring
        .read("activity", activity::HOURS, &[&project, &some_hours_ago])
        .await;
    measuring
        .read("open runs, counted", activity::OPEN, &[&project])
        .await;
    measuring
        .read("usage of a tool", usage::SINCE, &[&project, &"lookup", &today])
        .await;
    let of_user: [Param<'_>; 4] = [&project, &today, &today, &user];
    measuring
        .read("a user's consumption", consumption::OF_USER, &of_user)
        .await;
    measuring
        .read(
            "spaces that a user holds",
            holdings::OWN_SPACES,
            &[&user, &project, &"file"],
        )
        .await;
}

/// What a node that starts, and each that runs, looks for.
async fn work(measuring: &mut Measuring, sample: &Sample) {
    let now = sample.now().0;
    measuring
        .read("runs to claim", runs::CLAIMABLE, &[&now, &100_i64, &Some(now)])
        .await;
    measuring.read("the next wake-up", runs::NEXT_WAKE, &[]).await;
    measuring
        .read("due deliveries", records::DUE, &[&"delivery", &now, &50_i64])
        .await;
    measuring
        .read("the next plan", records::NEXT_DUE, &[&"plan"])
        .await;
    let (project, nobody) = (project().uuid(), Vec::<u8>::new());
    let deliveries: [Param<'_>; 5] = [&project, &nobody, &"delivery", &"", &50_i64];
    measuring.read("deliveries", records::LIST, &deliveries).await;
    let large = [b"s", &sample.space(1).to_bytes()[..]].concat();
    let plans: [Param<'_>; 5] = [&project, &large, &"plan", &"", &50_i64];
    measuring
        .read("plans of a large space", records::LIST, &plans)
        .await;
}

/// What retention looks for.
async fn deletion(measuring: &mut Measuring, sample: &Sample) {
    let (project, before, limit) = (project().uuid(), sample.long_ago().0, 100_i64);
    let (large, run, first) = (sample.space(1).uuid(), sample.run(7).uuid(), Uuid::nil());
    measuring
        .read("trees to delete", runs::ENDED_TREES, &[&project, &before, &limit])
        .await;
    let spaces: [Param<'_>; 4] = [&project, &before, &first, &limit];
    measuring
        .read("spaces with loose entries", retention::LOOSE_SPACES, &spaces)
        .await;
    let loose: [Param<'_>; 5] = [&large, &before, &0_i64, &0_i64, &limit];
    measuring
        .read("loose entries", retention::LOOSE_ENTRIES, &loose)
        .await;
    measuring
        .read("entries of a run", retention::OF_RUN, &[&run, &limit])
        .await;
    measuring
        .read("bytes of a run", retention::RUN_BYTES, &[&run])
        .await;
    measuring
        .read("entries of a large space", retention::OF_SPACE, &[&large, &limit])
        .await;
    let named: [Param<'_>; 5] = [&project, &first, &0_i64, &500_i64, &"user5"];
    measuring
        .read("entries with a name", retention::FIND_ENTRIES, &named)
        .await;
}

async fn measured(sizes: &[Sample], looked_at_max: LookedAtMax) -> Vec<scale::Cost> {
    let mut all = Vec::new();
    for sample in sizes {
        all.push(costs(sample, looked_at_max).await);
    }
    scale::side_by_side(all)
}

#[tokio::test]
async fn no_read_touches_more_pages_in_a_larger_database() {
    let grown = scale::grown(&measured(&SIZES, LookedAtMax(100)).await, MORE);
    assert!(grown.is_empty(), "{grown:#?}");
}

#[tokio::test]
#[ignore = "takes minutes, and 3 GB of disk"]
async fn ten_million_events_in_postgres() {
    println!(
        "{}",
        scale::table(&measured(&LARGE_SIZES, LookedAtMax::default()).await, "pages")
    );
}
