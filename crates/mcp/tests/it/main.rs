//! Connections to servers that misbehave: too large, too slow, or too much.

mod floods;
mod large_responses;
mod slow_starts;

use std::future::Future;
use std::time::Duration;

/// How long anything may take that must happen.
const PATIENCE: Duration = Duration::from_secs(120);

/// What must happen soon.
async fn soon<T>(what: &str, happening: impl Future<Output = T>) -> T {
    let happened = tokio::time::timeout(PATIENCE, happening).await;
    happened.unwrap_or_else(|_| panic!("{what}: not within {PATIENCE:?}"))
}
