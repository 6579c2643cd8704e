//! The accept loop of the HTTP door: how many connections there may be, and what becomes of one too many.
//!
//! A connection that is not in the middle of a request (idle, or with a header half sent) is closed to make room for
//! a new one; if every connection is at work, the new one gets a 503. So connections that only wait can never keep
//! others out. [`connection`] holds one connection to its timeouts.

mod connection;
mod descriptors;

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::Router;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

pub use connection::Timeouts;
use connection::Watch;
pub use descriptors::fit_to_descriptors;

/// Pause after the first of several failed `accept` calls, doubled up to the longest one.
const RETRY_FIRST: Duration = Duration::from_millis(10);
const RETRY_LONGEST: Duration = Duration::from_secs(1);
/// Refused connections that are told so at the same time; further ones are closed without a word.
const REFUSALS_MAX: usize = 32;
/// How long a refused client may take to read its answer.
const REFUSAL_TIME: Duration = Duration::from_secs(1);

/// Limits on connections.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Limits {
    /// Connections at once.
    pub connections_max: usize,
    /// Connections of one remote address at once; 0 for no limit of its own.
    pub per_address_max: usize,
    /// How long each part of an exchange may take.
    pub timeouts: Timeouts,
}

/// What ends connections.
#[derive(Clone)]
pub struct Ends {
    /// Requests are still served, each as the last one of its connection.
    pub leaving: CancellationToken,
    /// No new connections; requests under way end.
    pub stop: CancellationToken,
}

/// Serves `door` until the end, then lets requests under way end. Errors of `accept` are survived.
pub async fn serve(listener: TcpListener, door: Router, limits: Limits, ends: Ends) {
    let open = Arc::new(Open::new(limits));
    let tasks = TaskTracker::new();
    let refusals = Arc::new(Semaphore::new(REFUSALS_MAX));
    let mut retry = RETRY_FIRST;
    loop {
        let accepted = tokio::select! {
            biased;
            () = ends.stop.cancelled() => break,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((socket, address)) => {
                retry = RETRY_FIRST;
                match open.admit(address) {
                    Some(seat) => drop(tasks.spawn(work(socket, door.clone(), seat, ends.clone()))),
                    None => {
                        if let Ok(permit) = refusals.clone().try_acquire_owned() {
                            tasks.spawn(async move {
                                // A client that does not read its refusal is closed all the same.
                                let _ = tokio::time::timeout(REFUSAL_TIME, refuse(socket)).await;
                                drop(permit);
                            });
                        }
                    }
                }
            }
            // The client gave up before it was accepted.
            Err(error) if is_of_the_client(&error) => {}
            Err(error) => {
                tracing::warn!(%error, ?retry, "a connection could not be accepted; closing an idle one and trying again");
                open.close_quiet(None);
                tokio::time::sleep(retry).await;
                retry = (retry * 2).min(RETRY_LONGEST);
            }
        }
    }
    drop(listener);
    tasks.close();
    tasks.wait().await;
}

async fn work(socket: TcpStream, door: Router, seat: Seat, ends: Ends) {
    if let Err(error) = socket.set_nodelay(true) {
        tracing::debug!(%error, "a connection stays slow");
    }
    connection::drive(socket, door, &seat.watch, &seat.open.limits.timeouts, ends).await;
}

fn is_of_the_client(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(
        error.kind(),
        ConnectionAborted | ConnectionRefused | ConnectionReset
    )
}

/// Tells a client that there is no room, and reads what it sent, so that the close is not a reset.
async fn refuse(mut socket: TcpStream) -> io::Result<()> {
    const BODY: &str = r#"{"type":"about:blank","title":"Service Unavailable","status":503,"code":"UNAVAILABLE","detail":"too many connections; see http.connections.max and http.connections.per_address_max"}"#;
    const SENT_MAX: u64 = 64 * 1024;
    let answer = format!(
        "HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/problem+json\r\nretry-after: 1\r\n\
         connection: close\r\ncontent-length: {}\r\n\r\n{BODY}",
        BODY.len()
    );
    socket.write_all(answer.as_bytes()).await?;
    socket.shutdown().await?;
    tokio::io::copy(&mut socket.take(SENT_MAX), &mut tokio::io::sink()).await?;
    Ok(())
}

