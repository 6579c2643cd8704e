//! Talks to language models: one adapter per vendor, with [`Models`] in front of them.
//!
//! An adapter writes the request directly from the conversation and parses the stream as it arrives. It keeps
//! no state between replies and does not validate what a model calls: malformed input is passed on unchanged,
//! because the engine rejects it in one place for all vendors.
//!
//! Start with [`Models`], then `openai` (the adapter the others resemble), then `stream` and `http`, which
//! the adapters share.

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

use crate::failure::{permanent, redacted};
use crate::http::{Client, Outgoing};
use crate::stream::{Dialect, Reading};

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

#[async_trait]
impl Model for Models {
    async fn reply(&self, ask: &Ask, sink: &mut dyn ReplySink) -> Result<Ending, ModelError> {
        let settings = self.client.settings();
        match ask.model.name.provider {
            Provider::Openai => self.ask(openai::VENDOR, &settings.openai_key, ask, sink).await,
            Provider::Anthropic => {
                self.ask(anthropic::VENDOR, &settings.anthropic_key, ask, sink)
                    .await
            }
            Provider::Google => self.ask(google::VENDOR, &settings.google_key, ask, sink).await,
            Provider::Demo => Ok(demo::reply(ask, sink).await),
        }
    }
    fn definitions(&self, vendor: Provider, tools: &[OfferedTool]) -> Option<Json> {
        let text = match vendor {
            // A request without tools has no `tools` member at all.
            Provider::Openai | Provider::Anthropic | Provider::Google if tools.is_empty() => Ok("[]".into()),
            Provider::Openai => serde_json::to_string(&openai::tools(tools)),
            Provider::Anthropic => serde_json::to_string(&anthropic::tools(tools)),
            Provider::Google => serde_json::to_string(&google::tools(tools)),
            Provider::Demo => return None,
        };
        let text = text.expect("a definition has only string keys");
        Some(Json::parse(text).expect("what was written is JSON"))
    }
}

/// The differences between vendors.
struct Vendor<D> {
    name: &'static str,
    /// Base URL of the vendor's own API.
    address: &'static str,
    /// The setting under `vendors` with the gateway's own API key.
    key_setting: &'static str,
    /// Header that carries the API key, and the prefix of its value.
    key: (&'static str, &'static str),
    /// Builds the request for the server at this base URL.
    request: fn(&Ask, &str) -> Result<Outgoing, ModelError>,
    /// Creates the parser of the reply's stream.
    dialect: fn() -> D,
}

impl Models {
    async fn ask<D: Dialect>(
        &self,
        vendor: Vendor<D>,
        own_key: &Option<Secret>,
        ask: &Ask,
        sink: &mut dyn ReplySink,
    ) -> Result<Ending, ModelError> {
        let address = ask
            .model
            .base_url
            .as_deref()
            .unwrap_or(vendor.address)
            .trim_end_matches('/');
        let own = address == vendor.address;
        // The gateway's own key is for the vendor: an agent's `baseUrl` must not receive it.
        let key = ask.model.api_key.as_ref().or(own_key.as_ref().filter(|_| own));
        if own && key.is_none() {
            return Err(permanent(format!(
                "there is no API key for {}, set apiKey in the agent's model or vendors.{} in the settings",
                vendor.name, vendor.key_setting
            )));
        }
        let exchange = async {
            let mut request = (vendor.request)(ask, address)?;
            if let Some(key) = key {
                request.key(vendor.key.0, vendor.key.1, key)?;
            }
            let body = self.client.send(&request).await?;
            stream::read(body, self.client.settings(), (vendor.dialect)(), sink).await
        };
        exchange.await.map_err(|error| redacted(error, key))
    }
}

/// Parses a recorded reply as if it arrived from the network in these reads.
pub fn replay<'b>(
    provider: Provider,
    reads: impl IntoIterator<Item = &'b [u8]>,
    sink: &mut dyn ReplySink,
) -> Result<Ending, ModelError> {
    fn run<'b, D: Dialect>(
        vendor: Vendor<D>,
        reads: impl IntoIterator<Item = &'b [u8]>,
        sink: &mut dyn ReplySink,
    ) -> Result<Ending, ModelError> {
        let mut reading = Reading::new((vendor.dialect)(), sink);
        for read in reads {
            reading.push(read);
            if let Some(ending) = reading.deliver()? {
                return Ok(ending);
            }
        }
        reading.end()
    }
    match provider {
        Provider::Openai => run(openai::VENDOR, reads, sink),
        Provider::Anthropic => run(anthropic::VENDOR, reads, sink),
        Provider::Google => run(google::VENDOR, reads, sink),
        Provider::Demo => Err(permanent("the demo model has no stream to record")),
    }
}
