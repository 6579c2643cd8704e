//! The rows of runs: creation, updates, lists.

use std::sync::Arc;

use serde_json::json;
use toolgate_engine::store::{Append, AskingFilter, LANES, RunRecord, RunWrite, Store, StoreError};
use toolgate_kernel::event::{Seq, Status};
use toolgate_kernel::id::{CallId, RunId};
use toolgate_kernel::time::Time;

use super::samples::{
    EVERYTHING, answer, create, entity, event, extend, project, run, run_record, say, space, space_record,
};
use super::{Stored, checks, refused};

checks![
    a_new_run_has_the_version_and_time_of_its_first_append,
    a_run_may_bring_its_space,
    a_run_that_exists_is_refused_and_nothing_is_written,
    a_space_that_exists_is_refused_and_nothing_is_written,
    an_extension_moves_the_row,
    an_extension_needs_the_version_it_has_read,
    an_extension_needs_its_run_in_its_space,
    a_final_run_takes_no_more_events,
    an_agent_has_one_open_run_per_space,
    an_open_run_is_found_by_space_and_agent,
    open_runs_of_a_space_have_lanes_of_their_own,
    a_refused_append_leaves_no_trace,
    runs_that_ask_are_found_until_their_step_ends,
];

async fn a_new_run_has_the_version_and_time_of_its_first_append(store: Arc<dyn Store>) {
    let record = RunRecord {
        parent: Some(CallId {
            run: run(7),
            number: 3,
        }),
        root: run(6),
        revision: 12,
        status: Status::Running,
        created: Time(5),
        wake_at: Some(Time(-1)),
        updated: Time(999),
        version: Seq(999),
        ..run_record(run(1), space(1))
    };
    store.append(say(space(1), "earlier")).await.stored();
    store.append(create(record.clone())).await.stored();
    let stored = store.run(run(1)).await.stored().expect("the run");
    assert_eq!(
        stored,
        RunRecord {
            version: Seq::durable(2),
            updated: Time(2),
            ..record
        }
    );
}

fn create_with_space(id: RunId, in_space: u64) -> Append {
    let mut append = create(run_record(id, space(in_space)));
    let RunWrite::Create { space: row, .. } = &mut append.run else {
        unreachable!()
    };
    let mut record = space_record(space(in_space));
    record.members = vec![entity(2), entity(1)];
    *row = Some(Box::new(record));
    append
}

async fn a_run_may_bring_its_space(store: Arc<dyn Store>) {
    let entry = store.append(create_with_space(run(1), 1)).await.stored();
    assert_eq!(entry.first, Seq::durable(1));
    let space = store.space(space(1)).await.stored().expect("the space");
    assert_eq!(space.members, [entity(2), entity(1)]);
}

async fn a_run_that_exists_is_refused_and_nothing_is_written(store: Arc<dyn Store>) {
    let first = store.append(create(run_record(run(1), space(1)))).await.stored();
    let before = store.run(run(1)).await.stored();
    let mut again = create_with_space(run(1), 2);
    again.idempotency = vec![answer("k")];
    refused!(store.append(again).await, StoreError::Exists);
    assert_eq!(store.run(run(1)).await.stored(), before);
    assert_eq!(
        store.run_log(run(1), EVERYTHING).await.stored().entries,
        [(*first).clone()]
    );
    assert_eq!(store.space(space(2)).await.stored(), None);
    assert_eq!(store.idempotency(project(1), "k").await.stored(), None);
    let next = store.append(create_with_space(run(2), 2)).await.stored();
    assert_eq!(next.first, Seq::durable(1));
}

async fn a_space_that_exists_is_refused_and_nothing_is_written(store: Arc<dyn Store>) {
    store.create_space(space_record(space(1))).await.stored();
    refused!(
        store.append(create_with_space(run(1), 1)).await,
        StoreError::Exists
    );
    assert_eq!(store.run(run(1)).await.stored(), None);
    assert_eq!(store.run_log(run(1), EVERYTHING).await.stored().entries, []);
    assert_eq!(
        store.space(space(1)).await.stored().expect("the space").members,
        []
    );
}

async fn an_extension_moves_the_row(store: Arc<dyn Store>) {
    let record = run_record(run(1), space(1));
    let begun = store.append(create(record.clone())).await.stored();
    let mut append = extend(&record, begun.last());
    let RunWrite::Extend { status, wake_at, .. } = &mut append.run else {
        unreachable!()
    };
    (*status, *wake_at) = (Status::WaitingTool, Some(Time(50)));
    let entry = store.append(append).await.stored();
    let waiting = RunRecord {
        status: Status::WaitingTool,
        wake_at: Some(Time(50)),
        updated: Time(3),
        version: entry.last(),
        ..record.clone()
    };
    assert_eq!(store.run(run(1)).await.stored(), Some(waiting.clone()));
    let entry = store.append(extend(&record, entry.last())).await.stored();
    let running = RunRecord {
        status: Status::Running,
        wake_at: None,
        version: entry.last(),
        ..waiting
    };
    assert_eq!(store.run(run(1)).await.stored(), Some(running));
}

