//! Model test of the SQLite and PostgreSQL stores against the memory store: any sequence of calls gets the same results.

use std::sync::Arc;

use proptest::prelude::*;
use serde_json::json;
use toolgate_engine::store::{
    Append, EntityRecord, IdempotencyRecord, KeyRecord, LeaseWrite, LogOrder, LogRange, ProjectRecord,
    RunFilter, RunRecord, RunWrite, Runs, SpaceRecord, Store, Wake,
};
use toolgate_kernel::event::{Seq, Status};
use toolgate_kernel::id::CallId;
use toolgate_kernel::name::AgentName;
use toolgate_kernel::time::Time;
use toolgate_store::MemoryStore;
use toolgate_testkit::store_conformance::samples::{
    EVERYTHING, answer, create, entity, entity_record, extend, key, key_record, node, project,
    project_record, run, run_record, say, space, space_record, text,
};

use crate::scratch::{Database, Scratch};

/// One call. Ids are small numbers, so that calls often concern the same thing.
#[derive(Debug, Clone)]
enum Call {
    Say {
        space: u64,
        events: usize,
        answer: Option<u64>,
    },
    Create {
        run: u64,
        space: u64,
        with_space: bool,
        status: Status,
        wake_at: Option<i64>,
        node: Option<u64>,
    },
    Extend {
        run: u64,
        behind: bool,
        /// Offset from the right value.
        off: u64,
        status: Status,
        wake_at: Option<i64>,
        /// Change of the lease: release, take or keep.
        lease: u8,
        /// Changes the wake-ups of this run.
        wakes: (u64, i32),
    },
    Claim {
        run: u64,
        node: u64,
        now: i64,
    },
    Release {
        run: u64,
        epoch: u64,
        wakes: i32,
    },
    Heartbeat {
        node: u64,
        until: i64,
    },
    CreateSpace {
        space: u64,
        project: u64,
        members: Vec<u64>,
    },
    AddMember {
        space: u64,
        member: u64,
    },
    RemoveMember {
        space: u64,
        member: u64,
    },
    PutEntity {
        entity: u64,
        project: u64,
        subject: u64,
        name: u64,
    },
    PutAgent {
        project: u64,
        agent: u64,
        config: u64,
    },
    RemoveAgent {
        project: u64,
        agent: u64,
    },
    PutProject {
        project: u64,
        name: u64,
        secret: u64,
    },
    PutKey {
        key: u64,
        hash: u8,
        project: u64,
    },
    RemoveKey {
        key: u64,
        project: u64,
    },
    Claimable {
        now: i64,
    },
    Range {
        /// Whether the log of a run or of a space is read.
        of_run: bool,
        of: u64,
        after: u64,
        before: Option<u64>,
        newest: bool,
        limit: usize,
        bytes: usize,
    },
    List {
        space: Option<u64>,
        status: Option<Status>,
        parent: Option<u64>,
        before: Option<u64>,
        limit: usize,
    },
}

const FEW: std::ops::Range<u64> = 1..4;
const TIMES: std::ops::Range<i64> = 1..20;

fn status() -> impl Strategy<Value = Status> {
    use Status::*;
    prop::sample::select(vec![
        Queued,
        Running,
        WaitingTool,
        WaitingApproval,
        WaitingTime,
        Completed,
        Cancelled,
    ])
}

fn call() -> impl Strategy<Value = Call> {
    use prop::option::of;
    prop_oneof![
        2 => (FEW, 1..4usize, of(FEW)).prop_map(|(space, events, answer)| Call::Say { space, events, answer }),
        4 => (1..9u64, FEW, any::<bool>(), status(), of(TIMES), of(FEW)).prop_map(
            |(run, space, with_space, status, wake_at, node)| Call::Create {
                run, space, with_space, status, wake_at, node
            }),
        6 => (1..9u64, prop::bool::weighted(0.2), 0..2u64, status(), of(TIMES), 0..3u8, (1..9u64, -2..3i32)).prop_map(
            |(run, behind, off, status, wake_at, lease, wakes)| Call::Extend {
                run, behind, off, status, wake_at, lease, wakes
            }),
        4 => (1..9u64, FEW, TIMES).prop_map(|(run, node, now)| Call::Claim { run, node, now }),
        1 => (1..9u64, 0..4u64, -2..3i32).prop_map(|(run, epoch, wakes)| Call::Release { run, epoch, wakes }),
        2 => (FEW, TIMES).prop_map(|(node, until)| Call::Heartbeat { node, until }),
        1 => (FEW, FEW, prop::collection::vec(FEW, 0..3)).prop_map(
            |(space, project, members)| Call::CreateSpace { space, project, members }),
        1 => (FEW, FEW).prop_map(|(space, member)| Call::AddMember { space, member }),
        1 => (FEW, FEW).prop_map(|(space, member)| Call::RemoveMember { space, member }),
        1 => (FEW, FEW, FEW, FEW).prop_map(
            |(entity, project, subject, name)| Call::PutEntity { entity, project, subject, name }),
        2 => (FEW, FEW, FEW).prop_map(|(project, agent, config)| Call::PutAgent { project, agent, config }),
        1 => (FEW, FEW).prop_map(|(project, agent)| Call::RemoveAgent { project, agent }),
        1 => (FEW, FEW, FEW).prop_map(|(project, name, secret)| Call::PutProject { project, name, secret }),
        1 => (FEW, 1..4u8, FEW).prop_map(|(key, hash, project)| Call::PutKey { key, hash, project }),
        1 => (FEW, FEW).prop_map(|(key, project)| Call::RemoveKey { key, project }),
        1 => TIMES.prop_map(|now| Call::Claimable { now }),
        3 => (any::<bool>(), FEW, 0..40u64, of(0..40u64), any::<bool>(), 0..5usize, 0..400usize).prop_map(
            |(of_run, of, after, before, newest, limit, bytes)| Call::Range {
                of_run, of, after, before, newest, limit, bytes
            }),
        1 => (of(FEW), of(status()), of(1..9u64), of(1..9u64), 0..9usize).prop_map(
            |(space, status, parent, before, limit)| Call::List { space, status, parent, before, limit }),
    ]
}

