//! Request bodies: bounded in bytes, depth and time, and known to be sound JSON before anything looks inside.

use std::fmt;
use std::time::Duration;

use axum::extract::{FromRef, FromRequest, Request};
use bytes::{Bytes, BytesMut};
use http::header::{CONTENT_LENGTH, CONTENT_TYPE, EXPECT};
use http::request::Parts;
use http::{HeaderMap, StatusCode};
use http_body::Body as _;
use http_body_util::BodyExt;
use serde::de::{self, DeserializeSeed, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use tokio::time::Instant;
use toolgate_fair::Share;
use toolgate_kernel::problem::Problem;

use crate::Shared;
use crate::in_flight::{InFlight, UNCOUNTED_BYTES};
use crate::problem::Refusal;
use crate::wire::{At, Wire};

/// How deep a body may nest. Under serde_json's own limit, so that a value which passes here can be read
/// everywhere.
pub const JSON_DEPTH_MAX: usize = 64;
/// Slowest body, in bytes per second: one that has come more slowly when the timeout has passed is refused.
const BODY_RATE_MIN: u64 = 8 * 1024;
/// Largest body that is read where others may have to wait for it.
const INLINE_BYTES_MAX: usize = 64 * 1024;
/// How much of a body that is too large is read and dropped, so that its sender reads the answer instead of
/// a reset connection.
const DRAIN_BYTES_MAX: usize = 128 << 20;

/// A request's body, read into `T`.
pub struct Body<T> {
    /// The progress value.
    pub value: T,
    /// As it came.
    pub bytes: Bytes,
}

impl<S: Send + Sync, T: Wire + Send + 'static> FromRequest<S> for Body<T>
where
    Shared: FromRef<S>,
{
    type Rejection = Refusal;
    async fn from_request(request: Request, state: &S) -> Result<Self, Refusal> {
        let sender = sender(&request);
        let bytes = received(request, &Shared::from_ref(state)).await?;
        if bytes.is_empty() {
            return Err(Refusal::invalid(vec![Problem::new("", "a body is required")]));
        }
        let value = read_for(sender, &Shared::from_ref(state), &bytes).await?;
        Ok(Self { value, bytes })
    }
}

/// A body that is JSON whatever it says of itself: for clients that say nothing, or `text/plain`.
pub struct Untyped<T>(pub T);

impl<S: Send + Sync, T: Wire + Send + 'static> FromRequest<S> for Untyped<T>
where
    Shared: FromRef<S>,
{
    type Rejection = Refusal;
    async fn from_request(request: Request, state: &S) -> Result<Self, Refusal> {
        let sender = sender(&request);
        let (parts, body) = request.into_parts();
        let door = Shared::from_ref(state);
        let bytes = collect(&door, &parts, body, door.settings.body_bytes_max).await?;
        read_for(sender, &door, &bytes).await.map(Self)
    }
}

/// A body that may be left out: that is as good as `{}`.
pub struct MaybeBody<T>(pub T);

impl<S: Send + Sync, T: Wire + Send + 'static> FromRequest<S> for MaybeBody<T>
where
    Shared: FromRef<S>,
{
    type Rejection = Refusal;
    async fn from_request(request: Request, state: &S) -> Result<Self, Refusal> {
        let sender = sender(&request);
        let bytes = match received(request, &Shared::from_ref(state)).await? {
            none if none.is_empty() => Bytes::from_static(b"{}"),
            bytes => bytes,
        };
        read_for(sender, &Shared::from_ref(state), &bytes).await.map(Self)
    }
}

/// The bytes of a body that says that it is JSON, or of none.
async fn received(request: Request, door: &Shared) -> Result<Bytes, Refusal> {
    let (parts, body) = request.into_parts();
    let announced = is_json(&parts.headers)?;
    let bytes = collect(door, &parts, body, door.settings.body_bytes_max).await?;
    match announced || bytes.is_empty() {
        true => Ok(bytes),
        false => Err(wrong_type("nothing")),
    }
}

/// Who is counted for the work of reading a body: its sender where that is known by now, all others together.
fn sender(request: &Request) -> Share {
    let known = request.extensions().get::<Share>().copied();
    known.unwrap_or(Share {
        tenant: 0,
        user: None,
    })
}

/// Reads a body; a large one off the runtime's threads, so that others do not wait for it.
async fn read_for<T: Wire + Send + 'static>(
    sender: Share,
    door: &Shared,
    bytes: &Bytes,
) -> Result<T, Refusal> {
    if bytes.len() <= INLINE_BYTES_MAX {
        return read(utf8(bytes)?);
    }
    let bytes = bytes.clone();
    let work = move || read(utf8(&bytes)?);
    door.engine.run_blocking(sender, work).await?
}

