//! Deleting runs, spaces and people for good. Whatever is deleted is written down first, as a record that is due: it is
//! worked off in small writes, each of which has no effect when it is repeated, and removed with the last of them. A request
//! does so at once; what it leaves behind when its process dies is finished by whichever node finds the record due.

mod again;
mod archive;
mod deliveries;
mod entity;
mod expired;
mod export;
mod files;
mod space;
mod tree;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;
use toolgate_kernel::event::Seq;
use toolgate_kernel::id::{EntityId, NodeId, ProjectId, RunId, SpaceId};
use toolgate_kernel::time::Time;

pub use export::Export;

use crate::Engine;
use crate::intake::IntakeError;
use crate::records::{Change, Expected, Listing, NewRecord, Owner, Record, RecordSet, Records};
use crate::retention::RetentionRules;
use crate::store::{Deleted, EntityRecord, RunRecord, SpaceRecord, StoreError, Trim, TrimLimit};
use crate::workspace::{Workspace, WorkspaceLimits};
use tree::Tree;

const KIND: &str = "deletion";
/// How long whoever works on a deletion keeps others from it without a sign of life.
const HELD: Duration = Duration::from_secs(60);
/// How often there is a sign of life: well before others may take over.
const TOUCHED_EVERY: Duration = Duration::from_secs(15);
/// How often deletions that somebody left behind are looked for.
const SWEPT_EVERY: Duration = Duration::from_secs(5);
/// Deletions that are taken up in one sweep.
const SWEPT_AT_ONCE: usize = 16;
/// How much later a deletion is looked at that this version cannot read.
const UNREADABLE_FOR: Duration = Duration::from_secs(3600);
/// Records and rows per write or page.
const PORTION: usize = 200;
/// Pages of the database file that are given back per write, and how often: 1 MiB each, 256 MiB per deletion.
const RECLAIMED_PAGES: u32 = 256;
const RECLAIMS_MAX: usize = 256;

/// How much was removed, by kind: `runs`, `entries`, `bytes`, `spaces`, `messages`, and the kinds of records.
pub type Removed = BTreeMap<String, u64>;

/// Why nothing was deleted, or not all of it yet.
#[derive(Debug, thiserror::Error)]
pub enum DeletionError {
    /// A run of the tree has not ended.
    #[error("{0} has not ended, cancel it first")]
    Open(RunId),
    /// The run was started by a call of another one: run trees are deleted as a whole.
    #[error("the run belongs to the tree of {0}, which is deleted as a whole")]
    BelowRun(RunId),
    /// The space is that of a child run, and goes with its tree.
    #[error("the space belongs to a child run in the tree of {0}, which is deleted as a whole")]
    BelowSpace(RunId),
    /// Another request or node works on the same deletion.
    #[error("it is being deleted, ask again in a minute")]
    UnderWay,
    /// The store failed: what is left is deleted later.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Deletes what belongs to projects. Whether the caller may is the door's question to `toolgate_access`, asked before.
pub struct Deletions {
    engine: Engine,
    records: Arc<dyn Records>,
    workspace: Workspace,
    rules: Arc<dyn RetentionRules>,
    loose_looked: expired::LooseLooked,
}

/// What is to be deleted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "what", rename_all = "kebab-case", rename_all_fields = "camelCase")]
enum What {
    /// A run tree in which every run has ended.
    Tree {
        /// The run at the top.
        root: RunId,
        /// Its space.
        space: SpaceId,
        /// The runs below it, each with its own space.
        below: Vec<(RunId, SpaceId)>,
    },
    /// A space with everything in it.
    Space {
        /// The space.
        space: SpaceId,
    },
    /// What a person has said and stored in a project.
    Entity {
        /// The person.
        entity: EntityId,
        /// Its subject, by which a repeated request finds the deletion. None in one of an earlier version.
        #[serde(default)]
        subject: Option<String>,
        /// How far the logs of the project were looked through.
        #[serde(default)]
        looked: Option<(SpaceId, Seq)>,
    },
    /// What a project keeps no longer.
    Expired(Box<expired::Batch>),
}

/// Stored content of a deletion.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Plan {
    #[serde(flatten)]
    what: What,
    /// The node that works on it.
    node: NodeId,
    /// What was removed so far.
    #[serde(default)]
    removed: Removed,
    /// Own space of the person whose deletion has begun; its row may be gone already.
    #[serde(default, rename = "spaceBegun", skip_serializing_if = "Option::is_none")]
    space_begun: Option<SpaceId>,
    /// Spaces of the person that are deleted except for deliveries that name them.
    #[serde(default, rename = "spacesErased", skip_serializing_if = "Vec::is_empty")]
    spaces_erased: Vec<SpaceId>,
    /// Run tree whose deletion has begun.
    #[serde(default, rename = "treeBegun", skip_serializing_if = "Option::is_none")]
    tree_begun: Option<Tree>,
}

