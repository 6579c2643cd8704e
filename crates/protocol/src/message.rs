//! Messages between users and agents.

use serde::{Deserialize, Serialize};

use crate::event::{REMOVED, nobody};
use crate::id::{EntityId, MessageId};
use crate::json::Json;
use crate::time::Time;

/// Most parts in one message.
pub const PARTS_MAX: usize = 64;

/// A message that a user or a backend posted into a space.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Message {
    /// Id; a repeated post of the message has the same one.
    pub message_id: MessageId,
    /// Sender; absent if a backend posts without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<EntityId>,
    /// What was known of the sender when the message was posted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sender: Option<Sender>,
    /// Content, never empty.
    pub parts: Vec<Part>,
    /// Metadata of the sender; never sent to a model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Json>,
    /// What posted it, where no user and no backend did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<Origin>,
    /// People for whom the gateway posted it: who asked for the plan, or who wrote to the run above. [`nobody`] stands first
    /// where it works for none of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub on_behalf_of: Vec<EntityId>,
}

/// Whom the answer to a message works for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum WorksFor {
    /// The message's sender, or the first person on whose behalf it was posted.
    Person(EntityId),
    /// None of the people behind the message: the person was deleted, or the run above works for none of them.
    Nobody,
    /// Somebody whom the gateway does not know, as with a message of a backend.
    #[default]
    Unknown,
}

impl WorksFor {
    /// The person, where there is one.
    pub fn person(self) -> Option<EntityId> {
        match self {
            Self::Person(person) => Some(person),
            Self::Nobody | Self::Unknown => None,
        }
    }
}

/// What posted a message that nobody wrote just now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case", rename_all_fields = "camelCase")]
pub enum Origin {
    /// A plan of the agent that was due.
    Plan {
        /// Id of the plan.
        plan_id: String,
        /// When it was due, which may be long before the message was posted.
        due_at: Time,
    },
}

impl Message {
    /// A message of a user, or of a backend without a sender.
    pub fn new(message_id: MessageId, from: Option<EntityId>, parts: Vec<Part>) -> Self {
        Self {
            message_id,
            from,
            sender: None,
            parts,
            metadata: None,
            origin: None,
            on_behalf_of: Vec::new(),
        }
    }

    /// Whom an answer to it works for.
    pub fn works_for(&self) -> WorksFor {
        match (self.from, self.on_behalf_of.first()) {
            (Some(sender), _) => WorksFor::Person(sender),
            (None, _) if self.has_lost_sender() => WorksFor::Nobody,
            (None, Some(first)) if *first == nobody() => WorksFor::Nobody,
            (None, Some(first)) => WorksFor::Person(*first),
            (None, None) => WorksFor::Unknown,
        }
    }

    /// The person whom an answer to it works for, where there is one.
    pub fn person(&self) -> Option<EntityId> {
        self.works_for().person()
    }

    /// Whether its sender was deleted, after which nothing says that there was one.
    fn has_lost_sender(&self) -> bool {
        let is_blank = matches!(self.parts.as_slice(), [Part::Text { text }] if text == REMOVED);
        self.sender.is_none() && self.origin.is_none() && is_blank
    }

    /// Everybody whom it is from or on behalf of.
    pub fn people(&self) -> impl Iterator<Item = EntityId> {
        let people = self.from.iter().chain(&self.on_behalf_of).copied();
        people.filter(|person| *person != nobody())
    }

    /// The content as a model reads it: a message that a plan posted says so, since it stands where users speak, and
    /// one of a person says whose it is where several people speak.
    pub fn told(&self) -> Vec<Part> {
        let mut parts = self.parts.clone();
        let name = self.sender.as_ref().and_then(|sender| sender.name.as_ref());
        let notice = match (&self.origin, name) {
            (Some(Origin::Plan { plan_id, due_at }), _) => {
                format!(
                    "[This is not the user. Your plan {plan_id}, due at {due_at}, tells you to act now:]\n"
                )
            }
            (None, Some(name)) => format!("{name}: "),
            (None, None) => return parts,
        };
        match parts.first_mut() {
            // In one part: some vendors take nothing but a single text.
            Some(Part::Text { .. }) => {
                // Each part: one without a name could begin with somebody else's.
                for part in &mut parts {
                    if let Part::Text { text } = part {
                        text.insert_str(0, &notice);
                    }
                }
            }
            Some(Part::Image { .. }) | None => {
                let text = notice.trim_end().to_owned();
                parts.insert(0, Part::Text { text });
            }
        }
        parts
    }

    /// Whether `other` is a repeated post of the message: the same in everything but what was known of its sender.
    pub fn is_same(&self, other: &Self) -> bool {
        let other = Self {
            sender: self.sender.clone(),
            ..other.clone()
        };
        *self == other
    }
}

/// What was known of the sender of a message when it was posted.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Sender {
    /// Name that a model is told; only where several people speak.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Time zone (IANA).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_zone: Option<String>,
    /// The sender as an executor of client tools; absent if it executes none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub executor: Option<Executor>,
}

/// A client that executes tools of the runs that answer its messages: a tab, a process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Executor {
    /// Name under which it claims calls.
    pub holder: String,
    /// Names of the tools that it executes, as it knows them; absent for every client tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<String>>,
}

/// One part of a message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case", rename_all_fields = "camelCase")]
pub enum Part {
    /// Text.
    Text {
        /// The text.
        text: String,
    },
    /// An image, by `https:` address or as a `data:` URL.
    Image {
        /// The `https:` address or `data:` URL.
        url: String,
        /// Media type, such as `image/png`; vendors need it if the URL does not imply it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        media_type: Option<String>,
    },
}

impl Part {
    /// Bytes of its texts.
    pub fn bytes(&self) -> usize {
        match self {
            Self::Text { text } => text.len(),
            Self::Image { url, media_type } => url.len() + media_type.as_ref().map_or(0, String::len),
        }
    }
}
