//! Budgets: what a project, a user and an agent may consume.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Semaphore;
use toolgate_bus::InProcessBus;
use toolgate_engine::budget::{Amounts, BudgetExceeded, BudgetLimits, Periods, UnpricedRule};
use toolgate_engine::consumption::Consumer;
use toolgate_engine::intake::{Post, PostError, RequestedCall};
use toolgate_engine::model::Ask;
use toolgate_engine::project::Projects;
use toolgate_engine::store::Store;
use toolgate_kernel::agent::Starter;
use toolgate_kernel::event::{EndReason, Event, Status};
use toolgate_kernel::id::{EntityId, NodeId};
use toolgate_store::MemoryStore;
use toolgate_testkit::project_settings::project_settings_with;
use toolgate_testkit::scripted_model::{Say, ScriptedModel, text};
use uuid::Uuid;

use crate::consumption::{ALWAYS, person, post_of, priced};
use crate::world::{Setup, World};

const DAY_MILLIS: i64 = 24 * 3600 * 1000;
/// Tokens of one step of the scripted model.
const STEP: u64 = 15;
/// Cost of one step, in micro-units.
const STEP_MICROS: u64 = 35;

fn tokens(max: u64) -> Amounts {
    Amounts {
        tokens: Some(max),
        ..Amounts::default()
    }
}

fn runs(max: u64) -> Amounts {
    Amounts {
        runs: Some(max),
        ..Amounts::default()
    }
}

fn cost(max: u64) -> Amounts {
    Amounts {
        cost_micros: Some(max),
        ..Amounts::default()
    }
}

fn of_day(day: Amounts) -> Periods {
    Periods {
        day,
        ..Periods::default()
    }
}

fn with_budgets(budgets: BudgetLimits) -> Arc<dyn Projects> {
    project_settings_with(|settings| {
        settings.budgets = budgets;
        settings.prices = Arc::new(priced());
    })
}

async fn world(budgets: BudgetLimits) -> World {
    World::with(Setup {
        projects: with_budgets(budgets),
        ..Setup::default()
    })
    .await
}

async fn say(world: &World, user: Option<EntityId>, words: &str) -> Result<(), PostError> {
    let posted = world.engine.post(post_of(world, user, words)).await?;
    world.finish(posted.run_id.expect("an agent answers")).await;
    Ok(())
}

#[track_caller]
fn exceeded(outcome: Result<(), PostError>) -> BudgetExceeded {
    match outcome {
        Err(PostError::Budget(refusal)) => refusal.exceeded,
        other => panic!("expected a budget that is used up, got {other:?}"),
    }
}

/// How often a person may say something before the budget named `setting` is used up.
async fn check(budgets: BudgetLimits, times: usize, setting: &str) -> World {
    let world = world(budgets).await;
    for _ in 0..times {
        say(&world, Some(person(1)), "hello").await.unwrap();
    }
    let used_up = exceeded(say(&world, Some(person(1)), "hello").await);
    assert_eq!(used_up.setting(), setting);
    assert!(used_up.used >= used_up.max, "{used_up}");
    world
}

