//! Talks to language models. One adapter per vendor, one [`Models`] in front of them.
//!
//! An adapter writes the request straight from the conversation and reads the stream as it comes; it keeps
//! no state between replies and never judges what a model asks for: malformed input is passed on as it is.
//!
//! Start with [`Models`], then `openai` (the adapter the others resemble), then `stream` and `http` (what
//! they share).

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

use crate::failure::{permanent, presentable};
use crate::http::{Client, Outgoing};
use crate::stream::{Dialect, Reading};

pub use crate::reply::{CALLS_MAX, INPUT_BYTES_MAX, REPLY_BYTES_MAX};

/// What may be set.
#[derive(Debug, Clone)]
pub struct ModelSettings {
    /// Key for OpenAI, when an agent brings none and asks at the vendor's own address.
    pub openai_key: Option<Secret>,
    /// Key for Anthropic, likewise.
    pub anthropic_key: Option<Secret>,
    /// Key for Gemini, likewise.
    pub google_key: Option<Secret>,
    /// Longest wait for a connection.
    pub connect_timeout: Duration,
    /// Longest silence: before a reply begins, and in the middle of it.
    pub idle_timeout: Duration,
    /// How often a request is tried before the first byte of a reply.
    pub attempts: u32,
    /// How long a model that writes faster than anyone reads is left alone between two reads, so that one
    /// read brings many words; zero reads every word by itself. The first word never waits.
    pub pace: Duration,
    /// Speak to `http://` servers over connections of our own, which is cheaper; otherwise over the same
    /// client as `https://`, which honours the environment's proxies.
    pub direct: bool,
}

/// How long a fast model is left alone between two reads.
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

/// All vendors behind one.
pub struct Models {
    client: Client,
}

impl Models {
    /// With these settings. Opens nothing yet.
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
            // A request without tools says nothing of them.
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

/// What sets one vendor apart.
struct Vendor<D> {
    name: &'static str,
    /// Its own address.
    address: &'static str,
    /// The header that carries the key, and what stands before the key in it.
    key: (&'static str, &'static str),
    /// Writes the request for a server at this address.
    request: fn(&Ask, &str) -> Result<Outgoing, ModelError>,
    /// Reads the stream.
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
        // The gateway's key goes to the vendor and to nobody else.
        let key = ask.model.api_key.as_ref().or(own_key.as_ref().filter(|_| own));
        if own && key.is_none() {
            return Err(permanent(format!("there is no key for {}", vendor.name)));
        }
        let exchange = async {
            let mut request = (vendor.request)(ask, address)?;
            if let Some(key) = key {
                request.key(vendor.key.0, vendor.key.1, key)?;
            }
            let body = self.client.send(&request).await?;
            stream::read(body, self.client.settings(), (vendor.dialect)(), sink).await
        };
        exchange.await.map_err(|error| presentable(error, key))
    }
}

/// Reads a recorded reply as if it came from the network in these reads.
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
            if let Some(ending) = reading.give()? {
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
