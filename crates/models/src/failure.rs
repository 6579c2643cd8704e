//! Turns what went wrong into words that hold no key, and says whether asking again can help.

use std::borrow::Cow;
use std::time::Duration;

use serde::Deserialize;
use serde_json::value::RawValue;
use toolgate_engine::model::{ModelError, ModelErrorKind};
use toolgate_kernel::agent::Secret;

use crate::json::{First, Text};

/// Most characters of an error's message.
const MESSAGE_CHARS_MAX: usize = 400;
/// Longest wait that a vendor may ask for.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(3600);

/// Asking again can help.
pub(crate) fn retryable(message: impl Into<String>) -> ModelError {
    failed(ModelErrorKind::Retryable, message)
}

/// Asking again gives the same.
pub(crate) fn permanent(message: impl Into<String>) -> ModelError {
    failed(ModelErrorKind::Final, message)
}

fn failed(kind: ModelErrorKind, message: impl Into<String>) -> ModelError {
    ModelError {
        message: message.into(),
        kind,
        retry_after: None,
    }
}

/// The error without the key and without the rest of a long message.
pub(crate) fn presentable(mut error: ModelError, key: Option<&Secret>) -> ModelError {
    if let Some(key) = key.map(Secret::expose)
        && !key.is_empty()
    {
        error.message = error.message.replace(key, "***");
    }
    if let Some((cut, _)) = error.message.char_indices().nth(MESSAGE_CHARS_MAX) {
        error.message.truncate(cut);
        error.message.push('…');
    }
    error
}

/// What a vendor says of an error, in the answer's body or in the middle of a stream.
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
    /// Reads the member `error`: an object, or only words.
    pub(crate) fn read(raw: &'a RawValue) -> Self {
        serde_json::from_str(raw.get()).unwrap_or_else(|_| Self {
            message: serde_json::from_str(raw.get()).unwrap_or_default(),
            ..Self::default()
        })
    }

    /// The error as it came in the middle of a stream. The vendor had taken the request, so the fault is
    /// its own and passing unless it says otherwise.
    pub(crate) fn in_stream(&self) -> ModelError {
        let kind = if self.is_final() {
            ModelErrorKind::Final
        } else {
            ModelErrorKind::Retryable
        };
        failed(kind, format!("the model stopped with an error: {}", self.words()))
    }

    fn words(&self) -> Cow<'_, str> {
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
            // Servers that put the status there
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

/// The error behind an answer that is no stream of events.
pub(crate) fn refused(
    host: &str,
    status: http::StatusCode,
    headers: &http::HeaderMap,
    body: &[u8],
) -> ModelError {
    #[derive(Deserialize)]
    struct Body<'a> {
        #[serde(borrow)]
        error: &'a RawValue,
    }
    // Google may wrap it in a list; a list is tried first because serde reads one as a struct, too.
    let error = serde_json::from_slice::<First<Body<'_>>>(body)
        .map_or_else(|_| serde_json::from_slice::<Body<'_>>(body).ok(), |list| list.0);
    let error = error.map(|body| VendorError::read(body.error));
    if status.is_success() {
        return error.map_or_else(
            || {
                permanent(format!(
                    "{host} answered with JSON where a stream of events was asked for"
                ))
            },
            |error| error.in_stream(),
        );
    }
    let error = error.unwrap_or_default();
    // A used-up quota comes as 429, but no wait brings it back.
    let again = is_passing(status) && &*error.code != "insufficient_quota";
    let message = match status.as_u16() {
        // Vendors quote parts of the key here.
        401 => format!("{host} refused the key (401)"),
        code => format!("{host} answered {code}: {}", error.words()),
    };
    ModelError {
        retry_after: retry_after(headers).filter(|_| again),
        ..failed(
            if again {
                ModelErrorKind::Retryable
            } else {
                ModelErrorKind::Final
            },
            message,
        )
    }
}

/// Whether a status speaks of the moment and not of the request.
fn is_passing(status: http::StatusCode) -> bool {
    status.is_server_error() || matches!(status.as_u16(), 408 | 409 | 429)
}

/// How long the vendor asks to wait, in seconds or milliseconds. A date is not read: no vendor sends one.
fn retry_after(headers: &http::HeaderMap) -> Option<Duration> {
    let number = |name| headers.get(name)?.to_str().ok()?.trim().parse::<f64>().ok();
    let seconds = number("retry-after-ms")
        .map(|ms| ms / 1000.0)
        .or_else(|| number("retry-after"))?;
    Duration::try_from_secs_f64(seconds)
        .ok()
        .map(|wait| wait.min(RETRY_AFTER_MAX))
}
