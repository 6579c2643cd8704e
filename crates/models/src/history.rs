//! Serialization that all vendors' requests share: a conversation is written without being copied first.

use std::borrow::Cow;

use serde::{Serialize, Serializer, ser::SerializeMap};
use toolgate_kernel::json::Json;
use toolgate_kernel::message::Part;
use toolgate_kernel::name::NAME_CHARS_MAX;
use toolgate_kernel::prompt::{CallResult, Said, Turn};

/// Replaces an image that a vendor does not accept.
pub(crate) const IMAGE_UNSUPPORTED: &str = "[an image that cannot be shown to this model]";

/// A JSON array that is serialized while it is iterated.
pub(crate) struct Each<F>(pub F);

impl<F: Fn() -> I, I: Iterator<Item: Serialize>> Serialize for Each<F> {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        out.collect_seq((self.0)())
    }
}

/// The contents of a turn by kind; two of the three are empty.
pub(crate) fn contents(turn: &Turn) -> (&[Part], &[Said], &[CallResult]) {
    match turn {
        Turn::User(parts) => (parts, &[], &[]),
        Turn::Assistant(said) => (&[], said, &[]),
        Turn::Results(results) => (&[], &[], results),
    }
}

/// A call's input as a JSON object, which every vendor requires; anything else the model wrote goes into the
/// member `input`.
pub(crate) struct Object<'a>(pub &'a Json);

impl Serialize for Object<'_> {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        if self.0.as_str().starts_with('{') {
            return self.0.serialize(out);
        }
        let mut object = out.serialize_map(Some(1))?;
        object.serialize_entry("input", self.0)?;
        object.end()
    }
}

/// A call's output as a string, which some vendors require: a string as it is, anything else as JSON text.
pub(crate) struct OutputText<'a>(pub &'a Json);

impl Serialize for OutputText<'_> {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        match self.0.as_str() {
            text if text.starts_with('"') => self.0.serialize(out),
            text => out.serialize_str(text),
        }
    }
}

/// A tool name that vendors accept. A model may have made up a name that its vendor would reject in the next
/// request.
pub(crate) fn sendable(name: &str) -> Cow<'_, str> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if (1..=NAME_CHARS_MAX).contains(&name.len()) && name.chars().all(allowed) {
        return name.into();
    }
    let mended = name.chars().map(|c| if allowed(c) { c } else { '_' });
    let mended: String = mended.take(NAME_CHARS_MAX).collect();
    if mended.is_empty() {
        "_".into()
    } else {
        mended.into()
    }
}

/// The source of an image.
pub(crate) enum Image<'a> {
    /// A URL.
    Url(&'a str),
    /// Contained in the message as a `data:` URL.
    Inline {
        /// Media type, such as `image/png`.
        media_type: &'a str,
        /// Base64-encoded bytes.
        data: &'a str,
    },
    /// A form that no vendor accepts.
    Unsupported,
}

/// Parses a `data:` URL; other URLs are returned as they are.
pub(crate) fn image(url: &str) -> Image<'_> {
    let Some(rest) = url.strip_prefix("data:") else {
        return Image::Url(url);
    };
    match rest
        .split_once(',')
        .and_then(|(head, data)| Some((head.strip_suffix(";base64")?, data)))
    {
        Some((head, data)) => Image::Inline {
            media_type: head.split(';').next().unwrap_or_default(),
            data,
        },
        None => Image::Unsupported,
    }
}

/// The reasoning effort for vendors that do not take a token count.
pub(crate) fn effort(reasoning_tokens: u32) -> &'static str {
    match reasoning_tokens {
        0..=2048 => "low",
        2049..=8192 => "medium",
        _ => "high",
    }
}