/// The open connections.
struct Open {
    limits: Limits,
    table: Mutex<Table>,
}

/// In the order in which they were accepted.
#[derive(Default)]
struct Table {
    next: u64,
    connections: BTreeMap<u64, (IpAddr, Arc<Watch>)>,
    per_address: HashMap<IpAddr, usize>,
}

impl Open {
    fn new(limits: Limits) -> Self {
        Self {
            limits,
            table: Mutex::default(),
        }
    }

    /// A place for a connection from there. Closes one that does nothing if that is what it takes; none if all work.
    fn admit(self: &Arc<Self>, address: SocketAddr) -> Option<Seat> {
        let address = address.ip().to_canonical();
        let mut table = self.lock();
        let of_address = table.per_address.get(&address).copied().unwrap_or(0);
        let per_address_max = self.limits.per_address_max;
        if per_address_max != 0 && of_address >= per_address_max && !table.close_quiet(Some(address)) {
            return None;
        }
        if table.connections.len() >= self.limits.connections_max && !table.close_quiet(None) {
            return None;
        }
        let id = table.next;
        table.next += 1;
        let watch = Arc::new(Watch::new());
        table.connections.insert(id, (address, watch.clone()));
        *table.per_address.entry(address).or_default() += 1;
        Some(Seat {
            id,
            watch,
            open: self.clone(),
        })
    }

    fn close_quiet(&self, address: Option<IpAddr>) -> bool {
        self.lock().close_quiet(address)
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Table {
    /// Closes the oldest connection, of `address` or of all, that is not in the middle of a request.
    fn close_quiet(&mut self, address: Option<IpAddr>) -> bool {
        let mut candidates = self.connections.iter();
        let found = candidates
            .find(|(_, (of, watch))| address.is_none_or(|address| address == *of) && watch.close_if_quiet());
        match found.map(|(id, _)| *id) {
            Some(id) => {
                self.remove(id);
                true
            }
            None => false,
        }
    }

    fn remove(&mut self, id: u64) {
        let Some((address, _)) = self.connections.remove(&id) else {
            return;
        };
        if let Some(count) = self.per_address.get_mut(&address) {
            *count -= 1;
            if *count == 0 {
                self.per_address.remove(&address);
            }
        }
    }
}

/// One connection's place among the open ones, until it is dropped.
struct Seat {
    id: u64,
    watch: Arc<Watch>,
    open: Arc<Open>,
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.open.lock().remove(self.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(last: u8) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, last], 1))
    }

    fn open(connections_max: usize, per_address_max: usize) -> Arc<Open> {
        let timeouts = Timeouts {
            header: Duration::from_secs(10),
            idle: Duration::from_secs(60),
            write: Duration::from_secs(30),
        };
        Arc::new(Open::new(Limits {
            connections_max,
            per_address_max,
            timeouts,
        }))
    }

    #[test]
    fn a_new_connection_takes_the_place_of_the_oldest_that_does_nothing() {
        let open = open(2, 0);
        let first = open.admit(address(1)).unwrap();
        let second = open.admit(address(2)).unwrap();
        let busy = first.watch.begin();
        let third = open.admit(address(3)).expect("the second does nothing");
        assert!(second.watch.is_closing() && !first.watch.is_closing());
        let also_busy = third.watch.begin();
        assert!(open.admit(address(4)).is_none(), "everybody works");
        drop(busy);
        drop(second);
        assert!(open.admit(address(4)).is_some(), "the first is idle now");
        drop(also_busy);
    }

    #[test]
    fn one_address_cannot_take_the_places_of_others() {
        let open = open(10, 2);
        let other = open.admit(address(9)).unwrap();
        let mine: Vec<_> = (0..2).map(|_| open.admit(address(1)).unwrap()).collect();
        let busy: Vec<_> = mine.iter().map(|seat| seat.watch.begin()).collect();
        assert!(open.admit(address(1)).is_none());
        assert!(!other.watch.is_closing());
        let elsewhere = open.admit(address(2));
        assert!(elsewhere.is_some());
        drop(busy);
        assert!(open.admit(address(1)).is_some());
        assert!(mine[0].watch.is_closing());
        drop(mine);
        drop(other);
        drop(elsewhere);
        assert!(open.lock().per_address.is_empty());
    }
}
