//! Which tool somebody means by what they say.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use axum::extract::State;
use serde::Serialize;
use serde_json::Value;
use toolgate_engine::shares::share_of;
use toolgate_engine::tool_match::{Language, Order, TriggerMatch, WordMatch, match_tools};
use toolgate_http::answer::{Answer, ok};
use toolgate_http::body::Body;
use toolgate_http::caller::Caller;
use toolgate_http::describe::{BadBody, Missing, Refused};
use toolgate_http::problem::Refusal;
use toolgate_http::wire::{AnyObject, Text, Whole, wire};
use toolgate_http::{Shared, schema};
use toolgate_kernel::id::SpaceId;
use toolgate_kernel::name::AgentName;
use toolgate_kernel::tool::{Tool, Values};
use utoipa::ToSchema;

use super::tools::{Found, visible};

/// Longest utterance.
const TEXT_CHARS_MAX: usize = 1_000;
/// Longest name of a language.
const LANGUAGE_CHARS_MAX: usize = 35;
/// Texts of the context that are looked at, and characters of each.
const CONTEXT_TEXTS_MAX: usize = 32;
const CONTEXT_CHARS_MAX: usize = 500;
/// Different tools that are looked at.
const TOOLS_MAX: usize = 2_000;
/// Matches that are listed, and most that may be asked for.
const MATCHES: usize = 10;
const MATCHES_MAX: u64 = 50;

wire! {
    /// What somebody said.
    MatchTools {
        /// The words.
        text "text": Text<1, TEXT_CHARS_MAX>,
        /// What the conversation is about, as `{"topic": "…", "keywords": ["…"]}`: its texts count half, and its members are the
        /// variables of what is said aloud.
        context "context": Option<AnyObject>,
        /// The language, as `it` or `it-IT`. Without one, inflections of all languages that the gateway knows count.
        language "language": Option<Text<2, LANGUAGE_CHARS_MAX>>,
        /// Tools of this agent only.
        agent "agent": Option<AgentName>,
        /// Also, for a user, of the agent that a backend gave this space.
        space_id "spaceId": Option<SpaceId>,
        /// Most matches.
        limit "limit": Option<Whole<1, MATCHES_MAX>>,
    }
}

/// Tools that the utterance may mean.
#[derive(Serialize, ToSchema)]
pub(crate) struct ToolMatches {
    /// Best first.
    matches: Vec<ToolMatchBody>,
}

/// A tool that the utterance may mean, and why.
#[derive(Serialize, ToSchema)]
#[schema(as = ToolMatch)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ToolMatchBody {
    /// Name of the tool.
    name: String,
    /// What people call it.
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<String>,
    /// Agent that has the tool, the first by name; absent for a shared tool that no agent has.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<schema::AgentName>)]
    agent: Option<AgentName>,
    /// All agents that have the same definition of the tool, if there are several.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false, value_type = Vec<schema::AgentName>)]
    agents: Vec<AgentName>,
    /// From 0 to 1, with three decimals; comparable within one answer.
    score: f32,
    /// The trigger, as its author wrote it.
    trigger: String,
    /// Its words stand in the utterance: `in-a-row`, `apart`, `reordered`.
    #[schema(value_type = OrderWord)]
    order: &'static str,
    /// Each word of the trigger, with what was said for it.
    words: Vec<WordBody>,
    /// What is said aloud to propose it, with what the context holds.
    #[serde(skip_serializing_if = "Option::is_none")]
    voice: Option<String>,
}

/// How the words of a trigger stand in an utterance.
#[derive(ToSchema)]
#[schema(as = TriggerOrder, rename_all = "kebab-case")]
#[expect(dead_code, reason = "describes a word")]
pub(crate) enum OrderWord {
    InARow,
    Apart,
    Reordered,
}

/// A word of a trigger and what was said for it.
#[derive(Serialize, ToSchema)]
#[schema(as = MatchedWord)]
#[serde(rename_all = "camelCase")]
pub(crate) struct WordBody {
    /// The word of the trigger, without case and accents.
    trigger: String,
    /// The word that was said, without case and accents.
    said: String,
    /// Why they are the same: `exact`, `inflected` (forms of one word), `typo`.
    #[schema(value_type = HowWord)]
    how: &'static str,
    /// Letters that differ, of a typo.
    #[serde(skip_serializing_if = "Option::is_none")]
    distance: Option<u32>,
    /// It stands in the context, and was not said.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schema(required = false)]
    in_context: bool,
}

/// Why two words count as the same.
#[derive(ToSchema)]
#[schema(as = MatchReason, rename_all = "kebab-case")]
#[expect(dead_code, reason = "describes a word")]
pub(crate) enum HowWord {
    Exact,
    Inflected,
    Typo,
}

