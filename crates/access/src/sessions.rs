//! Sessions: a browser that has signed in to the console. A session acts as its project's backend without knowing a key,
//! lasts no longer than the key that its login link was made with, and can be ended at any time.

use std::sync::Arc;
use std::time::Duration;

use aws_lc_rs::constant_time::verify_slices_are_equal;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};
use toolgate_engine::record_updater::RecordUpdater;
use toolgate_engine::records::{
    Amendment, Change, Expected, Listing, NewRecord, Owner, Record, RecordSet, Records,
};
use toolgate_engine::store::StoreError;
use toolgate_kernel::agent::Secret;
use toolgate_kernel::id::{KeyId, ProjectId, SessionId};
use toolgate_kernel::json::Json;
use toolgate_kernel::time::Time;

use crate::cache::Cache;
use crate::ticket::{Purpose, SecretHash, Ticket};
use crate::{Access, AccessError, Principal, ShownKey, identify, keys};

/// Kind of the records that hold sessions.
const KIND: &str = "session";
/// What a token for unsafe requests is derived with.
const CSRF: &[u8] = b"toolgate csrf token";
/// Longest name of a browser that is kept.
const USER_AGENT_CHARS_MAX: usize = 256;
/// A session's last use is written so many times in its idle time: often enough, and not with every request.
const TOUCHES: u32 = 50;

/// How long sessions last, and how many there are.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SessionLimits {
    /// A session that is not used for so long has ended.
    pub idle: Duration,
    /// A session ends after so long, however much it is used.
    pub lifetime: Duration,
    /// Sessions of one project; of more, those that were used least recently end.
    pub per_project: usize,
}

impl Default for SessionLimits {
    fn default() -> Self {
        Self {
            idle: Duration::from_secs(24 * 3600),
            lifetime: Duration::from_secs(14 * 24 * 3600),
            per_project: 100,
        }
    }
}

/// The sessions of all projects.
pub(crate) struct Sessions {
    pub updater: RecordUpdater,
    limits: SessionLimits,
    known: Cache<[u8; 32], Known>,
}

/// Who made a login code: a session made with it lasts no longer than their key.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "by", rename_all = "camelCase")]
pub enum Maker {
    /// The gateway, which prints a link at each start.
    Start,
    /// Whoever has this secret key of the project.
    Key {
        /// Id of the key.
        id: KeyId,
        /// Its hash, in base 64.
        hash: String,
    },
    /// The operator, whose key has this hash. The session may manage projects too.
    Operator {
        /// Hash of the key, in base 64.
        hash: String,
    },
}

impl Maker {
    /// Whoever has shown this key.
    pub fn key(key: ShownKey) -> Self {
        Self::Key {
            id: key.id,
            hash: URL_SAFE_NO_PAD.encode(key.hash),
        }
    }
}

/// A session to be made.
pub(crate) struct NewSession {
    pub project: ProjectId,
    pub maker: Maker,
    pub user_agent: Option<String>,
}

/// A session that was just made. Its cookie is nowhere else.
pub struct OpenedSession {
    /// Value of the cookie.
    pub cookie: String,
    /// The session.
    pub session: Session,
    /// Sessions that ended to make room for it.
    pub ended: Vec<SessionId>,
}

/// A session, by what may be told of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Session {
    /// Id of the session.
    pub id: SessionId,
    /// The project whose backend it acts as.
    pub project: ProjectId,
    /// Whether it may manage projects.
    pub operator: bool,
    /// When somebody signed in.
    pub created: Time,
    /// When it was used last, to within a fiftieth of its idle time.
    pub last_used: Time,
    /// When it ends if nobody uses it any more.
    pub expires: Time,
    /// What the browser said of itself.
    pub user_agent: Option<String>,
}

/// What a principal shows that comes with a session.
#[derive(Debug, Clone, PartialEq)]
pub struct ShownSession {
    /// The session.
    pub session: Session,
    /// What unsafe requests must bring beside the cookie.
    pub csrf_token: Secret,
    cookie: [u8; 32],
    operator_hash: Option<String>,
}

