//! `toolgate health`: whether a running gateway is ready, as an exit code. Container images have no other HTTP client.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use axum::http::{HeaderMap, Method};
use clap::Args;
use serde_json::Value;
use toolgate_egress::{BodyLimit, Egress, Policy, Proxy, Request};

use crate::output;

/// Longest wait for the gateway, which itself waits 5 s at most for its store.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(6);
/// Most bytes of an answer.
const ANSWER_BYTES_MAX: usize = 64 << 10;

#[derive(Debug, Args)]
pub struct Health {
    /// Address of the gateway
    #[arg(long, env = "TOOLGATE_URL", default_value = "http://127.0.0.1:8787")]
    url: String,
}

impl Health {
    /// Succeeds if the gateway takes requests; fails, and says why, if it does not or nobody answers.
    pub fn run(self) -> anyhow::Result<ExitCode> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let url = format!("{}/readyz", self.url.trim_end_matches('/'));
        let request = Request {
            method: Method::GET,
            url: url
                .parse()
                .with_context(|| format!("{url:?} is no address, expected one like http://127.0.0.1:8787"))?,
            headers: HeaderMap::new(),
            body: None,
            limit: BodyLimit::Whole(ANSWER_BYTES_MAX),
        };
        // Beside the gateway: a proxy of the environment is for what lies outside.
        let client = Egress::new().client(Policy::trusted(Proxy::Ignored).within(ANSWER_TIMEOUT));
        let answer = runtime
            .block_on(client.send(request))
            .with_context(|| format!("no gateway answers at {}", self.url))?;
        if answer.status.is_success() {
            output::print("ready\n")?;
            return Ok(ExitCode::SUCCESS);
        }
        let problem: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
        let detail = problem["detail"].as_str().unwrap_or("no gateway");
        output::print(&format!(
            "not ready, status {}: {detail}\n",
            answer.status.as_u16()
        ))?;
        Ok(ExitCode::FAILURE)
    }
}
