//! Who calls: credentials from a request's headers, address or cookie, and the extractors that handlers name their
//! callers by. A header always wins over a cookie.

use axum::extract::{FromRef, FromRequestParts};
use http::header::AUTHORIZATION;
use http::request::Parts;
use http::{HeaderMap, HeaderName};
use toolgate_access::{Credentials, Principal, keys};
use toolgate_engine::shares::share_of;
use toolgate_engine::store::KeyKind;
use toolgate_kernel::id::ProjectId;

use crate::Shared;
use crate::answer::accepts_events;
use crate::in_flight::InFlight;
use crate::problem::Refusal;
use crate::query::Query;

/// Carries the public key.
const PUBLIC_KEY: HeaderName = HeaderName::from_static("x-public-key");

/// Anybody in a project.
pub struct Caller(pub Principal);

/// A project's backend: for routes that users may not call.
pub struct Backend(pub ProjectId);

/// The reader of a stream. A browser's `EventSource` sends no headers, so a public key and its token may stand
/// in the address here; a secret key never.
pub struct Reader(pub Principal);

/// The operator, who manages projects and sees no project's data.
pub struct Operator;

/// Whoever reads figures: a project's backend, for its project, or the operator, for all of them.
pub enum FigureReader {
    /// A project's backend.
    Project(ProjectId),
    /// The operator.
    Operator,
}

impl<S: Send + Sync> FromRequestParts<S> for Caller
where
    Shared: FromRef<S>,
{
    type Rejection = Refusal;
    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Refusal> {
        let shared = Shared::from_ref(state);
        let who = principal(&shared, parts, || from_headers(&parts.headers)).await?;
        // For the body, which is read on behalf of its sender.
        parts.extensions.insert(share_of(who.project, who.entity()));
        Ok(Self(who))
    }
}
impl<S: Send + Sync> FromRequestParts<S> for Backend
where
    Shared: FromRef<S>,
{
    type Rejection = Refusal;
    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Refusal> {
        let Caller(who) = Caller::from_request_parts(parts, state).await?;
        match who.user {
            None => Ok(Self(who.project)),
            Some(_) => Err(Refusal::forbidden("this needs a secret key")),
        }
    }
}
impl<S: Send + Sync> FromRequestParts<S> for Reader
where
    Shared: FromRef<S>,
{
    type Rejection = Refusal;
    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Refusal> {
        let credentials = || match from_headers(&parts.headers)? {
            None if accepts_events(&parts.headers) => from_query(&Query::of(&parts.uri)?),
            given => Ok(given),
        };
        let shared = Shared::from_ref(state);
        principal(&shared, parts, credentials).await.map(Self)
    }
}
impl<S: Send + Sync> FromRequestParts<S> for Operator
where
    Shared: FromRef<S>,
{
    type Rejection = Refusal;
    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Refusal> {
        // Also where no project asks for keys: being let into a project makes nobody its operator.
        let shared = Shared::from_ref(state);
        let cookie = || shared.settings.session_cookie.shown(parts);
        let shown = match from_headers(&parts.headers)? {
            Some(shown) => shown,
            None => {
                let cookie = cookie().map(|cookie| Credentials::Session(cookie.into()));
                cookie.ok_or_else(|| Refusal::unauthenticated("send authorization: Bearer <operator key>"))?
            }
        };
        if let Some(who) = shared.access.operator(shown).await? {
            check_session(&shared, parts, &who)?;
        }
        Ok(Self)
    }
}

impl<S: Send + Sync> FromRequestParts<S> for FigureReader
where
    Shared: FromRef<S>,
{
    type Rejection = Refusal;
    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Refusal> {
        let refusal = match Backend::from_request_parts(parts, state).await {
            Ok(Backend(project)) => return Ok(Self::Project(project)),
            Err(refusal) => refusal,
        };
        match Operator::from_request_parts(parts, state).await {
            Ok(Operator) => Ok(Self::Operator),
            Err(_) => Err(refusal),
        }
    }
}

async fn principal(
    shared: &Shared,
    parts: &Parts,
    credentials: impl FnOnce() -> Result<Option<Credentials>, Refusal>,
) -> Result<Principal, Refusal> {
    if let Some(open) = shared.access.open() {
        return Ok(open);
    }
    let cookie = || {
        let cookie = shared.settings.session_cookie.shown(parts)?;
        Some(Credentials::Session(cookie.into()))
    };
    let shown = credentials()?.or_else(cookie).ok_or_else(|| {
        Refusal::unauthenticated(
            "send authorization: Bearer sk_…, or x-public-key: pk_… with authorization: Bearer <JWT>",
        )
    })?;
    let who = shared.access.principal(shown).await?;
    check_session(shared, parts, &who)?;
    if let Some(in_flight) = parts.extensions.get::<InFlight>() {
        in_flight.identify(&who);
    }
    Ok(who)
}

