//! What was said in a space before a run: read once, and from then on what is new.

use std::sync::Arc;

use serde_json::{Value, json};
use toolgate_engine::intake::{Answer, RequestedCall};
use toolgate_engine::model::Ask;
use toolgate_engine::store::Store;
use toolgate_kernel::event::Status;
use toolgate_kernel::id::{NodeId, SpaceId};
use toolgate_kernel::message::Part;
use toolgate_kernel::prompt::{Said, Turn};
use toolgate_store::MemoryStore;
use toolgate_testkit::faulty_store::FaultyStore;
use toolgate_testkit::scripted_model::{Say, ScriptedModel, call, last_results, last_words, text};
use uuid::Uuid;

use crate::world::{Setup, World};

fn agent(context: Value) -> Value {
    json!({
        "instructions": "Do as the test says.",
        "model": {"provider": "demo"},
        "context": context,
        "tools": [{"name": "mirror", "description": "for tests", "executionType": "basic",
            "parameters": {"type": "object"}, "execution": {"mode": "pass-through"}}],
    })
}

fn script(ask: &Ask) -> Vec<Say> {
    match (last_results(ask), &*last_words(ask)) {
        (Some(_), _) => vec![text("done")],
        (None, words) if words.starts_with("work") => {
            vec![
                text("a moment"),
                call("mirror", json!({"n": "y".repeat(300)}).to_string()),
            ]
        }
        (None, words) => vec![text(format!("you said {words}"))],
    }
}

/// The conversation in an ask, without ids.
fn told(ask: &Ask) -> Vec<String> {
    let turn = |turn: &Arc<Turn>| match turn.as_ref() {
        Turn::User(parts) => parts
            .iter()
            .map(|part| match part {
                Part::Text { text } => format!("user: {text}"),
                other => format!("user: {other:?}"),
            })
            .collect::<Vec<_>>(),
        Turn::Assistant(said) => said
            .iter()
            .map(|said| match said {
                Said::Text(text) => format!("model: {text}"),
                Said::Call { name, input, .. } => format!("model: {name} {}", input.as_str()),
                other => format!("model: {other:?}"),
            })
            .collect(),
        Turn::Results(results) => results
            .iter()
            .map(|result| format!("result: {}", result.output.as_str()))
            .collect(),
    };
    ask.turns.iter().flat_map(turn).collect()
}

/// What happens in a space, by turns: the agent that answers, what is said, or a call that somebody asks for.
const STORY: [(&str, &str); 14] = [
    ("default", "hello"),
    ("default", "work"),
    ("helper", "work for another"),
    ("", "nobody answers this"),
    ("default", "what did you do"),
    ("call", ""),
    ("default", "and now"),
    ("", "two in a row"),
    ("", "before an answer"),
    ("helper", "who are you"),
    ("default", "work again"),
    ("call", ""),
    ("default", "more"),
    ("default", "the end"),
];

/// One turn of the story, to its end.
async fn tell(world: &World, space: Option<SpaceId>, (who, words): (&str, &str)) -> SpaceId {
    let mut post = world.post_to(space, words);
    match who {
        "" => post.answer = Answer::None,
        "call" => {
            post.message.parts.clear();
            post.call = Some(RequestedCall {
                tool: "mirror".parse().unwrap(),
                input: json!({"n": 1}).into(),
            });
        }
        agent => post.answer = Answer::Agent(agent.parse().unwrap()),
    }
    let posted = world.engine.post(post).await.unwrap();
    if let Some(run) = posted.run_id {
        assert_eq!(world.finish(run).await.status, Status::Completed);
    }
    posted.space_id
}

/// What the models are told in the story; by a new process for each turn, or by one that remembers.
async fn story(context: Value, is_new_each_time: bool) -> Vec<Vec<String>> {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let model = ScriptedModel::new(script);
    let mut node = 0;
    let mut setup = || {
        node += 1;
        Setup {
            store: store.clone(),
            model: model.clone(),
            agent: agent(context.clone()),
            node: NodeId::new(Uuid::from_u128(node)),
            ..Setup::default()
        }
    };
    let mut world = World::with(setup()).await;
    let mut space = None;
    for turn in STORY.iter().chain(&STORY[..7]) {
        space = Some(tell(&world, space, *turn).await);
        if is_new_each_time {
            world.stop().await;
            world = World::with(setup()).await;
        }
    }
    world.stop().await;
    model.asked().iter().map(told).collect()
}

#[tokio::test(start_paused = true)]
async fn what_is_remembered_of_a_space_is_what_its_log_says() {
    for context in [
        json!({}),
        json!({"maxTokens": 600}),
        json!({"maxTokens": 900, "keep": 2}),
    ] {
        let remembered = story(context.clone(), false).await;
        let read = story(context.clone(), true).await;
        assert_eq!(remembered, read, "{context}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_run_reads_what_is_new_in_its_space_and_no_more() {
    for context in [json!({}), json!({"maxTokens": 100_000})] {
        let store = Arc::new(FaultyStore::new(Arc::new(MemoryStore::new()), 0, 0));
        let world = World::with(Setup {
            store: store.clone(),
            model: ScriptedModel::new(script),
            agent: agent(context),
            ..Setup::default()
        })
        .await;
        let (mut space, mut read) = (None, Vec::new());
        for _ in 0..40 {
            let before = store.space_entries_read();
            space = Some(tell(&world, space, ("default", "hello")).await);
            read.push(store.space_entries_read() - before);
        }
        assert!(read[39] > 0, "the last run is read: {read:?}");
        assert!(read[2..].iter().all(|each| *each <= read[2]), "{read:?}");
    }
}
