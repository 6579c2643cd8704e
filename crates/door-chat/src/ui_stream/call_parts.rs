//! The calls that the client's message shows.

use std::collections::{HashMap, HashSet};

use toolgate_kernel::event::{ToolApprovalRequest, ToolRef};
use toolgate_kernel::id::CallId;
use toolgate_kernel::json::Json;

use super::response::Sink;
use crate::body::Dialect;
use crate::chunk::Chunk;
use crate::ui_event::{CallInput, UiOutcome, is_ours};

/// What the client knows of calls. Of a call that is not here it must not hear.
#[derive(Default)]
pub(super) struct CallParts {
    parts: HashMap<CallId, CallPart>,
    /// Calls whose parts stand in earlier steps than the one under way.
    earlier: HashSet<CallId>,
    /// A call on the gateway's side whose input was read. Whether it is under way or asks a person is known with the
    /// next event.
    held: Option<(ToolRef, Option<Json>)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CallPart {
    /// Its input streams; so many bytes are written.
    Streaming { told: usize },
    /// Its input is whole.
    Whole,
}

impl CallParts {
    /// `known` are the calls that the client's message holds already.
    pub fn new(known: HashSet<CallId>) -> Self {
        Self {
            parts: known.into_iter().map(|call| (call, CallPart::Whole)).collect(),
            earlier: HashSet::new(),
            held: None,
        }
    }

    pub fn knows(&self, call: CallId) -> bool {
        self.parts.contains_key(&call)
    }

    /// A step begins: what is known stands before it.
    pub fn step_begins(&mut self) {
        self.earlier.extend(self.parts.keys());
    }

    /// A call on the gateway's side was approved as it is. Its input is told again, so that the client knows that it runs;
    /// but not to a part in an earlier step, because the client would add a second part to the last one.
    pub fn goes_on(&mut self, tool: &ToolRef, input: Option<&Json>, is_settled: bool, sink: &mut Sink<'_>) {
        if !self.earlier.contains(&tool.call) {
            self.offer(tool, input, is_settled, sink);
        }
    }

    pub fn input_starts(&mut self, tool: &ToolRef, sink: &mut Sink<'_>) {
        let before = self.parts.insert(tool.call, CallPart::Streaming { told: 0 });
        if !matches!(before, Some(CallPart::Streaming { .. })) {
            sink.chunk(|out| {
                call_chunk(out, "tool-input-start", tool)
                    .with("toolName", tool.executor_name())
                    .end();
            });
        }
    }

    /// More of the input. A client that has not read its beginning is told the whole at the end.
    pub fn input_goes_on(&mut self, tool: &ToolRef, delta: &str, sink: &mut Sink<'_>) {
        let Some(CallPart::Streaming { told }) = self.parts.get_mut(&tool.call) else {
            return;
        };
        *told += delta.len();
        sink.chunk(|out| {
            call_chunk(out, "tool-input-delta", tool)
                .with("inputTextDelta", delta)
                .end();
        });
    }

    /// The whole input. A client call that is not offered yet, or never, must not read as one that is.
    pub fn input_ends(&mut self, event: &CallInput<'_>, is_settled: bool, sink: &mut Sink<'_>) {
        let CallInput { tool, input, .. } = event;
        if is_ours(tool) {
            // Known from now on; an input that streamed stays open until the next event.
            self.parts.entry(tool.call).or_insert(CallPart::Whole);
            self.held = Some((tool.clone(), input.cloned()));
        } else if event.is_offered {
            self.offer(tool, *input, is_settled, sink);
        } else {
            self.write_input_alone(tool, *input, sink);
        }
    }

    /// The call that was held back is under way.
    pub fn release_held(&mut self, sink: &mut Sink<'_>) {
        if let Some((tool, input)) = self.held.take() {
            self.offer(&tool, input.as_ref(), false, sink);
        }
    }

    /// `tool-input-available`, by which a client executes the call unless it is `providerExecuted`.
    pub fn offer(&mut self, tool: &ToolRef, input: Option<&Json>, is_settled: bool, sink: &mut Sink<'_>) {
        self.parts.insert(tool.call, CallPart::Whole);
        sink.chunk(|out| {
            call_chunk(out, "tool-input-available", tool)
                .with("toolName", tool.executor_name())
                .value("input", input, "{}")
                .flag("providerExecuted", is_ours(tool) || is_settled)
                .end();
        });
    }

    /// The input of a call that does not begin by it.
    fn write_input_alone(&mut self, tool: &ToolRef, input: Option<&Json>, sink: &mut Sink<'_>) {
        if !matches!(self.parts.get(&tool.call), Some(CallPart::Streaming { .. })) {
            self.input_starts(tool, sink);
        }
        if let (Some(CallPart::Streaming { told: 0 }), Some(input)) = (self.parts.get(&tool.call), input) {
            self.input_goes_on(tool, input.as_str(), sink);
        }
        self.parts.insert(tool.call, CallPart::Whole);
    }

    /// A person is asked, and the call that was held back waits for the answer.
    pub fn asks(&mut self, event: &ToolApprovalRequest, sink: &mut Sink<'_>) {
        if let Some((tool, input)) = self.held.take() {
            self.write_input_alone(&tool, input.as_ref().or(event.input.as_ref()), sink);
        }
        let dialect = sink.dialect();
        sink.chunk(|out| match dialect {
            Dialect::V5 => {
                let data = serde_json::json!({
                    "approvalId": event.approval_id, "toolCallId": event.tool_call_id,
                    "toolName": event.tool().executor_name(), "input": event.input, "expiresAt": event.expires_at,
                });
                Chunk::new(out, "data-approval")
                    .with("id", event.approval_id)
                    .with("data", data)
                    .end();
            }
            Dialect::V6 | Dialect::V7 => Chunk::new(out, "tool-approval-request")
                .with("approvalId", event.approval_id)
                .with("toolCallId", event.tool_call_id)
                .end(),
        });
    }

