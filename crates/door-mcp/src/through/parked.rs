//! Calls of servers of the older era that wait for an answer of a client of the newer one. The server's call stays open
//! here; the client has a handle to it, which is good for one answer.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde_json::value::RawValue;
use sha2::{Digest as _, Sha256};
use toolgate_engine::shares::share_of;
use toolgate_fair::{Permit, Queue};
use toolgate_mcp::link::message::{Id, Members, Request};

use super::legacy_link::LegacyExchange;
use super::limits::Limits;
use super::owner::Owner;
use super::turn::Turn;
use super::upstream::{Lease, Upstream};

/// Random bytes of a handle: nobody guesses one.
const HANDLE_BYTES: usize = 24;

/// The calls that wait.
pub(super) struct Parked {
    answer_wait: Duration,
    places: Arc<Queue>,
    calls: Mutex<HashMap<String, Entry>>,
}

struct Entry {
    owner: Owner,
    digest: [u8; 32],
    since: Instant,
    call: OpenCall,
    _place: Permit,
}

/// A call of a server of the older era.
pub(super) struct OpenCall {
    // Before the lease: a connection on which something is under way is not used again.
    pub(super) exchange: LegacyExchange,
    pub(super) lease: Lease,
    pub(super) upstream: Arc<Upstream>,
    pub(super) turn: Arc<Turn>,
    /// What the server asks: the name of each question for the client, the id of the server's request, and its contents.
    pub(super) questions: Vec<Question>,
    /// Questions so far.
    pub(super) asked: u64,
}

/// Something that a server asks.
pub(super) struct Question {
    pub(super) name: String,
    pub(super) id: Id,
    pub(super) method: String,
    pub(super) params: Option<Members>,
}

impl Parked {
    pub(super) fn new(limits: &Limits) -> Self {
        Self {
            answer_wait: limits.answer_wait,
            places: limits.parked.places(),
            calls: Mutex::default(),
        }
    }

    /// Keeps a call until it is taken up with the handle; none when too many wait already.
    pub(super) fn park(&self, owner: Owner, request: &Request, mut call: OpenCall) -> Option<String> {
        let handle = handle()?;
        call.lease.rest();
        let place = self.place(owner)?;
        let entry = Entry {
            owner,
            digest: digest(request),
            since: Instant::now(),
            call,
            _place: place,
        };
        self.lock().insert(handle.clone(), entry);
        Some(handle)
    }

    /// A place for one more call of the owner. Clients leave questions unanswered: the oldest is the least likely to be
    /// answered, and is given up.
    fn place(&self, owner: Owner) -> Option<Permit> {
        let share = share_of(owner.project, owner.user);
        if let Some(place) = self.places.try_turn(share) {
            return Some(place);
        }
        let given_up = {
            let mut calls = self.lock();
            let mine = calls.iter().filter(|(_, entry)| entry.owner == owner);
            let oldest = mine.min_by_key(|(_, entry)| entry.since);
            let oldest = oldest.map(|(name, _)| name.clone());
            oldest.and_then(|oldest| calls.remove(&oldest))
        };
        // Outside the lock: what is given up tells its server.
        drop(given_up);
        self.places.try_turn(share)
    }

    /// Takes up a call: only its owner may, with the same request.
    pub(super) fn take(&self, owner: Owner, request: &Request, handle: &str) -> Option<OpenCall> {
        let mut calls = self.lock();
        let entry = calls.get(handle)?;
        let is_expired = entry.since.elapsed() >= self.answer_wait;
        if entry.owner != owner || entry.digest != digest(request) || is_expired {
            return None;
        }
        calls.remove(handle).map(|entry| entry.call)
    }

    /// Gives up calls whose clients do not come back.
    pub(super) fn sweep(&self) {
        let limit = self.answer_wait;
        // Outside the lock: what is given up tells its server.
        let expired: Vec<Entry> = {
            let mut calls = self.lock();
            let old = calls.iter().filter(|(_, entry)| entry.since.elapsed() >= limit);
            let old: Vec<String> = old.map(|(handle, _)| handle.clone()).collect();
            old.iter().filter_map(|handle| calls.remove(handle)).collect()
        };
        drop(expired);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Entry>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A random name that nobody guesses; none when the system has no randomness.
pub(super) fn handle() -> Option<String> {
    let mut bytes = [0; HANDLE_BYTES];
    getrandom::fill(&mut bytes).ok()?;
    Some(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// What has to be the same when a request is sent again: its method, and its parameters but for the answers.
fn digest(request: &Request) -> [u8; 32] {
    let mut hash = Sha256::new();
    hash.update(request.method.as_bytes());
    for (name, value) in request.params.iter().flat_map(Members::iter) {
        if !["_meta", "inputResponses", "requestState"].contains(&name) {
            hash.update([0]);
            hash.update(name.as_bytes());
            hash.update([0]);
            hash.update(canonical(value).as_bytes());
        }
    }
    hash.finalize().into()
}

/// The same text for the same value, however it is spaced. Members keep their order: a client sends what it sent before.
fn canonical(value: &RawValue) -> String {
    let value: serde_json::Value = serde_json::from_str(value.get()).unwrap_or_default();
    value.to_string()
}
