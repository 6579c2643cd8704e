//! What a server says when it wants a token, or one that permits more.

use std::error::Error;

use rmcp::service::{ClientInitializeError, ServiceError};
use rmcp::transport::auth::AuthError;
use rmcp::transport::streamable_http_client::{
    AuthRequiredError, InsufficientScopeError, StreamableHttpError,
};

/// A server's `401`, or its `403` for want of a scope.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Challenge {
    /// Value of the header `WWW-Authenticate`; none if the server sent none.
    pub(crate) header: Option<String>,
    /// The token is good, and its scopes are not enough.
    pub(crate) wants_scope: bool,
}

impl Challenge {
    /// Whether the server knows who asks, and wants more scopes.
    pub fn wants_scope(&self) -> bool {
        self.wants_scope
    }

    /// The challenge that this failure of a connection was, if it was one.
    pub(crate) fn of_connecting(error: &ClientInitializeError) -> Option<Self> {
        match error {
            ClientInitializeError::TransportError { error, .. } => Self::find(&*error.error),
            ClientInitializeError::LegacyFallbackFailed { fallback, .. } => Self::of_connecting(fallback),
            _ => None,
        }
    }

    /// The challenge that this failure of a request was, if it was one.
    pub(crate) fn of_request(error: &ServiceError) -> Option<Self> {
        match error {
            ServiceError::TransportSend(error) => Self::find(&*error.error),
            _ => None,
        }
    }

    /// Why there was no token for a request, if that is why it failed. The server has not seen it.
    pub(crate) fn unsigned(error: &ServiceError) -> Option<String> {
        let ServiceError::TransportSend(error) = error else {
            return None;
        };
        match error.error.downcast_ref::<StreamableHttpError<reqwest::Error>>() {
            Some(StreamableHttpError::Auth(AuthError::OAuthError(words))) => Some(words.clone()),
            _ => None,
        }
    }

    /// The challenge that this response was, if it was one.
    pub(crate) fn of_http(error: &StreamableHttpError<reqwest::Error>) -> Option<Self> {
        match error {
            StreamableHttpError::AuthRequired(refused) => {
                Some(Self::new(&refused.www_authenticate_header, false))
            }
            StreamableHttpError::InsufficientScope(refused) => {
                Some(Self::new(&refused.www_authenticate_header, true))
            }
            // A `401` without the header: the metadata is then at its well-known address.
            StreamableHttpError::UnexpectedServerResponse(words) if words.starts_with("HTTP 401") => {
                Some(Self::new("", false))
            }
            StreamableHttpError::Client(error)
                if error.status() == Some(reqwest::StatusCode::UNAUTHORIZED) =>
            {
                Some(Self::new("", false))
            }
            _ => None,
        }
    }

    /// The challenge that a response is, if it is one.
    pub(crate) fn of_response(response: &reqwest::Response) -> Option<Self> {
        let header = response.headers().get(reqwest::header::WWW_AUTHENTICATE);
        let header = header.and_then(|header| header.to_str().ok()).unwrap_or_default();
        match response.status() {
            reqwest::StatusCode::UNAUTHORIZED => Some(Self::new(header, false)),
            reqwest::StatusCode::FORBIDDEN if header.contains("insufficient_scope") => {
                Some(Self::new(header, true))
            }
            _ => None,
        }
    }

    fn find(error: &(dyn Error + Send + Sync + 'static)) -> Option<Self> {
        let mut at: Option<&(dyn Error + 'static)> = Some(error);
        while let Some(error) = at {
            if let Some(refused) = error.downcast_ref::<AuthRequiredError>() {
                return Some(Self::new(&refused.www_authenticate_header, false));
            }
            if let Some(refused) = error.downcast_ref::<InsufficientScopeError>() {
                return Some(Self::new(&refused.www_authenticate_header, true));
            }
            at = error.source();
        }
        None
    }

    fn new(header: &str, wants_scope: bool) -> Self {
        Self {
            header: (!header.is_empty()).then(|| header.to_owned()),
            wants_scope,
        }
    }
}
