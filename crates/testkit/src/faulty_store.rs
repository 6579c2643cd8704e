//! A store with injected faults, the same for the same seed.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use tokio_util::sync::CancellationToken;
use toolgate_engine::activity::Activity;
use toolgate_engine::consumption::{Consumed, Consumer, ConsumptionFilter, ConsumptionKey, Days};
use toolgate_engine::records::{Owner, Receipt};
use toolgate_engine::store::{
    AgentRecord, Append, AskingFilter, CommitListener, Deleted, Directory, EntityRecord, FoundEntries,
    Holdings, IdempotencyRecord, KeyRecord, Log, LogPage, LogPlace, LogRange, LooseSpaces, MemberRecord,
    ProjectRecord, Purged, RecentFilter, Retention, RevisionRecord, RunFilter, RunPage, RunRecord, RunTree,
    Runs, SpaceRecord, Store, StoreError, StoredDefinition, Trim, TrimLimit, Trimmed,
};
use toolgate_engine::usage::{Day, UsageRecord};
use toolgate_kernel::event::{Entry, Event, Seq};
use toolgate_kernel::id::{EntityId, KeyId, NodeId, ProjectId, RunId, SpaceId};
use toolgate_kernel::json::Json;
use toolgate_kernel::name::AgentName;
use toolgate_kernel::time::Time;

/// Wraps a store and fails its calls in three ways, each with the same probability: `Unavailable` and not
/// done, `Timeout` and not done, `Timeout` although it was done. The fault of the `n`-th call depends on the seed
/// and `n` only.
pub struct FaultyStore {
    inner: Arc<dyn Store>,
    seed: u64,
    per_mille: u64,
    calls: AtomicU64,
    calm: AtomicBool,
    /// Entries of logs of spaces that were read.
    space_entries_read: AtomicU64,
    refused: Mutex<Option<&'static str>>,
    /// Writes to runs until the end, when there is to be one.
    writes_left: Mutex<Option<usize>>,
    killed: CancellationToken,
    /// Appends under way, for a store that hears of its own alone.
    appending: Option<Arc<AtomicU64>>,
}

/// Fault of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Done,
    Unavailable,
    TimedOut,
    DoneAndTimedOut,
}

impl FaultyStore {
    /// Each of the three faults occurs in `per_mille` of a thousand calls.
    pub fn new(inner: Arc<dyn Store>, seed: u64, per_mille: u32) -> Self {
        Self {
            inner,
            seed,
            per_mille: per_mille.into(),
            calls: AtomicU64::new(0),
            calm: AtomicBool::new(false),
            space_entries_read: AtomicU64::new(0),
            refused: Mutex::default(),
            writes_left: Mutex::default(),
            killed: CancellationToken::new(),
            appending: None,
        }
    }

    /// A store that takes so many writes to runs (at least one) and then answers nothing but `Unavailable`, for ever:
    /// what a process leaves behind that is killed just after the last of them is in `inner`.
    pub fn killed_after(inner: Arc<dyn Store>, writes: usize) -> Self {
        Self {
            writes_left: Mutex::new(Some(writes)),
            ..Self::new(inner, 0, 0)
        }
    }

    /// Until the writes are used up.
    pub async fn killed(&self) {
        self.killed.cancelled().await;
    }

    /// Counts a write; whether it is the last one.
    fn is_last(&self, method: &'static str) -> bool {
        let mut left = self.writes_left.lock().expect("no panic holds the number");
        match left.as_mut() {
            Some(left) if matches!(method, "append" | "claim" | "release") => {
                *left = left.saturating_sub(1);
                *left == 0
            }
            _ => false,
        }
    }

    /// One node's connection to a `MemoryStore` that several share: its listeners hear of its own commits alone, as with
    /// a database server.
    pub fn connection(inner: Arc<dyn Store>, seed: u64, per_mille: u32) -> Self {
        Self {
            appending: Some(Arc::default()),
            ..Self::new(inner, seed, per_mille)
        }
    }

    /// From now on the method of this name fails with `Unavailable`; `None` ends that.
    pub fn refuse(&self, method: Option<&'static str>) {
        *self.refused.lock().expect("no panic holds the name") = method;
    }

    /// How many entries of the logs of spaces were read so far.
    pub fn space_entries_read(&self) -> u64 {
        self.space_entries_read.load(Ordering::SeqCst)
    }

    /// From now on no call fails.
    pub fn calm(&self) {
        self.calm.store(true, Ordering::SeqCst);
    }

    fn fate(&self) -> Fate {
        let call = self.calls.fetch_add(1, Ordering::SeqCst);
        if self.calm.load(Ordering::SeqCst) {
            return Fate::Done;
        }
        let roll = mix(self.seed ^ mix(call)) % 1000;
        match roll {
            _ if roll < self.per_mille => Fate::Unavailable,
            _ if roll < 2 * self.per_mille => Fate::TimedOut,
            _ if roll < 3 * self.per_mille => Fate::DoneAndTimedOut,
            _ => Fate::Done,
        }
    }