#[tokio::test(start_paused = true)]
async fn each_budget_stops_new_runs_once_it_is_used_up() {
    let none = BudgetLimits::default;
    let kinds = [
        ("tokens", tokens(2 * STEP)),
        ("tokens", tokens(STEP + 1)),
        ("runs", runs(2)),
        ("cost", cost(2 * STEP_MICROS)),
    ];
    for (kind, amounts) in kinds {
        for period in ["day", "month"] {
            let mut periods = Periods::default();
            match period {
                "day" => periods.day = amounts,
                _ => periods.month = amounts,
            }
            let project = BudgetLimits {
                project: periods,
                ..none()
            };
            check(project, 2, &format!("budgets.project.{period}.{kind}"))
                .await
                .stop()
                .await;
            let user = BudgetLimits {
                user: periods,
                ..none()
            };
            check(user, 2, &format!("budgets.user.{period}.{kind}"))
                .await
                .stop()
                .await;
            let agent = BudgetLimits {
                agent: periods,
                ..none()
            };
            check(agent, 2, &format!("budgets.agent.{period}.{kind}"))
                .await
                .stop()
                .await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_budget_of_nothing_lets_nothing_through() {
    let nothing = BudgetLimits {
        project: of_day(runs(0)),
        ..BudgetLimits::default()
    };
    check(nothing, 0, "budgets.project.day.runs").await.stop().await;
}

#[tokio::test(start_paused = true)]
async fn the_budget_of_one_user_is_not_that_of_another() {
    let budgets = BudgetLimits {
        user: of_day(tokens(STEP)),
        ..BudgetLimits::default()
    };
    let world = check(budgets, 1, "budgets.user.day.tokens").await;
    say(&world, Some(person(2)), "hello").await.unwrap();
    // A backend that speaks for nobody has no budget of a user.
    say(&world, None, "hello").await.unwrap();
    say(&world, None, "hello").await.unwrap();
    world.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_budget_begins_anew_at_the_turn_of_the_day_and_of_the_month() {
    let budgets = BudgetLimits {
        user: Periods {
            day: tokens(STEP),
            month: tokens(3 * STEP),
        },
        ..BudgetLimits::default()
    };
    let world = check(budgets, 1, "budgets.user.day.tokens").await;
    let used_up = exceeded(say(&world, Some(person(1)), "hello").await);
    let resets = used_up.resets;
    assert_eq!(resets.0 % DAY_MILLIS, 0);
    // A moment before midnight, and at midnight.
    world.clock.jump(resets.0 - world.now().0 - 1);
    exceeded(say(&world, Some(person(1)), "hello").await);
    world.clock.jump(resets.0 - world.now().0);
    say(&world, Some(person(1)), "hello").await.unwrap();
    exceeded(say(&world, Some(person(1)), "hello").await);
    world.clock.jump(DAY_MILLIS);
    say(&world, Some(person(1)), "hello").await.unwrap();
    world.clock.jump(DAY_MILLIS);
    let used_up = exceeded(say(&world, Some(person(1)), "hello").await);
    assert_eq!(used_up.setting(), "budgets.user.month.tokens");
    assert_eq!(used_up.used, 3 * STEP);
    world.clock.jump(used_up.resets.0 - world.now().0);
    say(&world, Some(person(1)), "hello").await.unwrap();
    world.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_run_ends_before_the_request_that_its_budget_does_not_allow() {
    let budgets = BudgetLimits {
        agent: of_day(tokens(STEP)),
        ..BudgetLimits::default()
    };
    let world = world(budgets).await;
    let posted = world.say("call:echo={\"a\":1}").await;
    let run = posted.run_id.unwrap();
    let end = world.finish(run).await;
    assert_eq!((end.status, end.reason), (Status::Failed, EndReason::Limit));
    let words = end.error.unwrap();
    assert!(
        words.contains("budgets.agent.day.tokens is used up until 2027-01-16"),
        "{words}"
    );
    assert!(
        !words.contains("15"),
        "members are not told what others consumed: {words}"
    );
    // The step under way and its call were finished.
    assert_eq!(world.model.asked().len(), 1);
    let log = world.log(run).await;
    assert!(
        log.iter()
            .any(|(_, event)| matches!(event, Event::ToolOutputAvailable(_)))
    );
    world.stop().await;
}

#[tokio::test(start_paused = true)]
async fn runs_at_once_do_not_go_beyond_a_budget_together() {
    let budgets = BudgetLimits {
        user: of_day(runs(5)),
        ..BudgetLimits::default()
    };
    let world = world(budgets).await;
    let posts = (0..20).map(|_| world.engine.post(post_of(&world, Some(person(1)), "hello")));
    let answers = futures_util::future::join_all(posts).await;
    assert_eq!(answers.iter().filter(|answer| answer.is_ok()).count(), 5);
    for run in answers.into_iter().flatten().filter_map(|posted| posted.run_id) {
        world.finish(run).await;
    }
    world.clock.jump(1_000);
    exceeded(say(&world, Some(person(1)), "hello").await);
    world.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_child_run_that_a_budget_refuses_is_an_error_of_its_call() {
    let budgets = BudgetLimits {
        agent: of_day(runs(2)),
        ..BudgetLimits::default()
    };
    let world = world(budgets).await;
    let call = "call:helper={\"prompt\":\"hello\"}";
    let run = world.say(&format!("{call} {call} {call}")).await.run_id.unwrap();
    let end = world.finish(run).await;
    assert_eq!(end.status, Status::Completed);
    let log = world.log(run).await;
    let refused = log.iter().filter_map(|(_, event)| match event {
        Event::ToolOutputError(error) => error.error_text.clone(),
        _ => None,
    });
    let refused: Vec<_> = refused.collect();
    assert_eq!(refused.len(), 1, "{refused:?}");
    assert!(refused[0].contains("budgets.agent.day.runs"), "{refused:?}");
    world.stop().await;
}

#[tokio::test(start_paused = true)]
async fn what_runs_out_on_one_node_is_refused_on_another_within_a_second() {
    let budgets = BudgetLimits {
        user: of_day(tokens(2 * STEP)),
        ..BudgetLimits::default()
    };
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let bus = Arc::new(InProcessBus::default());
    let setup = |node| Setup {
        store: store.clone(),
        bus: bus.clone(),
        node: NodeId::new(Uuid::from_u128(node)),
        projects: with_budgets(budgets),
        ..Setup::default()
    };
    let first = World::with(setup(1)).await;
    let second = World::with(Setup {
        clock: first.clock.clone(),
        ..setup(2)
    })
    .await;
    say(&second, Some(person(1)), "hello").await.unwrap();
    say(&first, Some(person(1)), "hello").await.unwrap();
    tokio::time::advance(Duration::from_secs(1)).await;
    for world in [&first, &second] {
        let used_up = exceeded(say(world, Some(person(1)), "hello").await);
        assert_eq!(used_up.used, 2 * STEP);
    }
    first.stop().await;
    second.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_model_without_a_price_is_refused_where_cost_is_limited_unless_it_is_allowed() {
    let limited = |unpriced| {
        project_settings_with(|settings| {
            settings.budgets = BudgetLimits {
                user: of_day(cost(1)),
                unpriced,
                ..BudgetLimits::default()
            };
        })
    };
    let world = World::with(Setup {
        projects: limited(UnpricedRule::Reject),
        ..Setup::default()
    })
    .await;
    let refused = say(&world, Some(person(1)), "hello").await;
    assert!(matches!(refused, Err(PostError::Unpriced(_))), "{refused:?}");
    let agent = "default".parse().unwrap();
    let warnings = world.engine.agent_warnings(world.project, &agent).await.unwrap();
    assert!(
        warnings
            .iter()
            .any(|warning| warning.message.contains("has no price")),
        "{warnings:?}"
    );
    world.stop().await;
    let world = World::with(Setup {
        projects: limited(UnpricedRule::Allow),
        ..Setup::default()
    })
    .await;
    say(&world, Some(person(1)), "hello").await.unwrap();
    say(&world, Some(person(1)), "hello").await.unwrap();
    world.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_message_that_its_sender_cannot_pay_for_leaves_the_run_alone() {
    let budgets = BudgetLimits {
        user: of_day(tokens(2 * STEP)),
        ..BudgetLimits::default()
    };
    let world = check(budgets, 2, "budgets.user.day.tokens").await;
    let posted = world
        .engine
        .post(post_of(&world, Some(person(2)), "call:ask"))
        .await
        .unwrap();
    let run = posted.run_id.unwrap();
    world.until_status(run, Status::WaitingTool).await;
    let mut second = world.post_to(Some(posted.space_id), "never mind");
    second.message.from = Some(person(1));
    let refused = world.engine.post(second).await;
    assert!(matches!(refused, Err(PostError::Budget(_))), "{refused:?}");
    let record = world.store.run(run).await.unwrap().unwrap();
    assert_eq!(record.status, Status::WaitingTool);
    world.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_requested_call_needs_no_tokens_and_counts_as_a_run() {
    let budgets = BudgetLimits {
        project: of_day(Amounts {
            runs: Some(2),
            ..tokens(0)
        }),
        ..BudgetLimits::default()
    };
    let world = world(budgets).await;
    exceeded(say(&world, None, "hello").await);
    let call = |world: &World| Post {
        call: Some(RequestedCall {
            tool: "echo".parse().unwrap(),
            input: serde_json::json!({}).into(),
        }),
        ..post_of(world, None, "")
    };
    for _ in 0..2 {
        let posted = world.engine.post(call(&world)).await.unwrap();
        let end = world.finish(posted.run_id.unwrap()).await;
        assert_eq!(end.status, Status::Completed);
    }
    let refused = world.engine.post(call(&world)).await.map(drop);
    assert_eq!(exceeded(refused).setting(), "budgets.project.day.runs");
    world.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_user_is_told_of_its_own_budget_in_numbers_and_of_others_without() {
    let budgets = BudgetLimits {
        project: of_day(runs(1)),
        ..BudgetLimits::default()
    };
    let world = check(budgets, 1, "budgets.project.day.runs").await;
    let mut post = post_of(&world, Some(person(1)), "hello");
    let to_backend = world.engine.post(post.clone()).await.unwrap_err().to_string();
    assert!(
        to_backend.contains("1 runs of 1 runs in this day"),
        "{to_backend}"
    );
    post.starter = Starter::User { groups: [].into() };
    let to_user = world.engine.post(post).await.unwrap_err().to_string();
    assert_eq!(
        to_user,
        "the budget budgets.project.day.runs is used up until 2027-01-16T00:00:00.000Z"
    );
    world.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_store_that_does_not_say_what_was_consumed_starts_nothing() {
    let faults = Arc::new(toolgate_testkit::faulty_store::FaultyStore::new(
        Arc::new(MemoryStore::new()),
        0,
        0,
    ));
    let world = World::with(Setup {
        store: faults.clone(),
        projects: with_budgets(BudgetLimits {
            project: of_day(tokens(100)),
            ..BudgetLimits::default()
        }),
        ..Setup::default()
    })
    .await;
    faults.refuse(Some("consumed"));
    let refused = say(&world, None, "hello").await;
    assert!(matches!(refused, Err(PostError::Store(_))), "{refused:?}");
    faults.refuse(None);
    say(&world, None, "hello").await.unwrap();
    world.stop().await;
}

/// Tokens that are counted for a run whose model has written 400 letters of its reply when it is cancelled, on its own node or
/// on another one.
async fn cancelled_in_mid_reply(elsewhere: bool) -> u64 {
    let gate = Arc::new(Semaphore::new(0));
    let script = move |_: &Ask| vec![text("a".repeat(400)), Say::Gate(gate.clone()), text("never")];
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let bus = Arc::new(InProcessBus::default());
    let setup = |node, model| Setup {
        store: store.clone(),
        bus: bus.clone(),
        node: NodeId::new(Uuid::from_u128(node)),
        model,
        ..Setup::default()
    };
    let model = ScriptedModel::new(script);
    let driver = World::with(setup(1, model.clone())).await;
    let other = World::with(Setup {
        clock: driver.clock.clone(),
        ..setup(2, model)
    })
    .await;
    let posted = driver
        .engine
        .post(post_of(&driver, Some(person(1)), "hello"))
        .await;
    let run = posted.expect("it is taken").run_id.expect("an agent answers");
    driver
        .until(run, |event| matches!(event, Event::TextDelta(_)))
        .await;
    let canceller = if elsewhere { &other } else { &driver };
    assert_eq!(canceller.engine.cancel(run).await.unwrap(), Status::Cancelled);
    let consumed = driver
        .engine
        .consumed(driver.project, Consumer::User(person(1)), ALWAYS)
        .await
        .expect("read");
    assert_eq!((consumed.runs, consumed.requests), (1, 1), "{consumed:?}");
    driver.stop().await;
    other.stop().await;
    consumed.tokens()
}

#[tokio::test(start_paused = true)]
async fn a_reply_that_is_cancelled_counts_by_what_came_of_it() {
    let here = cancelled_in_mid_reply(false).await;
    assert!(
        here > 100,
        "400 letters are 100 tokens, and the request some more: {here}"
    );
    // A node that does not drive the run knows what was asked, not what came.
    let elsewhere = cancelled_in_mid_reply(true).await;
    assert!((1..=here - 100).contains(&elsewhere), "{elsewhere} of {here}");
}
