//! Calls of a running gateway's HTTP API, for the commands that need one.

use std::time::Duration;

use anyhow::{Context, bail};
use axum::http::header::{AUTHORIZATION, CONTENT_TYPE};
use axum::http::{HeaderMap, HeaderValue, Method};
use serde_json::Value;
use toolgate_egress::{BodyLimit, Egress, Policy, Proxy, Request};

/// Longest wait for the gateway: removing a large project takes a while.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(120);
/// Most bytes of an answer.
const ANSWER_BYTES_MAX: usize = 16 << 20;

/// A running gateway, and the key that opens it.
pub struct Api {
    /// Address of the gateway.
    pub url: String,
    /// The key, sent as a bearer token.
    pub key: String,
}

impl Api {
    /// Sends a request to the path below `/v1`, with these flags as its query; gives the body of the answer. An error
    /// of the gateway is one in its words.
    pub async fn send(
        &self,
        method: Method,
        path: &[&str],
        flags: &[&str],
        body: Option<String>,
    ) -> anyhow::Result<Value> {
        let mut url: url::Url = self.url.parse().with_context(|| {
            format!(
                "{:?} is no address, expected one like http://127.0.0.1:8787",
                self.url
            )
        })?;
        url.path_segments_mut()
            .map_err(|()| anyhow::anyhow!("{:?} is no address of a gateway", self.url))?
            .pop_if_empty()
            .push("v1")
            .extend(path);
        for flag in flags {
            url.query_pairs_mut().append_pair(flag, "true");
        }
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let bearer = HeaderValue::try_from(format!("Bearer {}", self.key));
        headers.insert(AUTHORIZATION, bearer.context("the key cannot be sent")?);
        // The person who types the address may go wherever it leads.
        let policy = Policy::trusted(Proxy::Environment).within(ANSWER_TIMEOUT);
        let request = Request {
            method,
            url,
            headers,
            body: body.map(Into::into),
            limit: BodyLimit::Whole(ANSWER_BYTES_MAX),
        };
        let answer = Egress::new().client(policy).send(request).await;
        let answer = answer.with_context(|| format!("no gateway answers at {}", self.url))?;
        let status = answer.status;
        let body: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
        if !status.is_success() {
            bail!("{}", problem(status.as_u16(), &body));
        }
        Ok(body)
    }
}

/// The error message of a response: its detail, or every problem with its pointer when there are several.
fn problem(status: u16, body: &Value) -> String {
    let mut message = match body["detail"].as_str() {
        Some(detail) => detail.to_owned(),
        None => format!("the gateway answered {status}"),
    };
    let problems = body["errors"].as_array().map_or(&[][..], Vec::as_slice);
    // The detail repeats the only one.
    if problems.len() > 1 {
        for problem in problems {
            let (pointer, text) = (text(problem, "pointer"), text(problem, "message"));
            message.push_str(&format!("\n  {pointer} {text}"));
        }
    }
    message
}

/// A member that is a text; a dash if it is not there.
pub fn text<'a>(value: &'a Value, member: &str) -> &'a str {
    value[member].as_str().unwrap_or("-")
}

/// One line per item, with these members.
pub fn lines(items: &Value, members: &[&str]) -> String {
    let items = items.as_array().into_iter().flatten();
    items
        .map(|item| {
            let cells: Vec<&str> = members.iter().map(|member| text(item, member)).collect();
            cells.join("  ") + "\n"
        })
        .collect()
}