async fn an_extension_needs_the_version_it_has_read(store: Arc<dyn Store>) {
    let record = run_record(run(1), space(1));
    let begun = store.append(create(record.clone())).await.stored();
    // An append to the space alone does not change the run's version.
    store.append(say(space(1), "by the way")).await.stored();
    let moved = store.append(extend(&record, begun.last())).await.stored();
    for stale in [begun.last(), Seq(0), Seq(moved.last().0 + 1), Seq::durable(9)] {
        refused!(store.append(extend(&record, stale)).await, StoreError::Conflict);
    }
    store.append(extend(&record, moved.last())).await.stored();
}

async fn an_extension_needs_its_run_in_its_space(store: Arc<dyn Store>) {
    let record = run_record(run(1), space(1));
    let begun = store.append(create(record.clone())).await.stored();
    let elsewhere = RunRecord {
        space: space(2),
        ..record.clone()
    };
    refused!(
        store.append(extend(&elsewhere, begun.last())).await,
        StoreError::Conflict
    );
    let absent = RunRecord { id: run(2), ..record };
    refused!(
        store.append(extend(&absent, begun.last())).await,
        StoreError::Conflict
    );
}

/// Ends a run that has only its first entry.
async fn end(store: &Arc<dyn Store>, record: &RunRecord) {
    let version = store.run(record.id).await.stored().expect("the run").version;
    let mut append = extend(record, version);
    let RunWrite::Extend { status, .. } = &mut append.run else {
        unreachable!()
    };
    *status = Status::Completed;
    store.append(append).await.stored();
}

async fn a_final_run_takes_no_more_events(store: Arc<dyn Store>) {
    let record = run_record(run(1), space(1));
    store.append(create(record.clone())).await.stored();
    end(&store, &record).await;
    let ended = store.run(run(1)).await.stored().expect("the run");
    refused!(
        store.append(extend(&record, ended.version)).await,
        StoreError::Conflict
    );
    assert_eq!(store.run(run(1)).await.stored(), Some(ended));
}

/// A run of the agent `cook`.
fn cooks(n: u64, at: u64) -> RunRecord {
    RunRecord {
        agent: "cook".parse().expect("a name"),
        ..run_record(run(n), space(at))
    }
}

async fn an_agent_has_one_open_run_per_space(store: Arc<dyn Store>) {
    store.append(create(cooks(1, 1))).await.stored();
    refused!(store.append(create(cooks(2, 1))).await, StoreError::OpenRun(open) if open == run(1));
    assert_eq!(store.run(run(2)).await.stored(), None);
    refused!(store.append(create(cooks(1, 1))).await, StoreError::Exists);
    // Another agent, another space, a child run, a run that is one call, and a finished run.
    store.append(create(run_record(run(3), space(1)))).await.stored();
    store.append(create(cooks(4, 2))).await.stored();
    let parent = Some(CallId {
        run: run(1),
        number: 0,
    });
    let child = RunRecord {
        parent,
        ..cooks(5, 1)
    };
    store.append(create(child)).await.stored();
    let call = RunRecord {
        tool: Some("stir".parse().expect("a name")),
        ..cooks(8, 1)
    };
    store.append(create(call.clone())).await.stored();
    assert_eq!(
        store.run(run(8)).await.stored().map(|run| run.tool),
        Some(call.tool)
    );
    let over = RunRecord {
        status: Status::Failed,
        ..cooks(6, 1)
    };
    store.append(create(over)).await.stored();
    refused!(store.append(create(cooks(2, 1))).await, StoreError::OpenRun(open) if open == run(1));
    end(&store, &cooks(1, 1)).await;
    store.append(create(cooks(2, 1))).await.stored();
    refused!(store.append(create(cooks(7, 1))).await, StoreError::OpenRun(open) if open == run(2));
}

