//! Shows a run's events to a person.

use std::fmt::Display;
use std::io::{IsTerminal as _, Write as _};
use std::time::Duration;

use toolgate_client::Event;
use toolgate_client::events::{Event as Body, Status, StepRetry};
use toolgate_kernel::json::Json;
use toolgate_kernel::tool::Placement;

/// Most characters of an input or an output that are shown.
const SHOWN_CHARS_MAX: usize = 200;

/// Moves to the beginning of the line, and clears it.
const CLEAR_LINE: &str = "\r\x1b[K";

/// Writes to standard output. Control characters in the text of a model or a tool are removed, so that it
/// cannot control the terminal.
#[derive(Debug)]
pub struct Screen {
    colours: bool,
    is_terminal: bool,
    /// Whether the cursor is at the beginning of a line.
    at_start: bool,
    /// Whether the line says what the chat waits for.
    is_waiting: bool,
}

#[derive(Debug, Clone, Copy)]
enum Style {
    Dim,
    Bold,
    Green,
    Red,
}

impl Screen {
    /// Uses colours on a terminal, unless `NO_COLOR` is set.
    pub fn new() -> Self {
        let unwanted = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let is_terminal = std::io::stdout().is_terminal();
        Self {
            colours: is_terminal && !unwanted,
            is_terminal,
            at_start: true,
            is_waiting: false,
        }
    }

    /// Shows an event; `here` are the names of the local tools.
    pub fn show(&mut self, event: &Event, here: &[String]) {
        let Some(body) = &event.body else { return };
        match body {
            Body::TextEnd(_) | Body::ReasoningEnd(_) => self.fresh_line(),
            Body::ReasoningDelta(more) => self.think(&more.delta),
            Body::StepRetry(retry) => self.show_retry(retry),
            Body::ToolInputAvailable(call) => {
                let place = match call.placement {
                    Placement::Client if here.iter().any(|name| **name == *call.tool_name) => " (here)",
                    Placement::Client => " (on a client)",
                    Placement::Server | Placement::Plugin | Placement::Mcp => "",
                };
                let input = call.input.as_ref().map(short).unwrap_or_default();
                let name = self.styled(&call.tool_name, Style::Bold);
                let rest = self.styled(&format!("{place} {input}"), Style::Dim);
                self.line(format_args!("● {name}{rest}"));
            }
            Body::ToolProgress(told) => {
                let progress = told.progress.as_ref().map(short).unwrap_or_default();
                self.note(format_args!("{}: {progress}", told.tool_name));
            }
            Body::ToolOutputAvailable(done) => {
                let output = done.output.as_ref().map(short).unwrap_or_default();
                self.outcome('✓', Style::Green, format_args!("{} {output}", done.tool_name));
            }
            Body::ToolOutputError(failed) => {
                let why = failed.error_text.as_deref().unwrap_or("failed");
                self.outcome('✗', Style::Red, format_args!("{} {}", failed.tool_name, cut(why)));
            }
            Body::ToolOutputDenied(no) => {
                let why = no.reason.as_deref().unwrap_or("the call was rejected");
                self.outcome('✗', Style::Red, format_args!("{} {}", no.tool_name, cut(why)));
            }
            Body::Notification(news) => self.note(format_args!("{}", clean(&news.title))),
            Body::RunFinish(end) => match end.status {
                Status::Failed => {
                    let why = end.error.as_deref().unwrap_or("no reason was given");
                    self.error(format_args!("the run failed: {}", clean(why)));
                }
                Status::Cancelled => self.note("cancelled"),
                _ => self.fresh_line(),
            },
            _ => {}
        }
    }

    /// Says that the reply begins again. What stands above is void, and a reader must not take the repeated words
    /// for a part of the answer.
    fn show_retry(&mut self, retry: &StepRetry) {
        match &retry.error {
            Some(why) => self.note(format_args!(
                "the model's reply broke off, the reply begins again: {}",
                cut(why)
            )),
            None => self.note("the gateway was restarted, the reply begins again:"),
        }
    }

    /// Shows what the chat waits for, and since when, on a line of its own that the next words replace. A terminal
    /// only: elsewhere it would be a part of the output.
    pub fn wait(&mut self, what: &str, since: Duration) {
        if !self.is_terminal || !(self.at_start || self.is_waiting) {
            return;
        }
        let words = match since.as_secs() {
            0 => format!("{what} …"),
            seconds => format!("{what} … {seconds} s"),
        };
        let words = self.styled(&words, Style::Dim);
        self.put_raw(&format!("{CLEAR_LINE}{words}"));
        self.is_waiting = true;
    }

