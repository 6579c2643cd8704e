//! The conformance agent: lets the test kits of A2A choose what the door does, by the id of a message or its first text.
//! It is an agent like any other, with a scripted model, so that the kits test real runs; only what no run can express is
//! done here. There is none unless the operator switches it on.

use axum::response::{IntoResponse, Response};
use http::header::CONTENT_TYPE;
use serde_json::{Value, json};
use toolgate_a2a::Dialect;
use toolgate_a2a::message::{Message, Role};
use toolgate_a2a::part::{Content, Part};
use toolgate_a2a::request::SendMessage;
use toolgate_a2a::stream::StreamResponse;
use toolgate_kernel::message::Part as StoredPart;
use toolgate_kernel::name::AgentName;

use crate::asking::{Asking, Reply};

/// Name of the agent.
pub const AGENT: &str = "a2a-conformance";
/// How the names of scenarios begin.
const SCENARIOS: [&str; 2] = ["tck-", "test-resubscribe-message-id"];
/// The scenario that is answered without a task.
const MESSAGE_RESPONSE: &str = "tck-message-response";

/// The configuration of the agent.
pub fn config() -> Value {
    json!({
        "description": "Does what the conformance kits of A2A ask for.",
        "instructions": "Follow the script.",
        "access": "public",
        "model": {"provider": "demo", "name": AGENT},
        "tools": [{
            "name": "ask",
            "description": "Asks the client, which a task waits for.",
            "parameters": {"type": "object"},
            "executionType": "basic",
            "execution": null,
            "timeout": "1h",
        }],
    })
}

/// Whether an agent is the conformance agent.
pub(crate) fn is_scripted(agent: &AgentName) -> bool {
    agent.as_str() == AGENT
}

/// The content that a run of the agent is given: the name of the scenario that a message chooses.
pub(crate) fn content(message: &Message) -> Vec<StoredPart> {
    let text = scenario(message).to_owned();
    vec![StoredPart::Text { text }]
}

/// The part that a text of the agent stands for: the text itself, unless it is a part written as JSON.
pub(crate) fn part(text: &str) -> Part {
    let written = serde_json::from_str(text).ok().filter(Value::is_object);
    let part = written.and_then(|written| Part::from_json(written, Dialect::V1).ok());
    part.unwrap_or_else(|| Part::text(text))
}

/// The answer to a message that begins no task.
pub(crate) fn direct_answer(asking: &Asking<'_>, request: &SendMessage) -> Option<StreamResponse> {
    let message = &request.message;
    let is_direct = is_scripted(&asking.agent)
        && message.task_id.is_none()
        && scenario(message).starts_with(MESSAGE_RESPONSE);
    is_direct.then(|| {
        let id = format!("answer-to-{}", message.message_id);
        let answer = Message::new(id, Role::Agent, vec![Part::text("Direct message response")]);
        StreamResponse::Message(Message {
            context_id: message.context_id.clone(),
            ..answer
        })
    })
}

/// A stream that holds one answer.
pub(crate) fn streamed(asking: &Asking<'_>, answer: &StreamResponse) -> Reply {
    let event = asking.envelope.event(answer.to_json(asking.dialect));
    let body = format!("data: {event}\n\n");
    let response: Response = ([(CONTENT_TYPE, "text/event-stream")], body).into_response();
    Reply::Stream(response)
}

fn scenario(message: &Message) -> &str {
    let is_known = |text: &&str| SCENARIOS.iter().any(|scenario| text.starts_with(scenario));
    let text = message.parts.iter().find_map(|part| match &part.content {
        Content::Text(text) => Some(text.trim()),
        _ => None,
    });
    let id = Some(message.message_id.as_str()).filter(is_known);
    id.or(text).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scenario_is_chosen_by_the_id_or_by_the_first_text() {
        let message = |id: &str, text: &str| Message::new(id, Role::User, vec![Part::text(text)]);
        let chosen = |id: &str, text: &str| scenario(&message(id, text)).to_owned();
        assert_eq!(
            chosen("tck-artifact-data-1a2b", "hello"),
            "tck-artifact-data-1a2b"
        );
        assert_eq!(chosen("0123", "tck-input-required"), "tck-input-required");
        assert_eq!(chosen("0123", "hello"), "hello");
    }

    #[test]
    fn a_text_that_is_a_part_stands_for_it() {
        assert_eq!(part("Hello."), Part::text("Hello."));
        assert_eq!(part(r#"{"data":[1]}"#).content, Content::Data(json!([1])));
        assert_eq!(part(r#"{"raw":"dGNr"}"#).content, Content::Raw(b"tck".to_vec()));
        assert_eq!(part(r#"{"no":"part"}"#), Part::text(r#"{"no":"part"}"#));
    }
}
