//! What runs consume is counted as the log tells it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use toolgate_engine::consumption::{Consumed, ConsumptionBy, ConsumptionFilter, ConsumptionKey, Days};
use toolgate_engine::intake::{Post, RequestedCall};
use toolgate_engine::price::{Price, Prices};
use toolgate_engine::project::Projects;
use toolgate_engine::store::{RunFilter, RunRecord, Store};
use toolgate_engine::usage::Day;
use toolgate_kernel::event::{Event, Usage};
use toolgate_kernel::id::{EntityId, RunId};
use toolgate_kernel::message::Message;
use toolgate_store::MemoryStore;
use toolgate_testkit::faulty_store::FaultyStore;
use toolgate_testkit::project_settings::project_settings_with;

use crate::sampling::sampling_agent;
use crate::world::{Setup, World, project, retry};

/// Days around those of any test.
pub const ALWAYS: Days = Days {
    first: Day(0),
    last: Day(100_000),
};

pub fn person(number: u8) -> EntityId {
    EntityId::from_bytes([number; 16])
}

/// A post of this person.
pub fn post_of(world: &World, user: Option<EntityId>, words: &str) -> Post {
    let mut post = world.post_to(None, words);
    post.message.from = user;
    post
}

/// Two micro-units for a token read, three for one written.
pub fn priced() -> Prices {
    let price = Price::per_million(2.0, 3.0, Some(0.5)).expect("a price");
    Prices {
        currency: "EUR".into(),
        models: BTreeMap::from([("demo:demo".to_owned(), price)]),
    }
}

fn with_prices() -> Arc<dyn Projects> {
    project_settings_with(|settings| settings.prices = Arc::new(priced()))
}

/// What a project has consumed, as the store has counted it, in one kind of groups.
async fn counted(store: &dyn Store, by: ConsumptionBy) -> BTreeMap<ConsumptionKey, Consumed> {
    let filter = ConsumptionFilter {
        days: ALWAYS,
        by,
        after: None,
        limit: 1_000,
    };
    let groups = store.consumption(project(), filter).await.expect("read");
    groups.into_iter().collect()
}

/// The same, as the logs tell it: who spoke before each step, and what the model was asked since.
async fn told(store: &dyn Store, by: ConsumptionBy) -> BTreeMap<ConsumptionKey, Consumed> {
    let filter = RunFilter {
        limit: 1_000,
        ..RunFilter::default()
    };
    let mut groups: BTreeMap<ConsumptionKey, Consumed> = BTreeMap::new();
    for run in store.runs(project(), filter).await.expect("read").runs {
        for (user, day, consumed) in told_by_run(store, &run).await {
            let key = match by {
                ConsumptionBy::Day => ConsumptionKey::Day(day),
                ConsumptionBy::Agent => ConsumptionKey::Agent(run.agent.clone()),
                ConsumptionBy::User => ConsumptionKey::User(user),
                ConsumptionBy::Model => ConsumptionKey::Model("demo:demo".into()),
            };
            let sums = groups.entry(key).or_default();
            *sums = *sums + consumed;
        }
    }
    groups
}

async fn told_by_run(store: &dyn Store, run: &RunRecord) -> Vec<(Option<EntityId>, Day, Consumed)> {
    let page = store.run_log(run.id, Default::default()).await.expect("read");
    let is_call = run.tool.is_some();
    let (mut heard, mut works_for, mut told) = (Vec::new(), None, Vec::new());
    for entry in &page.entries {
        for event in &entry.events {
            match event {
                Event::Said(said) => heard.push(person_of(&said.message)),
                Event::CallRequest(request) => heard.push(request.from),
                Event::StepStart(_) => works_for = heard.last().copied().flatten(),
                _ => {}
            }
            let consumed = match event {
                Event::StepFinish(step) if !is_call => asked(step.usage),
                Event::ContextCut(cut) if cut.usage.is_some() => asked(cut.usage.unwrap()),
                Event::ToolSampling(sampling) => asked(sampling.usage),
                _ => continue,
            };
            told.push((works_for, Day::of(entry.time), consumed));
        }
    }
    let began = Day::of(page.entries[0].time);
    told.push((heard[0], began, Consumed::RUN));
    told
}

fn person_of(message: &Message) -> Option<EntityId> {
    message.from.or(message.on_behalf_of.first().copied())
}

fn asked(usage: Usage) -> Consumed {
    Consumed {
        requests: 1,
        input_tokens: usage.input_tokens,
        output_tokens: usage.output_tokens,
        cached_tokens: usage.cached_tokens,
        cost_micros: usage.input_tokens * 2 + usage.output_tokens * 3,
        ..Consumed::default()
    }
}

async fn check_against_log(store: &dyn Store) {
    for by in [
        ConsumptionBy::Day,
        ConsumptionBy::Agent,
        ConsumptionBy::User,
        ConsumptionBy::Model,
    ] {
        assert_eq!(counted(store, by).await, told(store, by).await, "{by:?}");
    }
}

