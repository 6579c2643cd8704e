//! Answers to the questions that a tool asks people while a call of it is under way.

use serde::{Deserialize, Serialize};

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
