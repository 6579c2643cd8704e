//! The stream of a task's events, bounded in events and bytes.

use http::header;
use serde_json::Value;
use toolgate_a2a::Dialect;
use toolgate_a2a::rpc;
use toolgate_a2a::stream::StreamResponse;
use toolgate_models::sse::Decoder;

use crate::endpoint::Binding;
use crate::remote::{Remote, RemoteError};

/// Most events, and most bytes, that are read of one stream.
const EVENTS_MAX: usize = 20_000;
const BYTES_MAX: usize = 64 << 20;
const EVENT_STREAM: &str = "text/event-stream";

/// A stream that is open. Dropping it closes the connection; the task goes on without it.
pub(crate) struct EventStream {
    response: Option<reqwest::Response>,
    decoder: Decoder,
    /// An answer that came without a stream.
    only: Option<StreamResponse>,
    binding: Binding,
    dialect: Dialect,
    events: usize,
    bytes: usize,
}

impl EventStream {
    /// Reads on from the head of a response. An answer that is no stream is its one event, or an error.
    pub async fn of(response: reqwest::Response, remote: &Remote) -> Result<Self, RemoteError> {
        let status = response.status();
        let kind = response.headers().get(header::CONTENT_TYPE);
        let is_stream = kind.is_some_and(|kind| kind.as_bytes().starts_with(EVENT_STREAM.as_bytes()));
        let mut stream = Self {
            response: None,
            decoder: Decoder::default(),
            only: None,
            binding: remote.endpoint.binding,
            dialect: remote.endpoint.version.dialect(),
            events: 0,
            bytes: 0,
        };
        if status.is_success() && is_stream {
            stream.response = Some(response);
            return Ok(stream);
        }
        let body = whole(response, remote.bytes_max).await?;
        stream.only = Some(remote.event(remote.read(status, &body)?)?);
        Ok(stream)
    }

    /// The next event; none at the end of the stream. Dropping the future loses nothing.
    pub async fn next(&mut self) -> Result<Option<StreamResponse>, RemoteError> {
        if let Some(only) = self.only.take() {
            return Ok(Some(only));
        }
        loop {
            if let Some(event) = self.decoded()? {
                return Ok(Some(event));
            }
            let Some(response) = &mut self.response else {
                return Ok(None);
            };
            let chunk = response.chunk().await;
            let chunk = chunk.map_err(|_| RemoteError::Lost("the connection broke".into()))?;
            let Some(chunk) = chunk else {
                self.response = None;
                continue;
            };
            self.bytes += chunk.len();
            if self.bytes > BYTES_MAX {
                return Err(RemoteError::Malformed(format!(
                    "its stream has more than {BYTES_MAX} bytes"
                )));
            }
            self.decoder.push(&chunk);
        }
    }

    fn decoded(&mut self) -> Result<Option<StreamResponse>, RemoteError> {
        let too_long = |_| RemoteError::Malformed("an event of its stream is too long".into());
        let Some(data) = self.decoder.next_event().map_err(too_long)? else {
            return Ok(None);
        };
        self.events += 1;
        if self.events > EVENTS_MAX {
            return Err(RemoteError::Malformed(format!(
                "its stream has more than {EVENTS_MAX} events"
            )));
        }
        let value: Value = serde_json::from_slice(data)
            .map_err(|_| RemoteError::Malformed("an event of its stream is not JSON".into()))?;
        let value = match self.binding {
            Binding::JsonRpc => rpc::response(value).map_err(|error| RemoteError::Told(Box::new(error)))?,
            Binding::Rest => value,
        };
        let event = StreamResponse::from_json(value, self.dialect);
        let event = event.map_err(|invalid| RemoteError::Malformed(invalid.to_string()))?;
        Ok(Some(event))
    }
}

/// A body of at most so many bytes.
async fn whole(mut response: reqwest::Response, bytes_max: usize) -> Result<Vec<u8>, RemoteError> {
    let mut body = Vec::new();
    let broken = |_| RemoteError::Lost("the connection broke".into());
    while let Some(chunk) = response.chunk().await.map_err(broken)? {
        if body.len() + chunk.len() > bytes_max {
            return Err(RemoteError::Malformed(format!(
                "it is longer than {bytes_max} bytes"
            )));
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}
