//! What time does to a run: deadlines that pass, steps that are tried again, and a gateway that comes back.

use std::time::Duration;

use super::Log;
use crate::call::{CallState, ErrorCode, Outcome};
use crate::event::{EndReason, Status, StepRetry, ToolReleased};
use crate::run::approve::denial;
use crate::run::pause::ended;
use crate::run::question::expired;
use crate::run::{Phase, deadline};
use crate::tool::Retry;

/// The first wait before a broken step is asked again; doubles each time.
const RETRY_DELAY_FIRST: Duration = Duration::from_millis(250);
/// Longest wait before a broken step is asked again, also when the vendor asks for more.
const RETRY_DELAY_MAX: Duration = Duration::from_secs(60);

impl Log<'_> {
    /// Settles what is past its deadline.
    pub(super) fn tick(&mut self) {
        for index in self.open_calls() {
            let call = self.run.state.calls[index].clone();
            self.emit_all(expired(&call, self.now));
            match &call.state {
                CallState::AwaitsApproval { approval, expires_at } if *expires_at <= self.now => {
                    self.emit_all(denial(&call, *approval, None, None, true));
                }
                CallState::Open { deadline, .. } if *deadline <= self.now => {
                    let message = format!("no client answered {} in time", call.tool.name);
                    self.settle(call.tool.call, Outcome::error(ErrorCode::Timeout, message));
                }
                CallState::Open {
                    claim: Some(claim), ..
                } if claim.until <= self.now => {
                    self.emit(ToolReleased::of(&call.tool));
                }
                CallState::Paused(pause) if pause.until <= self.now => {
                    self.settle(call.tool.call, ended(&call, *pause));
                }
                CallState::Delegated { .. }
                    if deadline(&call).is_some_and(|deadline| deadline <= self.now) =>
                {
                    let timeout = call
                        .definition
                        .as_ref()
                        .map(|tool| tool.timeout)
                        .unwrap_or_default();
                    let message = format!("{} gave no answer within {timeout:?}", call.tool.name);
                    self.settle(call.tool.call, Outcome::error(ErrorCode::Timeout, message));
                }
                CallState::AwaitsApproval { .. }
                | CallState::Paused(_)
                | CallState::Open { .. }
                | CallState::Ready
                | CallState::Executing
                | CallState::Delegated { .. }
                | CallState::Settled(_) => {}
            }
        }
        self.go_on();
    }

    /// The model's request failed: asks again after a while, or gives the run up.
    pub(super) fn broke(
        &mut self,
        failures: u32,
        error: String,
        retryable: bool,
        retry_after: Option<Duration>,
    ) {
        let attempt = failures + 1;
        if !retryable || attempt >= self.run.agent.limits.step_attempts {
            return self.finish(Status::Failed, EndReason::ModelError, Some(error));
        }
        let backoff = RETRY_DELAY_FIRST.saturating_mul(1 << failures.min(16));
        let wait = retry_after.unwrap_or(backoff).min(RETRY_DELAY_MAX);
        let not_before = self.now.after(wait);
        self.emit(StepRetry {
            step: self.run.state.step,
            attempt,
            error: Some(error),
            not_before,
        });
    }

    /// What ran when the gateway died: once more where that does no harm, otherwise nobody knows. What a reply
    /// had streamed is void, and readers are told so.
    pub(super) fn recover(&mut self) {
        if let Phase::Asking { failures, .. } = self.run.state.phase {
            let not_before = self.now;
            self.emit(StepRetry {
                step: self.run.state.step,
                attempt: failures,
                error: None,
                not_before,
            });
        }
        for index in self.open_calls() {
            let call = &self.run.state.calls[index];
            let again = call
                .definition
                .as_ref()
                .is_some_and(|tool| tool.retry == Retry::Safe);
            if call.state == CallState::Executing && !again {
                let id = call.tool.call;
                let message = "the gateway stopped while this call ran: outcome unknown";
                self.settle(id, Outcome::error(ErrorCode::Interrupted, message));
            }
        }
        self.go_on();
    }
}
