//! Talks to language models: one adapter per vendor, with [`Models`] in front of them.
//!
//! An adapter writes the request directly from the conversation and parses the stream as it arrives. It keeps
//! no state between replies and does not validate what a model calls: malformed input is passed on unchanged,
//! because the engine rejects it in one place for all vendors.
//!
//! Start with [`Models`], then `adapter` (what an adapter is, and what those of vendors with an HTTP API share), then
//! `openai` (the one the others resemble), then `stream` and `http`.

mod adapter;
mod anthropic;
mod body;
mod demo;
mod direct;
mod failure;
mod google;
mod history;
mod http;
mod json;
mod openai;
mod reply;
pub mod sse;
mod stream;

use std::time::Duration;

use async_trait::async_trait;
use toolgate_engine::model::{Ask, Ending, Model, ModelError, ReplySink};
use toolgate_kernel::agent::{Provider, Secret};
use toolgate_kernel::json::Json;
use toolgate_kernel::prompt::OfferedTool;

use crate::adapter::Adapter;
use crate::http::Client;

pub use crate::reply::{CALLS_MAX, INPUT_BYTES_MAX, REPLY_BYTES_MAX};

/// Settings of all model adapters.
#[derive(Debug, Clone)]
pub struct ModelSettings {
    /// OpenAI API key for agents without one; sent to the vendor's own address only.
    pub openai_key: Option<Secret>,
    /// Anthropic API key for agents without one; sent to the vendor's own address only.
    pub anthropic_key: Option<Secret>,
    /// Gemini API key for agents without one; sent to the vendor's own address only.
    pub google_key: Option<Secret>,
    /// Timeout for opening a connection.
    pub connect_timeout: Duration,
    /// Longest time without a byte: before a reply begins, and in the middle of it.
    pub idle_timeout: Duration,
    /// Attempts of a request, the first included, until the first byte of a reply arrives.
    pub attempts: u32,
    /// Pause between two reads from a model that streams faster than readers consume, so that one read brings
    /// many tokens; zero reads each token by itself. The first token is never delayed.
    pub pace: Duration,
    /// Whether `http://` servers are reached over pooled connections of our own, which costs less CPU;
    /// otherwise over the same client as `https://`, which honours the environment's proxies.
    pub direct: bool,
}

/// Default pause between two reads from a fast model.
pub const PACE: Duration = Duration::from_millis(2);

impl Default for ModelSettings {
    fn default() -> Self {
        Self {
            openai_key: None,
            anthropic_key: None,
            google_key: None,
            connect_timeout: Duration::from_secs(10),
            idle_timeout: Duration::from_secs(300),
            attempts: 3,
            pace: PACE,
            direct: true,
        }
    }
}

/// The [`Model`] that forwards each request to the adapter of its provider.
pub struct Models {
    client: Client,
}

impl Models {
    /// Creates the adapters. Opens no connection yet.
    pub fn new(settings: ModelSettings) -> Self {
        Self {
            client: Client::new(settings),
        }
    }
}

/// The adapter of a vendor: a new one is a line here.
fn adapter(provider: Provider) -> &'static dyn Adapter {
    match provider {
        Provider::Openai => &openai::VENDOR,
        Provider::Anthropic => &anthropic::VENDOR,
        Provider::Google => &google::VENDOR,
        Provider::Demo => &demo::Demo,
    }
}

#[async_trait]
impl Model for Models {
    async fn reply(&self, ask: &Ask, sink: &mut dyn ReplySink) -> Result<Ending, ModelError> {
        adapter(ask.model.name.provider)
            .reply(&self.client, ask, sink)
            .await
    }
    fn definitions(&self, vendor: Provider, tools: &[OfferedTool]) -> Option<Json> {
        adapter(vendor).definitions(tools)
    }
}

/// Parses a recorded reply as if it arrived from the network in these reads.
pub fn replay<'b>(
    provider: Provider,
    reads: impl IntoIterator<Item = &'b [u8]>,
    sink: &mut dyn ReplySink,
) -> Result<Ending, ModelError> {
    adapter(provider).replay(&mut reads.into_iter(), sink)
}
