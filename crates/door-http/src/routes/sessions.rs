//! Sessions of the console: a login code becomes a cookie, and the cookie acts as the project's backend until it is
//! ended.

use std::sync::Arc;

use axum::extract::{FromRequestParts, State};
use axum::response::{IntoResponse, Response};
use http::header::{SET_COOKIE, USER_AGENT};
use http::request::Parts;
use http::{HeaderMap, StatusCode};
use serde::Serialize;
use toolgate_access::{AccessError, Maker, Principal, Session};
use toolgate_http::answer::{Answer, ok};
use toolgate_http::body::{Body, MaybeBody};
use toolgate_http::caller::{Caller, Operator};
use toolgate_http::describe::{BackendOnly, BadBody, Contended, Missing, Others, Refused};
use toolgate_http::problem::Refusal;
use toolgate_http::query::At;
use toolgate_http::wire::{Text, wire};
use toolgate_http::{Shared, schema};
use toolgate_kernel::agent::Secret;
use toolgate_kernel::id::{ProjectId, SessionId};
use toolgate_kernel::time::Time;
use utoipa::ToSchema;

use crate::Resources;

const CODE_CHARS_MAX: usize = 256;
const PROJECT_CHARS_MAX: usize = 64;

wire! {
    /// Signs in.
    OpenSession {
        /// The code of a login link.
        code "code": Text<1, CODE_CHARS_MAX>,
    }
}
wire! {
    /// A login link.
    MakeLoginCode {
        /// The project to sign in to, by name; for the operator, `default` unless said otherwise. A secret key has its
        /// own.
        project "project": Option<Text<1, PROJECT_CHARS_MAX>>,
    }
}

/// A login code. It is good once.
#[derive(Serialize, ToSchema)]
#[schema(as = LoginCode)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CodeBody {
    /// What `POST /v1/sessions` takes.
    code: String,
    /// The code is good before this time.
    #[schema(value_type = schema::Time)]
    expires_at: Time,
    /// The link to open in a browser. The code stands behind `#`, so that it reaches no log on the way.
    url: String,
}

/// Who is asking.
#[derive(Serialize, ToSchema)]
#[schema(as = Session)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SessionBody {
    /// What was shown: `session`, `key`, or `open` where no keys are asked for.
    #[schema(value_type = String)]
    kind: &'static str,
    /// Id of the session.
    #[schema(value_type = Option<schema::SessionId>)]
    id: Option<SessionId>,
    /// The project.
    project: SessionProject,
    /// Whether it may manage projects too.
    operator: bool,
    /// What a session sends as `x-toolgate-csrf` with every request that is not a GET.
    csrf_token: Option<String>,
    /// When somebody signed in.
    #[schema(value_type = Option<schema::Time>)]
    created_at: Option<Time>,
    /// When the session was used last.
    #[schema(value_type = Option<schema::Time>)]
    last_used_at: Option<Time>,
    /// When it ends if nobody uses it any more.
    #[schema(value_type = Option<schema::Time>)]
    expires_at: Option<Time>,
}

/// The project that a session belongs to.
#[derive(Serialize, ToSchema)]
pub(crate) struct SessionProject {
    /// Id of the project.
    #[schema(value_type = schema::ProjectId)]
    id: ProjectId,
    /// Its name.
    name: String,
}

/// A session, as others see it.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ListedSession {
    /// Id of the session.
    #[schema(value_type = schema::SessionId)]
    id: SessionId,
    /// When somebody signed in.
    #[schema(value_type = schema::Time)]
    created_at: Time,
    /// When it was used last.
    #[schema(value_type = schema::Time)]
    last_used_at: Time,
    /// When it ends if nobody uses it any more.
    #[schema(value_type = schema::Time)]
    expires_at: Time,
    /// Whether it may manage projects too.
    operator: bool,
    /// What the browser said of itself.
    user_agent: Option<String>,
    /// Whether it is the one that asks.
    current: bool,
}

/// The sessions of a project.
#[derive(Serialize, ToSchema)]
pub(crate) struct SessionList {
    /// Those that were used last come first.
    sessions: Vec<ListedSession>,
}

