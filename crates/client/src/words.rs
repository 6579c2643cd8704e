//! The words of a run, each of them once.

use std::collections::HashMap;
use std::sync::Arc;

use toolgate_kernel::event::Event as Body;

/// What of each part of the step was told. Deltas are gone once their part is whole: whoever comes late, or comes
/// back, has the rest from the event that ends the part.
#[derive(Debug, Default)]
pub(crate) struct Words {
    told: HashMap<Arc<str>, String>,
}

impl Words {
    /// The words that are new with this event.
    pub fn new_in(&mut self, body: &Body) -> Option<String> {
        let new = match body {
            Body::TextDelta(more) => {
                self.told
                    .entry(more.id.clone())
                    .or_default()
                    .push_str(&more.delta);
                more.delta.clone()
            }
            Body::TextEnd(part) => {
                let told = self.told.remove(&part.id).unwrap_or_default();
                part.text.strip_prefix(&told).unwrap_or(&part.text).to_owned()
            }
            // What the step said is void.
            Body::StepStart(_) | Body::StepRetry(_) => {
                self.told.clear();
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

    /// Deltas, then the end of the part; gives what was told, piece by piece.
    fn told(deltas: &[&str], text: &str) -> Vec<String> {
        let mut words = Words::default();
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
    fn words_that_were_told_are_not_told_again() {
        assert_eq!(told(&["Hell", "o"], "Hello"), ["Hell", "o"]);
    }

    #[test]
    fn words_that_were_missed_come_with_the_end_of_their_part() {
        assert_eq!(told(&[], "Hello"), ["Hello"]);
        assert_eq!(told(&["Hä"], "Hällo"), ["Hä", "llo"]);
    }
}
