//! Converts documents to text for people and models: HTML to Markdown, PDF to plain text, and text as it
//! is.
//!
//! The input is untrusted. Formats that need a parser are parsed in a worker process with limits on memory and
//! time: a document that crashes its parser affects nothing else.

mod charset;
mod html;
mod pdf;
mod worker;

use serde::{Deserialize, Serialize};
use tokio::sync::Semaphore;
use toolgate_fair::Share;
use toolgate_worker::Workers;

pub use worker::{READER, work};

/// Most bytes of a text or page that are read.
pub const TEXT_BYTES_MAX: usize = 2 << 20;
/// Largest PDF in bytes; a truncated one cannot be parsed.
pub const PDF_BYTES_MAX: usize = 8 << 20;
/// Most documents of one project that are parsed at the same time.
const AT_ONCE: usize = 4;

/// A document to convert.
#[derive(Serialize, Deserialize)]
pub(crate) struct Source {
    /// Content type that the sender declares; may be empty.
    pub kind: String,
    /// Address of the document: the base of its links.
    pub url: Option<String>,
    /// Part of a page to convert.
    pub wanted: Wanted,
    /// Whether the content was truncated by the download limit.
    pub cut: bool,
    #[serde(skip)]
    pub data: Vec<u8>,
}

/// Part of a page to convert.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Wanted {
    /// The main article, without navigation; the whole page if there is none.
    Article,
    /// The whole page.
    Everything,
}

/// A converted document.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Readable {
    /// Title.
    pub title: Option<String>,
    /// Markdown, or plain text.
    pub text: String,
    /// Whether the text is truncated.
    pub cut: bool,
    /// Whether some characters could not be decoded.
    pub damaged: bool,
}

/// Why a document cannot be converted.
#[derive(Debug, PartialEq, Serialize, Deserialize, thiserror::Error)]
pub(crate) enum Unreadable {
    /// The media type has no text.
    #[error("the page is {0}, which has no text to read")]
    Kind(String),
    /// This document cannot be parsed, for this reason.
    #[error("{0}")]
    Unfit(String),
}

/// Converter of documents, with limited concurrency.
pub struct Reader {
    parser: Parser,
}

enum Parser {
    Here(Semaphore),
    Workers(Workers),
}

impl Reader {
    /// Parses in this process. For tests and trusted documents only: a parser that does not end is
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

    /// Converts a document, in the caller's share of the workers. Dropping the future kills the worker process.
    pub(crate) async fn read(&self, source: Source, share: Share) -> Result<Readable, Unreadable> {
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

/// Format of a document.
enum Form {
    Html,
    Pdf,
    Text,
    Other(String),
}

impl Source {
    /// The encoding of a page that names none is guessed; a document that is stored has to be what it says.
    fn unnamed(&self) -> charset::Unnamed<'_> {
        match self.wanted {
            Wanted::Everything => charset::Unnamed::Utf8,
            Wanted::Article => {
                let rest = self.url.as_deref().and_then(|url| url.split_once("://"));
                let host = rest.and_then(|(_, rest)| rest.split(['/', ':', '?', '#']).next());
                charset::Unnamed::Guess(host.and_then(|host| host.rsplit_once('.')).map(|(_, last)| last))
            }
        }
    }
    /// The declared format, or a guess by content if none is declared.
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

    /// Blocks: not to be called in an async task, unless the document is text.
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
                // Markdown of nested lists is far longer than their markup.
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

    /// Decoded text, whether it is truncated, and whether some characters could not be decoded.
    fn decoded(&self) -> (String, bool, bool) {
        let start = &self.data[..self.data.len().min(TEXT_BYTES_MAX)];
        let cut = self.cut || start.len() < self.data.len();
        let (text, damaged) = charset::decode(start, &self.kind, self.unnamed());
        (text, cut, damaged && !cut)
    }
}
