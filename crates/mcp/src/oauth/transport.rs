//! Requests to a server, with the token of an identity.

use std::collections::HashMap;
use std::future::Future;
use std::sync::Arc;

use http::{HeaderName, HeaderValue};
use rmcp::model::ClientJsonRpcMessage;
use rmcp::transport::auth::AuthError;
use rmcp::transport::streamable_http_client::{
    AuthRequiredError, StreamableHttpClient, StreamableHttpError, StreamableHttpPostResponse,
};

use super::authorizer::{Authorizer, OAuthError};
use super::challenge::Challenge;
use crate::bounded_body::Events;
use crate::http_client::BoundedClient;

type Failure = StreamableHttpError<reqwest::Error>;
type Headers = HashMap<HeaderName, HeaderValue>;

/// Sends the token with each request. One that is refused is renewed, if that takes nobody, and the request sent again.
#[derive(Clone)]
pub(crate) struct WithToken {
    pub http: BoundedClient,
    pub authorizer: Arc<Authorizer>,
}

impl WithToken {
    async fn send<T, F: Future<Output = Result<T, Failure>>>(
        &self,
        request: impl Fn(Option<String>) -> F,
    ) -> Result<T, Failure> {
        let token = self.authorizer.token().await.map_err(failure)?;
        let refused = match request(token.clone()).await {
            Ok(answer) => return Ok(answer),
            Err(refused) => refused,
        };
        let Some(challenge) = Challenge::of_http(&refused) else {
            return Err(refused);
        };
        let renewed = self.authorizer.renew(token.as_deref(), &challenge).await;
        match renewed.map_err(failure)? {
            Some(token) => request(Some(token)).await.map_err(as_challenge),
            None => {
                // Whoever signs in next is asked for what is missing.
                self.authorizer.remember(&challenge).await.map_err(failure)?;
                Err(as_challenge(refused))
            }
        }
    }
}

/// The SDK's own variant for a `401`, also where the server said no more than that.
fn as_challenge(refused: Failure) -> Failure {
    match (&refused, Challenge::of_http(&refused)) {
        (StreamableHttpError::AuthRequired(_) | StreamableHttpError::InsufficientScope(_), _) | (_, None) => {
            refused
        }
        (_, Some(_)) => StreamableHttpError::AuthRequired(AuthRequiredError::new(String::new())),
    }
}

fn failure(error: OAuthError) -> Failure {
    StreamableHttpError::Auth(AuthError::OAuthError(error.to_string()))
}

impl StreamableHttpClient for WithToken {
    type Error = reqwest::Error;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        _token: Option<String>,
        headers: Headers,
    ) -> Result<StreamableHttpPostResponse, Failure> {
        self.send(|token| {
            self.http.post_message(
                uri.clone(),
                message.clone(),
                session.clone(),
                token,
                headers.clone(),
            )
        })
        .await
    }

    async fn post_message_with_max_sse_event_size(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        _token: Option<String>,
        headers: Headers,
        event_bytes_max: usize,
    ) -> Result<StreamableHttpPostResponse, Failure> {
        self.send(|token| {
            self.http.post_message_with_max_sse_event_size(
                uri.clone(),
                message.clone(),
                session.clone(),
                token,
                headers.clone(),
                event_bytes_max,
            )
        })
        .await
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session: Arc<str>,
        _token: Option<String>,
        headers: Headers,
    ) -> Result<(), Failure> {
        self.send(|token| {
            self.http
                .delete_session(uri.clone(), session.clone(), token, headers.clone())
        })
        .await
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session: Option<Arc<str>>,
        last_event_id: Option<String>,
        _token: Option<String>,
        headers: Headers,
    ) -> Result<Events, Failure> {
        self.send(|token| {
            let last_event_id = last_event_id.clone();
            self.http.get_stream(
                uri.clone(),
                session.clone(),
                last_event_id,
                token,
                headers.clone(),
            )
        })
        .await
    }

    async fn get_stream_with_max_sse_event_size(
        &self,
        uri: Arc<str>,
        session: Option<Arc<str>>,
        last_event_id: Option<String>,
        _token: Option<String>,
        headers: Headers,
        event_bytes_max: usize,
    ) -> Result<Events, Failure> {
        self.send(|token| {
            self.http.get_stream_with_max_sse_event_size(
                uri.clone(),
                session.clone(),
                last_event_id.clone(),
                token,
                headers.clone(),
                event_bytes_max,
            )
        })
        .await
    }
}
