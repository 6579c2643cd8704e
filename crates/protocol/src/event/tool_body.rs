//! What the events of a call carry.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{Seq, Status, Usage};
use crate::call::ErrorCode;
use crate::id::{ApprovalId, CallId, EntityId, QuestionId, RunId};
use crate::json::Json;
use crate::question::Action;
use crate::time::Time;
use crate::tool::{ApprovalTerms, ConsentRef, Placement, Spoken};
use crate::view::hidden;

fn is_false(b: &bool) -> bool {
    !*b
}

/// The fields that every event of a tool carries.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolRef {
    /// Which call.
    pub call: CallId,
    /// The name the model used; may be unknown.
    pub name: Arc<str>,
    /// Where it runs.
    pub placement: Placement,
    /// The tool opted in to being seen by public principals.
    pub shown: bool,
    /// The only member of the space that may execute a client call and see what it reads and writes; none for every
    /// member. Backends always may.
    pub offered_to: Option<EntityId>,
    /// What the client that brought the tool calls it, where the run had to rename it.
    pub given_name: Option<Arc<str>>,
}

impl ToolRef {
    /// The name under which whoever executes the call knows the tool.
    pub fn executor_name(&self) -> &Arc<str> {
        self.given_name.as_ref().unwrap_or(&self.name)
    }

    /// Whether every member of the space sees what the tool reads and writes.
    pub fn is_seen_by_members(&self) -> bool {
        !hidden(self.placement, self.shown) && self.offered_to.is_none()
    }

    /// Whether a client call is offered to this member of the space; to a backend when it is none.
    pub fn is_offered_to(&self, client: Option<EntityId>) -> bool {
        client.is_none() || self.offered_to.is_none() || self.offered_to == client
    }
}

