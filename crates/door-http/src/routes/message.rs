//! What somebody says, in the forms that clients write it.

use serde_json::value::RawValue;
use toolgate_http::wire::{AnyObject, At, List, Members, Text, TextOr, Wire, Words, wire, words};
use toolgate_kernel::id::MessageId;
use toolgate_kernel::json::Json;
use toolgate_kernel::message::{PARTS_MAX, Part};
use toolgate_kernel::problem::{Problem, preview};
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{OneOfBuilder, Schema};

/// Longest address of an image; a `data:` URL holds the image itself.
const URL_CHARS_MAX: usize = 32 << 20;

words! {
    /// Author of a message.
    Role {
        /// A person.
        User = "user",
    }
}
words! {
    /// Marks words.
    TextTag { Text = "text" }
}
words! {
    /// Marks an image.
    ImageTag { Image = "image" }
}

wire! {
    /// A part of a message that is text.
    TextPart {
        /// Always `text`.
        kind "type": TextTag,
        /// The text.
        text "text": Words,
    }
}
wire! {
    /// An image, by `https:` address or as a `data:` URL.
    ImagePart {
        /// Always `image`.
        kind "type": ImageTag,
        /// Where it is, or what it is.
        url "url": ImageUrl,
        /// Its media type, such as `image/png`.
        media_type "mediaType": Option<Text<3, 128>>,
    }
}

/// Where an image is, or what it is.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ImageUrl(String);

impl Wire for ImageUrl {
    fn read(value: &RawValue, at: &At<'_>, problems: &mut Vec<Problem>) -> Option<Self> {
        let url = Text::<1, URL_CHARS_MAX>::read(value, at, problems)?.0;
        if url.starts_with("https://") || url.starts_with("data:") {
            return Some(Self(url));
        }
        let seen = preview(&url);
        problems.push(at.problem(format!("must be an https: address or a data: URL, got {seen}")));
        None
    }
    fn schema() -> RefOr<Schema> {
        utoipa::openapi::ObjectBuilder::new()
            .schema_type(utoipa::openapi::schema::Type::String)
            .pattern(Some("^(https://|data:)"))
            .into()
    }
}

words! {
    /// What a piece of a message is.
    PartKind {
        /// Plain text.
        Text = "text",
        /// An image.
        Image = "image",
    }
}

/// One piece of a message.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct PartBody(Part);

impl Wire for PartBody {
    fn read(value: &RawValue, at: &At<'_>, problems: &mut Vec<Problem>) -> Option<Self> {
        let kind: Option<PartKind> = Members::read(value, at, problems)?.take("type", at, problems);
        match kind? {
            PartKind::Image => {
                let image = ImagePart::read(value, at, problems)?;
                Some(Self(Part::Image {
                    url: image.url.0,
                    media_type: image.media_type.map(|media| media.0),
                }))
            }
            PartKind::Text => Some(Self(Part::Text {
                text: TextPart::read(value, at, problems)?.text.0,
            })),
        }
    }
    fn schema() -> RefOr<Schema> {
        OneOfBuilder::new()
            .item(<TextPart as Wire>::schema())
            .item(<ImagePart as Wire>::schema())
            .into()
    }
    fn components(components: &mut Vec<(String, RefOr<Schema>)>) {
        TextPart::components(components);
        ImagePart::components(components);
    }
}

/// The pieces of a message.
pub(crate) type Parts = List<PartBody, 1, PARTS_MAX>;

wire! {
    /// A message with all that belongs to it.
    MessageObject {
        /// Who speaks; only `user` may.
        role "role": Option<Role>,
        /// Chosen by the sender: the same id again is the same message.
        message_id "messageId": Option<MessageId>,
        /// The text.
        text "text": Option<Words>,
        /// Text, or the parts of the message.
        content "content": Option<TextOr<Parts>>,
        /// Parts of the message.
        parts "parts": Option<Parts>,
        /// Whatever the sender attaches; never given to a model.
        metadata "metadata": Option<AnyObject>,
    }
    exactly one of [text "text", content "content", parts "parts"]
}

/// A message in whatever form it came.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Said {
    pub parts: Vec<Part>,
    pub message_id: Option<MessageId>,
    pub metadata: Option<Json>,
}

impl Said {
    /// From the members of a body, exactly one of which is given.
    pub fn of(
        text: Option<Words>,
        content: Option<TextOr<Parts>>,
        parts: Option<Parts>,
        message: Option<TextOr<MessageObject>>,
    ) -> Self {
        let words = |text| Self {
            parts: vec![Part::Text { text }],
            ..Self::default()
        };
        let pieces = |parts: Parts| Self {
            parts: parts.0.into_iter().map(|part| part.0).collect(),
            ..Self::default()
        };
        match (text, content, parts, message) {
            (Some(text), ..) => words(text.0),
            (_, Some(TextOr::Text(text)), ..) | (_, _, _, Some(TextOr::Text(text))) => words(text),
            (_, Some(TextOr::More(parts)), ..) | (_, _, Some(parts), _) => pieces(parts),
            (_, _, _, Some(TextOr::More(message))) => {
                let said = Self::of(message.text, message.content, message.parts, None);
                Self {
                    message_id: message.message_id,
                    metadata: message.metadata.map(|m| m.0),
                    ..said
                }
            }
            (None, None, None, None) => Self::default(),
        }
    }
}
