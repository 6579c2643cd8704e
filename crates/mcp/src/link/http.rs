//! A server at an address: each message is a POST, and what it causes comes back on its response.

use std::sync::Arc;

use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, Method, Response, StatusCode};

use super::message::Message;
use super::sse::Events;
use super::{LinkError, MESSAGE_BYTES_MAX};
use crate::oauth::{Authorizer, Challenge, OAuthError};

/// Id of a session, given by a server of the older protocol.
const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
const JSON: &str = "application/json";
const EVENTS: &str = "text/event-stream";

/// How to reach a server by HTTP.
#[derive(Clone)]
pub(super) struct Endpoint {
    pub(super) url: String,
    /// Sent with every request: credentials, mostly.
    pub(super) headers: Vec<(HeaderName, HeaderValue)>,
    pub(super) client: Client,
    /// Signs in, if the server wants that.
    pub(super) authorizer: Option<Arc<Authorizer>>,
}

/// What comes back on a request.
pub(super) struct Answer {
    /// The session that the server has opened with it.
    pub(super) session: Option<HeaderValue>,
    pub(super) messages: Messages,
}

impl Endpoint {
    pub(super) async fn post(&self, message: &Message, headers: HeaderMap) -> Result<Answer, LinkError> {
        let response = self.send(Method::POST, headers, Some(message.write())).await?;
        let session = response.headers().get(SESSION).cloned();
        let messages = Messages::of(response)?;
        Ok(Answer { session, messages })
    }

    /// Opens the stream of what belongs to no request. None when the server has no such stream.
    pub(super) async fn get(&self, headers: HeaderMap) -> Option<Messages> {
        let response = self.send(Method::GET, headers, None).await.ok()?;
        let is_stream = response.status() == StatusCode::OK && media(&response) == EVENTS;
        is_stream.then(|| Messages::of(response).ok()).flatten()
    }

    /// Tells the server that its session is over. One that does not listen forgets it by itself.
    pub(super) async fn delete(&self, headers: HeaderMap) {
        let _ = self.send(Method::DELETE, headers, None).await;
    }

    /// Sends a request with the token of the gateway's identity. One that is refused is renewed, if that takes nobody, and
    /// the request sent again.
    async fn send(
        &self,
        method: Method,
        headers: HeaderMap,
        body: Option<Vec<u8>>,
    ) -> Result<Response, LinkError> {
        let Some(authorizer) = &self.authorizer else {
            return self.send_once(method, headers, body, None).await;
        };
        let unsigned = |error: OAuthError| LinkError::Unreachable(error.to_string());
        let token = authorizer.token().await.map_err(unsigned)?;
        let first = self.send_once(method.clone(), headers.clone(), body.clone(), token.as_deref());
        let response = first.await?;
        let Some(challenge) = Challenge::of_response(&response) else {
            return Ok(response);
        };
        match authorizer
            .renew(token.as_deref(), &challenge)
            .await
            .map_err(unsigned)?
        {
            Some(token) => self.send_once(method, headers, body, Some(&token)).await,
            None => Ok(response),
        }
    }

    async fn send_once(
        &self,
        method: Method,
        headers: HeaderMap,
        body: Option<Vec<u8>>,
        token: Option<&str>,
    ) -> Result<Response, LinkError> {
        let mut all = headers;
        for (name, value) in &self.headers {
            all.insert(name.clone(), value.clone());
        }
        let accepted = match method {
            Method::GET => EVENTS,
            _ => "application/json, text/event-stream",
        };
        let request = self
            .client
            .request(method, &self.url)
            .headers(all)
            .header(ACCEPT, accepted);
        let request = match token {
            Some(token) => request.bearer_auth(token),
            None => request,
        };
        let request = match body {
            Some(body) => request.header(CONTENT_TYPE, JSON).body(body),
            None => request,
        };
        let sent = request.send().await;
        sent.map_err(|error| LinkError::Unreachable(cause(&error)))
    }
}

/// The messages of one response, as they come.
pub(super) enum Messages {
    None,
    /// One message, of which this much has come.
    One(Box<Response>, Vec<u8>),
    Many(Box<Response>, Events),
}

impl Messages {
    fn of(response: Response) -> Result<Self, LinkError> {
        let status = response.status();
        if status == StatusCode::UNAUTHORIZED || status == StatusCode::FORBIDDEN {
            return Err(LinkError::Refused(status.as_u16()));
        }
        match media(&response).as_str() {
            // An error may be told with any status.
            JSON => Ok(Self::One(Box::new(response), Vec::new())),
            EVENTS if status.is_success() => Ok(Self::Many(Box::new(response), Events::default())),
            _ if status.is_success() => Ok(Self::None),
            _ => Err(LinkError::Status(status.as_u16())),
        }
    }

    /// The next message; none at the end. Nothing is lost when the future is dropped.
    pub(super) async fn next(&mut self) -> Result<Option<Message>, LinkError> {
        loop {
            match self {
                Self::None => return Ok(None),
                Self::One(response, whole) => match chunk(response).await? {
                    Some(bytes) if whole.len() + bytes.len() > MESSAGE_BYTES_MAX => {
                        return Err(LinkError::TooLarge(MESSAGE_BYTES_MAX));
                    }
                    Some(bytes) => whole.extend_from_slice(&bytes),
                    None => {
                        let whole = std::mem::take(whole);
                        *self = Self::None;
                        return match whole.is_empty() {
                            true => Ok(None),
                            false => Ok(Some(Message::read(&whole)?)),
                        };
                    }
                },
                Self::Many(response, events) => {
                    if let Some(data) = events.next() {
                        return Ok(Some(Message::read(&data)?));
                    }
                    match chunk(response).await? {
                        Some(bytes) => events.push(&bytes, MESSAGE_BYTES_MAX)?,
                        None => *self = Self::None,
                    }
                }
            }
        }
    }
}

async fn chunk(response: &mut Response) -> Result<Option<bytes::Bytes>, LinkError> {
    let chunk = response.chunk().await;
    chunk.map_err(|error| LinkError::Unreachable(cause(&error)))
}

fn media(response: &Response) -> String {
    let value = response.headers().get(CONTENT_TYPE);
    let value = value.and_then(|value| value.to_str().ok()).unwrap_or_default();
    let media = value.split(';').next().unwrap_or_default();
    media.trim().to_ascii_lowercase()
}

/// The cause at the bottom; what stands above it repeats the address.
fn cause(error: &reqwest::Error) -> String {
    let mut deepest: &dyn std::error::Error = error;
    while let Some(source) = deepest.source() {
        deepest = source;
    }
    deepest.to_string()
}
