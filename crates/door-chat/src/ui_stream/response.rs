//! Which chunks of an answer reach the client of this response.

use toolgate_kernel::id::MessageId;

use crate::body::Dialect;
use crate::chunk::{Chunk, Place};
use crate::ui_event::answer_id;

/// First event of a response.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum StartAt {
    /// With the answer to this message.
    Message(MessageId),
    /// In the middle of a response that the client has up to here.
    Place(Place),
    /// Behind this place, in a response of its own: the one before has ended, and the client has answered what it asked.
    Continuation(Place),
    /// In the middle of an answer to this message, of which the client has read this many chunks.
    Index(MessageId, usize),
}

/// What the client gets of the answer.
pub(super) struct Response {
    pub dialect: Dialect,
    from: StartAt,
    delivery: Delivery,
    /// Chunks of the answer so far, written or not.
    count: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Delivery {
    /// What is read lies before the beginning of this response: chunks are counted only.
    Seeking,
    Writing,
    /// `[DONE]` is written.
    Over,
}

impl Response {
    pub fn new(from: StartAt, dialect: Dialect) -> Self {
        Self {
            dialect,
            from,
            delivery: Delivery::Seeking,
            count: 0,
        }
    }

    pub fn is_writing(&self) -> bool {
        self.delivery == Delivery::Writing
    }
    pub fn is_over(&self) -> bool {
        self.delivery == Delivery::Over
    }
    /// The place after which it begins, if it has not begun and does not begin with a message.
    pub fn awaited_place(&self) -> Option<&Place> {
        match (&self.from, self.delivery) {
            (StartAt::Place(place) | StartAt::Continuation(place), Delivery::Seeking) => Some(place),
            _ => None,
        }
    }
    /// Whether it goes on with an answer whose last response has ended.
    pub fn is_continuation(&self) -> bool {
        matches!(self.from, StartAt::Continuation(_))
    }
    /// Whether this message is the one that it answers.
    pub fn answers(&self, message: MessageId) -> bool {
        match self.from {
            StartAt::Message(mine) | StartAt::Index(mine, _) => message == mine,
            StartAt::Place(_) | StartAt::Continuation(_) => false,
        }
    }

    /// Begins to write: the answer to a message, or the rest of one.
    pub fn begin(&mut self, answers: Option<MessageId>, bytes: &mut Vec<u8>) {
        self.delivery = Delivery::Writing;
        if answers.is_some() {
            self.count = 0;
        }
        let id = answers.map(answer_id);
        self.to(bytes)
            .chunk(|out| Chunk::new(out, "start").with_some("messageId", id).end());
    }

    /// The last chunks of an answer that was not broken off.
    pub fn finish(&mut self, reason: &str, bytes: &mut Vec<u8>) {
        // Written also to a client that counts too far: it would ask again until this has come.
        if let StartAt::Index(_, seen) = self.from {
            self.count = self.count.max(seen);
        }
        // 5.0.0 takes no reason here.
        let (known, metadata) = match self.dialect {
            Dialect::V5 => (None, Some(serde_json::json!({"finishReason": reason}))),
            Dialect::V6 | Dialect::V7 => (Some(reason), None),
        };
        self.to(bytes).chunk(|out| {
            Chunk::new(out, "finish")
                .with_some("finishReason", known)
                .with_some("messageMetadata", metadata)
                .end();
        });
        self.done(bytes);
    }

    pub fn done(&mut self, bytes: &mut Vec<u8>) {
        if self.is_writing() {
            bytes.extend_from_slice(b"data: [DONE]\n\n");
            self.delivery = Delivery::Over;
        }
    }

    /// Where the next chunks go.
    pub fn to<'a>(&'a mut self, bytes: &'a mut Vec<u8>) -> Sink<'a> {
        Sink {
            response: self,
            bytes,
        }
    }
}

/// Takes chunks and passes on those that the client has not read.
pub(super) struct Sink<'a> {
    response: &'a mut Response,
    bytes: &'a mut Vec<u8>,
}

impl Sink<'_> {
    pub fn chunk(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        self.response.count += 1;
        let is_read = matches!(self.response.from, StartAt::Index(_, seen) if self.response.count <= seen);
        if self.response.is_writing() && !is_read {
            write(self.bytes);
        }
    }
    pub fn dialect(&self) -> Dialect {
        self.response.dialect
    }
}

#[cfg(test)]
pub(super) mod tests {
    use uuid::Uuid;

    use super::*;

    fn message() -> MessageId {
        MessageId::new(Uuid::from_u128(1))
    }

    /// A response that has begun.
    pub fn writing() -> Response {
        let mut response = Response::new(StartAt::Message(message()), Dialect::V6);
        response.begin(Some(message()), &mut Vec::new());
        response
    }

    /// The types of the chunks that were written.
    pub fn types(out: &[u8]) -> Vec<String> {
        let text = std::str::from_utf8(out).unwrap();
        let kinds = text.split("{\"type\":\"").skip(1);
        kinds
            .map(|chunk| chunk.split('"').next().unwrap().to_owned())
            .collect()
    }

    fn step(response: &mut Response, out: &mut Vec<u8>) {
        response.to(out).chunk(|out| Chunk::new(out, "start-step").end());
    }

    #[test]
    fn nothing_is_written_before_the_response_begins() {
        let (mut response, mut out) = (
            Response::new(StartAt::Message(message()), Dialect::V6),
            Vec::new(),
        );
        step(&mut response, &mut out);
        response.done(&mut out);
        assert!(out.is_empty() && !response.is_over());
    }

    #[test]
    fn chunks_that_were_counted_are_left_out_and_the_end_never_is() {
        let (mut response, mut out) = (
            Response::new(StartAt::Index(message(), 2), Dialect::V6),
            Vec::new(),
        );
        response.begin(Some(message()), &mut out);
        step(&mut response, &mut out);
        step(&mut response, &mut out);
        assert_eq!(
            types(&out),
            ["start-step"],
            "the start and the first step were read"
        );

        let (mut response, mut out) = (
            Response::new(StartAt::Index(message(), 99), Dialect::V6),
            Vec::new(),
        );
        response.begin(Some(message()), &mut out);
        response.finish("stop", &mut out);
        assert_eq!(types(&out), ["finish"]);
        assert!(response.is_over());
    }
}