/// Makes a call and formats its result.
async fn perform(store: &dyn Store, call: &Call, known: &[RunRecord]) -> String {
    macro_rules! words {
        ($call:expr) => {
            format!("{:?}", $call.await)
        };
    }
    match call.clone() {
        Call::Say {
            space: at,
            events,
            answer: key,
        } => {
            let mut append = say(space(at), "words");
            append.events.resize(events, text("more"));
            append.idempotency = key.map(|key| answer(&key.to_string())).into_iter().collect();
            words!(store.append(append))
        }
        Call::Create {
            run: id,
            space: at,
            with_space,
            status,
            wake_at,
            node: by,
        } => {
            words!(store.append(creation(id, at, with_space, status, wake_at, by)))
        }
        Call::Extend {
            run: id,
            behind,
            off,
            status,
            wake_at,
            lease,
            wakes: (woken, change),
        } => {
            let absent = run_record(run(id), space(1));
            let record = known
                .iter()
                .find(|record| record.id == run(id))
                .unwrap_or(&absent);
            let seen = if behind { Seq(1) } else { record.version };
            let lease = match lease {
                0 => LeaseWrite::Release,
                1 => LeaseWrite::Take(node(1)),
                _ => LeaseWrite::Keep,
            };
            let write = RunWrite::Extend {
                id: run(id),
                version: seen,
                epoch: record.epoch + off,
                status,
                wake_at: wake_at.map(Time),
                lease,
            };
            words!(store.append(Append {
                run: write,
                wakes: vec![Wake {
                    run: run(woken),
                    change
                }],
                ..extend(record, seen)
            }))
        }
        Call::Claim {
            run: id,
            node: by,
            now,
        } => words!(store.claim(run(id), node(by), Time(now))),
        Call::Release {
            run: id,
            epoch,
            wakes,
        } => words!(store.release(run(id), epoch, wakes)),
        Call::Heartbeat { node: by, until } => words!(store.heartbeat(node(by), Time(until))),
        Call::CreateSpace {
            space: id,
            project: of,
            members,
        } => {
            let members = members.into_iter().map(entity).collect();
            words!(store.create_space(SpaceRecord {
                project: project(of),
                members,
                ..space_record(space(id))
            }))
        }
        Call::AddMember { space: at, member } => words!(store.add_member(space(at), entity(member))),
        Call::RemoveMember { space: at, member } => words!(store.remove_member(space(at), entity(member))),
        Call::PutEntity {
            entity: id,
            project: of,
            subject,
            name,
        } => words!(store.put_entity(EntityRecord {
            project: project(of),
            name: Some(name.to_string()),
            ..entity_record(entity(id), &subject.to_string())
        })),
        Call::PutAgent {
            project: of,
            agent: n,
            config,
        } => {
            words!(store.put_agent(project(of), &agent(n), json!({"n": config}).into(), Time(1)))
        }
        Call::RemoveAgent {
            project: of,
            agent: n,
        } => words!(store.remove_agent(project(of), &agent(n))),
        Call::PutProject {
            project: id,
            name,
            secret,
        } => words!(store.put_project(ProjectRecord {
            jwt_secret: Some(secret.to_string()),
            ..project_record(project(id), &name.to_string())
        })),
        Call::PutKey {
            key: id,
            hash,
            project: of,
        } => {
            words!(store.put_key(KeyRecord {
                project: project(of),
                ..key_record(key(id), hash)
            }))
        }
        Call::RemoveKey { key: id, project: of } => words!(store.remove_key(project(of), key(id))),
        Call::Claimable { now } => {
            // The order is not specified.
            let mut claimable = store.claimable(Time(now), usize::MAX).await.expect("read");
            claimable.sort_unstable();
            format!("{claimable:?}")
        }
        Call::Range {
            of_run,
            of,
            after,
            before,
            newest,
            limit,
            bytes,
        } => {
            // Sometimes a transient number between two durable ones.
            let place = |halves: u64| Seq(halves * Seq::STRIDE / 2);
            let range = LogRange {
                after: place(after),
                before: before.map(place),
                order: match newest {
                    true => LogOrder::NewestFirst,
                    false => LogOrder::OldestFirst,
                },
                limit,
                bytes,
            };
            match of_run {
                true => words!(store.run_log(run(of), range)),
                false => words!(store.space_log(space(of), range)),
            }
        }
        Call::List {
            space: at,
            status,
            parent,
            before,
            limit,
        } => {
            let (space, parent, before) = (at.map(space), parent.map(run), before.map(run));
            words!(store.runs(
                project(1),
                RunFilter {
                    space,
                    statuses: status.into_iter().collect(),
                    parent,
                    before,
                    limit,
                    ..RunFilter::default()
                }
            ))
        }
    }
}

