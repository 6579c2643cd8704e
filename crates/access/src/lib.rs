//! Who is asking, what they may reach, and whether they still may. Speaks no protocol: a door parses
//! [`Credentials`] from its requests, gets an [`Identity`] for them, and maps [`AccessError`] to its own codes.
//! What is remembered here (keys, users, where a run belongs) may be forgotten at any time.
//!
//! Start with [`Access`]; then `identify` (keys, tokens, rate limits), `reach` (project, spaces, runs), `follow`
//! (access that lasts, and ends), `sessions` and `login_codes` (browsers that have signed in) and `file_links` (access to
//! one file that is handed on).

mod cache;
pub mod file_links;
mod follow;
mod identify;
mod jwks;
mod jwt;
pub mod keys;
mod login_codes;
mod rate;
mod reach;
mod sessions;
pub mod signing_key;
mod ticket;

use std::fmt;
use std::sync::{Arc, Mutex};

use cache::Cache;
use toolgate_egress::Egress;
use toolgate_engine::clock::Clock;
use toolgate_engine::records::Records;
use toolgate_engine::revocation::{RevocationWatch, Revocations};
use toolgate_engine::store::{Directory, Runs, StoreError};
use toolgate_engine::user_tokens::UserToken;
use toolgate_kernel::agent::{Secret, Starter};
use toolgate_kernel::id::{EntityId, KeyId, ProjectId, RunId, SpaceId};
use toolgate_kernel::message::Sender;
use toolgate_kernel::time::Time;

pub use follow::{ENDED, Pass, Standing};
pub use jwt::SUBJECT_CHARS_MAX;
pub use login_codes::{CODE_LIFETIME, LoginCode};
pub use reach::Top;
pub use sessions::{Maker, OpenedSession, Session, SessionLimits, ShownSession};

/// Settings of access.
#[derive(Clone)]
pub struct AccessSettings {
    /// Whether callers need a key.
    pub auth: Auth,
    /// Claims of a user's token that name its groups and roles.
    pub claims: ClaimNames,
    /// How often one caller may ask.
    pub rate: Rates,
    /// The operator's key; without one nobody is the operator.
    pub operator_key: Option<Secret>,
    /// Connections to where projects publish their keys.
    pub egress: Egress,
    /// Where sessions and login codes are kept.
    pub records: Arc<dyn Records>,
    /// How long sessions last, and how many there are.
    pub sessions: SessionLimits,
}

/// Which claims of a token name groups and roles.
#[derive(Debug, Clone)]
pub struct ClaimNames {
    /// The user's groups.
    pub groups: String,
    /// The user's roles.
    pub roles: String,
}

impl Default for ClaimNames {
    fn default() -> Self {
        Self {
            groups: "groups".into(),
            roles: "roles".into(),
        }
    }
}

/// Whether callers need a key.
#[derive(Debug, Clone, Copy)]
pub enum Auth {
    /// Every caller shows a key.
    Keys,
    /// Everybody is this project's backend, for trying out; the gateway allows it on loopback only.
    Open(ProjectId),
}

/// How often one caller may ask.
#[derive(Debug, Clone, Copy)]
pub struct Rates {
    /// Requests of one secret key, and of the operator: backends, which ask for many.
    pub secret: Rate,
    /// Requests of one user, whichever public key it comes with: anybody who can sign up.
    pub public: Rate,
}

/// A rate limit.
#[derive(Debug, Clone, Copy)]
pub struct Rate {
    /// Requests per second in the long run.
    pub per_second: u32,
    /// Requests at once.
    pub burst: u32,
}

/// What a caller shows of itself, parsed by a door. A new way to sign in is one more variant here.
#[derive(Debug, Clone, PartialEq)]
pub enum Credentials {
    /// A key that stands alone: a project's secret key, or the operator's key.
    Key(String),
    /// A public key and its user's token.
    User {
        /// The public key.
        key: String,
        /// The JWT.
        token: String,
    },
    /// The cookie of a session. The door has seen to it that the page it came from is the gateway's own.
    Session(String),
}

/// Who is asking.
#[derive(Debug, Clone, PartialEq)]
pub enum Identity {
    /// Whoever runs the gateway: manages projects, and sees no project's data.
    Operator,
    /// Somebody in a project.
    Principal(Principal),
}

/// Somebody in a project: its backend, or one of its users.
#[derive(Debug, Clone, PartialEq)]
pub struct Principal {
    /// The project.
    pub project: ProjectId,
    /// The user; none for the project's backend.
    pub user: Option<User>,
    /// The key that was shown, or that a session was made with: access lasts no longer than this. None where no keys are
    /// asked for.
    pub key: Option<ShownKey>,
    /// The session that was shown instead of a key.
    pub session: Option<Arc<ShownSession>>,
}

/// A key that somebody has shown.
#[derive(Clone, Copy, PartialEq)]
pub struct ShownKey {
    id: KeyId,
    hash: [u8; 32],
}

impl ShownKey {
    /// Id of the key.
    pub fn id(&self) -> KeyId {
        self.id
    }
}

impl fmt::Debug for ShownKey {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.id.fmt(out)
    }
}