impl ShownSession {
    /// Whether this is the session's token for unsafe requests. Compares in constant time.
    pub fn is_csrf_token(&self, given: &[u8]) -> bool {
        verify_slices_are_equal(self.csrf_token.expose().as_bytes(), given).is_ok()
    }
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Stored {
    hash: SecretHash,
    maker: Maker,
    user_agent: Option<String>,
}

/// A session that was read from the store.
#[derive(Clone)]
struct Known {
    shown: ShownSession,
    key: Option<ShownKey>,
    /// Revocations that had been made when it was read: after the next one it is read again.
    revoked: u64,
}

impl Sessions {
    pub fn new(records: Arc<dyn Records>, limits: SessionLimits) -> Self {
        Self {
            updater: RecordUpdater::new(records),
            limits,
            known: Cache::new(identify::KNOWN_MAX, identify::KEY_KNOWN),
        }
    }

    fn session(&self, project: ProjectId, record: &Record, stored: &Stored) -> Option<Session> {
        let idle = record.updated.after(self.limits.idle);
        Some(Session {
            id: id_of(&record.id)?,
            project,
            operator: matches!(stored.maker, Maker::Operator { .. }),
            created: record.created,
            last_used: record.updated,
            expires: idle.min(record.created.after(self.limits.lifetime)),
            user_agent: stored.user_agent.clone(),
        })
    }

    fn is_over(&self, record: &Record, now: Time) -> bool {
        now >= record.updated.after(self.limits.idle) || now >= record.created.after(self.limits.lifetime)
    }
}

impl Access {
    /// How long a cookie may live in a browser.
    pub fn session_lifetime(&self) -> Duration {
        self.sessions.limits.lifetime
    }

    pub(crate) async fn create_session(&self, new: NewSession) -> Result<Option<OpenedSession>, AccessError> {
        let now = self.clock.now();
        let ticket = Ticket::make(new.project);
        let stored = Stored {
            hash: ticket.hash(),
            maker: new.maker,
            user_agent: new
                .user_agent
                .map(|name| name.chars().take(USER_AGENT_CHARS_MAX).collect()),
        };
        if self.directory.project(new.project).await?.is_none() || !self.holds(&stored.maker).await? {
            return Ok(None);
        }
        let body = Json::from(serde_json::to_value(&stored).expect("a session has text keys"));
        let place = Place {
            set: set_of(new.project, KIND),
            at_most: self.sessions.limits.per_project,
        };
        let keeps = |record: &Record| !self.sessions.is_over(record, now);
        let put = place.put(&self.sessions.updater, now, (record_id(ticket.id), body), keeps);
        let ended = put.await?.iter().filter_map(|id| id_of(id)).collect();
        let cookie = ticket.text(Purpose::Session);
        let session = self.shown_session(&cookie).await?;
        Ok(session.map(|(shown, _)| OpenedSession {
            cookie,
            session: shown.session,
            ended,
        }))
    }

    /// The session of this cookie and the key that it hangs on, unless it has ended.
    pub(crate) async fn shown_session(
        &self,
        cookie: &str,
    ) -> Result<Option<(ShownSession, Option<ShownKey>)>, StoreError> {
        let hash = keys::hash(cookie);
        // Counted before the store is read: what is revoked while it is read is looked up again.
        let revoked = self.revocations.count();
        let known = self
            .sessions
            .known
            .get(&hash)
            .filter(|known| known.revoked == revoked);
        let known = match known {
            Some(known) => known,
            None => match self.stored_session(cookie, hash, revoked).await? {
                Some(known) => known,
                None => return Ok(None),
            },
        };
        if self.clock.now() >= known.shown.session.expires || !self.stands(&known.shown, known.key).await? {
            return Ok(None);
        }
        Ok(Some((known.shown, known.key)))
    }

