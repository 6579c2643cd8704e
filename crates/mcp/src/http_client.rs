//! HTTP requests to a server, with limits on what it may send back. The SDK's own client bounds events and reads any other
//! body whole, however long it is; so messages are posted here, and what the SDK bounds is left to it.

use std::collections::HashMap;
use std::sync::Arc;

use http::header::{ACCEPT, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderName, HeaderValue, StatusCode};
use reqwest::{RequestBuilder, Response};
use rmcp::ErrorData;
use rmcp::model::{ClientJsonRpcMessage, ClientRequest, JsonRpcRequest, ServerJsonRpcMessage};
use rmcp::transport::common::http_header::{EVENT_STREAM_MIME_TYPE, HEADER_SESSION_ID, JSON_MIME_TYPE};
use rmcp::transport::streamable_http_client::{
    AuthRequiredError, HttpStatusError, InsufficientScopeError, StreamableHttpClient, StreamableHttpError,
    StreamableHttpPostResponse,
};

use crate::bounded_body::{self, Events, Unusable};
use crate::process::MESSAGE_BYTES_MAX;

/// Most redirects of one request.
const REDIRECTS_MAX: usize = 10;
/// Headers that the transport sets by itself.
const RESERVED_HEADERS: [&str; 3] = ["accept", "mcp-session-id", "last-event-id"];

type Failure = StreamableHttpError<reqwest::Error>;
type Headers = HashMap<HeaderName, HeaderValue>;

/// Posts messages and reads at most [`MESSAGE_BYTES_MAX`] bytes of each that comes back, after decompression.
#[derive(Clone)]
pub(crate) struct BoundedClient(pub reqwest::Client);

impl Default for BoundedClient {
    /// Follows a redirect only to the same origin and with the same method: another one would lose the message, or give
    /// the session and the caller's headers to another host.
    fn default() -> Self {
        let redirects = reqwest::redirect::Policy::custom(|attempt| {
            let keeps_message = matches!(
                attempt.status(),
                StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT
            );
            let first = attempt.previous().first();
            let keeps_origin = first.is_some_and(|first| first.origin() == attempt.url().origin());
            match keeps_message && keeps_origin {
                true if attempt.previous().len() > REDIRECTS_MAX => attempt.error("too many redirects"),
                true => attempt.follow(),
                false => attempt.stop(),
            }
        });
        // An idle connection whose last body was not read to its end stalls the request that reuses it.
        let client = reqwest::Client::builder().pool_max_idle_per_host(0);
        let client = client.redirect(redirects).build();
        Self(client.expect("the settings of the client are constants"))
    }
}

impl BoundedClient {
    fn request(
        &self,
        uri: &str,
        message: &ClientJsonRpcMessage,
        session: Option<&str>,
        token: Option<String>,
        headers: Headers,
    ) -> Result<RequestBuilder, Failure> {
        let accepted = format!("{EVENT_STREAM_MIME_TYPE}, {JSON_MIME_TYPE}");
        let mut request = self.0.post(uri).header(ACCEPT, accepted);
        if let Some(token) = token {
            request = request.bearer_auth(token);
        }
        for (name, value) in headers {
            if RESERVED_HEADERS.contains(&name.as_str()) {
                return Err(StreamableHttpError::ReservedHeaderConflict(name.to_string()));
            }
            request = request.header(name, value);
        }
        if let Some(session) = session {
            request = request.header(HEADER_SESSION_ID, session);
        }
        let body = serde_json::to_vec(message)?;
        Ok(request.header(CONTENT_TYPE, JSON_MIME_TYPE).body(body))
    }
}

impl StreamableHttpClient for BoundedClient {
    type Error = reqwest::Error;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        token: Option<String>,
        headers: Headers,
    ) -> Result<StreamableHttpPostResponse, Failure> {
        self.post_message_with_max_sse_event_size(uri, message, session, token, headers, MESSAGE_BYTES_MAX)
            .await
    }

    async fn post_message_with_max_sse_event_size(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        token: Option<String>,
        headers: Headers,
        event_bytes_max: usize,
    ) -> Result<StreamableHttpPostResponse, Failure> {
        let request = self.request(&uri, &message, session.as_deref(), token, headers)?;
        let response = request.send().await?;
        if let Some(challenge) = challenge(&response) {
            return Err(challenge);
        }
        match response.status() {
            StatusCode::ACCEPTED | StatusCode::NO_CONTENT => return Ok(StreamableHttpPostResponse::Accepted),
            StatusCode::NOT_FOUND if session.is_some() => return Err(StreamableHttpError::SessionExpired),
            status if !status.is_success() => return refused(response, &message, session.is_some()).await,
            _ => {}
        }
        let awaits_response = matches!(message, ClientJsonRpcMessage::Request(_));
        // The specification wants 202 for these; some servers send an empty 200.
        if !awaits_response && response.content_length() == Some(0) {
            return Ok(StreamableHttpPostResponse::Accepted);
        }
        let session = session_of(&response);
        match content_type(&response) {
            Some(kind) if kind.starts_with(EVENT_STREAM_MIME_TYPE) => {
                let events = bounded_body::events(response, event_bytes_max);
                Ok(StreamableHttpPostResponse::Sse(events, session))
            }
            Some(kind) if kind.starts_with(JSON_MIME_TYPE) => {
                match (bounded_body::read_message(response).await?, message) {
                    (Ok(read), _) => Ok(StreamableHttpPostResponse::Json(read, session)),
                    (Err(unusable), ClientJsonRpcMessage::Request(request)) => {
                        unanswered(&unusable, &request)
                    }
                    (Err(unusable), _) => {
                        tracing::warn!(%unusable, "an MCP server answered what awaits no response");
                        Ok(StreamableHttpPostResponse::Accepted)
                    }
                }
            }
            kind => Err(StreamableHttpError::UnexpectedContentType(kind)),
        }
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session: Arc<str>,
        token: Option<String>,
        headers: Headers,
    ) -> Result<(), Failure> {
        self.0.delete_session(uri, session, token, headers).await
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session: Option<Arc<str>>,
        last_event_id: Option<String>,
        token: Option<String>,
        headers: Headers,
    ) -> Result<Events, Failure> {
        let bytes_max = MESSAGE_BYTES_MAX;
        self.get_stream_with_max_sse_event_size(uri, session, last_event_id, token, headers, bytes_max)
            .await
    }

    async fn get_stream_with_max_sse_event_size(
        &self,
        uri: Arc<str>,
        session: Option<Arc<str>>,
        last_event_id: Option<String>,
        token: Option<String>,
        headers: Headers,
        event_bytes_max: usize,
    ) -> Result<Events, Failure> {
        let http = &self.0;
        let events = http
            .get_stream_with_max_sse_event_size(uri, session, last_event_id, token, headers, event_bytes_max)
            .await?;
        Ok(bounded_body::with_few_values(events))
    }
}

