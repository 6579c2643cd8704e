//! What a request is told when it is refused: one `problem+json` (RFC 9457) per error, by exhaustive match.

use std::borrow::Cow;

use axum::response::{IntoResponse, Response};
use http::StatusCode;
use http::header::{CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE};
use serde::Serialize;
use serde_json::Value;
use toolgate_access::AccessError;
use toolgate_engine::budget::{BudgetRefusal, Scope};
use toolgate_engine::intake::{IntakeError, PostError};
use toolgate_engine::knowledge::KnowledgeError;
use toolgate_engine::quota::{QuotaError, QuotaExceeded};
use toolgate_engine::shared_tools::SharedToolError;
use toolgate_engine::state_editor::EditError;
use toolgate_engine::store::StoreError;
use toolgate_engine::workspace::WorkspaceError;
use toolgate_engine::{AgentError, TooManyWait};
use toolgate_kernel::call::ErrorCode;
use toolgate_kernel::problem::Problem;
use toolgate_kernel::schema::Misfit;
use toolgate_kernel::time::Time;
use utoipa::ToSchema;

use crate::schema;

/// Why a request was not done.
#[derive(Debug)]
pub struct Refusal(Box<Parts>);

#[derive(Debug)]
struct Parts {
    status: StatusCode,
    header: Option<(HeaderName, HeaderValue)>,
    body: ProblemBody,
}

/// Why a request was not done (RFC 9457).
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[schema(as = Problem)]
#[serde(rename_all = "camelCase")]
pub struct ProblemBody {
    /// Always `about:blank`: `code` tells problems apart.
    #[serde(rename = "type")]
    #[schema(value_type = String)]
    kind: &'static str,
    /// The status in words.
    #[schema(value_type = String)]
    title: &'static str,
    /// The HTTP status.
    #[schema(minimum = 400, maximum = 599)]
    pub status: u16,
    /// What went wrong, for programs.
    #[schema(value_type = String, pattern = "^[A-Z][A-Z_]*$")]
    pub code: Cow<'static, str>,
    /// What went wrong, in words.
    pub detail: String,
    /// Everything that is wrong with what was sent, each with its place.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Vec<FaultBody>)]
    errors: Vec<Problem>,
    /// On 409: the answer that holds.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<schema::Any>)]
    winner: Option<Value>,
    /// On 409: who holds the call, and until when.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<schema::Any>)]
    claim: Option<Value>,
    /// On 429: the budget that is used up.
    #[serde(skip_serializing_if = "Option::is_none")]
    budget: Option<ExceededBudget>,
    /// On 410 of an event stream: the state to start from. `seq` is the cursor to go on with.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<schema::Any>)]
    snapshot: Option<Value>,
}

/// A budget that is used up.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExceededBudget {
    /// The setting that holds it, such as `budgets.user.day.tokens`.
    setting: String,
    /// What was consumed, in tokens, runs or units of the currency. Users are told of their own budgets alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    used: Option<f64>,
    /// What may be consumed, in the same unit.
    #[serde(skip_serializing_if = "Option::is_none")]
    max: Option<f64>,
    /// When the next day or month begins, in UTC.
    #[schema(value_type = schema::Time)]
    resets_at: Time,
}

/// One thing that is wrong with what was sent.
#[derive(ToSchema)]
#[schema(as = Fault)]
#[expect(dead_code, reason = "describes the kernel's problems")]
pub struct FaultBody {
    /// JSON pointer (RFC 6901) into the body; empty for the whole of it.
    pointer: String,
    /// What was seen and what would have been right.
    message: String,
}

/// Most things wrong that one answer tells.
const ERRORS_MAX: usize = 100;
/// How long a client waits before it asks a busy gateway again.
const BUSY_RETRY_SECONDS: u64 = 1;

