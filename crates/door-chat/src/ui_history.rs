//! A chat's log as the messages that a client begins with. The answer that is under way is left to its stream.

use std::collections::HashMap;

use serde::Serialize;
use serde_json::{Value, json};
use toolgate_access::Principal;
use toolgate_engine::store::LogRange;
use toolgate_http::Shared;
use toolgate_http::answer::{Answer as Answered, ok};
use toolgate_http::problem::Refusal;
use toolgate_kernel::call::{Call, CallState, ErrorCode, Outcome};
use toolgate_kernel::event::{Entry, Event};
use toolgate_kernel::history::{Earlier, EarlierPart};
use toolgate_kernel::id::{CallId, RunId};
use toolgate_kernel::message::{Message, Part};
use toolgate_kernel::name::AgentName;
use toolgate_kernel::run::{RunState, Verdict};
use toolgate_kernel::tool::Decider;
use toolgate_kernel::view::view;
use utoipa::ToSchema;

use crate::chat::{last_run, space_of};
use crate::ui_event::{ERROR_WITHHELD, UiEvent, answer_id, is_ours};

/// Newest entries of a chat that its messages are made of.
const PAST_ENTRIES_MAX: usize = 20_000;
/// Bytes of them; the entry that goes beyond is still told.
const PAST_BYTES_MAX: usize = 4 << 20;

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
    /// `user`, `assistant`, or `system` for a message that no user wrote.
    pub role: &'static str,
    /// `{origin}` of a message that a plan posted; `{told: true}` of one that a client told when the chat was new.
    #[schema(value_type = Option<Object>)]
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<Value>,
    /// Parts of the message.
    #[schema(value_type = Vec<Object>)]
    pub parts: Vec<Value>,
}

/// What was said in a chat.
pub(crate) async fn read_history(
    door: &Shared,
    who: Principal,
    agent: AgentName,
    chat: String,
) -> Result<Answered<ChatPast>, Refusal> {
    let space = space_of(door, &who, &chat).await?;
    let last = last_run(door, &who, space, &agent).await?;
    let open = last.filter(|run| !run.status.is_final()).map(|run| run.id);
    let newest = LogRange {
        limit: PAST_ENTRIES_MAX,
        bytes: PAST_BYTES_MAX,
        ..LogRange::newest()
    };
    let mut log = door.engine.space_log(space, newest).await?.entries;
    log.reverse();
    let reader = door.access.decider(&who, space).await?;
    let messages = messages(&log, &reader, open);
    Ok(ok(ChatPast { id: chat, messages }))
}

/// The messages that these entries hold. `open` is the run whose answer is under way.
pub(crate) fn messages(log: &[Entry], reader: &Decider, open: Option<RunId>) -> Vec<PastMessage> {
    let mut history = History::default();
    for entry in log {
        for (seq, event) in entry.placed() {
            let Some(seen) = view(event, reader) else {
                continue;
            };
            if let Some(run) = entry.run {
                let run = history.runs.entry(run).or_default();
                run.state.apply(&seen, seq, entry.time);
            }
            history.add(entry.run, &seen);
        }
    }
    history.into_messages(open)
}

/// Messages in the making. A call becomes a part at the end, when it is known what became of it.
#[derive(Default)]
struct History {
    drafts: Vec<Draft>,
    runs: HashMap<RunId, RunDraft>,
}

struct Draft {
    id: String,
    role: &'static str,
    metadata: Option<Value>,
    run: Option<RunId>,
    pieces: Vec<Piece>,
}

enum Piece {
    Part(Value),
    Call(CallId),
}

#[derive(Default)]
struct RunDraft {
    state: RunState,
    /// The run's newest answer, by its index.
    newest: Option<usize>,
    /// The answer in which its step began.
    step: Option<usize>,
}

impl History {
    fn add(&mut self, run: Option<RunId>, event: &Event) {
        match UiEvent::of(event) {
            UiEvent::Message(message) => self.add_message(run, message),
            UiEvent::Told(turns) => self.add_told(turns),
            UiEvent::StepStart => {
                let newest = self.run(run).and_then(|run| {
                    run.step = run.newest.or(run.step);
                    run.newest
                });
                self.push(newest, Piece::Part(json!({"type": "step-start"})));
            }
            // Text goes with the answer in which its step began, a call with the newest, as in the stream.
            UiEvent::PartEnd(kind, _, text) => {
                let part = json!({"type": kind.as_str(), "text": text, "state": "done"});
                let began = self.run(run).and_then(|run| run.step.or(run.newest));
                self.push(began, Piece::Part(part));
            }
            UiEvent::Input(input) => {
                let newest = self.run(run).and_then(|run| run.newest);
                self.push(newest, Piece::Call(input.tool.call));
            }
            // What became of a call is told by the run's state.
            UiEvent::ApprovalRequest(_) | UiEvent::ApprovalResponse(_) | UiEvent::Settled(..) => {}
            // What was asked is no part of what was said.
            UiEvent::Question(_) | UiEvent::QuestionResponse(_) => {}
            UiEvent::StepRetry
            | UiEvent::StepFinish
            | UiEvent::PartStart(..)
            | UiEvent::PartDelta(..)
            | UiEvent::InputStart(_)
            | UiEvent::InputDelta(..)
            | UiEvent::Progress(..)
            | UiEvent::RunFinish(_)
            | UiEvent::Other => {}
        }
    }

