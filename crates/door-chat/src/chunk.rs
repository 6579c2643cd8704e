//! Chunks of the AI SDK's UI message stream as text. Absent members are absent: the client takes no null.

use serde::Serialize;
use toolgate_http::stream::on_one_line;
use toolgate_kernel::event::Seq;
use toolgate_kernel::json::Json;

use crate::ui_event::PartKind;

/// One chunk on its way out.
pub(crate) struct Chunk<'a> {
    out: &'a mut Vec<u8>,
    start: usize,
}

impl<'a> Chunk<'a> {
    /// `{"type": kind`.
    pub fn new(out: &'a mut Vec<u8>, kind: &str) -> Self {
        Self::typed(out, kind, "")
    }
    /// A chunk of a text or reasoning part: `{"type": kind-event`.
    pub fn of_part(out: &'a mut Vec<u8>, kind: PartKind, event: &str) -> Self {
        Self::typed(out, kind.as_str(), event)
    }
    fn typed(out: &'a mut Vec<u8>, kind: &str, suffix: &str) -> Self {
        let start = out.len();
        out.extend_from_slice(br#"data: {"type":""#);
        out.extend_from_slice(kind.as_bytes());
        out.extend_from_slice(suffix.as_bytes());
        out.push(b'"');
        Self { out, start }
    }
    /// One more member.
    pub fn with(self, name: &str, value: impl Serialize) -> Self {
        self.out.extend_from_slice(b",\"");
        self.out.extend_from_slice(name.as_bytes());
        self.out.extend_from_slice(b"\":");
        serde_json::to_writer(&mut *self.out, &value).expect("a chunk has text keys");
        self
    }
    /// One more member, if there is one.
    pub fn with_some(self, name: &str, value: Option<impl Serialize>) -> Self {
        match value {
            Some(value) => self.with(name, value),
            None => self,
        }
    }
    /// `name: true`, if so.
    pub fn flag(self, name: &str, set: bool) -> Self {
        self.with_some(name, set.then_some(true))
    }
    /// A value that must be there, though the reader may not know it.
    pub fn value(self, name: &str, value: Option<&Json>, hidden: &str) -> Self {
        match value {
            Some(value) => self.with(name, value),
            None => {
                let hidden = Json::parse(hidden.to_owned()).expect("it is JSON");
                self.with(name, hidden)
            }
        }
    }
    /// The closing brace.
    pub fn end(self) {
        self.out.extend_from_slice(b"}\n\n");
        let end = self.out.len() - 2;
        on_one_line(&mut self.out[self.start..end]);
    }
}

/// A place in a chat's stream: an event, and how many bytes of each part under way were told up to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    pub seq: Seq,
    /// Empty between steps.
    pub told: Vec<usize>,
}

impl Place {
    /// The place right after an event that ends whatever was under way.
    pub fn after(seq: Seq) -> Self {
        Self {
            seq,
            told: Vec::new(),
        }
    }
    /// As the client gives it back: `seq`, or `seq-bytes.bytes`.
    pub fn parse(text: &str) -> Option<Self> {
        let (seq, told) = match text.split_once('-') {
            Some((seq, told)) => (
                seq,
                told.split('.')
                    .map(|bytes| bytes.parse().ok())
                    .collect::<Option<_>>()?,
            ),
            None => (text, Vec::new()),
        };
        let seq = Seq(seq.parse().ok()?);
        Some(Self { seq, told })
    }
    /// As an SSE line.
    pub fn line(&self) -> String {
        let mut line = format!("id: {}", self.seq.0);
        for (i, bytes) in self.told.iter().enumerate() {
            line.push(if i == 0 { '-' } else { '.' });
            line.push_str(&bytes.to_string());
        }
        line.push('\n');
        line
    }
}
