//! The web: reads a page.

mod page;
mod robots;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use http::{HeaderMap, HeaderValue, Method, header};
use serde::Deserialize;
use serde_json::{Value, json};
use toolgate_engine::tools::{CallContext, CallFailure};
use toolgate_kernel::agent::Action;
use toolgate_kernel::call::ErrorCode;
use toolgate_kernel::tool::Retry;
use url::Url;

use crate::outside::{Ask, Limit, Outside};
use crate::shelf::input;
use crate::toolkit::ServerTool;

/// Characters of a page unless the model asks for another number.
const LENGTH: usize = 50_000;
const LENGTH_MAX: usize = 200_000;
/// How much of a page is looked at.
const PAGE_BYTES_MAX: usize = 2 << 20;
const TIMEOUT: Duration = Duration::from_secs(60);
const ACCEPT: &str = "text/markdown, text/html;q=0.9, text/plain;q=0.8, */*;q=0.5";

/// Reads a page of the web.
pub(crate) struct WebFetch {
    outside: Arc<Outside>,
    /// None when the operator does not care.
    robots: Option<robots::Robots>,
}

impl WebFetch {
    pub(crate) fn new(outside: Arc<Outside>, robots: Manners) -> Self {
        let robots = match robots {
            Manners::Polite => Some(robots::Robots::default()),
            Manners::Blunt => None,
        };
        Self { outside, robots }
    }
}

/// Whether pages are left alone whose owner asks for it in `robots.txt`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Manners {
    /// They are.
    #[default]
    Polite,
    /// They are read all the same.
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
            description: "Read a page of the web. Gives its readable text as Markdown, with its title and final address."
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
        if let Some(robots) = &self.robots
            && !robots.allow(&self.outside, &url, context.now).await?
        {
            let words = "the owner of the site asks programs in its robots.txt not to read this page";
            return Err(CallFailure::new(ErrorCode::PermissionDenied, words));
        }
        context.tell("asking for the page");
        let answer = self.outside.send(ask(url, Limit::Cut(PAGE_BYTES_MAX))).await?;
        let status = answer.status;
        if status.is_client_error() || status.is_server_error() {
            let reason = status.canonical_reason().unwrap_or_default();
            return Err(CallFailure::failed(format!(
                "the server answered {} {reason}",
                status.as_u16()
            )));
        }
        let (url, cut) = (answer.url.to_string(), answer.cut);
        context.tell("reading the page");
        // Reading a page is work, not waiting.
        let read = tokio::task::spawn_blocking(move || page::read(&answer)).await;
        let page = read.map_err(|_| CallFailure::failed("the page cannot be read"))??;
        let length = max_length.unwrap_or(LENGTH);
        let content: String = page.text.chars().take(length).collect();
        let truncated = cut || content.len() < page.text.len();
        Ok(json!({"url": url, "title": page.title, "content": content, "truncated": truncated}))
    }
}

fn ask(url: Url, limit: Limit) -> Ask {
    Ask {
        method: Method::GET,
        url,
        headers: HeaderMap::from_iter([(header::ACCEPT, HeaderValue::from_static(ACCEPT))]),
        body: None,
        limit,
    }
}