impl Refusal {
    /// A refusal with this status, and a code for programs.
    pub fn new(status: StatusCode, code: impl Into<Cow<'static, str>>, detail: impl Into<String>) -> Self {
        Self(Box::new(Parts {
            status,
            header: None,
            body: ProblemBody {
                kind: "about:blank",
                title: status.canonical_reason().unwrap_or("Error"),
                status: status.as_u16(),
                code: code.into(),
                detail: detail.into(),
                errors: Vec::new(),
                winner: None,
                claim: None,
                budget: None,
                snapshot: None,
            },
        }))
    }
    /// What the client reads.
    pub fn problem(&self) -> &ProblemBody {
        &self.0.body
    }
    /// 400: what was sent cannot be read at all.
    pub fn malformed(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "MALFORMED", detail)
    }
    /// 401: nobody knows who asks.
    pub fn unauthenticated(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::UNAUTHORIZED, "UNAUTHENTICATED", detail)
            .header(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"))
    }
    /// 403: whoever asks may not.
    pub fn forbidden(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, "FORBIDDEN", detail)
    }
    /// 404: there is none, or whoever asks must not know of it.
    pub fn not_found(what: &str) -> Self {
        Self::missing(format!("there is no such {what}"))
    }
    /// 404, in other words.
    pub fn missing(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, "NOT_FOUND", detail)
    }
    /// 422: it can be read, but these things are wrong with it.
    pub fn invalid(mut errors: Vec<Problem>) -> Self {
        errors.truncate(ERRORS_MAX);
        let told = |fault: &Problem| match fault.pointer.as_str() {
            "" => fault.message.clone(),
            pointer => format!("{pointer} {}", fault.message),
        };
        let detail = match errors.as_slice() {
            [] => "the body is not valid".to_owned(),
            [one] => told(one),
            [first, others @ ..] => format!("{} (and {} more in errors)", told(first), others.len()),
        };
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, "VALIDATION_FAILED", detail).errors(errors)
    }
    /// 413: the result of a call, which stands at `pointer` in the body, has too many bytes.
    pub fn result_too_large(pointer: impl Into<String>, words: String) -> Self {
        let problem = Problem::new(pointer, words.clone());
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "CONTENT_TOO_LARGE", words).errors(vec![problem])
    }
    /// 429: come back after `seconds`.
    pub fn rate_limited(seconds: u64) -> Self {
        Self::new(
            StatusCode::TOO_MANY_REQUESTS,
            "RATE_LIMITED",
            format!("too many requests; wait {seconds} s"),
        )
        .header(RETRY_AFTER, HeaderValue::from(seconds))
    }
    /// 503: nothing was done; the same request may be sent again.
    pub fn unavailable(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "UNAVAILABLE", detail)
            .header(RETRY_AFTER, HeaderValue::from(BUSY_RETRY_SECONDS))
    }
    fn conflict(code: &'static str, detail: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, code, detail)
    }
    /// The same, with everything that is wrong with what was sent.
    pub fn with_errors(self, mut errors: Vec<Problem>) -> Self {
        errors.truncate(ERRORS_MAX);
        self.errors(errors)
    }
    pub(crate) fn errors(mut self, errors: Vec<Problem>) -> Self {
        self.0.body.errors = errors;
        self
    }
    /// The same, with the state that a reader starts from.
    pub fn snapshot(mut self, snapshot: Value) -> Self {
        self.0.body.snapshot = Some(snapshot);
        self
    }
    fn header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.0.header = Some((name, value));
        self
    }
    /// The problem itself, for an answer that holds several.
    pub fn into_body(self) -> ProblemBody {
        self.0.body
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let body = serde_json::to_vec(&self.0.body).expect("a problem has text keys");
        let mut response = (self.0.status, body).into_response();
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        if let Some((name, value)) = self.0.header {
            headers.insert(name, value);
        }
        response
    }
}

impl From<AccessError> for Refusal {
    fn from(error: AccessError) -> Self {
        match error {
            AccessError::Unauthenticated(words) => Self::unauthenticated(words),
            AccessError::Forbidden(words) => Self::forbidden(words),
            AccessError::NotFound(words) => Self::missing(words),
            AccessError::RateLimited(seconds) => Self::rate_limited(seconds),
            AccessError::Unavailable(words) => Self::unavailable(words),
            AccessError::Store(error) => error.into(),
        }
    }
}

impl From<PostError> for Refusal {
    fn from(error: PostError) -> Self {
        let words = error.to_string();
        match error {
            PostError::NoSpace => Self::missing(words),
            PostError::NoAgent(name) => {
                // The same for an agent that the caller may not start: who may not start it must not learn of it.
                let words = format!(
                    "there is no agent named {name} that this caller may start; a secret key lists the agents with \
                     GET /v1/agents"
                );
                Self::missing(words.clone()).errors(vec![Problem::new("/agent", words)])
            }
            PostError::NoTool(_) => Self::missing(words),
            PostError::Arguments(Misfit::Invalid(problems)) => {
                let at = |problem: Problem| {
                    Problem::new(format!("/arguments{}", problem.pointer), problem.message)
                };
                Self::invalid(problems.into_iter().map(at).collect())
            }
            PostError::Arguments(Misfit::TooCostly(problem)) => {
                let problem = Problem::new("/arguments", problem.message);
                Self::new(StatusCode::UNPROCESSABLE_ENTITY, "TOO_COSTLY", words).errors(vec![problem])
            }
            PostError::Tools(problems) => Self::invalid(problems),
            PostError::KeyReused => {
                Self::new(StatusCode::UNPROCESSABLE_ENTITY, "IDEMPOTENCY_KEY_REUSED", words)
            }
            PostError::MessageIdReused => Self::conflict("MESSAGE_ID_REUSED", words),
            PostError::HistoryNotTaken => {
                let problem = Problem::new("/history", words.clone());
                Self::conflict("HISTORY_NOT_TAKEN", words).errors(vec![problem])
            }
            PostError::NotUnderWay(_) => Self::new(StatusCode::GONE, "RUN_ENDED", words),
            PostError::OtherTools(_) => Self::conflict("OTHER_TOOLS", words),
            PostError::Quota(exceeded) => exceeded.into(),
            PostError::Budget(refusal) => (*refusal).into(),
            PostError::Unpriced(_) => Self::conflict("MODEL_UNPRICED", words),
            PostError::RunUnderWay(_) | PostError::TooManyWait(_) | PostError::Busy(_) => {
                Self::unavailable(words)
            }
            PostError::Store(error) => error.into(),
        }
    }
}

