//! Tasks of a server that are waited for in the place of a client that knows none.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use toolgate_mcp::link::LinkError;
use toolgate_mcp::link::message::{Id, Members, Outcome, Request};

use super::calls::unreachable;
use super::downwards::{Crossed, QUESTIONS_MAX};
use super::era::INTERNAL;
use super::headers;
use super::modern_link::ModernLink;
use super::reply::{Closed, Reply};
use super::upstream::response;

/// Between two looks at a task whose server does not say.
const POLL_DEFAULT: Duration = Duration::from_secs(1);
/// Whatever the server says.
const POLL: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(30));
/// Longest time that the cancellation of a task may take.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(10);

/// How the wait for a task ended.
pub(super) enum Polled {
    /// With the result of the task, or its error.
    Ended(Outcome),
    /// Without either: the server could not be asked, or does not answer for the task.
    Failed(Outcome),
}

/// Waits for the end of a task. What it asks for is asked of the client. A wait that is given up cancels the task.
pub(super) async fn poll(
    session: &Crossed,
    link: &Arc<ModernLink>,
    created: &Members,
    reply: &Reply,
) -> Result<Polled, Closed> {
    let Some(id) = created.read::<String>("taskId") else {
        return Ok(Polled::Failed(Outcome::error(
            INTERNAL,
            "the MCP server made a task without an id",
        )));
    };
    let mut task = Task {
        id,
        session,
        link: link.clone(),
        is_over: false,
    };
    let began = Instant::now();
    let mut answered = BTreeSet::new();
    let mut state = created.clone();
    while began.elapsed() < session.upstream.limits.task_wait {
        let interval = state
            .read("pollIntervalMs")
            .map_or(POLL_DEFAULT, Duration::from_millis);
        tokio::time::sleep(interval.clamp(POLL.0, POLL.1)).await;
        state = match task.ask("tasks/get", Members::default()).await {
            Outcome::Result(state) => Members::of(&state).unwrap_or_default(),
            error => return Ok(Polled::Failed(error)),
        };
        match state.read::<String>("status").as_deref() {
            Some("completed") => {
                task.is_over = true;
                let result = state.remove("result").unwrap_or_else(|| Members::default().raw());
                return Ok(Polled::Ended(Outcome::Result(result)));
            }
            Some("failed") => {
                task.is_over = true;
                let error = state.remove("error").map(Outcome::Error);
                let unsaid = || Outcome::error(INTERNAL, "the task failed");
                return Ok(Polled::Ended(error.unwrap_or_else(unsaid)));
            }
            Some("cancelled") => {
                task.is_over = true;
                return Ok(Polled::Failed(Outcome::error(INTERNAL, "the task was cancelled")));
            }
            Some("input_required") => {
                let fresh = unanswered(&state, &answered);
                if fresh.is_empty() {
                    continue;
                }
                let mut asked = Members::default();
                asked.set("inputRequests", &fresh);
                let answers = match session.answered(&asked, reply).await? {
                    Ok(answers) => answers,
                    Err(outcome) => return Ok(Polled::Failed(outcome)),
                };
                answered.extend(fresh.iter().map(|(name, _)| name.to_owned()));
                if answered.len() > QUESTIONS_MAX {
                    let words = format!("the task asked more than {QUESTIONS_MAX} questions");
                    return Ok(Polled::Failed(Outcome::error(INTERNAL, words)));
                }
                let mut params = Members::default();
                params.set("inputResponses", answers);
                if let error @ Outcome::Error(_) = task.ask("tasks/update", params).await {
                    return Ok(Polled::Failed(error));
                }
            }
            _ => {}
        }
    }
    Ok(Polled::Failed(Outcome::error(
        INTERNAL,
        "the task did not end in time",
    )))
}

/// Questions that the client has not been asked yet.
fn unanswered(state: &Members, answered: &BTreeSet<String>) -> Members {
    let mut questions = state.object("inputRequests").unwrap_or_default();
    questions.retain(|name| !answered.contains(name));
    questions
}

/// A task that is waited for. Dropping it before its end cancels it.
struct Task<'s> {
    id: String,
    session: &'s Crossed,
    link: Arc<ModernLink>,
    is_over: bool,
}

impl Task<'_> {
    async fn ask(&self, method: &str, params: Members) -> Outcome {
        let request = self.request(method, params);
        let made = headers::made(&request, &[], &serde_json::Value::Null);
        let asked = async { response(self.link.request(request, made).await?).await };
        let asked = tokio::time::timeout(self.session.upstream.limits.handshake, asked).await;
        let late = |_| {
            Err(LinkError::Unreachable(
                "it does not say how far a task is in time".into(),
            ))
        };
        asked
            .unwrap_or_else(late)
            .unwrap_or_else(|error| unreachable(&self.session.upstream, &error))
    }

    fn request(&self, method: &str, mut params: Members) -> Request {
        params.set("taskId", &self.id);
        self.session.with_meta(Request {
            id: Id::text("toolgate-task"),
            method: method.to_owned(),
            params: Some(params),
        })
    }
}

impl Drop for Task<'_> {
    fn drop(&mut self) {
        if self.is_over {
            return;
        }
        let request = self.request("tasks/cancel", Members::default());
        let made = headers::made(&request, &[], &serde_json::Value::Null);
        let link = self.link.clone();
        self.session.errands.spawn(async move {
            // A server that cannot be told ends the task by its own limit.
            let cancelled = async { response(link.request(request, made).await?).await };
            let _ = tokio::time::timeout(CANCEL_TIMEOUT, cancelled).await;
        });
    }
}
