//! `web_fetch`: reads a web page.

mod robots;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use http::{HeaderMap, HeaderValue, Method, header};
use serde::Deserialize;
use serde_json::{Value, json};
use toolgate_egress::{BodyLimit, Client, EgressError, Hop, Request, Response};
use toolgate_engine::tools::{CallContext, CallFailure};
use toolgate_kernel::agent::Action;
use toolgate_kernel::call::ErrorCode;
use toolgate_kernel::time::Time;
use toolgate_kernel::tool::Retry;
use url::Url;

use crate::outbound::{self, Outbound};
use crate::readable::{PDF_BYTES_MAX, Reader, Source, Unreadable, Wanted};
use crate::records::input;
use crate::toolkit::ServerTool;

/// Default of the characters returned of a page.
const LENGTH: usize = 50_000;
const LENGTH_MAX: usize = 200_000;
const TIMEOUT: Duration = Duration::from_secs(60);
const ACCEPT: &str = "text/markdown, text/html;q=0.9, text/plain;q=0.8, application/pdf;q=0.7, */*;q=0.5";

/// Reads a web page.
pub(crate) struct WebFetch {
    outbound: Outbound,
    robots: robots::Robots,
    reader: Arc<Reader>,
}

impl WebFetch {
    pub(crate) fn new(outbound: Outbound, reader: Arc<Reader>) -> Self {
        Self {
            outbound,
            robots: robots::Robots::default(),
            reader,
        }
    }

    /// Follows redirects, as long as the `robots.txt` of every site on the way allows it.
    async fn follow(
        &self,
        client: &Client,
        manners: Manners,
        mut request: Request,
        now: Time,
    ) -> Result<Response, EgressError> {
        let redirects_max = client.policy().redirects_max;
        for _ in 0..=redirects_max {
            client.check(&request.url)?;
            if manners == Manners::Polite && !self.robots.allow(client, &request.url, now).await? {
                let words = "the owner of the site asks programs in its robots.txt not to read this page";
                return Err(EgressError::Refused(words.into()));
            }
            match client.hop(request).await? {
                Hop::Redirect(next) => request = next,
                Hop::Response(response) => return Ok(response),
            }
        }
        Err(EgressError::redirects(redirects_max))
    }
}

/// Whether `robots.txt` is obeyed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Manners {
    /// It is; the default.
    #[default]
    Polite,
    /// It is ignored.
    Blunt,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct FetchInput {
    url: String,
    max_length: Option<usize>,
}

#[async_trait]
impl ServerTool for WebFetch {
    fn name(&self) -> &'static str {
        "web_fetch"
    }
    fn action(&self) -> Action {
        Action {
            description: "Read a page or a PDF of the web. Gives its readable text as Markdown, with its title and final address."
                .into(),
            parameters: json!({
                "type": "object",
                "properties": {
                    "url": {"type": "string", "maxLength": 8192, "description": "Address of the page, with https:// or http://."},
                    "maxLength": {
                        "type": "integer", "minimum": 1, "maximum": LENGTH_MAX,
                        "description": format!("Most characters to give. Default: {LENGTH}."),
                    },
                },
                "required": ["url"],
            }),
            timeout: TIMEOUT,
            retry: Retry::Safe,
        }
    }
    async fn call(&self, given: Value, context: &CallContext) -> Result<Value, CallFailure> {
        let FetchInput { url, max_length } = input(given)?;
        let url = Url::parse(url.trim()).map_err(|error| {
            let words =
                format!("the address is not one: {error}; expected one like \"https://example.com/page\"");
            CallFailure::new(ErrorCode::ValidationFailed, words)
        })?;
        context.tell("asking for the page");
        let (world, client) = self.outbound.of(context).await?;
        let request = request(url, BodyLimit::Cut(PDF_BYTES_MAX));
        let answer = self
            .follow(&client, world.manners, request, context.now)
            .await
            .map_err(outbound::failed)?;
        let status = answer.status;
        if status.is_client_error() || status.is_server_error() {
            let reason = status.canonical_reason().unwrap_or_default();
            return Err(CallFailure::failed(format!(
                "the server answered {} {reason}",
                status.as_u16()
            )));
        }
        let kind = answer.headers.get(header::CONTENT_TYPE);
        let source = Source {
            kind: kind
                .and_then(|kind| kind.to_str().ok())
                .unwrap_or_default()
                .into(),
            url: Some(answer.url.to_string()),
            wanted: Wanted::Article,
            cut: answer.cut,
            data: answer.body,
        };
        context.tell("reading the page");
        let page = self.reader.read(source, context.share()).await?;
        let length = max_length.unwrap_or(LENGTH);
        let content: String = page.text.chars().take(length).collect();
        let truncated = page.cut || content.len() < page.text.len();
        Ok(
            json!({"url": answer.url.as_str(), "title": page.title, "content": content, "truncated": truncated}),
        )
    }
}

impl From<Unreadable> for CallFailure {
    fn from(why: Unreadable) -> Self {
        Self::failed(why.to_string())
    }
}

fn request(url: Url, limit: BodyLimit) -> Request {
    Request {
        method: Method::GET,
        url,
        headers: HeaderMap::from_iter([(header::ACCEPT, HeaderValue::from_static(ACCEPT))]),
        body: None,
        limit,
    }
}