    async fn stored_session(
        &self,
        cookie: &str,
        hash: [u8; 32],
        revoked: u64,
    ) -> Result<Option<Known>, StoreError> {
        let Some(ticket) = Ticket::read(cookie, Purpose::Session) else {
            return Ok(None);
        };
        let set = set_of(ticket.project, KIND);
        let record = self
            .sessions
            .updater
            .records()
            .record(set, &record_id(ticket.id))
            .await?;
        let Some(record) = record else {
            return Ok(None);
        };
        let Ok(stored) = serde_json::from_str::<Stored>(record.body.as_str()) else {
            return Ok(None);
        };
        if !ticket.proves(&stored.hash) {
            return Ok(None);
        }
        let Some(session) = self.sessions.session(ticket.project, &record, &stored) else {
            return Ok(None);
        };
        let (key, operator_hash) = match &stored.maker {
            Maker::Start => (None, None),
            Maker::Key { id, hash } => match read_hash(hash) {
                Some(hash) => (Some(ShownKey { id: *id, hash }), None),
                None => return Ok(None),
            },
            Maker::Operator { hash } => (None, Some(hash.clone())),
        };
        let known = Known {
            shown: ShownSession {
                session,
                csrf_token: Secret::new(ticket.derived(CSRF)),
                cookie: hash,
                operator_hash,
            },
            key,
            revoked,
        };
        self.sessions.known.put(hash, known.clone());
        Ok(Some(known))
    }

    /// Notes that a session is used, once in a while. Nothing depends on it but the idle time.
    pub(crate) async fn touch(&self, shown: &ShownSession) {
        let now = self.clock.now();
        let pause = self.sessions.limits.idle / TOUCHES;
        if now < shown.session.last_used.after(pause) {
            return;
        }
        let set = set_of(shown.session.project, KIND);
        let id = record_id(shown.session.id.to_bytes());
        let records = self.sessions.updater.records();
        let Ok(Some(record)) = records.record(set, &id).await else {
            return;
        };
        // With the version that was read: a session that was ended meanwhile does not come back.
        let expected = vec![Expected {
            id: id.clone(),
            version: Some(record.version),
        }];
        let again = Change::Put(put(id, record.body));
        let touched = records.change_records(set, expected, vec![again], now).await;
        if let Err(error) = touched
            && !matches!(error, StoreError::Conflict)
        {
            tracing::debug!(%error, "the last use of a session was not stored");
        }
        // Read anew with its new time when it is used next.
        self.sessions.known.forget(&shown.cookie);
    }

    /// Whether a session's cookie still opens it.
    pub(crate) async fn session_holds(&self, shown: &ShownSession) -> Result<bool, StoreError> {
        let set = set_of(shown.session.project, KIND);
        let id = record_id(shown.session.id.to_bytes());
        let record = self.sessions.updater.records().record(set, &id).await?;
        let now = self.clock.now();
        Ok(record.is_some_and(|record| !self.sessions.is_over(&record, now)))
    }

    /// Whether the key that the session was made with is still there.
    async fn stands(&self, shown: &ShownSession, key: Option<ShownKey>) -> Result<bool, StoreError> {
        if let Some(hash) = &shown.operator_hash
            && !self.is_operator_hash(hash)
        {
            return Ok(false);
        }
        if let Some(key) = key
            && self.key_of_hash(key.hash).await?.is_none()
        {
            return Ok(false);
        }
        Ok(true)
    }

    async fn holds(&self, maker: &Maker) -> Result<bool, StoreError> {
        match maker {
            Maker::Start => Ok(true),
            Maker::Operator { hash } => Ok(self.is_operator_hash(hash)),
            Maker::Key { hash, .. } => match read_hash(hash) {
                Some(hash) => Ok(self.key_of_hash(hash).await?.is_some()),
                None => Ok(false),
            },
        }
    }

    fn is_operator_hash(&self, hash: &str) -> bool {
        self.operator_hash().as_deref() == Some(hash)
    }

    /// The operator, as the maker of a login code; none when there is no operator.
    pub fn operator_as_maker(&self) -> Option<Maker> {
        self.operator_hash().map(|hash| Maker::Operator { hash })
    }

    fn operator_hash(&self) -> Option<String> {
        let key = self.operator_key.as_ref().map(Secret::expose);
        key.map(|key| URL_SAFE_NO_PAD.encode(keys::hash(key)))
    }

    /// The sessions of a project that have not ended, those that were used last first.
    pub async fn sessions(&self, project: ProjectId) -> Result<Vec<Session>, StoreError> {
        let now = self.clock.now();
        let mut sessions = Vec::new();
        for record in all(&**self.sessions.updater.records(), set_of(project, KIND)).await? {
            let Ok(stored) = serde_json::from_str::<Stored>(record.body.as_str()) else {
                continue;
            };
            if self.sessions.is_over(&record, now) || !self.holds(&stored.maker).await? {
                continue;
            }
            sessions.extend(self.sessions.session(project, &record, &stored));
        }
        sessions.sort_by_key(|session| std::cmp::Reverse((session.last_used, session.id)));
        Ok(sessions)
    }