/// A user of a project.
#[derive(Debug, Clone, PartialEq)]
pub struct User {
    /// The user's entity.
    pub entity: EntityId,
    /// When its token expires.
    pub expires: Time,
    /// The token itself, for tools that may pass it on.
    pub token: Secret,
    /// Groups that its token names.
    pub groups: Arc<[String]>,
    /// Roles that its token names, in every space.
    pub roles: Arc<[String]>,
    /// Time zone that its token names.
    pub time_zone: Option<Arc<str>>,
}

impl Principal {
    /// The backend of a project.
    pub fn backend(project: ProjectId) -> Self {
        Self {
            project,
            user: None,
            key: None,
            session: None,
        }
    }
    /// Whether it is a secret key, which sees everything of its project.
    pub fn is_backend(&self) -> bool {
        self.user.is_none()
    }
    /// Whether it may manage projects too: it shows a session whose login link the operator made.
    pub fn is_operator(&self) -> bool {
        self.session.as_ref().is_some_and(|shown| shown.session.operator)
    }
    /// Its entity in spaces; a backend has none.
    pub fn entity(&self) -> Option<EntityId> {
        self.user.as_ref().map(|user| user.entity)
    }
    /// What is known of it as the sender of a message.
    pub fn sender(&self) -> Option<Sender> {
        let zone = self.user.as_ref()?.time_zone.as_ref()?;
        Some(Sender {
            name: None,
            time_zone: Some(zone.to_string()),
            executor: None,
        })
    }
    /// The token of a user, for tools that may pass it on.
    pub fn user_token(&self) -> Option<UserToken> {
        self.user.as_ref().map(|user| UserToken {
            entity: user.entity,
            token: user.token.clone(),
            expires: user.expires,
        })
    }
    /// The agents that it may start are those that admit this.
    pub fn starter(&self) -> Starter {
        match &self.user {
            None => Starter::Backend,
            Some(user) => Starter::User {
                groups: user.groups.clone(),
            },
        }
    }
}

/// Why access was refused.
#[derive(Debug, thiserror::Error)]
pub enum AccessError {
    /// It is not known who asks, and why.
    #[error("{0}")]
    Unauthenticated(String),
    /// The caller is known, and may not.
    #[error("{0}")]
    Forbidden(&'static str),
    /// It does not exist, or this caller must not learn that it does.
    #[error("{0}")]
    NotFound(String),
    /// Too many requests: one may come again after so many seconds.
    #[error("too many requests; wait {0} s")]
    RateLimited(u64),
    /// It cannot be decided now.
    #[error("{0}")]
    Unavailable(String),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl AccessError {
    fn unauthenticated(words: impl Into<String>) -> Self {
        Self::Unauthenticated(words.into())
    }
    /// There is no such `what`, for this caller.
    pub fn not_found(what: &str) -> Self {
        Self::NotFound(format!("there is no such {what}"))
    }
}

/// Decides who is asking and what they may reach. One for all doors of a gateway, so that they share rate limits.
pub struct Access {
    directory: Arc<dyn Directory>,
    runs: Arc<dyn Runs>,
    clock: Arc<dyn Clock>,
    revocations: Revocations,
    auth: Auth,
    claims: ClaimNames,
    operator_key: Option<Secret>,
    keys: Cache<[u8; 32], identify::KnownKey>,
    entities: Cache<(ProjectId, String), EntityId>,
    places: Cache<RunId, (ProjectId, SpaceId)>,
    tops: Cache<RunId, Top>,
    spaces: Cache<SpaceId, ProjectId>,
    /// What was deleted since the last look at the four above.
    deletions: Mutex<RevocationWatch>,
    sessions: sessions::Sessions,
    limiter: rate::Limiter,
    jwks: jwks::Jwks,
}

impl Access {
    /// Access to these projects and their runs.
    pub fn new(
        directory: Arc<dyn Directory>,
        runs: Arc<dyn Runs>,
        clock: Arc<dyn Clock>,
        revocations: Revocations,
        settings: AccessSettings,
    ) -> Self {
        Self {
            directory,
            runs,
            clock,
            deletions: Mutex::new(revocations.watch()),
            revocations,
            auth: settings.auth,
            claims: settings.claims,
            operator_key: settings.operator_key,
            keys: Cache::new(identify::KNOWN_MAX, identify::KEY_KNOWN),
            entities: Cache::new(identify::KNOWN_MAX, identify::KEY_KNOWN),
            places: Cache::new(reach::PLACES_MAX, reach::PLACE_KNOWN),
            tops: Cache::new(reach::PLACES_MAX, reach::PLACE_KNOWN),
            spaces: Cache::new(reach::PLACES_MAX, reach::PLACE_KNOWN),
            sessions: sessions::Sessions::new(settings.records, settings.sessions),
            limiter: rate::Limiter::new(settings.rate),
            jwks: jwks::Jwks::new(&settings.egress),
        }
    }

    /// Has so many nodes share the rate limits: each lets through its part of them.
    pub fn share_rates_among(&self, nodes: u32) {
        self.limiter.share_among(nodes);
    }
}
