//! Events as the gateway sends them.

use serde::Deserialize;
use serde_json::value::RawValue;
use toolgate_protocol::event as kernel;
use toolgate_protocol::event::Seq;
use toolgate_protocol::id::{RunId, SpaceId};
use toolgate_protocol::json::Json;
use toolgate_protocol::time::Time;

/// An event of a run or a space.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    /// Position in the space's stream: the cursor to resume with.
    pub seq: Seq,
    /// The run it belongs to; `None` for a message that starts no run.
    pub run: Option<RunId>,
    /// The space it belongs to.
    pub space: SpaceId,
    /// When it was recorded.
    pub time: Time,
    /// The parsed event; `None` for a type that only a newer gateway knows.
    pub body: Option<kernel::Event>,
    /// The event as it was received.
    pub json: Json,
}

impl Event {
    /// Whether the data of one server-sent event is an event of the log, which has a place there.
    pub(crate) fn is_placed(data: &str) -> bool {
        #[derive(Deserialize)]
        struct Place {
            #[serde(default, rename = "type")]
            kind: String,
            #[serde(default)]
            seq: Option<Seq>,
        }
        let read = serde_json::from_str::<Place>(data);
        !read.is_ok_and(|place| place.kind == "error" && place.seq.is_none())
    }
    /// Parses the data of one server-sent event, or one item of a list.
    pub(crate) fn read(data: &str) -> Result<Self, serde_json::Error> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Head {
            seq: Seq,
            #[serde(default)]
            run_id: Option<RunId>,
            space_id: SpaceId,
            time: Time,
        }
        let raw = RawValue::from_string(data.to_owned())?;
        let head: Head = serde_json::from_str(data)?;
        Ok(Self {
            seq: head.seq,
            run: head.run_id,
            space: head.space_id,
            time: head.time,
            body: kernel::Event::read(&raw)
                .ok()
                .filter(|body| !matches!(body, kernel::Event::Opaque(_))),
            json: raw.try_into()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = r#""seq":3000004,"runId":"run_01m7gt19xqea6ttx35a6gd182x","spaceId":"space_01m7gt19xqea6ttx35a6gd182x","time":"2026-11-16T00:02:44.764Z""#;

    #[test]
    fn an_event_is_read_with_its_place_and_its_body() {
        let event = Event::read(&format!(
            r#"{{"type":"text-delta","id":"1.0","delta":"Hello",{HEAD}}}"#
        ))
        .unwrap();
        assert_eq!(event.seq.0, 3_000_004);
        assert!(matches!(event.body, Some(kernel::Event::TextDelta(more)) if more.delta == "Hello"));
    }

    #[test]
    fn an_event_of_a_newer_gateway_keeps_its_place_and_its_text() {
        let event = Event::read(&format!(r#"{{"type":"singing","song":1,{HEAD}}}"#)).unwrap();
        assert_eq!(event.body, None);
        assert_eq!(event.json.to_value()["song"], 1);
    }

    #[test]
    fn an_error_that_ends_a_stream_is_no_event_of_the_log() {
        let last = r#"{"type":"error","code":"ACCESS_ENDED","detail":"no longer allowed"}"#;
        assert!(!Event::is_placed(last));
        for other in [&format!(r#"{{"type":"error",{HEAD}}}"#), "{}", "not JSON"] {
            assert!(Event::is_placed(other), "{other}");
        }
    }
}