    /// Appends text of the model.
    pub fn say(&mut self, text: &str) {
        self.put(&clean(text));
    }

    /// Shows a notice about the conversation.
    pub fn note(&mut self, words: impl Display) {
        let words = self.styled(&words.to_string(), Style::Dim);
        self.line(words);
    }

    /// Shows an error.
    pub fn error(&mut self, words: impl Display) {
        let words = self.styled(&words.to_string(), Style::Red);
        self.line(words);
    }

    /// Shows a line of its own.
    pub fn line(&mut self, words: impl Display) {
        self.fresh_line();
        self.put(&format!("{words}\n"));
    }

    /// Ends the current line.
    pub fn fresh_line(&mut self) {
        self.end_wait();
        if !self.at_start {
            self.put("\n");
        }
    }

    fn think(&mut self, text: &str) {
        let text = clean(text);
        if !text.is_empty() {
            self.put(&self.styled(&text, Style::Dim));
            self.at_start = text.ends_with('\n');
        }
    }

    fn outcome(&mut self, mark: char, style: Style, words: impl Display) {
        let mark = self.styled(&mark.to_string(), style);
        let words = self.styled(&words.to_string(), Style::Dim);
        self.line(format_args!("{mark} {words}"));
    }

    fn styled(&self, text: &str, style: Style) -> String {
        let code = match style {
            Style::Dim => 2,
            Style::Bold => 1,
            Style::Green => 32,
            Style::Red => 31,
        };
        match self.colours {
            true => format!("\x1b[{code}m{text}\x1b[0m"),
            false => text.to_owned(),
        }
    }

    fn put(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        self.end_wait();
        self.at_start = text.ends_with('\n');
        self.put_raw(text);
    }

    /// Takes the line of [`Screen::wait`] away.
    pub fn end_wait(&mut self) {
        if std::mem::take(&mut self.is_waiting) {
            self.put_raw(CLEAR_LINE);
        }
    }

    fn put_raw(&mut self, text: &str) {
        let mut out = std::io::stdout().lock();
        // A terminal that is gone is noticed when the next line is read from it.
        let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    }
}

/// JSON on one line, cut to [`SHOWN_CHARS_MAX`].
pub fn short(json: &Json) -> String {
    cut(json.as_str())
}

fn cut(text: &str) -> String {
    let line: String = clean(text)
        .chars()
        .map(|c| if c == '\n' { ' ' } else { c })
        .collect();
    match line.char_indices().nth(SHOWN_CHARS_MAX) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

/// Removes characters that could control a terminal, or make text look different from what it is.
pub fn clean(text: &str) -> String {
    text.chars().filter(|c| is_seen(*c)).collect()
}

/// Whether a character is visible: no control character, none of zero width, and none that changes the
/// direction of the text after it.
pub fn is_seen(c: char) -> bool {
    let steers = c.is_control() && !matches!(c, '\n' | '\t');
    let unseen = matches!(
        c,
        '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
            | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}'
    );
    !steers && !unseen
}

/// Whether the whole value is shown on one line.
pub fn is_short(json: &Json) -> bool {
    short(json) == json.as_str()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_could_steer_a_terminal_is_left_out() {
        assert_eq!(clean("a\x1b]0;title\x07b\r\nc\u{9b}2J"), "a]0;titleb\nc2J");
    }

    #[test]
    fn what_would_show_something_else_than_stands_there_is_left_out() {
        assert_eq!(
            clean("rm \u{202e}txt.a\u{2066}b\u{200b}\u{feff}\u{200f}"),
            "rm txt.ab"
        );
        assert_eq!(clean("שלום, naïve 漢字 👍"), "שלום, naïve 漢字 👍");
    }

    #[test]
    fn a_value_is_short_when_all_of_it_is_seen() {
        let json = |value: serde_json::Value| Json::from(&value);
        assert!(is_short(&json(serde_json::json!({"path": "a.txt"}))));
        assert!(!is_short(&json(serde_json::json!({"text": "a".repeat(300)}))));
        assert!(!is_short(&json(serde_json::json!({"path": "a\u{202e}b"}))));
    }

    #[test]
    fn long_values_are_cut_to_one_line() {
        assert_eq!(cut("a\nb"), "a b");
        assert_eq!(cut(&"ä".repeat(300)).chars().count(), SHOWN_CHARS_MAX + 1);
    }
}