/// Refuses what another page may have made a browser send.
fn check_session(shared: &Shared, parts: &Parts, who: &Principal) -> Result<(), Refusal> {
    match &who.session {
        Some(shown) => shared.settings.session_cookie.check(parts, shown),
        None => Ok(()),
    }
}

fn from_headers(headers: &HeaderMap) -> Result<Option<Credentials>, Refusal> {
    let bearer = match headers.get(AUTHORIZATION) {
        None => None,
        Some(value) => Some(bearer(value.to_str().unwrap_or_default()).ok_or_else(|| {
            Refusal::unauthenticated("authorization must be \"Bearer\" and a key or a token")
        })?),
    };
    let key = headers
        .get(PUBLIC_KEY)
        .map(|value| value.to_str().unwrap_or_default());
    match (key, bearer) {
        (None, None) => Ok(None),
        (None, Some(shown)) => Ok(Some(
            key_with_token(shown).unwrap_or(Credentials::Key(shown.into())),
        )),
        (Some(_), None) => Err(Refusal::unauthenticated(
            "a public key needs a user's token: authorization: Bearer <JWT>",
        )),
        (Some(key), Some(token)) => Ok(Some(user(key, token))),
    }
}

fn from_query(query: &Query) -> Result<Option<Credentials>, Refusal> {
    match (query.text("key"), query.text("token")) {
        (None, _) => Ok(None),
        (Some(key), _) if key.starts_with(keys::prefix(KeyKind::Secret)) => Err(Refusal::unauthenticated(
            "a secret key must never stand in an address",
        )),
        (Some(_), None) => Err(Refusal::unauthenticated(
            "a public key needs a user's token in token",
        )),
        (Some(key), Some(token)) => Ok(Some(user(key, token))),
    }
}

/// `pk_….<JWT>`: a public key and a user's token in one, for clients that send one header only.
fn key_with_token(shown: &str) -> Option<Credentials> {
    const JWT_PARTS: usize = 3;
    if !shown.starts_with(keys::prefix(KeyKind::Public)) {
        return None;
    }
    // From the end: a chosen key may have dots, and a token has exactly two.
    let dot = shown.rmatch_indices('.').nth(JWT_PARTS - 1)?.0;
    Some(user(&shown[..dot], &shown[dot + 1..]))
}

fn user(key: &str, token: &str) -> Credentials {
    Credentials::User {
        key: key.into(),
        token: token.into(),
    }
}

fn bearer(value: &str) -> Option<&str> {
    let (scheme, rest) = value.split_once(' ')?;
    let rest = rest.trim();
    (scheme.eq_ignore_ascii_case("bearer") && !rest.is_empty()).then_some(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(headers: &[(&str, &str)]) -> Result<Option<Credentials>, String> {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.insert(name.parse::<HeaderName>().unwrap(), value.parse().unwrap());
        }
        from_headers(&map).map_err(|refusal| refusal.into_body().detail)
    }

    #[test]
    fn a_key_comes_alone_and_a_token_with_its_public_key() {
        assert_eq!(shown(&[]), Ok(None));
        assert_eq!(
            shown(&[("authorization", "bearer sk_1")]),
            Ok(Some(Credentials::Key("sk_1".into())))
        );
        assert_eq!(
            shown(&[("authorization", "Bearer a.b.c"), ("x-public-key", "pk_1")]),
            Ok(Some(user("pk_1", "a.b.c")))
        );
        assert_eq!(
            shown(&[("authorization", "Bearer pk_1.x.a.b.c")]),
            Ok(Some(user("pk_1.x", "a.b.c")))
        );
        assert_eq!(
            shown(&[("authorization", "Bearer pk_1.b.c")]),
            Ok(Some(Credentials::Key("pk_1.b.c".into())))
        );
        assert!(
            shown(&[("x-public-key", "pk_1")])
                .unwrap_err()
                .contains("needs a user's token")
        );
        assert!(
            shown(&[("authorization", "Basic eA==")])
                .unwrap_err()
                .contains("Bearer")
        );
    }

    #[test]
    fn an_address_may_hold_a_public_key_but_never_a_secret_one() {
        let query = |text: &str| {
            let query = Query::of(&format!("/x?{text}").parse().unwrap()).unwrap();
            from_query(&query).map_err(|refusal| refusal.into_body().detail)
        };
        assert_eq!(query("key=pk_1&token=a.b.c"), Ok(Some(user("pk_1", "a.b.c"))));
        assert_eq!(query("after=3"), Ok(None));
        assert!(query("key=sk_1&token=a.b.c").unwrap_err().contains("never"));
        assert!(query("key=pk_1").unwrap_err().contains("needs a user's token"));
    }
}