impl From<BudgetRefusal> for Refusal {
    fn from(refusal: BudgetRefusal) -> Self {
        let words = refusal.to_string();
        let BudgetRefusal {
            exceeded,
            tells_amounts,
            retry_after,
        } = refusal;
        let tells_amounts = tells_amounts || exceeded.scope == Scope::User;
        // Whole seconds, and never before the period ends.
        let seconds = retry_after.as_secs() + 1;
        let mut refused = Self::new(StatusCode::TOO_MANY_REQUESTS, "BUDGET_EXCEEDED", words)
            .header(RETRY_AFTER, HeaderValue::from(seconds));
        refused.0.body.budget = Some(ExceededBudget {
            setting: exceeded.setting(),
            used: tells_amounts.then(|| exceeded.amount_in_units(exceeded.used)),
            max: tells_amounts.then(|| exceeded.amount_in_units(exceeded.max)),
            resets_at: exceeded.resets,
        });
        refused
    }
}

impl From<QuotaExceeded> for Refusal {
    fn from(exceeded: QuotaExceeded) -> Self {
        Self::new(
            StatusCode::TOO_MANY_REQUESTS,
            "QUOTA_EXCEEDED",
            exceeded.to_string(),
        )
    }
}

impl From<QuotaError> for Refusal {
    fn from(error: QuotaError) -> Self {
        match error {
            QuotaError::Exceeded(exceeded) => exceeded.into(),
            QuotaError::Store(error) => error.into(),
        }
    }
}

impl From<IntakeError> for Refusal {
    fn from(error: IntakeError) -> Self {
        let words = error.to_string();
        match error {
            IntakeError::Unknown(_) => Self::missing(words),
            IntakeError::NotAClientCall => Self::conflict("NOT_A_CLIENT_CALL", words),
            IntakeError::NotAnApprover => Self::new(StatusCode::FORBIDDEN, "NOT_AN_APPROVER", words),
            IntakeError::NotOffered => Self::new(StatusCode::FORBIDDEN, "NOT_OFFERED", words),
            IntakeError::NotApproved => Self::conflict("NOT_APPROVED", words),
            IntakeError::Conflict { winner } => Self::conflict("CONFLICT", words).winner(&winner),
            IntakeError::DecidedOtherwise { winner } => Self::conflict("CONFLICT", words).winner(&winner),
            IntakeError::RespondedOtherwise { winner } => Self::conflict("CONFLICT", words).winner(&winner),
            IntakeError::Gone { code, .. } => Self::new(StatusCode::GONE, code_word(code), words),
            IntakeError::Held { holder, until } => {
                let mut refusal = Self::conflict("HELD", words);
                refusal.0.body.claim = Some(serde_json::json!({ "holder": holder, "until": until }));
                refusal
            }
            IntakeError::MessageIdReused => Self::conflict("MESSAGE_ID_REUSED", words),
            IntakeError::Invalid(problems) => Self::invalid(problems),
            IntakeError::TooCostly(problem) => {
                Self::new(StatusCode::UNPROCESSABLE_ENTITY, "TOO_COSTLY", words).errors(vec![problem])
            }
            IntakeError::TooLarge { .. } => Self::result_too_large("/result", words),
            IntakeError::Ended(_) => Self::new(StatusCode::GONE, "RUN_ENDED", words),
            IntakeError::Busy(_) => Self::unavailable(words),
            IntakeError::Store(error) => error.into(),
        }
    }
}

impl From<TooManyWait> for Refusal {
    fn from(error: TooManyWait) -> Self {
        Self::unavailable(error.to_string())
    }
}

impl From<AgentError> for Refusal {
    fn from(error: AgentError) -> Self {
        match error {
            AgentError::Invalid(problems) => Self::invalid(problems),
            AgentError::TooManyWait(error) => error.into(),
            AgentError::Store(error) => error.into(),
        }
    }
}