    pub fn settle(&mut self, tool: &ToolRef, outcome: &UiOutcome<'_>, sink: &mut Sink<'_>) {
        let Some(part) = self.parts.get_mut(&tool.call) else {
            return;
        };
        *part = CallPart::Whole;
        let dialect = sink.dialect();
        sink.chunk(|out| match (outcome, dialect) {
            (UiOutcome::Output(output), _) => call_chunk(out, "tool-output-available", tool)
                .value("output", *output, "null")
                .flag("providerExecuted", is_ours(tool))
                .end(),
            (UiOutcome::Error(words), _) => write_error(out, tool, words),
            (UiOutcome::Denied(reason), Dialect::V5) => {
                write_error(out, tool, reason.unwrap_or("a person did not allow this call"));
            }
            (UiOutcome::Denied(_), Dialect::V6 | Dialect::V7) => {
                call_chunk(out, "tool-output-denied", tool).end();
            }
        });
    }

    /// Forgets the calls whose input was streaming: the client takes the step back.
    pub fn forget_streaming(&mut self) {
        self.parts.retain(|_, part| *part == CallPart::Whole);
    }

    /// Ends the calls whose input was streaming: one that is not asked for after all would stay open for ever.
    pub fn close_streaming(&mut self, sink: &mut Sink<'_>) {
        let streaming = self.parts.iter().filter(|(_, part)| **part != CallPart::Whole);
        let mut open: Vec<CallId> = streaming.map(|(call, _)| *call).collect();
        open.sort();
        for call in open {
            self.parts.remove(&call);
            sink.chunk(|out| {
                let words = "the model was asked again and did not repeat this call";
                Chunk::new(out, "tool-output-error")
                    .with("toolCallId", call)
                    .with("errorText", words)
                    .flag("providerExecuted", true)
                    .end();
            });
        }
    }

    /// Forgets every call: what was read belongs to another answer.
    pub fn clear(&mut self) {
        self.parts.clear();
        self.earlier.clear();
    }
}

fn call_chunk<'a>(out: &'a mut Vec<u8>, kind: &str, tool: &ToolRef) -> Chunk<'a> {
    Chunk::new(out, kind).with("toolCallId", tool.call)
}

fn write_error(out: &mut Vec<u8>, tool: &ToolRef, words: &str) {
    call_chunk(out, "tool-output-error", tool)
        .with("errorText", words)
        .flag("providerExecuted", is_ours(tool))
        .end();
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use toolgate_kernel::id::RunId;
    use toolgate_kernel::time::Time;
    use toolgate_kernel::tool::Placement;
    use uuid::Uuid;

    use super::*;
    use crate::ui_stream::response::tests::{types, writing};

    fn tool(placement: Placement) -> ToolRef {
        let run = RunId::new(Uuid::from_u128(7));
        ToolRef {
            call: CallId { run, number: 0 },
            name: "tool".into(),
            placement,
            shown: false,
            offered_to: None,
            given_name: None,
        }
    }

    fn input(tool: &ToolRef, input: &Json, is_offered: bool) -> Vec<u8> {
        let (mut response, mut calls, mut out) = (writing(), CallParts::default(), Vec::new());
        let event = CallInput {
            tool: tool.clone(),
            input: Some(input),
            is_offered,
        };
        calls.input_ends(&event, false, &mut response.to(&mut out));
        out
    }

    #[test]
    fn only_a_call_that_is_offered_reads_as_one_to_execute() {
        let (tool, value) = (tool(Placement::Client), json!({"n": 1}).into());
        assert_eq!(types(&input(&tool, &value, true)), ["tool-input-available"]);
        assert_eq!(
            types(&input(&tool, &value, false)),
            ["tool-input-start", "tool-input-delta"]
        );
    }

    #[test]
    fn a_call_on_the_gateways_side_is_held_back_until_it_is_known_whether_it_asks() {
        let (tool, value): (_, Json) = (tool(Placement::Server), json!({"n": 1}).into());
        assert!(input(&tool, &value, false).is_empty());

        let (mut response, mut calls, mut out) = (writing(), CallParts::default(), Vec::new());
        calls.held = Some((tool.clone(), Some(value.clone())));
        calls.release_held(&mut response.to(&mut out));
        assert_eq!(types(&out), ["tool-input-available"]);

        out.clear();
        calls.held = Some((tool.clone(), Some(value.clone())));
        let asked = ToolApprovalRequest::of(
            &tool,
            tool.call.approval(),
            Some(value),
            Time(0),
            None,
            None,
            None,
            None,
        );
        calls.asks(&asked, &mut response.to(&mut out));
        assert_eq!(
            types(&out),
            ["tool-input-start", "tool-input-delta", "tool-approval-request"]
        );
    }

    #[test]
    fn of_a_call_that_the_client_does_not_know_it_hears_nothing() {
        let (tool, mut response, mut out) = (tool(Placement::Client), writing(), Vec::new());
        CallParts::default().settle(&tool, &UiOutcome::Output(None), &mut response.to(&mut out));
        assert!(out.is_empty());
        let mut calls = CallParts::new(HashSet::from([tool.call]));
        calls.settle(&tool, &UiOutcome::Output(None), &mut response.to(&mut out));
        assert_eq!(types(&out), ["tool-output-available"]);
    }
}
