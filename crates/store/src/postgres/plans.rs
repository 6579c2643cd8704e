//! The plans of the statements that every run needs, on a database with a few hundred thousand entries: none may read a whole
//! table, so that they stay as fast when it has grown a hundred times.

use toolgate_engine::store::{RecentFilter, RunFilter};
use toolgate_kernel::event::Status;
use toolgate_kernel::id::{EntityId, ProjectId, RunId, SpaceId};
use toolgate_testkit::postgres_server::PostgresServer;

use super::run_lists::{ListValues, recent_sql, statement};
use super::session::Session;
use super::*;
use super::{activity, agents, batch, holdings, idempotency, log, records, run_lists, runs, search, spaces};

/// 3 projects, 6,000 spaces, 60,000 runs of which 300 are open, 300,000 entries, 30,000 records.
const FILL: &str = "
    CREATE FUNCTION pid(n bigint) RETURNS uuid LANGUAGE sql IMMUTABLE AS
        $$ SELECT lpad(to_hex(n), 32, '0')::uuid $$;
    INSERT INTO spaces (id, project, by_backend, created)
        SELECT pid(n), pid(n % 3), false, n FROM generate_series(1, 6000) n;
    INSERT INTO members (space, entity, position)
        SELECT pid(n), pid(n % 900 + m), m FROM generate_series(1, 6000) n, generate_series(1, 2) m;
    INSERT INTO heads (space, last) SELECT pid(n), 50000000 FROM generate_series(1, 6000) n;
    INSERT INTO runs (id, project, space, agent, revision, parent_run, root, status, created, updated, version, wake_at,
                      node, epoch, tokens, lane, wakes, open, queued, asks, \"user\", title)
        SELECT pid(n), pid((n % 6000 + 1) % 3), pid(n % 6000 + 1),
               CASE WHEN n % 15000 = 1 THEN 'rare' ELSE 'agent' END, 1,
               CASE WHEN n % 10 = 0 THEN pid(n - 1) END, pid(CASE WHEN n % 10 = 0 THEN n - 1 ELSE n END),
               CASE WHEN n % 200 = 0 THEN 'waiting_tool' WHEN n % 9000 = 7 THEN 'failed' ELSE 'completed' END, n, n, 5000000,
               CASE WHEN n % 400 = 0 THEN n END, CASE WHEN n % 600 = 0 THEN pid(n % 7) END, 1, 10, 0,
               CASE WHEN n % 1000 = 0 THEN 1 ELSE 0 END, n % 200 = 0, false, n % 800 = 0, pid(n % 900), 'title ' || n
        FROM generate_series(1, 60000) n;
    INSERT INTO log (space, first, last, run, time, format, events)
        SELECT pid(n % 6000 + 1), (n / 6000 + 1) * 1000000, (n / 6000 + 1) * 1000000, pid(n % 60000 + 1), n, 1,
               '[{\"type\":\"text-end\",\"id\":\"1\",\"text\":\"' || repeat('x', 100) || '\"}]'
        FROM generate_series(0, 299999) n;
    INSERT INTO nodes (id, until) SELECT pid(n), n FROM generate_series(0, 9) n;
    INSERT INTO records (project, owner, kind, id, body, due, created, updated, version)
        SELECT pid(n % 3), '\\x65'::bytea || uuid_send(pid(n % 900)), 'kind' || n % 5, 'id' || n, '{}',
               CASE WHEN n % 50 = 0 THEN n END, n, n, 1 FROM generate_series(1, 30000) n;
    INSERT INTO searchable (number, record_set, kind, analysis, terms)
        SELECT number, number % 900, kind, 1, ARRAY[number % 900 || 'xsea', number % 900 || 'xword' || number]
        FROM records;
    INSERT INTO idempotency (project, key, request, answer, time)
        SELECT pid(n % 3), 'key' || n, '', '{}', n FROM generate_series(1, 30000) n;
    ANALYZE";

fn lists() -> Vec<String> {
    let space = Some(SpaceId::from_bytes([1; 16]));
    let run = Some(RunId::from_bytes([1; 16]));
    let user = Some(EntityId::from_bytes([1; 16]));
    let filters = [
        RunFilter::default(),
        RunFilter {
            space,
            ..RunFilter::default()
        },
        RunFilter {
            parent: run,
            ..RunFilter::default()
        },
        RunFilter {
            root: run,
            ..RunFilter::default()
        },
        RunFilter {
            user,
            ..RunFilter::default()
        },
        RunFilter {
            before: run,
            statuses: vec![Status::Completed],
            ..RunFilter::default()
        },
    ];
    let project = ProjectId::from_bytes([1; 16]);
    let sql = |filter| statement(filter, &ListValues::of(project, filter)).sql;
    filters.iter().map(sql).collect()
}

/// A connection to a database with the sample.
async fn filled() -> Lease {
    let address: PostgresAddress = PostgresServer::shared().database().parse().unwrap();
    let options = PostgresOptions {
        statement_timeout: Duration::from_secs(300),
        ..PostgresOptions::default()
    };
    let lease = connect_and_migrate(&address, options).await.unwrap();
    lease.client.batch_execute(FILL).await.unwrap();
    lease
}

#[tokio::test]
async fn no_statement_of_a_run_reads_a_whole_table() {
    let lease = filled().await;
    lease
        .client
        .batch_execute("SET plan_cache_mode = force_generic_plan")
        .await
        .unwrap();
    let statements = [
        batch::LOCK_HEADS,
        batch::LOCK_FREE_HEADS,
        batch::LOCK_RUNS,
        batch::OPEN_RUNS,
        batch::DESCENDANTS,
        batch::ADVANCE_HEADS,
        idempotency::TIMES,
        agents::REMOVED_OF,
        log::TAIL,
        log::OF_RUN,
        log::OF_RUN_BACKWARDS,
        log::OF_SPACE,
        log::OF_SPACE_BACKWARDS,
        runs::CLAIMABLE,
        runs::NEXT_WAKE,
        runs::OPEN_RUN,
        runs::TREE,
        runs::CLAIM,
        runs::CHANGE,
        run_lists::ASKING,
        spaces::OF_PROJECT,
        spaces::OF_MEMBER,
        holdings::OWN_SPACES,
        holdings::MORE,
        activity::HOURS,
        records::DUE,
        records::NEXT_DUE,
        records::LIST_BELOW,
        search::HAVING,
    ];
    let lists = lists();
    let mut bad = Vec::new();
    for sql in statements.into_iter().chain(lists.iter().map(String::as_str)) {
        let plan = plan(&lease, sql).await;
        // Nodes, agents and projects are few.
        let whole = [
            "log",
            "runs",
            "heads",
            "spaces",
            "members",
            "records",
            "searchable",
            "idempotency",
        ];
        if whole
            .iter()
            .any(|table| plan.contains(&format!("Seq Scan on {table}")))
        {
            bad.push(format!("{sql}\n{plan}"));
        }
        if std::env::var_os("TOOLGATE_SHOW_PLANS").is_some() {
            eprintln!("{}\n{plan}\n", sql.trim());
        }
    }
    assert!(bad.is_empty(), "{}", bad.join("\n\n"));

    // Lists are planned for their project: the few runs of a small one are found among those of large ones.
    let small = lists[0].replace("$1", "pid(77)").replace("$2", "20");
    let explained = lease
        .client
        .query(&format!("EXPLAIN {small}"), &[])
        .await
        .unwrap();
    let lines: Vec<String> = explained.iter().map(|row| row.get(0)).collect();
    assert!(lines.join("\n").contains("runs_of_project"), "{lines:?}");
}

/// Most pages that a list may read: a walk over the runs of a project reads 20,000.
const PAGES_MAX: u64 = 500;

/// A list with its values in the statement, because it is planned for them.
fn with_values(sql: &str, values: &[&str]) -> String {
    let numbered = values.iter().enumerate().rev();
    numbered.fold(sql.to_owned(), |sql, (n, value)| {
        sql.replace(&format!("${}", n + 1), value)
    })
}

/// Lists that find few among many: what A2A clients list, in the order of changes.
fn few_of_many() -> Vec<String> {
    let mut lists = Vec::new();
    let none = "NULL";
    let failed = RecentFilter {
        statuses: vec![Status::Failed],
        ..RecentFilter::default()
    };
    for (filter, agent, statuses, since, cursor) in [
        (RecentFilter::default(), none, none, none, none),
        (RecentFilter::default(), "'agent'", none, none, "30000"),
        (RecentFilter::default(), "'rare'", none, none, none),
        (RecentFilter::default(), none, none, "59990", none),
        (failed, none, "ARRAY['failed']", none, none),
    ] {
        let id = if cursor == none { none } else { "pid(30000)" };
        let [page, count] = recent_sql(&filter);
        let common = ["pid(2)", agent, none, none, statuses, since];
        lists.push(with_values(&page, &[&common[..], &[cursor, id, "20"]].concat()));
        lists.push(with_values(&count, &[&common[..], &["100"]].concat()));
    }
    lists
}

#[tokio::test]
async fn a_list_that_finds_few_runs_reads_few() {
    let lease = filled().await;
    let mut bad = Vec::new();
    for sql in few_of_many() {
        let explained = lease
            .client
            .query(&format!("EXPLAIN (ANALYZE, BUFFERS) {sql}"), &[])
            .await
            .expect(&sql);
        let lines: Vec<String> = explained.iter().map(|row| row.get(0)).collect();
        // The first line of buffers is that of the whole.
        let buffers = lines
            .iter()
            .find(|line| line.contains("Buffers: "))
            .expect("buffers");
        let numbers = buffers.split(' ').filter_map(|word| {
            let number = word.strip_prefix("hit=").or_else(|| word.strip_prefix("read="))?;
            number.parse::<u64>().ok()
        });
        let pages: u64 = numbers.sum();
        if pages > PAGES_MAX {
            bad.push(format!("{pages} pages: {sql}\n{}", lines.join("\n")));
        }
    }
    assert!(bad.is_empty(), "{}", bad.join("\n\n"));
}

async fn plan(session: &Session, sql: &str) -> String {
    let count = session.client.prepare(sql).await.expect(sql).params().len();
    let values = match count {
        0 => String::new(),
        _ => format!("({})", vec!["NULL"; count].join(", ")),
    };
    session
        .client
        .batch_execute(&format!("PREPARE looked_at AS {sql}"))
        .await
        .expect(sql);
    let explained = session
        .client
        .query(&format!("EXPLAIN EXECUTE looked_at{values}"), &[])
        .await
        .expect(sql);
    session
        .client
        .batch_execute("DEALLOCATE looked_at")
        .await
        .unwrap();
    let lines: Vec<String> = explained.iter().map(|row| row.get(0)).collect();
    lines.join("\n")
}
