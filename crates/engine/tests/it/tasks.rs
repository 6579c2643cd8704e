//! Calls that a tool source hands to a server of its own, and what they ask people.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use toolgate_engine::feed::Scope;
use toolgate_engine::intake::{IntakeError, Responded};
use toolgate_engine::store::Store;
use toolgate_kernel::call::ErrorCode;
use toolgate_kernel::event::{Event, Seq, Status, ToolQuestion};
use toolgate_kernel::id::RunId;
use toolgate_kernel::question::{Action, QUESTION_EXPIRY, Response};
use toolgate_kernel::tool::Decider;
use toolgate_store::MemoryStore;
use toolgate_testkit::faulty_store::FaultyStore;

use crate::world::{Setup, World};

/// Words that call a tool whose task goes through this plan.
fn call(tool: &str, plan: &[&str]) -> String {
    format!("call:{tool}={}", json!({ "plan": plan }))
}

async fn start(world: &World, tool: &str, plan: &[&str]) -> RunId {
    world.say(&call(tool, plan)).await.run_id.unwrap()
}

fn accept(content: Option<Value>) -> Response {
    Response {
        action: Action::Accept,
        content: content.map(Into::into),
    }
}

fn seat(seat: &str) -> Response {
    accept(Some(json!({ "seat": seat })))
}

async fn respond(
    world: &World,
    question: &ToolQuestion,
    response: Response,
) -> Result<Responded, IntakeError> {
    let backend = Decider::Backend;
    world
        .engine
        .respond(question.question_id, response, backend)
        .await
}

/// What a run asks now, once it waits for people.
async fn questions(world: &World, run: RunId) -> Vec<ToolQuestion> {
    world.until_status(run, Status::WaitingApproval).await;
    let open = world.engine.open_questions(run).await.unwrap();
    open.questions.into_iter().map(|(_, question)| question).collect()
}

fn gone(answer: Result<Responded, IntakeError>) -> ErrorCode {
    match answer {
        Err(IntakeError::Gone { code, .. }) => code,
        other => panic!("{other:?}"),
    }
}