/// Reads a whole body, with everything that is wrong with it.
pub fn read<T: Wire>(text: &str) -> Result<T, Refusal> {
    check(text).map_err(|error| Refusal::malformed(format!("the body is not sound JSON: {error}")))?;
    let value: &RawValue = serde_json::from_str(text).expect("it was checked");
    let mut problems = Vec::new();
    match T::read(value, &At::Root, &mut problems) {
        Some(read) if problems.is_empty() => Ok(read),
        _ => Err(Refusal::invalid(problems)),
    }
}

fn utf8(bytes: &Bytes) -> Result<&str, Refusal> {
    std::str::from_utf8(bytes).map_err(|error| {
        Refusal::malformed(format!(
            "the body is not UTF-8 after byte {}",
            error.valid_up_to()
        ))
    })
}

/// Whether the body says that it is JSON; refused when it says that it is something else.
fn is_json(headers: &HeaderMap) -> Result<bool, Refusal> {
    let Some(value) = headers.get(CONTENT_TYPE) else {
        return Ok(false);
    };
    let full = value.to_str().unwrap_or_default();
    let media = full
        .split(';')
        .next()
        .unwrap_or_default()
        .trim()
        .to_ascii_lowercase();
    let json = media == "application/json" || (media.starts_with("application/") && media.ends_with("+json"));
    if json {
        Ok(true)
    } else {
        Err(wrong_type(&format!("{media:?}")))
    }
}

fn wrong_type(seen: &str) -> Refusal {
    let detail = format!("the body must be application/json; content-type says {seen}");
    Refusal::new(
        StatusCode::UNSUPPORTED_MEDIA_TYPE,
        "UNSUPPORTED_MEDIA_TYPE",
        detail,
    )
}

/// Reads a body of at most `max` bytes, however it is encoded.
pub async fn collect(
    door: &Shared,
    parts: &Parts,
    body: axum::body::Body,
    max: usize,
) -> Result<Bytes, Refusal> {
    let headers = &parts.headers;
    let length = headers
        .get(CONTENT_LENGTH)
        .and_then(|value| value.to_str().ok()?.parse::<u64>().ok());
    let announced = length.is_some_and(|length| length > max as u64);
    // A sender that waits for permission needs no draining: it has sent nothing.
    if announced && headers.contains_key(EXPECT) {
        return Err(too_large(max));
    }
    let in_flight = parts.extensions.get::<InFlight>().cloned().unwrap_or_default();
    let count = |more| in_flight.add_to_body(door, more);
    let timeout = door.settings.body_timeout;
    match gather(body, if announced { 0 } else { max }, timeout, count).await? {
        Some(bytes) => Ok(bytes),
        None => Err(too_large(max)),
    }
}

fn too_slow(timeout: Duration) -> Refusal {
    let detail = format!(
        "the body took too long to arrive: nothing for {timeout:?}, or less than {BODY_RATE_MIN} bytes per second; see http.body_timeout"
    );
    Refusal::new(StatusCode::REQUEST_TIMEOUT, "TIMEOUT", detail)
}

fn too_large(max: usize) -> Refusal {
    Refusal::new(
        StatusCode::PAYLOAD_TOO_LARGE,
        "BODY_TOO_LARGE",
        format!("a body may have {max} bytes at most"),
    )
}

/// All of a body; none when it has more than `max` bytes. `count` is told of its bytes, and may refuse more. What is
/// refused is read to its end and dropped, so that its sender reads the answer.
async fn gather(
    mut body: axum::body::Body,
    max: usize,
    timeout: Duration,
    count: impl Fn(usize) -> Result<(), Refusal>,
) -> Result<Option<Bytes>, Refusal> {
    // Memory that was reserved and not written to costs nothing, and growing a buffer costs twice its size.
    let announced = usize::try_from(body.size_hint().exact().unwrap_or(0)).unwrap_or(max);
    let mut first = Bytes::new();
    let mut rest = BytesMut::new();
    let mut refused = None;
    let (mut seen, mut counted) = (0, 0);
    let began = Instant::now();
    loop {
        let expected = Duration::from_secs(seen as u64 / BODY_RATE_MIN);
        let deadline = (began + timeout + expected).min(Instant::now() + timeout);
        let frame = tokio::time::timeout_at(deadline, body.frame()).await;
        let Some(frame) = frame.map_err(|_| too_slow(timeout))? else {
            break;
        };
        let frame = frame.map_err(|error| Refusal::malformed(format!("the body ended early: {error}")))?;
        let Ok(data) = frame.into_data() else { continue };
        seen += data.len();
        if seen > UNCOUNTED_BYTES && seen <= max && refused.is_none() {
            refused = count(seen - counted).err();
            counted = seen;
        }
        if seen > max + DRAIN_BYTES_MAX {
            return Ok(None);
        } else if seen > max || refused.is_some() {
            (first, rest) = (Bytes::new(), BytesMut::new());
        } else if first.is_empty() {
            first = data;
        } else {
            if rest.is_empty() {
                rest.reserve(announced.min(max));
                rest.extend_from_slice(&first);
            }
            rest.extend_from_slice(&data);
        }
    }
    match refused {
        _ if seen > max => Ok(None),
        Some(refusal) => Err(refusal),
        None if rest.is_empty() => Ok(Some(first)),
        None => Ok(Some(rest.freeze())),
    }
}