async fn an_open_run_is_found_by_space_and_agent(store: Arc<dyn Store>) {
    let cook = cooks(1, 1).agent;
    let open = async |at| {
        let found = store.open_run(space(at), &cook).await.stored();
        found.map(|record| record.id)
    };
    assert_eq!(open(1).await, None);
    let child = RunRecord {
        parent: Some(CallId {
            run: run(9),
            number: 0,
        }),
        ..cooks(3, 1)
    };
    let call = RunRecord {
        tool: Some("stir".parse().expect("a name")),
        ..cooks(5, 1)
    };
    for record in [
        cooks(1, 1),
        cooks(2, 2),
        child,
        call,
        run_record(run(4), space(1)),
    ] {
        store.append(create(record)).await.stored();
    }
    assert_eq!((open(1).await, open(2).await), (Some(run(1)), Some(run(2))));
    end(&store, &cooks(1, 1)).await;
    assert_eq!((open(1).await, open(2).await), (None, Some(run(2))));
}

async fn open_runs_of_a_space_have_lanes_of_their_own(store: Arc<dyn Store>) {
    let begin = async |n, at| {
        store.append(create(run_record(run(n), space(at)))).await.stored();
        store.run(run(n)).await.stored().expect("the run").lane
    };
    assert_eq!(
        (begin(1, 1).await, begin(2, 1).await, begin(3, 1).await),
        (0, 1, 2)
    );
    assert_eq!(begin(4, 2).await, 0, "every space counts by itself");
    end(&store, &run_record(run(2), space(1))).await;
    assert_eq!(begin(5, 1).await, 1, "what is free is used again");
    for n in 3..LANES {
        assert_eq!(begin(100 + u64::from(n), 1).await, n);
    }
    assert_eq!(begin(200, 1).await, 0, "beyond that lanes are shared");
    assert_eq!(begin(201, 1).await, 1);
}

async fn a_refused_append_leaves_no_trace(store: Arc<dyn Store>) {
    let record = run_record(run(1), space(1));
    let begun = store.append(create(record.clone())).await.stored();
    let before = store.run(run(1)).await.stored();
    let mut stale = extend(&record, Seq(0));
    stale.idempotency = vec![answer("k")];
    refused!(store.append(stale).await, StoreError::Conflict);
    assert_eq!(store.idempotency(project(1), "k").await.stored(), None);
    assert_eq!(store.run(run(1)).await.stored(), before);
    assert_eq!(
        store.space_log(space(1), EVERYTHING).await.stored().entries,
        [(*begun).clone()]
    );
    let next = store.append(extend(&record, begun.last())).await.stored();
    assert_eq!(next.first.index(), begun.last().index() + 1);
}

async fn runs_that_ask_are_found_until_their_step_ends(store: Arc<dyn Store>) {
    let asks = json!({"type": "tool-approval-request", "toolCallId": CallId { run: run(1), number: 0 },
        "toolName": "pay", "placement": "server",
        "approvalId": CallId { run: run(1), number: 0 }.approval(), "expiresAt": "2026-11-15T12:00:00.000Z"});
    let step = json!({"type": "step-start", "step": 2});
    let says = json!({"type": "run-status", "status": "running"});
    for n in 1..=4 {
        let mut home = space_record(space(n));
        home.members = vec![entity(n % 2)];
        store.create_space(home).await.stored();
        let record = RunRecord {
            project: project(if n == 4 { 2 } else { 1 }),
            ..run_record(run(n), space(n))
        };
        let mut version = store.append(create(record.clone())).await.stored().last();
        for told in [&says, &asks, &says] {
            let append = Append {
                events: vec![event(told.clone())],
                ..extend(&record, version)
            };
            version = store.append(append).await.stored().last();
        }
        if n == 2 {
            let append = Append {
                events: vec![event(step.clone())],
                ..extend(&record, version)
            };
            store.append(append).await.stored();
        }
    }
    let all = AskingFilter {
        limit: usize::MAX,
        ..AskingFilter::default()
    };
    let found = async |filter: AskingFilter| -> Vec<RunId> {
        let runs = store.asking(project(1), filter).await.stored().runs;
        runs.into_iter().map(|run| run.id).collect()
    };
    assert_eq!(found(all.clone()).await, [run(3), run(1)]);
    for (filter, expected) in [
        (
            AskingFilter {
                limit: 1,
                ..all.clone()
            },
            vec![run(3)],
        ),
        (
            AskingFilter {
                before: Some(run(3)),
                ..all.clone()
            },
            vec![run(1)],
        ),
        (
            AskingFilter {
                space: Some(space(1)),
                ..all.clone()
            },
            vec![run(1)],
        ),
        (
            AskingFilter {
                agent: Some(run_record(run(3), space(3)).agent),
                ..all.clone()
            },
            vec![run(3)],
        ),
        (
            AskingFilter {
                member: Some(entity(1)),
                ..all.clone()
            },
            vec![run(3), run(1)],
        ),
        (
            AskingFilter {
                member: Some(entity(0)),
                ..all
            },
            vec![],
        ),
    ] {
        assert_eq!(found(filter.clone()).await, expected, "{filter:?}");
    }
}
