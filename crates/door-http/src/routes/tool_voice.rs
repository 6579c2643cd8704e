//! What is said aloud of a tool, for whoever speaks without a call.

use axum::extract::State;
use serde::Serialize;
use serde_json::Value;
use toolgate_http::Shared;
use toolgate_http::answer::{Answer, ok};
use toolgate_http::body::Body;
use toolgate_http::caller::Caller;
use toolgate_http::describe::{BadBody, Missing, Refused};
use toolgate_http::problem::Refusal;
use toolgate_http::query::At;
use toolgate_http::wire::{AnyObject, wire, words};
use toolgate_kernel::id::SpaceId;
use toolgate_kernel::name::{AgentName, ToolName};
use toolgate_kernel::problem::Problem;
use toolgate_kernel::tool::{Filled, Values, in_output};
use utoipa::ToSchema;

use super::tools::visible;

words! {
    /// Which text of a tool.
    VoiceKind {
        /// What proposes a call: `voicePrompt`.
        Prompt = "prompt",
        /// What confirms a call: `voiceFeedback`.
        Feedback = "feedback",
    }
}

wire! {
    /// What to say.
    SayTool {
        /// Which text.
        kind "kind": VoiceKind,
        /// Values of the variables. Those of a feedback are also looked for in its `data`.
        context "context": Option<AnyObject>,
        /// The agent that has the tool, where several have different tools of the name.
        agent "agent": Option<AgentName>,
        /// Also, for a user, tools of the agent that a backend gave this space.
        space_id "spaceId": Option<SpaceId>,
    }
}

/// What is said aloud.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SaidTool {
    /// The text; null if the tool has none, its voice is off, or a variable has no value and there is no fallback.
    text: Option<String>,
    /// Whether the fallback stands in for the template.
    fallback: bool,
    /// Variables that have no value.
    missing: Vec<String>,
}

/// The text that a tool has said aloud, with the values of its variables.
#[utoipa::path(
    post, path = "/v1/tools/{name}/voice", operation_id = "say_tool", tag = "tools",
    params(("name" = String, Path, description = "Name of the tool.")),
    request_body = SayTool,
    responses((status = 200, description = "The text.", body = SaidTool), BadBody, Missing, Refused),
)]
pub(crate) async fn say(
    State(door): State<Shared>,
    Caller(who): Caller,
    At(name): At<ToolName>,
    body: Body<SayTool>,
) -> Result<Answer<SaidTool>, Refusal> {
    let body = body.value;
    let mut tools = visible(&door, &who, body.agent, body.space_id).await?;
    tools.retain(|(_, tool)| tool.name == name);
    let (_, tool) = tools.first().ok_or_else(|| Refusal::not_found("tool"))?;
    if tools
        .iter()
        .any(|(_, other)| other.voice != tool.voice || other.title != tool.title)
    {
        let words = "is needed, since agents have different tools of this name";
        return Err(Refusal::invalid(vec![Problem::new("/agent", words)]));
    }
    let context = body.context.map_or(Value::Null, |context| context.0.to_value());
    let voice = tool.voice.as_ref().filter(|voice| voice.enabled);
    let (text, objects): (_, Vec<&Value>) = match body.kind {
        VoiceKind::Prompt => (voice.and_then(|voice| voice.prompt.as_ref()), vec![&context]),
        VoiceKind::Feedback => {
            let text = voice.and_then(|voice| voice.feedback.as_ref());
            (text, in_output(&context).collect())
        }
    };
    let values = Values {
        tool: tool.display_name(),
        objects: &objects,
    };
    let Filled {
        text,
        is_fallback,
        missing,
        spoken: _,
    } = text.map(|text| text.fill(&values)).unwrap_or_default();
    Ok(ok(SaidTool {
        text,
        fallback: is_fallback,
        missing,
    }))
}
