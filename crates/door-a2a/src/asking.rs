//! One request of a client: who asks, of which agent, in which dialect and binding.

use axum::response::{IntoResponse, Response};
use http::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use http::request::Parts;
use http::{HeaderMap, StatusCode};
use serde_json::Value;
use toolgate_a2a::client_tools::{AG2_URI, URI};
use toolgate_a2a::error::{Error, ErrorKind};
use toolgate_a2a::{Dialect, VERSION, VERSION_03, VERSION_HEADER, extension, rpc};
use toolgate_access::Principal;
use toolgate_http::Shared;
use toolgate_http::query::Query;
use toolgate_kernel::name::AgentName;

use crate::A2a;

/// Extensions that the door knows.
pub(crate) const KNOWN_EXTENSIONS: [&str; 2] = [URI, AG2_URI];

/// How answers are wrapped.
#[derive(Debug, Clone)]
pub(crate) enum Envelope {
    /// In responses of JSON-RPC with this id.
    Rpc(Value),
    /// Not at all, with the media type of the request.
    Rest(HeaderValue),
}

/// A request.
pub(crate) struct Asking<'a> {
    pub a2a: &'a A2a,
    pub who: Principal,
    pub agent: AgentName,
    pub dialect: Dialect,
    pub envelope: Envelope,
    pub parts: Parts,
    /// Extensions that the request uses, which the answer names.
    pub extensions: Vec<&'static str>,
}

/// An answer.
pub(crate) enum Reply {
    /// One value.
    Json(Value),
    /// A stream, which has its envelopes already.
    Stream(Response),
}

impl Asking<'_> {
    pub fn door(&self) -> &Shared {
        &self.a2a.shared
    }

    /// Notes the extensions that the request uses.
    pub fn use_extensions<'u>(&mut self, uris: impl IntoIterator<Item = &'u str>) {
        for uri in uris {
            let known = KNOWN_EXTENSIONS.into_iter().find(|known| *known == uri);
            if let Some(known) = known.filter(|known| !self.extensions.contains(known)) {
                self.extensions.push(known);
            }
        }
    }

    /// The response with an answer, or with the error.
    pub fn respond(&self, answered: Result<Reply, Error>) -> Response {
        let mut response = match answered {
            Ok(Reply::Json(value)) => self.envelope.wrap(value),
            Ok(Reply::Stream(response)) => response,
            Err(error) => self.envelope.fail(&error),
        };
        if !self.extensions.is_empty()
            && let Ok(value) = HeaderValue::try_from(self.extensions.join(", "))
        {
            let name = match self.dialect {
                Dialect::V1 => extension::HEADER,
                Dialect::V03 => extension::HEADER_03,
            };
            response
                .headers_mut()
                .insert(HeaderName::from_static(name), value);
        }
        response
    }
}

impl Envelope {
    fn wrap(&self, value: Value) -> Response {
        match self {
            Self::Rpc(id) => json(StatusCode::OK, JSON, &rpc::result(id, value)),
            Self::Rest(media_type) => json(StatusCode::OK, media_type.clone(), &value),
        }
    }

    /// Errors of JSON-RPC go out as 200: the transport has done its part.
    pub fn fail(&self, error: &Error) -> Response {
        match self {
            Self::Rpc(id) => json(StatusCode::OK, JSON, &rpc::error(id, error)),
            Self::Rest(media_type) => {
                let (status, body) = error.to_rest();
                let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
                json(status, media_type.clone(), &body)
            }
        }
    }

    /// An event of a stream.
    pub fn event(&self, value: Value) -> Value {
        match self {
            Self::Rpc(id) => rpc::result(id, value),
            Self::Rest(_) => value,
        }
    }

    /// An error as the last event of a stream.
    pub fn error_event(&self, error: &Error) -> Value {
        match self {
            Self::Rpc(id) => rpc::error(id, error),
            Self::Rest(_) => error.to_rest().1,
        }
    }
}

/// The media type of JSON.
pub(crate) const JSON: HeaderValue = HeaderValue::from_static("application/json");

fn json(status: StatusCode, media_type: HeaderValue, body: &Value) -> Response {
    let mut response = (status, body.to_string()).into_response();
    response.headers_mut().insert(CONTENT_TYPE, media_type);
    response
}

/// The version that a request names by header or query; none when it names none.
pub(crate) fn version(parts: &Parts) -> Result<Option<Dialect>, Error> {
    let header = parts.headers.get(VERSION_HEADER);
    let header = header.map(|value| value.to_str().unwrap_or("?").trim().to_owned());
    let query = || {
        let query = Query::of(&parts.uri).ok()?;
        query.text("A2A-Version").map(str::to_owned)
    };
    match header
        .filter(|version| !version.is_empty())
        .or_else(query)
        .as_deref()
    {
        None | Some("") => Ok(None),
        Some(VERSION) => Ok(Some(Dialect::V1)),
        Some(VERSION_03) => Ok(Some(Dialect::V03)),
        Some(other) => Err(unsupported(other)),
    }
}

/// The error of a version that is not spoken.
pub(crate) fn unsupported(version: &str) -> Error {
    let shown: String = version.chars().take(32).collect();
    let words = format!("the version {shown:?} is not supported; send A2A-Version: {VERSION}");
    Error::new(ErrorKind::VersionNotSupported, words)
}

/// The extensions that the headers name.
pub(crate) fn named_extensions(headers: &HeaderMap) -> Vec<String> {
    let values = [extension::HEADER, extension::HEADER_03]
        .into_iter()
        .flat_map(|name| headers.get_all(name));
    extension::named(values.filter_map(|value| value.to_str().ok()))
}

/// Fails for a body that says that it is not JSON.
pub(crate) fn check_content_type(headers: &HeaderMap) -> Result<(), Error> {
    let Some(value) = headers.get(CONTENT_TYPE) else {
        return Ok(());
    };
    let full = value.to_str().unwrap_or_default();
    let media_type = full
        .split(';')
        .next()
        .unwrap_or_default()
        .trim()
        .to_ascii_lowercase();
    let is_json = media_type == "application/json"
        || (media_type.starts_with("application/") && media_type.ends_with("+json"));
    match is_json {
        true => Ok(()),
        false => {
            let words = format!("the body must be application/json, content-type says {media_type:?}");
            let error = Error::new(ErrorKind::ContentTypeNotSupported, words);
            Err(Error {
                http: Some((415, "INVALID_ARGUMENT")),
                ..error
            })
        }
    }
}