    async fn through<T>(
        &self,
        method: &'static str,
        call: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        if self.killed.is_cancelled() {
            return Err(StoreError::Unavailable("killed".into()));
        }
        if self.is_last(method) {
            let done = call.await;
            self.killed.cancel();
            return done;
        }
        if *self.refused.lock().expect("no panic holds the name") == Some(method) {
            return Err(StoreError::Unavailable("on purpose".into()));
        }
        let call = async {
            let own = self.appending.as_ref().filter(|_| method == "append");
            if let Some(own) = own {
                own.fetch_add(1, Ordering::SeqCst);
            }
            let done = call.await;
            if let Some(own) = own {
                own.fetch_sub(1, Ordering::SeqCst);
            }
            done
        };
        match self.fate() {
            Fate::Done => {
                let outcome = call.await;
                // Lets other tasks run in between, as callers on several nodes do.
                tokio::task::yield_now().await;
                outcome
            }
            Fate::Unavailable => Err(StoreError::Unavailable("on purpose".into())),
            Fate::TimedOut => Err(StoreError::Timeout),
            Fate::DoneAndTimedOut => {
                // The caller gets a timeout, whatever the result is.
                let _ = call.await;
                Err(StoreError::Timeout)
            }
        }
    }
}

/// Passes on what one connection commits. The wrapped store tells of a commit while it is being asked for it.
struct OwnCommits {
    listener: Arc<dyn CommitListener>,
    appending: Arc<AtomicU64>,
}

impl CommitListener for OwnCommits {
    fn committed(&self, entries: &[Arc<Entry>]) {
        if self.appending.load(Ordering::SeqCst) > 0 {
            self.listener.committed(entries);
        }
    }
}

