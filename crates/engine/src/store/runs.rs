//! The rows of runs: where each stands, who drives it, when it must be looked at again, what it used.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use toolgate_kernel::event::{Seq, Status};
use toolgate_kernel::id::{CallId, EntityId, NodeId, ProjectId, RunId, SpaceId};
use toolgate_kernel::name::{AgentName, ToolName};
use toolgate_kernel::time::Time;

use super::StoreError;
use crate::activity::Activity;
use crate::consumption::{Consumed, Consumer, ConsumptionFilter, ConsumptionKey, Days};
use crate::usage::{Day, UsageRecord};

/// Finds runs without reading their logs, and leases them to nodes. Rows are written by
/// [`Log::append`](super::Log::append).
#[async_trait]
pub trait Runs: Send + Sync {
    /// A run's row.
    async fn run(&self, run: RunId) -> Result<Option<RunRecord>, StoreError>;
    /// Rows of a project's runs, newest first.
    async fn runs(&self, project: ProjectId, filter: RunFilter) -> Result<RunPage, StoreError>;
    /// Rows of runs that may wait for a person, newest first: those in whose current step an approval was asked for, or a
    /// tool asked something.
    async fn asking(&self, project: ProjectId, filter: AskingFilter) -> Result<RunPage, StoreError>;
    /// Rows of runs at the top that are no requested calls, those that changed last first, and how many fit the filter
    /// without its cursor: at most [`RECENT_COUNT_MAX`] are counted.
    async fn recent_runs(
        &self,
        project: ProjectId,
        filter: RecentFilter,
    ) -> Result<(Vec<RunRecord>, u64), StoreError>;
    /// The newest run of an agent in a space that is not final, that no call started, and that is not one itself.
    async fn open_run(&self, space: SpaceId, agent: &AgentName) -> Result<Option<RunRecord>, StoreError>;
    /// What the run at the top of a tree and all below it come to: what `step-finish` tells of tokens is counted
    /// by the write that stores it. Nothing for a run that is not there.
    async fn run_tree(&self, root: RunId) -> Result<RunTree, StoreError>;
    /// Runs that are not final and that nobody drives but somebody should: driven by a node whose heartbeat
    /// ended before `now`, or undriven and `queued`, woken, or with `wake_at` at or before `now`. Those that are queued come last:
    /// they wait for room, and must not hide a deadline from a gateway that is full.
    async fn claimable(&self, now: Time, limit: usize) -> Result<Vec<RunId>, StoreError>;
    /// Takes the lease of a run that nobody alive holds, or that `node` holds already, with the next epoch.
    /// None when somebody else holds it or the run is final or absent.
    async fn claim(&self, run: RunId, node: NodeId, now: Time) -> Result<Option<RunRecord>, StoreError>;
    /// Leaves a run to nobody without an append, and adds `wakes` to its count of wake-ups; nothing when the epoch
    /// has moved on. Taking wake-ups off counts up the epoch: of two nodes that have read the same ones, only one
    /// takes them off.
    async fn release(&self, run: RunId, epoch: u64, wakes: i32) -> Result<(), StoreError>;
    /// The node lives until `until`; it has ended when that is zero. A store that nodes with different clocks share may go by its
    /// own clock instead, here and where it compares the end of a heartbeat with `now`.
    async fn heartbeat(&self, node: NodeId, until: Time) -> Result<(), StoreError>;
    /// How many nodes live at `now`: those whose heartbeat has not ended.
    async fn live_nodes(&self, now: Time) -> Result<u64, StoreError>;
    /// The earliest `wake_at` of all runs that are not final.
    async fn next_wake(&self) -> Result<Option<Time>, StoreError>;
    /// What a project's runs and calls come to: runs that are open now, and those created since `since`.
    async fn activity(&self, project: ProjectId, since: Time) -> Result<Activity, StoreError>;
    /// The figures of a tool since a day, that day included; in no order.
    async fn usage(&self, project: ProjectId, tool: &str, since: Day)
    -> Result<Vec<UsageRecord>, StoreError>;
    /// What a part of a project has consumed on some days: the sum of what appends have added.
    async fn consumed(
        &self,
        project: ProjectId,
        consumer: Consumer,
        days: Days,
    ) -> Result<Consumed, StoreError>;
    /// What a project has consumed, in groups, in the order of their keys.
    async fn consumption(
        &self,
        project: ProjectId,
        filter: ConsumptionFilter,
    ) -> Result<Vec<(ConsumptionKey, Consumed)>, StoreError>;
}

