//! Lists of runs.

use std::sync::Arc;

use serde_json::json;
use toolgate_engine::activity::{Activity, Hour, HourRecord};
use toolgate_engine::store::{
    Append, AskingFilter, LookedAtMax, RecentFilter, RevisionRecord, RunFilter, RunRecord, RunWrite, Store,
};
use toolgate_engine::usage::{Latency, ToolUse, UsageRecord};
use toolgate_kernel::call::ErrorCode;
use toolgate_kernel::event::{Seq, Status};
use toolgate_kernel::id::{CallId, EntityId, RunId, SpaceId};
use toolgate_kernel::name::AgentName;
use toolgate_kernel::time::Time;

use super::samples::{create, event, extend, project, run, run_record, space};
use super::{Stored, checks};

checks![
    runs_are_listed_newest_first_in_pages,
    a_list_keeps_to_its_filter,
    a_list_keeps_to_its_project,
    runs_are_found_by_who_started_them_what_was_said_and_when,
    runs_are_found_by_their_place_in_a_tree,
    activity_counts_runs_by_status_and_hour_and_calls_by_outcome,
    revisions_of_an_agent_are_listed_newest_first,
    runs_are_listed_by_their_last_change,
    a_list_that_may_look_at_few_rows_tells_all_runs_in_more_pages,
    a_list_by_time_goes_on_where_a_deleted_run_was,
];

const ALL: RunFilter = RunFilter {
    space: None,
    statuses: Vec::new(),
    parent: None,
    root: None,
    top: false,
    agent: None,
    user: None,
    tool: None,
    text: None,
    since: None,
    until: None,
    before: None,
    limit: usize::MAX,
    looked_at_max: LookedAtMax(10_000),
};

async fn ids(store: &Arc<dyn Store>, filter: RunFilter) -> Vec<RunId> {
    store
        .runs(project(1), filter)
        .await
        .stored()
        .runs
        .into_iter()
        .map(|record| record.id)
        .collect()
}

async fn runs_are_listed_newest_first_in_pages(store: Arc<dyn Store>) {
    for n in [3, 1, 5, 2, 4] {
        store.append(create(run_record(run(n), space(n)))).await.stored();
    }
    assert_eq!(ids(&store, ALL).await, [5, 4, 3, 2, 1].map(run));
    let page = async |before| {
        ids(
            &store,
            RunFilter {
                before,
                limit: 2,
                ..ALL
            },
        )
        .await
    };
    assert_eq!(page(None).await, [run(5), run(4)]);
    assert_eq!(page(Some(run(4))).await, [run(3), run(2)]);
    assert_eq!(page(Some(run(2))).await, [run(1)]);
    assert_eq!(page(Some(run(1))).await, []);
    assert_eq!(ids(&store, RunFilter { limit: 0, ..ALL }).await, []);
}

async fn a_list_keeps_to_its_filter(store: Arc<dyn Store>) {
    for n in 1..=8 {
        let record = RunRecord {
            status: if n % 2 == 0 {
                Status::WaitingTool
            } else {
                Status::Completed
            },
            parent: (n > 4).then_some(CallId {
                run: run(1),
                number: n as u32,
            }),
            ..run_record(run(n), space(n % 3))
        };
        store.append(create(record)).await.stored();
    }
    let (space, parent) = (Some(space(2)), Some(run(1)));
    let statuses = || vec![Status::WaitingTool];
    assert_eq!(ids(&store, RunFilter { space, ..ALL }).await, [8, 5, 2].map(run));
    assert_eq!(
        ids(
            &store,
            RunFilter {
                statuses: statuses(),
                ..ALL
            }
        )
        .await,
        [8, 6, 4, 2].map(run)
    );
    assert_eq!(
        ids(&store, RunFilter { parent, ..ALL }).await,
        [8, 7, 6, 5].map(run)
    );
    assert_eq!(
        ids(
            &store,
            RunFilter {
                space,
                statuses: statuses(),
                ..ALL
            }
        )
        .await,
        [8, 2].map(run)
    );
    let all = RunFilter {
        space,
        statuses: statuses(),
        parent,
        before: Some(run(9)),
        limit: 5,
        ..ALL
    };
    assert_eq!(ids(&store, all).await, [run(8)]);
    assert_eq!(
        ids(
            &store,
            RunFilter {
                parent: Some(run(2)),
                ..ALL
            }
        )
        .await,
        []
    );
}

