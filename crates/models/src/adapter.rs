//! What an adapter of a vendor does, and how one with an HTTP API and a streamed reply does it.

use async_trait::async_trait;
use toolgate_engine::model::{Ask, Ending, ModelError, ReplySink};
use toolgate_kernel::agent::Secret;
use toolgate_kernel::json::Json;
use toolgate_kernel::prompt::OfferedTool;

use crate::ModelSettings;
use crate::failure::{permanent, redacted};
use crate::http::{Client, Outgoing};
use crate::stream::{self, Dialect, Origin, Reading};

/// The adapter of one vendor.
#[async_trait]
pub(crate) trait Adapter: Sync {
    /// Sends the request and passes the pieces of the reply to `sink` as they arrive.
    async fn reply(&self, client: &Client, ask: &Ask, sink: &mut dyn ReplySink)
    -> Result<Ending, ModelError>;
    /// The tool definitions in the format of the vendor's request; none if the vendor takes none.
    fn definitions(&self, tools: &[OfferedTool]) -> Option<Json> {
        let _ = tools;
        None
    }
    /// Parses a recorded reply.
    fn replay(
        &self,
        reads: &mut dyn Iterator<Item = &[u8]>,
        sink: &mut dyn ReplySink,
    ) -> Result<Ending, ModelError> {
        let _ = (reads, sink);
        Err(permanent("this model has no stream to record"))
    }
}

/// The differences between vendors with an HTTP API.
pub(crate) struct Vendor<D> {
    pub name: &'static str,
    /// Base URL of the vendor's own API.
    pub address: &'static str,
    /// The setting under `vendors` with the gateway's own API key, and its value.
    pub own_key: (&'static str, fn(&ModelSettings) -> Option<&Secret>),
    /// Header that carries the API key, and the prefix of its value.
    pub key: (&'static str, &'static str),
    /// Builds the request for the server at this base URL.
    pub request: fn(&Ask, &str) -> Result<Outgoing, ModelError>,
    /// Writes the `tools` member of a request.
    pub tools: fn(&[OfferedTool]) -> serde_json::Result<String>,
    /// Creates the parser of the reply's stream.
    pub dialect: fn() -> D,
}

#[async_trait]
impl<D: Dialect> Adapter for Vendor<D> {
    async fn reply(
        &self,
        client: &Client,
        ask: &Ask,
        sink: &mut dyn ReplySink,
    ) -> Result<Ending, ModelError> {
        let base_url = ask.model.base_url.as_deref();
        let address = base_url.unwrap_or(self.address).trim_end_matches('/');
        let own = address == self.address;
        let (setting, own_key) = self.own_key;
        // The gateway's own key is for the vendor: an agent's `baseUrl` must not receive it.
        let own_key = own_key(client.settings()).filter(|_| own);
        let key = ask.model.api_key.as_ref().or(own_key);
        if own && key.is_none() {
            return Err(permanent(format!(
                "there is no API key for {}, set apiKey in the agent's model or vendors.{setting} in the settings",
                self.name
            )));
        }
        let exchange = async {
            let mut request = (self.request)(ask, address)?;
            if let Some(key) = key {
                request.key(self.key.0, self.key.1, key)?;
            }
            let (body, content_type) = client.send(&request).await?;
            let origin = Origin {
                host: request.host(),
                content_type: &content_type,
            };
            stream::read(body, origin, client.settings(), (self.dialect)(), sink).await
        };
        exchange.await.map_err(|error| redacted(error, key))
    }

    fn definitions(&self, tools: &[OfferedTool]) -> Option<Json> {
        let text = match tools {
            // A request without tools has no `tools` member at all.
            [] => "[]".into(),
            tools => (self.tools)(tools).expect("a definition has only string keys"),
        };
        Some(Json::parse(text).expect("what was written is JSON"))
    }

    fn replay(
        &self,
        reads: &mut dyn Iterator<Item = &[u8]>,
        sink: &mut dyn ReplySink,
    ) -> Result<Ending, ModelError> {
        let mut reading = Reading::new((self.dialect)(), sink, None);
        for read in reads {
            reading.push(read);
            if let Some(ending) = reading.deliver()? {
                return Ok(ending);
            }
        }
        reading.end()
    }
}
