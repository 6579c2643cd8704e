//! Runs and what belongs to them: their agent, their child runs, their definitions.

use std::sync::Arc;

use serde_json::json;
use toolgate_engine::store::{
    Above, Append, AskingFilter, RunRecord, RunTree, RunWrite, Store, StoreError, StoredDefinition,
};
use toolgate_kernel::event::{Event, Seq, Status};
use toolgate_kernel::id::CallId;
use toolgate_kernel::time::Time;

use super::samples::{
    EVERYTHING, create, entity, event, extend, project, run, run_record, space, space_record,
};
use super::{Stored, checks, refused};

checks![
    a_removed_agent_gets_no_run_until_it_is_there_again,
    what_a_child_run_asks_stands_in_the_log_of_the_run_at_the_top,
    a_run_tree_is_counted_with_its_tokens,
    a_run_tree_has_no_more_descendants_than_its_limit,
    definitions_are_stored_with_the_run_that_begins_with_them,
];

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
        let found = store.asking(project(1), filter).await.stored().runs;
        assert_eq!(found.iter().map(|run| run.id).collect::<Vec<_>>(), [run(2)]);
    }
    for (member, space) in [(Some(entity(2)), None), (None, Some(space(2)))] {
        let filter = AskingFilter {
            member,
            space,
            limit: 9,
            ..AskingFilter::default()
        };
        assert_eq!(store.asking(project(1), filter).await.stored().runs, []);
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