/// A `401` or `403` that says what the server wants.
fn challenge(response: &Response) -> Option<Failure> {
    let header = response.headers().get(WWW_AUTHENTICATE)?;
    let header = String::from_utf8_lossy(header.as_bytes()).into_owned();
    match response.status() {
        StatusCode::UNAUTHORIZED => Some(StreamableHttpError::AuthRequired(AuthRequiredError::new(header))),
        // The scope is read from the header by whoever asks for a token.
        StatusCode::FORBIDDEN => Some(StreamableHttpError::InsufficientScope(
            InsufficientScopeError::new(header, None),
        )),
        _ => None,
    }
}

/// What an error status means to whoever sent the message: a JSON-RPC error if the body is one, otherwise a failure.
async fn refused(
    response: Response,
    message: &ClientJsonRpcMessage,
    is_in_session: bool,
) -> Result<StreamableHttpPostResponse, Failure> {
    let status = response.status();
    let is_json = content_type(&response).is_some_and(|kind| kind.starts_with(JSON_MIME_TYPE));
    let session = session_of(&response);
    let later = match try_later(&response) {
        // Nothing in the body would be used.
        Some(later) if !is_json || status == StatusCode::TOO_MANY_REQUESTS => return Err(later.into()),
        later => later,
    };
    let (error, words) = bounded_body::read_error(response).await;
    if matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) {
        // Never an ordinary error, whatever its body is: somebody has to sign in.
        return Err(StreamableHttpError::UnexpectedServerResponse(words.into()));
    }
    match (message, error) {
        // How a server of the older protocol refuses what it does not know. Its middleware may not give the id back.
        (ClientJsonRpcMessage::Request(request), error)
            if matches!(request.request, ClientRequest::DiscoverRequest(_))
                && status.is_client_error()
                && !is_in_session =>
        {
            let error = error.map_or_else(|| ErrorData::invalid_request(words, None), |error| error.error);
            let error = ServerJsonRpcMessage::error(error, Some(request.id.clone()));
            Ok(StreamableHttpPostResponse::Json(error, None))
        }
        (_, Some(error)) if is_json => {
            let error = ServerJsonRpcMessage::Error(error);
            Ok(StreamableHttpPostResponse::Json(error, session))
        }
        (_, _) => Err(match later {
            Some(later) => later.into(),
            None => StreamableHttpError::UnexpectedServerResponse(words.into()),
        }),
    }
}

/// What a request comes to whose response cannot be used. One that is too large fails its request alone: the server is
/// there, and would send the same again.
fn unanswered(
    unusable: &Unusable,
    request: &JsonRpcRequest<ClientRequest>,
) -> Result<StreamableHttpPostResponse, Failure> {
    let reason = unusable.to_string();
    match (unusable, &request.request) {
        // An error here would be taken for the word of a server of the older protocol.
        (_, ClientRequest::DiscoverRequest(_)) | (Unusable::Malformed { .. }, _) => {
            Err(StreamableHttpError::UnexpectedServerResponse(reason.into()))
        }
        (Unusable::TooLarge(..), _) => {
            let error = ErrorData::internal_error(reason, None);
            let error = ServerJsonRpcMessage::error(error, Some(request.id.clone()));
            Ok(StreamableHttpPostResponse::Json(error, None))
        }
    }
}

/// A status that says nothing of the message, only that the server cannot take it now.
fn try_later(response: &Response) -> Option<HttpStatusError> {
    let status = response.status();
    let retry_after = response.headers().get(RETRY_AFTER);
    let retry_after = retry_after.and_then(|value| value.to_str().ok().map(str::to_owned));
    let is_later = status == StatusCode::TOO_MANY_REQUESTS || status.is_server_error();
    is_later.then(|| HttpStatusError::new(status.as_u16(), retry_after))
}

fn content_type(response: &Response) -> Option<String> {
    let value = response.headers().get(CONTENT_TYPE)?;
    Some(String::from_utf8_lossy(value.as_bytes()).into_owned())
}

fn session_of(response: &Response) -> Option<String> {
    let value = response.headers().get(HEADER_SESSION_ID)?;
    value.to_str().ok().map(str::to_owned)
}
