//! The text of a run, each piece exactly once.

use std::collections::HashMap;
use std::sync::Arc;

use toolgate_protocol::event::Event as Body;

/// Text of each part of the current step that was returned. Deltas are not stored: a client that connects
/// late or reconnects gets the missing text from the event that ends the part.
#[derive(Debug, Default)]
pub(crate) struct StreamedText {
    returned: HashMap<Arc<str>, String>,
    /// Whether any text of the step was returned.
    has_returned: bool,
}

/// What an event means for the text that was returned so far.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum TextUpdate {
    /// This is new.
    New(String),
    /// The model is asked again: what was returned of the step is void, and comes once more.
    Restarted,
}

impl StreamedText {
    /// The change of the text that this event brings.
    pub fn update(&mut self, body: &Body) -> Option<TextUpdate> {
        let new = match body {
            Body::TextDelta(more) => {
                self.returned
                    .entry(more.id.clone())
                    .or_default()
                    .push_str(&more.delta);
                more.delta.clone()
            }
            Body::TextEnd(part) => {
                let returned = self.returned.remove(&part.id).unwrap_or_default();
                part.text.strip_prefix(&returned).unwrap_or(&part.text).to_owned()
            }
            Body::StepStart(_) => {
                *self = Self::default();
                return None;
            }
            // A crash of the gateway, or of the model's reply.
            Body::StepRetry(_) => {
                let has_returned = self.has_returned;
                *self = Self::default();
                return has_returned.then_some(TextUpdate::Restarted);
            }
            _ => return None,
        };
        self.has_returned |= !new.is_empty();
        (!new.is_empty()).then_some(TextUpdate::New(new))
    }
}

#[cfg(test)]
mod tests {
    use toolgate_protocol::event::{StepRetry, StepStart, TextDelta, TextEnd};
    use toolgate_protocol::time::Time;

    use super::*;

    /// Applies deltas, then the end of the part; collects the new text of each event.
    fn new_text(deltas: &[&str], text: &str) -> Vec<String> {
        let mut words = StreamedText::default();
        let delta = |delta: &&str| {
            Body::from(TextDelta {
                id: "1.0".into(),
                delta: (*delta).into(),
            })
        };
        let end = TextEnd {
            id: "1.0".into(),
            text: text.into(),
        };
        let events = std::iter::once(StepStart { step: 1 }.into())
            .chain(deltas.iter().map(delta))
            .chain([end.into()]);
        let new = |event| match words.update(&event)? {
            TextUpdate::New(new) => Some(new),
            TextUpdate::Restarted => panic!("nothing was retried"),
        };
        events.filter_map(new).collect()
    }

    #[test]
    fn text_is_void_only_where_some_was_returned() {
        let retry = || {
            Body::from(StepRetry {
                step: 1,
                attempt: 0,
                error: None,
                not_before: Time(0),
            })
        };
        let mut words = StreamedText::default();
        assert_eq!(words.update(&retry()), None);
        let delta = TextDelta {
            id: "1.0".into(),
            delta: "Hell".into(),
        };
        words.update(&delta.into());
        assert_eq!(words.update(&retry()), Some(TextUpdate::Restarted));
        assert_eq!(words.update(&retry()), None);
    }

    #[test]
    fn text_that_was_returned_is_not_returned_again() {
        assert_eq!(new_text(&["Hell", "o"], "Hello"), ["Hell", "o"]);
    }

    #[test]
    fn text_that_was_missed_comes_with_the_end_of_their_part() {
        assert_eq!(new_text(&[], "Hello"), ["Hello"]);
        assert_eq!(new_text(&["Hä"], "Hällo"), ["Hä", "llo"]);
    }
}
