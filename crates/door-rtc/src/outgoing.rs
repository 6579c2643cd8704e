//! The space's events as messages of the channel. What a reader may see was decided before, by the one redaction: this file
//! translates what is left and hides nothing more.

use toolgate_kernel::event::{Event, Seq};
use toolgate_kernel::id::RunId;
use toolgate_kernel::time::Time;
use toolgate_kernel::tool::Placement;
use toolgate_tool_channel::{Payload, ToolEventType, ToolMessage, serialize_message};

use crate::members::{Members, fit};
use crate::starts::plain;

/// The message for an event as its reader sees it, of at most `bytes_max` bytes; none for an event that is about no tool.
pub(crate) fn message(
    seq: Seq,
    run: Option<RunId>,
    time: Time,
    seen: &Event,
    bytes_max: usize,
) -> Option<String> {
    let kind = kind_of(plain(seen))?;
    let mut payload = Members::of(plain(seen));
    let tool_id = payload.take_text("toolName").unwrap_or_default();
    // The native name tells apart what shares a type: an offer and a proposal, progress and the start.
    payload.rename("type", "event");
    if let Some(run) = run {
        payload.add("runId", &run);
    }
    if let Event::ChildCall(child) = seen {
        payload.add("agent", &child.agent);
        payload.add("childRunId", &child.child_run_id);
    }
    let message = |payload: &Members| {
        serialize_message(&ToolMessage {
            kind,
            tool_id: tool_id.clone(),
            payload: Payload::of(payload).ok(),
            timestamp: milliseconds(time),
            id: None,
            seq: Some(seq.0),
        })
    };
    Some(fit(payload, message, bytes_max))
}

/// Milliseconds since 1970.
pub(crate) fn milliseconds(time: Time) -> u64 {
    u64::try_from(time.0).unwrap_or(0)
}

/// Which of the six types tells of an event. A new event does not compile until somebody decides.
fn kind_of(event: &Event) -> Option<ToolEventType> {
    match event {
        Event::ToolApprovalRequest(_) | Event::ToolReleased(_) => Some(ToolEventType::ToolProposed),
        // A call with a deadline is an offer to clients; one without waits for its approval first.
        Event::ToolInputAvailable(e) => {
            (e.placement == Placement::Client && e.deadline.is_some()).then_some(ToolEventType::ToolProposed)
        }
        Event::ToolApprovalResponse(e) => Some(match e.approved {
            true => ToolEventType::ToolAccepted,
            false => ToolEventType::ToolRejected,
        }),
        Event::ToolExecuting(_) | Event::ToolProgress(_) => Some(ToolEventType::ToolExecuting),
        Event::ToolOutputAvailable(_) => Some(ToolEventType::ToolCompleted),
        Event::ToolOutputError(_) => Some(ToolEventType::ToolError),
        // The response that it follows has said so.
        Event::ToolOutputDenied(_)
        | Event::ToolInputStart(_)
        | Event::ToolInputDelta(_)
        | Event::ToolQuestion(_)
        | Event::ToolQuestionResponse(_)
        | Event::ToolSampling(_)
        | Event::RunStart(_)
        | Event::Said(_)
        | Event::Told(_)
        | Event::CallRequest(_)
        | Event::ContextCut(_)
        | Event::StepStart(_)
        | Event::StepRetry(_)
        | Event::TextStart(_)
        | Event::TextDelta(_)
        | Event::TextEnd(_)
        | Event::ReasoningStart(_)
        | Event::ReasoningDelta(_)
        | Event::ReasoningEnd(_)
        | Event::StepFinish(_)
        | Event::RunStatus(_)
        | Event::RunFinish(_)
        | Event::Notification(_)
        | Event::ChildCall(_)
        | Event::Opaque(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::{Value, json};
    use toolgate_kernel::event::{ToolOutputAvailable, ToolRef};
    use toolgate_kernel::id::CallId;
    use toolgate_kernel::json::Json;
    use toolgate_tool_channel::deserialize_message;
    use uuid::Uuid;

    use super::*;

    fn output(text: String) -> Event {
        let run = RunId::new(Uuid::from_u128(1));
        let tool = ToolRef {
            call: CallId { run, number: 0 },
            name: Arc::from("demo"),
            placement: Placement::Client,
            shown: false,
            offered_to: None,
            given_name: None,
        };
        ToolOutputAvailable::of(&tool, Some(Json::parse(text).unwrap()), None, None, None).into()
    }

    #[test]
    fn an_event_becomes_a_message_with_its_members_to_the_letter() {
        let event = output(r#"{"b":1.0,"a":12345678901234567890123}"#.into());
        let run = RunId::new(Uuid::from_u128(1));
        let text = message(Seq(7_000_000), Some(run), Time(5), &event, 10_000).unwrap();
        assert!(
            text.contains(r#""output":{"b":1.0,"a":12345678901234567890123}"#),
            "{text}"
        );
        let read = deserialize_message(&text).unwrap();
        assert_eq!(
            (read.tool_id.as_str(), read.seq, read.timestamp),
            ("demo", Some(7_000_000), 5)
        );
        let payload = read.payload.unwrap();
        assert_eq!(payload.get("event"), Some(json!("tool-output-available")));
        assert_eq!(payload.get("runId"), Some(json!(run)));
        assert_eq!(payload.get("toolName"), None);
    }

    #[test]
    fn what_is_too_large_is_left_out_and_named() {
        let event = output(Value::from("x".repeat(5000)).to_string());
        let text = message(Seq(1_000_000), None, Time(0), &event, 1000).unwrap();
        assert!(text.len() <= 1000, "{}", text.len());
        let payload = deserialize_message(&text).unwrap().payload.unwrap();
        assert_eq!(payload.get("omitted"), Some(json!(["output"])));
        assert!(payload.get("toolCallId").is_some());
    }
}
