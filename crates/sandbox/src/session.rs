//! One call in a worker: its host calls are carried out side by side, and everything that the worker says is counted.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use toolgate_kernel::json::Json;
use toolgate_script::{
    FailureKind as Scripted, HOST_BYTES_MAX, HOST_CALL_BYTES_MAX, HOST_CALLS_AT_ONCE, HOST_CALLS_MAX,
    LOG_BYTES_MAX, LOG_LINE_COST, Operation,
};
use toolgate_worker::{Exchange, WorkerError};

use crate::host::Host;
use crate::job::{FailureKind, JobLimits, ScriptFailure};
use crate::wire::{self, Said, Wish};

/// Bytes in front of the text of a frame, at most.
const FRAME_HEAD_BYTES: usize = 16;
/// Answers that wait for a worker to read them; no more are made ready meanwhile, so a worker that reads nothing makes the
/// gateway keep this and one answer, until it asks for more than it may or its time is over.
const ANSWERS_BYTES_MAX: usize = 256 << 10;
/// How often a call that takes longer is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// CPU time that a call may use, after the first look at it, before others go first.
const CPU_UNTIL_DEMOTED: Duration = Duration::from_millis(20);
/// Longest message of a failure.
const MESSAGE_BYTES_MAX: usize = 16 << 10;

/// Carries a call to its end. On success, and when the code failed by itself, the worker is kept for the next call.
pub(crate) async fn run(
    mut exchange: Exchange,
    host: Arc<dyn Host>,
    limits: &JobLimits,
) -> Result<Json, ScriptFailure> {
    let frame_max = limits
        .output_bytes
        .max(HOST_CALL_BYTES_MAX)
        .max(MESSAGE_BYTES_MAX)
        + FRAME_HEAD_BYTES;
    let mut budget = Budget::default();
    let mut calls = FuturesUnordered::new();
    let mut busy = Busy::default();
    let mut looks = tokio::time::interval_at(tokio::time::Instant::now() + LOOK_EVERY, LOOK_EVERY);
    loop {
        let frame = tokio::select! {
            frame = exchange.next_or_room(frame_max, ANSWERS_BYTES_MAX) => match frame {
                Ok(Some(frame)) => frame,
                Ok(None) => continue,
                Err(error) => return Err(died(exchange, error).await),
            },
            Some((id, answer)) = calls.next(), if !calls.is_empty() && exchange.waiting_bytes() < ANSWERS_BYTES_MAX => {
                exchange.send(&wire::answer(id, &answer)).map_err(|_| broke_rules())?;
                continue;
            }
            _ = looks.tick(), if !busy.demoted => {
                busy.look(&mut exchange);
                continue;
            }
        };
        match Said::parse(&frame).map_err(|_| broke_rules())? {
            Said::Call { id, operation, body } => {
                budget.call(id, body.len(), calls.len())?;
                let wish = Wish::parse(operation, body);
                calls.push(carry_out(host.clone(), id, operation, wish));
            }
            Said::Log(level, line) => {
                budget.log(line.len())?;
                host.log(level, line);
            }
            Said::Done { clean, output } => {
                let output = result(output, limits.output_bytes);
                if clean && calls.is_empty() {
                    exchange.finish();
                }
                return output;
            }
            Said::Failed { clean, kind, message } => {
                let failure = failure(kind, message);
                if clean && calls.is_empty() {
                    exchange.finish();
                }
                return Err(failure);
            }
            Said::Told(_) => return Err(broke_rules()),
        }
    }
}

/// Whether a call works much: it goes on behind all others then, so that their short calls stay short.
#[derive(Default)]
struct Busy {
    /// CPU time that the worker had used at the first look.
    first: Option<Duration>,
    demoted: bool,
}

impl Busy {
    fn look(&mut self, exchange: &mut Exchange) {
        if self.is_over(exchange.cpu_time()) {
            exchange.demote();
            self.demoted = true;
        }
    }

    /// Whether the call has used too much CPU time since the first look. In all, and not between two looks: of many calls
    /// that never end, each gets a small part of a processor.
    fn is_over(&mut self, used: Option<Duration>) -> bool {
        let Some(used) = used else { return false };
        used.saturating_sub(*self.first.get_or_insert(used)) >= CPU_UNTIL_DEMOTED
    }
}