/// Makes a login link with a secret key, or with the operator's key. A session cannot make one.
#[utoipa::path(
    post, path = "/v1/login-codes", operation_id = "make_login_code", tag = "sessions",
    request_body = Option<MakeLoginCode>,
    responses((status = 201, description = "Made.", body = CodeBody), BadBody, BackendOnly, Missing, Contended, Refused),
)]
pub(crate) async fn make_code(
    State(door): State<Shared>,
    State(resources): State<Arc<Resources>>,
    maker: CodeMaker,
    headers: HeaderMap,
    MaybeBody(body): MaybeBody<MakeLoginCode>,
) -> Result<Answer<CodeBody>, Refusal> {
    let wanted = body.project.map(|name| name.0);
    let (project, maker) = match maker {
        CodeMaker::Key(project, maker) if wanted.is_none() => (project, maker),
        CodeMaker::Key(..) => {
            return Err(Refusal::forbidden(
                "a secret key makes links for its own project; to name another one needs the operator's key",
            ));
        }
        CodeMaker::Operator => {
            let name = wanted.as_deref().unwrap_or("default");
            let project = door.engine.project_named(name).await?;
            let project = project.ok_or_else(|| Refusal::missing(format!("there is no project {name:?}")))?;
            let maker = door.access.operator_as_maker();
            (
                project.id,
                maker.ok_or_else(|| Refusal::forbidden("there is no operator"))?,
            )
        }
    };
    let made = door.access.make_login_code(project, maker).await?;
    let host = headers
        .get(http::header::HOST)
        .and_then(|host| host.to_str().ok());
    let base = match (&resources.public_url, host) {
        (Some(url), _) => url.clone(),
        (None, Some(host)) => format!("http://{host}"),
        (None, None) => String::new(),
    };
    Ok(Answer(
        StatusCode::CREATED,
        CodeBody {
            url: format!("{base}/login#code={}", made.code),
            code: made.code,
            expires_at: made.expires,
        },
    ))
}

/// Whoever may make login links.
pub(crate) enum CodeMaker {
    Key(ProjectId, Maker),
    Operator,
}

impl FromRequestParts<crate::Rest> for CodeMaker {
    type Rejection = Refusal;
    async fn from_request_parts(parts: &mut Parts, state: &crate::Rest) -> Result<Self, Refusal> {
        let door = &state.shared;
        if door.access.open().is_some() {
            return Err(needs_no_session());
        }
        let refused = match Caller::from_request_parts(parts, state).await {
            Ok(Caller(Principal { session: Some(_), .. })) => {
                return Err(Refusal::forbidden(
                    "a login link is made with a key, not with a session",
                ));
            }
            Ok(Caller(Principal { user: Some(_), .. })) => {
                return Err(Refusal::forbidden("this needs a secret key"));
            }
            Ok(Caller(Principal {
                project,
                key: Some(key),
                ..
            })) => return Ok(Self::Key(project, Maker::key(key))),
            Ok(Caller(_)) => return Err(needs_no_session()),
            Err(refused) => refused,
        };
        match Operator::from_request_parts(parts, state).await {
            Ok(Operator) => Ok(Self::Operator),
            Err(_) => Err(refused),
        }
    }
}

/// Signs in: uses up a login code and sets the cookie of a new session.
#[utoipa::path(
    post, path = "/v1/sessions", operation_id = "open_session", tag = "sessions", security(()),
    request_body = OpenSession,
    responses(
        (status = 201, description = "Signed in; the answer sets the cookie.", body = SessionBody),
        BadBody, Others, Contended, Refused,
    ),
)]
pub(crate) async fn open(
    State(door): State<Shared>,
    OwnPage(before): OwnPage,
    headers: HeaderMap,
    body: Body<OpenSession>,
) -> Result<Response, Refusal> {
    if door.access.open().is_some() {
        return Err(needs_no_session());
    }
    let browser = headers.get(USER_AGENT).and_then(|name| name.to_str().ok());
    let opened = door
        .access
        .open_session(&body.value.code.0, browser.map(str::to_owned))
        .await?;
    let opened = opened.ok_or_else(|| {
        Refusal::new(
            StatusCode::UNAUTHORIZED,
            "LOGIN_CODE_INVALID",
            "the code was used, has expired, or never was one; make another with `toolgate login`",
        )
    })?;
    opened
        .ended
        .into_iter()
        .for_each(|ended| door.engine.session_ended(ended));
    // Its cookie is replaced, so nobody could end it any more.
    if let Some(before) = before {
        end_one(&door, before.project, before.id).await?;
    }
    let who = door
        .access
        .principal(toolgate_access::Credentials::Session(opened.cookie.clone()));
    let told = SessionBody::of(&door, &who.await?).await?;
    let cookie = &door.settings.session_cookie;
    let set = cookie.set(&opened.cookie, door.access.session_lifetime().as_secs());
    Ok(([(SET_COOKIE, set)], Answer(StatusCode::CREATED, told)).into_response())
}

/// A request of one of the gateway's own pages, and the session that it comes with.
pub(crate) struct OwnPage(Option<Session>);

impl FromRequestParts<crate::Rest> for OwnPage {
    type Rejection = Refusal;
    async fn from_request_parts(parts: &mut Parts, state: &crate::Rest) -> Result<Self, Refusal> {
        state.shared.settings.session_cookie.check_origin(parts)?;
        let session = state
            .shared
            .settings
            .session_cookie
            .session(&state.shared.access, parts)
            .await?;
        Ok(Self(session))
    }
}

/// Who is asking. After a reload a page learns here the token that its requests need.
#[utoipa::path(
    get, path = "/v1/session", operation_id = "get_session", tag = "sessions",
    responses((status = 200, description = "Who is asking.", body = SessionBody), BackendOnly, Refused),
)]
pub(crate) async fn own(
    State(door): State<Shared>,
    Caller(who): Caller,
) -> Result<Answer<SessionBody>, Refusal> {
    backend(&who)?;
    Ok(ok(SessionBody::of(&door, &who).await?))
}

