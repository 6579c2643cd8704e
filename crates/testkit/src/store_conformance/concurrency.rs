//! Concurrent calls: one order, one winner, no lost writes.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use tokio::task::JoinSet;
use toolgate_engine::store::{CommitListener, RunRecord, RunWrite, SpaceRecord, Store, StoreError};
use toolgate_kernel::event::{Entry, Seq};
use toolgate_kernel::id::SpaceId;
use toolgate_kernel::time::Time;

use super::samples::{
    EVERYTHING, answer, create, entity, entity_record, extend, node, project, run, run_record, say, space,
    space_record,
};
use super::{Stored, checks, refused};

checks![
    appends_to_one_space_get_distinct_dense_places,
    the_listener_hears_of_commits_in_order_before_the_answer,
    a_refused_append_is_no_news,
    of_many_writers_at_one_version_one_wins,
    of_many_requests_with_one_key_one_wins,
    of_many_runs_of_one_agent_one_begins,
    of_many_nodes_one_claims,
    a_write_outlives_its_caller,
    whoever_deletes_a_person_finds_every_space_of_theirs,
];

const WRITERS: u64 = 64;
/// Runs `work` for all writers concurrently and returns their results.
async fn at_once<T: Send + 'static, F: Future<Output = T> + Send + 'static>(
    work: impl Fn(u64) -> F,
) -> Vec<T> {
    let mut tasks: JoinSet<T> = JoinSet::new();
    for writer in 0..WRITERS {
        tasks.spawn(work(writer));
    }
    tasks.join_all().await
}

async fn whoever_deletes_a_person_finds_every_space_of_theirs(store: Arc<dyn Store>) {
    store.put_entity(entity_record(entity(1), "ada")).await.stored();
    let theirs = async || {
        let theirs = store.spaces(project(1), Some(entity(1)), None, 1_000).await;
        theirs.stored().len()
    };
    let members = |n: u64| SpaceRecord {
        members: vec![entity(1)],
        ..space_record(space(n))
    };
    let makers = at_once(|writer| {
        let store = store.clone();
        async move {
            let made = match writer % 2 {
                0 => store.create_space(members(writer + 1)).await,
                _ => {
                    let mut begin = create(run_record(run(writer + 1), space(writer + 1)));
                    let RunWrite::Create { space, .. } = &mut begin.run else {
                        unreachable!("a new run")
                    };
                    *space = Some(Box::new(members(writer + 1)));
                    store.append(begin).await.map(drop)
                }
            };
            match made {
                Ok(()) => 1,
                Err(StoreError::EntityDeleted) => 0,
                Err(error) => panic!("{error}"),
            }
        }
    });
    let deletion = async {
        store.remove_entity(project(1), entity(1), Time(6)).await.stored();
        theirs().await
    };
    let (made, found) = tokio::join!(makers, deletion);
    assert_eq!(found, made.into_iter().sum::<usize>());
    assert_eq!(theirs().await, found);
}

async fn appends_to_one_space_get_distinct_dense_places(store: Arc<dyn Store>) {
    const EACH: u64 = 8;
    at_once(|writer| {
        let store = store.clone();
        async move {
            for n in 0..EACH {
                let mut append = say(space(1), &format!("{writer} {n}"));
                append
                    .events
                    .resize((writer % 3 + 1) as usize, append.events[0].clone());
                store.append(append).await.stored();
            }
        }
    })
    .await;
    let log = store.space_log(space(1), EVERYTHING).await.stored().entries;
    assert_eq!(log.len() as u64, WRITERS * EACH);
    assert_dense(&log);
}

fn assert_dense<'a>(log: impl IntoIterator<Item = &'a Entry>) {
    let mut next = Seq::durable(1);
    for entry in log {
        assert_eq!(entry.first, next);
        next = Seq(entry.last().0 + Seq::STRIDE);
    }
}

#[derive(Default)]
struct Recorder(Mutex<Vec<Arc<Entry>>>);

impl Recorder {
    fn heard(&self) -> Vec<Arc<Entry>> {
        self.0.lock().expect("the recorder").clone()
    }
}

impl CommitListener for Recorder {
    fn committed(&self, entries: &[Arc<Entry>]) {
        self.0.lock().expect("the recorder").extend_from_slice(entries);
    }
}

