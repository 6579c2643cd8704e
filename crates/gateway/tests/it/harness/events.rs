//! Events as a client reads them.

use reqwest::Response;
use serde_json::Value;

use super::soon;

/// Durable events stand at multiples of this; what lies between is transient.
const STRIDE: u64 = 1_000_000;

/// One event.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    pub seq: u64,
    pub kind: String,
    pub data: Value,
}

impl Event {
    /// From the JSON that streams and lists share.
    pub fn from_json(data: Value) -> Self {
        let seq = data["seq"].as_u64().unwrap_or_else(|| panic!("no seq in {data}"));
        let kind = data["type"]
            .as_str()
            .unwrap_or_else(|| panic!("no type in {data}"))
            .into();
        Self { seq, kind, data }
    }
    /// Whether it is stored.
    pub fn is_durable(&self) -> bool {
        self.seq.is_multiple_of(STRIDE)
    }
    /// A text member.
    pub fn text(&self, member: &str) -> &str {
        self.data[member]
            .as_str()
            .unwrap_or_else(|| panic!("no {member} in {}", self.data))
    }
    /// The call it is about.
    pub fn call(&self) -> &str {
        self.text("toolCallId")
    }
    /// Whether it offers a call to a client.
    pub fn is_offer(&self) -> bool {
        self.kind == "tool-input-available" && self.data["placement"] == "client"
    }
}

/// A stream of events as it arrives.
pub struct EventStream {
    response: Response,
    buffer: Vec<u8>,
    /// The stream was closed in order, not broken.
    pub ended_well: bool,
    /// Everything that came, as bytes.
    pub raw: Vec<u8>,
}

impl EventStream {
    pub fn of(response: Response) -> Self {
        Self {
            response,
            buffer: Vec::new(),
            ended_well: false,
            raw: Vec::new(),
        }
    }

    /// The next event; none when the stream is over.
    pub async fn next(&mut self) -> Option<Event> {
        loop {
            while let Some(block) = self.take_block() {
                if let Some(event) = parse(&block) {
                    return Some(event);
                }
            }
            match self.response.chunk().await {
                Ok(Some(chunk)) => {
                    self.buffer.extend_from_slice(&chunk);
                    self.raw.extend_from_slice(&chunk);
                }
                Ok(None) => {
                    self.ended_well = true;
                    return None;
                }
                Err(_) => return None,
            }
        }
    }

    /// The next event for which `wanted` holds; what comes before it is left out.
    pub async fn until(&mut self, what: &str, wanted: impl Fn(&Event) -> bool) -> Event {
        soon(what, async {
            loop {
                let event = self.next().await;
                let event = event.unwrap_or_else(|| panic!("the stream ended before {what}"));
                if wanted(&event) {
                    return event;
                }
            }
        })
        .await
    }

    /// The next offer of a call to a client.
    pub async fn offer(&mut self) -> Event {
        self.until("an offer of a call", Event::is_offer).await
    }

    /// Everything up to the end.
    pub async fn rest(&mut self) -> Vec<Event> {
        soon("the end of the stream", async {
            let mut events = Vec::new();
            while let Some(event) = self.next().await {
                events.push(event);
            }
            events
        })
        .await
    }

    fn take_block(&mut self) -> Option<String> {
        let end = self.buffer.windows(2).position(|pair| pair == b"\n\n")?;
        let block: Vec<u8> = self.buffer.drain(..end + 2).collect();
        Some(String::from_utf8(block).expect("a stream is UTF-8"))
    }
}

/// An event, or none for a comment; checks that the frame and the JSON in it agree.
fn parse(block: &str) -> Option<Event> {
    let field = |name: &str| block.lines().find_map(|line| line.strip_prefix(name));
    let data = field("data: ")?;
    let event = Event::from_json(serde_json::from_str(data).expect("data is JSON"));
    assert_eq!(field("id: "), Some(event.seq.to_string().as_str()), "{block}");
    assert_eq!(field("event: "), Some(event.kind.as_str()), "{block}");
    Some(event)
}
