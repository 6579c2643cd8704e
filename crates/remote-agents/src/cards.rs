//! The cards of a project's remote agents, stored so that a tool means the same after a restart and while its agent is
//! away. The definition of a tool follows its card when an agent is saved, never behind its author's back.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::time::Instant;
use toolgate_engine::clock::Clock;
use toolgate_engine::records::{Change, Expected, NewRecord, Owner, RecordSet, Records};
use toolgate_engine::store::StoreError;
use toolgate_kernel::id::ProjectId;
use toolgate_kernel::time::Time;
use toolgate_kernel::tool::{Listed, ToolList};

use crate::card::KnownCard;

const KIND: &str = "remote-agent";
/// Id of the one record, which holds every card.
const ID: &str = "cards";
/// Most cards that a project keeps; the one that was stored first goes.
const CARDS_MAX: usize = 100;
/// How long what was read counts: a change by another node is seen within this.
const KNOWN_FOR: Duration = Duration::from_millis(500);
/// Projects whose cards are in memory.
const PROJECTS_MAX: usize = 1_000;
/// How often a change is tried when others write at the same time.
const ATTEMPTS_MAX: usize = 8;

/// The stored cards of all projects.
pub(crate) struct Cards {
    records: Arc<dyn Records>,
    clock: Arc<dyn Clock>,
    known: Mutex<HashMap<ProjectId, Known>>,
}

#[derive(Clone)]
struct Known {
    read_at: Instant,
    version: Option<u64>,
    list: Arc<ToolList>,
}

/// The record.
#[derive(Debug, Default, Clone, Serialize, Deserialize)]
struct Stored {
    cards: BTreeMap<String, StoredCard>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct StoredCard {
    card: KnownCard,
    since: Time,
}

impl Cards {
    pub fn new(records: Arc<dyn Records>, clock: Arc<dyn Clock>) -> Self {
        Self {
            records,
            clock,
            known: Mutex::default(),
        }
    }

    /// The cards of a project, by address; the same `Arc` while nothing has changed.
    pub async fn list(&self, project: ProjectId) -> Result<Arc<ToolList>, StoreError> {
        let known = self.lock().get(&project).cloned();
        if let Some(known) = known.as_ref().filter(|known| known.read_at.elapsed() < KNOWN_FOR) {
            return Ok(known.list.clone());
        }
        let read_at = Instant::now();
        let (version, stored) = self.read(project).await?;
        let list = match known.filter(|known| known.version == version) {
            Some(known) => known.list,
            None => Arc::new(listed(stored)),
        };
        let mut projects = self.lock();
        if projects.len() >= PROJECTS_MAX {
            projects.clear();
        }
        let known = Known {
            read_at,
            version,
            list: list.clone(),
        };
        projects.insert(project, known);
        Ok(list)
    }

    /// The stored card of the agent at this address.
    pub async fn get(&self, project: ProjectId, url: &str) -> Result<Option<KnownCard>, StoreError> {
        let list = self.list(project).await?;
        Ok(card_in(&list, url))
    }

    /// Stores the card of the agent at this address, unless it is stored as it is.
    pub async fn put(&self, project: ProjectId, url: &str, card: &KnownCard) -> Result<(), StoreError> {
        for _ in 0..ATTEMPTS_MAX {
            let (version, mut stored) = self.read(project).await?;
            if stored.cards.get(url).is_some_and(|known| known.card == *card) {
                return Ok(());
            }
            let now = self.clock.now();
            let card = card.clone();
            stored
                .cards
                .insert(url.to_owned(), StoredCard { card, since: now });
            while stored.cards.len() > CARDS_MAX {
                let first = stored.cards.iter().min_by_key(|(_, card)| card.since);
                let Some(first) = first.map(|(url, _)| url.clone()) else {
                    break;
                };
                stored.cards.remove(&first);
            }
            let unchanged = Expected {
                id: ID.into(),
                version,
            };
            let put = Change::Put(NewRecord {
                id: ID.into(),
                body: json!(stored).into(),
                text: None,
                data: None,
                due: None,
            });
            match self
                .records
                .change_records(set(project), vec![unchanged], vec![put], now)
                .await
            {
                Ok(()) => {
                    self.lock().remove(&project);
                    return Ok(());
                }
                // It changed in between: read it again.
                Err(StoreError::Conflict) => {}
                Err(error) => return Err(error),
            }
        }
        Err(StoreError::Conflict)
    }

    async fn read(&self, project: ProjectId) -> Result<(Option<u64>, Stored), StoreError> {
        let Some(record) = self.records.record(set(project), ID).await? else {
            return Ok((None, Stored::default()));
        };
        let stored = record.body.read();
        let stored =
            stored.map_err(|error| StoreError::Corrupt(format!("the cards of remote agents: {error}")))?;
        Ok((Some(record.version), stored))
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<ProjectId, Known>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The card of the agent at this address, in a list of them.
pub(crate) fn card_in(list: &ToolList, url: &str) -> Option<KnownCard> {
    list.get(url)?.config()?.read().ok()
}

fn listed(stored: Stored) -> ToolList {
    let cards = stored.cards.into_iter().map(|(url, StoredCard { card, .. })| {
        let card = json!(card);
        (url, Listed::new(card.clone()).with_config(card.into()))
    });
    cards.collect()
}

fn set(project: ProjectId) -> RecordSet {
    RecordSet {
        project,
        owner: Owner::Project,
        kind: KIND,
    }
}
