//! What the execution types that reach outside of the gateway are told by their configuration.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use crate::agent::ModelSpec;
use crate::json::Json;
use crate::schema::Validator;
use crate::template::Template;
use crate::time::Time;

/// An HTTP call (`request`). Every text may have places for the input, and secrets by name (`${secret.NAME}`),
/// which whoever runs it fills in.
#[derive(Debug, Clone, PartialEq)]
pub struct HttpCall {
    /// How.
    pub method: Method,
    /// Where.
    pub url: Template,
    /// Added to the address.
    pub query: Vec<(String, Template)>,
    /// Sent with it.
    pub headers: Vec<(String, Template)>,
    /// JSON whose texts are templates; a text that is one place alone becomes the value itself.
    pub body: Option<Value>,
    /// Where in the answer the result stands, as a JSON pointer.
    pub result: Option<String>,
    /// How often it is tried when it fails in a way that may pass.
    pub attempts: u32,
    /// Most bytes of an answer.
    pub bytes_max: usize,
}

/// An HTTP method.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// Reads.
    Get,
    /// Reads the head.
    Head,
    /// Does something.
    Post,
    /// Puts something in place.
    Put,
    /// Changes something.
    Patch,
    /// Removes something.
    Delete,
}

impl Method {
    /// As it is sent.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Head => "HEAD",
            Self::Post => "POST",
            Self::Put => "PUT",
            Self::Patch => "PATCH",
            Self::Delete => "DELETE",
        }
    }
    /// Whether doing it twice is the same as doing it once.
    pub fn is_idempotent(self) -> bool {
        match self {
            Self::Get | Self::Head | Self::Put | Self::Delete => true,
            Self::Post | Self::Patch => false,
        }
    }
}

/// An image from a model (`image-generator`).
#[derive(Debug, Clone, PartialEq)]
pub struct ImageCall {
    /// The model's name.
    pub model: Option<String>,
    /// Where, when not at the agent's own model's address.
    pub base_url: Option<String>,
    /// The key, when it brings its own.
    pub api_key: Option<crate::agent::Secret>,
    /// Such as `1024x1024`.
    pub size: Option<String>,
}

/// A durable pause (`waiting`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wait {
    /// So long.
    For(Duration),
    /// Until this moment.
    Until(Time),
    /// Until somebody outside gives a signal.
    Signal,
    /// As the input says: `seconds`, `until`, or else a signal.
    Input,
}

/// A tool that an agent's author made of words: a child run that answers a prompt.
#[derive(Debug, PartialEq)]
pub struct PromptTool {
    /// What is asked, with places for the input.
    pub prompt: Template,
    /// Who is asked, when not the agent's own model.
    pub model: Option<ModelChoice>,
    /// What the answer must be.
    pub result: Option<ResultSchema>,
}

/// Another model than the agent's own.
#[derive(Debug, Clone, PartialEq)]
pub enum ModelChoice {
    /// Of the same vendor, by name.
    Named(String),
    /// With all that belongs to it.
    Own(ModelSpec),
}

/// What an answer must be.
#[derive(Debug, Clone)]
pub struct ResultSchema {
    /// As it was written.
    pub schema: Json,
    /// Checks an answer.
    pub validator: Arc<Validator>,
}

impl PartialEq for ResultSchema {
    fn eq(&self, other: &Self) -> bool {
        self.schema == other.schema
    }
}
