//! Parts: what messages and artifacts are made of.

use base64::Engine;
use base64::alphabet;
use base64::engine::general_purpose::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use serde_json::{Value, json};

use crate::json::{Invalid, Members, Object, Violations, parse};
use crate::{Dialect, Metadata};

/// Under this name a value that is not an object stands in a data part of 0.3, where only objects are allowed.
const WRAPPED: &str = "value";
/// Metadata that marks such a part. The Python SDK writes and reads the same mark.
const WRAPPED_MARK: &str = "data_part_compat";

/// One part of a message or an artifact.
#[derive(Clone, PartialEq, Debug)]
pub struct Part {
    /// What the part holds.
    pub content: Content,
    /// Name of the file that the part is.
    pub filename: Option<String>,
    /// Media type of the content. 0.3 has it on files only.
    pub media_type: Option<String>,
    /// What extensions say of the part.
    pub metadata: Option<Metadata>,
}

/// What a part holds: exactly one of these.
#[derive(Clone, PartialEq, Debug)]
pub enum Content {
    /// Text.
    Text(String),
    /// The bytes of a file.
    Raw(Vec<u8>),
    /// Where a file is to be found.
    Url(String),
    /// Any JSON value.
    Data(Value),
}

impl From<Content> for Part {
    fn from(content: Content) -> Self {
        Self {
            content,
            filename: None,
            media_type: None,
            metadata: None,
        }
    }
}

impl Part {
    /// A text part.
    pub fn text(text: impl Into<String>) -> Self {
        Content::Text(text.into()).into()
    }

    /// A data part; its media type is JSON's.
    pub fn data(value: Value) -> Self {
        Self {
            media_type: Some("application/json".into()),
            ..Content::Data(value).into()
        }
    }

    /// The part with what an extension says of it.
    pub fn tagged(mut self, uri: &str, tag: Value) -> Self {
        let metadata = self.metadata.get_or_insert_default();
        metadata.insert(uri.to_owned(), tag);
        self
    }

    /// What the extension `uri` says of the part.
    pub fn tag(&self, uri: &str) -> Option<&Value> {
        self.metadata.as_ref()?.get(uri)
    }

    /// Reads a part.
    pub fn from_json(value: Value, dialect: Dialect) -> Result<Self, Invalid> {
        let part = parse(value, "", |value, at, bad| Self::read(value, at, bad, dialect))?;
        Ok(part.expect("a part without problems was read"))
    }

    /// Writes the part.
    pub fn to_json(&self, dialect: Dialect) -> Value {
        match dialect {
            Dialect::V1 => self.write_v1(),
            Dialect::V03 => self.write_v03(),
        }
    }

    /// None, and a problem, when there is no content.
    pub(crate) fn read(value: Value, at: String, bad: &Violations, dialect: Dialect) -> Option<Self> {
        let object = Object::new(value, at, bad);
        match dialect {
            Dialect::V1 => Self::read_v1(object),
            Dialect::V03 => Self::read_v03(object),
        }
    }

    fn read_v1(mut object: Object<'_>) -> Option<Self> {
        let filename = object.text("filename");
        let media_type = object.text("mediaType");
        let metadata = object.metadata("metadata");
        let text = object.text("text").map(Content::Text);
        let raw = object.text("raw").and_then(|raw| bytes(&object, "raw", &raw));
        let url = object.text("url").map(Content::Url);
        let data = object.any("data").map(Content::Data);
        let mut contents = [text, raw, url].into_iter().flatten();
        let (content, second) = (contents.next(), contents.next());
        // `"data": null` beside other content is an absent member; alone it is the value null.
        let data = data.filter(|data| content.is_none() || *data != Content::Data(Value::Null));
        if second.is_some() || (content.is_some() && data.is_some()) {
            object.bad_here("must hold exactly one of text, raw, url and data, and holds several");
        }
        let content = content.or(data);
        if content.is_none() {
            object.bad_here("must hold exactly one of text, raw, url and data");
        }
        Some(Self {
            content: content?,
            filename,
            media_type,
            metadata,
        })
    }

