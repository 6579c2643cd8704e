//! The same promises with a store that fails now and then, and with runs that never stay in memory.

use std::sync::Arc;

use serde_json::json;
use toolgate_engine::intake::{Decision, IntakeError, Submission};
use toolgate_engine::store::{Store, StoreError};
use toolgate_kernel::event::{Event, Status};
use toolgate_kernel::id::{ApprovalId, CallId, NodeId, QuestionId, RunId};
use toolgate_kernel::json::Json;
use toolgate_kernel::question::{Action, Response};
use toolgate_kernel::tool::Decider;
use toolgate_store::{MemoryStore, SqliteOptions, SqliteStore};
use toolgate_testkit::faulty_store::FaultyStore;
use uuid::Uuid;

use crate::world::{Setup, World, calls_in, retry};

/// One of everything: a server call, a client call, an approval, a task and a question of it. Each part comes to one of the
/// nodes.
async fn one_of_everything(nodes: &[World], number: usize) {
    let node = |part: usize| &nodes[(number >> part) % nodes.len()];
    let words = format!(
        r#"call:mirror={{"n":{number}}} call:ask call:guarded={{"to":"x"}} call:echo={{"e":{number}}} call:work_safe={{"plan":["wait","ask","end"]}}"#
    );
    let mut post = node(0).post_to(None, &words);
    post.idempotency = Some((format!("run {number}"), [0; 32]));
    let posted = retry(|| node(0).engine.post(post.clone())).await;
    let run = posted.run_id.unwrap();
    let events = node(1)
        .until(run, |event| matches!(event, Event::StepFinish(_)))
        .await;
    let calls = calls_in(&events);
    let output = Json::from(json!({ "answer": number }));
    let taken = |told: Result<_, IntakeError>| match told {
        Err(IntakeError::Store(StoreError::Unavailable(_) | StoreError::Timeout) | IntakeError::Busy(_)) => {
            Err("again")
        }
        other => Ok(other.unwrap()),
    };
    let receipt = retry(async || {
        taken(
            node(2)
                .engine
                .submit(calls[1], Submission::Output(output.clone()), None)
                .await,
        )
    })
    .await;
    let approval = ApprovalId {
        run,
        number: calls[2].number,
    };
    retry(async || {
        match node(3)
            .engine
            .decide(approval, Decision::Approve(None), Decider::Backend)
            .await
        {
            Err(IntakeError::Store(_) | IntakeError::Busy(_)) => Err("again"),
            other => Ok(other.unwrap()),
        }
    })
    .await;
    answer_question(node(1), node(2), run, calls[4]).await;
    let end = node(4).finish(run).await;
    assert_eq!(end.status, Status::Completed);

    let log = node(1).log(run).await;
    let count = |wanted: &dyn Fn(&Event) -> bool| log.iter().filter(|(_, event)| wanted(event)).count();
    assert_eq!(count(&|event| matches!(event, Event::RunFinish(_))), 1);
    assert_eq!(count(&|event| matches!(event, Event::Said(_))), 1);
    for call in &calls {
        let settled = |event: &Event| match event {
            Event::ToolOutputAvailable(e) => e.tool_call_id == *call,
            Event::ToolOutputError(e) => e.tool_call_id == *call,
            Event::ToolOutputDenied(e) => e.tool_call_id == *call,
            _ => false,
        };
        assert_eq!(count(&settled), 1, "{call} settles once");
    }
    assert_eq!(count(&|event| matches!(event, Event::ToolQuestionResponse(_))), 1);
    let answered = |event: &Event| matches!(event, Event::ToolOutputAvailable(e) if e.tool_call_id == calls[4] && e.output.as_ref().is_some_and(|output| output.as_str().contains("12A")));
    assert_eq!(count(&answered), 1, "the task has its answer");
    let stored = log
        .iter()
        .find(|(seq, _)| *seq == receipt.seq)
        .map(|(_, event)| event);
    assert!(
        matches!(stored, Some(Event::ToolOutputAvailable(e)) if e.output.as_ref() == Some(&output)),
        "the receipt names the result: {stored:?}"
    );
}

/// Waits for the question of a call on one node, and answers it on another.
async fn answer_question(asked: &World, answered: &World, run: RunId, call: CallId) {
    asked
        .until(run, |event| matches!(event, Event::ToolQuestion(_)))
        .await;
    let question = QuestionId { call, number: 0 };
    let response = Response {
        action: Action::Accept,
        content: Some(json!({"seat": "12A"}).into()),
    };
    retry(async || {
        let responding = answered
            .engine
            .respond(question, response.clone(), Decider::Backend);
        match responding.await {
            Err(IntakeError::Store(_) | IntakeError::Busy(_)) => Err("again"),
            other => Ok(other.unwrap()),
        }
    })
    .await;
}

async fn many(setup: Setup, runs: usize) {
    many_on(vec![World::with(setup).await], runs).await;
}

async fn many_on(nodes: Vec<World>, runs: usize) {
    let nodes: Arc<[World]> = nodes.into();
    let mut tasks = tokio::task::JoinSet::new();
    for number in 0..runs {
        let nodes = nodes.clone();
        tasks.spawn(async move { one_of_everything(&nodes, number).await });
    }
    while let Some(done) = tasks.join_next().await {
        done.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn every_promise_holds_when_runs_never_stay_in_memory() {
    many(
        Setup {
            always_evict: true,
            ..Setup::default()
        },
        20,
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn every_promise_holds_when_one_store_call_in_thirty_fails() {
    for seed in 0..60 {
        let inner: Arc<dyn Store> = Arc::new(MemoryStore::new());
        let store = Arc::new(FaultyStore::new(inner, seed, 10));
        many(
            Setup {
                store,
                ..Setup::default()
            },
            20,
        )
        .await;
    }
}

#[tokio::test(start_paused = true)]
async fn every_promise_holds_on_two_nodes_when_one_store_call_in_thirty_fails() {
    for seed in 0..32 {
        let shared = Setup::default();
        let mut nodes = Vec::new();
        for node in 1..=2 {
            let store = FaultyStore::connection(shared.store.clone(), seed * 2 + node, 10);
            nodes.push(
                World::with(Setup {
                    store: Arc::new(store),
                    clock: shared.clock.clone(),
                    bus: shared.bus.clone(),
                    tasks: shared.tasks.clone(),
                    node: NodeId::new(Uuid::from_u128(node.into())),
                    ..Setup::default()
                })
                .await,
            );
        }
        many_on(nodes, 32).await;
    }
}

#[tokio::test]
async fn every_promise_holds_on_sqlite_with_faults_and_without_memory() {
    let folder = tempfile::tempdir().unwrap();
    let sqlite = SqliteStore::open(&folder.path().join("test.db"), SqliteOptions::default()).unwrap();
    let store = Arc::new(FaultyStore::new(Arc::new(sqlite), 1, 10));
    many(
        Setup {
            store,
            always_evict: true,
            ..Setup::default()
        },
        50,
    )
    .await;
}
