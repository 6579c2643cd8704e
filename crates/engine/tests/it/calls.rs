//! Calls: who answers them, how often, and what everyone is told.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::json;
use toolgate_engine::intake::{Decision, IntakeError, Submission};
use toolgate_engine::store::{LogRange, Pages};
use toolgate_kernel::call::ErrorCode;
use toolgate_kernel::event::{Event, Status};
use toolgate_kernel::json::Json;
use toolgate_kernel::tool::Decider;
use toolgate_testkit::scripted_model::{ScriptedModel, call};

use crate::world::{Setup, World, calls_in};

fn output(value: serde_json::Value) -> Submission {
    Submission::Output(Json::from(value))
}

#[tokio::test(start_paused = true)]
async fn a_plain_chat_is_answered() {
    let world = World::new().await;
    let posted = world.say("hello").await;
    assert_eq!(world.answer(posted.run_id.unwrap()).await, "you said hello");
}

#[tokio::test(start_paused = true)]
async fn outputs_that_need_no_execution_reach_the_model() {
    let world = World::new().await;
    let posted = world.say(r#"call:fixed call:mirror={"a":1}"#).await;
    assert_eq!(
        world.answer(posted.run_id.unwrap()).await,
        r#"got {"fixed":true} and {"a":1}"#
    );
}

#[tokio::test(start_paused = true)]
async fn a_client_call_waits_for_its_result_and_settles_once() {
    let world = World::new().await;
    let run = world.say("call:ask").await.run_id.unwrap();
    let call = calls_in(&world.until_status(run, Status::WaitingTool).await)[0];

    let wrong = world
        .engine
        .submit(call, output(json!("not an object")), None)
        .await;
    assert!(matches!(wrong, Err(IntakeError::Invalid(_))), "{wrong:?}");
    let receipt = world
        .engine
        .submit(call, output(json!({"choice": "red"})), None)
        .await
        .unwrap();
    let again = world
        .engine
        .submit(call, output(json!({ "choice" : "red" })), None)
        .await
        .unwrap();
    assert_eq!(receipt, again);
    match world
        .engine
        .submit(call, output(json!({"choice": "blue"})), None)
        .await
    {
        Err(IntakeError::Conflict { winner }) => assert_eq!(*winner, receipt),
        other => panic!("{other:?}"),
    }
    assert_eq!(world.answer(run).await, r#"got {"choice":"red"}"#);
    let after = world
        .engine
        .submit(call, output(json!({"choice": "red"})), None)
        .await
        .unwrap();
    assert_eq!(receipt, after);
}

#[tokio::test(start_paused = true)]
async fn an_unknown_call_and_an_unknown_run_are_unknown() {
    let world = World::new().await;
    let run = world.say("hello").await.run_id.unwrap();
    world.finish(run).await;
    for call in [
        format!("{}_5", run.to_string().replace("run_", "call_")),
        "call_00000000000000000000000000_0".into(),
    ] {
        let told = world
            .engine
            .submit(call.parse().unwrap(), output(json!({})), None)
            .await;
        assert!(matches!(told, Err(IntakeError::Unknown("call"))), "{told:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_that_is_gone_for_ever_is_given_up() {
    let world = World::new().await;
    let run = world.say("call:ask").await.run_id.unwrap();
    let call = calls_in(&world.until_status(run, Status::WaitingTool).await)[0];
    let answer = world.answer(run).await;
    assert!(answer.contains("no client answered ask in time"), "{answer}");
    match world.engine.submit(call, output(json!({})), None).await {
        Err(IntakeError::Gone { code, .. }) => assert_eq!(code, ErrorCode::Timeout),
        other => panic!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn calls_of_both_sides_are_answered_in_any_order() {
    let orders = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]];
    for order in orders {
        let world = World::new().await;
        let run = world
            .say(r#"call:ask call:slow={"n":1} call:show call:fail"#)
            .await
            .run_id
            .unwrap();
        let events = world
            .until(run, |event| matches!(event, Event::StepFinish(_)))
            .await;
        let calls = calls_in(&events);
        for which in order {
            match which {
                0 => drop(
                    world
                        .engine
                        .submit(calls[0], output(json!({"n": 0})), None)
                        .await
                        .unwrap(),
                ),
                1 => world.tools.gate.add_permits(1),
                _ => drop(
                    world
                        .engine
                        .submit(calls[2], Submission::Error("broken".into()), None)
                        .await
                        .unwrap(),
                ),
            }
        }
        let answer = world.answer(run).await;
        let places: Vec<usize> = [r#"{"n":0}"#, r#"{"n":1}"#, "broken", "no luck"]
            .iter()
            .map(|result| {
                answer
                    .find(result)
                    .unwrap_or_else(|| panic!("{result} in {answer}"))
            })
            .collect();
        assert!(places.is_sorted(), "{answer}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_breaks_or_hangs_is_an_error_and_not_the_end() {
    let world = World::new().await;
    let run = world
        .say("call:break call:hang call:nothing")
        .await
        .run_id
        .unwrap();
    let answer = world.answer(run).await;
    for words in ["the tool broke down", "no answer within 5s", "no tool named"] {
        assert!(answer.contains(words), "{words} in {answer}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_claim_keeps_others_away_until_its_holder_goes() {
    let world = World::new().await;
    let run = world.say("call:ask").await.run_id.unwrap();
    let call = calls_in(&world.until_status(run, Status::WaitingTool).await)[0];
    let lease = Duration::from_secs(10);
    let claimed = world
        .engine
        .claim_call(call, "tab 1".into(), None, lease)
        .await
        .unwrap();
    assert_eq!(claimed.input, Json::from(json!({})));
    let other = world.engine.claim_call(call, "tab 2".into(), None, lease).await;
    assert!(
        matches!(other, Err(IntakeError::Held { ref holder, .. }) if holder == "tab 1"),
        "{other:?}"
    );
    world
        .engine
        .claim_call(call, "tab 1".into(), None, lease)
        .await
        .unwrap();
    world
        .until(run, |event| matches!(event, Event::ToolReleased(_)))
        .await;
    world
        .engine
        .claim_call(call, "tab 2".into(), None, lease)
        .await
        .unwrap();
    world
        .engine
        .release_call(call, "tab 2".into(), None)
        .await
        .unwrap();
    world
        .engine
        .claim_call(call, "tab 3".into(), None, lease)
        .await
        .unwrap();
    world
        .engine
        .submit(call, output(json!({"by": 3})), None)
        .await
        .unwrap();
    assert_eq!(world.answer(run).await, r#"got {"by":3}"#);
}

#[tokio::test(start_paused = true)]
async fn a_person_approves_edits_denies_or_says_nothing() {
    let world = World::new().await;
    let ask = async || {
        let run = world.say(r#"call:guarded={"to":"a"}"#).await.run_id.unwrap();
        let events = world
            .until(run, |event| matches!(event, Event::RunStatus(_)))
            .await;
        let asked = events.iter().find_map(|event| match event {
            Event::ToolApprovalRequest(e) => Some(e.approval_id),
            _ => None,
        });
        (run, asked.unwrap())
    };
    let (run, approval) = ask().await;
    let yes = world
        .engine
        .decide(approval, Decision::Approve(None), Decider::Backend)
        .await
        .unwrap();
    assert!(yes.approved);
    assert_eq!(world.answer(run).await, r#"got {"to":"a"}"#);
    assert_eq!(
        world
            .engine
            .decide(approval, Decision::Approve(None), Decider::Backend)
            .await
            .unwrap(),
        yes
    );
    let no = world
        .engine
        .decide(approval, Decision::Deny(None), Decider::Backend)
        .await;
    assert!(
        matches!(no, Err(IntakeError::DecidedOtherwise { ref winner }) if **winner == yes),
        "{no:?}"
    );

    let (run, approval) = ask().await;
    let edited = |value: serde_json::Value| Decision::Approve(Some(Json::from(value)));
    let bad = world
        .engine
        .decide(approval, edited(json!({"to": 5})), Decider::Backend)
        .await;
    assert!(matches!(bad, Err(IntakeError::Invalid(_))), "{bad:?}");
    world
        .engine
        .decide(approval, edited(json!({"to": "b"})), Decider::Backend)
        .await
        .unwrap();
    assert_eq!(world.answer(run).await, r#"got {"to":"b"}"#);

    let (run, approval) = ask().await;
    world
        .engine
        .decide(
            approval,
            Decision::Deny(Some("too dear".into())),
            Decider::Backend,
        )
        .await
        .unwrap();
    let answer = world.answer(run).await;
    assert!(answer == "got \"Error: too dear.\"", "{answer}");

    let (run, approval) = ask().await;
    let answer = world.answer(run).await;
    assert!(
        answer.contains("Error: ") && answer.contains("in time"),
        "{answer}"
    );
    let late = world
        .engine
        .decide(approval, Decision::Approve(None), Decider::Backend)
        .await;
    assert!(
        matches!(
            late,
            Err(IntakeError::Gone {
                code: ErrorCode::Denied,
                ..
            })
        ),
        "{late:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_result_before_approval_is_refused_and_after_it_taken() {
    let world = World::new().await;
    let run = world.say("call:guarded_ask").await.run_id.unwrap();
    let call = calls_in(&world.until_status(run, Status::WaitingApproval).await)[0];
    let early = world.engine.submit(call, output(json!(1)), None).await;
    assert!(matches!(early, Err(IntakeError::NotApproved)), "{early:?}");
    let approval = call.to_string().replace("call_", "appr_").parse().unwrap();
    world
        .engine
        .decide(approval, Decision::Approve(None), Decider::Backend)
        .await
        .unwrap();
    world.engine.submit(call, output(json!(1)), None).await.unwrap();
    assert_eq!(world.answer(run).await, "got 1");
}

#[tokio::test(start_paused = true)]
async fn a_clock_that_jumps_neither_loses_nor_doubles_anything() {
    const HOUR: i64 = 3_600_000;
    let world = World::new().await;
    let run = world.say("call:ask call:show").await.run_id.unwrap();
    let calls = calls_in(&world.until_status(run, Status::WaitingTool).await);
    world.clock.jump(-HOUR);
    let receipt = world
        .engine
        .submit(calls[0], output(json!({"n": 1})), None)
        .await
        .unwrap();
    assert_eq!(
        world
            .engine
            .submit(calls[0], output(json!({"n": 1})), None)
            .await
            .unwrap(),
        receipt
    );
    world.clock.jump(3 * HOUR);
    let answer = world.answer(run).await;
    assert!(
        answer.contains(r#"{"n":1}"#) && answer.contains("no client answered show in time"),
        "{answer}"
    );
    let places: Vec<_> = world.log(run).await.into_iter().map(|(seq, _)| seq).collect();
    assert!(
        places.is_sorted_by(|a, b| a < b),
        "places do not depend on the clock"
    );
    assert_eq!(
        world
            .engine
            .submit(calls[0], output(json!({"n": 1})), None)
            .await
            .unwrap(),
        receipt
    );
}

#[tokio::test(start_paused = true)]
async fn open_questions_are_found_without_reading_the_whole_log() {
    let step = AtomicUsize::new(0);
    let model = ScriptedModel::new(move |_| match step.fetch_add(1, Ordering::Relaxed) {
        0 => vec![call("guarded", r#"{"to":"earlier"}"#)],
        1..=3 => vec![call("mirror", format!(r#"{{"long":"{}"}}"#, "x".repeat(200_000))); 4],
        _ => ["a", "b", "c"]
            .map(|to| call("guarded", format!(r#"{{"to":"{to}"}}"#)))
            .to_vec(),
    });
    let world = World::with(Setup {
        model,
        ..Setup::default()
    })
    .await;
    let run = world.say("go").await.run_id.unwrap();
    for to in ["earlier", "b"] {
        let asks = |event: &Event| match event {
            Event::ToolApprovalRequest(e) => e.input.as_ref().unwrap().as_str().contains(to),
            _ => false,
        };
        let events = world.until(run, asks).await;
        let Some(Event::ToolApprovalRequest(asked)) = events.last() else {
            panic!("{events:?}");
        };
        let decided = world
            .engine
            .decide(asked.approval_id, Decision::Approve(None), Decider::Backend);
        decided.await.unwrap();
    }

    let open = world.engine.open_questions(run).await.unwrap();
    let inputs: Vec<&str> = open
        .approvals
        .iter()
        .map(|(_, question)| question.input.as_ref().unwrap().as_str())
        .collect();
    assert_eq!(inputs, [r#"{"to":"a"}"#, r#"{"to":"c"}"#]);
    let log = Pages::of_run(run, LogRange::default());
    let log = log.all(&*world.store).await.unwrap();
    let events = log.iter().flat_map(|entry| &entry.events);
    let whole: usize = events
        .map(|event| serde_json::to_string(event).unwrap().len())
        .sum();
    assert!(whole > 4_000_000, "{whole}");
    assert!(open.bytes_read < 2_500_000, "{} of {whole}", open.bytes_read);
}
