//! Who is asking. A secret key is its project's backend; a public key with a token is one user of it.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::FromRequestParts;
use http::header::AUTHORIZATION;
use http::request::Parts;
use http::{HeaderMap, HeaderName};
use toolgate_engine::store::{EntityRecord, KeyKind, ProjectRecord, StoreError};
use toolgate_kernel::id::{EntityId, KeyId, ProjectId};
use toolgate_kernel::time::Time;
use toolgate_kernel::view::Audience;
use uuid::Uuid;

use crate::answer::accepts_events;
use crate::jwt::{TokenError, verify};
use crate::problem::Refusal;
use crate::query::Query;
use crate::{Auth, Door, Shared, keys};

/// How long a key is known without asking the store: also how long a key that another node removed still
/// opens this one.
pub(crate) const KEY_KNOWN: Duration = Duration::from_secs(5);
/// Keys, and users, that are known at once.
pub(crate) const KNOWN_MAX: usize = 10_000;
/// Carries the public key.
pub(crate) const PUBLIC_KEY: HeaderName = HeaderName::from_static("x-public-key");

/// Who is asking.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Principal {
    /// Whose.
    pub project: ProjectId,
    /// The user; none for the project's backend.
    pub user: Option<User>,
}

/// A user of a project.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct User {
    /// Who.
    pub entity: EntityId,
    /// Until when the token holds.
    pub expires: Time,
}

impl Principal {
    /// What it may see.
    pub fn audience(&self) -> Audience {
        match self.user {
            None => Audience::Secret,
            Some(_) => Audience::Public,
        }
    }
    /// Who it is in a space.
    pub fn entity(&self) -> Option<EntityId> {
        self.user.map(|user| user.entity)
    }
}

/// A project's backend: what a route takes that is not for users.
pub(crate) struct Backend(pub ProjectId);

/// Who follows a stream. A browser's `EventSource` sends no headers, so a public key and its token may stand
/// in the address here; a secret key never.
pub(crate) struct Reader(pub Principal);

impl FromRequestParts<Shared> for Principal {
    type Rejection = Refusal;
    async fn from_request_parts(parts: &mut Parts, door: &Shared) -> Result<Self, Refusal> {
        door.identify(|| Credentials::from_headers(&parts.headers)).await
    }
}
impl FromRequestParts<Shared> for Backend {
    type Rejection = Refusal;
    async fn from_request_parts(parts: &mut Parts, door: &Shared) -> Result<Self, Refusal> {
        let who = Principal::from_request_parts(parts, door).await?;
        match who.user {
            None => Ok(Self(who.project)),
            Some(_) => Err(Refusal::forbidden("this needs a secret key")),
        }
    }
}
impl FromRequestParts<Shared> for Reader {
    type Rejection = Refusal;
    async fn from_request_parts(parts: &mut Parts, door: &Shared) -> Result<Self, Refusal> {
        let credentials = || match Credentials::from_headers(&parts.headers)? {
            Credentials::None if accepts_events(&parts.headers) => {
                Credentials::from_query(&Query::of(&parts.uri)?)
            }
            given => Ok(given),
        };
        door.identify(credentials).await.map(Self)
    }
}

/// What a request shows of itself.
#[derive(Debug, PartialEq)]
pub(crate) enum Credentials {
    None,
    Secret(String),
    Public { key: String, token: String },
}

impl Credentials {
    fn from_headers(headers: &HeaderMap) -> Result<Self, Refusal> {
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
            (None, None) => Ok(Self::None),
            (None, Some(key)) if key.starts_with(keys::prefix(KeyKind::Secret)) => {
                Ok(Self::Secret(key.into()))
            }
            (None, Some(_)) => Err(Refusal::unauthenticated(
                "the bearer is no secret key (sk_…); a user's token comes with a public key in x-public-key",
            )),
            (Some(_), None) => Err(Refusal::unauthenticated(
                "a public key needs a user's token: authorization: Bearer <JWT>",
            )),
            (Some(key), Some(token)) => Ok(Self::Public {
                key: key.into(),
                token: token.into(),
            }),
        }
    }
    fn from_query(query: &Query) -> Result<Self, Refusal> {
        match (query.text("key"), query.text("token")) {
            (None, _) => Ok(Self::None),
            (Some(key), _) if key.starts_with(keys::prefix(KeyKind::Secret)) => Err(
                Refusal::unauthenticated("a secret key must never stand in an address"),
            ),
            (Some(_), None) => Err(Refusal::unauthenticated(
                "a public key needs a user's token in token",
            )),
            (Some(key), Some(token)) => Ok(Self::Public {
                key: key.into(),
                token: token.into(),
            }),
        }
    }
}

fn bearer(value: &str) -> Option<&str> {
    let (scheme, rest) = value.split_once(' ')?;
    let rest = rest.trim();
    (scheme.eq_ignore_ascii_case("bearer") && !rest.is_empty()).then_some(rest)
}

/// A key that exists.
#[derive(Clone)]
pub(crate) struct KnownKey {
    pub id: KeyId,
    kind: KeyKind,
    project: Arc<ProjectRecord>,
}

