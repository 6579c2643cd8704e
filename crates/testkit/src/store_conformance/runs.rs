//! The rows of runs: creation, updates, lists.

use std::sync::Arc;

use serde_json::json;
use toolgate_engine::store::{
    Above, Append, AskingFilter, LANES, RunFilter, RunRecord, RunTree, RunWrite, Store, StoreError,
    StoredDefinition,
};
use toolgate_kernel::event::{Event, Seq, Status};
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
    a_removed_agent_gets_no_run_until_it_is_there_again,
    a_refused_append_leaves_no_trace,
    runs_are_listed_newest_first_in_pages,
    a_list_keeps_to_its_filter,
    a_list_keeps_to_its_project,
    runs_that_ask_are_found_until_their_step_ends,
    what_a_child_run_asks_stands_in_the_log_of_the_run_at_the_top,
    a_run_tree_is_counted_with_its_tokens,
    a_run_tree_has_no_more_descendants_than_its_limit,
    definitions_are_stored_with_the_run_that_begins_with_them,
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
        let runs = store.asking(project(1), filter).await.stored();
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

const ALL: RunFilter = RunFilter {
    space: None,
    status: None,
    parent: None,
    before: None,
    limit: usize::MAX,
};

async fn ids(store: &Arc<dyn Store>, filter: RunFilter) -> Vec<RunId> {
    store
        .runs(project(1), filter)
        .await
        .stored()
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
    let status = Some(Status::WaitingTool);
    assert_eq!(ids(&store, RunFilter { space, ..ALL }).await, [8, 5, 2].map(run));
    assert_eq!(
        ids(&store, RunFilter { status, ..ALL }).await,
        [8, 6, 4, 2].map(run)
    );
    assert_eq!(
        ids(&store, RunFilter { parent, ..ALL }).await,
        [8, 7, 6, 5].map(run)
    );
    assert_eq!(
        ids(&store, RunFilter { space, status, ..ALL }).await,
        [8, 2].map(run)
    );
    let all = RunFilter {
        space,
        status,
        parent,
        before: Some(run(9)),
        limit: 5,
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
    let theirs = store.runs(project(2), of_space).await.stored();
    assert_eq!(
        theirs.iter().map(|record| record.id).collect::<Vec<_>>(),
        [run(2)]
    );
    assert_eq!(store.runs(project(3), ALL).await.stored(), []);
}

/// A child run in the run tree of `root`.
fn below(root: u64, n: u64) -> RunRecord {
    RunRecord {
        root: run(root),
        parent: Some(CallId {
            run: run(root),
            number: 0,
        }),
        ..run_record(run(n), space(n))
    }
}

fn step(tokens: u64) -> Event {
    let usage = json!({ "inputTokens": tokens, "outputTokens": 1 });
    event(json!({ "type": "step-finish", "step": 1, "reason": "stop", "usage": usage }))
}

async fn a_removed_agent_gets_no_run_until_it_is_there_again(store: Arc<dyn Store>) {
    let RunRecord { project, agent, .. } = run_record(run(1), space(1));
    let of_agent = |n| RunRecord {
        agent: agent.clone(),
        ..run_record(run(n), space(n))
    };
    let config = || json!({}).into();
    store.put_agent(project, &agent, config(), Time(1)).await.stored();
    store.append(create(of_agent(1))).await.stored();
    assert!(store.remove_agent(project, &agent).await.stored());
    let in_space = store.append(create(of_agent(2))).await;
    refused!(in_space, StoreError::AgentRemoved);
    let mut with_space = create(of_agent(3));
    let RunWrite::Create { space: new, .. } = &mut with_space.run else {
        unreachable!("it makes a run")
    };
    *new = Some(Box::new(space_record(space(3))));
    refused!(store.append(with_space).await, StoreError::AgentRemoved);
    assert_eq!(store.space(space(3)).await.stored(), None);
    assert_eq!(store.run(run(2)).await.stored(), None);
    // A run that a call started ends with the one above it.
    let child = RunRecord {
        agent: agent.clone(),
        ..below(1, 4)
    };
    store.append(create(child)).await.stored();
    store.put_agent(project, &agent, config(), Time(2)).await.stored();
    store.append(create(of_agent(2))).await.stored();
}

async fn a_run_tree_is_counted_with_its_tokens(store: Arc<dyn Store>) {
    assert_eq!(store.run_tree(run(1)).await.stored(), RunTree::default());
    let top = run_record(run(1), space(1));
    let begun = store.append(create(top.clone())).await.stored();
    let mut steps = extend(&top, begun.last());
    steps.events.extend([step(10), step(20)]);
    store.append(steps).await.stored();
    let mut child = create(below(1, 2));
    child.events.push(step(4));
    store.append(child).await.stored();
    // Of another run tree.
    store.append(create(below(9, 3))).await.stored();
    let tree = RunTree {
        descendants: 1,
        tokens: 11 + 21 + 5,
    };
    assert_eq!(store.run_tree(run(1)).await.stored(), tree);
}

async fn a_run_tree_has_no_more_descendants_than_its_limit(store: Arc<dyn Store>) {
    store.append(create(run_record(run(1), space(1)))).await.stored();
    let child = |n| {
        let mut append = create(below(1, n));
        let RunWrite::Create { descendants_max, .. } = &mut append.run else {
            unreachable!()
        };
        *descendants_max = Some(3);
        append
    };
    let births = futures_util::future::join_all((2..10).map(|n| store.append(child(n)))).await;
    let born = births.iter().filter(|birth| birth.is_ok()).count();
    assert_eq!(born, 3);
    for birth in births.into_iter().filter(|birth| birth.is_err()) {
        refused!(birth, StoreError::Full);
    }
    assert_eq!(store.run_tree(run(1)).await.stored().descendants, 3);
    refused!(store.append(child(20)).await, StoreError::Full);
    assert_eq!(store.run(run(20)).await.stored(), None);
}

async fn definitions_are_stored_with_the_run_that_begins_with_them(store: Arc<dyn Store>) {
    let pinning = |n: u64, stored: &[(&str, &str)]| {
        let mut append = create(run_record(run(n), space(n)));
        let RunWrite::Create { definitions, .. } = &mut append.run else {
            unreachable!("it makes a run")
        };
        *definitions = stored
            .iter()
            .map(|(hash, words)| definition(hash, words))
            .collect();
        append
    };
    let hashes = ["a", "b", "c", "d"].map(str::to_owned);
    assert_eq!(store.definitions(project(1), &hashes).await.stored(), []);
    store
        .append(pinning(1, &[("a", "first"), ("b", "second")]))
        .await
        .stored();
    // Stored once: whoever brings the same hash brings the same definition.
    store
        .append(pinning(2, &[("b", "other"), ("c", "third")]))
        .await
        .stored();
    refused!(
        store.append(pinning(1, &[("d", "refused")])).await,
        StoreError::Exists
    );
    let mut found = store.definitions(project(1), &hashes).await.stored();
    found.sort_by(|one, other| one.hash.cmp(&other.hash));
    let expected = [("a", "first"), ("b", "second"), ("c", "third")];
    assert_eq!(found, expected.map(|(hash, words)| definition(hash, words)));
    let one = store.definitions(project(1), &hashes[1..2]).await.stored();
    assert_eq!(one, [definition("b", "second")]);
    assert_eq!(store.definitions(project(2), &hashes).await.stored(), []);
}

fn definition(hash: &str, words: &str) -> StoredDefinition {
    StoredDefinition {
        hash: hash.into(),
        definition: json!({"name": hash, "description": words}).into(),
    }
}

async fn what_a_child_run_asks_stands_in_the_log_of_the_run_at_the_top(store: Arc<dyn Store>) {
    let mut home = space_record(space(1));
    home.members = vec![entity(1)];
    store.create_space(home).await.stored();
    let top = run_record(run(1), space(1));
    store.append(create(top.clone())).await.stored();
    let child = RunRecord {
        parent: Some(CallId {
            run: run(1),
            number: 0,
        }),
        root: run(1),
        ..run_record(run(2), space(2))
    };
    let begun = store.append(create(child.clone())).await.stored();
    let call = CallId {
        run: run(2),
        number: 0,
    };
    let asks = json!({"type": "tool-approval-request", "toolCallId": call, "toolName": "pay", "placement": "server",
        "approvalId": call.approval(), "expiresAt": "2026-11-15T12:00:00.000Z"});
    let told = json!({"type": "child-call", "ignorable": true, "agent": "mailer", "childRunId": run(2), "event": asks});
    let asking = |version| Append {
        events: vec![event(asks.clone())],
        above: Some(Above {
            space: space(1),
            run: run(1),
            events: vec![event(told.clone()), event(told.clone())],
        }),
        ..extend(&child, version)
    };
    refused!(store.append(asking(Seq(0))).await, StoreError::Conflict);
    assert_eq!(
        store.space_tail(space(1)).await.stored(),
        Seq::durable(1),
        "all or nothing"
    );
    let asked = store.append(asking(begun.last())).await.stored();
    assert_eq!(
        (asked.space, asked.run, asked.events.len()),
        (space(2), Some(run(2)), 1)
    );
    let log = store.run_log(run(1), EVERYTHING).await.stored().entries;
    let last = log.last().expect("an entry");
    assert_eq!(
        (last.space, last.run, last.first, last.time),
        (space(1), Some(run(1)), Seq::durable(2), Time(3))
    );
    assert_eq!(last.events, [event(told.clone()), event(told.clone())]);
    let own = store.run_log(run(2), EVERYTHING).await.stored().entries;
    assert_eq!(own.len(), 2, "its own log has its own events");
    let row = store.run(run(1)).await.stored().expect("the run at the top");
    assert_eq!((row.version, row.updated), (Seq::durable(3), Time(2)));
    refused!(
        store.append(extend(&top, Seq::durable(1))).await,
        StoreError::Conflict
    );

    // It is asked where the run at the top is.
    for (member, space) in [(Some(entity(1)), Some(space(1))), (None, None)] {
        let filter = AskingFilter {
            member,
            space,
            limit: 9,
            ..AskingFilter::default()
        };
        let found = store.asking(project(1), filter).await.stored();
        assert_eq!(found.iter().map(|run| run.id).collect::<Vec<_>>(), [run(2)]);
    }
    for (member, space) in [(Some(entity(2)), None), (None, Some(space(2)))] {
        let filter = AskingFilter {
            member,
            space,
            limit: 9,
            ..AskingFilter::default()
        };
        assert_eq!(store.asking(project(1), filter).await.stored(), []);
    }

    // When that has ended, what is told is its space's alone.
    let mut end = extend(&top, Seq::durable(3));
    let RunWrite::Extend { status, .. } = &mut end.run else {
        unreachable!("it extends")
    };
    *status = Status::Completed;
    store.append(end).await.stored();
    store.append(asking(asked.last())).await.stored();
    let row = store.run(run(1)).await.stored().expect("the run at the top");
    assert_eq!(row.version, Seq::durable(4));
    let log = store.space_log(space(1), EVERYTHING).await.stored().entries;
    let last = log.last().expect("an entry");
    assert_eq!((last.run, last.first), (None, Seq::durable(5)));
}
