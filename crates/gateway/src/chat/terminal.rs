//! Reads what a person types: messages, answers to questions, inputs in an editor.

use std::io::Write as _;
use std::path::PathBuf;

use anyhow::Context as _;
use rustyline::error::ReadlineError;
use rustyline::{Config, DefaultEditor};
use serde_json::Value;

/// Messages that the history file keeps.
const HISTORY_LINES: usize = 1_000;

/// The result of reading a line.
#[derive(Debug, PartialEq, Eq)]
pub enum Typed {
    /// A line of text.
    Line(String),
    /// Ctrl-C.
    Interrupt,
    /// Ctrl-D, or the terminal is gone.
    End,
}

/// The keyboard, with line editing and a history of messages.
pub struct Terminal {
    messages: DefaultEditor,
    answers: DefaultEditor,
    history: Option<PathBuf>,
}

impl Terminal {
    /// Opens the terminal and loads the history of earlier sessions.
    pub fn open() -> anyhow::Result<Self> {
        let config = || anyhow::Ok(Config::builder().max_history_size(HISTORY_LINES)?.build());
        let mut terminal = Self {
            messages: DefaultEditor::with_config(config()?)?,
            answers: DefaultEditor::with_config(config()?)?,
            history: history_file(),
        };
        if let Some(file) = &terminal.history {
            // There is none at the first start, and a chat works without history.
            let _ = terminal.messages.load_history(file);
        }
        Ok(terminal)
    }

    /// Reads the next message.
    pub fn message(&mut self, prompt: &str) -> anyhow::Result<Typed> {
        let typed = read(&mut self.messages, prompt)?;
        if let Typed::Line(line) = &typed
            && !line.trim().is_empty()
        {
            self.messages.add_history_entry(line.as_str())?;
            if let Some(file) = &self.history {
                // A full disk must not end the conversation.
                let _ = self.messages.save_history(file);
            }
        }
        Ok(typed)
    }

    /// Reads the answer to a question; it is not added to the history.
    pub fn answer(&mut self, question: &str) -> anyhow::Result<Typed> {
        read(&mut self.answers, question)
    }
}

/// Blocks this thread until a line is typed; other tasks run on other threads.
fn read(editor: &mut DefaultEditor, prompt: &str) -> anyhow::Result<Typed> {
    match tokio::task::block_in_place(|| editor.readline(prompt)) {
        Ok(line) => Ok(Typed::Line(line)),
        Err(ReadlineError::Interrupted) => Ok(Typed::Interrupt),
        Err(ReadlineError::Eof) => Ok(Typed::End),
        Err(error) => Err(error).context("the terminal cannot be read"),
    }
}

/// `$XDG_STATE_HOME/toolgate/chat-history`; creates its directory.
fn history_file() -> Option<PathBuf> {
    let absolute = |name| {
        std::env::var_os(name)
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
    };
    let state = absolute("XDG_STATE_HOME").or_else(|| Some(absolute("HOME")?.join(".local/state")))?;
    let directory = state.join("toolgate");
    std::fs::create_dir_all(&directory).ok()?;
    Some(directory.join("chat-history"))
}

/// Opens a value in the person's editor and returns the edited one.
pub fn edit(value: &Value) -> anyhow::Result<Value> {
    let mut file = tempfile::Builder::new()
        .prefix("toolgate-")
        .suffix(".json")
        .tempfile()?;
    file.write_all(serde_json::to_string_pretty(value)?.as_bytes())?;
    let editor = ["VISUAL", "EDITOR"]
        .iter()
        .find_map(|name| std::env::var(name).ok().filter(|value| !value.is_empty()));
    let editor = editor.unwrap_or_else(|| "vi".into());
    let mut words = shlex::split(&editor).unwrap_or_default().into_iter();
    let program = words
        .next()
        .context("EDITOR is empty, set it to an editor's command")?;
    let status = tokio::task::block_in_place(|| {
        std::process::Command::new(&program)
            .args(words)
            .arg(file.path())
            .status()
    });
    let status =
        status.with_context(|| format!("{program} cannot be started, set EDITOR to another editor"))?;
    anyhow::ensure!(status.success(), "{program} ended with {status}");
    let text = std::fs::read_to_string(file.path())?;
    serde_json::from_str(&text).context("the edited text is not JSON")
}
