//! Errors, as JSON-RPC and REST tell them.

use serde_json::{Map, Value, json};

use crate::json::Invalid;

/// Domain of the reasons that the protocol defines.
pub const DOMAIN: &str = "a2a-protocol.org";
const ERROR_INFO: &str = "type.googleapis.com/google.rpc.ErrorInfo";
const BAD_REQUEST: &str = "type.googleapis.com/google.rpc.BadRequest";

/// What went wrong, by the protocol's own list.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ErrorKind {
    /// There is no such task for this caller.
    TaskNotFound,
    /// The task has ended and cannot be canceled.
    TaskNotCancelable,
    /// The agent does not push.
    PushNotificationNotSupported,
    /// The operation is not possible in this state, or not offered at all.
    UnsupportedOperation,
    /// A media type that the agent does not take.
    ContentTypeNotSupported,
    /// The agent's answer does not have the form of the protocol.
    InvalidAgentResponse,
    /// There is no extended card.
    ExtendedAgentCardNotConfigured,
    /// The agent requires an extension that the client has not named.
    ExtensionSupportRequired,
    /// The version is not spoken here.
    VersionNotSupported,
    /// The body is not JSON.
    Parse,
    /// The body is not a request of JSON-RPC.
    InvalidRequest,
    /// There is no such method.
    MethodNotFound,
    /// The parameters do not have the form of the operation.
    InvalidParams,
    /// A fault of the server.
    Internal,
}

/// Every kind.
pub const ERROR_KINDS: [ErrorKind; 14] = [
    ErrorKind::TaskNotFound,
    ErrorKind::TaskNotCancelable,
    ErrorKind::PushNotificationNotSupported,
    ErrorKind::UnsupportedOperation,
    ErrorKind::ContentTypeNotSupported,
    ErrorKind::InvalidAgentResponse,
    ErrorKind::ExtendedAgentCardNotConfigured,
    ErrorKind::ExtensionSupportRequired,
    ErrorKind::VersionNotSupported,
    ErrorKind::Parse,
    ErrorKind::InvalidRequest,
    ErrorKind::MethodNotFound,
    ErrorKind::InvalidParams,
    ErrorKind::Internal,
];

impl ErrorKind {
    /// The code of JSON-RPC.
    pub fn code(self) -> i64 {
        match self {
            Self::TaskNotFound => -32001,
            Self::TaskNotCancelable => -32002,
            Self::PushNotificationNotSupported => -32003,
            Self::UnsupportedOperation => -32004,
            Self::ContentTypeNotSupported => -32005,
            Self::InvalidAgentResponse => -32006,
            Self::ExtendedAgentCardNotConfigured => -32007,
            Self::ExtensionSupportRequired => -32008,
            Self::VersionNotSupported => -32009,
            Self::Parse => -32700,
            Self::InvalidRequest => -32600,
            Self::MethodNotFound => -32601,
            Self::InvalidParams => -32602,
            Self::Internal => -32603,
        }
    }

    /// The reason in an `ErrorInfo`; none for errors of JSON-RPC itself.
    pub fn reason(self) -> Option<&'static str> {
        match self {
            Self::TaskNotFound => Some("TASK_NOT_FOUND"),
            Self::TaskNotCancelable => Some("TASK_NOT_CANCELABLE"),
            Self::PushNotificationNotSupported => Some("PUSH_NOTIFICATION_NOT_SUPPORTED"),
            Self::UnsupportedOperation => Some("UNSUPPORTED_OPERATION"),
            Self::ContentTypeNotSupported => Some("CONTENT_TYPE_NOT_SUPPORTED"),
            Self::InvalidAgentResponse => Some("INVALID_AGENT_RESPONSE"),
            Self::ExtendedAgentCardNotConfigured => Some("EXTENDED_AGENT_CARD_NOT_CONFIGURED"),
            Self::ExtensionSupportRequired => Some("EXTENSION_SUPPORT_REQUIRED"),
            Self::VersionNotSupported => Some("VERSION_NOT_SUPPORTED"),
            Self::Parse
            | Self::InvalidRequest
            | Self::MethodNotFound
            | Self::InvalidParams
            | Self::Internal => None,
        }
    }

    /// The HTTP status and the status word of REST, as 1.0.1 has them.
    pub fn http(self) -> (u16, &'static str) {
        match self {
            Self::TaskNotFound | Self::MethodNotFound => (404, "NOT_FOUND"),
            Self::ContentTypeNotSupported | Self::Parse | Self::InvalidRequest | Self::InvalidParams => {
                (400, "INVALID_ARGUMENT")
            }
            Self::InvalidAgentResponse | Self::Internal => (500, "INTERNAL"),
            Self::TaskNotCancelable
            | Self::PushNotificationNotSupported
            | Self::UnsupportedOperation
            | Self::ExtendedAgentCardNotConfigured
            | Self::ExtensionSupportRequired
            | Self::VersionNotSupported => (400, "FAILED_PRECONDITION"),
        }
    }

    /// The kind of a code; codes that nobody defined are faults of the server.
    pub fn of_code(code: i64) -> Self {
        let found = ERROR_KINDS.into_iter().find(|kind| kind.code() == code);
        found.unwrap_or(Self::Internal)
    }

    /// The kind of a reason in an `ErrorInfo`.
    pub fn of_reason(reason: &str) -> Option<Self> {
        ERROR_KINDS.into_iter().find(|kind| kind.reason() == Some(reason))
    }
}