async fn a_list_keeps_to_its_project(store: Arc<dyn Store>) {
    let theirs = RunRecord {
        project: project(2),
        ..run_record(run(2), space(1))
    };
    store.append(create(run_record(run(1), space(1)))).await.stored();
    store.append(create(theirs)).await.stored();
    assert_eq!(ids(&store, ALL).await, [run(1)]);
    let of_space = RunFilter {
        space: Some(space(1)),
        ..ALL
    };
    assert_eq!(ids(&store, of_space.clone()).await, [run(1)]);
    let theirs = store.runs(project(2), of_space).await.stored().runs;
    assert_eq!(
        theirs.iter().map(|record| record.id).collect::<Vec<_>>(),
        [run(2)]
    );
    assert_eq!(store.runs(project(3), ALL).await.stored().runs, []);
}

async fn runs_are_found_by_who_started_them_what_was_said_and_when(store: Arc<dyn Store>) {
    let entity = |n: u8| EntityId::from_bytes([n; 16]);
    let titles = [
        "Book a FLIGHT to Oslo",
        "book a train",
        "100% sure_ly \\ now",
        "Ångström",
    ];
    for (n, title) in (1..).zip(titles) {
        let record = RunRecord {
            user: Some(entity((n % 2) as u8)),
            title: Some(title.into()),
            created: Time(n as i64 * 1_000),
            agent: format!("agent_{}", n % 2).parse().expect("a name"),
            tool: (n == 4).then(|| "lookup".parse().expect("a name")),
            ..run_record(run(n), space(n))
        };
        store.append(create(record)).await.stored();
    }
    store.append(create(run_record(run(9), space(9)))).await.stored();
    let user = Some(entity(1));
    assert_eq!(ids(&store, RunFilter { user, ..ALL }).await, [3, 1].map(run));
    let agent = Some("agent_0".parse().expect("a name"));
    assert_eq!(ids(&store, RunFilter { agent, ..ALL }).await, [4, 2].map(run));
    let tool = Some("lookup".parse().expect("a name"));
    assert_eq!(ids(&store, RunFilter { tool, ..ALL }).await, [run(4)]);
    for (text, found) in [
        ("BOOK a", vec![run(2), run(1)]),
        ("flight", vec![run(1)]),
        ("0% sure_ly \\", vec![run(3)]),
        ("%", vec![run(3)]),
        ("_", vec![run(3)]),
        ("ngstr\u{f6}m", vec![run(4)]),
        ("boat", vec![]),
    ] {
        let text = Some(text.to_owned());
        assert_eq!(
            ids(
                &store,
                RunFilter {
                    text: text.clone(),
                    ..ALL
                }
            )
            .await,
            found,
            "{text:?}"
        );
    }
    let (since, until) = (Some(Time(2_000)), Some(Time(4_000)));
    assert_eq!(
        ids(&store, RunFilter { since, until, ..ALL }).await,
        [3, 2].map(run)
    );
    let all = RunFilter {
        user,
        text: Some("book".into()),
        until,
        before: Some(run(3)),
        limit: 5,
        ..ALL
    };
    assert_eq!(ids(&store, all).await, [run(1)]);
    let stored = store.run(run(1)).await.stored().expect("it is there");
    assert_eq!(
        (stored.user, stored.title.as_deref(), stored.tokens),
        (user, Some(titles[0]), 0)
    );
}

