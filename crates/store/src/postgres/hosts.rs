//! The hosts of an address: the one that takes writes is used, and of two that do the one that was promoted last.
//!
//! A standby that is promoted begins a new timeline. A primary that was replaced and comes back is on the old one, takes
//! writes like any other, and lacks what was stored since; a process that has used the newer timeline rejects it.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use futures_util::stream::{FuturesUnordered, StreamExt as _};
use tokio_postgres::tls::MakeTlsConnect;
use tokio_postgres::{Client, Config, Connection, Error, Socket};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::fault::{Fault, message};

/// A connection, which works while its second part is polled.
pub(crate) type Connected = (
    Client,
    Connection<Socket, <MakeRustlsConnect as MakeTlsConnect<Socket>>::Stream>,
);

/// The hosts of one database, and what this process knows of them.
pub(crate) struct Hosts {
    /// How to reach each of them; never empty.
    pub(super) each: Vec<Config>,
    known: Mutex<Known>,
}

#[derive(Default, Clone, Copy)]
struct Known {
    /// The host that was used last.
    host: Option<usize>,
    /// The newest timeline that was used.
    timeline: Option<Timeline>,
    /// How often another host or another timeline was found.
    switches: u64,
}

/// A part of the history of a database. A promotion begins the next one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Timeline {
    /// Of the copies of one database all have the same.
    system: i64,
    number: i32,
}

/// A connection to one of the hosts.
struct Found {
    host: usize,
    connected: Connected,
    /// None if the server does not say.
    timeline: Option<Timeline>,
}

/// How long to wait for the other hosts once one is found that takes writes.
const OTHERS: Duration = Duration::from_secs(1);

// The name of a segment of the write-ahead log begins with the timeline.
const TIMELINE: &str = "
    SELECT system_identifier, ('x' || left(pg_walfile_name(pg_current_wal_insert_lsn()), 8))::bit(32)::int
    FROM pg_control_system()";

impl Hosts {
    pub(crate) fn new(each: Vec<Config>) -> Self {
        Self {
            each,
            known: Mutex::default(),
        }
    }

    /// Connects to the host that was used last, or looks at all of them. Takes `longest` at most. Gives how many
    /// [`Hosts::switches`] there were then, too.
    pub(crate) async fn connect(
        &self,
        tls: &MakeRustlsConnect,
        longest: Duration,
    ) -> Result<(Connected, u64), Fault> {
        let known = *self.known();
        let found = match (known.host, self.each.len()) {
            (_, 1) => self.try_host(0, tls, longest).await?,
            (None, _) => self.search(tls, longest / 2).await?,
            (Some(host), _) => match self.try_host(host, tls, longest / 2).await {
                Ok(found) => found,
                Err(_) => self.search(tls, longest / 2).await?,
            },
        };
        let switches = self.remember(&found)?;
        Ok((found.connected, switches))
    }

    /// How often this process went on with another server: connections from before lead to one that was replaced.
    pub(crate) fn switches(&self) -> u64 {
        self.known().switches
    }

    /// Tries all hosts at once: one that hangs or is switched off holds up nobody for long.
    async fn search(&self, tls: &MakeRustlsConnect, longest: Duration) -> Result<Found, Fault> {
        let tries = (0..self.each.len()).map(|host| self.try_host(host, tls, longest));
        let mut tries: FuturesUnordered<_> = tries.collect();
        let mut best: Option<Found> = None;
        let mut faults = Vec::new();
        loop {
            let tried = match best {
                None => tries.next().await,
                Some(_) => tokio::time::timeout(OTHERS, tries.next()).await.unwrap_or(None),
            };
            match tried {
                Some(Ok(found)) if best.as_ref().is_none_or(|best| found.is_newer_than(best)) => {
                    best = Some(found)
                }
                Some(Ok(_)) => {}
                Some(Err(fault)) => faults.push(fault),
                None => break,
            }
        }
        best.ok_or_else(|| joined(faults))
    }

    async fn try_host(
        &self,
        host: usize,
        tls: &MakeRustlsConnect,
        longest: Duration,
    ) -> Result<Found, Fault> {
        let connecting = async {
            let (client, mut connection) = self.each[host].connect(tls.clone()).await?;
            let timeline = tokio::select! {
                told = ask_timeline(&client) => told,
                _ = &mut connection => None,
            };
            Ok::<_, Error>(Found {
                host,
                connected: (client, connection),
                timeline,
            })
        };
        let tried = tokio::time::timeout(longest, connecting).await;
        let found =
            tried.map_err(|_| Fault::Again(format!("PostgreSQL did not answer in {longest:?}")))??;
        self.known().check(found.timeline)?;
        Ok(found)
    }

    fn remember(&self, found: &Found) -> Result<u64, Fault> {
        let mut known = self.known();
        // Another task may have found a newer one meanwhile.
        known.check(found.timeline)?;
        let timeline = found.timeline.or(known.timeline);
        if (known.host, known.timeline) != (Some(found.host), timeline) {
            known.switches += 1;
        }
        (known.host, known.timeline) = (Some(found.host), timeline);
        Ok(known.switches)
    }

    fn known(&self) -> std::sync::MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Known {
    /// Rejects a server that was replaced by one that this process has used.
    fn check(&self, timeline: Option<Timeline>) -> Result<(), Fault> {
        match (self.timeline, timeline) {
            (Some(newest), Some(own)) if own.system == newest.system && own.number < newest.number => {
                Err(Fault::Again(format!(
                    "PostgreSQL: the server is on timeline {}, and this gateway has used timeline {}, so it was replaced: \
                     stop it or make it a standby, or start the gateway again if it is the one to use",
                    own.number, newest.number
                )))
            }
            _ => Ok(()),
        }
    }
}

impl Found {
    fn is_newer_than(&self, other: &Self) -> bool {
        let number = |found: &Self| found.timeline.map(|timeline| timeline.number);
        // In the order of the address, if the timeline does not tell.
        (number(self), other.host) > (number(other), self.host)
    }
}

/// The timeline that a server writes; none if it does not say, as some that only speak PostgreSQL's protocol.
async fn ask_timeline(client: &Client) -> Option<Timeline> {
    match client.query_typed_one(TIMELINE, &[]).await {
        Ok(row) => Some(Timeline {
            system: row.try_get(0).ok()?,
            number: row.try_get(1).ok()?,
        }),
        Err(error) => {
            tracing::debug!(error = message(&error), "the server does not tell its timeline");
            None
        }
    }
}

/// One fault for those of all hosts.
fn joined(mut faults: Vec<Fault>) -> Fault {
    let is_passing = faults.iter().any(Fault::is_passing);
    match faults.pop() {
        Some(only) if faults.is_empty() || !is_passing => only,
        last => {
            let all = faults.into_iter().chain(last);
            let words: Vec<String> = all.map(|fault| fault.into_store_error().to_string()).collect();
            Fault::Again(words.join("; "))
        }
    }
}
