//! What a turn waits for, in words for the person at the terminal.

use std::collections::BTreeMap;
use std::time::Instant;

use toolgate_client::events::{Event as Body, Status};
use toolgate_client::{CallId, Chunk, Connection};
use toolgate_kernel::tool::Placement;

/// What the turn waits for, and since when.
#[derive(Debug)]
pub struct Waits {
    /// When the last thing happened.
    pub since: Instant,
    is_lost: bool,
    status: Option<Status>,
    /// Calls without an outcome: the tool, and whether a client executes it.
    calls: BTreeMap<CallId, (String, Placement)>,
}

impl Default for Waits {
    fn default() -> Self {
        Self {
            since: Instant::now(),
            is_lost: false,
            status: None,
            calls: BTreeMap::new(),
        }
    }
}

impl Waits {
    /// Takes note of what happened.
    pub fn update(&mut self, chunk: &Chunk) {
        match chunk {
            Chunk::Connection(connection) => self.is_lost = *connection != Connection::Up,
            Chunk::Event(event) => match &event.body {
                Some(Body::RunStatus(moved)) => self.status = Some(moved.status),
                Some(Body::ToolInputAvailable(call)) => {
                    let call_of = (call.tool_name.to_string(), call.placement);
                    self.calls.insert(call.tool_call_id, call_of);
                }
                Some(body) => {
                    if let Some(call) = body.settles() {
                        self.calls.remove(&call);
                    }
                }
                None => {}
            },
            _ => {}
        }
        self.since = Instant::now();
    }

    /// What it waits for.
    pub fn words(&self) -> String {
        if self.is_lost {
            return "waiting for the gateway".into();
        }
        let names = |placed: fn(Placement) -> bool| {
            let calls = self.calls.values().filter(|(_, placement)| placed(*placement));
            let names: Vec<&str> = calls.map(|(name, _)| name.as_str()).collect();
            names.join(", ")
        };
        match self.status {
            Some(Status::Queued) => "waiting for a turn at the gateway".into(),
            Some(Status::WaitingApproval) => "waiting for an approval".into(),
            Some(Status::WaitingTime) => "waiting for a time or a signal".into(),
            Some(Status::WaitingTool) => {
                let on_clients = names(|placement| placement == Placement::Client);
                match on_clients.is_empty() {
                    true => format!("waiting for {}", names(|_| true)),
                    false => format!("waiting for a client that runs {on_clients}"),
                }
            }
            _ if self.calls.is_empty() => "waiting for the model".into(),
            _ => format!("waiting for {}", names(|_| true)),
        }
    }
}