/// Signs out: ends the session that asks, and what it follows.
#[utoipa::path(
    delete, path = "/v1/session", operation_id = "end_own_session", tag = "sessions",
    responses((status = 204, description = "Signed out."), BackendOnly, Missing, Refused),
)]
pub(crate) async fn sign_out(State(door): State<Shared>, Caller(who): Caller) -> Result<Response, Refusal> {
    backend(&who)?;
    let shown = who
        .session
        .ok_or_else(|| Refusal::missing("a key has no session to end"))?;
    end_one(&door, who.project, shown.session.id).await?;
    Ok(signed_out(&door))
}

/// The project's sessions.
#[utoipa::path(
    get, path = "/v1/sessions", operation_id = "list_sessions", tag = "sessions",
    responses((status = 200, description = "All of them.", body = SessionList), BackendOnly, Refused),
)]
pub(crate) async fn list(
    State(door): State<Shared>,
    Caller(who): Caller,
) -> Result<Answer<SessionList>, Refusal> {
    backend(&who)?;
    let own = own_id(&who);
    let sessions = door.access.sessions(who.project).await?;
    let sessions = sessions.into_iter().map(|session| ListedSession {
        current: own == Some(session.id),
        id: session.id,
        created_at: session.created,
        last_used_at: session.last_used,
        expires_at: session.expires,
        operator: session.operator,
        user_agent: session.user_agent,
    });
    Ok(ok(SessionList {
        sessions: sessions.collect(),
    }))
}

/// Ends a session of the project, and what it follows.
#[utoipa::path(
    delete, path = "/v1/sessions/{session}", operation_id = "end_session", tag = "sessions",
    params(("session" = inline(schema::SessionId), Path)),
    responses((status = 204, description = "Ended."), Missing, BackendOnly, Refused),
)]
pub(crate) async fn end(
    State(door): State<Shared>,
    Caller(who): Caller,
    At(session): At<SessionId>,
) -> Result<Response, Refusal> {
    backend(&who)?;
    if !end_one(&door, who.project, session).await? {
        return Err(Refusal::not_found("session"));
    }
    Ok(match own_id(&who) == Some(session) {
        true => signed_out(&door),
        false => StatusCode::NO_CONTENT.into_response(),
    })
}

/// Ends every session of the project, that of the caller too.
#[utoipa::path(
    delete, path = "/v1/sessions", operation_id = "end_sessions", tag = "sessions",
    responses((status = 204, description = "All have ended."), BackendOnly, Refused),
)]
pub(crate) async fn end_all(State(door): State<Shared>, Caller(who): Caller) -> Result<Response, Refusal> {
    backend(&who)?;
    let ended = door.access.end_sessions(who.project).await?;
    ended
        .into_iter()
        .for_each(|ended| door.engine.session_ended(ended));
    Ok(signed_out(&door))
}

async fn end_one(door: &Shared, project: ProjectId, session: SessionId) -> Result<bool, AccessError> {
    let ended = door.access.end_session(project, session).await?;
    door.engine.session_ended(session);
    Ok(ended)
}

fn signed_out(door: &Shared) -> Response {
    let clear = door.settings.session_cookie.clear();
    (StatusCode::NO_CONTENT, [(SET_COOKIE, clear)]).into_response()
}

fn own_id(who: &Principal) -> Option<SessionId> {
    who.session.as_ref().map(|shown| shown.session.id)
}

fn backend(who: &Principal) -> Result<(), Refusal> {
    match who.is_backend() {
        true => Ok(()),
        false => Err(Refusal::forbidden("this needs a secret key or a session")),
    }
}

fn needs_no_session() -> Refusal {
    Refusal::new(
        StatusCode::CONFLICT,
        "NO_AUTH",
        "the gateway was started with --no-auth: everybody is signed in",
    )
}

impl SessionBody {
    async fn of(door: &Shared, who: &Principal) -> Result<Self, Refusal> {
        let project = door.engine.project(who.project).await?;
        let project = project.ok_or_else(|| Refusal::not_found("project"))?;
        let session = who.session.as_ref().map(|shown| &shown.session);
        Ok(Self {
            kind: match (session, who.key) {
                (Some(_), _) => "session",
                (None, Some(_)) => "key",
                (None, None) => "open",
            },
            id: session.map(|session| session.id),
            project: SessionProject {
                id: project.id,
                name: project.name,
            },
            operator: who.is_operator(),
            csrf_token: who
                .session
                .as_ref()
                .map(|shown| Secret::expose(&shown.csrf_token).to_owned()),
            created_at: session.map(|session| session.created),
            last_used_at: session.map(|session| session.last_used),
            expires_at: session.map(|session| session.expires),
        })
    }
}