impl Door {
    async fn identify(
        &self,
        credentials: impl FnOnce() -> Result<Credentials, Refusal>,
    ) -> Result<Principal, Refusal> {
        if let Auth::Open(project) = self.settings.auth {
            return Ok(Principal { project, user: None });
        }
        let (key, who) = match credentials()? {
            Credentials::None => {
                return Err(Refusal::unauthenticated(
                    "send authorization: Bearer sk_…, or x-public-key: pk_… with authorization: Bearer <JWT>",
                ));
            }
            Credentials::Secret(key) => {
                let key = self.known_key(&key, KeyKind::Secret).await?;
                let who = Principal {
                    project: key.project.id,
                    user: None,
                };
                (key, who)
            }
            Credentials::Public { key, token } => {
                let key = self.known_key(&key, KeyKind::Public).await?;
                let user = self.user(&key.project, &token).await?;
                let who = Principal {
                    project: key.project.id,
                    user: Some(user),
                };
                (key, who)
            }
        };
        self.limiter
            .check(key.id, who.entity())
            .map_err(Refusal::rate_limited)?;
        Ok(who)
    }

    async fn known_key(&self, key: &str, kind: KeyKind) -> Result<KnownKey, Refusal> {
        let hash = keys::hash(key);
        let known = match self.keys.get(&hash) {
            Some(known) => Some(known),
            None => self.stored_key(hash).await?,
        };
        known
            .filter(|known| known.kind == kind)
            .ok_or_else(|| Refusal::unauthenticated("the key is not known"))
    }

    async fn stored_key(&self, hash: [u8; 32]) -> Result<Option<KnownKey>, StoreError> {
        let store = self.engine.store();
        let Some(key) = store.key(hash).await? else {
            return Ok(None);
        };
        let Some(project) = store.project(key.project).await? else {
            return Ok(None);
        };
        let known = KnownKey {
            id: key.id,
            kind: key.kind,
            project: Arc::new(project),
        };
        self.keys.put(hash, known.clone());
        Ok(Some(known))
    }

    async fn user(&self, project: &ProjectRecord, token: &str) -> Result<User, Refusal> {
        let claims = verify(token, project, &self.jwks, self.engine.clock().now())
            .await
            .map_err(|error| match error {
                TokenError::Refused(detail) => Refusal::unauthenticated(detail),
                TokenError::Unavailable(detail) => Refusal::unavailable(detail),
            })?;
        let entity = self.entity_of(project.id, claims.subject).await?;
        Ok(User {
            entity,
            expires: claims.expires,
        })
    }

    /// The entity of a subject; made when it is seen for the first time.
    pub async fn entity_of(&self, project: ProjectId, subject: String) -> Result<EntityId, StoreError> {
        let known = (project, subject);
        if let Some(entity) = self.entities.get(&known) {
            return Ok(entity);
        }
        let store = self.engine.store();
        let entity = match store.entity_of(project, &known.1).await? {
            Some(entity) => entity.id,
            None => store.put_entity(self.person(project, known.1.clone())).await?.id,
        };
        self.entities.put(known, entity);
        Ok(entity)
    }

    fn person(&self, project: ProjectId, subject: String) -> EntityRecord {
        EntityRecord {
            id: EntityId::new(Uuid::now_v7()),
            project,
            subject,
            kind: "person".into(),
            name: None,
            metadata: None,
            created: self.engine.clock().now(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(headers: &[(&str, &str)]) -> Result<Credentials, String> {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.insert(name.parse::<HeaderName>().unwrap(), value.parse().unwrap());
        }
        Credentials::from_headers(&map).map_err(|refusal| refusal.into_body().detail)
    }

    #[test]
    fn a_secret_key_comes_alone_and_a_token_with_its_public_key() {
        assert_eq!(shown(&[]), Ok(Credentials::None));
        assert_eq!(
            shown(&[("authorization", "bearer sk_1")]),
            Ok(Credentials::Secret("sk_1".into()))
        );
        assert_eq!(
            shown(&[("authorization", "Bearer a.b.c"), ("x-public-key", "pk_1")]),
            Ok(Credentials::Public {
                key: "pk_1".into(),
                token: "a.b.c".into()
            })
        );
        assert!(
            shown(&[("authorization", "Bearer a.b.c")])
                .unwrap_err()
                .contains("no secret key")
        );
        assert!(
            shown(&[("authorization", "Bearer pk_1")])
                .unwrap_err()
                .contains("no secret key")
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
            Credentials::from_query(&query).map_err(|refusal| refusal.into_body().detail)
        };
        assert_eq!(
            query("key=pk_1&token=a.b.c"),
            Ok(Credentials::Public {
                key: "pk_1".into(),
                token: "a.b.c".into()
            })
        );
        assert_eq!(query("after=3"), Ok(Credentials::None));
        assert!(query("key=sk_1&token=a.b.c").unwrap_err().contains("never"));
        assert!(query("key=pk_1").unwrap_err().contains("needs a user's token"));
    }
}
