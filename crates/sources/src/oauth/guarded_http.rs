//! Requests of sign-ins, through the gateway's guarded client.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use http::header::LOCATION;
use http::{HeaderValue, Request, Response, StatusCode};
use toolgate_egress::{BodyLimit, Egress, Hop, Policy};
use toolgate_kernel::id::ProjectId;
use toolgate_mcp::oauth::{BoxError, OAuthHttp, RESPONSE_BYTES_MAX};
use url::Url;

use crate::settings::McpResolver;

/// How long an authorization server may take for a response.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Reaches what the project may reach. The addresses come from the server, so one that is inside is refused unless the
/// operator has allowed it, or has named the server itself.
pub(super) struct GuardedHttp {
    pub egress: Egress,
    pub resolver: Arc<dyn McpResolver>,
    pub project: ProjectId,
    pub server: Url,
    pub is_operators: bool,
}

#[async_trait]
impl OAuthHttp for GuardedHttp {
    async fn send(&self, request: Request<Vec<u8>>) -> Result<Response<Vec<u8>>, BoxError> {
        let url = Url::parse(&request.uri().to_string())?;
        let settings = self.resolver.mcp_settings(self.project).await?;
        let policy = match self.is_operators && url.origin() == self.server.origin() {
            true => Policy::server(&self.server),
            false => Policy::public(settings.allow.clone()),
        };
        let (parts, body) = request.into_parts();
        let request = toolgate_egress::Request {
            method: parts.method,
            url,
            headers: parts.headers,
            body: (!body.is_empty()).then(|| body.into()),
            limit: BodyLimit::Whole(RESPONSE_BYTES_MAX),
        };
        let client = self.egress.client(policy.within(TIMEOUT));
        let mut answer = Response::new(Vec::new());
        match client.hop(request).await? {
            Hop::Response(response) => {
                *answer.status_mut() = response.status;
                *answer.headers_mut() = response.headers;
                *answer.body_mut() = response.body;
            }
            Hop::Redirect(next) => {
                *answer.status_mut() = StatusCode::FOUND;
                let location = HeaderValue::from_str(next.url.as_str())?;
                answer.headers_mut().insert(LOCATION, location);
            }
        }
        Ok(answer)
    }
}
