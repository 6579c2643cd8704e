//! A small memory that may forget at any time.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// At most `max` values, each for at most `keep`.
pub(crate) struct Cache<K, V> {
    entries: Mutex<HashMap<K, (Instant, V)>>,
    keep: Duration,
    max: usize,
}

impl<K: Hash + Eq, V: Clone> Cache<K, V> {
    pub fn new(max: usize, keep: Duration) -> Self {
        Self {
            entries: Mutex::default(),
            keep,
            max,
        }
    }
    /// What was put under `key`, unless it is forgotten.
    pub fn get(&self, key: &K) -> Option<V> {
        let entries = self.lock();
        let (put, value) = entries.get(key)?;
        (put.elapsed() < self.keep).then(|| value.clone())
    }
    /// Remembers; makes room by forgetting what is old, and when nothing is, everything.
    pub fn put(&self, key: K, value: V) {
        let mut entries = self.lock();
        if entries.len() >= self.max {
            entries.retain(|_, (put, _)| put.elapsed() < self.keep);
            if entries.len() >= self.max {
                entries.clear();
            }
        }
        entries.insert(key, (Instant::now(), value));
    }
    /// Forgets what was put under `key`.
    pub fn forget(&self, key: &K) {
        self.lock().remove(key);
    }
    /// Forgets everything.
    pub fn clear(&self) {
        self.lock().clear();
    }
    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<K, (Instant, V)>> {
        // Every change is one call of the map: a panic elsewhere leaves it whole.
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_never_holds_more_than_its_limit_and_forgets_what_is_old() {
        let lasting = Cache::new(3, Duration::from_secs(3600));
        for n in 0..100 {
            lasting.put(n, n);
            assert_eq!(lasting.get(&n), Some(n));
            assert!(lasting.lock().len() <= 3);
        }
        let brief = Cache::new(3, Duration::ZERO);
        brief.put(1, 1);
        assert_eq!(brief.get(&1), None);
    }
}
