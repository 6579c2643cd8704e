//! What the events of runs, steps and spaces carry.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;

use super::Event;
use super::entry::Seq;
use super::status::{EndReason, FinishReason, Status, Usage};
use crate::history::Earlier;
use crate::id::{CallId, EntityId, MessageId, RunId};
use crate::json::Json;
use crate::message::{Message, Sender};
use crate::model::ModelName;
use crate::name::{AgentName, ToolName};
use crate::time::Time;
use crate::tool::ClientTool;

macro_rules! body {
    ($(#[$doc:meta])* $name:ident { $( $(#[$fdoc:meta])* $field:ident : $ty:ty ),* $(,)? }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
        #[serde(rename_all = "camelCase")]
        pub struct $name { $( $(#[$fdoc])* pub $field: $ty, )* }

        #[cfg(test)]
        impl crate::event::marked::Marked for $name {
            fn marked() -> Self {
                Self { $( $field: crate::event::marked::Marked::marked(), )* }
            }
        }
    };
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// What a run at the top and all below it may use up together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Budget {
    /// Tokens, read and written.
    pub tokens: u64,
    /// Runs below the one at the top.
    pub descendants: u32,
    /// How many runs may stand above one another below the one at the top; none in a log of before it was kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub depth: Option<u32>,
}
body! {
    /// A run began.
    RunStart {
        /// Whose configuration it follows.
        agent: AgentName,
        /// Which revision of it, for the whole run.
        revision: u32,
        /// The model it asks.
        model: ModelName,
        /// The agent's own entity.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        entity: Option<EntityId>,
        /// The call that started it, for a child run.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parent: Option<CallId>,
        /// How many runs stand above it.
        #[serde(default)]
        depth: u32,
        /// The agent's prompt tool that this run answers, if it answers one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        behind: Option<ToolName>,
        /// What the run at the top may use up: its tokens, and the runs below it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        budget: Option<Budget>,
        /// Whether somebody wrote to the runs above a child run whom the gateway does not know: that person counts among
        /// those who ask for what it does.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        unknown_requester: bool,
        /// The only member of the space that may execute its client calls: whoever asked for the call that this run is, or
        /// that it works for. Absent for every member. Backends always may.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        offered_to: Option<EntityId>,
        /// What its answer must fit, when the call that started it says so.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        result_schema: Option<Json>,
        /// Tools that the caller brought.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        client_tools: Vec<ClientTool>,
        /// Of the agent's client tools only those of these categories, and those of none; absent for all.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        categories: Option<Vec<String>>,
        /// What the client says was said before, for an agent that takes its word.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        history: Vec<Earlier>,
        /// Hash of every tool definition the run started with, by name.
        tools: Json,
        /// The version of every tool that has one, by name.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        tool_versions: BTreeMap<ToolName, String>,
    }
}
body! {
    /// Somebody said something.
    Said {
        /// What, and who.
        message: Message,
    }
}
body! {
    /// What a client says was said before the space began: a claim. Its calls are no calls of the gateway's.
    Told {
        /// The conversation, oldest turn first.
        turns: Vec<Earlier>,
        /// Whose conversation it was: it goes with this person. Absent when nobody in particular is known, and in a log of
        /// before it was kept.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        from: Option<EntityId>,
    }
}
body! {
    /// Somebody asks for one call of a tool: the run is this call, and no model has a part in it.
    CallRequest {
        /// Name of the tool.
        tool_name: ToolName,
        /// The arguments; for secret principals only. The event of the call itself shows them to whoever may see them.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        input: Option<Json>,
        /// Who asks; absent if a backend does.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        from: Option<EntityId>,
        /// What was known of who asks.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        sender: Option<Sender>,
    }
}
body! {
    /// From here on the model is given less of what was said: the conversation outgrew its context window. Holds for
    /// this run and for later ones of the agent in the space, until the next cut.
    ContextCut {
        /// The agent whose model it is about.
        agent: AgentName,
        /// What was said before this place is left out.
        from: Seq,
        /// Turns left out of the conversation that a client told, if that is not left out altogether.
        #[serde(default, skip_serializing_if = "is_zero")]
        told: u32,
        /// Results of tools from before the cut are shortened to so many bytes.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        result_bytes: Option<u32>,
        /// Stands for what is left out; written by the model.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        summary: Option<String>,
        /// What the summary cost.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        usage: Option<Usage>,
    }
}
body! {
    /// The model is asked.
    StepStart {
        /// Counted from 1.
        step: u32,
    }
}
body! {
    /// The step broke midway and is asked again.
    StepRetry {
        /// Which step.
        step: u32,
        /// How often it was tried, this one included.
        attempt: u32,
        /// What went wrong; for secret principals only.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<String>,
        /// Not before this moment.
        not_before: Time,
    }
}
body! {
    /// A text part began.
    TextStart {
        /// Names the part within the run.
        id: Arc<str>,
    }
}
body! {
    /// More text.
    TextDelta {
        /// Names the part.
        id: Arc<str>,
        /// The new words.
        delta: String,
    }
}
body! {
    /// The whole text part.
    TextEnd {
        /// Names the part.
        id: Arc<str>,
        /// All of it.
        text: String,
    }
}
body! {
    /// A reasoning part began.
    ReasoningStart {
        /// Names the part.
        id: Arc<str>,
    }
}
body! {
    /// More reasoning.
    ReasoningDelta {
        /// Names the part.
        id: Arc<str>,
        /// The new words.
        delta: String,
    }
}
body! {
    /// The whole reasoning part.
    ReasoningEnd {
        /// Names the part.
        id: Arc<str>,
        /// All of it.
        text: String,
        /// What the vendor wants back with it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        signature: Option<String>,
    }
}
body! {
    /// The model's reply is whole.
    StepFinish {
        /// Which step.
        step: u32,
        /// Why the model stopped.
        reason: FinishReason,
        /// What it cost.
        usage: Usage,
    }
}
body! {
    /// The run moved.
    RunStatus {
        /// Where to.
        status: Status,
    }
}
body! {
    /// The run ended.
    RunFinish {
        /// The final status.
        status: Status,
        /// Why the run ended.
        reason: EndReason,
        /// All steps together.
        usage: Usage,
        /// What went wrong, in words; for secret principals only.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<String>,
    }
}
body! {
    /// Something for the members of the space.
    Notification {
        /// What it is about.
        title: String,
        /// More of it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        body: Option<String>,
        /// The message it belongs to.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message_id: Option<MessageId>,
    }
}
body! {
    /// An event of a call of a child run that needs a person or a client, kept in the log of the run at the top, whose
    /// members answer it. Of the child run they learn this, and no more.
    ChildCall {
        /// Whether a version that does not know it may replay the log without it: always.
        ignorable: bool,
        /// The agent that asks.
        agent: AgentName,
        /// The child run.
        child_run_id: RunId,
        /// The event, as it stands in the child run's own log.
        #[serde(deserialize_with = "read_event")]
        event: Box<Event>,
    }
}

fn read_event<'de, D: Deserializer<'de>>(from: D) -> Result<Box<Event>, D::Error> {
    let raw = Box::<RawValue>::deserialize(from)?;
    Event::read(&raw).map(Box::new).map_err(serde::de::Error::custom)
}
