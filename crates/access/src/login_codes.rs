//! Login codes: what a login link carries instead of a key. A code is good once, for a quarter of an hour, and becomes
//! a session.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use toolgate_engine::records::{Change, Expected, Record};
use toolgate_engine::store::StoreError;
use toolgate_kernel::id::ProjectId;
use toolgate_kernel::json::Json;
use toolgate_kernel::time::Time;

use crate::rate::Asker;
use crate::sessions::{self, Maker, NewSession, OpenedSession};
use crate::ticket::{Purpose, SecretHash, Ticket};
use crate::{Access, AccessError};

/// Kind of the records that hold login codes.
const KIND: &str = "login-code";
/// How long a code is good.
pub const CODE_LIFETIME: Duration = Duration::from_secs(15 * 60);
/// Codes of a project that wait for their use; of more, the oldest end.
const CODES_MAX: usize = 32;

/// A login code that was just made. The code itself is nowhere else.
pub struct LoginCode {
    /// What goes in the link.
    pub code: String,
    /// The code is good before this time.
    pub expires: Time,
}

#[derive(Serialize, Deserialize)]
struct StoredCode {
    hash: SecretHash,
    maker: Maker,
}

impl Access {
    /// Makes a code that opens a session in a project. The session lasts no longer than the key of its `maker`.
    pub async fn make_login_code(&self, project: ProjectId, maker: Maker) -> Result<LoginCode, StoreError> {
        let now = self.clock.now();
        let ticket = Ticket::make(project);
        let stored = StoredCode {
            hash: ticket.hash(),
            maker,
        };
        let keeps = |record: &Record| now < record.created.after(CODE_LIFETIME);
        let id = sessions::record_id(ticket.id);
        let body = Json::from(serde_json::to_value(&stored).expect("a code has text keys"));
        let place = sessions::Place {
            set: sessions::set_of(project, KIND),
            at_most: CODES_MAX,
        };
        place.put(&self.sessions.updater, now, (id, body), keeps).await?;
        Ok(LoginCode {
            code: ticket.text(Purpose::LoginCode),
            expires: now.after(CODE_LIFETIME),
        })
    }

    /// Opens a session with a login code, which is used up by it. None when the code is unknown, used or expired.
    pub async fn open_session(
        &self,
        code: &str,
        user_agent: Option<String>,
    ) -> Result<Option<OpenedSession>, AccessError> {
        self.limiter
            .check(Asker::Logins)
            .map_err(AccessError::RateLimited)?;
        let Some(ticket) = Ticket::read(code, Purpose::LoginCode) else {
            return Ok(None);
        };
        // By code, so that whoever guesses locks nobody else out.
        let guesses = Asker::LoginCode(ticket.id);
        self.limiter.check(guesses).map_err(AccessError::RateLimited)?;
        let Some(maker) = self.use_up(&ticket).await? else {
            return Ok(None);
        };
        let session = NewSession {
            project: ticket.project,
            maker,
            user_agent,
        };
        self.create_session(session).await
    }

    /// The maker of a code that is good, which it no longer is afterwards.
    async fn use_up(&self, ticket: &Ticket) -> Result<Option<Maker>, StoreError> {
        let (now, id) = (self.clock.now(), sessions::record_id(ticket.id));
        let set = sessions::set_of(ticket.project, KIND);
        let records = self.sessions.updater.records();
        let Some(record) = records.record(set, &id).await? else {
            return Ok(None);
        };
        let Ok(stored) = serde_json::from_str::<StoredCode>(record.body.as_str()) else {
            return Ok(None);
        };
        if !ticket.proves(&stored.hash) || now >= record.created.after(CODE_LIFETIME) {
            return Ok(None);
        }
        let expected = vec![Expected {
            id: id.clone(),
            version: Some(record.version),
        }];
        let removed = records.change_records(set, expected, vec![Change::Remove(id)], now);
        match removed.await {
            Ok(()) => Ok(Some(stored.maker)),
            // Somebody used it in the same moment.
            Err(StoreError::Conflict) => Ok(None),
            Err(error) => Err(error),
        }
    }
}
