//! The text of a run, each piece exactly once.

use std::collections::HashMap;
use std::sync::Arc;

use toolgate_kernel::event::Event as Body;

/// Text of each part of the current step that was returned. Deltas are not stored: a client that connects
/// late or reconnects gets the missing text from the event that ends the part.
#[derive(Debug, Default)]
pub(crate) struct StreamedText {
    returned: HashMap<Arc<str>, String>,
}

impl StreamedText {
    /// The text that is new with this event.
    pub fn new_in(&mut self, body: &Body) -> Option<String> {
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
            // A new step or a retry: text of the step before is complete or discarded.
            Body::StepStart(_) | Body::StepRetry(_) => {
                self.returned.clear();
                return None;
            }
            _ => return None,
        };
        (!new.is_empty()).then_some(new)
    }
}

#[cfg(test)]
mod tests {
    use toolgate_kernel::event::{StepStart, TextDelta, TextEnd};

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
        events.filter_map(|event| words.new_in(&event)).collect()
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