/// Runs of all kinds, one after the other: for two people, for nobody, with child runs, a sampling tool and a call.
async fn work(world: &World) -> Vec<RunId> {
    let said = [
        (Some(person(1)), "hello"),
        (Some(person(1)), "call:helper={\"prompt\":\"hello\"} call:echo"),
        (Some(person(2)), "call:sample={\"times\":2}"),
        (None, "call:helper={\"prompt\":\"call:echo\"}"),
    ];
    let mut runs = Vec::new();
    for (user, words) in said {
        let posted = retry(|| world.engine.post(post_of(world, user, words))).await;
        runs.push(posted.run_id.expect("an agent answers"));
    }
    let call = Post {
        call: Some(RequestedCall {
            tool: "echo".parse().expect("a name"),
            input: serde_json::json!({"said": 1}).into(),
        }),
        ..post_of(world, Some(person(2)), "")
    };
    let posted = retry(|| world.engine.post(call.clone())).await;
    runs.push(posted.run_id.expect("a call is a run"));
    runs
}

fn setup(store: Arc<dyn Store>) -> Setup {
    Setup {
        store,
        agent: sampling_agent(),
        projects: with_prices(),
        ..Setup::default()
    }
}

#[tokio::test(start_paused = true)]
async fn figures_are_what_the_log_says() {
    let world = World::with(setup(Arc::new(MemoryStore::new()))).await;
    for run in work(&world).await {
        world.finish(run).await;
    }
    check_against_log(&*world.store).await;
    let users = counted(&*world.store, ConsumptionBy::User).await;
    let of = |user| users[&ConsumptionKey::User(user)];
    // Ada: one step; two steps and a child run with one.
    assert_eq!((of(Some(person(1))).runs, of(Some(person(1))).requests), (3, 4));
    // Bob: two steps and two samplings; a call, for which no model is asked.
    assert_eq!((of(Some(person(2))).runs, of(Some(person(2))).requests), (2, 4));
    // Nobody: two steps, and two of a child run.
    assert_eq!((of(None).runs, of(None).requests), (2, 4));
    assert_eq!(of(None).cost_micros, 4 * (10 * 2 + 5 * 3));
    world.stop().await;
}

#[tokio::test(start_paused = true)]
async fn requests_to_a_model_without_a_price_are_told_as_such() {
    let world = World::new().await;
    world.finish(world.say("hello").await.run_id.unwrap()).await;
    let models = counted(&*world.store, ConsumptionBy::Model).await;
    let consumed = models[&ConsumptionKey::Model("demo:demo".into())];
    assert_eq!((consumed.cost_micros, consumed.unpriced_requests), (0, 1));
    world.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_step_counts_for_whoever_it_answers() {
    let world = World::with(setup(Arc::new(MemoryStore::new()))).await;
    let posted = world
        .engine
        .post(post_of(&world, Some(person(1)), "call:ask"))
        .await
        .unwrap();
    let run = posted.run_id.unwrap();
    world
        .until_status(run, toolgate_kernel::event::Status::WaitingTool)
        .await;
    let mut second = world.post_to(Some(posted.space_id), "never mind");
    second.message.from = Some(person(2));
    assert_eq!(world.engine.post(second).await.unwrap().run_id, Some(run));
    world.finish(run).await;
    let users = counted(&*world.store, ConsumptionBy::User).await;
    let of = |number| users[&ConsumptionKey::User(Some(person(number)))];
    assert_eq!((of(1).runs, of(1).requests), (1, 1));
    assert_eq!((of(2).runs, of(2).requests), (0, 1));
    world.stop().await;
}

/// Kills the store after so many writes, and goes on with what is left; whether it was killed.
async fn killed_after(writes: usize, always_evict: bool) -> bool {
    let memory: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let store = Arc::new(FaultyStore::killed_after(memory.clone(), writes));
    let first = World::with(Setup {
        always_evict,
        ..setup(store.clone())
    })
    .await;
    let clock = first.clock.clone();
    let working = async {
        let words = "call:helper={\"prompt\":\"call:echo\"} call:sample={\"times\":2}";
        // A store that is killed refuses it.
        let Ok(posted) = first.engine.post(post_of(&first, Some(person(1)), words)).await else {
            return std::future::pending().await;
        };
        let run = posted.run_id.unwrap();
        while !memory.run(run).await.unwrap().unwrap().status.is_final() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    let killed = tokio::select! {
        biased;
        () = store.killed() => true,
        () = working => false,
    };
    first.stop().await;
    let world = World::with(Setup {
        clock,
        always_evict,
        ..setup(memory.clone())
    })
    .await;
    let filter = RunFilter {
        limit: 10,
        top: true,
        ..RunFilter::default()
    };
    for run in memory.runs(project(), filter).await.unwrap().runs {
        world.finish(run.id).await;
    }
    check_against_log(&*memory).await;
    world.stop().await;
    killed
}

#[tokio::test(start_paused = true)]
async fn a_kill_between_any_two_writes_counts_nothing_twice_and_loses_nothing() {
    for always_evict in [false, true] {
        let mut writes = 1;
        while killed_after(writes, always_evict).await {
            writes += 1;
        }
        assert!(writes > 8, "{writes} writes are too few");
    }
}

#[tokio::test(start_paused = true)]
async fn figures_are_what_the_log_says_when_one_store_call_in_thirty_fails() {
    for seed in 0..10 {
        let memory: Arc<dyn Store> = Arc::new(MemoryStore::new());
        let faulty = Arc::new(FaultyStore::new(memory.clone(), seed, 11));
        let world = World::with(setup(faulty.clone())).await;
        for run in work(&world).await {
            world.finish(run).await;
        }
        faulty.calm();
        world.rest().await;
        check_against_log(&*memory).await;
        world.stop().await;
    }
}
