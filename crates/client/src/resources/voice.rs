//! Which tool is meant by what somebody says, and what tools have said aloud. Text only.

use hyper::Method;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use toolgate_protocol::id::SpaceId;

use super::Tools;
use crate::error::Error;
use crate::http::RetryPolicy;

/// What somebody said.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Utterance {
    /// The words.
    pub text: String,
    /// What the conversation is about, as `{"topic": "…"}`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context: Option<Value>,
    /// The language, as `it` or `it-IT`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub language: Option<String>,
    /// Tools of this agent only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// Also, for a user, tools of the agent that a backend gave this space.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub space_id: Option<SpaceId>,
    /// Most matches, up to 50; 10 when not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
}

/// A tool that an utterance may mean, and why.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolMatch {
    /// Name of the tool.
    pub name: String,
    /// What people call it.
    pub title: Option<String>,
    /// Agent that has the tool, the first by name where several have it; absent for a shared tool as such.
    pub agent: Option<String>,
    /// All agents that have the tool, where there are several.
    #[serde(default)]
    pub agents: Vec<String>,
    /// From 0 to 1; comparable within one answer.
    pub score: f32,
    /// The trigger, as its author wrote it.
    pub trigger: String,
    /// How its words stand in the utterance: `in-a-row`, `apart`, `reordered`.
    pub order: String,
    /// Each word of the trigger, with what was said for it.
    pub words: Vec<MatchedWord>,
    /// What is said aloud to propose it.
    pub voice: Option<String>,
}

/// A word of a trigger and what was said for it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MatchedWord {
    /// The word of the trigger, without case and accents.
    pub trigger: String,
    /// The word that was said, without case and accents.
    pub said: String,
    /// Why they are the same: `exact`, `inflected`, `typo`.
    pub how: String,
    /// Letters that differ, of a typo.
    pub distance: Option<u32>,
}

/// Which text of a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum VoiceKind {
    /// What proposes a call.
    Prompt,
    /// What confirms a call.
    Feedback,
}

/// Whose tool it is, where that is not clear from its name.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolOwner {
    /// The agent that has the tool: needed where several have different tools of the name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// Also, for a user, tools of the agent that a backend gave this space.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub space_id: Option<SpaceId>,
}

/// What is said aloud.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Said {
    /// The text; none if nothing is said.
    pub text: Option<String>,
    /// Whether the fallback stands in for the template.
    pub fallback: bool,
    /// Variables that have no value.
    pub missing: Vec<String>,
}

impl Tools<'_> {
    /// Ranks tools by trigger for what somebody said, best first, and explains each match.
    pub async fn match_utterance(&self, utterance: &Utterance) -> Result<Vec<ToolMatch>, Error> {
        #[derive(Deserialize)]
        struct Matches {
            matches: Vec<ToolMatch>,
        }
        let http = self.client.http();
        let found: Matches = http
            .send(Method::POST, "v1/tools/match", utterance, RetryPolicy::Brief)
            .await?;
        Ok(found.matches)
    }

    /// The text that a tool has said aloud, with the values of its variables.
    pub async fn voice(&self, tool: &str, kind: VoiceKind, context: &Value) -> Result<Said, Error> {
        self.voice_of(&ToolOwner::default(), tool, kind, context).await
    }

    /// The text that a tool of this agent, or in this space, has said aloud, with the values of its variables.
    pub async fn voice_of(
        &self,
        owner: &ToolOwner,
        tool: &str,
        kind: VoiceKind,
        context: &Value,
    ) -> Result<Said, Error> {
        #[derive(Serialize)]
        struct Say<'a> {
            kind: VoiceKind,
            context: &'a Value,
            #[serde(flatten)]
            owner: &'a ToolOwner,
        }
        let path = format!("v1/tools/{tool}/voice");
        let body = Say { kind, context, owner };
        let http = self.client.http();
        http.send(Method::POST, &path, &body, RetryPolicy::Brief).await
    }
}