fn creation(
    id: u64,
    at: u64,
    with_space: bool,
    status: Status,
    wake_at: Option<i64>,
    by: Option<u64>,
) -> Append {
    let record = RunRecord {
        status,
        wake_at: wake_at.map(Time),
        node: by.map(node),
        epoch: u64::from(by.is_some()),
        agent: agent(id % 2),
        parent: (id > 4).then(|| CallId {
            run: run(id / 2),
            number: 0,
        }),
        root: run(1),
        ..run_record(run(id), space(at))
    };
    let mut append = create(record.clone());
    let space = with_space.then(|| Box::new(space_record(space(at))));
    append.run = RunWrite::Create {
        record: Box::new(record),
        space,
        descendants_max: None,
        definitions: Default::default(),
    };
    if id == 5 {
        append.idempotency.push(IdempotencyRecord {
            request: [id as u8; 32],
            ..answer("1")
        });
    }
    append
}

fn agent(n: u64) -> AgentName {
    format!("agent_{n}").parse().expect("a name")
}

/// Formats all that a store holds.
async fn everything(store: &dyn Store) -> Vec<String> {
    let all = RunFilter {
        limit: usize::MAX,
        ..RunFilter::default()
    };
    let mut known = vec![format!("{:?}", store.next_wake().await)];
    for n in FEW {
        known.push(format!("{:?}", store.runs(project(n), all.clone()).await));
        known.push(format!("{:?}", store.space_log(space(n), EVERYTHING).await));
        known.push(format!("{:?}", store.space_tail(space(n)).await));
        known.push(format!("{:?}", store.space(space(n)).await));
        known.push(format!("{:?}", store.spaces(project(n), None, None, 9).await));
        known.push(format!(
            "{:?}",
            store.spaces(project(1), Some(entity(n)), None, 9).await
        ));
        known.push(format!("{:?}", store.entity(entity(n)).await));
        known.push(format!("{:?}", store.agents(project(n)).await));
        known.push(format!("{:?}", store.agent(project(n), &agent(1), Some(1)).await));
        known.push(format!("{:?}", store.project(project(n)).await));
        known.push(format!("{:?}", store.project_named(&n.to_string()).await));
        known.push(format!("{:?}", store.keys(project(n)).await));
        known.push(format!("{:?}", store.key([n as u8; 32]).await));
        known.push(format!(
            "{:?}",
            store.idempotency(project(1), &n.to_string()).await
        ));
    }
    for n in 1..9 {
        known.push(format!("{:?}", store.run_log(run(n), EVERYTHING).await));
    }
    known
}

/// Compares a store with the memory store, and with itself after it was opened again.
async fn compare<S: Store>(calls: &[Call], open: impl AsyncFn() -> S) {
    let (model, store) = (Arc::new(MemoryStore::new()), open().await);
    for call in calls {
        let all = RunFilter {
            limit: usize::MAX,
            ..RunFilter::default()
        };
        let known = model.runs(project(1), all).await.expect("read").runs;
        let expected = perform(&*model, call, &known).await;
        assert_eq!(perform(&store, call, &known).await, expected, "{call:?}");
    }
    let expected = everything(&*model).await;
    assert_eq!(everything(&store).await, expected);
    store.close().await;
    let again = open().await;
    assert_eq!(everything(&again).await, expected, "after opening again");
    again.close().await;
}

fn runtime() -> tokio::runtime::Runtime {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    runtime.enable_all().build().expect("a runtime")
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, ..ProptestConfig::default() })]
    #[test]
    fn any_sequence_of_calls_gets_the_same_answers_of_sqlite(calls in prop::collection::vec(call(), 1..60)) {
        let scratch = Scratch::new();
        runtime().block_on(compare(&calls, async || scratch.open()));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, max_shrink_iters: 64, ..ProptestConfig::default() })]
    #[test]
    fn any_sequence_of_calls_gets_the_same_answers_of_postgres(calls in prop::collection::vec(call(), 1..60)) {
        let database = Database::new();
        runtime().block_on(compare(&calls, async || database.open().await));
    }
}