/// What a worker has used of what one call may say.
#[derive(Default)]
struct Budget {
    calls: u32,
    call_bytes: usize,
    log_bytes: usize,
}

impl Budget {
    fn call(&mut self, id: u32, bytes: usize, under_way: usize) -> Result<(), ScriptFailure> {
        let fits = id == self.calls
            && self.calls < HOST_CALLS_MAX
            && under_way < HOST_CALLS_AT_ONCE
            && bytes <= HOST_CALL_BYTES_MAX
            && self.call_bytes + bytes <= HOST_BYTES_MAX;
        self.calls += 1;
        self.call_bytes += bytes;
        fits.then_some(()).ok_or_else(broke_rules)
    }

    fn log(&mut self, bytes: usize) -> Result<(), ScriptFailure> {
        self.log_bytes += bytes + LOG_LINE_COST;
        (self.log_bytes <= LOG_BYTES_MAX)
            .then_some(())
            .ok_or_else(broke_rules)
    }
}

/// The answer to one host call.
async fn carry_out(
    host: Arc<dyn Host>,
    id: u32,
    operation: Operation,
    wish: Result<Wish, wire::Garbled>,
) -> (u32, Result<String, String>) {
    let answer = match wish {
        Ok(Wish::Fetch(request)) => host.fetch(request).await.map(wire::response),
        Ok(Wish::Storage(operation)) => {
            let value = host.storage(operation).await;
            value.map(|value| value.map_or_else(String::new, |value| value.as_str().to_owned()))
        }
        Err(wire::Garbled) => Err(match operation {
            Operation::Fetch => {
                "the request cannot be read: at most 64 headers, and text or bytes as its body".into()
            }
            Operation::Storage => "the value cannot be kept: it is no JSON that the gateway accepts".into(),
        }),
    };
    (id, answer)
}

fn result(output: &str, bytes_max: usize) -> Result<Json, ScriptFailure> {
    if output.len() > bytes_max {
        let words = format!("its result has more than the {bytes_max} bytes that are permitted");
        return Err(ScriptFailure::new(FailureKind::OutputTooLarge, words));
    }
    Json::parse(output.to_owned()).map_err(|_| {
        let words = "its result nests too deep, or holds a number or a character that JSON cannot carry";
        ScriptFailure::new(FailureKind::OutputTooLarge, words)
    })
}

fn failure(kind: Scripted, message: &str) -> ScriptFailure {
    let kind = match kind {
        Scripted::Threw | Scripted::HostGone => FailureKind::Threw,
        Scripted::Syntax => FailureKind::Syntax,
        Scripted::Timeout => FailureKind::Timeout,
        Scripted::Memory => FailureKind::Memory,
        Scripted::OutputTooLarge => FailureKind::OutputTooLarge,
    };
    ScriptFailure::new(kind, message)
}

fn broke_rules() -> ScriptFailure {
    let words = "the code broke the rules of the sandbox and was ended";
    ScriptFailure::new(FailureKind::Forbidden, words)
}

/// What became of a worker that says no more.
async fn died(exchange: Exchange, error: WorkerError) -> ScriptFailure {
    match error {
        WorkerError::Failed if exchange.used_up_cpu().await => {
            ScriptFailure::new(FailureKind::Timeout, "it used up its CPU time")
        }
        _ => ScriptFailure::new(
            FailureKind::Crashed,
            "its process died; the code may have used more memory than it has",
        ),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::Busy;

    /// After how many looks a call is demoted that uses so many milliseconds of CPU time between two.
    fn looks(millis_each: u64) -> Option<u64> {
        let mut busy = Busy::default();
        let used = |look: u64| Some(Duration::from_millis(500 + look * millis_each));
        (0..100).find(|look| busy.is_over(used(*look)))
    }

    #[test]
    fn a_call_that_works_much_is_demoted_however_little_of_a_processor_it_gets() {
        assert_eq!(looks(20), Some(1), "a processor of its own");
        assert_eq!(looks(5), Some(4), "eight endless loops on two processors");
        assert_eq!(looks(1), Some(20));
        assert_eq!(looks(0), None, "it waits");
        assert!(!Busy::default().is_over(None), "the system does not tell");
    }
}