async fn runs_are_found_by_their_place_in_a_tree(store: Arc<dyn Store>) {
    // 1 has 2 and 3 below it, 2 has 4; 5 stands alone.
    for (n, parent) in [(1, None), (2, Some(1)), (3, Some(1)), (4, Some(2)), (5, None)] {
        let record = RunRecord {
            parent: parent.map(|parent| CallId {
                run: run(parent),
                number: n as u32,
            }),
            root: if n == 5 { run(5) } else { run(1) },
            ..run_record(run(n), space(n))
        };
        store.append(create(record)).await.stored();
    }
    let root = Some(run(1));
    assert_eq!(ids(&store, RunFilter { root, ..ALL }).await, [4, 3, 2].map(run));
    assert_eq!(
        ids(
            &store,
            RunFilter {
                root,
                limit: 1,
                ..ALL
            }
        )
        .await,
        [run(4)]
    );
    assert_eq!(
        ids(
            &store,
            RunFilter {
                root: Some(run(5)),
                ..ALL
            }
        )
        .await,
        []
    );
    assert_eq!(ids(&store, RunFilter { top: true, ..ALL }).await, [5, 1].map(run));
    let theirs = RunFilter { root, ..ALL };
    assert_eq!(store.runs(project(2), theirs).await.stored().runs, []);
}

async fn activity_counts_runs_by_status_and_hour_and_calls_by_outcome(store: Arc<dyn Store>) {
    const HOUR: i64 = 3_600_000;
    let statuses = [
        Status::Running,
        Status::WaitingTool,
        Status::WaitingTool,
        Status::Completed,
    ];
    for (n, status) in (1..).zip(statuses) {
        let record = RunRecord {
            status,
            created: Time(n as i64 * HOUR),
            ..run_record(run(n), space(n))
        };
        store.append(create(record)).await.stored();
    }
    let theirs = RunRecord {
        project: project(2),
        created: Time(2 * HOUR),
        ..run_record(run(8), space(8))
    };
    store.append(create(theirs)).await.stored();
    let mut said = create(RunRecord {
        status: Status::Completed,
        created: Time(4 * HOUR + 1),
        ..run_record(run(9), space(9))
    });
    said.events.push(event(json!({
        "type": "step-finish", "step": 0, "reason": "stop", "usage": {"inputTokens": 30, "outputTokens": 12},
    })));
    said.usage.push(ToolUse {
        project: project(1),
        tool: "lookup".into(),
        code: Some(ErrorCode::Timeout),
        latency: Latency(3),
    });
    store.append(said).await.stored();
    let mut told = store.activity(project(1), Time(2 * HOUR)).await.stored();
    told.open.sort();
    assert_eq!(told.open, [(Status::Running, 1), (Status::WaitingTool, 2)]);
    told.hours.sort_by_key(|hour| (hour.hour, hour.status));
    let hour = |hour, status, runs, tokens| HourRecord {
        hour: Hour(hour),
        status,
        runs,
        tokens,
    };
    assert_eq!(
        told.hours,
        [
            hour(2, Status::WaitingTool, 1, 0),
            hour(3, Status::WaitingTool, 1, 0),
            hour(4, Status::Completed, 2, 42),
        ]
    );
    let calls = UsageRecord {
        code: Some(ErrorCode::Timeout),
        latency: Latency(3),
        calls: 1,
    };
    assert_eq!(told.calls, [calls]);
    assert_eq!(
        store.activity(project(3), Time(0)).await.stored(),
        Activity::default()
    );
}