    /// Ends a session; false when there is none. The caller tells all nodes.
    pub async fn end_session(&self, project: ProjectId, session: SessionId) -> Result<bool, StoreError> {
        let (set, id) = (set_of(project, KIND), record_id(session.to_bytes()));
        let records = self.sessions.updater.records();
        if records.record(set, &id).await?.is_none() {
            return Ok(false);
        }
        let changes = vec![Change::Remove(id)];
        records
            .change_records(set, Vec::new(), changes, self.clock.now())
            .await?;
        Ok(true)
    }

    /// Ends every session of a project and says which those were. The caller tells all nodes.
    pub async fn end_sessions(&self, project: ProjectId) -> Result<Vec<SessionId>, StoreError> {
        let set = set_of(project, KIND);
        let records = self.sessions.updater.records();
        let ended = all(&**records, set).await?;
        records
            .change_records(set, Vec::new(), vec![Change::Clear], self.clock.now())
            .await?;
        Ok(ended.iter().filter_map(|record| id_of(&record.id)).collect())
    }
}

impl Principal {
    /// Who a session is: its project's backend, for as long as session and key hold.
    pub(crate) fn of_session(shown: ShownSession, key: Option<ShownKey>) -> Self {
        Self {
            key,
            session: Some(Arc::new(shown.clone())),
            ..Self::backend(shown.session.project)
        }
    }
}

/// A record set with a bounded number of records.
pub(crate) struct Place {
    pub set: RecordSet,
    pub at_most: usize,
}

impl Place {
    /// Stores a record, and removes those that no longer count and, where there are too many, those that were changed
    /// least recently. Says which it removed.
    pub async fn put(
        &self,
        updater: &RecordUpdater,
        now: Time,
        (id, body): (String, Json),
        keeps: impl Fn(&Record) -> bool,
    ) -> Result<Vec<String>, StoreError> {
        let decide = |mut records: Vec<Record>| {
            let mut gone: Vec<String> = records
                .extract_if(.., |record| !keeps(record))
                .map(|record| record.id)
                .collect();
            records.sort_by_key(|record| record.updated);
            let surplus = (records.len() + 1).saturating_sub(self.at_most.max(1));
            gone.extend(records.into_iter().take(surplus).map(|record| record.id));
            let mut changes: Vec<Change> = gone.iter().cloned().map(Change::Remove).collect();
            changes.push(Change::Put(put(id.clone(), body.clone())));
            let amendment = Amendment {
                changes,
                ..Amendment::default()
            };
            Ok::<_, StoreError>((amendment, gone))
        };
        let read = || all(&**updater.records(), self.set);
        updater.update(self.set, now, read, decide).await
    }
}

/// Records of one set that are read at once.
const PAGE: usize = 500;

async fn all(records: &dyn Records, set: RecordSet) -> Result<Vec<Record>, StoreError> {
    let mut found: Vec<Record> = Vec::new();
    loop {
        let listing = Listing {
            after: found.last().map(|record| record.id.clone()),
            limit: PAGE,
            ..Listing::default()
        };
        let page = records.list_records(set, listing).await?;
        let is_last = page.len() < PAGE;
        found.extend(page);
        if is_last {
            return Ok(found);
        }
    }
}

pub(crate) fn set_of(project: ProjectId, kind: &'static str) -> RecordSet {
    RecordSet {
        project,
        owner: Owner::Project,
        kind,
    }
}

pub(crate) fn record_id(id: [u8; 16]) -> String {
    SessionId::from_bytes(id).to_string()
}

fn id_of(text: &str) -> Option<SessionId> {
    text.parse().ok()
}

fn put(id: String, body: Json) -> NewRecord {
    NewRecord {
        id,
        body,
        text: None,
        data: None,
        due: None,
    }
}

fn read_hash(text: &str) -> Option<[u8; 32]> {
    URL_SAFE_NO_PAD.decode(text).ok()?.try_into().ok()
}
