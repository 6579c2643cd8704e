//! How the requests of a sign-in go out.

use std::time::Duration;

use async_trait::async_trait;
use http::{Request, Response};
use rmcp::transport::auth::{OAuthHttpClient, OAuthHttpClientFuture, OAuthHttpRequest};

use super::account::BoxError;

/// Most bytes of a response of an authorization server.
pub const RESPONSE_BYTES_MAX: usize = 1024 * 1024;
/// How long a response may take, of a client that [`direct`] makes.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(30);

/// Sends the requests of a sign-in: to the server for its metadata, and to the authorization server it names. Servers
/// name addresses of their choice, so whoever implements this decides which may be reached.
#[async_trait]
pub trait OAuthHttp: Send + Sync {
    /// Sends a request and reads the response, at most [`RESPONSE_BYTES_MAX`] bytes of it. A redirect is a response.
    async fn send(&self, request: Request<Vec<u8>>) -> Result<Response<Vec<u8>>, BoxError>;
}

/// A client that reaches every address, for programs on a person's own machine.
pub fn direct() -> Result<reqwest::Client, reqwest::Error> {
    reqwest::Client::builder()
        .redirect(reqwest::redirect::Policy::none())
        .timeout(RESPONSE_TIMEOUT)
        .build()
}

/// As [`direct`] makes one: a client that follows redirects breaks the contract.
#[async_trait]
impl OAuthHttp for reqwest::Client {
    async fn send(&self, request: Request<Vec<u8>>) -> Result<Response<Vec<u8>>, BoxError> {
        let mut response = self.execute(reqwest::Request::try_from(request)?).await?;
        let mut answer = Response::new(Vec::new());
        *answer.status_mut() = response.status();
        *answer.headers_mut() = response.headers().clone();
        while let Some(chunk) = response.chunk().await? {
            if answer.body().len() + chunk.len() > RESPONSE_BYTES_MAX {
                return Err(format!("its answer is longer than {RESPONSE_BYTES_MAX} bytes").into());
            }
            answer.body_mut().extend_from_slice(&chunk);
        }
        Ok(answer)
    }
}

/// An [`OAuthHttp`], as the SDK wants it. No redirect is followed: where one would be right, the SDK follows it itself.
pub(super) struct Through(pub std::sync::Arc<dyn OAuthHttp>);

impl OAuthHttpClient for Through {
    fn execute(&self, request: OAuthHttpRequest) -> OAuthHttpClientFuture<'_> {
        let mut request = request.request;
        if let Some(body) = refresh_without_scope(request.body()) {
            *request.body_mut() = body;
        }
        Box::pin(self.0.send(request))
    }
}

/// The form of a request that renews tokens, without scopes: the granted ones stay then (RFC 6749, 6). The SDK asks for
/// `offline_access` too, and an authorization server that has not granted it refuses.
fn refresh_without_scope(body: &[u8]) -> Option<Vec<u8>> {
    let pairs: Vec<(String, String)> = url::form_urlencoded::parse(body).into_owned().collect();
    let is = |name: &str, value: &str| pairs.iter().any(|(n, v)| n == name && v == value);
    if !is("grant_type", "refresh_token") {
        return None;
    }
    let kept = pairs.iter().filter(|(name, _)| name != "scope");
    let mut form = url::form_urlencoded::Serializer::new(String::new());
    Some(form.extend_pairs(kept).finish().into_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_renewed_with_the_scopes_that_they_have() {
        let renewed =
            refresh_without_scope(b"grant_type=refresh_token&refresh_token=a%2Bb&scope=tools+offline_access");
        assert_eq!(
            renewed.as_deref(),
            Some(&b"grant_type=refresh_token&refresh_token=a%2Bb"[..])
        );
        assert_eq!(
            refresh_without_scope(b"grant_type=authorization_code&scope=tools"),
            None
        );
        assert_eq!(refresh_without_scope(b"{}"), None);
    }
}
