//! What is left out of a request that would be too long, and what a summary of it costs.

use serde_json::{Value, json};
use toolgate_engine::intake::{Answer, RequestedCall};
use toolgate_engine::model::Ask;
use toolgate_kernel::event::{ContextCut, Event, Status};
use toolgate_kernel::id::{RunId, SpaceId};
use toolgate_testkit::scripted_model::{Say, ScriptedModel, call, last_results, last_words, text};

use crate::world::{Setup, World, by_words};

/// A message of about 130 tokens.
const LONG: usize = 400;

/// An agent whose model is given few tokens.
fn forgetful(compact: &str) -> Value {
    json!({
        "instructions": "Do as the test says.",
        "model": {"provider": "demo"},
        "context": {"maxTokens": 600, "compact": compact},
        "tools": [{"name": "mirror", "description": "for tests", "executionType": "basic",
            "parameters": {"type": "object"}, "execution": {"mode": "pass-through"}}],
    })
}

fn sums_up(ask: &Ask) -> bool {
    ask.instructions.starts_with("You keep the memory")
}

/// A model that answers as told, and writes summaries by `summary`.
fn model(
    make: impl FnOnce(Box<dyn Fn(&Ask) -> Vec<Say> + Send + Sync>) -> std::sync::Arc<ScriptedModel>,
    summary: fn() -> Vec<Say>,
) -> std::sync::Arc<ScriptedModel> {
    make(Box::new(move |ask| match sums_up(ask) {
        true => summary(),
        false => by_words(ask),
    }))
}

/// Talks until something was cut, and gives the run in which it was.
async fn talk_until_cut(world: &World) -> (RunId, ContextCut) {
    let mut space: Option<SpaceId> = None;
    for turn in 0..10 {
        let words = format!("{turn} {}", "x".repeat(LONG));
        let posted = world.engine.post(world.post_to(space, &words)).await.unwrap();
        space = Some(posted.space_id);
        let run = posted.run_id.unwrap();
        assert_eq!(world.finish(run).await.status, Status::Completed);
        let log = world.log(run).await;
        let cut = log.into_iter().find_map(|(_, event)| match event {
            Event::ContextCut(cut) => Some(cut),
            _ => None,
        });
        if let Some(cut) = cut {
            return (run, cut);
        }
    }
    panic!("nothing was cut");
}

#[tokio::test(start_paused = true)]
async fn a_summary_of_a_vendor_without_usage_is_estimated_and_counts() {
    let model = model(
        |script| ScriptedModel::without_usage(script),
        || vec![text("They counted.")],
    );
    let world = World::with(Setup {
        model,
        agent: forgetful("summary"),
        ..Setup::default()
    })
    .await;
    let (run, cut) = talk_until_cut(&world).await;
    assert_eq!(cut.summary.as_deref(), Some("They counted."));
    let usage = cut.usage.expect("a summary costs something");
    assert!(usage.estimated, "{usage:?}");
    assert!(usage.input_tokens > 100 && usage.output_tokens > 0, "{usage:?}");
    let whole = world.finish(run).await.usage;
    assert!(
        whole.input_tokens > usage.input_tokens,
        "{whole:?} holds {usage:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn an_adapter_that_panics_over_a_summary_is_asked_once_and_the_run_goes_on() {
    let model = model(
        |script| ScriptedModel::new(script),
        || panic!("an adapter with a bug"),
    );
    let world = World::with(Setup {
        model: model.clone(),
        agent: forgetful("summary"),
        ..Setup::default()
    })
    .await;
    let (_, cut) = talk_until_cut(&world).await;
    assert_eq!((cut.summary, cut.usage), (None, None));
    assert_eq!(model.asked().iter().filter(|ask| sums_up(ask)).count(), 1);
}

#[tokio::test(start_paused = true)]
async fn calls_of_other_agents_take_no_room_in_a_model_that_is_not_told_of_them() {
    let model = ScriptedModel::new(|ask| match (last_results(ask), last_words(ask).as_ref()) {
        (Some(_), _) => vec![text("done")],
        (None, "work") => vec![call("mirror", json!({"n": "y".repeat(1_500)}).to_string())],
        (None, _) => vec![text("yes")],
    });
    let world = World::with(Setup {
        model,
        agent: forgetful("drop"),
        ..Setup::default()
    })
    .await;
    let first = world.say("the beginning").await;
    world.finish(first.run_id.unwrap()).await;
    // Far more than the window in calls and results, of which the agent `default` hears nothing.
    for _ in 0..6 {
        let mut post = world.post_to(Some(first.space_id), "work");
        post.answer = Answer::Agent("helper".parse().unwrap());
        let run = world.engine.post(post).await.unwrap().run_id.unwrap();
        world.finish(run).await;
    }
    let last = world.say_in(first.space_id, "the end").await.run_id.unwrap();
    world.finish(last).await;
    let cut = world.log(last).await;
    let cut = cut
        .iter()
        .find(|(_, event)| matches!(event, Event::ContextCut(_)));
    assert_eq!(cut, None);
    let told = format!("{:?}", world.model.asked().last().unwrap().turns);
    assert!(told.contains("the beginning"), "{told}");
}

#[tokio::test(start_paused = true)]
async fn requested_calls_take_no_room_of_the_conversation() {
    let world = World::with(Setup {
        agent: forgetful("drop"),
        ..Setup::default()
    })
    .await;
    let first = world.say("the beginning").await;
    world.finish(first.run_id.unwrap()).await;
    // Many small ones for the window; and ones of which few have more bytes than a model is given at all.
    for bytes in [1_500; 12].into_iter().chain([300_000; 3]) {
        let mut post = world.post_to(Some(first.space_id), "");
        post.message.parts.clear();
        post.call = Some(RequestedCall {
            tool: "mirror".parse().unwrap(),
            input: json!({"n": "y".repeat(bytes)}).into(),
        });
        let run = world.engine.post(post).await.unwrap().run_id.unwrap();
        world.finish(run).await;
    }
    let last = world.say_in(first.space_id, "the end").await.run_id.unwrap();
    world.finish(last).await;
    let log = world.log(last).await;
    let is_cut = |(_, event): &&(_, Event)| matches!(event, Event::ContextCut(_));
    assert_eq!(log.iter().find(is_cut), None);
    let told = format!("{:?}", world.model.asked().last().unwrap().turns);
    assert!(told.contains("the beginning"), "{told}");
}
