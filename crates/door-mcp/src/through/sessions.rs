//! Sessions of clients of the older era.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use toolgate_engine::shares::share_of;
use toolgate_fair::{Permit, Queue};

use super::downwards::Crossed;
use super::limits::Limits;
use super::owner::Owner;
use super::parked::handle;
use super::straight::Straight;

/// The sessions.
pub(super) struct Sessions {
    idle_max: Duration,
    places: Arc<Queue>,
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
    _place: Permit,
}

/// How the session reaches its server.
pub(super) enum Side {
    /// The server speaks the client's era.
    Straight(Straight),
    /// It does not.
    Crossed(Arc<Crossed>),
}

/// The owner, its project or all projects have as many sessions as they may.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TooMany;

impl Sessions {
    pub(super) fn new(limits: &Limits) -> Self {
        Self {
            idle_max: limits.session_idle,
            places: limits.sessions.places(),
            open: Mutex::default(),
        }
    }

    /// A place for one more session of the owner.
    pub(super) fn place(&self, owner: Owner) -> Result<Permit, TooMany> {
        let share = share_of(owner.project, owner.user);
        self.places.try_turn(share).ok_or(TooMany)
    }

    pub(super) fn open(
        &self,
        owner: Owner,
        server: &str,
        side: Side,
        place: Permit,
    ) -> Result<Arc<Session>, TooMany> {
        let id = handle().ok_or(TooMany)?;
        let session = Arc::new(Session {
            id: id.clone(),
            owner,
            server: server.to_owned(),
            side,
            used: Mutex::new(Instant::now()),
            busy: AtomicUsize::new(0),
            _place: place,
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
        let is_idle = |session: &Session| {
            let is_busy = session.busy.load(Ordering::Relaxed) > 0;
            !is_busy && session.last_used().elapsed() >= self.idle_max
        };
        // Dropped outside the lock: programs end with their sessions.
        let ended: Vec<Arc<Session>> = {
            let mut open = self.lock();
            let idle = open.iter().filter(|(_, session)| is_idle(session));
            let idle: Vec<String> = idle.map(|(id, _)| id.clone()).collect();
            idle.iter().filter_map(|id| open.remove(id)).collect()
        };
        drop(ended);
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