/// An error as the protocol tells it.
#[derive(Clone, PartialEq, Debug)]
pub struct Error {
    /// What went wrong.
    pub kind: ErrorKind,
    /// HTTP status and status word of REST, where they are not the kind's own.
    pub http: Option<(u16, &'static str)>,
    /// The same as a sentence.
    pub message: String,
    /// Typed details: an `ErrorInfo`, a `BadRequest`, and what a server adds.
    pub details: Vec<Value>,
}

impl Error {
    /// An error of a kind, with the `ErrorInfo` that the protocol asks for.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self::with_metadata(kind, message, Map::new())
    }

    /// The same, with what there is to say of it for programs.
    pub fn with_metadata(kind: ErrorKind, message: impl Into<String>, metadata: Map<String, Value>) -> Self {
        let info = kind.reason().map(|reason| error_info(reason, DOMAIN, metadata));
        Self {
            kind,
            http: None,
            message: message.into(),
            details: info.into_iter().collect(),
        }
    }

    /// The error with one more detail.
    pub fn with_detail(mut self, detail: Value) -> Self {
        self.details.push(detail);
        self
    }

    /// The `error` of a JSON-RPC response.
    pub fn to_rpc(&self) -> Value {
        let mut error = json!({"code": self.kind.code(), "message": self.message});
        if !self.details.is_empty() {
            error["data"] = json!(self.details);
        }
        error
    }

    /// The body of a REST response, and its HTTP status.
    pub fn to_rest(&self) -> (u16, Value) {
        let (code, status) = self.http.unwrap_or_else(|| self.kind.http());
        let mut error = json!({"code": code, "status": status, "message": self.message});
        if !self.details.is_empty() {
            error["details"] = json!(self.details);
        }
        (code, json!({"error": error}))
    }

    /// Reads the `error` of a JSON-RPC response.
    pub fn from_rpc(value: &Value) -> Self {
        let code = value.get("code").and_then(Value::as_i64).unwrap_or_default();
        Self::read(ErrorKind::of_code(code), value, "data")
    }

    /// Reads the body of a REST response that failed with `status`.
    pub fn from_rest(status: u16, body: &Value) -> Self {
        let error = body.get("error").unwrap_or(body);
        let kind = match status {
            404 => ErrorKind::TaskNotFound,
            400..=499 => ErrorKind::InvalidParams,
            _ => ErrorKind::Internal,
        };
        Self::read(kind, error, "details")
    }

    fn read(kind: ErrorKind, value: &Value, details: &str) -> Self {
        let details = value.get(details).and_then(Value::as_array);
        let details = details.cloned().unwrap_or_default();
        let reason = details
            .iter()
            .filter(|detail| detail["domain"] == DOMAIN)
            .find_map(|detail| ErrorKind::of_reason(detail["reason"].as_str()?));
        let message = value.get("message").and_then(Value::as_str);
        Self {
            kind: reason.unwrap_or(kind),
            http: None,
            message: message.unwrap_or("the agent gave no reason").to_owned(),
            details,
        }
    }
}

impl From<Invalid> for Error {
    fn from(invalid: Invalid) -> Self {
        let violations = invalid
            .0
            .iter()
            .map(|violation| json!({"field": violation.field, "description": violation.description}));
        let detail = json!({"@type": BAD_REQUEST, "fieldViolations": violations.collect::<Vec<_>>()});
        let message = format!("invalid parameters: {invalid}");
        Self::new(ErrorKind::InvalidParams, message).with_detail(detail)
    }
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} (code {})", self.message, self.kind.code())
    }
}

impl std::error::Error for Error {}

/// A `google.rpc.ErrorInfo`.
pub fn error_info(reason: &str, domain: &str, metadata: Map<String, Value>) -> Value {
    json!({"@type": ERROR_INFO, "reason": reason, "domain": domain, "metadata": metadata})
}
