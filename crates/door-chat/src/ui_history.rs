//! A chat's log as the messages that a client begins with. The answer that is under way is left to its stream.

use std::collections::HashMap;

use serde::Serialize;
use serde_json::{Map, Value, json};
use toolgate_kernel::event::{Entry, Event, ToolRef};
use toolgate_kernel::id::{CallId, RunId};
use toolgate_kernel::message::Part;
use toolgate_kernel::tool::Placement;
use toolgate_kernel::view::{Audience, view};
use utoipa::ToSchema;

use crate::ui_stream::answer_id;

/// A chat as it stands.
#[derive(Serialize, ToSchema)]
pub(crate) struct ChatPast {
    /// The chat's id, as it was given.
    pub id: String,
    /// What was said, oldest first, without the answer that is under way.
    pub messages: Vec<PastMessage>,
}

/// A message as the AI SDK keeps it.
#[derive(Serialize, ToSchema)]
pub(crate) struct PastMessage {
    id: String,
    /// `user` or `assistant`.
    role: &'static str,
    /// The pieces.
    #[schema(value_type = Vec<Object>)]
    parts: Vec<Value>,
    #[serde(skip)]
    run: Option<RunId>,
}

/// The messages that these entries tell. `open` is the run whose answer is under way.
pub(crate) fn messages(log: &[Entry], audience: Audience, open: Option<RunId>) -> Vec<PastMessage> {
    let mut past = Past::default();
    for entry in log {
        for event in &entry.events {
            if let Some(seen) = view(event, audience) {
                past.apply(entry.run, &seen);
            }
        }
    }
    if let Some(open) = open {
        let last = past.newest(Some(open));
        last.map(|last| past.messages.remove(last));
    }
    past.messages.retain(|message| !message.parts.is_empty());
    past.messages
}

#[derive(Default)]
struct Past {
    messages: Vec<PastMessage>,
    /// The answer in which a run's step began.
    steps: HashMap<RunId, usize>,
}

impl Past {
    fn apply(&mut self, run: Option<RunId>, event: &Event) {
        match event {
            Event::Said(e) => {
                self.messages.push(PastMessage {
                    id: e.message.message_id.to_string(),
                    role: "user",
                    parts: e.message.parts.iter().map(piece).collect(),
                    run: None,
                });
                self.messages.extend(run.map(|run| PastMessage {
                    id: answer_id(e.message.message_id),
                    role: "assistant",
                    parts: Vec::new(),
                    run: Some(run),
                }));
            }
            Event::StepStart(_) => {
                if let (Some(run), Some(newest)) = (run, self.newest(run)) {
                    self.steps.insert(run, newest);
                }
                self.add(run, json!({"type": "step-start"}));
            }
            Event::TextEnd(e) => self.say(run, json!({"type": "text", "text": e.text, "state": "done"})),
            Event::ReasoningEnd(e) => {
                self.say(run, json!({"type": "reasoning", "text": e.text, "state": "done"}));
            }
            Event::ToolInputAvailable(e) => {
                let input = e.input.as_ref().map_or(json!({}), |input| input.to_value());
                let mut part = json!({
                    "type": format!("tool-{}", e.tool_name), "toolCallId": e.tool_call_id,
                    "state": "input-available", "input": input,
                });
                if e.placement != Placement::Client {
                    part["providerExecuted"] = true.into();
                }
                self.add(run, part);
            }
            Event::ToolApprovalRequest(e) => self.change(&e.tool(), |part| {
                part.insert("state".into(), "approval-requested".into());
                part.insert("approval".into(), json!({"id": e.approval_id}));
            }),
            Event::ToolApprovalResponse(e) => self.change(&e.tool(), |part| {
                part.insert("state".into(), "approval-responded".into());
                let approval = json!({"id": e.approval_id, "approved": e.approved});
                part.insert("approval".into(), approval);
                if let Some(input) = &e.input {
                    part.insert("input".into(), input.to_value());
                }
            }),
            Event::ToolOutputAvailable(e) => self.change(&e.tool(), |part| {
                part.insert("state".into(), "output-available".into());
                let output = e.output.as_ref().map_or(Value::Null, |output| output.to_value());
                part.insert("output".into(), output);
            }),
            Event::ToolOutputError(e) => self.change(&e.tool(), |part| {
                let words = e.error_text.as_deref().unwrap_or("the tool failed");
                part.insert("state".into(), "output-error".into());
                part.insert("errorText".into(), words.into());
            }),
            Event::ToolOutputDenied(e) => self.change(&e.tool(), |part| {
                part.insert("state".into(), "output-denied".into());
            }),
            Event::RunStart(_)
            | Event::StepRetry(_)
            | Event::TextStart(_)
            | Event::TextDelta(_)
            | Event::ReasoningStart(_)
            | Event::ReasoningDelta(_)
            | Event::ToolInputStart(_)
            | Event::ToolInputDelta(_)
            | Event::ToolExecuting(_)
            | Event::ToolReleased(_)
            | Event::ToolProgress(_)
            | Event::StepFinish(_)
            | Event::RunStatus(_)
            | Event::RunFinish(_)
            | Event::Notification(_)
            | Event::Opaque(_) => {}
        }
    }

    /// The run's newest answer.
    fn newest(&self, run: Option<RunId>) -> Option<usize> {
        let is_of_run = |message: &PastMessage| message.run.is_some() && message.run == run;
        self.messages.iter().rposition(is_of_run)
    }

    /// One more piece of the run's newest answer.
    fn add(&mut self, run: Option<RunId>, part: Value) {
        if let Some(answer) = self.newest(run) {
            self.messages[answer].parts.push(part);
        }
    }

    /// One more piece of the answer in which the step began.
    fn say(&mut self, run: Option<RunId>, part: Value) {
        let began = run.and_then(|run| self.steps.get(&run)).copied();
        if let Some(answer) = began.or_else(|| self.newest(run)) {
            self.messages[answer].parts.push(part);
        }
    }

    /// Something became of a call, in whichever answer it stands.
    fn change(&mut self, tool: &ToolRef, change: impl FnOnce(&mut Map<String, Value>)) {
        let mut parts = self
            .messages
            .iter_mut()
            .rev()
            .flat_map(|message| message.parts.iter_mut().rev());
        let part = parts.find(|part| is_of(part, tool.call));
        if let Some(part) = part.and_then(Value::as_object_mut) {
            change(part);
        }
    }
}

fn is_of(part: &Value, call: CallId) -> bool {
    part["toolCallId"].as_str().and_then(|id| id.parse().ok()) == Some(call)
}

fn piece(part: &Part) -> Value {
    match part {
        Part::Text { text } => json!({"type": "text", "text": text}),
        Part::Image { url, media_type } => {
            let media = media_type.as_deref().unwrap_or("image/*");
            json!({"type": "file", "url": url, "mediaType": media})
        }
    }
}
