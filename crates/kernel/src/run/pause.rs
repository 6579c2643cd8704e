//! Calls that wait for a moment or a signal.

use serde_json::{Value, json};

use super::{Rejected, Run};
use crate::call::ErrorCode;
use crate::call::{Call, CallState, Outcome};
use crate::event::{Event, Pause, ToolExecuting};
use crate::id::CallId;
use crate::json::Json;
use crate::time::Time;
use crate::tool::{Execution, Tool, Wait};
use std::time::Duration;

impl Run {
    /// The pauses that begin now.
    pub(super) fn pauses(&self, now: Time) -> Vec<Event> {
        let super::Phase::Calling { first } = self.state.phase else {
            return Vec::new();
        };
        let fresh = self.state.calls[first as usize..]
            .iter()
            .filter(|call| call.state == CallState::Ready);
        let begun = fresh.filter_map(|call| {
            let tool = call.definition.as_ref()?;
            let Execution::Waiting(wait) = &tool.execution else {
                return None;
            };
            let pause = pause(*wait, tool, &call.input().to_value(), now);
            Some(ToolExecuting::of(&call.tool, None, None, Some(pause), None, None).into())
        });
        begun.collect()
    }

    /// What a signal makes of a call.
    pub(super) fn signalled(&self, id: CallId, value: &Json) -> Result<Outcome, Rejected> {
        let call = self.call(id).ok_or(Rejected::Unknown)?;
        let outcome = Outcome::Output(json!({ "signal": value.to_value() }).into());
        match &call.state {
            CallState::Paused(Pause { signal: true, .. }) => Ok(outcome),
            CallState::Settled(settled) if settled.outcome == outcome => Err(Rejected::Repeated),
            CallState::Settled(settled) if waits_for_signal(call) => Err(super::take::gone(settled)),
            _ => Err(Rejected::Unknown),
        }
    }
}

fn waits_for_signal(call: &Call) -> bool {
    let tool = call.definition.as_ref();
    tool.is_some_and(|tool| matches!(tool.execution, Execution::Waiting(Wait::Signal | Wait::Input)))
}

fn pause(wait: Wait, tool: &Tool, input: &Value, now: Time) -> Pause {
    let until = |until| Pause { until, signal: false };
    match wait {
        Wait::For(span) => until(now.after(span)),
        Wait::Until(moment) => until(moment),
        Wait::Signal => Pause {
            until: now.after(tool.timeout),
            signal: true,
        },
        Wait::Input => match moments(input) {
            (Some(span), _) => until(now.after(span.min(tool.timeout))),
            (None, Some(moment)) => until(moment.min(now.after(tool.timeout))),
            (None, None) => pause(Wait::Signal, tool, input, now),
        },
    }
}

/// How far `seconds` and `until`, or `until` and now, may be apart and still mean the same moment.
const SAME_MOMENT: Duration = Duration::from_secs(60);

/// Why the input of a `waiting` tool names no moment to come. A `until` that is over beside `seconds` is ignored: models
/// that do not know the date write one.
pub(super) fn unclear(name: &str, input: &Value, now: Time) -> Option<String> {
    let (seconds, until) = moments(input);
    let until = until?;
    match seconds {
        // A moment that passed while the model wrote is no mistake: the wait ends at once.
        None if until.after(SAME_MOMENT) <= now => Some(format!(
            "\"until\" is over: {until}. {} Call {name} again with the right day.",
            now.today()
        )),
        Some(span) if until > now => {
            let other = now.after(span);
            let apart = other.since(until).max(until.since(other));
            (apart > SAME_MOMENT).then(|| {
                format!(
                    "\"seconds\" and \"until\" name two moments. Call {name} again with seconds alone, without until."
                )
            })
        }
        None | Some(_) => None,
    }
}

fn moments(input: &Value) -> (Option<Duration>, Option<Time>) {
    let seconds = input["seconds"].as_f64();
    let span = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    (span, serde_json::from_value(input["until"].clone()).ok())
}

/// How a pause ends when its time has come.
pub(super) fn ended(call: &Call, pause: Pause) -> Outcome {
    match pause.signal {
        true => Outcome::error(
            ErrorCode::Timeout,
            format!("no signal came for {} in time", call.tool.name),
        ),
        false => Outcome::Output(json!({ "waitedUntil": pause.until }).into()),
    }
}
