//! Counters of runs, tokens and cost.

use std::sync::Arc;

use toolgate_engine::consumption::{
    Consumed, Consumer, Consumption, ConsumptionBy, ConsumptionFilter, ConsumptionKey, Days,
};
use toolgate_engine::store::{Append, Store, StoreError};
use toolgate_engine::usage::Day;
use toolgate_kernel::event::Seq;
use toolgate_kernel::id::EntityId;
use toolgate_kernel::name::AgentName;
use toolgate_kernel::time::Time;

use super::samples::{create, entity, extend, project, project_record, run, run_record, say, space};
use super::{Stored, checks, refused};

checks![
    what_appends_add_is_summed_up_by_day,
    sums_are_of_a_project_a_user_or_an_agent,
    groups_are_listed_in_order_and_page_by_page,
    a_refused_append_consumes_nothing,
    a_repeated_start_counts_one_run,
    appends_at_once_lose_nothing,
    nothing_is_left_of_a_removed_project,
];

const DAY: i64 = 24 * 3600 * 1000;
/// Appends at once.
const AT_ONCE: u64 = 20;

fn agent(name: &str) -> AgentName {
    name.parse().expect("a name")
}

/// A request of an agent for a user: ten times `n` of everything.
fn request(name: &str, user: Option<EntityId>, model: &str, n: u64) -> Consumption {
    Consumption {
        project: project(1),
        agent: agent(name),
        user,
        model: model.into(),
        consumed: consumed(n),
    }
}

fn consumed(n: u64) -> Consumed {
    Consumed {
        runs: n,
        requests: 2 * n,
        input_tokens: 30 * n,
        output_tokens: 40 * n,
        cached_tokens: 5 * n,
        cost_micros: 600 * n,
        unpriced_requests: n,
    }
}

fn on(day: i64, consumption: Vec<Consumption>) -> Append {
    Append {
        consumption,
        time: Time(day * DAY + 1),
        ..say(space(1), "a step ended")
    }
}

fn days(first: i64, last: i64) -> Days {
    Days {
        first: Day(first),
        last: Day(last),
    }
}

async fn sum(store: &Arc<dyn Store>, consumer: Consumer, over: Days) -> Consumed {
    store.consumed(project(1), consumer, over).await.stored()
}

async fn what_appends_add_is_summed_up_by_day(store: Arc<dyn Store>) {
    let all = days(i64::from(i32::MIN), i64::from(i32::MAX));
    assert_eq!(sum(&store, Consumer::Project, all).await, Consumed::default());
    for (day, n) in [(1, 1), (1, 2), (2, 4), (4, 8)] {
        let append = on(day, vec![request("cook", None, "demo:demo", n)]);
        store.append(append).await.stored();
    }
    for (first, last, n) in [(1, 1, 3), (1, 2, 7), (2, 3, 4), (3, 3, 0), (2, 4, 12), (0, 9, 15)] {
        assert_eq!(
            sum(&store, Consumer::Project, days(first, last)).await,
            consumed(n),
            "{first} to {last}"
        );
    }
}

/// Two agents, two users and nobody, two models, two days, and another project.
async fn fill(store: &Arc<dyn Store>) {
    let (ada, bob) = (Some(entity(1)), Some(entity(2)));
    let mut foreign = request("cook", ada, "demo:demo", 1000);
    foreign.project = project(2);
    let appends = [
        (1, request("cook", ada, "demo:demo", 1)),
        (1, request("cook", bob, "openai:gpt", 2)),
        (2, request("waiter", ada, "demo:demo", 4)),
        (2, request("waiter", None, "openai:gpt", 8)),
        (2, foreign),
    ];
    for (day, added) in appends {
        store.append(on(day, vec![added])).await.stored();
    }
}

async fn sums_are_of_a_project_a_user_or_an_agent(store: Arc<dyn Store>) {
    fill(&store).await;
    let both = days(1, 2);
    for (consumer, n) in [
        (Consumer::Project, 15),
        (Consumer::User(entity(1)), 5),
        (Consumer::User(entity(2)), 2),
        (Consumer::User(entity(3)), 0),
        (Consumer::Agent(agent("cook")), 3),
        (Consumer::Agent(agent("waiter")), 12),
        (Consumer::Agent(agent("wait")), 0),
    ] {
        assert_eq!(
            sum(&store, consumer.clone(), both).await,
            consumed(n),
            "{consumer:?}"
        );
    }
    let one = days(2, 2);
    assert_eq!(sum(&store, Consumer::User(entity(1)), one).await, consumed(4));
    assert_eq!(
        sum(&store, Consumer::Agent(agent("cook")), one).await,
        consumed(0)
    );
}

