//! Turns failures into error messages without API keys, and decides whether a retry can help.

use std::borrow::Cow;
use std::time::Duration;

use serde::Deserialize;
use serde_json::value::RawValue;
use toolgate_engine::model::{ModelError, ModelErrorKind};
use toolgate_kernel::agent::Secret;

use crate::json::{First, Text};

/// Most characters of an error message.
const MESSAGE_CHARS_MAX: usize = 400;
/// Most characters of a response that are quoted.
const SEEN_CHARS_MAX: usize = 200;
/// Most characters of a content type.
const CONTENT_TYPE_CHARS_MAX: usize = 64;
/// Longest beginning of the API key that may remain at the end of a cut message.
const KEY_BYTES_SHOWN_MAX: usize = 4;
/// Shortest beginning or end of the API key that is removed wherever it is quoted.
const KEY_PART_BYTES_MIN: usize = 8;
/// Longest `Retry-After` that is honoured.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(3600);

/// An error that a retry may fix.
pub(crate) fn retryable(message: impl Into<String>) -> ModelError {
    ModelError::new(ModelErrorKind::Retryable, message)
}

/// An error that a retry cannot fix.
pub(crate) fn permanent(message: impl Into<String>) -> ModelError {
    ModelError::new(ModelErrorKind::Final, message)
}

/// What stands in a message in place of an API key.
const HIDDEN: &str = "***";

/// Removes the API key from the message, and cuts a long message.
pub(crate) fn redacted(mut error: ModelError, key: Option<&Secret>) -> ModelError {
    if let Some(key) = key.map(Secret::expose)
        && !key.is_empty()
    {
        error.message = error.message.replace(key, HIDDEN);
        // As PHP and others write it in JSON.
        if key.contains('/') {
            error.message = error.message.replace(&key.replace('/', r"\/"), HIDDEN);
        }
        // Some vendors quote a key with stars in its middle.
        let ends = key.char_indices().skip(1).map(|(start, _)| &key[start..]);
        let beginnings = key.char_indices().map(|(end, _)| &key[..end]).rev();
        for part in beginnings.clone().chain(ends) {
            if part.len() >= KEY_PART_BYTES_MIN && error.message.contains(part) {
                error.message = error.message.replace(part, HIDDEN);
            }
        }
        // What is quoted may be cut in the middle of the key.
        let told = beginnings
            .take_while(|part| part.len() > KEY_BYTES_SHOWN_MAX)
            .find_map(|part| error.message.strip_suffix(part));
        if let Some(told) = told {
            error.message = format!("{told}{HIDDEN}");
        }
    }
    if let Some((cut, _)) = error.message.char_indices().nth(MESSAGE_CHARS_MAX) {
        error.message.truncate(cut);
        error.message.push('…');
    }
    error
}

/// An error object of a vendor, from a response body or from the middle of a stream.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct VendorError<'a> {
    #[serde(borrow)]
    message: Text<'a>,
    #[serde(borrow, rename = "type")]
    kind: Text<'a>,
    #[serde(borrow)]
    code: Text<'a>,
    #[serde(borrow)]
    status: Text<'a>,
}

impl<'a> VendorError<'a> {
    /// Reads the member `error`: an object or a string.
    pub(crate) fn read(raw: &'a RawValue) -> Self {
        serde_json::from_str(raw.get()).unwrap_or_else(|_| Self {
            message: serde_json::from_str(raw.get()).unwrap_or_default(),
            ..Self::default()
        })
    }

    /// The error for one that arrived in the middle of a stream. The vendor had accepted the request, so the
    /// error is retryable unless its code says otherwise.
    pub(crate) fn in_stream(&self) -> ModelError {
        let kind = if self.is_too_long() {
            ModelErrorKind::TooLong
        } else if self.is_final() {
            ModelErrorKind::Final
        } else {
            ModelErrorKind::Retryable
        };
        ModelError::new(
            kind,
            format!("the model stopped with an error: {}", self.summary()),
        )
    }

    fn summary(&self) -> Cow<'_, str> {
        let name = [&self.kind, &self.status, &self.code]
            .into_iter()
            .find(|name| !name.is_empty());
        match (name, self.message.is_empty()) {
            (Some(name), false) => format!("{} ({})", &*self.message, &**name).into(),
            (Some(name), true) => Cow::Borrowed(name),
            (None, false) => Cow::Borrowed(&self.message),
            (None, true) => "no reason given".into(),
        }
    }

    /// Whether the vendor refuses the request because of its length: by its code where it has one, by its words else.
    fn is_too_long(&self) -> bool {
        const CODES: &[&str] = &[
            // OpenAI, Groq and others after them
            "context_length_exceeded",
            // Anthropic
            "request_too_large",
            // llama.cpp
            "exceed_context_size_error",
        ];
        const WORDS: &[&str] = &[
            // Anthropic
            "prompt is too long",
            "exceed context limit",
            // Google: "The input token count (…) exceeds the maximum number of tokens allowed (…)."
            "exceeds the maximum number of tokens",
            // OpenAI, vLLM, Mistral, DeepSeek: "This model's maximum context length is … tokens."
            "maximum context length",
            "longer than the maximum model length",
            "exceeds the context window",
            "exceeds the available context size",
            // Bedrock
            "input is too long",
        ];
        let names = [&self.kind, &self.code, &self.status];
        let message = self.message.to_ascii_lowercase();
        names.into_iter().any(|name| CODES.contains(&&**name))
            || WORDS.iter().any(|words| message.contains(words))
    }

    fn is_final(&self) -> bool {
        const FINAL: &[&str] = &[
            // OpenAI and Anthropic
            "invalid_request_error",
            "authentication_error",
            "permission_error",
            "not_found_error",
            "request_too_large",
            "billing_error",
            "insufficient_quota",
            "invalid_api_key",
            "model_not_found",
            "context_length_exceeded",
            // Google
            "INVALID_ARGUMENT",
            "FAILED_PRECONDITION",
            "UNAUTHENTICATED",
            "PERMISSION_DENIED",
            "NOT_FOUND",
            // Servers that put the HTTP status there
            "400",
            "401",
            "402",
            "403",
            "404",
            "413",
            "422",
        ];
        [&self.kind, &self.code, &self.status]
            .into_iter()
            .any(|name| FINAL.contains(&&**name))
    }
}

