//! Refusals in A2A's words.

use serde_json::{Map, Value, json};
use toolgate_a2a::Invalid;
use toolgate_a2a::error::{Error, ErrorKind, error_info};
use toolgate_engine::intake::{IntakeError, PostError};
use toolgate_http::problem::Refusal;

/// Domain of reasons that are the gateway's own.
const DOMAIN: &str = "toolgate.dev";

/// The error of a request that was refused. `at` is where in the request the things stand that a refusal points to.
pub(crate) fn refused(refusal: impl Into<Refusal>, at: &str) -> Error {
    let body = refusal.into().into_body();
    let told = serde_json::to_value(&body).unwrap_or_default();
    let (status, code, detail) = (body.status, body.code.to_string(), body.detail);
    let errors = told["errors"].as_array().cloned().unwrap_or_default();
    match status {
        404 => Error::new(ErrorKind::TaskNotFound, "there is no such task"),
        400 | 413 | 422 if !errors.is_empty() => Invalid(violations(&errors, at)).into(),
        400 | 413 | 422 => Invalid::one(if at.is_empty() { "body" } else { at }, detail).into(),
        409 | 410 => {
            let mut metadata = Map::new();
            if !told["winner"].is_null() {
                metadata.insert("winner".into(), json!(told["winner"].to_string()));
            }
            let (word, violation) = match status {
                409 => ("ABORTED", Invalid::one(at, detail)),
                _ => ("FAILED_PRECONDITION", Invalid::one(at, detail)),
            };
            let error = Error::from(violation).with_detail(error_info(&code, DOMAIN, metadata));
            Error {
                http: Some((status, word)),
                ..error
            }
        }
        429 => own(&code, detail, (429, "RESOURCE_EXHAUSTED")),
        503 => own(&code, detail, (503, "UNAVAILABLE")),
        403 => own(&code, detail, (403, "PERMISSION_DENIED")),
        401 => own(&code, detail, (401, "UNAUTHENTICATED")),
        _ => own(&code, detail, (500, "INTERNAL")),
    }
}

/// An error that the protocol has no code for.
fn own(code: &str, detail: String, http: (u16, &'static str)) -> Error {
    let error = Error::new(ErrorKind::Internal, detail);
    Error {
        http: Some(http),
        ..error.with_detail(error_info(code, DOMAIN, Map::new()))
    }
}

/// The error of a result, a decision or an answer that was not taken. `at` is where it stands in the request.
pub(crate) fn not_taken(error: IntakeError, at: &str) -> Error {
    match error {
        IntakeError::Unknown(what) => {
            Invalid::one(at, format!("names no {what} of this task that is known")).into()
        }
        IntakeError::Ended(_) => ended(),
        other => refused(other, at),
    }
}

/// The error of a message that was not taken.
pub(crate) fn not_posted(error: PostError, tools_at: &str) -> Error {
    match error {
        PostError::NotUnderWay(_) => ended(),
        PostError::OtherTools(_) => Invalid::one(
            tools_at,
            "the task keeps the tools that it began with; leave them out, or send a message without taskId",
        )
        .into(),
        PostError::Tools(_) => refused(error, tools_at),
        other => refused(other, "message"),
    }
}

pub(crate) fn ended() -> Error {
    let words = "the task has ended and takes no more messages; send one without taskId to begin another";
    Error::new(ErrorKind::UnsupportedOperation, words)
}

pub(crate) fn no_task() -> Error {
    Error::new(ErrorKind::TaskNotFound, "there is no such task")
}

/// JSON pointers of the REST API as paths of fields.
fn violations(errors: &[Value], at: &str) -> Vec<toolgate_a2a::Violation> {
    let violation = |error: &Value| toolgate_a2a::Violation {
        field: field(at, error["pointer"].as_str().unwrap_or_default()),
        description: error["message"].as_str().unwrap_or_default().to_owned(),
    };
    errors.iter().map(violation).collect()
}

/// `/0/parameters/type` below `message.tools` is `message.tools[0].parameters.type`.
fn field(at: &str, pointer: &str) -> String {
    let mut field = at.to_owned();
    // Where the REST API has the tools of a request.
    let pointer = pointer.strip_prefix("/clientTools").unwrap_or(pointer);
    for segment in pointer.split('/').skip(1) {
        let segment = segment.replace("~1", "/").replace("~0", "~");
        let is_index = !segment.is_empty() && segment.bytes().all(|byte| byte.is_ascii_digit());
        match (is_index, field.is_empty()) {
            (true, _) => field.push_str(&format!("[{segment}]")),
            (false, true) => field = segment,
            (false, false) => field.push_str(&format!(".{segment}")),
        }
    }
    field
}