/// A deletion that is worked on here, while others leave it alone.
struct Held {
    project: ProjectId,
    id: String,
    version: u64,
    touched: Time,
    plan: Plan,
}

impl Deletions {
    /// Deletions of what `engine` drives and `records` hold; `rules` say where a project archives what it keeps no longer.
    pub fn new(engine: Engine, records: Arc<dyn Records>, rules: Arc<dyn RetentionRules>) -> Self {
        let workspace = Workspace::new(records.clone(), WorkspaceLimits::default());
        Self {
            engine,
            records,
            workspace,
            rules,
            loose_looked: expired::LooseLooked::default(),
        }
    }

    /// Deletes a run at the top with all runs below it, once all of them have ended.
    pub async fn delete_run(&self, top: &RunRecord) -> Result<Removed, DeletionError> {
        if top.parent.is_some() {
            return Err(DeletionError::BelowRun(top.root));
        }
        let what = self.plan_tree(top).await?;
        self.delete(top.project, format!("run {}", top.id), what).await
    }

    /// Deletes a space: open runs are cancelled, followers are told, and everything that is stored of it goes.
    pub async fn delete_space(&self, space: &SpaceRecord) -> Result<Removed, DeletionError> {
        let home = self
            .engine
            .inner
            .store
            .run(RunId::from_bytes(space.id.to_bytes()))
            .await?;
        if let Some(child) = home.filter(|run| run.parent.is_some()) {
            return Err(DeletionError::BelowSpace(child.root));
        }
        let what = What::Space { space: space.id };
        self.delete(space.project, format!("space {}", space.id), what)
            .await
    }

    /// Deletes a person: spaces of their own, their words in those of others, and all that is stored for them.
    pub async fn delete_entity(&self, entity: &EntityRecord) -> Result<Removed, DeletionError> {
        let what = What::Entity {
            entity: entity.id,
            subject: Some(entity.subject.clone()),
            looked: None,
        };
        self.delete(entity.project, format!("entity {}", entity.id), what)
            .await
    }

    /// Whether a run or a space of a project was deleted in the last days.
    pub async fn was_deleted(&self, project: ProjectId, deleted: Deleted) -> Result<bool, StoreError> {
        self.engine.inner.store.was_deleted(project, deleted).await
    }

    /// Finishes what the last process of this node left behind, and what others do, until `stop` fires.
    pub async fn work(&self, stop: CancellationToken) {
        match self.left_by_this_node().await {
            Ok(left) => {
                stop.run_until_cancelled(self.finish(left)).await;
            }
            Err(error) => tracing::warn!(%error, "the store does not tell which deletions are left"),
        }
        while stop.run_until_cancelled(self.work_off()).await.is_some() {
            if stop
                .run_until_cancelled(tokio::time::sleep(SWEPT_EVERY))
                .await
                .is_none()
            {
                return;
            }
        }
    }

    /// Finishes what others have left behind by now.
    pub async fn work_off(&self) {
        let now = self.engine.inner.clock.now();
        let due = match self.records.due_records(KIND, now, SWEPT_AT_ONCE).await {
            Ok(due) => due,
            Err(error) => return tracing::warn!(%error, "the store does not tell which deletions are left"),
        };
        self.finish(due).await;
    }

    /// Deletions that this node held when its last process ended: nobody else works on them, so they need not be due.
    async fn left_by_this_node(&self) -> Result<Vec<(RecordSet, Record)>, StoreError> {
        let (started, node) = (self.engine.inner.clock.now(), self.engine.inner.settings.node);
        let mut left = Vec::new();
        for set in self.records.record_sets(KIND).await? {
            let listing = Listing {
                limit: PORTION,
                ..Listing::default()
            };
            let found = self.records.list_records(set, listing).await?;
            let is_left = |record: &Record| {
                let plan = record.body.read::<Plan>();
                record.updated < started && plan.is_ok_and(|plan| plan.node == node)
            };
            left.extend(found.into_iter().filter(is_left).map(|record| (set, record)));
        }
        Ok(left)
    }

