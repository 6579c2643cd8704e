//! Why a script gave no result, in words for its author.

use rquickjs::{Ctx, Value};

use crate::realm::SCRIPT_NAME;

/// Longest message, in characters.
const MESSAGE_CHARS_MAX: usize = 2_000;

/// Why a script gave no result.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Failure {
    /// Why, for programs.
    pub kind: FailureKind,
    /// Why, in words: what was thrown, and where in the author's code.
    pub message: String,
}

/// Why a script gave no result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailureKind {
    /// It threw, or waits for what never comes.
    Threw,
    /// It is not JavaScript.
    Syntax,
    /// It used up its CPU time.
    Timeout,
    /// It used up its memory.
    Memory,
    /// Its result is larger than permitted.
    OutputTooLarge,
    /// Whoever runs it is gone.
    HostGone,
}

impl Failure {
    pub(crate) fn new(kind: FailureKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
        }
    }

    /// What was thrown. `offset` is how far the first line of the author's code was moved to the right.
    pub(crate) fn thrown<'js>(ctx: &Ctx<'js>, value: &Value<'js>, offset: usize) -> Self {
        // When there is no memory left to make an error of, QuickJS throws null.
        if value.is_null() {
            return Self::new(FailureKind::Memory, "it ran out of memory, or threw null");
        }
        let Some(object) = value.as_object() else {
            return Self::new(FailureKind::Threw, shorten(&primitive(ctx, value)));
        };
        let text = |member: &str| object.get::<_, Option<String>>(member).ok().flatten();
        let (name, message) = (text("name"), text("message"));
        let words = match (&name, &message) {
            (Some(name), Some(message)) if message.is_empty() => name.clone(),
            (Some(name), Some(message)) => format!("{name}: {message}"),
            (None, Some(message)) => message.clone(),
            (_, None) => json(ctx, value),
        };
        let kind = match (name.as_deref(), message.as_deref()) {
            (Some("InternalError"), Some("out of memory")) => FailureKind::Memory,
            (Some("SyntaxError"), _) => FailureKind::Syntax,
            _ => FailureKind::Threw,
        };
        let place = text("stack").and_then(|stack| place(&stack, offset));
        Self::new(kind, format!("{}{}", shorten(&words), place.unwrap_or_default()))
    }
}

/// Where in the author's code the first frame of a stack stands.
fn place(stack: &str, offset: usize) -> Option<String> {
    let (_, after) = stack.split_once(&format!("{SCRIPT_NAME}:"))?;
    let digits = |text: &str| text.chars().take_while(char::is_ascii_digit).collect::<String>();
    let line: usize = digits(after).parse().ok()?;
    let column = after.split_once(':').map(|(_, rest)| digits(rest));
    let column: Option<usize> = column.and_then(|column| column.parse().ok());
    Some(match column {
        Some(column) if line > 1 => format!(" (line {line}, column {column})"),
        Some(column) if column > offset => format!(" (line 1, column {})", column - offset),
        _ => format!(" (line {line})"),
    })
}

/// A thrown value that is no object, as text.
fn primitive<'js>(ctx: &Ctx<'js>, value: &Value<'js>) -> String {
    match value.as_string().map(|text| text.to_string()) {
        Some(Ok(text)) => text,
        Some(Err(_)) => "a text that is not Unicode was thrown".into(),
        None => json(ctx, value),
    }
}

fn json<'js>(ctx: &Ctx<'js>, value: &Value<'js>) -> String {
    let text = ctx.json_stringify(value.clone()).ok().flatten();
    let text = text.and_then(|text| text.to_string().ok());
    text.unwrap_or_else(|| "something that is no error was thrown".into())
}

fn shorten(words: &str) -> String {
    match words.char_indices().nth(MESSAGE_CHARS_MAX) {
        Some((at, _)) => format!("{}…", &words[..at]),
        None => words.to_owned(),
    }
}
