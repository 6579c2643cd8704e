//! Questions that a tool asks people while a call of it is under way, and their answers.

use serde::{Deserialize, Serialize};

use crate::json::Json;

/// What a tool wants to know from a person before its call goes on.
#[derive(Debug, Clone, PartialEq)]
pub struct Question {
    /// The source's own name for it; unique among the questions that are asked together, and shown to nobody else.
    pub key: String,
    /// What the person is asked, in words.
    pub message: String,
    /// What the person is asked to do.
    pub ask: Ask,
}

/// What a person is asked to do.
#[derive(Debug, Clone, PartialEq)]
pub enum Ask {
    /// To fill in a form.
    Form {
        /// JSON Schema that the content of an accepting answer matches.
        schema: Json,
    },
    /// To visit a page, which learns what is to be known by itself; the answer says only that the person did.
    Url {
        /// Address of the page.
        url: String,
    },
}

/// What became of a question.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// The source's own name for the question.
    pub key: String,
    /// What the person did. A question that nobody answers in time is cancelled.
    pub action: Action,
    /// What the person filled in, matching the question's schema; none unless a form was accepted.
    pub content: Option<Json>,
}

/// What a person does with a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Action {
    /// Answers it.
    Accept,
    /// Refuses to answer it.
    Decline,
    /// Leaves it without a decision.
    Cancel,
}
