//! Calls that are made again while the engine looks at their task: a look gives the same task, so what the server wanted
//! last is kept here. After a restart the call is made again from what was stored with the run.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::{Map, Value};
use toolgate_kernel::id::CallId;

/// Calls that are remembered. With more of them some begin again from what is stored.
const CALLS_MAX: usize = 256;
/// Most requests of one call's task that are answered without a person.
pub(crate) const ANSWERED_MAX: usize = 256;
/// Most bytes that are remembered of one call: the longest task of the engine.
const BYTES_MAX: usize = toolgate_engine::tools::TASK_BYTES_MAX;

/// What a server wanted last.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Round {
    /// What it wants to see again.
    pub state: Option<String>,
    /// Responses that need nobody.
    pub given: Map<String, Value>,
    /// How often the call was made so far.
    pub round: u32,
}

/// What is remembered of calls under way.
#[derive(Default)]
pub(crate) struct Rounds(Mutex<HashMap<CallId, Remembered>>);

#[derive(Default)]
struct Remembered {
    newest: Option<Round>,
    /// Keys of a task's requests that were answered, so that a model is not asked twice.
    answered: HashSet<String>,
}

impl Rounds {
    /// What the server of a call wanted last, if it was looked at on this node.
    pub fn newest(&self, call: CallId) -> Option<Round> {
        self.lock().get(&call)?.newest.clone()
    }

    /// Remembers what the server of a call wants.
    pub fn remember(&self, call: CallId, round: Round) {
        let bytes =
            round.state.as_ref().map_or(0, String::len) + Value::from(round.given.clone()).to_string().len();
        if bytes <= BYTES_MAX {
            self.of(call, |known| known.newest = Some(round));
        }
    }

    /// Whether a request of a call's task was answered before.
    pub fn has_answered(&self, call: CallId, key: &str) -> bool {
        let known = self.lock();
        known.get(&call).is_some_and(|known| known.answered.contains(key))
    }

    /// Requests of a call's task are answered. False when they are too many.
    pub fn answered<'k>(&self, call: CallId, keys: impl Iterator<Item = &'k String>) -> bool {
        self.of(call, |known| {
            known.answered.extend(keys.cloned());
            known.answered.len() <= ANSWERED_MAX
        })
    }

    /// The call has ended, or goes on from what is stored.
    pub fn forget(&self, call: CallId) {
        self.lock().remove(&call);
    }

    fn of<T>(&self, call: CallId, change: impl FnOnce(&mut Remembered) -> T) -> T {
        let mut calls = self.lock();
        if calls.len() >= CALLS_MAX && !calls.contains_key(&call) {
            let any = calls.keys().next().copied();
            any.map(|any| calls.remove(&any));
        }
        change(calls.entry(call).or_default())
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<CallId, Remembered>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use toolgate_kernel::id::RunId;
    use uuid::Uuid;

    use super::*;

    #[test]
    fn a_task_has_so_many_requests_answered_and_no_more() {
        let rounds = Rounds::default();
        let run = RunId::new(Uuid::from_u128(1));
        let call = CallId { run, number: 0 };
        let keys: Vec<String> = (0..=ANSWERED_MAX).map(|number| number.to_string()).collect();
        assert!(rounds.answered(call, keys[1..].iter()));
        assert!(
            rounds.answered(call, keys[1..].iter()),
            "the same ones count once"
        );
        assert!(!rounds.answered(call, keys[..1].iter()));
    }
}
