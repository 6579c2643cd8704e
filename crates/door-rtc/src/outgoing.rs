//! The space's events as messages of the channel. What a reader may see was decided before, by the one redaction: this file
//! translates what is left and hides nothing more.

use serde::de::{MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::{RawValue, to_raw_value};
use std::fmt;

use toolgate_kernel::event::{Event, Seq};
use toolgate_kernel::id::RunId;
use toolgate_kernel::time::Time;
use toolgate_kernel::tool::Placement;
use toolgate_tool_channel::{Payload, ToolEventType, ToolMessage, serialize_message};

/// The message for an event as its reader sees it, of at most `bytes_max` bytes; none for an event that is about no tool.
pub(crate) fn message(
    seq: Seq,
    run: Option<RunId>,
    time: Time,
    seen: &Event,
    bytes_max: usize,
) -> Option<String> {
    let (plain, child) = match seen {
        Event::ChildCall(e) => (&*e.event, Some(e)),
        event => (event, None),
    };
    let kind = kind_of(plain)?;
    let mut payload = Members::of(plain);
    let tool_id = payload.take_text("toolName").unwrap_or_default();
    // The native name tells apart what shares a type: an offer and a proposal, progress and the start.
    payload.rename("type", "event");
    if let Some(run) = run {
        payload.add("runId", &run);
    }
    if let Some(child) = child {
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

/// Leaves out the largest members until the message fits, and names them: they are read over HTTP.
fn fit(mut payload: Members, message: impl Fn(&Members) -> String, bytes_max: usize) -> String {
    let mut omitted: Vec<String> = Vec::new();
    loop {
        let text = message(&payload);
        if text.len() <= bytes_max {
            return text;
        }
        let Some(name) = payload.take_largest() else {
            return text;
        };
        omitted.push(name);
        payload.set("omitted", &omitted);
    }
}

/// Members that a message is never without: they say what it is about.
const KEPT: [&str; 5] = ["event", "toolCallId", "runId", "approvalId", "omitted"];

/// The members of an event, in its order and as they were written.
struct Members(Vec<(String, Box<RawValue>)>);

impl Members {
    /// All members that the event has after the redaction. A new one, such as a text to be spoken, needs nothing here.
    fn of(event: &Event) -> Self {
        let text = serde_json::to_string(event).expect("an event has text keys");
        serde_json::from_str(&text).expect("an event is an object")
    }
    fn add(&mut self, name: &str, value: &impl Serialize) {
        let value = to_raw_value(value).expect("an id is JSON");
        self.0.push((name.into(), value));
    }
    fn set(&mut self, name: &str, value: &impl Serialize) {
        self.0.retain(|(known, _)| known != name);
        self.add(name, value);
    }
    fn rename(&mut self, from: &str, to: &str) {
        for (name, _) in &mut self.0 {
            if name == from {
                *name = to.into();
            }
        }
    }
    fn take_text(&mut self, name: &str) -> Option<String> {
        let place = self.0.iter().position(|(known, _)| known == name)?;
        serde_json::from_str(self.0.remove(place).1.get()).ok()
    }
    fn take_largest(&mut self) -> Option<String> {
        let may_go = |(_, (name, _)): &(usize, &(String, Box<RawValue>))| !KEPT.contains(&name.as_str());
        let members = self.0.iter().enumerate().filter(may_go);
        let (place, _) = members.max_by_key(|(_, (_, value))| value.get().len())?;
        Some(self.0.remove(place).0)
    }
}

impl Serialize for Members {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        let mut map = out.serialize_map(Some(self.0.len()))?;
        for (name, value) in &self.0 {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for Members {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Pairs;
        impl<'de> Visitor<'de> for Pairs {
            type Value = Members;
            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }
        from.deserialize_map(Pairs)
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
