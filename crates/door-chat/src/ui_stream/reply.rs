//! Whose the model's reply is that streams now. A message may be spoken into a step: then its text belongs to the
//! answer that the step began in, and its calls to the newest one.

/// The reply under way, as one answer sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reply {
    /// None: the last one is whole, or nothing was read yet.
    Over,
    /// None since the message that this answers. Text that streams nonetheless is that of a step whose beginning was
    /// not read, so it is the earlier answer's.
    Awaited,
    /// One that began before the message that this answers.
    Earlier { overtaken: bool },
    /// One of this answer.
    Own {
        /// Something of it was streamed.
        told: bool,
        /// Another message was spoken into it: this answer ends with the reply.
        overtaken: bool,
    },
}

/// What another message means for an answer.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Overtaken {
    /// The answer ends now.
    Now,
    /// The answer ends with the reply under way.
    WithReply,
}

impl Reply {
    pub const NEW: Self = Self::Own {
        told: false,
        overtaken: false,
    };

    /// The message that the answer is for was read, or one before it.
    pub fn precede(&mut self) {
        *self = match *self {
            Self::Own { overtaken, .. } | Self::Earlier { overtaken } => Self::Earlier { overtaken },
            Self::Over | Self::Awaited => Self::Awaited,
        };
    }

    /// Another message came while the answer was written.
    pub fn overtake(&mut self) -> Overtaken {
        match self {
            Self::Over | Self::Awaited => Overtaken::Now,
            Self::Own { overtaken, .. } | Self::Earlier { overtaken } => {
                *overtaken = true;
                Overtaken::WithReply
            }
        }
    }

    /// The reply is whole; true if the answer ends with it.
    pub fn finish(&mut self) -> bool {
        let (next, overtaken) = match *self {
            Self::Own { overtaken, .. } => (Self::Over, overtaken),
            Self::Earlier { overtaken } => (Self::Awaited, overtaken),
            Self::Over | Self::Awaited => (*self, false),
        };
        *self = next;
        overtaken
    }

    pub fn mark_told(&mut self) {
        if let Self::Own { told, .. } = self {
            *told = true;
        }
    }
    /// What was streamed of it is taken back.
    pub fn mark_void(&mut self) {
        if let Self::Own { told, .. } = self {
            *told = false;
        }
    }

    /// Nothing of it was streamed in this answer, so nothing can be void.
    pub fn is_fresh(self) -> bool {
        match self {
            Self::Own { told, .. } => !told,
            Self::Awaited | Self::Earlier { .. } => true,
            Self::Over => false,
        }
    }
    /// Its text is another answer's.
    pub fn hides_text(self) -> bool {
        matches!(self, Self::Awaited | Self::Earlier { .. })
    }
    /// Its calls are another answer's.
    pub fn hides_calls(self) -> bool {
        matches!(
            self,
            Self::Own { overtaken: true, .. } | Self::Earlier { overtaken: true }
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_into_a_reply_takes_its_calls_and_ends_the_answer_with_it() {
        let mut reply = Reply::NEW;
        assert_eq!(reply.overtake(), Overtaken::WithReply);
        assert!(reply.hides_calls() && !reply.hides_text());
        assert!(reply.finish(), "the answer ends with the reply");
        assert_eq!(reply, Reply::Over);
    }

    #[test]
    fn between_replies_a_message_ends_the_answer_at_once() {
        assert_eq!(Reply::Over.overtake(), Overtaken::Now);
        assert_eq!(Reply::Awaited.overtake(), Overtaken::Now);
    }

    #[test]
    fn the_text_of_a_reply_that_began_before_the_message_is_not_told() {
        let mut reply = Reply::NEW;
        reply.precede();
        assert!(reply.hides_text() && !reply.hides_calls() && reply.is_fresh());
        assert!(!reply.finish());
        assert_eq!(reply, Reply::Awaited);
        assert!(reply.hides_text(), "until a step of its own begins");
    }

    #[test]
    fn what_was_not_streamed_cannot_be_void() {
        let mut reply = Reply::NEW;
        assert!(reply.is_fresh());
        reply.mark_told();
        assert!(!reply.is_fresh());
        reply.mark_void();
        assert!(reply.is_fresh());
    }
}