/// A run's row: what is needed to find it without reading its log.
#[derive(Debug, Clone, PartialEq)]
pub struct RunRecord {
    /// The run's id.
    pub id: RunId,
    /// Project that owns the run.
    pub project: ProjectId,
    /// Space whose log has the run's events.
    pub space: SpaceId,
    /// Agent of the run.
    pub agent: AgentName,
    /// Revision of the agent, for the whole run.
    pub revision: u32,
    /// The call that started it, for a child run.
    pub parent: Option<CallId>,
    /// The user whose message or call started it, for a run that no call started; none when a backend did.
    pub user: Option<EntityId>,
    /// How its first message begins, at most [`TITLE_CHARS_MAX`] characters.
    pub title: Option<Arc<str>>,
    /// Tokens that it has used, without those of its child runs. Counted by the store.
    pub tokens: u64,
    /// The tool that the run is one call of; none for a run in which a model writes the calls.
    pub tool: Option<ToolName>,
    /// The run at the top of its tree; itself when it has no parent.
    pub root: RunId,
    /// Status of the run.
    pub status: Status,
    /// When the run was created.
    pub created: Time,
    /// When its last event was stored.
    pub updated: Time,
    /// Place of its last event: what an append names to show that it has read everything.
    pub version: Seq,
    /// When it must be looked at again: the earliest of its deadlines.
    pub wake_at: Option<Time>,
    /// Who drives it, for as long as its heartbeat lasts; nobody while it only waits.
    pub node: Option<NodeId>,
    /// Counts how often its lease was taken: a write with an older one is refused.
    pub epoch: u64,
    /// Told apart from the other open runs of its space by this number below [`LANES`]: the smallest that none of
    /// them has. Set when the run is created. Shared only when more than [`LANES`] runs are open.
    pub lane: u8,
    /// Wake-ups that no driver has acted on yet: child runs to start, child runs that ended, work that a stopping
    /// node left. Whoever finds an undriven run with any looks at it.
    pub wakes: u32,
}

/// Longest title of a run, in characters.
pub const TITLE_CHARS_MAX: usize = 200;

/// A change to a run's count of wake-ups.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wake {
    /// The run; nothing changes when it is not there.
    pub run: RunId,
    /// Added to the count, which never falls below zero.
    pub change: i32,
}

impl Wake {
    /// One more reason to look at a run.
    pub fn up(run: RunId) -> Self {
        Self { run, change: 1 }
    }
}

/// A run at the top and all below it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RunTree {
    /// Runs below the one at the top.
    pub descendants: u32,
    /// Tokens that all of them have used.
    pub tokens: u64,
}

/// A page of a list of runs.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RunPage {
    /// The runs. There may be fewer than the limit, even none, and still be a next page: the store has looked at as many rows
    /// as it may for one page.
    pub runs: Vec<RunRecord>,
    /// The `before` of the next page; none if there is none.
    pub next: Option<RunId>,
}

/// Most rows that are looked at for one page, whether they fit its filter or not: so a page of a rare thing takes as long in a
/// project with millions of runs as in one with thousands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LookedAtMax(pub usize);

impl Default for LookedAtMax {
    fn default() -> Self {
        Self(10_000)
    }
}

/// Which runs to list, newest first.
#[derive(Debug, Clone, Default)]
pub struct RunFilter {
    /// In this space only.
    pub space: Option<SpaceId>,
    /// In one of these statuses only; empty for any.
    pub statuses: Vec<Status>,
    /// Children of this run only.
    pub parent: Option<RunId>,
    /// Below this run at any depth only; the run itself is not.
    pub root: Option<RunId>,
    /// Those that no call started only.
    pub top: bool,
    /// Of this agent only.
    pub agent: Option<AgentName>,
    /// Started by this user only.
    pub user: Option<EntityId>,
    /// Those that are one call of this tool only.
    pub tool: Option<ToolName>,
    /// Those with this text in their title only. The case of ASCII letters does not matter.
    pub text: Option<String>,
    /// Created at this time or later only.
    pub since: Option<Time>,
    /// Created before this time only.
    pub until: Option<Time>,
    /// Behind this one in the list: `next` of the page before.
    pub before: Option<RunId>,
    /// At most so many.
    pub limit: usize,
    /// Looks at no more rows than this.
    pub looked_at_max: LookedAtMax,
}

/// Which runs that ask people to list, newest first.
#[derive(Debug, Clone, Default)]
pub struct AskingFilter {
    /// In spaces with this member only.
    pub member: Option<EntityId>,
    /// In this space only.
    pub space: Option<SpaceId>,
    /// Of this agent only.
    pub agent: Option<AgentName>,
    /// Behind this one in the list: `next` of the page before.
    pub before: Option<RunId>,
    /// At most so many.
    pub limit: usize,
    /// Looks at no more rows than this.
    pub looked_at_max: LookedAtMax,
}

/// Which runs to list in the order of their last changes, newest first.
#[derive(Debug, Clone, Default)]
pub struct RecentFilter {
    /// In spaces with this member only.
    pub member: Option<EntityId>,
    /// Of this agent only.
    pub agent: Option<AgentName>,
    /// In this space only.
    pub space: Option<SpaceId>,
    /// In one of these statuses only; empty for any.
    pub statuses: Vec<Status>,
    /// Changed at this time or later.
    pub since: Option<Time>,
    /// Changed before the last run of the page before, or at the same time and with a smaller id.
    pub before: Option<(Time, RunId)>,
    /// At most so many.
    pub limit: usize,
}

/// Most runs that are counted for a list.
pub const RECENT_COUNT_MAX: u64 = 10_000;

/// Open runs of one space that have a lane of their own.
pub const LANES: u8 = Seq::LANES as u8;

/// How long the heartbeat of a node may be silent before its runs are taken over.
pub const NODE_LEASE: Duration = Duration::from_secs(15);