macro_rules! tool_body {
    ($(#[$doc:meta])* $name:ident { $( $(#[$fdoc:meta])* $field:ident : $ty:ty ),* $(,)? }) => {
        body! {
            $(#[$doc])*
            $name {
                /// Which call.
                tool_call_id: CallId,
                /// The name the model used.
                tool_name: Arc<str>,
                /// Where the tool runs.
                placement: Placement,
                /// The tool opted in to being seen by public principals.
                #[serde(default, skip_serializing_if = "is_false")]
                shown: bool,
                /// The only member that a client call is offered to.
                #[serde(default, skip_serializing_if = "Option::is_none")]
                offered_to: Option<EntityId>,
                /// What the client that brought the tool calls it, where the run had to rename it.
                #[serde(default, skip_serializing_if = "Option::is_none")]
                given_name: Option<Arc<str>>,
                $( $(#[$fdoc])* $field: $ty, )*
            }
        }
        impl $name {
            /// The event of `tool` with these fields.
            #[allow(clippy::too_many_arguments, reason = "one per field")]
            pub fn of(tool: &ToolRef, $( $field: $ty ),*) -> Self {
                Self {
                    tool_call_id: tool.call,
                    tool_name: tool.name.clone(),
                    placement: tool.placement,
                    shown: tool.shown,
                    offered_to: tool.offered_to,
                    given_name: tool.given_name.clone(),
                    $( $field, )*
                }
            }
            /// Which tool it speaks of.
            pub fn tool(&self) -> ToolRef {
                ToolRef {
                    call: self.tool_call_id,
                    name: self.tool_name.clone(),
                    placement: self.placement,
                    shown: self.shown,
                    offered_to: self.offered_to,
                    given_name: self.given_name.clone(),
                }
            }
        }
    };
}

tool_body! {
    /// The model began to ask for a tool.
    ToolInputStart {}
}
tool_body! {
    /// More of the input.
    ToolInputDelta {
        /// JSON text.
        input_text_delta: String,
    }
}
tool_body! {
    /// The model asks for a tool.
    ToolInputAvailable {
        /// The whole input; a JSON string when the model's text was not JSON.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        input: Option<Json>,
        /// When a client call is given up.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        deadline: Option<Time>,
        /// What the vendor wants back with the call.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        signature: Option<String>,
        /// The client that sent the message: until then a client call is offered to it alone.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reserved: Option<Claim>,
        /// The remembered yes that it runs by, where a call of the tool needs one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        consent: Option<ConsentRef>,
    }
}
tool_body! {
    /// A person has to decide.
    ToolApprovalRequest {
        /// Where to send the decision.
        approval_id: ApprovalId,
        /// Exactly what will run.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        input: Option<Json>,
        /// When silence becomes a no.
        expires_at: Time,
        /// Who may decide, and on what terms; none for a question of before there were terms.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        terms: Option<ApprovalTerms>,
        /// What is said aloud to whoever decides.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        voice: Option<Spoken>,
        /// Whether the member who reads this may decide; never stored.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        may_decide: Option<bool>,
        /// Whether the member who reads this may decide with another input; never stored.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        editable: Option<bool>,
    }
}
tool_body! {
    /// A person decided, or the question expired.
    ToolApprovalResponse {
        /// Which question.
        approval_id: ApprovalId,
        /// Yes or no.
        approved: bool,
        /// The reason that was given, if any.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
        /// The input as the person changed it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        input: Option<Json>,
        /// Who decided, where it was an entity.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<EntityId>,
        /// Nobody decided in time.
        #[serde(default, skip_serializing_if = "is_false")]
        expired: bool,
        /// When a client call, now free to run, is given up.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        deadline: Option<Time>,
        /// The client that sent the message: until then a client call, now free to run, is offered to it alone.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reserved: Option<Claim>,
        /// With a yes: SHA-256 of the input that runs, in hex, over its JSON with sorted members.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        input_hash: Option<String>,
        /// The yes stands for later calls too, until it is revoked.
        #[serde(default, skip_serializing_if = "is_false")]
        remembered: bool,
    }
}
tool_body! {
    /// The tool asks people something in the middle of the call, which goes on when they have answered.
    ToolQuestion {
        /// Where to send the answer.
        question_id: QuestionId,
        /// The source's own name for the question; for secret principals only.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        key: Option<String>,
        /// What is asked, in words.
        message: String,
        /// JSON Schema of the answer's content, when a form is to be filled in.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        schema: Option<Json>,
        /// The page to visit instead.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        url: Option<String>,
        /// When silence becomes a cancel.
        expires_at: Time,
    }
}
tool_body! {
    /// Somebody answered a question, or nobody did in time.
    ToolQuestionResponse {
        /// Which question.
        question_id: QuestionId,
        /// What was done with it.
        action: Action,
        /// What was filled in; for secret principals and for whoever answered.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        content: Option<Json>,
        /// Who answered, where it was an entity.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<EntityId>,
        /// Nobody answered in time.
        #[serde(default, skip_serializing_if = "is_false")]
        expired: bool,
    }
}
tool_body! {
    /// Whoever runs the call had the run's own model asked (sampling of MCP). What was asked and what the model wrote is
    /// between the two.
    ToolSampling {
        /// Which one of the call, counted from 1.
        number: u32,
        /// What it cost.
        usage: Usage,
    }
}
/// Who executes a client call, and until when without another word.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Claim {
    /// A name the client chose for itself: a tab, a process.
    pub holder: String,
    /// When the call is offered again.
    pub until: Time,
    /// The principal that the claim belongs to; absent for a backend. A holder's name is shown to whoever claims in
    /// vain, so it proves nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<EntityId>,
}
/// What a durable pause waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Pause {
    /// When it ends whatever happens.
    pub until: Time,
    /// A signal from outside ends it; that none comes is an error.
    #[serde(default, skip_serializing_if = "is_false")]
    pub signal: bool,
}
/// Where a child run stands, as its parent has seen it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ChildStatus {
    /// Status of the child run.
    pub status: Status,
    /// Place of the child's last event then: another one may be another question.
    pub seq: Seq,
}
/// Work on a call that a tool source has under way elsewhere.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RemoteTask {
    /// The source that knows the task.
    pub source: Arc<str>,
    /// The source's own name for it; opaque to everyone else.
    pub task: Arc<str>,
    /// When the source must be asked again; none when it tells of the end by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub check_at: Option<Time>,
}
tool_body! {
    /// The call is under way.
    ToolExecuting {
        /// The client that holds it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        claim: Option<Claim>,
        /// The run that executes it, for a call that starts another agent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        child: Option<RunId>,
        /// What it waits for, for a durable pause.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pause: Option<Pause>,
        /// The task that carries it on outside the gateway; for secret principals only.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        task: Option<RemoteTask>,
        /// That the run which executes it waits for a person or a client, or no longer does; absent when it begins. The
        /// call's timeout does not count while it waits.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        child_status: Option<ChildStatus>,
    }
}
tool_body! {
    /// The call is offered again.
    ToolReleased {}
}
tool_body! {
    /// How far a long call is.
    ToolProgress {
        /// Whatever the tool says of itself.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        progress: Option<Json>,
    }
}
tool_body! {
    /// The call gave an output.
    ToolOutputAvailable {
        /// The output.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        output: Option<Json>,
        /// What whoever uses the tool should know, as that it is deprecated.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        warning: Option<String>,
        /// What the tool's code wrote to its log, a line each; for secret principals only.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        log: Option<String>,
        /// What is said aloud of it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        voice: Option<Spoken>,
    }
}
tool_body! {
    /// The call gave none.
    ToolOutputError {
        /// Why, for programs.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        code: Option<ErrorCode>,
        /// Why, in words the model can act on.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error_text: Option<String>,
        /// What the tool's code wrote to its log, a line each; for secret principals only.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        log: Option<String>,
    }
}
tool_body! {
    /// A person said no.
    ToolOutputDenied {
        /// The reason that was given, if any.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    }
}
