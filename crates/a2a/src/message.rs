//! Messages between a client and an agent.

use serde_json::Value;

use crate::json::{Invalid, Members, Object, Violations, parse};
use crate::part::{Content, Part};
use crate::{Dialect, Metadata};

/// Who wrote a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    /// The client, for its user.
    User,
    /// The agent.
    Agent,
}

/// One message.
#[derive(Clone, PartialEq, Debug)]
pub struct Message {
    /// Id that its writer chose. Not empty, and not unique: clients repeat them.
    pub message_id: String,
    /// Conversation that it belongs to.
    pub context_id: Option<String>,
    /// Task that it is about.
    pub task_id: Option<String>,
    /// Who wrote it.
    pub role: Role,
    /// What it says. Never empty in a message that was read.
    pub parts: Vec<Part>,
    /// What extensions say of it.
    pub metadata: Option<Metadata>,
    /// Extensions that the message uses, by URI.
    pub extensions: Vec<String>,
    /// Other tasks that it refers to.
    pub reference_task_ids: Vec<String>,
}

impl Message {
    /// A message that says `parts`.
    pub fn new(message_id: impl Into<String>, role: Role, parts: Vec<Part>) -> Self {
        Self {
            message_id: message_id.into(),
            context_id: None,
            task_id: None,
            role,
            parts,
            metadata: None,
            extensions: Vec::new(),
            reference_task_ids: Vec::new(),
        }
    }

    /// The text parts, one after the other, with line breaks between them.
    pub fn text(&self) -> String {
        let texts = self.parts.iter().filter_map(|part| match &part.content {
            Content::Text(text) => Some(text.as_str()),
            Content::Raw(_) | Content::Url(_) | Content::Data(_) => None,
        });
        texts.collect::<Vec<_>>().join("\n")
    }

    /// What the extension `uri` says of the message.
    pub fn tag(&self, uri: &str) -> Option<&Value> {
        self.metadata.as_ref()?.get(uri)
    }

    /// Reads a message.
    pub fn from_json(value: Value, dialect: Dialect) -> Result<Self, Invalid> {
        parse(value, "", |value, at, bad| Self::read(value, at, bad, dialect))
    }

    /// Writes the message.
    pub fn to_json(&self, dialect: Dialect) -> Value {
        let members = match dialect {
            Dialect::V1 => Members::new(),
            Dialect::V03 => Members::new().with("kind", "message"),
        };
        let parts = self.parts.iter().map(|part| part.to_json(dialect));
        members
            .with("messageId", self.message_id.as_str())
            .with_some("contextId", self.context_id.as_deref())
            .with_some("taskId", self.task_id.as_deref())
            .with("role", self.role.name(dialect))
            .with("parts", parts.collect::<Vec<_>>())
            .with_metadata(self.metadata.as_ref())
            .with_list("extensions", self.extensions.iter().cloned())
            .with_list("referenceTaskIds", self.reference_task_ids.iter().cloned())
            .value()
    }

    pub(crate) fn read(value: Value, at: String, bad: &Violations, dialect: Dialect) -> Self {
        let mut object = Object::new(value, at, bad);
        expect_kind(&mut object, dialect, "message");
        let message_id = object.need_text("messageId");
        let role = object.text("role");
        let role = role.as_deref().map(|name| (Role::named(name, dialect), name));
        match role {
            Some((None, name)) => {
                let [user, agent] = [Role::User, Role::Agent].map(|role| role.name(dialect));
                object.bad("role", format!("must be {user} or {agent}, got {name:?}"));
            }
            Some((Some(_), _)) => {}
            None if object.was_reported("role") => {}
            None => object.bad("role", "is required"),
        }
        let role = role.and_then(|(role, _)| role).unwrap_or(Role::User);
        let parts = read_parts(&mut object, dialect);
        Self {
            message_id,
            role,
            parts,
            context_id: object.text("contextId").filter(|id| !id.is_empty()),
            task_id: object.text("taskId").filter(|id| !id.is_empty()),
            metadata: object.metadata("metadata"),
            extensions: object.texts("extensions"),
            reference_task_ids: object.texts("referenceTaskIds"),
        }
    }
}

/// The member `parts`, which must have at least one part.
pub(crate) fn read_parts(object: &mut Object<'_>, dialect: Dialect) -> Vec<Part> {
    let mut listed = 0;
    let is_there = object.has("parts");
    let parts = object.list("parts", |value, at, bad| {
        listed += 1;
        Part::read(value, at, bad, dialect)
    });
    if listed == 0 && !(is_there && object.was_reported("parts")) {
        object.bad("parts", "must have at least one part");
    }
    parts
}

/// 0.3 names the type of an object. A missing name is not missed; a wrong one is a mistake.
pub(crate) fn expect_kind(object: &mut Object<'_>, dialect: Dialect, expected: &str) {
    if dialect == Dialect::V03
        && let Some(kind) = object.text("kind")
        && kind != expected
    {
        object.bad("kind", format!("must be {expected}, got {kind:?}"));
    }
}

impl Role {
    /// The role's name on the wire.
    pub fn name(self, dialect: Dialect) -> &'static str {
        match (self, dialect) {
            (Self::User, Dialect::V1) => "ROLE_USER",
            (Self::Agent, Dialect::V1) => "ROLE_AGENT",
            (Self::User, Dialect::V03) => "user",
            (Self::Agent, Dialect::V03) => "agent",
        }
    }

    fn named(name: &str, dialect: Dialect) -> Option<Self> {
        [Self::User, Self::Agent]
            .into_iter()
            .find(|role| role.name(dialect) == name)
    }
}
