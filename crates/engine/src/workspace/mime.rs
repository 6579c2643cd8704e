//! Media types of files, as `type/subtype`.

use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::FileName;

const BYTES_MAX: usize = 127;

/// A media type without parameters, in lower case.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Mime(String);

/// The text is no media type.
#[derive(Debug, thiserror::Error)]
#[error("{0:?} is no media type; expected one like \"text/markdown\"")]
pub struct BadMime(String);

impl Mime {
    /// The media type as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
    /// Guesses by the file's extension; without a known one, by whether the content is text.
    pub fn guess(name: &FileName, data: &[u8]) -> Self {
        let extension = name.extension().unwrap_or_default();
        let known = match extension.as_str() {
            "txt" | "log" => "text/plain",
            "md" | "markdown" => "text/markdown",
            "html" | "htm" => "text/html",
            "css" => "text/css",
            "csv" => "text/csv",
            "js" | "mjs" => "text/javascript",
            "json" => "application/json",
            "jsonl" | "ndjson" => "application/x-ndjson",
            "xml" => "application/xml",
            "yaml" | "yml" => "application/yaml",
            "toml" => "application/toml",
            "pdf" => "application/pdf",
            "zip" => "application/zip",
            "png" => "image/png",
            "jpg" | "jpeg" => "image/jpeg",
            "gif" => "image/gif",
            "webp" => "image/webp",
            "svg" => "image/svg+xml",
            "mp3" => "audio/mpeg",
            "wav" => "audio/wav",
            "mp4" => "video/mp4",
            _ if std::str::from_utf8(data).is_ok() => "text/plain",
            _ => "application/octet-stream",
        };
        Self(known.into())
    }
}

/// Parameters after a semicolon are dropped.
impl FromStr for Mime {
    type Err = BadMime;
    fn from_str(raw: &str) -> Result<Self, BadMime> {
        let media = raw.split(';').next().unwrap_or_default().trim();
        let token = |part: &str| {
            let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$&^_.+-".contains(&byte);
            !part.is_empty() && part.bytes().all(allowed)
        };
        match media.split_once('/') {
            Some((kind, subtype)) if media.len() <= BYTES_MAX && token(kind) && token(subtype) => {
                Ok(Self(media.to_ascii_lowercase()))
            }
            _ => Err(BadMime(media.chars().take(BYTES_MAX).collect())),
        }
    }
}

impl TryFrom<String> for Mime {
    type Error = BadMime;
    fn try_from(raw: String) -> Result<Self, BadMime> {
        raw.parse()
    }
}
impl From<Mime> for String {
    fn from(mime: Mime) -> Self {
        mime.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_type_is_read_without_parameters_and_odd_ones_are_refused() {
        assert_eq!(
            "Text/HTML; charset=utf-8".parse::<Mime>().unwrap().as_str(),
            "text/html"
        );
        for odd in [
            "",
            "text",
            "text/",
            "a/b/c",
            "text/ht ml",
            "text/\r\nx: y",
            &"a/".repeat(99),
        ] {
            assert!(odd.parse::<Mime>().is_err(), "{odd:?} was taken");
        }
    }
}
