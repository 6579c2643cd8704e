//! Who is asking. A secret key is its project's backend, and so is a session; a public key with a token is one user of it;
//! the operator's key is the operator.

use std::sync::Arc;
use std::time::Duration;

use aws_lc_rs::constant_time::verify_slices_are_equal;
use toolgate_engine::store::{EntityRecord, KeyKind, ProjectRecord, StoreError};
use toolgate_kernel::agent::Secret;
use toolgate_kernel::id::{EntityId, KeyId, ProjectId};
use uuid::Uuid;

use crate::jwt::verify;
use crate::rate::Asker;
use crate::{Access, AccessError, Auth, Credentials, Identity, Principal, ShownKey, User, keys};

/// How long a key is known without asking the store: also how long a key that another node removed still
/// opens this one when the notice of it is lost.
pub(crate) const KEY_KNOWN: Duration = Duration::from_secs(5);
/// What somebody is told whose session has ended.
const SESSION_ENDED: &str = "the session has ended; sign in again with a link from `toolgate login`";
/// Keys, and users, that are known at once.
pub(crate) const KNOWN_MAX: usize = 10_000;

/// A key that exists.
#[derive(Clone)]
pub(crate) struct KnownKey {
    id: KeyId,
    hash: [u8; 32],
    kind: KeyKind,
    project: Arc<ProjectRecord>,
    /// Revocations that had been made when it was read: after the next one it is read again.
    revoked: u64,
}

impl KnownKey {
    fn shown(&self) -> ShownKey {
        ShownKey {
            id: self.id,
            hash: self.hash,
        }
    }
}

impl Access {
    /// The principal that everybody is, when no keys are asked for.
    pub fn open(&self) -> Option<Principal> {
        match self.auth {
            Auth::Keys => None,
            Auth::Open(project) => Some(Principal::backend(project)),
        }
    }

    /// Who shows these credentials. Counts one request of theirs.
    pub async fn identify(&self, credentials: Credentials) -> Result<Identity, AccessError> {
        let (asker, who) = match credentials {
            Credentials::Key(key) if self.is_operator_key(&key) => (Asker::Operator, Identity::Operator),
            Credentials::Key(key) if key.starts_with(keys::prefix(KeyKind::Secret)) => {
                let key = self.known_key(&key, KeyKind::Secret).await?;
                let who = Principal {
                    key: Some(key.shown()),
                    ..Principal::backend(key.project.id)
                };
                (Asker::Backend(key.id), Identity::Principal(who))
            }
            Credentials::Key(_) => {
                return Err(AccessError::unauthenticated(
                    "the bearer is no secret key (sk_…); a user's token comes with a public key in x-public-key",
                ));
            }
            Credentials::User { key, token } => {
                let key = self.known_key(&key, KeyKind::Public).await?;
                let user = self.user(&key.project, &token).await?;
                let asker = Asker::User(user.entity);
                let who = Principal {
                    project: key.project.id,
                    user: Some(user),
                    key: Some(key.shown()),
                    session: None,
                };
                (asker, Identity::Principal(who))
            }
            Credentials::Session(cookie) => {
                let shown = self.shown_session(&cookie).await?;
                let (shown, key) = shown.ok_or_else(|| AccessError::unauthenticated(SESSION_ENDED))?;
                let asker = Asker::Session(shown.session.id);
                (asker, Identity::Principal(Principal::of_session(shown, key)))
            }
        };
        self.limiter.check(asker).map_err(AccessError::RateLimited)?;
        if let Identity::Principal(Principal {
            session: Some(shown), ..
        }) = &who
        {
            self.touch(shown).await;
        }
        Ok(who)
    }

    /// Counts a message against the rate limit of its sender, shared by all of its connections.
    pub fn count_message(&self, who: &Principal) -> Result<(), AccessError> {
        let asker = match (&who.session, &who.user, who.key) {
            (Some(shown), ..) => Asker::Session(shown.session.id),
            (None, Some(user), _) => Asker::User(user.entity),
            (None, None, Some(key)) => Asker::Backend(key.id),
            // Where no keys are asked for, nobody is told from another.
            (None, None, None) => return Ok(()),
        };
        self.limiter.check(asker).map_err(AccessError::RateLimited)
    }