    async fn finish(&self, deletions: Vec<(RecordSet, Record)>) {
        for (set, record) in deletions {
            let id = record.id.clone();
            let outcome = async {
                match self.take_up(set.project, record).await? {
                    Some(held) => self.carry_out(held).await.map(Some),
                    None => Ok(None),
                }
            };
            match outcome.await {
                Ok(Some(removed)) => {
                    tracing::info!(deletion = id, ?removed, "finished a deletion that was left")
                }
                Ok(None) => {}
                Err(error) => tracing::warn!(deletion = id, %error, "a deletion goes on later"),
            }
        }
    }

    async fn delete(&self, project: ProjectId, id: String, what: What) -> Result<Removed, DeletionError> {
        let plan = Plan {
            what,
            node: self.engine.inner.settings.node,
            removed: Removed::new(),
            space_begun: None,
            spaces_erased: Vec::new(),
            tree_begun: None,
        };
        let mut held = Held {
            project,
            id,
            version: 0,
            touched: self.engine.inner.clock.now(),
            plan,
        };
        match self.store_plan(&mut held, None).await {
            Ok(()) => {}
            Err(StoreError::Conflict) => {
                let left = self.records.record(record_set(project), &held.id).await?;
                let left = left.ok_or(DeletionError::UnderWay)?;
                held = self.take_over(project, left).await?;
            }
            Err(error) => return Err(error.into()),
        }
        self.carry_out(held).await
    }

    /// Takes a deletion that somebody has left behind; `UnderWay` when it is worked on.
    async fn take_over(&self, project: ProjectId, record: Record) -> Result<Held, DeletionError> {
        let now = self.engine.inner.clock.now();
        if record.due.is_none_or(|due| due > now) {
            return Err(DeletionError::UnderWay);
        }
        let taken = self.take_up(project, record).await?;
        taken.ok_or(DeletionError::UnderWay)
    }

    /// Takes a deletion that nobody works on; none when another node was first, or this version cannot read it.
    async fn take_up(&self, project: ProjectId, record: Record) -> Result<Option<Held>, StoreError> {
        let now = self.engine.inner.clock.now();
        let Ok(mut plan) = record.body.read::<Plan>() else {
            tracing::error!(
                deletion = record.id,
                "a deletion cannot be read, a newer version may have written it"
            );
            let later = NewRecord {
                due: Some(now.after(UNREADABLE_FOR)),
                ..new_record(record.id.clone(), record.body)
            };
            let unchanged = Expected {
                id: record.id,
                version: Some(record.version),
            };
            let changes = vec![Change::Put(later)];
            let set = record_set(project);
            return unless_taken(
                self.records
                    .change_records(set, vec![unchanged], changes, now)
                    .await,
            )
            .map(|_| None);
        };
        plan.node = self.engine.inner.settings.node;
        let mut held = Held {
            project,
            id: record.id,
            version: record.version,
            touched: now,
            plan,
        };
        let version = held.version;
        let taken = unless_taken(self.store_plan(&mut held, Some(version)).await)?;
        Ok(taken.then_some(held))
    }

    /// Stores how far it is, and keeps others from it for a while.
    async fn store_plan(&self, held: &mut Held, version: Option<u64>) -> Result<(), StoreError> {
        let now = self.engine.inner.clock.now();
        let expected = Expected {
            id: held.id.clone(),
            version,
        };
        let body = serde_json::to_value(&held.plan).expect("a plan has text keys");
        let put = NewRecord {
            due: Some(now.after(HELD)),
            ..new_record(held.id.clone(), body.into())
        };
        self.records
            .change_records(
                record_set(held.project),
                vec![expected],
                vec![Change::Put(put)],
                now,
            )
            .await?;
        held.version = version.unwrap_or(0) + 1;
        held.touched = now;
        Ok(())
    }

