//! Connections, opened on demand and shared.

use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_postgres_rustls::MakeRustlsConnect;
use toolgate_engine::store::StoreError;

use super::PostgresOptions;
use super::address::PostgresAddress;
use super::fault::Fault;
use super::session::Session;

/// At most so many connections, kept while they are used.
pub(crate) struct Pool {
    address: PostgresAddress,
    tls: MakeRustlsConnect,
    options: PostgresOptions,
    connections_max: usize,
    permits: Arc<Semaphore>,
    idle: Mutex<Idle>,
}

struct Idle {
    /// The one used last is at the end.
    sessions: Vec<Session>,
    /// Counts how often all connections were dropped: one of an earlier generation is not kept.
    generation: u64,
    /// Why there are no connections any more.
    closed: Option<String>,
}

/// A connection that nobody used for so long is closed, so that a burst leaves none behind.
const KEPT_IDLE: Duration = Duration::from_secs(300);

impl Pool {
    pub(crate) fn new(
        address: PostgresAddress,
        tls: MakeRustlsConnect,
        options: PostgresOptions,
        connections_max: usize,
    ) -> Arc<Self> {
        Arc::new(Self {
            address,
            tls,
            options,
            connections_max,
            permits: Arc::new(Semaphore::new(connections_max)),
            idle: Mutex::new(Idle {
                sessions: Vec::new(),
                generation: 0,
                closed: None,
            }),
        })
    }

    /// A connection of its own until the lease is dropped. Waits for one no longer than the options say.
    pub(crate) async fn get(self: &Arc<Self>) -> Result<Lease, Fault> {
        let wait = self.options.wait_max;
        let permit = tokio::time::timeout(wait, self.permits.clone().acquire_owned()).await;
        let permit = permit
            .map_err(|_| {
                let max = self.connections_max;
                Fault::Failed(format!(
                    "all {max} connections to PostgreSQL were busy for {wait:?}"
                ))
            })?
            .expect("the semaphore is never closed");
        let (idle, generation) = self.take()?;
        let session = match idle {
            Some(session) => session,
            None => Session::open(&self.address, self.tls.clone(), &self.options, generation).await?,
        };
        Ok(Lease {
            session: Some(session),
            pool: self.clone(),
            _permit: permit,
        })
    }

    /// A connection beside those of the pool, for something that holds it for long.
    pub(crate) async fn get_extra(&self) -> Result<Lease, Fault> {
        let (address, tls) = (self.address.clone(), self.tls.clone());
        Self::new(address, tls, self.options.clone(), 1).get().await
    }

    fn take(&self) -> Result<(Option<Session>, u64), Fault> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(why) = &idle.closed {
            return Err(StoreError::Unavailable(why.clone()).into());
        }
        let now = Instant::now();
        idle.sessions
            .retain(|session| session.is_usable() && now - session.idle_since < KEPT_IDLE);
        Ok((idle.sessions.pop(), idle.generation))
    }

    /// Closes the connections that nobody uses now, and each of the others when it is given back: the server is not the
    /// one to talk to any more.
    pub(crate) fn drop_connections(&self) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        idle.generation += 1;
        idle.sessions.clear();
    }

    /// Closes all connections, those in use when they are given back. From now on callers get `Unavailable` with this reason.
    pub(crate) fn close(&self, why: &str) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        idle.closed.get_or_insert_with(|| why.to_owned());
        idle.sessions.clear();
    }
}

/// A connection, given back when it is dropped.
pub(crate) struct Lease {
    /// None once it was thrown away.
    session: Option<Session>,
    pool: Arc<Pool>,
    // After the session: the next connection is opened when this one is given back.
    _permit: OwnedSemaphorePermit,
}

impl Lease {
    /// Closes the connection, with whatever is under way on it.
    pub(crate) fn throw_away(mut self) {
        self.give_up_others_if_stuck();
        self.session = None;
    }

    /// Where one connection gets no answer, the others to the same server get none, and each would be waited for.
    fn give_up_others_if_stuck(&self) {
        if self.session.as_ref().is_some_and(Session::is_stuck) {
            self.pool.drop_connections();
        }
    }
}

impl Deref for Lease {
    type Target = Session;
    fn deref(&self) -> &Session {
        self.session
            .as_ref()
            .expect("a lease has its session until it ends")
    }
}

impl DerefMut for Lease {
    fn deref_mut(&mut self) -> &mut Session {
        self.session
            .as_mut()
            .expect("a lease has its session until it ends")
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.give_up_others_if_stuck();
        let Some(mut session) = self.session.take().filter(Session::is_usable) else {
            return;
        };
        session.idle_since = Instant::now();
        let mut idle = self.pool.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.closed.is_none() && idle.generation == session.generation {
            idle.sessions.push(session);
        }
    }
}