/// Ranks tools by trigger for what somebody said, and explains each match.
///
/// All words of a trigger must be there: in any order, without case and accents, inflected, with a letter doubled, single or
/// swapped with its neighbour in a word of four letters, any letter wrong in one of five, two in one of eight. A tool that
/// several agents have is one match. A user's tools are those of `GET /v1/tools`.
#[utoipa::path(
    post, path = "/v1/tools/match", operation_id = "match_tools", tag = "tools",
    request_body = MatchTools,
    responses((status = 200, description = "Best first; none is no error.", body = ToolMatches), BadBody, Missing, Refused),
)]
pub(crate) async fn find(
    State(door): State<Shared>,
    Caller(who): Caller,
    body: Body<MatchTools>,
) -> Result<Answer<ToolMatches>, Refusal> {
    let body = body.value;
    let mut tools = without_copies(visible(&door, &who, body.agent, body.space_id).await?);
    tools.truncate(TOOLS_MAX);
    let context = body.context.map_or(Value::Null, |context| context.0.to_value());
    let language = body.language.and_then(|language| Language::of_tag(&language.0));
    let text = body.text.0;
    let limit = body.limit.map_or(MATCHES, |limit| limit.0 as usize);
    // Comparing letters takes time, and a user may bring many words.
    let share = share_of(who.project, who.entity());
    let ranked = door.engine.run_blocking(share, move || {
        let texts = texts(&context);
        let found = match_tools(&text, &texts, language, tools.iter().map(|held| &*held.tool));
        let bodies = found.into_iter().take(limit);
        bodies
            .map(|found| ToolMatchBody::of(&tools[found.list], &found, &context))
            .collect()
    });
    Ok(ok(ToolMatches {
        matches: ranked.await?,
    }))
}

/// A tool and the agents that have it, by name; none for a shared tool that no agent has.
struct Held {
    tool: Arc<Tool>,
    agents: Vec<AgentName>,
}

/// Each definition once, where it was found first. Its hash covers its name and its triggers.
fn without_copies(found: Vec<Found>) -> Vec<Held> {
    let mut places = HashMap::new();
    let mut tools: Vec<Held> = Vec::new();
    for (agent, tool) in found {
        let place = *places.entry(tool.hash.clone()).or_insert(tools.len());
        if place == tools.len() {
            let agents = Vec::new();
            tools.push(Held { tool, agents });
        }
        tools[place].agents.extend(agent);
    }
    tools
}

impl ToolMatchBody {
    fn of(Held { tool, agents }: &Held, found: &TriggerMatch, context: &Value) -> Self {
        Self {
            name: tool.name.to_string(),
            title: tool.title.clone(),
            agent: agents.first().cloned(),
            agents: match agents.len() {
                0 | 1 => Vec::new(),
                _ => agents.clone(),
            },
            score: (found.score * 1000.0).round() / 1000.0,
            trigger: tool.triggers[found.trigger].clone(),
            order: match found.order {
                Order::InARow => "in-a-row",
                Order::Apart => "apart",
                Order::Reordered => "reordered",
            },
            words: found.words.iter().map(WordBody::of).collect(),
            voice: proposal(tool, context),
        }
    }
}

impl WordBody {
    fn of(word: &WordMatch) -> Self {
        use toolgate_engine::tool_match::How;
        let (how, distance) = match word.how {
            How::Exact => ("exact", None),
            How::Inflected => ("inflected", None),
            How::Typo(distance) => ("typo", Some(distance)),
        };
        Self {
            trigger: word.trigger.clone(),
            said: word.said.clone(),
            how,
            distance,
            in_context: word.in_context,
        }
    }
}

fn proposal(tool: &Tool, context: &Value) -> Option<String> {
    let voice = tool.voice.as_ref().filter(|voice| voice.enabled)?;
    let values = Values {
        tool: tool.display_name(),
        objects: &[context],
    };
    voice.prompt.as_ref()?.fill(&values).text
}

/// The texts of a context: its members, and the items of those that are lists.
fn texts(context: &Value) -> Vec<String> {
    let members: BTreeMap<&String, &Value> = context.as_object().into_iter().flatten().collect();
    let items = members.into_values().flat_map(|member| match member {
        Value::Array(items) => items.iter().collect(),
        other => vec![other],
    });
    let texts = items.filter_map(Value::as_str).take(CONTEXT_TEXTS_MAX);
    texts
        .map(|text| text.chars().take(CONTEXT_CHARS_MAX).collect())
        .collect()
}