    /// The operator shows these credentials, or a session whose login link the operator made. Also where no project asks
    /// for keys. Gives who shows the session.
    pub async fn operator(&self, credentials: Credentials) -> Result<Option<Principal>, AccessError> {
        match self.identify(credentials).await? {
            Identity::Operator => Ok(None),
            Identity::Principal(who) if who.is_operator() => Ok(Some(who)),
            Identity::Principal(_) => Err(AccessError::Forbidden("this needs the operator's key")),
        }
    }

    /// Somebody in a project shows these credentials.
    pub async fn principal(&self, credentials: Credentials) -> Result<Principal, AccessError> {
        match self.identify(credentials).await? {
            Identity::Principal(who) => Ok(who),
            // A project's key is missing, as it would be with any other key that opens no project.
            Identity::Operator => Err(AccessError::unauthenticated(
                "the operator's key manages projects and opens none; send a key of the project",
            )),
        }
    }

    /// Issuer of the tokens that users of this public key show, if its project names one.
    pub async fn issuer_of(&self, public_key: &str) -> Result<Option<String>, AccessError> {
        let key = self.known_key(public_key, KeyKind::Public).await?;
        let provider = key.project.identity_provider.as_ref();
        Ok(provider.and_then(|provider| provider.issuer.clone()))
    }

    /// Compares in constant time: how long it takes tells nothing about the key but its length.
    fn is_operator_key(&self, key: &str) -> bool {
        let operator = self.operator_key.as_ref().map(Secret::expose);
        operator.is_some_and(|operator| verify_slices_are_equal(operator.as_bytes(), key.as_bytes()).is_ok())
    }

    async fn known_key(&self, key: &str, kind: KeyKind) -> Result<KnownKey, AccessError> {
        let known = self.key_of_hash(keys::hash(key)).await?;
        known
            .filter(|known| known.kind == kind)
            .ok_or_else(|| AccessError::unauthenticated("the key is not known"))
    }

    /// The key with this hash, unless it was removed.
    pub(crate) async fn key_of_hash(&self, hash: [u8; 32]) -> Result<Option<KnownKey>, StoreError> {
        // Counted before the store is read: what is revoked while it is read is looked up again.
        let revoked = self.revocations.count();
        match self.keys.get(&hash).filter(|known| known.revoked == revoked) {
            Some(known) => Ok(Some(known)),
            None => self.stored_key(hash, revoked).await,
        }
    }

    async fn stored_key(&self, hash: [u8; 32], revoked: u64) -> Result<Option<KnownKey>, StoreError> {
        let Some(key) = self.directory.key(hash).await? else {
            return Ok(None);
        };
        let Some(project) = self.directory.project(key.project).await? else {
            return Ok(None);
        };
        let known = KnownKey {
            id: key.id,
            hash,
            kind: key.kind,
            revoked,
            project: Arc::new(project),
        };
        self.keys.put(hash, known.clone());
        Ok(Some(known))
    }

    async fn user(&self, project: &ProjectRecord, token: &str) -> Result<User, AccessError> {
        let claims = verify(token, project, &self.jwks, &self.claims, self.clock.now()).await?;
        let entity = self.entity_of(project.id, claims.subject).await?;
        Ok(User {
            entity,
            expires: claims.expires,
            token: Secret::new(token),
            groups: claims.groups,
            roles: claims.roles,
            time_zone: claims.time_zone,
        })
    }

    /// The entity of a subject; made when it is seen for the first time.
    pub(crate) async fn entity_of(
        &self,
        project: ProjectId,
        subject: String,
    ) -> Result<EntityId, StoreError> {
        let known = (project, subject);
        self.forget_deleted();
        if let Some(entity) = self.entities.get(&known) {
            return Ok(entity);
        }
        let entity = match self.directory.entity_of(project, &known.1).await? {
            Some(entity) => entity.id,
            None => {
                let person = self.person(project, known.1.clone());
                // Not `put_entity`: what a backend has stored of the person since the look above must stay.
                self.directory.ensure_entity(person).await?.id
            }
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
            grants: Vec::new(),
            created: self.clock.now(),
        }
    }
}
