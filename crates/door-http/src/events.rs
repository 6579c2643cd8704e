//! Events as JSON text, the same in streams and in lists.

use std::fmt::Write as _;

use axum::response::Response;
use toolgate_access::ENDED;
use toolgate_engine::feed::{Batch, Scope, Subscription};
use toolgate_http::Shared;
use toolgate_http::problem::Refusal;
use toolgate_http::stream::{ACCESS_ENDED, Cut, Follow, OpenStream, Page, Watch, on_one_line};
use toolgate_kernel::event::{Event, Seq};
use toolgate_kernel::id::{RunId, SpaceId};
use toolgate_kernel::time::Time;
use toolgate_kernel::tool::Decider;
use toolgate_kernel::view::view;

/// How soon a client that was cut comes back, in milliseconds.
const RETRY_MS: u32 = 1000;

/// Subscribes to what `follow` asks for and streams it.
pub(crate) async fn open(follow: Follow, door: &Shared, open: OpenStream) -> Result<Response, Refusal> {
    let scope = follow.run.map_or(Scope::Space(follow.space), Scope::Run);
    let events = door.engine.subscribe(scope, follow.after).await?;
    stream(follow, door, open, events).await
}

/// The response that streams these events.
pub(crate) async fn stream(
    follow: Follow,
    door: &Shared,
    open: OpenStream,
    events: Subscription,
) -> Result<Response, Refusal> {
    let reader = door.access.decider(&follow.who, follow.space).await?;
    let page = Events::new(&follow, reader);
    follow.respond(door, open, events, page).await
}

/// Every event as it is.
struct Events {
    space: SpaceId,
    reader: Decider,
    watch: Watch,
    tail: Tail,
}

impl Events {
    fn new(follow: &Follow, reader: Decider) -> Self {
        Self {
            space: follow.space,
            reader,
            watch: Watch::new(follow),
            tail: Tail::default(),
        }
    }
}

impl Page for Events {
    fn reader(&self) -> &Decider {
        &self.reader
    }
    fn write(&mut self, batch: &Batch, out: &mut Vec<u8>) {
        self.tail.set(batch.run(), self.space, batch.time());
        for (seq, event) in batch.placed() {
            if self.watch.sees(seq, event)
                && let Some(seen) = view(event, &self.reader)
            {
                write_event(out, seq, &seen, &self.tail);
            }
        }
    }
    fn watch(&mut self) -> &mut Watch {
        &mut self.watch
    }
    fn part(&mut self, why: &str, out: &mut Vec<u8>) -> Result<(), Cut> {
        let words = format!(": {why}; come back with your cursor\nretry: {RETRY_MS}\n\n");
        out.extend_from_slice(words.as_bytes());
        Ok(())
    }
    fn end_access(&mut self, out: &mut Vec<u8>) {
        let told = serde_json::json!({"type": "error", "code": ACCESS_ENDED, "detail": ENDED});
        out.extend_from_slice(format!("event: error\ndata: {told}\n\n").as_bytes());
    }
}

/// The members that every event of a batch ends with, and the closing brace.
#[derive(Default)]
pub(crate) struct Tail(String);

impl Tail {
    pub fn of(run: Option<RunId>, space: SpaceId, time: Time) -> Self {
        let mut tail = Self::default();
        tail.set(run, space, time);
        tail
    }
    /// The members of another batch.
    pub fn set(&mut self, run: Option<RunId>, space: SpaceId, time: Time) {
        self.0.clear();
        if let Some(run) = run {
            let _ = write!(self.0, r#","runId":"{run}""#); // Writing to a string cannot fail.
        }
        let _ = write!(self.0, r#","spaceId":"{space}","time":"{time}"}}"#);
    }
}

/// One event of a stream.
pub(crate) fn write_event(out: &mut Vec<u8>, seq: Seq, event: &Event, tail: &Tail) {
    out.extend_from_slice(b"id: ");
    write_seq(out, seq);
    out.extend_from_slice(b"\nevent: ");
    out.extend_from_slice(plain(event).kind().as_bytes());
    out.extend_from_slice(b"\ndata: ");
    write_json(out, seq, event, tail);
    out.extend_from_slice(b"\n\n");
}

/// One event as a JSON object on one line.
pub(crate) fn write_json(out: &mut Vec<u8>, seq: Seq, event: &Event, tail: &Tail) {
    let start = out.len();
    serde_json::to_writer(&mut *out, plain(event)).expect("an event has text keys");
    out.pop(); // The closing brace: the tail brings its own.
    if let Event::ChildCall(e) = event {
        let child = format!(",\"agent\":\"{}\",\"childRunId\":\"{}\"", e.agent, e.child_run_id);
        out.extend_from_slice(child.as_bytes());
    }
    out.extend_from_slice(b",\"seq\":");
    write_seq(out, seq);
    out.extend_from_slice(tail.0.as_bytes());
    on_one_line(&mut out[start..]);
}

/// A call of a child run reads as one of the run at the top, with two members more.
fn plain(event: &Event) -> &Event {
    match event {
        Event::ChildCall(e) => &e.event,
        event => event,
    }
}

fn write_seq(out: &mut Vec<u8>, seq: Seq) {
    serde_json::to_writer(out, &seq).expect("a number is JSON");
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::{Value, json};
    use toolgate_kernel::event::{TextDelta, ToolOutputAvailable, ToolRef};
    use toolgate_kernel::id::CallId;
    use toolgate_kernel::json::Json;
    use toolgate_kernel::tool::Placement;
    use uuid::Uuid;

    use super::*;

    fn run() -> RunId {
        RunId::new(Uuid::from_u128(1))
    }
    fn tail() -> Tail {
        Tail::of(Some(run()), SpaceId::new(Uuid::from_u128(2)), Time(0))
    }

    #[test]
    fn an_event_is_written_with_its_place_and_where_it_happened() {
        let event = Event::from(TextDelta {
            id: Arc::from("1"),
            delta: "a\nb".into(),
        });
        let mut out = Vec::new();
        write_event(&mut out, Seq(1_000_001), &event, &tail());
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "id: 1000001\nevent: text-delta\ndata: {\"type\":\"text-delta\",\"id\":\"1\",\"delta\":\"a\\nb\",\
             \"seq\":1000001,\"runId\":\"run_00000000000000000000000001\",\
             \"spaceId\":\"space_00000000000000000000000002\",\"time\":\"1970-01-01T00:00:00.000Z\"}\n\n"
        );
    }

    #[test]
    fn a_value_with_line_breaks_stays_on_one_line_and_keeps_its_meaning() {
        let output = "{\r\n  \"a\":\n[1,\n2], \"b\": \"x\\ny\"\n}";
        let tool = ToolRef {
            call: CallId {
                run: run(),
                number: 0,
            },
            name: Arc::from("t"),
            placement: Placement::Client,
            shown: false,
            offered_to: None,
            given_name: None,
        };
        let event =
            ToolOutputAvailable::of(&tool, Some(Json::parse(output.into()).unwrap()), None, None, None)
                .into();
        let mut out = Vec::new();
        write_event(&mut out, Seq(5), &event, &tail());
        let text = String::from_utf8(out).unwrap();
        assert_eq!(text.lines().count(), 4, "id, event, data and the empty line");
        let data: Value =
            serde_json::from_str(text.lines().nth(2).unwrap().strip_prefix("data: ").unwrap()).unwrap();
        assert_eq!(data["output"], json!({"a": [1, 2], "b": "x\ny"}));
    }
}
