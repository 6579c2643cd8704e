//! What a run that waits asks of its client: calls to execute, approvals to give, questions to answer, each a tagged part
//! of the status message.

use serde_json::{Value, json};
use toolgate_a2a::client_tools::{AG2_CALL, ToolCall, URI};
use toolgate_a2a::message::{Message, Role};
use toolgate_a2a::part::{Content, Part};
use toolgate_a2a::task::Artifact;
use toolgate_kernel::call::{Call, CallState};
use toolgate_kernel::event::ToolQuestion;
use toolgate_kernel::id::EntityId;
use toolgate_kernel::json::Json;
use toolgate_kernel::run::RunState;
use toolgate_kernel::tool::Decider;

use crate::message::Form;

/// One thing that a run waits for.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Asked {
    /// The client is to execute this call.
    Call(ToolCall),
    /// A person is to say whether the call may run.
    Approval { words: String, part: Part },
    /// A tool asks something.
    Question { words: String, part: Part },
    /// Somebody else is asked.
    Others(String),
}

/// Everything that a run, or a run below it, waits for a person or a client for, as `reader` may know it. `name` gives
/// the name that the client knows a tool by.
pub(crate) fn asked(state: &RunState, reader: &Decider, name: impl Fn(&str) -> String) -> Vec<Asked> {
    let below = state.pending_below().map(|(_, call)| call);
    let calls = state.pending().chain(below);
    calls
        .flat_map(|call| of_call(call, reader, &name(&call.tool.name)))
        .collect()
}

fn of_call(call: &Call, reader: &Decider, name: &str) -> Vec<Asked> {
    match &call.state {
        CallState::Open { deadline, .. } => {
            let is_mine = call.tool.is_offered_to(entity(reader));
            let asked = match call.input.as_ref().filter(|_| is_mine) {
                Some(input) => Asked::Call(ToolCall {
                    call_id: call.tool.call.to_string(),
                    name: name.to_owned(),
                    arguments: input.to_value(),
                    expires_at: (deadline.0 > 0).then(|| deadline.to_string()),
                }),
                None => Asked::Others(format!("Waiting for another client to run {name}.")),
            };
            vec![asked]
        }
        CallState::AwaitsApproval { .. } => vec![approval(call, reader, name)],
        // A member is not told that somebody else carries the call on, only what is asked.
        CallState::Delegated { .. } | CallState::Ready | CallState::Executing => {
            let open = call.questions.open();
            open.map(|question| of_question(question, name)).collect()
        }
        CallState::Paused(_) | CallState::Settled(_) => Vec::new(),
    }
}

fn approval(call: &Call, reader: &Decider, name: &str) -> Asked {
    let terms = call.approval_terms();
    let Some(asked) = call.asked.as_ref().filter(|_| terms.admit(reader)) else {
        return Asked::Others(format!("Waiting for somebody to approve {name}."));
    };
    let input = call.shown_input().map(Json::to_value);
    let tag = json!({"toolApproval": {
        "approvalId": asked.approval_id,
        "callId": call.tool.call,
        "name": name,
        "argumentsJson": input.as_ref().map(Value::to_string),
        "editable": terms.may_edit(reader, call.is_seen_by_members()),
        "expiresAt": asked.expires_at,
        "answer": {"toolApprovalResponse": {"approvalId": asked.approval_id, "approved": true}},
    }});
    Asked::Approval {
        words: format!("May the tool {name} run?"),
        part: Part::data(input.unwrap_or_else(|| json!({}))).tagged(URI, tag),
    }
}

fn of_question(question: &ToolQuestion, name: &str) -> Asked {
    let id = question.question_id;
    let schema = question.schema.as_ref().map(Json::to_value);
    let data = match (&schema, &question.url) {
        (_, Some(url)) => json!({ "url": url }),
        (Some(schema), None) => schema.clone(),
        (None, None) => json!({}),
    };
    let tag = json!({"toolQuestion": {
        "questionId": id,
        "callId": question.tool_call_id,
        "name": name,
        "message": question.message,
        "schemaJson": schema.map(|schema| schema.to_string()),
        "url": question.url,
        "expiresAt": question.expires_at,
        "answer": {"toolQuestionResponse": {"questionId": id, "action": "accept"}},
    }});
    Asked::Question {
        words: question.message.clone(),
        part: Part::data(data).tagged(URI, tag),
    }
}

/// The message of a status that asks; none when a client of AG2's has it all in artifacts.
pub(crate) fn message(id: String, asked: &[Asked], form: Form) -> Option<Message> {
    let is_call = |asked: &Asked| matches!(asked, Asked::Call(_));
    if form == Form::Ag2 && asked.iter().all(is_call) {
        return None;
    }
    let names: Vec<&str> = asked.iter().filter_map(call_name).collect();
    let mut words = Vec::new();
    if !names.is_empty() {
        words.push(format!("Waiting for the client to run {}.", names.join(", ")));
    }
    let others = asked.iter().filter_map(|asked| match asked {
        Asked::Call(_) => None,
        Asked::Approval { words, .. } | Asked::Question { words, .. } | Asked::Others(words) => Some(words),
    });
    words.extend(others.cloned());
    let parts = asked.iter().filter_map(|asked| match asked {
        Asked::Call(call) => Some(call.to_part()),
        Asked::Approval { part, .. } | Asked::Question { part, .. } => Some(part.clone()),
        Asked::Others(_) => None,
    });
    let parts: Vec<Part> = std::iter::once(Part::text(words.join(" ")))
        .chain(parts)
        .collect();
    let extensions = (parts.len() > 1).then(|| URI.to_owned());
    Some(Message {
        extensions: extensions.into_iter().collect(),
        ..Message::new(id, Role::Agent, parts)
    })
}

/// The artifact by which a client of AG2's is asked to execute a call.
pub(crate) fn ag2_artifact(call: &ToolCall) -> Artifact {
    let payload = json!({
        "id": call.call_id,
        "name": call.name,
        "arguments": call.arguments.to_string(),
    });
    let part = Part {
        media_type: Some(AG2_CALL.into()),
        ..Content::Data(payload).into()
    };
    Artifact {
        name: Some(call.name.clone()),
        ..Artifact::new(call.call_id.clone(), vec![part])
    }
}

/// The calls in the form of OpenAI, for clients whose tools came in `params`.
pub(crate) fn openai_calls(message: &Message) -> Vec<Value> {
    let calls = message.parts.iter().filter_map(ToolCall::of_part);
    let form = |call: ToolCall| {
        json!({
            "id": call.call_id,
            "type": "function",
            "function": {"name": call.name, "arguments": call.arguments.to_string()},
        })
    };
    calls.map(form).collect()
}

fn call_name(asked: &Asked) -> Option<&str> {
    match asked {
        Asked::Call(call) => Some(&call.name),
        Asked::Approval { .. } | Asked::Question { .. } | Asked::Others(_) => None,
    }
}

fn entity(reader: &Decider) -> Option<EntityId> {
    match reader {
        Decider::Backend => None,
        Decider::Member { entity, .. } => Some(*entity),
    }
}