    fn add_message(&mut self, run: Option<RunId>, message: &Message) {
        self.drafts.push(Draft {
            id: message.message_id.to_string(),
            role: if message.origin.is_some() {
                "system"
            } else {
                "user"
            },
            metadata: message.origin.as_ref().map(|origin| json!({ "origin": origin })),
            run: None,
            pieces: message
                .parts
                .iter()
                .map(|part| Piece::Part(user_part(part)))
                .collect(),
        });
        if let Some(draft) = run.and_then(|run| self.runs.get_mut(&run)) {
            draft.newest = Some(self.drafts.len());
            self.drafts.push(Draft {
                id: answer_id(message.message_id),
                role: "assistant",
                metadata: None,
                run,
                pieces: Vec::new(),
            });
        }
    }

    /// What a client told before the chat began, as its own messages. Nothing of it was checked, so a call shows no more
    /// than what was told of it.
    fn add_told(&mut self, turns: &[Earlier]) {
        for (number, turn) in turns.iter().enumerate() {
            let (role, pieces): (_, Vec<Value>) = match turn {
                Earlier::User(parts) => ("user", parts.iter().map(user_part).collect()),
                Earlier::Assistant(parts) => {
                    let part = |(at, part): (usize, &EarlierPart)| told_part(part, number, at);
                    ("assistant", parts.iter().enumerate().map(part).collect())
                }
            };
            self.drafts.push(Draft {
                id: format!("told_{number}"),
                role,
                metadata: Some(json!({"told": true})),
                run: None,
                pieces: pieces.into_iter().map(Piece::Part).collect(),
            });
        }
    }

    fn run(&mut self, run: Option<RunId>) -> Option<&mut RunDraft> {
        self.runs.get_mut(&run?)
    }

    fn push(&mut self, answer: Option<usize>, piece: Piece) {
        if let Some(answer) = answer {
            self.drafts[answer].pieces.push(piece);
        }
    }

    fn into_messages(self, open: Option<RunId>) -> Vec<PastMessage> {
        let Self { drafts, runs } = self;
        let under_way = open.and_then(|open| runs.get(&open)?.newest);
        let told = drafts
            .into_iter()
            .enumerate()
            .filter(|(index, draft)| Some(*index) != under_way && !draft.pieces.is_empty());
        told.map(|(_, draft)| {
            let state = draft.run.and_then(|run| runs.get(&run)).map(|run| &run.state);
            let parts = draft.pieces.into_iter().filter_map(|piece| match piece {
                Piece::Part(part) => Some(part),
                Piece::Call(call) => state.and_then(|state| Some(call_part(state.call(call)?, state))),
            });
            PastMessage {
                id: draft.id,
                role: draft.role,
                metadata: draft.metadata,
                parts: parts.collect(),
            }
        })
        .collect()
    }
}

fn user_part(part: &Part) -> Value {
    match part {
        Part::Text { text } => json!({"type": "text", "text": text}),
        Part::Image { url, media_type } => {
            let media = media_type.as_deref().unwrap_or("image/*");
            json!({"type": "file", "url": url, "mediaType": media})
        }
    }
}

/// A part of an answer that a client told.
fn told_part(part: &EarlierPart, message: usize, at: usize) -> Value {
    match part {
        EarlierPart::Text(text) => json!({"type": "text", "text": text, "state": "done"}),
        EarlierPart::Call {
            name,
            input,
            output,
            failed,
        } => {
            let mut part = json!({
                "type": format!("tool-{name}"),
                "toolCallId": format!("told_{message}_{at}"),
                "state": if *failed { "output-error" } else { "output-available" },
                "input": input.to_value(),
                "providerExecuted": true,
            });
            match failed {
                true => part["errorText"] = output.as_str().into(),
                false => part["output"] = output.to_value(),
            }
            part
        }
    }
}

/// A call as it stands.
fn call_part(call: &Call, run: &RunState) -> Value {
    let decision = run.decision(call.tool.call.approval());
    let mut part = json!({
        "type": format!("tool-{}", call.tool.executor_name()),
        "toolCallId": call.tool.call,
        "state": "input-available",
        "input": call.shown_input().map_or(json!({}), |input| input.to_value()),
    });
    if is_ours(&call.tool) {
        part["providerExecuted"] = true.into();
    }
    if call.asked.is_some() {
        part["approval"] = match decision {
            Some(decision) => json!({
                "id": decision.approval,
                "approved": matches!(decision.verdict, Verdict::Approve(_)),
            }),
            None => json!({"id": call.tool.call.approval()}),
        };
    }
    let was_denied = decision.is_some_and(|decision| matches!(decision.verdict, Verdict::Deny(_)));
    let state = match &call.state {
        CallState::AwaitsApproval { .. } => "approval-requested",
        CallState::Settled(settled) => match &settled.outcome {
            Outcome::Output(output) => {
                part["output"] = output.to_value();
                "output-available"
            }
            Outcome::Error {
                code: ErrorCode::Denied,
                ..
            } if was_denied => "output-denied",
            Outcome::Error { message, .. } => {
                let words = if call.is_redacted() {
                    ERROR_WITHHELD
                } else {
                    message
                };
                part["errorText"] = words.into();
                "output-error"
            }
        },
        CallState::Ready
        | CallState::Executing
        | CallState::Delegated { .. }
        | CallState::Paused(_)
        | CallState::Open { .. } => match decision {
            Some(_) => "approval-responded",
            None => "input-available",
        },
    };
    part["state"] = state.into();
    part
}
