//! Text and reasoning that has begun and not ended.

use std::collections::VecDeque;
use std::sync::Arc;

use super::response::Sink;
use crate::chunk::Chunk;
use crate::ui_event::PartKind;

/// The parts under way, in the order they began.
#[derive(Default)]
pub(super) struct TextParts {
    open: Vec<OpenPart>,
    /// Bytes that the client has of parts whose deltas are gone by now, in order.
    resumed: VecDeque<usize>,
}

struct OpenPart {
    id: Arc<str>,
    kind: PartKind,
    /// Bytes written so far.
    told: usize,
}

impl TextParts {
    /// The client comes back with so many bytes of each part. What was streamed may be folded into the whole parts by
    /// now; those whose deltas are still there were counted on the way here.
    pub fn resume(&mut self, told: &[usize]) {
        if self.open.is_empty() {
            self.resumed = told.iter().copied().collect();
        }
    }

    /// Bytes written of each part under way: goes into the client's cursor.
    pub fn told(&self) -> Vec<usize> {
        self.open.iter().map(|part| part.told).collect()
    }

    pub fn start(&mut self, kind: PartKind, id: &Arc<str>, sink: &mut Sink<'_>) {
        self.find_or_start(kind, id, sink);
    }

    pub fn add(&mut self, kind: PartKind, id: &Arc<str>, delta: &str, sink: &mut Sink<'_>) {
        self.find_or_start(kind, id, sink).write(delta, sink);
    }

    /// The whole part: what was not written of it yet is written now.
    pub fn end(&mut self, kind: PartKind, id: &Arc<str>, text: &str, sink: &mut Sink<'_>) {
        if let Some(told) = self.resumed.pop_front() {
            self.open.push(OpenPart {
                id: id.clone(),
                kind,
                told,
            });
        }
        let part = self.find_or_start(kind, id, sink);
        if let Some(rest) = text.get(part.told..).filter(|rest| !rest.is_empty()) {
            part.write(rest, sink);
        }
        self.open.retain(|part| part.id != *id);
        write_end(kind, id, sink);
    }

    /// Ends what has begun and will not be ended by the run: the model was cut off, or cancelled.
    pub fn close(&mut self, sink: &mut Sink<'_>) {
        for part in self.open.drain(..) {
            write_end(part.kind, &part.id, sink);
        }
    }

    /// Forgets what has begun.
    pub fn clear(&mut self) {
        self.open.clear();
    }

    fn find_or_start(&mut self, kind: PartKind, id: &Arc<str>, sink: &mut Sink<'_>) -> &mut OpenPart {
        let index = match self.open.iter().position(|part| part.id == *id) {
            Some(index) => index,
            None => {
                self.open.push(OpenPart {
                    id: id.clone(),
                    kind,
                    told: 0,
                });
                sink.chunk(|out| {
                    Chunk::of_part(out, kind, "-start").with("id", id).end();
                });
                self.open.len() - 1
            }
        };
        &mut self.open[index]
    }
}

impl OpenPart {
    fn write(&mut self, delta: &str, sink: &mut Sink<'_>) {
        self.told += delta.len();
        sink.chunk(|out| {
            Chunk::of_part(out, self.kind, "-delta")
                .with("id", &self.id)
                .with("delta", delta)
                .end();
        });
    }
}

fn write_end(kind: PartKind, id: &Arc<str>, sink: &mut Sink<'_>) {
    sink.chunk(|out| Chunk::of_part(out, kind, "-end").with("id", id).end());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ui_stream::response::tests::{types, writing};

    #[test]
    fn a_part_whose_deltas_are_gone_goes_on_behind_what_was_read() {
        let (mut response, mut parts, mut out) = (writing(), TextParts::default(), Vec::new());
        parts.resume(&[5]);
        parts.end(
            PartKind::Text,
            &"1.0".into(),
            "hello world",
            &mut response.to(&mut out),
        );
        assert_eq!(types(&out), ["text-delta", "text-end"]);
        assert!(String::from_utf8(out).unwrap().contains(r#""delta":" world""#));
    }

    #[test]
    fn what_the_run_does_not_end_is_ended_in_order() {
        let (mut response, mut parts, mut out) = (writing(), TextParts::default(), Vec::new());
        parts.add(
            PartKind::Reasoning,
            &"1.0".into(),
            "hm",
            &mut response.to(&mut out),
        );
        parts.add(PartKind::Text, &"1.1".into(), "so", &mut response.to(&mut out));
        assert_eq!(parts.told(), [2, 2]);
        out.clear();
        parts.close(&mut response.to(&mut out));
        assert_eq!(types(&out), ["reasoning-end", "text-end"]);
        assert!(parts.told().is_empty());
    }
}
