//! What vendors cache of a prompt: the part with which the next request begins, too.

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use toolgate_engine::model::Ask;
use toolgate_kernel::agent::Provider;
use toolgate_kernel::json::Json;
use toolgate_kernel::prompt::{Said, Turn};

use crate::asking::{ask, call, error, reasoning, result, tool, user};
use crate::requests::sent;

/// A cache mark of Anthropic's. It moves along with the conversation and is no part of what is cached.
const MARK: &str = r#","cache_control":{"type":"ephemeral"}"#;

/// The conversation as it stands at each step of one run: calls, results, words that were spoken into it.
fn steps(tag: &str) -> Vec<Vec<Turn>> {
    let signed = |text: &str| format!("{tag}:{text}");
    let begun = [
        user("earlier"),
        Turn::Assistant(vec![Said::Text("answer".into())]),
    ];
    let added = [
        vec![user("Look at [these]}.")],
        vec![
            Turn::Assistant(vec![
                reasoning("Let me look.", Some(&signed("reasoning_content"))),
                Said::Text("I look.".into()),
                call(1, "look", json!({"at": "cat"}), Some(&signed(r#"{"k":"v"}"#))),
                call(2, "look", json!("{not json"), None),
            ]),
            Turn::Results(vec![
                result(1, "look", json!({"is": ["cat"]})),
                error(2, "look", "Error: Parameter at must be a string."),
            ]),
        ],
        vec![
            Turn::Assistant(vec![call(3, "echo", json!({}), None)]),
            Turn::Results(vec![result(3, "echo", json!("words"))]),
            user("Be quick."),
        ],
        vec![
            Turn::Assistant(vec![
                Said::Text("Quickly.".into()),
                call(4, "echo", json!({}), None),
            ]),
            Turn::Results(vec![result(4, "echo", json!([]))]),
        ],
    ];
    let mut turns = begun.to_vec();
    let each = added.into_iter().map(|more| {
        turns.extend(more);
        turns.clone()
    });
    each.collect()
}

/// How a vendor's adapter is asked, and the tag of its signatures; none for one that sends no request.
fn vendor(provider: Provider) -> Option<(&'static str, &'static str)> {
    match provider {
        Provider::Openai => Some(("gpt-5.2", "openai")),
        Provider::Anthropic => Some(("claude-opus-5-5", "anthropic")),
        Provider::Google => Some(("gemini-3.5-flash", "google")),
        Provider::Demo => None,
    }
}

async fn bodies(provider: Provider, adjust: impl Fn(&mut Ask)) -> Vec<String> {
    let Some((name, tag)) = vendor(provider) else {
        return Vec::new();
    };
    let mut bodies = Vec::new();
    for turns in steps(tag) {
        let mut ask = ask(provider, name, "", turns);
        ask.instructions = "Be brief.".into();
        ask.today = "Today is Monday, 16 November 2026.".into();
        ask.tools = ["look", "echo"]
            .map(|name| tool(name, Json::from(json!({"type": "object"}))))
            .into();
        ask.model.max_output_tokens = Some(1000);
        adjust(&mut ask);
        bodies.push(sent(ask).await.1);
    }
    bodies
}

/// Where the conversation of a body ends: behind the last thing that was said, before the brackets around it.
fn conversation_end(body: &str) -> usize {
    #[derive(Deserialize)]
    struct Body<'a> {
        #[serde(borrow, alias = "contents")]
        messages: &'a RawValue,
    }
    let messages = serde_json::from_str::<Body<'_>>(body).unwrap().messages.get();
    let start = messages.as_ptr() as usize - body.as_ptr() as usize;
    start + messages.trim_end_matches([']', '}']).len()
}

#[tokio::test]
async fn the_request_of_a_step_begins_with_the_bytes_of_the_step_before() {
    for (word, provider) in Provider::ALL {
        let bodies = bodies(*provider, |_| {}).await;
        let unmarked: Vec<String> = bodies.iter().map(|body| body.replace(MARK, "")).collect();
        for pair in unmarked.windows(2) {
            let said = &pair[0][..conversation_end(&pair[0])];
            assert!(said.len() > 300, "{word}: {said}");
            assert!(pair[1].starts_with(said), "{word}:\n{}\n{}", pair[0], pair[1]);
        }
    }
}

/// An older model refuses to think where its calls followed no thought: the option changes with the step.
#[tokio::test]
async fn the_prefix_holds_where_an_option_changes_between_steps() {
    let bodies = bodies(Provider::Anthropic, |ask| {
        ask.model.name.name = "claude-haiku-4-5".into();
        ask.model.reasoning_tokens = Some(2000);
    });
    let bodies: Vec<String> = bodies.await.iter().map(|body| body.replace(MARK, "")).collect();
    let thinks = |body: &String| body.contains(r#""thinking":{"#);
    assert!(thinks(&bodies[1]) && !thinks(&bodies[3]));
    for pair in bodies.windows(2) {
        assert!(pair[1].starts_with(&pair[0][..conversation_end(&pair[0])]));
    }
}

/// Pointers of everything in a request that carries a mark.
fn marks(value: &Value, at: &str, found: &mut Vec<String>) {
    let members: Vec<(String, &Value)> = match value {
        Value::Object(members) => members
            .iter()
            .map(|(name, value)| (name.clone(), value))
            .collect(),
        Value::Array(items) => items
            .iter()
            .enumerate()
            .map(|(i, v)| (i.to_string(), v))
            .collect(),
        _ => Vec::new(),
    };
    for (name, value) in members {
        match name.as_str() {
            "cache_control" => found.push(at.to_owned()),
            _ => marks(value, &format!("{at}/{name}"), found),
        }
    }
}

#[tokio::test]
async fn anthropic_is_told_what_to_cache_with_at_most_four_marks() {
    for (instructions, shared) in [("Be brief.", "/system/0"), ("", "/tools/1")] {
        let bodies = bodies(Provider::Anthropic, |ask| ask.instructions = instructions.into()).await;
        let placed = bodies.iter().map(|body| {
            let (body, mut found) = (serde_json::from_str(body).unwrap(), Vec::new());
            marks(&body, "", &mut found);
            found.sort();
            found
        });
        let placed: Vec<Vec<String>> = placed.collect();
        let place = |message: &str| format!("/messages/{message}");
        let mut steps = vec![
            [place("0/content/0"), place("2/content/0"), shared.to_owned()],
            [place("2/content/0"), place("4/content/1"), shared.to_owned()],
            [place("4/content/1"), place("6/content/1"), shared.to_owned()],
            [place("6/content/1"), place("8/content/0"), shared.to_owned()],
        ];
        steps.iter_mut().for_each(|marks| marks.sort());
        assert_eq!(placed, steps, "each step has the last mark of the one before");
    }
}