async fn groups_are_listed_in_order_and_page_by_page(store: Arc<dyn Store>) {
    fill(&store).await;
    let model = |name: &str| ConsumptionKey::Model(name.into());
    let cases = [
        (
            ConsumptionBy::Day,
            vec![
                (ConsumptionKey::Day(Day(1)), 3),
                (ConsumptionKey::Day(Day(2)), 12),
            ],
        ),
        (
            ConsumptionBy::Agent,
            vec![
                (ConsumptionKey::Agent(agent("cook")), 3),
                (ConsumptionKey::Agent(agent("waiter")), 12),
            ],
        ),
        (
            ConsumptionBy::User,
            vec![
                (ConsumptionKey::User(None), 8),
                (ConsumptionKey::User(Some(entity(1))), 5),
                (ConsumptionKey::User(Some(entity(2))), 2),
            ],
        ),
        (
            ConsumptionBy::Model,
            vec![(model("demo:demo"), 5), (model("openai:gpt"), 10)],
        ),
    ];
    for (by, expected) in cases {
        let expected: Vec<_> = expected.into_iter().map(|(key, n)| (key, consumed(n))).collect();
        for limit in [1, 2, 100] {
            let mut listed = Vec::new();
            loop {
                let filter = ConsumptionFilter {
                    days: days(1, 2),
                    by,
                    after: listed.last().map(|(key, _): &(ConsumptionKey, _)| key.clone()),
                    limit,
                };
                let page = store.consumption(project(1), filter).await.stored();
                assert!(page.len() <= limit);
                if page.is_empty() {
                    break;
                }
                listed.extend(page);
            }
            assert_eq!(listed, expected, "{by:?} by {limit}");
        }
    }
}

async fn a_refused_append_consumes_nothing(store: Arc<dyn Store>) {
    let row = run_record(run(1), space(1));
    let begun = store.append(create(row.clone())).await.stored();
    let consumption = vec![request("cook", None, "demo:demo", 1)];
    let stale = Append {
        consumption: consumption.clone(),
        ..extend(&row, Seq(begun.last().0 + Seq::STRIDE))
    };
    refused!(store.append(stale).await, StoreError::Conflict);
    assert_eq!(
        sum(&store, Consumer::Project, days(0, 9)).await,
        Consumed::default()
    );
    let taken = Append {
        consumption,
        ..extend(&row, begun.last())
    };
    store.append(taken).await.stored();
    assert_eq!(sum(&store, Consumer::Project, days(0, 9)).await, consumed(1));
}

async fn a_repeated_start_counts_one_run(store: Arc<dyn Store>) {
    let start = Append {
        consumption: vec![Consumption {
            consumed: Consumed::RUN,
            ..request("cook", None, "demo:demo", 1)
        }],
        ..create(run_record(run(1), space(1)))
    };
    store.append(start.clone()).await.stored();
    refused!(
        store.append(start).await,
        StoreError::Exists | StoreError::OpenRun(_)
    );
    assert_eq!(sum(&store, Consumer::Project, days(0, 9)).await, Consumed::RUN);
}

async fn appends_at_once_lose_nothing(store: Arc<dyn Store>) {
    let appends = (0..AT_ONCE).map(|n| {
        let store = store.clone();
        // The same rows in another order each time.
        let mut added = vec![
            request("cook", Some(entity(1)), "demo:demo", 1),
            request("waiter", Some(entity(2)), "demo:demo", 1),
        ];
        added.rotate_left((n % 2) as usize);
        let append = Append {
            space: space(1 + n),
            ..on(1, added)
        };
        tokio::spawn(async move { store.append(append).await })
    });
    for append in appends.collect::<Vec<_>>() {
        append.await.expect("no append panics").stored();
    }
    for consumer in [Consumer::User(entity(1)), Consumer::User(entity(2))] {
        assert_eq!(sum(&store, consumer, days(1, 1)).await, consumed(AT_ONCE));
    }
}

async fn nothing_is_left_of_a_removed_project(store: Arc<dyn Store>) {
    store
        .put_project(project_record(project(1), "main"))
        .await
        .stored();
    fill(&store).await;
    store.remove_project(project(1)).await.stored();
    assert_eq!(
        sum(&store, Consumer::Project, days(0, 9)).await,
        Consumed::default()
    );
    let other = store
        .consumed(project(2), Consumer::Project, days(0, 9))
        .await
        .stored();
    assert_eq!(other, consumed(1000));
}
