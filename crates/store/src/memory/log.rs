//! The log of every space, in order.

use std::sync::Arc;

use async_trait::async_trait;
use toolgate_engine::store::{
    Append, CommitListener, Log, LogOrder, LogPage, LogRange, StoreError, StoredDefinition,
};
use toolgate_kernel::event::{Entry, Seq};
use toolgate_kernel::id::{ProjectId, RunId, SpaceId};

use super::MemoryStore;
use crate::text;

#[async_trait]
impl Log for MemoryStore {
    fn listen(&self, listener: Arc<dyn CommitListener>) {
        self.listeners.add(listener);
    }

    async fn append(&self, append: Append) -> Result<Arc<Entry>, StoreError> {
        crate::check(&append);
        let mut state = self.state();
        let entries = state.append(append)?;
        // Listeners are called under the lock, so that they see entries in the order of commits.
        self.listeners.tell(&entries);
        Ok(entries[0].clone())
    }
    async fn run_log(&self, run: RunId, range: LogRange) -> Result<LogPage, StoreError> {
        let state = self.state();
        let Some(row) = state.runs.get(&run) else {
            return Ok(LogPage::default());
        };
        let log = state.log.get(&row.space).into_iter().flatten();
        Ok(page(log.filter(|entry| entry.run == Some(run)), range))
    }
    async fn space_log(&self, space: SpaceId, range: LogRange) -> Result<LogPage, StoreError> {
        Ok(page(self.state().log.get(&space).into_iter().flatten(), range))
    }
    async fn space_tail(&self, space: SpaceId) -> Result<Seq, StoreError> {
        Ok(self.state().tail(space))
    }
    async fn definitions(
        &self,
        project: ProjectId,
        hashes: &[String],
    ) -> Result<Vec<StoredDefinition>, StoreError> {
        let state = self.state();
        let stored = |hash: &String| {
            let definition = state.definitions.get(&(project, hash.clone()))?;
            Some(StoredDefinition {
                hash: hash.clone(),
                definition: definition.clone(),
            })
        };
        Ok(hashes.iter().filter_map(stored).collect())
    }
}

fn page<'a>(log: impl DoubleEndedIterator<Item = &'a Arc<Entry>>, range: LogRange) -> LogPage {
    let within = log
        .filter(|entry| entry.last() > range.after)
        .filter(|entry| range.before.is_none_or(|before| entry.first < before));
    match range.order {
        LogOrder::OldestFirst => cut(within, range),
        LogOrder::NewestFirst => cut(within.rev(), range),
    }
}

fn cut<'a>(within: impl Iterator<Item = &'a Arc<Entry>>, range: LogRange) -> LogPage {
    let mut page = LogPage::default();
    for entry in within {
        if page.is_full(range) {
            page.more = true;
            break;
        }
        page.bytes += text::write(&entry.events).len();
        page.entries.push((**entry).clone());
    }
    page
}
