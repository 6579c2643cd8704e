//! Sessions of clients of the older era.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use super::downwards::Crossed;
use super::limits::Limits;
use super::owner::Owner;
use super::parked::handle;
use super::straight::Straight;

/// The sessions.
pub(super) struct Sessions {
    limits: Limits,
    open: Mutex<HashMap<String, Arc<Session>>>,
}

/// A session of one client with one server.
pub(super) struct Session {
    pub(super) id: String,
    pub(super) owner: Owner,
    pub(super) server: String,
    pub(super) side: Side,
    used: Mutex<Instant>,
    /// Requests and streams under way.
    busy: AtomicUsize,
}

/// How the session reaches its server.
pub(super) enum Side {
    /// The server speaks the client's era.
    Straight(Straight),
    /// It does not.
    Crossed(Arc<Crossed>),
}

/// Why there is no session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TooMany(pub(super) usize);

impl Sessions {
    pub(super) fn new(limits: Limits) -> Self {
        Self {
            limits,
            open: Mutex::default(),
        }
    }

    /// Whether the owner may open another session.
    pub(super) fn check(&self, owner: Owner) -> Result<(), TooMany> {
        let open = self.lock();
        let mine = open.values().filter(|session| session.owner == owner).count();
        if mine >= self.limits.sessions_per_owner {
            return Err(TooMany(self.limits.sessions_per_owner));
        }
        match open.len() >= self.limits.sessions {
            true => Err(TooMany(self.limits.sessions)),
            false => Ok(()),
        }
    }

    pub(super) fn open(&self, owner: Owner, server: &str, side: Side) -> Result<Arc<Session>, TooMany> {
        self.check(owner)?;
        let id = handle().ok_or(TooMany(0))?;
        let session = Arc::new(Session {
            id: id.clone(),
            owner,
            server: server.to_owned(),
            side,
            used: Mutex::new(Instant::now()),
            busy: AtomicUsize::new(0),
        });
        self.lock().insert(id, session.clone());
        Ok(session)
    }

    /// The session of this owner with this server.
    pub(super) fn get(&self, owner: Owner, server: &str, id: &str) -> Option<Arc<Session>> {
        let session = self.lock().get(id).cloned()?;
        if session.owner != owner || session.server != server {
            return None;
        }
        session.touch();
        Some(session)
    }

    pub(super) fn close(&self, id: &str) -> Option<Arc<Session>> {
        self.lock().remove(id)
    }

    /// Ends sessions that nobody uses.
    pub(super) fn sweep(&self) {
        let limit = self.limits.session_idle;
        let mut open = self.lock();
        open.retain(|_, session| {
            let is_busy = session.busy.load(Ordering::Relaxed) > 0;
            is_busy || session.last_used().elapsed() < limit
        });
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Arc<Session>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Session {
    /// Keeps the session open until the guard is dropped.
    pub(super) fn busy(self: &Arc<Self>) -> Busy {
        self.busy.fetch_add(1, Ordering::Relaxed);
        Busy(self.clone())
    }

    fn touch(&self) {
        *self.used.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    fn last_used(&self) -> Instant {
        *self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Something under way in a session.
pub(super) struct Busy(Arc<Session>);

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.busy.fetch_sub(1, Ordering::Relaxed);
        self.0.touch();
    }
}
