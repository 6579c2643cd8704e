//! Bytes become text for people and models: the words of a page as Markdown, the words of a PDF, and what is text already
//! as it is.
//!
//! What is read comes from strangers. A format that takes a parser is read in a worker process, with little memory and
//! little time: a document that brings its reader down brings down nothing else.

mod charset;
mod html;
mod pdf;
mod worker;

use serde::{Deserialize, Serialize};
use tokio::sync::Semaphore;
use toolgate_worker::{Share, Workers};

pub use worker::{READER, work};

/// How much of a text or a page is read.
pub const TEXT_BYTES_MAX: usize = 2 << 20;
/// Largest PDF; one that is cut cannot be read.
pub const PDF_BYTES_MAX: usize = 8 << 20;
/// Documents that are parsed at the same time, of one project.
const AT_ONCE: usize = 4;

/// Something to be read.
#[derive(Serialize, Deserialize)]
pub(crate) struct Source {
    /// What the sender says it is: a content type, or nothing.
    pub kind: String,
    /// Where it was found; what its links start from.
    pub url: Option<String>,
    /// How much of a page counts.
    pub wanted: Wanted,
    /// The sender had more.
    pub cut: bool,
    #[serde(skip)]
    pub data: Vec<u8>,
}

/// How much of a page counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Wanted {
    /// What it is about, without what stands around it; all of it when that cannot be told.
    Article,
    /// All of it.
    Everything,
}

/// What a person would read.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Readable {
    /// What it calls itself.
    pub title: Option<String>,
    /// Markdown, or plain text.
    pub text: String,
    /// There is more than this.
    pub cut: bool,
    /// Some letters could not be told.
    pub damaged: bool,
}

/// Why there is nothing to read.
#[derive(Debug, PartialEq, Serialize, Deserialize, thiserror::Error)]
pub(crate) enum Unreadable {
    /// Documents of this kind have no text.
    #[error("the page is {0}, which has no text to read")]
    Kind(String),
    /// This one cannot be read, for this reason.
    #[error("{0}")]
    Unfit(String),
}

/// Reads documents, a few at a time.
pub struct Reader {
    parser: Parser,
}

enum Parser {
    Here(Semaphore),
    Workers(Workers),
}

impl Reader {
    /// Parses in this process. For tests, and for documents that nobody hostile has written: a parser that runs wild is
    /// not stopped.
    pub fn here() -> Self {
        let parser = Parser::Here(Semaphore::new(AT_ONCE));
        Self { parser }
    }

    /// Parses in workers of the kind [`READER`], whose program has to call [`work`].
    pub fn in_workers(workers: Workers) -> Self {
        let parser = Parser::Workers(workers);
        Self { parser }
    }

    /// Reads one, for whoever has this share of the workers. Dropping the future ends the process that reads.
    pub(crate) async fn read(&self, source: Source, share: &Share) -> Result<Readable, Unreadable> {
        match source.form() {
            Form::Html | Form::Pdf => {}
            Form::Text | Form::Other(_) => return source.read(),
        }
        match &self.parser {
            Parser::Here(at_once) => {
                let _turn = at_once.acquire().await.expect("it is never closed");
                let read = tokio::task::spawn_blocking(move || source.read()).await;
                read.unwrap_or_else(|_| Err(Unreadable::Unfit("the document cannot be read".into())))
            }
            Parser::Workers(workers) => worker::read(workers, &source, share).await,
        }
    }
}

/// How a document is written.
enum Form {
    Html,
    Pdf,
    Text,
    Other(String),
}

impl Source {
    /// As the sender says, or as it looks when the sender says nothing.
    fn form(&self) -> Form {
        let kind = self.kind.to_ascii_lowercase();
        let media = kind.split(';').next().unwrap_or_default().trim();
        match media {
            "text/html" | "application/xhtml+xml" => Form::Html,
            "application/pdf" | "application/x-pdf" => Form::Pdf,
            "" | "application/octet-stream" if self.data.starts_with(b"%PDF-") => Form::Pdf,
            "" if self.data.trim_ascii_start().starts_with(b"<") => Form::Html,
            "" | "application/json" | "application/xml" | "application/javascript" | "application/yaml" => {
                Form::Text
            }
            _ if media.starts_with("text/") || media.ends_with("+json") || media.ends_with("+xml") => {
                Form::Text
            }
            _ => Form::Other(media.to_owned()),
        }
    }

    /// Takes its time: not for an async task, unless it is text.
    fn read(self) -> Result<Readable, Unreadable> {
        match self.form() {
            Form::Other(media) => Err(Unreadable::Kind(media)),
            Form::Pdf if self.cut || self.data.len() > PDF_BYTES_MAX => Err(Unreadable::Unfit(format!(
                "the PDF is longer than {PDF_BYTES_MAX} bytes"
            ))),
            Form::Pdf => pdf::read(&self.data),
            Form::Html => {
                let (page, cut, damaged) = self.decoded();
                let (title, mut text) = html::read(&page, self.url.as_deref(), self.wanted);
                // Markdown of deep lists is far longer than their markup.
                let cut = cut || text.len() > TEXT_BYTES_MAX;
                text.truncate(text.floor_char_boundary(TEXT_BYTES_MAX));
                Ok(Readable {
                    title,
                    text,
                    cut,
                    damaged,
                })
            }
            Form::Text => {
                let (text, cut, damaged) = self.decoded();
                let heading = text.lines().find_map(|line| line.strip_prefix("# "));
                let title = heading.map(|heading| heading.trim().to_owned());
                Ok(Readable {
                    title,
                    text,
                    cut,
                    damaged,
                })
            }
        }
    }

    /// Its letters, whether there are more, and whether some could not be told.
    fn decoded(&self) -> (String, bool, bool) {
        let start = &self.data[..self.data.len().min(TEXT_BYTES_MAX)];
        let cut = self.cut || start.len() < self.data.len();
        let (text, damaged) = charset::decode(start, &self.kind);
        (text, cut, damaged && !cut)
    }
}