async fn revisions_of_an_agent_are_listed_newest_first(store: Arc<dyn Store>) {
    let name: AgentName = "revised".parse().expect("a name");
    for n in 1..=3 {
        let config = json!({ "n": n }).into();
        store.put_agent(project(1), &name, config, Time(n)).await.stored();
    }
    let numbers = async |project, before, limit| {
        let listed = store
            .agent_revisions(project, &name, before, limit)
            .await
            .stored();
        let told = |record: RevisionRecord| (record.revision, record.created.0);
        listed.into_iter().map(told).collect::<Vec<_>>()
    };
    assert_eq!(numbers(project(1), None, 10).await, [(3, 3), (2, 2), (1, 1)]);
    assert_eq!(numbers(project(1), Some(3), 1).await, [(2, 2)]);
    assert_eq!(numbers(project(1), Some(1), 10).await, []);
    assert_eq!(numbers(project(2), None, 10).await, []);
    store.remove_agent(project(1), &name).await.stored();
    assert_eq!(numbers(project(1), None, 10).await.len(), 3);
}

async fn runs_are_listed_by_their_last_change(store: Arc<dyn Store>) {
    for n in 1..=6 {
        let record = RunRecord {
            status: if n % 2 == 0 {
                Status::WaitingTool
            } else {
                Status::Completed
            },
            parent: (n == 6).then_some(CallId {
                run: run(1),
                number: 0,
            }),
            ..run_record(run(n), space(n))
        };
        store.append(create(record)).await.stored();
    }
    let recent = async |filter: RecentFilter| {
        let (rows, total) = store.recent_runs(project(1), filter).await.stored();
        let places: Vec<_> = rows.iter().map(|row| (row.updated, row.id)).collect();
        assert!(places.is_sorted_by(|a, b| a > b), "{places:?}");
        (rows.into_iter().map(|row| row.id).collect::<Vec<_>>(), total)
    };
    let all = RecentFilter {
        limit: 10,
        ..RecentFilter::default()
    };
    let (ids, total) = recent(all.clone()).await;
    assert_eq!((ids.len(), total), (5, 5));
    let waiting = RecentFilter {
        statuses: vec![Status::WaitingTool],
        ..all.clone()
    };
    assert_eq!(recent(waiting).await.1, 2);
    let (first, total) = recent(RecentFilter {
        limit: 2,
        ..all.clone()
    })
    .await;
    assert_eq!((first.as_slice(), total), (&ids[..2], 5));
    let (rows, _) = store.recent_runs(project(1), all.clone()).await.stored();
    let rest = RecentFilter {
        before: Some((rows[1].updated, rows[1].id)),
        ..all
    };
    let (rest, total) = recent(rest).await;
    assert_eq!((rest.as_slice(), total), (&ids[2..], 5));
}

/// All pages of a list, and how many there were.
async fn pages(store: &Arc<dyn Store>, filter: RunFilter) -> (Vec<RunId>, usize) {
    let (mut found, mut before, mut count) = (Vec::new(), None, 0);
    loop {
        let filter = RunFilter {
            before,
            ..filter.clone()
        };
        let page = store.runs(project(1), filter).await.stored();
        found.extend(page.runs.iter().map(|run| run.id));
        count += 1;
        before = page.next;
        if before.is_none() {
            return (found, count);
        }
    }
}

/// A run asks for an approval, and stays as it is.
fn asks(record: &RunRecord, seen: Seq) -> Append {
    let call = CallId {
        run: record.id,
        number: 0,
    };
    let mut append = extend(record, seen);
    append.events = vec![event(json!({
        "type": "tool-approval-request", "toolCallId": call, "toolName": "send", "placement": "server",
        "approvalId": call.approval(), "expiresAt": "2026-11-15T12:00:00.000Z",
    }))];
    let RunWrite::Extend { status, .. } = &mut append.run else {
        unreachable!("it extends")
    };
    *status = record.status;
    append
}

/// All runs that ask in a space, looked for row by row.
async fn all_asking(store: &Arc<dyn Store>, space: SpaceId) -> Vec<RunId> {
    let (mut found, mut before) = (Vec::new(), None);
    loop {
        let filter = AskingFilter {
            space: Some(space),
            before,
            limit: 2,
            looked_at_max: LookedAtMax(1),
            ..AskingFilter::default()
        };
        let page = store.asking(project(1), filter).await.stored();
        found.extend(page.runs.iter().map(|run| run.id));
        before = page.next;
        if before.is_none() {
            return found;
        }
    }
}

