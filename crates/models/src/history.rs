//! What the vendors' requests share: a conversation written out without being copied first.

use std::borrow::Cow;

use serde::{Serialize, Serializer, ser::SerializeMap};
use toolgate_kernel::json::Json;
use toolgate_kernel::message::Part;
use toolgate_kernel::name::NAME_CHARS_MAX;
use toolgate_kernel::prompt::{CallResult, Said, Turn};

/// Stands where an image was that a vendor cannot be given.
pub(crate) const IMAGE_LOST: &str = "[an image that cannot be shown to this model]";

/// A list that is written as it is walked.
pub(crate) struct Each<F>(pub F);

impl<F: Fn() -> I, I: Iterator<Item: Serialize>> Serialize for Each<F> {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        out.collect_seq((self.0)())
    }
}

/// What a turn holds, of each kind; two of the three are empty.
pub(crate) fn contents(turn: &Turn) -> (&[Part], &[Said], &[CallResult]) {
    match turn {
        Turn::User(parts) => (parts, &[], &[]),
        Turn::Assistant(said) => (&[], said, &[]),
        Turn::Results(results) => (&[], &[], results),
    }
}

/// A call's input as the object that every vendor wants: what the model wrote instead stands in `input`.
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

/// A call's output as the string that some vendors want: a string as it is, anything else as JSON text.
pub(crate) struct Words<'a>(pub &'a Json);

impl Serialize for Words<'_> {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        match self.0.as_str() {
            text if text.starts_with('"') => self.0.serialize(out),
            text => out.serialize_str(text),
        }
    }
}

/// A name that a vendor takes back. A model may have made one up that it would then be refused for.
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

/// Where an image is.
pub(crate) enum Image<'a> {
    /// At an address.
    Url(&'a str),
    /// In the message.
    Inline {
        /// Such as `image/png`.
        media_type: &'a str,
        /// In base 64.
        data: &'a str,
    },
    /// In a form that no vendor takes.
    Lost,
}

/// Takes a `data:` URL apart.
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
        None => Image::Lost,
    }
}

/// How hard a model shall think, for vendors that count no tokens.
pub(crate) fn effort(reasoning_tokens: u32) -> &'static str {
    match reasoning_tokens {
        0..=2048 => "low",
        2049..=8192 => "medium",
        _ => "high",
    }
}
