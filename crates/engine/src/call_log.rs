//! What the code of a tool writes to its log while a call runs.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

/// Most bytes of a call's log that are kept with its outcome; what was written last stays.
pub const CALL_LOG_BYTES_MAX: usize = 16 << 10;

/// The log of one call. It is stored with the call's outcome, for backends: no user ever sees it. Clones write the same
/// log.
#[derive(Clone, Default)]
pub struct CallLog(Arc<Mutex<Lines>>);

#[derive(Default)]
struct Lines {
    kept: VecDeque<String>,
    /// Bytes of `kept`, with a line break for each.
    bytes: usize,
    dropped: usize,
}

impl CallLog {
    /// Adds a line, which has no line breaks.
    pub fn write(&self, level: &str, text: &str) {
        let mut line = format!("{level} {text}");
        line.truncate(line.floor_char_boundary(CALL_LOG_BYTES_MAX - 1));
        let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        lines.bytes += line.len() + 1;
        lines.kept.push_back(line);
        while lines.bytes > CALL_LOG_BYTES_MAX
            && let Some(oldest) = lines.kept.pop_front()
        {
            lines.bytes -= oldest.len() + 1;
            lines.dropped += 1;
        }
    }

    /// All that is kept, a line each; none if nothing was written.
    pub fn text(&self) -> Option<String> {
        let lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut text = match lines.dropped {
            0 => String::new(),
            dropped => format!("({dropped} earlier lines are left out)\n"),
        };
        text.reserve(lines.bytes);
        for line in &lines.kept {
            text.push_str(line);
            text.push('\n');
        }
        text.pop();
        (!text.is_empty()).then_some(text)
    }
}

#[cfg(test)]
mod tests {
    use super::{CALL_LOG_BYTES_MAX, CallLog};

    #[test]
    fn what_was_written_last_is_kept_within_its_bytes() {
        let log = CallLog::default();
        assert_eq!(log.text(), None);
        log.write("info", "one");
        log.clone().write("error", "two");
        assert_eq!(log.text().as_deref(), Some("info one\nerror two"));
        for number in 0..40 {
            log.write("info", &format!("{number} {}", "ü".repeat(500)));
        }
        let text = log.text().unwrap();
        assert!(
            text.starts_with("(26 earlier lines are left out)\ninfo 24 "),
            "{}",
            &text[..60]
        );
        assert!(text.contains("\ninfo 39 ") && text.len() < CALL_LOG_BYTES_MAX + 64);
        log.write("info", &"x".repeat(2 * CALL_LOG_BYTES_MAX));
        assert!(log.text().unwrap().len() < CALL_LOG_BYTES_MAX + 64);
    }
}
