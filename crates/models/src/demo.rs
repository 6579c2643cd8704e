//! The built-in demo model, for trying out without an API key: it follows rules, labels every answer as a
//! demo, and calls the tools that the message names.

use async_trait::async_trait;
use serde_json::Value;
use toolgate_engine::model::{Ask, Delta, Ending, ModelError, ReplySink};
use toolgate_kernel::event::{FinishReason, Usage};
use toolgate_kernel::message::Part;
use toolgate_kernel::prompt::{CallResult, OfferedTool, ToolChoice, Turn};

use crate::adapter::Adapter;
use crate::http::Client;

mod a2a_conformance;
mod input;

/// Prefix of every answer.
const LABEL: &str = "[demo model]";
/// Most characters that an answer quotes of a message or an output.
const QUOTED_CHARS_MAX: usize = 500;

/// The adapter of the demo.
pub(crate) struct Demo;

#[async_trait]
impl Adapter for Demo {
    async fn reply(&self, _: &Client, ask: &Ask, sink: &mut dyn ReplySink) -> Result<Ending, ModelError> {
        Ok(reply(ask, sink).await)
    }
}

/// Replies to the last turn with text, or with text and calls. Deterministic: the same conversation gets the
/// same reply.
async fn reply(ask: &Ask, sink: &mut dyn ReplySink) -> Ending {
    let asked = last_user_text(ask);
    if ask.model.name.name == a2a_conformance::MODEL {
        return a2a_conformance::reply(ask, &asked, sink).await;
    }
    let calls = match ask.turns.last().map(|turn| &**turn) {
        Some(Turn::Results(_)) => Vec::new(),
        _ => requested_tools(ask, &asked),
    };
    let words = match ask.turns.last().map(|turn| &**turn) {
        Some(Turn::Results(results)) => describe_results(results),
        _ if calls.is_empty() => answer_text(ask, &asked),
        _ => format!(
            "{LABEL} I call {}.",
            list(calls.iter().map(|call| call.name.as_str()))
        ),
    };
    let mut output_tokens = calls.len() as u64;
    for word in words.split_inclusive(' ') {
        sink.delta(Delta::Text(word));
        sink.flush();
        output_tokens += 1;
        // Lets other tasks run between two tokens, as a real model does.
        tokio::task::yield_now().await;
    }
    for (slot, call) in (0..).zip(&calls) {
        let name = call.name.as_str();
        sink.delta(Delta::CallStart { slot, name });
        let text = &input::make(&call.parameters.to_value(), &asked, name).to_string();
        sink.delta(Delta::CallInput { slot, text });
        sink.flush();
    }
    Ending {
        reason: if calls.is_empty() {
            FinishReason::Stop
        } else {
            FinishReason::ToolCalls
        },
        usage: Usage {
            input_tokens: asked.split_whitespace().count() as u64,
            output_tokens,
            ..Usage::default()
        },
    }
}

/// The text of the last user message.
fn last_user_text(ask: &Ask) -> String {
    let said = ask.turns.iter().rev().find_map(|turn| match &**turn {
        Turn::User(parts) => Some(parts),
        Turn::Assistant(_) | Turn::Results(_) => None,
    });
    let texts = said.into_iter().flatten().filter_map(|part| match part {
        Part::Text { text } => Some(text.as_str()),
        Part::Image { .. } => None,
    });
    texts.collect::<Vec<_>>().join(" ")
}

/// The tools that the user's message names, in the order of the message.
fn requested_tools<'a>(ask: &'a Ask, asked: &str) -> Vec<&'a OfferedTool> {
    let tools = ask.tools.iter();
    match &ask.tool_choice {
        ToolChoice::None => Vec::new(),
        ToolChoice::Tool(name) => tools.filter(|tool| tool.name == *name).collect(),
        ToolChoice::Auto | ToolChoice::Required => {
            let asked = normalize_words(asked);
            let mut named: Vec<_> = tools
                .filter_map(|tool| {
                    let name = normalize_words(tool.name.as_str());
                    let at = asked.find(&name)?;
                    Some((at, at + name.len(), tool))
                })
                .collect();
            // "ask user" means `ask_user` and not `ask`: of overlapping names the longest wins.
            let whole = named.clone();
            named.retain(|(from, to, _)| {
                !whole
                    .iter()
                    .any(|(start, end, _)| start <= from && to <= end && end - start > to - from)
            });
            named.sort_by_key(|(at, ..)| *at);
            if named.is_empty() && ask.tool_choice == ToolChoice::Required {
                return ask.tools.first().into_iter().collect();
            }
            named.into_iter().map(|(.., tool)| tool).collect()
        }
    }
}

/// The text as lower-case words between spaces: `askUser`, `ask_user` and `Ask user!` all become
/// ` ask user `.
fn normalize_words(text: &str) -> String {
    let mut words = String::from(" ");
    let mut before = ' ';
    for c in text.chars() {
        let begins = before.is_lowercase() && c.is_uppercase();
        if (begins || !c.is_alphanumeric()) && !words.ends_with(' ') {
            words.push(' ');
        }
        if c.is_alphanumeric() {
            words.extend(c.to_lowercase());
        }
        before = c;
    }
    if !words.ends_with(' ') {
        words.push(' ');
    }
    words
}

fn answer_text(ask: &Ask, asked: &str) -> String {
    const GREETINGS: [&str; 6] = ["hello", "hi", "hey", "help", "what can you do", "start"];
    let tools = match &*ask.tools {
        [] => "This agent has no tools.".into(),
        tools => format!(
            "Name one of its tools and I call it: {}.",
            list(tools.iter().map(|tool| tool.name.as_str()))
        ),
    };
    let heard = normalize_words(asked);
    if asked.trim().is_empty()
        || GREETINGS
            .iter()
            .any(|greeting| heard.starts_with(&format!(" {greeting} ")))
    {
        return format!(
            "{LABEL} Hello! I follow simple rules so that you can try this agent without a key for a real \
             model. {tools} Put quotes around a text and I pass it on as it is. For real answers give the agent \
             a model of openai, anthropic or google."
        );
    }
    format!(
        "{LABEL} You said: {}. I only follow rules and cannot answer that. {tools}",
        quote(asked.trim())
    )
}

/// One sentence per call: its output or its error.
fn describe_results(results: &[CallResult]) -> String {
    let sentences = results.iter().map(|result| {
        if !result.is_error {
            return format!("{} gave {}.", result.name, quote(result.output.as_str()));
        }
        let output = result.output.to_value();
        let words = output.as_str().unwrap_or(result.output.as_str());
        format!("{} gave no output. {}", result.name, quote(words))
    });
    format!("{LABEL} {}", sentences.collect::<Vec<_>>().join(" "))
}

fn list<'a>(names: impl Iterator<Item = &'a str>) -> String {
    names.collect::<Vec<_>>().join(", ")
}

fn quote(text: &str) -> String {
    match text.char_indices().nth(QUOTED_CHARS_MAX) {
        Some((cut, _)) => format!("{}…", &text[..cut]),
        None => text.to_owned(),
    }
}

/// Names of the members that the schema requires.
fn required(schema: &Value) -> impl Iterator<Item = &str> {
    schema["required"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
}