async fn the_listener_hears_of_commits_in_order_before_the_answer(store: Arc<dyn Store>) {
    const SPACES: u64 = 5;
    let recorder = Arc::new(Recorder::default());
    store.listen(recorder.clone());
    at_once(|writer| {
        let (store, recorder) = (store.clone(), recorder.clone());
        async move {
            for n in 0..4 {
                let append = say(space((writer + n) % SPACES), "words");
                let entry = store.append(append).await.stored();
                let told = recorder.heard().iter().any(|told| **told == *entry);
                assert!(told, "the listener is told before the append is answered");
            }
        }
    })
    .await;
    let mut by_space: HashMap<SpaceId, Vec<Arc<Entry>>> = HashMap::new();
    for entry in recorder.heard() {
        by_space.entry(entry.space).or_default().push(entry);
    }
    assert_eq!(by_space.len() as u64, SPACES);
    for (space, heard) in by_space {
        assert_dense(heard.iter().map(Arc::as_ref));
        let stored = store.space_log(space, EVERYTHING).await.stored().entries;
        assert_eq!(
            stored,
            heard.iter().map(|entry| (**entry).clone()).collect::<Vec<_>>()
        );
    }
}

async fn a_refused_append_is_no_news(store: Arc<dyn Store>) {
    let recorder = Arc::new(Recorder::default());
    store.listen(recorder.clone());
    let record = run_record(run(1), space(1));
    store.append(create(record.clone())).await.stored();
    assert!(store.append(create(record.clone())).await.is_err());
    assert!(store.append(extend(&record, Seq(0))).await.is_err());
    assert_eq!(recorder.heard().len(), 1);
}

async fn of_many_writers_at_one_version_one_wins(store: Arc<dyn Store>) {
    let record = run_record(run(1), space(1));
    let begun = store.append(create(record.clone())).await.stored();
    let outcomes = at_once(|_| {
        let (store, append) = (store.clone(), extend(&record, begun.last()));
        async move { store.append(append).await }
    })
    .await;
    assert_eq!(outcomes.iter().filter(|outcome| outcome.is_ok()).count(), 1);
    let conflicts = outcomes
        .iter()
        .filter(|outcome| matches!(outcome, Err(StoreError::Conflict)));
    assert_eq!(conflicts.count() as u64, WRITERS - 1);
    assert_eq!(store.run_log(run(1), EVERYTHING).await.stored().entries.len(), 2);
}

async fn of_many_requests_with_one_key_one_wins(store: Arc<dyn Store>) {
    let outcomes = at_once(|writer| {
        let mut append = create(run_record(run(writer), space(1)));
        append.idempotency = vec![answer("k")];
        let store = store.clone();
        async move { store.append(append).await }
    })
    .await;
    assert_eq!(outcomes.iter().filter(|outcome| outcome.is_ok()).count(), 1);
    let log = store.space_log(space(1), EVERYTHING).await.stored().entries;
    assert_eq!(log.len(), 1);
    let claimable = store.claimable(Time(1), usize::MAX).await.stored();
    assert_eq!(claimable, [log[0].run.expect("the winner's run")]);
}

async fn of_many_runs_of_one_agent_one_begins(store: Arc<dyn Store>) {
    let outcomes = at_once(|writer| {
        let append = create(RunRecord {
            agent: "cook".parse().expect("a name"),
            ..run_record(run(writer), space(1))
        });
        let store = store.clone();
        async move { store.append(append).await }
    })
    .await;
    let winners: Vec<_> = outcomes.iter().flatten().filter_map(|entry| entry.run).collect();
    assert_eq!(winners.len(), 1);
    for outcome in outcomes.into_iter().filter(Result::is_err) {
        refused!(outcome, StoreError::OpenRun(open) if open == winners[0]);
    }
}

async fn of_many_nodes_one_claims(store: Arc<dyn Store>) {
    store.append(create(run_record(run(1), space(1)))).await.stored();
    for n in 0..WRITERS {
        store.heartbeat(node(n), Time(100)).await.stored();
    }
    let claimed = at_once(|n| {
        let store = store.clone();
        async move { store.claim(run(1), node(n), Time(10)).await.stored() }
    })
    .await;
    assert_eq!(claimed.iter().flatten().count(), 1);
}

async fn a_write_outlives_its_caller(store: Arc<dyn Store>) {
    {
        let mut given_up = store.append(say(space(1), "first"));
        // Polls once, then drops the future.
        let once = std::future::poll_fn(|context| std::task::Poll::Ready(given_up.as_mut().poll(context)));
        let _ = once.await;
    }
    let second = store.append(say(space(1), "second")).await.stored();
    assert_eq!(second.first, Seq::durable(2));
    assert_eq!(
        store.space_log(space(1), EVERYTHING).await.stored().entries.len(),
        2
    );
}