    /// Works it off to the end.
    async fn carry_out(&self, mut held: Held) -> Result<Removed, DeletionError> {
        if let Some(tree) = held.plan.tree_begun.clone() {
            self.erase_with_deliveries(&mut held, &tree).await?;
            held.plan.tree_begun = None;
        }
        let label = match held.plan.what.clone() {
            What::Tree { root, space, below } => {
                let tree = Tree { root, space, below };
                self.erase_with_deliveries(&mut held, &tree).await?;
                Some("run")
            }
            What::Space { space } => {
                self.erase_space(&mut held, space).await?;
                self.remove_deliveries_of_spaces(&mut held, &[space]).await?;
                Some("space")
            }
            What::Entity { entity, looked, .. } => {
                self.erase_entity(&mut held, entity, looked).await?;
                Some("entity")
            }
            What::Expired(batch) => {
                let erased = self.erase_expired(&mut held, *batch).await;
                if matches!(&erased, Err(error) if !matches!(error, DeletionError::UnderWay)) {
                    metrics::counter!("toolgate_retention_failures_total").increment(1);
                }
                erased?.then_some("expired")
            }
        };
        let done = Expected {
            id: held.id.clone(),
            version: Some(held.version),
        };
        let changes = vec![Change::Remove(held.id.clone())];
        let (set, now) = (record_set(held.project), self.engine.inner.clock.now());
        // Whoever has taken it over meanwhile finds nothing to do.
        unless_taken(self.records.change_records(set, vec![done], changes, now).await)?;
        if let Some(label) = label {
            metrics::counter!("toolgate_deletions_total", "what" => label).increment(1);
            self.reclaim().await?;
        }
        Ok(held.plan.removed)
    }

    /// Gives what was deleted back to the file system, as far as the store can.
    async fn reclaim(&self) -> Result<(), StoreError> {
        for _ in 0..RECLAIMS_MAX {
            if self.engine.inner.store.reclaim(RECLAIMED_PAGES).await? < RECLAIMED_PAGES {
                break;
            }
        }
        Ok(())
    }

    /// Gives a sign of life when it is time for one.
    async fn touch(&self, held: &mut Held) -> Result<(), DeletionError> {
        let now = self.engine.inner.clock.now();
        if now.since(held.touched) < TOUCHED_EVERY {
            return Ok(());
        }
        self.note(held).await
    }

    /// Stores how far it is; `UnderWay` when another node has taken it over.
    async fn note(&self, held: &mut Held) -> Result<(), DeletionError> {
        let version = held.version;
        match self.store_plan(held, Some(version)).await {
            Err(StoreError::Conflict) => Err(DeletionError::UnderWay),
            stored => Ok(stored?),
        }
    }

    /// Deletes entries of a log until none is left.
    async fn trim(&self, held: &mut Held, trim: Trim) -> Result<(), DeletionError> {
        loop {
            let trimmed = self
                .engine
                .inner
                .store
                .trim_log(trim, TrimLimit::default())
                .await?;
            held.plan.count("entries", trimmed.entries);
            held.plan.count("bytes", trimmed.bytes);
            if !trimmed.more {
                return Ok(());
            }
            self.touch(held).await?;
        }
    }

    /// Deletes everything that is stored for an owner.
    async fn remove_records(&self, held: &mut Held, owner: Owner) -> Result<(), DeletionError> {
        loop {
            let store = &self.engine.inner.store;
            let removed = store.remove_records(held.project, owner, PORTION).await?;
            let count: u64 = removed.values().sum();
            for (kind, count) in removed {
                held.plan.count(&kind, count);
            }
            if count < PORTION as u64 {
                return Ok(());
            }
            self.touch(held).await?;
        }
    }
}

impl Plan {
    fn count(&mut self, kind: &str, number: u64) {
        if number > 0 {
            *self.removed.entry(kind.to_owned()).or_default() += number;
        }
    }
}

fn record_set(project: ProjectId) -> RecordSet {
    RecordSet {
        project,
        owner: Owner::Project,
        kind: KIND,
    }
}

fn new_record(id: String, body: toolgate_kernel::json::Json) -> NewRecord {
    NewRecord {
        id,
        body,
        text: None,
        data: None,
        due: None,
    }
}

/// Whether a change was made; false if another node has taken the record since.
fn unless_taken(changed: Result<(), StoreError>) -> Result<bool, StoreError> {
    match changed {
        Ok(()) => Ok(true),
        Err(StoreError::Conflict) => Ok(false),
        Err(error) => Err(error),
    }
}

/// A refusal means that the run has ended meanwhile, or is gone.
fn unless_ended<T>(cancelled: Result<T, IntakeError>) -> Result<(), StoreError> {
    match cancelled {
        Err(IntakeError::Store(error)) => Err(error),
        Ok(_) | Err(_) => Ok(()),
    }
}
