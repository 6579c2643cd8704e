//! What the SDK's connections promise, against real servers on loopback: TLS, proxies, connections that are kept.

mod connections;
mod proxy;
mod server;
#[cfg(feature = "tls")]
mod tls;

use std::time::Duration;

use futures_util::StreamExt as _;
use tokio::sync::mpsc;
use tokio::time::timeout;
use toolgate_client::events::Seq;
use toolgate_client::{Client, Error};

use server::RUN;

/// Longest wait for what happens at once.
const SOON: Duration = Duration::from_secs(30);

/// Asks whether the gateway is there, and reads the events of a run. The words of an error with all its causes.
async fn ask_and_follow(client: &Client) -> Result<Vec<String>, String> {
    let (sender, mut failures) = mpsc::unbounded_channel();
    let waiting = |error: &Error| sender.send(words(error)).expect("it is read below");
    tokio::select! {
        ready = client.ready(waiting) => ready.map_err(|error| words(&error))?,
        Some(failure) = failures.recv() => return Err(failure),
    }
    let run = RUN.parse().expect("an id");
    let events = client.runs().subscribe(run, Seq::default());
    let deltas = events.map(|event| {
        let event = event.map_err(|error| words(&error))?;
        let delta = &event.json.to_value()["delta"];
        Ok(delta.as_str().unwrap_or("the end").to_owned())
    });
    let all = timeout(SOON, deltas.collect::<Vec<_>>()).await;
    all.expect("the run ends").into_iter().collect()
}

fn words(error: &Error) -> String {
    let causes = std::iter::successors(std::error::Error::source(error), |cause| cause.source());
    causes.fold(error.to_string(), |words, cause| format!("{words}: {cause}"))
}