async fn a_list_that_may_look_at_few_rows_tells_all_runs_in_more_pages(store: Arc<dyn Store>) {
    let user = Some(EntityId::from_bytes([1; 16]));
    let tool = Some("lookup".parse().expect("a name"));
    let agent: AgentName = "even".parse().expect("a name");
    for n in 1..=12 {
        let record = RunRecord {
            title: Some(if n % 6 == 0 { "a needle" } else { "hay" }.into()),
            created: Time(100 - n as i64),
            agent: match n % 2 {
                0 => agent.clone(),
                _ => format!("odd_{n}").parse().expect("a name"),
            },
            // It stands beside the open run of its agent.
            tool: tool.clone().filter(|_| n % 4 == 0),
            user,
            status: match n % 3 {
                0 => Status::WaitingApproval,
                _ => Status::Failed,
            },
            ..run_record(run(n), space(n % 2))
        };
        let begun = store.append(create(record.clone())).await.stored();
        if !record.status.is_final() {
            store.append(asks(&record, begun.last())).await.stored();
        }
    }
    let needle = RunFilter {
        text: Some("needle".into()),
        limit: 3,
        looked_at_max: LookedAtMax(2),
        ..ALL
    };
    let (home, waiting) = (Some(space(0)), Status::WaitingApproval);
    for (space, user, agent, tool, statuses, found) in [
        (None, None, None, None, vec![], vec![12, 6]),
        (home, None, None, None, vec![], vec![12, 6]),
        (None, user, None, None, vec![], vec![12, 6]),
        (None, None, Some(agent.clone()), None, vec![], vec![12, 6]),
        (None, None, Some(agent), tool, vec![], vec![12]),
        (None, None, None, None, vec![waiting], vec![12, 6]),
        (home, None, None, None, vec![waiting], vec![12, 6]),
        (None, None, None, None, vec![Status::Failed, waiting], vec![12, 6]),
        (None, None, None, None, vec![Status::Failed], vec![]),
    ] {
        let filter = RunFilter {
            space,
            user,
            agent,
            tool,
            statuses,
            ..needle.clone()
        };
        let expected: Vec<RunId> = found.into_iter().map(run).collect();
        assert_eq!(pages(&store, filter.clone()).await.0, expected, "{filter:?}");
    }
    let by_time = RunFilter {
        since: Some(Time(0)),
        until: Some(Time(100)),
        ..needle
    };
    // They were created the other way round.
    assert_eq!(pages(&store, by_time).await.0, [6, 12].map(run));
    let failed = RunFilter {
        statuses: vec![Status::Failed],
        limit: 3,
        ..ALL
    };
    let (found, count) = pages(&store, failed).await;
    assert_eq!((found.len(), count), (8, 3));
    assert_eq!(all_asking(&store, space(0)).await, [12, 6].map(run));
}

async fn a_list_by_time_goes_on_where_a_deleted_run_was(store: Arc<dyn Store>) {
    // An id begins with the milliseconds at which it was given.
    let at = |n: u8| RunId::from_bytes([0, 0, 0, 0, 0, n, 0x70, 0, 0x80, 0, 0, 0, 0, 0, 0, 0]);
    for n in 1..=4 {
        let record = RunRecord {
            created: Time(n.into()),
            root: at(n),
            status: Status::Completed,
            ..run_record(at(n), space(n.into()))
        };
        store.append(create(record)).await.stored();
    }
    let filter = |before| RunFilter {
        since: Some(Time(1)),
        before,
        limit: 2,
        ..ALL
    };
    let first = store.runs(project(1), filter(None)).await.stored();
    assert_eq!(first.next, Some(at(3)));
    store.remove_runs(project(1), vec![at(3)], Time(9)).await.stored();
    assert_eq!(ids(&store, filter(first.next)).await, [at(2), at(1)]);
}
