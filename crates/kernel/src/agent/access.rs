//! Who may start an agent.

use std::sync::Arc;

use serde_json::Value;

use crate::members::Members;
use crate::name::AgentName;
use crate::problem::shown;

/// Most groups that an agent, or the approvers of a tool, may name.
pub(crate) const GROUPS_MAX: usize = 64;
/// Longest name of a group or a role.
pub const GROUP_CHARS_MAX: usize = 256;
/// Name of the agent that answers where nobody names one.
pub const DEFAULT_AGENT: &str = "default";

/// Who may start an agent and post to its runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Access {
    /// Every user of the project.
    Public,
    /// Users, in the spaces that a backend gave this agent.
    Spaces,
    /// Secret keys and other agents only.
    Backend,
    /// Users whose token names one of these groups.
    Groups(Vec<String>),
}

/// Who wants to start an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Starter {
    /// A secret key, or the gateway itself.
    Backend,
    /// A user.
    User {
        /// Groups that the user's token names.
        groups: Arc<[String]>,
    },
}

impl Access {
    /// What holds for an agent that says nothing: nobody may have meant to expose it. The agent `default` is the one
    /// that answers users who name none.
    fn unsaid(name: &AgentName) -> Self {
        match name.as_str() {
            DEFAULT_AGENT => Self::Public,
            _ => Self::Spaces,
        }
    }

    /// Whether `who` may start the agent. `given`: a backend made the space, and this is the space's own agent.
    pub fn admits(&self, who: &Starter, given: bool) -> bool {
        let Starter::User { groups } = who else {
            return true;
        };
        match self {
            Self::Public => true,
            Self::Spaces => given,
            Self::Backend => false,
            Self::Groups(named) => groups.iter().any(|group| named.contains(group)),
        }
    }

    pub(super) fn read(name: &AgentName, top: &Members<'_>) -> Self {
        match top.get("access") {
            None => Self::unsaid(name),
            Some(Value::Object(_)) => {
                let section = top.section("access", &["groups"]);
                Self::Groups(section.map_or(Vec::new(), |section| groups(&section)))
            }
            Some(Value::String(word)) if word == "public" => Self::Public,
            Some(Value::String(word)) if word == "spaces" => Self::Spaces,
            Some(Value::String(word)) if word == "backend" => Self::Backend,
            Some(other) => {
                let words = "expected \"public\", \"spaces\", \"backend\" or {\"groups\": [names]}";
                top.wrong("access", format!("{words}, got {}", shown(other)));
                Self::Backend
            }
        }
    }
}

/// The member `groups`, which names at least one.
fn groups(section: &Members<'_>) -> Vec<String> {
    let groups = section.texts("groups", GROUPS_MAX, GROUP_CHARS_MAX);
    if section.list("groups", GROUPS_MAX).is_empty() {
        section.lacks("expected \"groups\" with the name of at least one group");
    }
    groups
}
