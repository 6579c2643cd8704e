//! All connections of a node, without IO. One of them that fails, or makes the library fail, ends alone.

use std::collections::{BTreeSet, HashMap};
use std::net::SocketAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use str0m::Input;
use str0m::net::{DatagramRecv, Protocol, Receive};

use crate::demultiplex::{Addressee, addressee};
use crate::outlet::Command;
use crate::peer::{Datagram, Ended, Peer};

/// Addresses that one peer may come from at once: a browser tries each of its networks.
const ADDRESSES_MAX: usize = 8;

/// How soon a connection is asked again that has more to do at once.
const AGAIN: Duration = Duration::from_millis(1);

/// A connection of this node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct PeerId(u64);

/// All connections.
pub(crate) struct Peers {
    all: HashMap<PeerId, Known>,
    by_fragment: HashMap<String, PeerId>,
    by_address: HashMap<SocketAddr, PeerId>,
    wakes: BTreeSet<(Instant, PeerId)>,
    next: u64,
    /// Addresses of this node as peers know them. Never empty.
    candidates: Vec<SocketAddr>,
    out: Vec<Datagram>,
}

struct Known {
    peer: Peer,
    fragment: String,
    /// Where valid requests of the peer came from, the oldest first.
    addresses: Vec<SocketAddr>,
    wake: Instant,
}

impl Peers {
    /// None yet.
    pub fn new(candidates: Vec<SocketAddr>) -> Self {
        Self {
            all: HashMap::new(),
            by_fragment: HashMap::new(),
            by_address: HashMap::new(),
            wakes: BTreeSet::new(),
            next: 0,
            candidates,
            out: Vec::new(),
        }
    }

    /// The name of the next connection.
    pub fn fresh_id(&mut self) -> PeerId {
        self.next += 1;
        PeerId(self.next)
    }

    /// Adds a connection whose peer names `fragment` in its requests.
    pub fn add(&mut self, now: Instant, id: PeerId, fragment: String, peer: Peer) {
        self.by_fragment.insert(fragment.clone(), id);
        let known = Known {
            peer,
            fragment,
            addresses: Vec::new(),
            wake: now,
        };
        self.all.insert(id, known);
        self.wakes.insert((now, id));
        metrics::gauge!("toolgate_rtc_peers").set(self.all.len() as f64);
        self.change(now, id, |_| Ok(()));
    }

    /// Takes a datagram from the network. What belongs to no peer is dropped without an answer.
    pub fn receive(&mut self, now: Instant, source: SocketAddr, datagram: &[u8]) {
        let to = addressee(datagram);
        let id = match to {
            Addressee::Named(fragment) => self.by_fragment.get(fragment),
            Addressee::BySource => self.by_address.get(&source),
            Addressee::Nobody => None,
        };
        let (Some(id), Ok(contents)) = (id.copied(), DatagramRecv::try_from(datagram)) else {
            metrics::counter!("toolgate_rtc_packets_dropped_total", "why" => "unknown").increment(1);
            return;
        };
        let input = Input::Receive(
            now,
            Receive {
                proto: Protocol::Udp,
                source,
                destination: self.destination(source),
                contents,
            },
        );
        if !self.all.get(&id).is_some_and(|known| known.peer.accepts(&input)) {
            metrics::counter!("toolgate_rtc_packets_dropped_total", "why" => "unknown").increment(1);
            return;
        }
        if to != Addressee::BySource {
            self.remember_address(id, source);
        }
        self.change(now, id, |peer| peer.receive(input));
    }

    /// Does what a session asks for. A peer that is gone needs nothing.
    pub fn command(&mut self, now: Instant, command: Command) {
        match command {
            Command::Write { peer, text, permit } => {
                metrics::counter!("toolgate_rtc_messages_total", "direction" => "out").increment(1);
                self.change(now, peer, |peer| {
                    peer.write(text, permit);
                    Ok(())
                });
            }
            Command::Close { peer, why } => self.change(now, peer, |peer| {
                peer.close(now, why);
                Ok(())
            }),
        }
    }

    /// Lets time pass for every connection that waits for it.
    pub fn pass_time(&mut self, now: Instant) {
        while let Some((wake, id)) = self.wakes.first().copied()
            && wake <= now
        {
            self.change(now, id, |peer| peer.pass_time(now));
            // A connection that wants to be asked again at once is asked in the next turn, after the others.
            if self.all.get(&id).is_some_and(|known| known.wake <= now) {
                self.set_wake(id, now + AGAIN);
            }
        }
    }

    /// When time has to pass for the next connection.
    pub fn next_wake(&self) -> Option<Instant> {
        self.wakes.first().map(|(wake, _)| *wake)
    }

    /// Datagrams to send now.
    pub fn outgoing(&mut self) -> std::vec::Drain<'_, Datagram> {
        self.out.drain(..)
    }

    /// Whether there is no connection.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Changes one connection and does what follows from it.
    fn change(&mut self, now: Instant, id: PeerId, act: impl FnOnce(&mut Peer) -> Result<(), Ended>) {
        let Some(known) = self.all.get_mut(&id) else {
            return;
        };
        let (peer, out) = (&mut known.peer, &mut self.out);
        // The peer is dropped after a panic, so nothing looks at what that left behind.
        let changed = catch_unwind(AssertUnwindSafe(|| act(peer).and_then(|()| peer.drive(now, out))));
        match changed {
            Ok(Ok(wake)) => self.set_wake(id, wake),
            Ok(Err(Ended(why))) => self.remove(id, why),
            Err(_) => {
                tracing::error!("a data channel made its library panic, and was closed");
                self.remove(id, "panic");
            }
        }
    }

    fn set_wake(&mut self, id: PeerId, wake: Instant) {
        if let Some(known) = self.all.get_mut(&id) {
            self.wakes.remove(&(known.wake, id));
            known.wake = wake;
            self.wakes.insert((wake, id));
        }
    }

    fn remove(&mut self, id: PeerId, why: &'static str) {
        let Some(known) = self.all.remove(&id) else { return };
        self.wakes.remove(&(known.wake, id));
        self.by_fragment.remove(&known.fragment);
        for address in known.addresses {
            self.forget_address(id, address);
        }
        tracing::debug!(why, "a data channel ended");
        metrics::counter!("toolgate_rtc_closed_total", "why" => why).increment(1);
        metrics::gauge!("toolgate_rtc_peers").set(self.all.len() as f64);
    }

    /// Other datagrams from here are for this peer, which has proven that it knows its password.
    fn remember_address(&mut self, id: PeerId, source: SocketAddr) {
        if self.by_address.insert(source, id) == Some(id) {
            return;
        }
        let Some(known) = self.all.get_mut(&id) else {
            return;
        };
        known.addresses.push(source);
        if known.addresses.len() > ADDRESSES_MAX {
            let oldest = known.addresses.remove(0);
            self.forget_address(id, oldest);
        }
    }

    fn forget_address(&mut self, id: PeerId, address: SocketAddr) {
        if self.by_address.get(&address) == Some(&id) {
            self.by_address.remove(&address);
        }
    }

    /// The address of this node that the peer knows. Behind an address translation no datagram says it.
    fn destination(&self, source: SocketAddr) -> SocketAddr {
        let same_family = |candidate: &&SocketAddr| candidate.is_ipv4() == source.is_ipv4();
        *self
            .candidates
            .iter()
            .find(same_family)
            .unwrap_or(&self.candidates[0])
    }
}

#[cfg(test)]
mod tests;