/// Spreads a number over all 64 bits (the finaliser of SplitMix64).
fn mix(number: u64) -> u64 {
    let mut mixed = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

/// Methods of a trait that are passed to the wrapped store unless a fault occurs; those in braces always are.
macro_rules! pass_on {
    ($trait:ident { $($plain:tt)* }
        $(fn $name:ident(&self $(, $argument:ident: $type:ty)*) -> $answer:ty;)*
    ) => {
        #[async_trait]
        impl $trait for FaultyStore {
            $($plain)*
            $(async fn $name(&self $(, $argument: $type)*) -> Result<$answer, StoreError> {
                self.through(stringify!($name), self.inner.$name($($argument),*)).await
            })*
        }
    };
}

pass_on! {
    Log {
        fn listen(&self, listener: Arc<dyn CommitListener>) {
            self.inner.listen(match &self.appending {
                Some(appending) => Arc::new(OwnCommits {
                    listener,
                    appending: appending.clone(),
                }),
                None => listener,
            });
        }
        async fn space_log(&self, space: SpaceId, range: LogRange) -> Result<LogPage, StoreError> {
            let page = self.through("space_log", self.inner.space_log(space, range)).await?;
            let read = page.entries.len() as u64;
            self.space_entries_read.fetch_add(read, Ordering::SeqCst);
            Ok(page)
        }
    }
    fn append(&self, append: Append) -> Arc<Entry>;
    fn run_log(&self, run: RunId, range: LogRange) -> LogPage;
    fn space_tail(&self, space: SpaceId) -> Seq;
    fn definitions(&self, project: ProjectId, hashes: &[String]) -> Vec<StoredDefinition>;
}

pass_on! {
    Runs {}
    fn run(&self, run: RunId) -> Option<RunRecord>;
    fn runs(&self, project: ProjectId, filter: RunFilter) -> RunPage;
    fn asking(&self, project: ProjectId, filter: AskingFilter) -> RunPage;
    fn recent_runs(&self, project: ProjectId, filter: RecentFilter) -> (Vec<RunRecord>, u64);
    fn open_run(&self, space: SpaceId, agent: &AgentName) -> Option<RunRecord>;
    fn run_tree(&self, root: RunId) -> RunTree;
    fn claimable(&self, now: Time, limit: usize) -> Vec<RunId>;
    fn claim(&self, run: RunId, node: NodeId, now: Time) -> Option<RunRecord>;
    fn release(&self, run: RunId, epoch: u64, wakes: i32) -> ();
    fn heartbeat(&self, node: NodeId, until: Time) -> ();
    fn live_nodes(&self, now: Time) -> u64;
    fn next_wake(&self) -> Option<Time>;
    fn activity(&self, project: ProjectId, since: Time) -> Activity;
    fn usage(&self, project: ProjectId, tool: &str, since: Day) -> Vec<UsageRecord>;
    fn consumed(&self, project: ProjectId, consumer: Consumer, days: Days) -> Consumed;
    fn consumption(&self, project: ProjectId, filter: ConsumptionFilter) -> Vec<(ConsumptionKey, Consumed)>;
}

pass_on! {
    Directory {}
    fn create_space(&self, space: SpaceRecord) -> ();
    fn space(&self, space: SpaceId) -> Option<SpaceRecord>;
    fn spaces(
        &self,
        project: ProjectId,
        member: Option<EntityId>,
        before: Option<SpaceId>,
        limit: usize
    ) -> Vec<SpaceRecord>;
    fn holdings(&self, project: ProjectId, user: EntityId) -> Holdings;
    fn amend_space(
        &self,
        before: SpaceRecord,
        title: Option<String>,
        metadata: Option<Json>,
        receipt: Option<Receipt>
    ) -> ();
    fn add_member(&self, space: SpaceId, member: EntityId) -> ();
    fn put_member(&self, space: SpaceId, member: EntityId, given: MemberRecord) -> ();
    fn member(&self, space: SpaceId, member: EntityId) -> Option<MemberRecord>;
    fn remove_member(&self, space: SpaceId, member: EntityId) -> ();
    fn put_entity(&self, entity: EntityRecord) -> EntityRecord;
    fn ensure_entity(&self, entity: EntityRecord) -> EntityRecord;
    fn entity(&self, id: EntityId) -> Option<EntityRecord>;
    fn entity_of(&self, project: ProjectId, subject: &str) -> Option<EntityRecord>;
    fn put_agent(&self, project: ProjectId, name: &AgentName, config: Json, now: Time) -> u32;
    fn agent(&self, project: ProjectId, name: &AgentName, revision: Option<u32>) -> Option<AgentRecord>;
    fn agent_revisions(
        &self,
        project: ProjectId,
        name: &AgentName,
        before: Option<u32>,
        limit: usize
    ) -> Vec<RevisionRecord>;
    fn agents(&self, project: ProjectId) -> Vec<AgentRecord>;
    fn remove_agent(&self, project: ProjectId, name: &AgentName) -> bool;
    fn purge_agent(&self, project: ProjectId, name: &AgentName) -> Option<Purged>;
    fn put_project(&self, project: ProjectRecord) -> ();
    fn project(&self, id: ProjectId) -> Option<ProjectRecord>;
    fn project_named(&self, name: &str) -> Option<ProjectRecord>;
    fn projects(&self) -> Vec<ProjectRecord>;
    fn remove_project(&self, id: ProjectId) -> bool;
    fn put_key(&self, key: KeyRecord) -> ();
    fn key(&self, hash: [u8; 32]) -> Option<KeyRecord>;
    fn keys(&self, project: ProjectId) -> Vec<KeyRecord>;
    fn remove_key(&self, project: ProjectId, id: KeyId) -> bool;
    fn idempotency(&self, project: ProjectId, key: &str) -> Option<IdempotencyRecord>;
}

pass_on! {
    Retention {}
    fn log_floor(&self, space: SpaceId) -> Seq;
    fn log_rewrites(&self, space: SpaceId) -> u64;
    fn was_deleted(&self, project: ProjectId, deleted: Deleted) -> bool;
    fn ended_trees(&self, project: ProjectId, before: Time, limit: usize) -> Vec<RunRecord>;
    fn run_bytes(&self, run: RunId) -> u64;
    fn remove_runs(&self, project: ProjectId, runs: Vec<RunId>, now: Time) -> ();
    fn remove_space(&self, project: ProjectId, space: SpaceId, now: Time) -> ();
    fn trim_log(&self, trim: Trim, limit: TrimLimit) -> Trimmed;
    fn remove_records(&self, project: ProjectId, owner: Owner, limit: usize) -> Purged;
    fn loose_spaces(&self, project: ProjectId, before: Time, after: SpaceId, count: usize) -> LooseSpaces;
    fn loose_entries(&self, space: SpaceId, before: Time, after: (Time, Seq), limit: usize) -> Vec<Entry>;
    fn remove_consumption(&self, project: ProjectId, before: Day, limit: usize) -> u64;
    fn unlink_consumption(&self, project: ProjectId, user: EntityId, limit: usize) -> u64;
    fn forget_nodes(&self, before: Time) -> u64;
    fn remove_usage(&self, project: ProjectId, before: Day) -> u64;
    fn unlink_runs(&self, project: ProjectId, user: EntityId, limit: usize) -> u64;
    fn remove_entity(&self, project: ProjectId, entity: EntityId, now: Time) -> bool;
    fn find_entries(&self, project: ProjectId, text: &str, after: LogPlace, rows: usize) -> FoundEntries;
    fn rewrite_entry(&self, before: Entry, events: Vec<Event>) -> ();
    fn reclaim(&self, pages: u32) -> u32;
}

pass_on! {
    Store {
        async fn close(&self) {
            self.inner.close().await;
        }
    }
    fn ready(&self) -> ();
}
