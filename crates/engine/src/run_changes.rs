//! Which runs have changed, for lists that stay up to date: ids only, each at most once, bounded per watcher. A change that is
//! missed costs a reload of the list, never an event of the log.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tokio::sync::Notify;
use toolgate_kernel::event::{Entry, Event};
use toolgate_kernel::id::RunId;

use crate::Engine;
use crate::store::CommitListener;

/// Runs that wait for one watcher. Of more it is told that it missed some.
const WAITING_MAX: usize = 1_000;

/// Tells watchers of runs that were created, changed their status, ended a step or ended.
#[derive(Default)]
pub(crate) struct RunChanges {
    watchers: Mutex<Vec<Weak<Watcher>>>,
}

#[derive(Default)]
struct Watcher {
    waiting: Mutex<Changed>,
    news: Notify,
}

/// What has changed since the last look.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Changed {
    /// The runs, oldest first.
    pub runs: BTreeSet<RunId>,
    /// Whether there were more than are remembered, or notices of other nodes were lost: what is not named may have
    /// changed too.
    pub missed: bool,
}

/// Watches the runs of all projects.
pub struct RunWatch(Arc<Watcher>);

impl RunChanges {
    /// A run has changed, here or on another node.
    pub fn changed(&self, run: RunId) {
        let mut watchers = self.watchers.lock().unwrap_or_else(PoisonError::into_inner);
        watchers.retain(|watcher| match watcher.upgrade() {
            Some(watcher) => {
                watcher.note(run);
                true
            }
            None => false,
        });
    }

    /// Runs may have changed that nobody here was told of.
    pub fn missed(&self) {
        let watchers = self.watchers.lock().unwrap_or_else(PoisonError::into_inner);
        watchers.iter().filter_map(Weak::upgrade).for_each(|watcher| {
            watcher
                .waiting
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .missed = true;
            watcher.news.notify_one();
        });
    }

    fn watch(&self) -> RunWatch {
        let watcher = Arc::new(Watcher::default());
        let mut watchers = self.watchers.lock().unwrap_or_else(PoisonError::into_inner);
        watchers.push(Arc::downgrade(&watcher));
        RunWatch(watcher)
    }
}

impl CommitListener for RunChanges {
    fn committed(&self, entries: &[Arc<Entry>]) {
        for entry in entries.iter().filter(|entry| changes_row(entry)) {
            entry.run.into_iter().for_each(|run| self.changed(run));
        }
    }
}

/// Whether a list of runs shows something else after this entry.
fn changes_row(entry: &Entry) -> bool {
    entry.events.iter().any(|event| {
        matches!(
            event,
            Event::RunStart(_) | Event::RunStatus(_) | Event::RunFinish(_) | Event::StepFinish(_)
        )
    })
}

impl Watcher {
    fn note(&self, run: RunId) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        match waiting.runs.len() < WAITING_MAX {
            true => drop(waiting.runs.insert(run)),
            false => waiting.missed |= !waiting.runs.contains(&run),
        }
        drop(waiting);
        self.news.notify_one();
    }
}

impl RunWatch {
    /// Waits until runs have changed since the last look, and gives them.
    pub async fn next(&mut self) -> Changed {
        loop {
            let news = self.0.news.notified();
            let changed = std::mem::take(&mut *self.0.waiting.lock().unwrap_or_else(PoisonError::into_inner));
            if changed != Changed::default() {
                return changed;
            }
            news.await;
        }
    }
}

impl Engine {
    /// Watches which runs change from now on, those of all projects: whose they are, their rows tell.
    pub fn watch_runs(&self) -> RunWatch {
        self.inner.run_changes.watch()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(n: u128) -> RunId {
        RunId::from_bytes(n.to_be_bytes())
    }

    #[tokio::test]
    async fn a_watcher_hears_of_each_run_once_and_is_told_when_it_missed_some() {
        let changes = RunChanges::default();
        changes.changed(run(1));
        let mut watch = changes.watch();
        for n in [3, 2, 3] {
            changes.changed(run(n));
        }
        let changed = watch.next().await;
        assert_eq!(
            (changed.runs, changed.missed),
            (BTreeSet::from([run(2), run(3)]), false)
        );
        for n in 0..=WAITING_MAX as u128 {
            changes.changed(run(n));
        }
        let changed = watch.next().await;
        assert_eq!((changed.runs.len(), changed.missed), (WAITING_MAX, true));
        changes.changed(run(9));
        assert_eq!(watch.next().await.runs, BTreeSet::from([run(9)]));
        drop(watch);
        changes.changed(run(1));
        assert!(changes.watchers.lock().unwrap().is_empty());
    }
}