    fn read_v03(mut object: Object<'_>) -> Option<Self> {
        let metadata = object.metadata("metadata");
        let kind = object.text("kind");
        let kind = kind.as_deref().or_else(|| {
            let names = ["text", "file", "data"];
            names.into_iter().find(|name| object.has(name))
        });
        match kind {
            Some("text") => {
                let text = object.text("text");
                if text.is_none() {
                    object.bad("text", "is required in a text part");
                }
                Some(Self {
                    metadata,
                    ..Self::text(text?)
                })
            }
            Some("data") => {
                let data = object.metadata("data");
                if data.is_none() {
                    object.bad("data", "is required in a data part, and must be an object");
                }
                Some(Self::unwrapped(data?, metadata))
            }
            Some("file") => {
                let file = object.need("file", read_file).flatten()?;
                Some(Self { metadata, ..file })
            }
            Some(other) => {
                object.bad("kind", format!("must be text, file or data, got {other:?}"));
                None
            }
            None => {
                object.bad("kind", "is required: text, file or data");
                None
            }
        }
    }

    /// A data part of 0.3, with what was wrapped taken out again.
    fn unwrapped(mut data: Metadata, mut metadata: Option<Metadata>) -> Self {
        let marked = metadata
            .as_mut()
            .and_then(|metadata| metadata.remove(WRAPPED_MARK));
        let data = match marked {
            Some(Value::Bool(true)) if data.len() == 1 && data.contains_key(WRAPPED) => {
                metadata = metadata.filter(|metadata| !metadata.is_empty());
                data.remove(WRAPPED).expect("it was just seen")
            }
            Some(mark) => {
                let metadata = metadata.as_mut().expect("the mark was in it");
                metadata.insert(WRAPPED_MARK.into(), mark);
                Value::Object(data)
            }
            None => Value::Object(data),
        };
        Self {
            metadata,
            ..Content::Data(data).into()
        }
    }

    fn write_v1(&self) -> Value {
        let members = Members::new();
        let members = match &self.content {
            Content::Text(text) => members.with("text", text.as_str()),
            Content::Raw(bytes) => members.with("raw", STANDARD.encode(bytes)),
            Content::Url(url) => members.with("url", url.as_str()),
            Content::Data(data) => members.with("data", data.clone()),
        };
        members
            .with_some("filename", self.filename.as_deref())
            .with_some("mediaType", self.media_type.as_deref())
            .with_metadata(self.metadata.as_ref())
            .value()
    }

    fn write_v03(&self) -> Value {
        let file = |name: &str, value: &str| {
            Members::new()
                .with(name, value)
                .with_some("name", self.filename.as_deref())
                .with_some("mimeType", self.media_type.as_deref())
                .value()
        };
        let (kind, value) = match &self.content {
            Content::Text(text) => ("text", json!(text)),
            Content::Raw(bytes) => ("file", file("bytes", &STANDARD.encode(bytes))),
            Content::Url(url) => ("file", file("uri", url)),
            Content::Data(data @ Value::Object(_)) => ("data", data.clone()),
            Content::Data(other) => {
                let mut metadata = self.metadata.clone().unwrap_or_default();
                metadata.insert(WRAPPED_MARK.into(), json!(true));
                let members = Members::new()
                    .with("kind", "data")
                    .with("data", json!({WRAPPED: other}));
                return members.with_metadata(Some(&metadata)).value();
            }
        };
        let members = Members::new().with("kind", kind).with(kind, value);
        members.with_metadata(self.metadata.as_ref()).value()
    }
}

/// A file of 0.3.
fn read_file(value: Value, at: String, bad: &Violations) -> Option<Part> {
    let mut object = Object::new(value, at, bad);
    let filename = object.text("name");
    let media_type = object.text("mimeType");
    let raw = object.text("bytes").and_then(|raw| bytes(&object, "bytes", &raw));
    let url = object.text("uri").map(Content::Url);
    if raw.is_some() == url.is_some() {
        object.bad_here("must hold one of bytes and uri");
    }
    Some(Part {
        filename,
        media_type,
        ..raw.or(url)?.into()
    })
}

/// Both alphabets of base64 are read, with and without padding, as ProtoJSON asks.
fn bytes(object: &Object<'_>, name: &str, text: &str) -> Option<Content> {
    const LENIENT: GeneralPurposeConfig = GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true);
    let alphabet = match text.contains(['-', '_']) {
        true => &alphabet::URL_SAFE,
        false => &alphabet::STANDARD,
    };
    let decoded = GeneralPurpose::new(alphabet, LENIENT).decode(text);
    if decoded.is_err() {
        object.bad(name, "must be bytes in base64");
    }
    decoded.ok().map(Content::Raw)
}
