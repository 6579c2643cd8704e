//! A sink that writes down what it is given, one line each.

use std::fmt::Write;

use toolgate_engine::model::{Delta, Ending, ModelError, ReplySink};
use toolgate_kernel::agent::Provider;

/// What came, line by line.
#[derive(Default)]
pub struct Trace {
    lines: Vec<String>,
    flushes: bool,
    shown: Option<tokio::sync::mpsc::UnboundedSender<()>>,
}

impl Trace {
    /// Also writes down when the sink was flushed.
    pub fn with_flushes() -> Self {
        Self {
            flushes: true,
            ..Self::default()
        }
    }

    /// Also tells when something is shown.
    pub fn telling(shown: tokio::sync::mpsc::UnboundedSender<()>) -> Self {
        Self {
            shown: Some(shown),
            ..Self::with_flushes()
        }
    }

    /// All lines and how it ended. Pieces of one text stand on one line, however they were cut.
    pub fn end(mut self, ended: Result<Ending, ModelError>) -> String {
        let mut last = String::new();
        match ended {
            Ok(Ending { reason, usage }) => {
                write!(
                    last,
                    "{reason:?}, {} in, {} out",
                    usage.input_tokens, usage.output_tokens
                )
                .unwrap();
                if usage.reasoning_tokens + usage.cached_tokens > 0 {
                    let (thought, cached) = (usage.reasoning_tokens, usage.cached_tokens);
                    write!(last, ", {thought} thought, {cached} cached").unwrap();
                }
            }
            Err(error) => {
                write!(last, "{:?}: {error}", error.kind).unwrap();
                if let Some(wait) = error.retry_after {
                    write!(last, ", after {wait:?}").unwrap();
                }
            }
        }
        self.lines.push(last);
        self.lines.join("\n")
    }

    fn add(&mut self, head: &str, text: &str) {
        match self.lines.last_mut() {
            Some(line) if line.starts_with(head) => line.push_str(text),
            _ => self.lines.push(format!("{head}{text}")),
        }
    }
}

impl ReplySink for Trace {
    fn delta(&mut self, delta: Delta<'_>) {
        match delta {
            Delta::Text(text) => self.add("text: ", text),
            Delta::Reasoning(text) => self.add("reasoning: ", text),
            Delta::ReasoningSignature(signature) => self.lines.push(format!("signature: {signature}")),
            Delta::CallStart { slot, name } => self.lines.push(format!("call {slot}: {name}")),
            Delta::CallInput { slot, text } => self.add(&format!("input {slot}: "), text),
            Delta::CallSignature { slot, signature } => {
                self.lines.push(format!("signature {slot}: {signature}"))
            }
        }
    }
    fn flush(&mut self) {
        if self.flushes {
            self.lines.push("flush".into());
        }
        if let Some(shown) = &self.shown {
            // Nobody listens any more: the test has seen enough.
            let _ = shown.send(());
        }
    }
}

/// What a recorded stream says when it comes in these reads.
pub fn replay<'b>(provider: Provider, reads: impl IntoIterator<Item = &'b [u8]>) -> String {
    let mut trace = Trace::default();
    let ended = toolgate_models::replay(provider, reads, &mut trace);
    trace.end(ended)
}