/// Until a task was abandoned.
async fn abandoned(world: &World) {
    while world.tasks.task().abandoned == 0 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_task_is_looked_at_until_it_ends_by_a_run_in_nobodys_memory() {
    for always_evict in [false, true] {
        let world = World::with(Setup {
            always_evict,
            ..Setup::default()
        })
        .await;
        let run = start(&world, "work", &["wait", "wait", "end"]).await;
        world
            .until(
                run,
                |event| matches!(event, Event::ToolExecuting(e) if e.task.is_some()),
            )
            .await;
        world.rest().await;
        let row = world.store.run(run).await.unwrap().unwrap();
        assert_eq!((row.status, row.node), (Status::Running, None));
        assert!(row.wake_at.is_some(), "it is looked at again");
        assert!(world.answer(run).await.contains("answers"));
        let task = world.tasks.task();
        assert_eq!((task.starts, task.looks, task.abandoned), (1, 2, 0));
        world.rest().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_task_that_fails_is_told_to_the_model() {
    let world = World::new().await;
    let run = start(&world, "work", &["wait", "fail"]).await;
    assert!(world.answer(run).await.contains("the task has failed"));
    assert_eq!(world.tasks.task().abandoned, 0, "it has ended by itself");
}

#[tokio::test(start_paused = true)]
async fn a_task_that_nobody_waits_for_is_abandoned_once() {
    for why in ["cancel", "message", "timeout"] {
        let world = World::new().await;
        let posted = world.say(&call("work", &["stay"])).await;
        let run = posted.run_id.unwrap();
        world
            .until(
                run,
                |event| matches!(event, Event::ToolExecuting(e) if e.task.is_some()),
            )
            .await;
        if why == "cancel" {
            world.engine.cancel(run).await.unwrap();
        }
        if why == "message" {
            world.say_in(posted.space_id, "something else").await;
        }
        world.finish(run).await;
        abandoned(&world).await;
        world.rest().await;
        assert_eq!(world.tasks.task().abandoned, 1, "{why}");
        assert_eq!(world.tasks.task().starts, 1, "{why}");
        if why == "timeout" {
            let looks = world.tasks.task().looks;
            assert!(
                (10..60).contains(&looks),
                "each second at first, less often then: {looks}"
            );
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_asks_people_and_goes_on_with_their_answers() {
    for always_evict in [false, true] {
        let world = World::with(Setup {
            always_evict,
            ..Setup::default()
        })
        .await;
        let run = start(&world, "work", &["wait", "both", "wait", "ask", "end"]).await;
        let asked = questions(&world, run).await;
        assert_eq!(asked.len(), 2);
        assert_eq!(asked[0].message, "Which seat?");
        assert_eq!(asked[1].url.as_deref(), Some("https://airline.example/sign-in"));
        world.rest().await;
        // Longer than the tool's timeout: people have a time of their own.
        tokio::time::advance(Duration::from_secs(3600)).await;
        let refused = respond(&world, &asked[0], seat("far too long")).await;
        assert!(
            matches!(&refused, Err(IntakeError::Invalid(problems)) if problems[0].pointer == "/content/seat")
        );
        let first = respond(&world, &asked[0], seat("12A")).await.unwrap();
        assert_eq!(respond(&world, &asked[0], seat("12A")).await.unwrap(), first);
        let other = respond(&world, &asked[0], seat("1B")).await;
        assert!(matches!(other, Err(IntakeError::RespondedOtherwise { winner }) if *winner == first));
        respond(&world, &asked[1], accept(None)).await.unwrap();
        world.until_status(run, Status::Running).await;
        let again = loop {
            let open = world.engine.open_questions(run).await.unwrap().questions;
            if let [(_, question)] = &open[..] {
                break question.clone();
            }
            tokio::time::advance(Duration::from_millis(100)).await;
            tokio::task::yield_now().await;
        };
        let no = Response {
            action: Action::Decline,
            content: None,
        };
        respond(&world, &again, no).await.unwrap();
        let answer = world.answer(run).await;
        assert!(answer.contains("12A") && answer.contains("decline"), "{answer}");
        let task = world.tasks.task();
        assert_eq!((task.starts, task.answers.len(), task.abandoned), (1, 3, 0));
        world.rest().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_question_ends_with_its_call_its_run_and_its_time() {
    let world = World::new().await;
    let run = start(&world, "work", &["ask", "end"]).await;
    let asked = questions(&world, run).await;
    world.engine.cancel(run).await.unwrap();
    assert_eq!(
        gone(respond(&world, &asked[0], seat("1A")).await),
        ErrorCode::Cancelled
    );
    abandoned(&world).await;

    let posted = world.say(&call("work", &["ask", "end"])).await;
    let asked = questions(&world, posted.run_id.unwrap()).await;
    world.say_in(posted.space_id, "never mind").await;
    assert_eq!(
        gone(respond(&world, &asked[0], seat("1A")).await),
        ErrorCode::Superseded
    );

    let run = start(&world, "work", &["ask", "end"]).await;
    let asked = questions(&world, run).await;
    tokio::time::advance(QUESTION_EXPIRY).await;
    assert!(
        world.answer(run).await.contains("cancel"),
        "as its source is told"
    );
    assert_eq!(
        gone(respond(&world, &asked[0], seat("1A")).await),
        ErrorCode::Timeout
    );

    // A task whose server died says so at the next look, and closes what it asked.
    let run = start(&world, "work", &["wait", "page", "end"]).await;
    let asked = questions(&world, run).await;
    world.tasks.lose_all();
    assert!(world.answer(run).await.contains("the task is lost"));
    assert_eq!(
        gone(respond(&world, &asked[0], accept(None)).await),
        ErrorCode::Interrupted
    );
    assert!(
        world
            .engine
            .open_questions(run)
            .await
            .unwrap()
            .questions
            .is_empty()
    );
}

#[tokio::test(start_paused = true)]
async fn what_a_child_runs_tool_asks_is_asked_and_answered_in_the_run_at_the_top() {
    let world = World::new().await;
    let prompt = call("work", &["ask", "end"]);
    let words = format!("call:helper={}", json!({ "prompt": prompt }));
    let root = world.say(&words).await.run_id.unwrap();
    world.until_status(root, Status::WaitingApproval).await;
    let told = async || -> Vec<Event> {
        let log = world.log(root).await.into_iter();
        log.filter_map(|(_, event)| match event {
            Event::ChildCall(told) => Some(*told.event),
            _ => None,
        })
        .collect()
    };
    let asked = told().await.into_iter().find_map(|event| match event {
        Event::ToolQuestion(e) => Some(e),
        _ => None,
    });
    let asked = asked.unwrap();
    assert_ne!(asked.tool_call_id.run, root);
    respond(&world, &asked, seat("7C")).await.unwrap();
    assert!(world.answer(root).await.contains("7C"));
    let kinds: Vec<String> = told().await.iter().map(|event| event.kind().to_owned()).collect();
    let expected = [
        "tool-input-available",
        "tool-executing",
        "tool-question",
        "tool-question-response",
        "tool-executing",
        "tool-output-available",
    ];
    assert_eq!(kinds, expected);
}

/// Answers whatever is asked in a run, until it has ended. What was answered before is answered again: nobody minds.
async fn answer_until_end(world: &World, run: RunId) -> Status {
    'again: loop {
        let Ok(mut following) = world.engine.subscribe(Scope::Run(run), Seq(0)).await else {
            continue;
        };
        loop {
            let Ok(batch) = following.next().await else {
                continue 'again;
            };
            for (_, event) in batch.placed() {
                match event {
                    Event::RunFinish(end) => return end.status,
                    Event::ToolQuestion(question) => {
                        let answer = match question.url {
                            Some(_) => accept(None),
                            None => seat("12A"),
                        };
                        // A store that is killed refuses; whatever else may be wrong shows in what becomes of the run.
                        let _ = respond(world, question, answer).await;
                    }
                    _ => {}
                }
            }
        }
    }
}

/// Kills the store after so many writes of a run whose tool asks, and goes on with what is left; whether it was killed.
async fn killed_after(tool: &str, writes: usize, always_evict: bool) -> bool {
    let memory: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let store = Arc::new(FaultyStore::killed_after(memory.clone(), writes));
    let setup = Setup {
        store: store.clone(),
        always_evict,
        ..Setup::default()
    };
    let (clock, tasks) = (setup.clock.clone(), setup.tasks.clone());
    let first = World::with(setup).await;
    let run = start(&first, tool, &["wait", "both", "wait", "end"]).await;
    let killed = tokio::select! {
        biased;
        () = store.killed() => true,
        end = answer_until_end(&first, run) => {
            assert_eq!(end, Status::Completed);
            false
        }
    };
    first.stop().await;
    let world = World::with(Setup {
        store: memory,
        clock,
        always_evict,
        tasks,
        ..Setup::default()
    })
    .await;
    let end = answer_until_end(&world, run).await;
    assert_eq!(end, Status::Completed, "after {writes} writes");
    let answer = world.answer(run).await;
    let tasks = world.tasks.tasks();
    assert!(tasks.len() <= 1, "after {writes} writes: {tasks:?}");
    // None when it was killed before the call began.
    let task = tasks.into_values().next().unwrap_or_default();
    let is_interrupted = answer.contains("outcome unknown");
    assert!(
        answer.contains("12A") || (is_interrupted && tool == "work"),
        "after {writes} writes: {answer}"
    );
    match tool {
        // The same call again is the same task.
        "work_safe" => assert!(task.starts <= 2, "after {writes} writes"),
        _ => assert!(task.starts <= 1, "after {writes} writes"),
    }
    assert_eq!(task.abandoned, 0, "after {writes} writes");
    let answers: Vec<&Value> = task.answers.iter().map(|answer| &answer["key"]).collect();
    if !is_interrupted {
        assert_eq!(answers, ["seat", "page"], "after {writes} writes");
    }
    world.rest().await;
    killed
}

#[tokio::test(start_paused = true)]
async fn a_kill_between_any_two_writes_loses_no_task_and_starts_none_twice() {
    for (tool, always_evict) in [("work", false), ("work", true), ("work_safe", false)] {
        let mut writes = 1;
        while killed_after(tool, writes, always_evict).await {
            writes += 1;
        }
        assert!(writes > 8, "{writes} writes are too few");
    }
}
