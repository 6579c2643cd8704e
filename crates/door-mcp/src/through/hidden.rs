//! What a server was given (headers, variables, secrets) is removed from what it says to clients. A message in which nothing of it
//! stands passes as it was written.

use serde_json::value::RawValue;
use toolgate_mcp::link::message::{Members, Message, Outcome};

use super::upstream::{Upstream, lock};
use super::upstreams::Hide;

impl Upstream {
    /// A message as the client reads it.
    pub(super) fn written(&self, message: Message) -> Vec<u8> {
        let bytes = message.write();
        let hide = lock(&self.hide).clone();
        // What is written as JSON is UTF-8.
        let has_some = std::str::from_utf8(&bytes).is_ok_and(|text| hide(text).is_some());
        match has_some {
            false => bytes,
            true => without(&hide, message).write(),
        }
    }

    /// An outcome as the client reads it.
    pub(super) fn hidden(&self, outcome: Outcome) -> Outcome {
        let hide = lock(&self.hide).clone();
        outcome_without(&hide, outcome)
    }
}

/// The message with the same id and method: those are the client's, and the protocol's.
fn without(hide: &Hide, mut message: Message) -> Message {
    match &mut message {
        Message::Request(request) => hide_in_members(hide, &mut request.params),
        Message::Notification(notice) => hide_in_members(hide, &mut notice.params),
        Message::Response(response) => {
            let outcome = std::mem::replace(&mut response.outcome, Outcome::result(()));
            response.outcome = outcome_without(hide, outcome);
        }
    }
    message
}

fn hide_in_members(hide: &Hide, members: &mut Option<Members>) {
    let Some(known) = members else { return };
    if let Some(hidden) = hidden_json(hide, &known.raw()) {
        *members = Members::of(&hidden);
    }
}

fn outcome_without(hide: &Hide, outcome: Outcome) -> Outcome {
    match outcome {
        Outcome::Result(result) => Outcome::Result(hidden_json(hide, &result).unwrap_or(result)),
        Outcome::Error(error) => Outcome::Error(hidden_json(hide, &error).unwrap_or(error)),
    }
}

fn hidden_json(hide: &Hide, json: &RawValue) -> Option<Box<RawValue>> {
    let hidden = hide(json.get())?;
    RawValue::from_string(hidden).ok()
}