/// Whether `text` is one JSON value that every later reader can take: not too deep, no number out of range,
/// no half of a surrogate pair. serde_json checks none of these in a value that it keeps as text.
pub fn check(text: &str) -> Result<(), serde_json::Error> {
    let mut reader = serde_json::Deserializer::from_str(text);
    Levels(JSON_DEPTH_MAX).deserialize(&mut reader)?;
    reader.end()
}

/// Walks a value of at most so many levels and keeps nothing of it.
struct Levels(usize);

impl Levels {
    fn below<E: de::Error>(&self) -> Result<usize, E> {
        self.0
            .checked_sub(1)
            .ok_or_else(|| E::custom(format_args!("it nests more than {JSON_DEPTH_MAX} levels")))
    }
}
impl<'de> DeserializeSeed<'de> for Levels {
    type Value = ();
    fn deserialize<D: serde::Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        from.deserialize_any(self)
    }
}
impl<'de> Visitor<'de> for Levels {
    type Value = ();
    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("JSON")
    }
    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }
    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }
    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }
    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }
    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }
    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        let below = self.below()?;
        while items.next_element_seed(Levels(below))?.is_some() {}
        Ok(())
    }
    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<(), A::Error> {
        let below = self.below()?;
        while members.next_key_seed(Levels(below))?.is_some() {
            members.next_value_seed(Levels(below))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{Text, wire};

    wire! {
        /// For the tests.
        Sample {
            /// A name.
            name "name": Text<1, 5>,
            /// A place.
            client_tools "clientTools": Option<bool>,
        }
    }

    fn refused(text: &str) -> String {
        let body = read::<Sample>(text).map(|_| ()).unwrap_err().into_body();
        let mut told = serde_json::to_value(&body).unwrap();
        let errors = told["errors"].take();
        let pointers = errors.as_array().into_iter().flatten();
        let pointers: Vec<_> = pointers
            .map(|e| {
                format!(
                    "{} {}",
                    e["pointer"].as_str().unwrap(),
                    e["message"].as_str().unwrap()
                )
            })
            .collect();
        format!(
            "{} {}",
            body.status,
            if pointers.is_empty() {
                body.detail
            } else {
                pointers.join("; ")
            }
        )
    }

    #[test]
    fn every_problem_of_a_body_is_told_at_once_with_its_place() {
        assert_eq!(
            refused(r#"{"clientTool": 1, "clientTools": "yes"}"#),
            "422 /clientTool is not known here; did you mean \"clientTools\"?; /name is required; \
             /clientTools must be true or false, got a string"
        );
        assert_eq!(
            refused(r#"{"nam": "a", "color": "red"}"#),
            "422 /nam is not known here; did you mean \"name\"?; \
             /color is not known here; known here: name, clientTools",
            "one slip is told once"
        );
        assert_eq!(
            refused(r#"{"name": "", "name": "a"}"#),
            "422 /name is given twice; /name must not be empty"
        );
        assert_eq!(refused("[]"), "422  the body must be an object, got an array");
    }

    #[test]
    fn a_member_that_may_be_left_out_may_be_null() {
        let read = read::<Sample>(r#"{"name": "a", "clientTools": null}"#).unwrap();
        assert_eq!(
            read,
            Sample {
                name: Text("a".into()),
                client_tools: None
            }
        );
    }

    #[test]
    fn malformed_json_is_refused_with_its_position() {
        assert_eq!(
            refused("{\"name\":\n nope}"),
            "400 the body is not sound JSON: expected ident at line 2 column 3"
        );
        assert!(refused("{} x").starts_with("400 the body is not sound JSON: trailing characters"));
    }

    #[test]
    fn what_a_later_reader_could_not_take_is_refused_here() {
        let deep = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
        assert!(check(&deep(JSON_DEPTH_MAX)).is_ok());
        assert!(refused(&deep(JSON_DEPTH_MAX + 1)).contains("nests more than 64 levels"));
        assert!(refused(&"[".repeat(1_000_000)).contains("nests more than 64 levels"));
        assert!(refused(r#"{"name": "\ud800"}"#).starts_with("400"));
        assert!(refused(r#"{"x": [1e999]}"#).starts_with("400"));
    }
}