/// The error for a response with status 200 that is no event stream, such as the page of a proxy or of another server.
pub(crate) fn no_stream(host: &str, content_type: &str, body: &[u8]) -> ModelError {
    let kind = match content_type {
        "" => "without a content type",
        named => &format!("with {named}"),
    };
    permanent(format!(
        "{host} answered {kind}, expected an event stream, check the path of baseUrl: {}",
        seen(body)
    ))
}

/// The error for a response that is not an event stream. `key_sent`: the request had an API key.
pub(crate) fn response_error(
    host: &str,
    key_sent: bool,
    status: http::StatusCode,
    headers: &http::HeaderMap,
    body: &[u8],
) -> ModelError {
    #[derive(Deserialize)]
    struct Body<'a> {
        #[serde(borrow)]
        error: &'a RawValue,
    }
    // Google may wrap it in a list; the list is tried first because serde reads a list as a struct, too.
    let error = serde_json::from_slice::<First<Body<'_>>>(body)
        .map_or_else(|_| serde_json::from_slice::<Body<'_>>(body).ok(), |list| list.0);
    let error = error.map(|body| VendorError::read(body.error));
    if status.is_success() {
        return error.map_or_else(
            || no_stream(host, &content_type(headers), body),
            |error| error.in_stream(),
        );
    }
    let is_vendors = error.is_some();
    let error = error.unwrap_or_default();
    // A used-up quota is also a 429, but waiting does not restore it.
    let may_retry = is_passing(status) && &*error.code != "insufficient_quota";
    let words = match is_vendors {
        true => error.summary(),
        false => seen(body).into(),
    };
    let message = match status.as_u16() {
        // Of a key, vendors quote a few letters at most; one that quotes all of it is `redacted` by the caller.
        401 if key_sent => format!("{host} rejected the API key (401): {words}"),
        401 => format!(
            "{host} wants an API key (401) and none is set, set apiKey in the agent's model or TOOLGATE_MODEL_API_KEY \
             for the default model: {words}"
        ),
        404 if !is_vendors => {
            format!("{host} answered 404, which baseUrl leads to when its path is wrong: {words}")
        }
        code => format!("{host} answered {code}: {words}"),
    };
    let kind = if may_retry {
        ModelErrorKind::Retryable
    } else if status == http::StatusCode::PAYLOAD_TOO_LARGE || error.is_too_long() {
        ModelErrorKind::TooLong
    } else {
        ModelErrorKind::Final
    };
    ModelError {
        retry_after: retry_after(headers).filter(|_| may_retry),
        status: Some(status.as_u16()),
        ..ModelError::new(kind, message)
    }
}

/// The media type of a response, without its parameters; empty when it has none.
pub(crate) fn content_type(headers: &http::HeaderMap) -> String {
    let value = headers
        .get(http::header::CONTENT_TYPE)
        .map_or(&b""[..], http::HeaderValue::as_bytes);
    let media = value.split(|byte| *byte == b';').next().unwrap_or_default();
    let media = String::from_utf8_lossy(media).trim().to_ascii_lowercase();
    media.chars().take(CONTENT_TYPE_CHARS_MAX).collect()
}

/// The beginning of a response that no vendor writes, such as the page of a proxy or of another server, on one line.
fn seen(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body);
    let words: Vec<&str> = text.split_whitespace().collect();
    let line: String = words
        .join(" ")
        .chars()
        .filter(|c| !c.is_control())
        .take(SEEN_CHARS_MAX)
        .collect();
    match line.is_empty() {
        true => "an empty body".to_owned(),
        false => line,
    }
}

/// Whether a status means a temporary condition and not a bad request.
fn is_passing(status: http::StatusCode) -> bool {
    status.is_server_error() || matches!(status.as_u16(), 408 | 409 | 429)
}

/// The wait that the vendor asks for, from `retry-after-ms` or `retry-after` in seconds. HTTP dates are not
/// parsed: no vendor sends one.
fn retry_after(headers: &http::HeaderMap) -> Option<Duration> {
    let number = |name| headers.get(name)?.to_str().ok()?.trim().parse::<f64>().ok();
    let seconds = number("retry-after-ms")
        .map(|ms| ms / 1000.0)
        .or_else(|| number("retry-after"))?;
    Duration::try_from_secs_f64(seconds)
        .ok()
        .map(|wait| wait.min(RETRY_AFTER_MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_removed_also_where_it_is_quoted_in_part() {
        let key = Secret::new("sk-proj-abcdefghijklmnop/wxyz0123");
        for (said, told) in [
            ("bad key sk-proj-abcdefghijklmnop/wxyz0123.", "bad key ***."),
            (r"bad key sk-proj-abcdefghijklmnop\/wxyz0123.", "bad key ***."),
            ("bad key sk-proj-abcd****wxyz0123.", "bad key **********."),
            ("bad key sk-proj-****op/wxyz0123.", "bad key **********."),
            ("bad key sk-p", "bad key sk-p"),
            ("bad key sk-proj", "bad key ***"),
            ("the key has expired", "the key has expired"),
        ] {
            assert_eq!(redacted(permanent(said), Some(&key)).message, told, "{said}");
        }
    }
}
