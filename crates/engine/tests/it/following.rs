//! Following from any place: no gap, no duplicate.

use serde_json::json;
use toolgate_engine::feed::{End, Scope};
use toolgate_engine::intake::Submission;
use toolgate_engine::store::{LogRange, PAGE_BYTES};
use toolgate_kernel::event::{Event, Seq, Status};
use toolgate_kernel::id::RunId;
use toolgate_kernel::json::Json;

use crate::world::{World, calls_in};

async fn from(world: &World, run: RunId, cursor: Seq) -> Vec<(Seq, Event)> {
    let mut following = world.engine.subscribe(Scope::Run(run), cursor).await.unwrap();
    let mut seen = Vec::new();
    loop {
        let after = following.cursor();
        match following.next().await {
            Ok(batch) => {
                let fresh = batch.placed().filter(|(seq, _)| *seq > after);
                seen.extend(fresh.map(|(seq, event)| (seq, event.clone())));
            }
            Err(End::Finished) => return seen,
            Err(End::Cut) => panic!("cut"),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_stream_cut_at_any_event_goes_on_without_gap_or_duplicate() {
    let world = World::new().await;
    let post = world.post_to(None, r#"call:mirror={"a":1} call:ask"#);
    let (posted, following) = world.engine.post_and_follow(post).await.unwrap();
    let run = posted.run_id.unwrap();
    let mut following = following.unwrap();
    let mut live = Vec::new();
    let mut call = None;
    loop {
        let after = following.cursor();
        let Ok(batch) = following.next().await else { break };
        let fresh: Vec<_> = batch
            .placed()
            .filter(|(seq, _)| *seq > after)
            .map(|(s, e)| (s, e.clone()))
            .collect();
        for (_, event) in &fresh {
            if matches!(event, Event::RunStatus(e) if e.status == Status::WaitingTool) {
                let events: Vec<Event> = live
                    .iter()
                    .chain(&fresh)
                    .map(|(_, e): &(Seq, Event)| e.clone())
                    .collect();
                call = calls_in(&events).last().copied();
            }
        }
        live.extend(fresh);
        if let Some(call) = call.take() {
            world
                .engine
                .submit(call, Submission::Output(Json::from(serde_json::json!({}))), None)
                .await
                .unwrap();
        }
    }
    assert!(live.iter().any(|(_, event)| !event.is_durable()));
    assert!(live.is_sorted_by(|a, b| a.0 < b.0), "places only grow");
    for (index, (cursor, _)) in live.iter().enumerate() {
        let rest = from(&world, run, *cursor).await;
        let expected: Vec<_> = live[index + 1..]
            .iter()
            .filter(|(_, event)| event.is_durable())
            .cloned()
            .collect();
        assert_eq!(rest, expected, "after {cursor:?}");
    }
    assert_eq!(from(&world, run, Seq(0)).await, world.log(run).await);
}

#[tokio::test(start_paused = true)]
async fn whoever_comes_in_the_middle_of_a_step_misses_nothing() {
    use std::sync::Arc;
    use tokio::sync::Semaphore;
    use toolgate_testkit::scripted_model::{Say, ScriptedModel, text};
    let gate = Arc::new(Semaphore::new(0));
    let held = gate.clone();
    let model = ScriptedModel::new(move |_| {
        vec![
            text("a"),
            Say::Gate(held.clone()),
            text("b"),
            Say::Gate(held.clone()),
            text("c"),
        ]
    });
    let world = World::with(crate::world::Setup {
        model,
        ..Default::default()
    })
    .await;
    let run = world.say("go").await.run_id.unwrap();
    world
        .until(
            run,
            |event| matches!(event, Event::TextDelta(e) if e.delta == "a"),
        )
        .await;
    let early = world.engine.subscribe(Scope::Run(run), Seq(0)).await.unwrap();
    gate.add_permits(1);
    world
        .until(
            run,
            |event| matches!(event, Event::TextDelta(e) if e.delta == "b"),
        )
        .await;
    let late = world.engine.subscribe(Scope::Run(run), Seq(0)).await.unwrap();
    gate.add_permits(1);
    for mut following in [early, late] {
        let mut deltas = String::new();
        let mut last = Seq(0);
        loop {
            let after = following.cursor();
            let Ok(batch) = following.next().await else { break };
            for (seq, event) in batch.placed().filter(|(seq, _)| *seq > after) {
                assert!(seq > last, "places only grow");
                last = seq;
                if let Event::TextDelta(e) = event {
                    deltas.push_str(&e.delta);
                }
            }
        }
        assert_eq!(deltas, "abc");
    }
}

#[tokio::test(start_paused = true)]
async fn a_result_may_come_before_its_call_is_whole() {
    use std::sync::Arc;
    use tokio::sync::Semaphore;
    use toolgate_testkit::scripted_model::{Say, ScriptedModel, call, last_results, text};
    let gate = Arc::new(Semaphore::new(0));
    let held = gate.clone();
    let model = ScriptedModel::new(move |ask| match last_results(ask) {
        Some(results) => vec![text(format!("got {}", results[0].output.as_str()))],
        None => vec![call("ask", "{}"), Say::Gate(held.clone())],
    });
    let world = World::with(crate::world::Setup {
        model,
        ..Default::default()
    })
    .await;
    let run = world.say("go").await.run_id.unwrap();
    let events = world
        .until(run, |event| matches!(event, Event::ToolInputStart(_)))
        .await;
    let Some(Event::ToolInputStart(announced)) = events.last() else {
        unreachable!()
    };
    let engine = world.engine.clone();
    let id = announced.tool_call_id;
    let early = tokio::spawn(async move {
        engine
            .submit(
                id,
                Submission::Output(Json::from(serde_json::json!({"early": true}))),
                None,
            )
            .await
    });
    // The letter is in the run's hands before the reply goes on.
    tokio::time::sleep(std::time::Duration::from_millis(1)).await;
    gate.add_permits(1);
    let receipt = early.await.unwrap().unwrap();
    assert_eq!(receipt.tool_call_id, id);
    assert_eq!(world.answer(run).await, r#"got {"early":true}"#);
}

#[tokio::test(start_paused = true)]
async fn a_run_of_several_pages_is_followed_and_goes_on() {
    const NOTES: usize = 5;
    let world = World::new().await;
    let run = world.say("call:ask").await.run_id.unwrap();
    let call = calls_in(&world.until_status(run, Status::WaitingTool).await)[0];
    let body = "x".repeat(PAGE_BYTES / 2);
    for n in 0..NOTES {
        let note = json!({"type": "notification", "title": n.to_string(), "body": body});
        world.write(run, note).await;
    }
    let first = world.store.run_log(run, LogRange::default()).await.unwrap();
    assert!(first.more, "the log has more than a page");
    let output = Submission::Output(Json::from(json!({"late": 1})));
    world.engine.submit(call, output, None).await.unwrap();
    world.finish(run).await;
    let seen = from(&world, run, Seq(0)).await;
    let titles: Vec<&str> = seen
        .iter()
        .filter_map(|(_, event)| match event {
            Event::Notification(note) => Some(note.title.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(titles, ["0", "1", "2", "3", "4"]);
    assert!(seen.is_sorted_by_key(|(seq, _)| *seq));
    let settled = seen.iter().filter(|(_, event)| event.settles() == Some(call));
    assert_eq!(settled.count(), 1);
}