impl From<EditError> for Refusal {
    fn from(error: EditError) -> Self {
        let words = error.to_string();
        match error {
            EditError::Missing => Self::missing(words),
            EditError::Changed(_) => Self::new(StatusCode::PRECONDITION_FAILED, "CHANGED", words),
            EditError::Invalid(problems) => Self::invalid(problems),
            EditError::Store(StoreError::Conflict) => Self::contended(),
            EditError::Store(error) => error.into(),
        }
    }
}

impl From<SharedToolError> for Refusal {
    fn from(error: SharedToolError) -> Self {
        let words = error.to_string();
        match error {
            SharedToolError::Invalid(problems) => Self::invalid(problems),
            SharedToolError::Full(_) => Self::new(StatusCode::INSUFFICIENT_STORAGE, "LIMIT_EXCEEDED", words),
            SharedToolError::Changed(_) => Self::new(StatusCode::PRECONDITION_FAILED, "CHANGED", words),
            SharedToolError::NamesUnknown(_) => Self::unavailable(words),
            SharedToolError::TooManyWait(error) => error.into(),
            SharedToolError::Store(StoreError::Conflict) => Self::contended(),
            SharedToolError::Store(error) => error.into(),
        }
    }
}

impl From<StoreError> for Refusal {
    fn from(error: StoreError) -> Self {
        match &error {
            StoreError::Unavailable(_)
            | StoreError::Timeout
            | StoreError::Conflict
            | StoreError::OpenRun(_) => {
                // The cause may name files and hosts: it is for the log.
                tracing::warn!(%error, "the store did not do it");
                Self::unavailable("the store is not available; nothing was lost, try again")
            }
            StoreError::AgentRemoved => Self::not_found("agent"),
            StoreError::SpaceDeleted => Self::not_found("space"),
            StoreError::EntityDeleted => Self::not_found("entity"),
            StoreError::Exists => Self::conflict("EXISTS", "it exists already"),
            StoreError::Full => Self::conflict("FULL", "the run tree is full"),
            StoreError::Newer { .. } => Self::unavailable(
                "a newer version of the gateway works on this run; try again, and another node will answer",
            ),
            StoreError::Corrupt(_) => {
                tracing::error!(%error, "stored data cannot be read");
                Self::new(
                    StatusCode::INTERNAL_SERVER_ERROR,
                    "INTERNAL",
                    "stored data cannot be read; see the log",
                )
            }
        }
    }
}

impl From<WorkspaceError> for Refusal {
    fn from(error: WorkspaceError) -> Self {
        let words = error.to_string();
        match error {
            WorkspaceError::Missing(_) => Self::missing(words),
            WorkspaceError::TooLarge(_) => Self::new(StatusCode::PAYLOAD_TOO_LARGE, "BODY_TOO_LARGE", words),
            WorkspaceError::Full(_) => Self::new(StatusCode::INSUFFICIENT_STORAGE, "LIMIT_EXCEEDED", words),
            WorkspaceError::Reserved => Self::malformed(words),
            WorkspaceError::Changed(_) => Self::new(StatusCode::PRECONDITION_FAILED, "CHANGED", words),
            WorkspaceError::Store(StoreError::Conflict) => Self::contended(),
            WorkspaceError::Store(error) => error.into(),
        }
    }
}

impl From<KnowledgeError> for Refusal {
    fn from(error: KnowledgeError) -> Self {
        let words = error.to_string();
        match error {
            KnowledgeError::Unfit(_) => {
                Self::new(StatusCode::UNPROCESSABLE_ENTITY, "VALIDATION_FAILED", words)
            }
            KnowledgeError::UnknownKind(_) => Self::new(
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                "UNSUPPORTED_MEDIA_TYPE",
                words,
            ),
            KnowledgeError::Full(_) => Self::new(StatusCode::INSUFFICIENT_STORAGE, "LIMIT_EXCEEDED", words),
            KnowledgeError::Store(StoreError::Conflict) => Self::contended(),
            KnowledgeError::Store(error) => error.into(),
        }
    }
}

impl Refusal {
    /// Others changed the same so often meanwhile that nothing came of it.
    pub fn contended() -> Self {
        Self::conflict(
            "CONFLICT",
            "others are changing this at the same time; nothing was changed, try again",
        )
    }

    fn winner(mut self, winner: &impl Serialize) -> Self {
        self.0.body.winner = serde_json::to_value(winner).ok();
        self
    }
}

/// An error code as it is written everywhere.
fn code_word(code: ErrorCode) -> Cow<'static, str> {
    match serde_json::to_value(code) {
        Ok(Value::String(word)) => word.into(),
        _ => "GONE".into(),
    }
}
