//! What the code of a package reaches from this process: the hosts that the package names.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures_util::StreamExt as _;
use reqwest::{Client, Method, Url, redirect};
use serde::Deserialize;
use serde_json::json;
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;
use toolgate_package::Package;
use toolgate_script::{Host, HostGone, LogLevel, Operation};

/// Longest request.
const TIME_MAX: Duration = Duration::from_secs(30);
/// Largest response that is read.
const RESPONSE_BYTES_MAX: usize = 512 << 10;
/// How often a waiting call looks whether its result is still wanted.
const LOOK_INTERVAL: Duration = Duration::from_millis(100);

/// The answer to a host call, by its id.
type Answer = (u32, Result<String, String>);

/// Answers the host calls of one script.
pub(super) struct RealmHost {
    package: Arc<Package>,
    cancelled: CancellationToken,
    runtime: Handle,
    answers: (Sender<Answer>, Receiver<Answer>),
}

impl RealmHost {
    /// Made where the runtime is, used on another thread.
    pub fn new(package: Arc<Package>, cancelled: CancellationToken) -> Self {
        Self {
            package,
            cancelled,
            runtime: Handle::current(),
            answers: channel(),
        }
    }
}

impl Host for RealmHost {
    fn begin(&mut self, id: u32, operation: Operation, body: &str) -> Result<(), HostGone> {
        let (package, answers, body) = (self.package.clone(), self.answers.0.clone(), body.to_owned());
        let cancelled = self.cancelled.clone();
        self.runtime.spawn(async move {
            let answer = match operation {
                Operation::Fetch => tokio::select! {
                    answer = fetch(&package, &body) => answer,
                    () = cancelled.cancelled() => Err("the call was cancelled".into()),
                },
                Operation::Storage => Err("there is no storage here".into()),
            };
            // Whoever ran the script has gone.
            let _ = answers.send((id, answer));
        });
        Ok(())
    }

    fn log(&mut self, level: LogLevel, text: &str) -> Result<(), HostGone> {
        tracing::debug!(plugin = %self.package.id(), ?level, "{text}");
        Ok(())
    }

    fn answer(&mut self, wait: Option<Duration>) -> Result<Option<Answer>, HostGone> {
        let until = wait.and_then(|wait| Instant::now().checked_add(wait));
        loop {
            if self.cancelled.is_cancelled() {
                return Err(HostGone);
            }
            let left = until.map_or(LOOK_INTERVAL, |until| {
                until.saturating_duration_since(Instant::now())
            });
            match self.answers.1.recv_timeout(left.min(LOOK_INTERVAL)) {
                Ok(answer) => return Ok(Some(answer)),
                Err(RecvTimeoutError::Disconnected) => return Err(HostGone),
                Err(RecvTimeoutError::Timeout) if until.is_some_and(|until| Instant::now() >= until) => {
                    return Ok(None);
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }
}

#[derive(Deserialize)]
struct Request {
    method: String,
    url: String,
    headers: Vec<(String, String)>,
    text: Option<String>,
    base64: Option<String>,
}

async fn fetch(package: &Arc<Package>, body: &str) -> Result<String, String> {
    let told = |error: reqwest::Error| format!("the request failed: {}", error.without_url());
    let request: Request = serde_json::from_str(body).map_err(|_| "the request cannot be read")?;
    let url: Url = request.url.parse().map_err(|_| "the address cannot be read")?;
    if !package.permissions().allows_fetch(&url) {
        let host = url.host_str().unwrap_or("this address");
        return Err(format!("{host} is not among the hosts that the package asks for"));
    }
    let permitted = package.clone();
    let redirects = redirect::Policy::custom(move |attempt| match attempt.previous().len() > 5 {
        false if permitted.permissions().allows_fetch(attempt.url()) => attempt.follow(),
        _ => attempt.error("it redirects to a host that the package does not ask for, or too often"),
    });
    let client = Client::builder().redirect(redirects).timeout(TIME_MAX).build();
    let method = Method::from_bytes(request.method.as_bytes()).map_err(|_| "there is no such method")?;
    let mut sent = client.map_err(told)?.request(method, url);
    for (name, value) in &request.headers {
        sent = sent.header(name, value);
    }
    let bytes = match (request.text, request.base64) {
        (Some(text), _) => Some(text.into_bytes()),
        (None, Some(text)) => Some(STANDARD.decode(text).map_err(|_| "the body cannot be read")?),
        (None, None) => None,
    };
    if let Some(bytes) = bytes {
        sent = sent.body(bytes);
    }
    let response = sent.send().await.map_err(told)?;
    let (status, url) = (response.status(), response.url().to_string());
    let headers: Vec<(String, String)> = response
        .headers()
        .iter()
        .filter_map(|(name, value)| Some((name.to_string(), value.to_str().ok()?.to_owned())))
        .collect();
    let mut body = Vec::new();
    let mut parts = response.bytes_stream();
    while let Some(part) = parts.next().await {
        body.extend_from_slice(&part.map_err(told)?);
        if body.len() > RESPONSE_BYTES_MAX {
            return Err(format!("the response has more than {RESPONSE_BYTES_MAX} bytes"));
        }
    }
    let mut answer = json!({
        "status": status.as_u16(), "statusText": status.canonical_reason().unwrap_or_default(),
        "url": url, "headers": headers,
    });
    match String::from_utf8(body) {
        Ok(text) => answer["text"] = text.into(),
        Err(error) => answer["base64"] = STANDARD.encode(error.as_bytes()).into(),
    }
    Ok(answer.to_string())
}
