//! The rows of runs: status, lease and wake-up time of each.

use std::sync::Arc;

use async_trait::async_trait;
use rusqlite::{Connection, Row, ToSql, params};
use toolgate_engine::activity::Activity;
use toolgate_engine::consumption::{Consumed, Consumer, ConsumptionFilter, ConsumptionKey, Days};
use toolgate_engine::store::{
    Append, AskingFilter, LeaseWrite, RecentFilter, RunFilter, RunPage, RunRecord, RunTree, Runs, StoreError,
    Wake,
};
use toolgate_engine::usage::{Day, UsageRecord};
use toolgate_kernel::event::{Seq, Status};
use toolgate_kernel::id::{CallId, EntityId, NodeId, ProjectId, RunId, SpaceId};
use toolgate_kernel::name::{AgentName, ToolName};
use toolgate_kernel::time::Time;

use super::column::{agent_name, bounded, change, first, insert, rows, seq, tool_name};
use super::fault::Fault;
use super::{SqliteStore, activity, consumption, run_lists, usage};

#[async_trait]
impl Runs for SqliteStore {
    async fn run(&self, run: RunId) -> Result<Option<RunRecord>, StoreError> {
        self.readers.short(|db| get(db, run))
    }
    async fn runs(&self, project: ProjectId, filter: RunFilter) -> Result<RunPage, StoreError> {
        self.readers
            .long(move |db| run_lists::list(db, project, &filter))
            .await
    }
    async fn asking(&self, project: ProjectId, filter: AskingFilter) -> Result<RunPage, StoreError> {
        self.readers
            .long(move |db| run_lists::asking(db, project, &filter))
            .await
    }
    async fn recent_runs(
        &self,
        project: ProjectId,
        filter: RecentFilter,
    ) -> Result<(Vec<RunRecord>, u64), StoreError> {
        self.readers
            .long(move |db| run_lists::recent(db, project, &filter))
            .await
    }
    async fn open_run(&self, space: SpaceId, agent: &AgentName) -> Result<Option<RunRecord>, StoreError> {
        self.readers.short(|db| open(db, space, agent))
    }
    async fn run_tree(&self, root: RunId) -> Result<RunTree, StoreError> {
        self.readers.short(|db| run_tree(db, root))
    }
    async fn claimable(&self, now: Time, limit: usize) -> Result<Vec<RunId>, StoreError> {
        self.readers.long(move |db| claimable(db, now, limit)).await
    }
    async fn claim(&self, run: RunId, node: NodeId, now: Time) -> Result<Option<RunRecord>, StoreError> {
        self.writer.write(move |db| claim(db, run, node, now)).await
    }
    async fn release(&self, run: RunId, epoch: u64, wakes: i32) -> Result<(), StoreError> {
        self.writer.write(move |db| release(db, run, epoch, wakes)).await
    }
    async fn heartbeat(&self, node: NodeId, until: Time) -> Result<(), StoreError> {
        self.writer.write(move |db| heartbeat(db, node, until)).await
    }
    async fn live_nodes(&self, now: Time) -> Result<u64, StoreError> {
        self.readers.short(|db| live_nodes(db, now))
    }
    async fn next_wake(&self) -> Result<Option<Time>, StoreError> {
        self.readers.short(next_wake)
    }
    async fn activity(&self, project: ProjectId, since: Time) -> Result<Activity, StoreError> {
        self.readers
            .long(move |db| activity::since(db, project, since))
            .await
    }
    async fn usage(
        &self,
        project: ProjectId,
        tool: &str,
        since: Day,
    ) -> Result<Vec<UsageRecord>, StoreError> {
        let tool = tool.to_owned();
        self.readers
            .long(move |db| usage::since(db, project, &tool, since))
            .await
    }
    async fn consumed(
        &self,
        project: ProjectId,
        consumer: Consumer,
        days: Days,
    ) -> Result<Consumed, StoreError> {
        self.readers
            .long(move |db| consumption::sum(db, project, &consumer, days))
            .await
    }
    async fn consumption(
        &self,
        project: ProjectId,
        filter: ConsumptionFilter,
    ) -> Result<Vec<(ConsumptionKey, Consumed)>, StoreError> {
        self.readers
            .long(move |db| consumption::groups(db, project, &filter))
            .await
    }
}

const CREATE: &str = "
    INSERT INTO runs (id, project, space, agent, revision, parent_run, parent_call, root, status, created,
                      updated, version, wake_at, node, epoch, tokens, lane, open, wakes, tool, user, title)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22)
    ON CONFLICT DO NOTHING";

/// Inserts the row of a run whose last event has the sequence number `version`.
pub(crate) fn create(
    connection: &Connection,
    record: &RunRecord,
    version: Seq,
    lane: u8,
    append: &Append,
) -> Result<(), Fault> {
    let parent = record.parent.map(|call| (call.run.to_bytes(), call.number));
    let row = params![
        record.id.to_bytes(),
        record.project.to_bytes(),
        record.space.to_bytes(),
        record.agent.as_str(),
        record.revision,
        parent.map(|(run, _)| run),
        parent.map(|(_, number)| number),
        record.root.to_bytes(),
        record.status.as_str(),
        record.created.0,
        append.time.0,
        version.0 as i64,
        record.wake_at.map(|at| at.0),
        record.node.map(NodeId::to_bytes),
        record.epoch as i64,
        crate::tokens(append) as i64,
        lane,
        !record.status.is_final(),
        record.wakes,
        record.tool.as_ref().map(ToolName::as_str),
        record.user.map(EntityId::to_bytes),
        record.title.as_deref(),
    ];
    insert(connection, CREATE, row)
}

/// Changes of a run's row by an append.
pub(crate) struct Extension {
    pub(crate) id: RunId,
    pub(crate) space: SpaceId,
    /// Version that the writer has read.
    pub(crate) seen: Seq,
    pub(crate) epoch: u64,
    pub(crate) status: Status,
    pub(crate) wake_at: Option<Time>,
    pub(crate) lease: LeaseWrite,
    /// Sequence number of the run's last event afterwards.
    pub(crate) version: Seq,
    pub(crate) updated: Time,
    /// Tokens that it adds.
    pub(crate) tokens: u64,
}

macro_rules! extend {
    ($more:literal) => {
        concat!(
            "UPDATE runs SET status = ?1, updated = ?2, version = ?3, wake_at = ?4, tokens = tokens + ?9",
            $more,
            " WHERE id = ?5 AND space = ?6 AND version = ?7 AND epoch = ?8 AND open = 1"
        )
    };
}
// One statement for each change of the lease and of `open`, because assigning an indexed column costs an index update
// even if its value stays the same.
const EXTEND: &str = extend!("");
const EXTEND_AND_RELEASE: &str = extend!(", node = NULL");
const EXTEND_AND_TAKE: &str = extend!(", node = ?10, epoch = epoch + 1");
const END: &str = extend!(", open = 0, asks = 0");
const END_AND_RELEASE: &str = extend!(", open = 0, asks = 0, node = NULL");
const END_AND_TAKE: &str = extend!(", open = 0, asks = 0, node = ?10, epoch = epoch + 1");

/// Updates a run's row; `Conflict` unless the writer has read the newest version and holds the lease of its epoch.
pub(crate) fn extend(connection: &Connection, to: &Extension) -> Result<(), Fault> {
    let sql = match (to.lease, to.status.is_final()) {
        (LeaseWrite::Keep, false) => EXTEND,
        (LeaseWrite::Keep, true) => END,
        (LeaseWrite::Release, false) => EXTEND_AND_RELEASE,
        (LeaseWrite::Release, true) => END_AND_RELEASE,
        (LeaseWrite::Take(_), false) => EXTEND_AND_TAKE,
        (LeaseWrite::Take(_), true) => END_AND_TAKE,
    };
    let taker = match to.lease {
        LeaseWrite::Take(node) => Some(node.to_bytes()),
        LeaseWrite::Keep | LeaseWrite::Release => None,
    };
    let status = to.status.as_str();
    let (version, seen) = (to.version.0 as i64, to.seen.0 as i64);
    let wake_at = to.wake_at.map(|at| at.0);
    let (id, space) = (to.id.to_bytes(), to.space.to_bytes());
    let (epoch, tokens) = (to.epoch as i64, to.tokens as i64);
    let mut row: Vec<&dyn ToSql> = vec![
        &status,
        &to.updated.0,
        &version,
        &wake_at,
        &id,
        &space,
        &seen,
        &epoch,
        &tokens,
    ];
    row.extend(taker.as_ref().map(|node| node as &dyn ToSql));
    if change(connection, sql, &row[..])? == 0 {
        return Err(StoreError::Conflict.into());
    }
    Ok(())
}

const ADVANCE: &str = "UPDATE runs SET version = ?2 WHERE id = ?1 AND open = 1";

/// Notes that the log of a run goes up to `version`, whoever wrote there; false when the run has ended.
pub(crate) fn advance(connection: &Connection, run: RunId, version: Seq) -> Result<bool, Fault> {
    Ok(change(connection, ADVANCE, params![run.to_bytes(), version.0 as i64])? > 0)
}

const ASKS: &str = "UPDATE runs SET asks = ?2 WHERE id = ?1 AND asks <> ?2";

/// Notes whether a run may wait for an approval.
pub(crate) fn note_asks(connection: &Connection, run: RunId, asks: bool) -> Result<(), Fault> {
    change(connection, ASKS, params![run.to_bytes(), asks])?;
    Ok(())
}

macro_rules! columns {
    () => {
        "id, project, space, agent, revision, parent_run, parent_call, root, status, created, updated, version, wake_at, node,
         epoch, lane, wakes, tool, user, title, tokens"
    };
}
macro_rules! select {
    ($($rest:tt)*) => {
        concat!("SELECT ", columns!(), " FROM runs ", $($rest)*)
    };
}
pub(super) use columns;

/// What `record` reads, in its order.
pub(super) const COLUMNS: &str = columns!();

const GET: &str = select!("WHERE id = ?1");

pub(crate) fn get(connection: &Connection, run: RunId) -> Result<Option<RunRecord>, Fault> {
    first(connection, GET, [run.to_bytes()], record)
}

pub(super) fn record(row: &Row<'_>) -> Result<RunRecord, Fault> {
    let parent = row.get::<_, Option<[u8; 16]>>(5)?;
    let number = row.get::<_, Option<u32>>(6)?;
    let node = row.get::<_, Option<[u8; 16]>>(13)?;
    let epoch = row.get::<_, i64>(14)? as u64;
    Ok(RunRecord {
        id: RunId::from_bytes(row.get(0)?),
        project: ProjectId::from_bytes(row.get(1)?),
        space: SpaceId::from_bytes(row.get(2)?),
        agent: agent_name(row, 3)?,
        revision: row.get(4)?,
        parent: parent.zip(number).map(|(run, number)| CallId {
            run: RunId::from_bytes(run),
            number,
        }),
        root: RunId::from_bytes(row.get(7)?),
        status: status(row.get_ref(8)?.as_str().map_err(rusqlite::Error::from)?)?,
        created: Time(row.get(9)?),
        updated: Time(row.get(10)?),
        version: seq(row, 11)?,
        wake_at: row.get::<_, Option<i64>>(12)?.map(Time),
        node: node.map(NodeId::from_bytes),
        epoch,
        lane: row.get(15)?,
        wakes: row.get(16)?,
        tool: tool_name(row, 17)?,
        user: row.get::<_, Option<[u8; 16]>>(18)?.map(EntityId::from_bytes),
        title: row.get::<_, Option<Arc<str>>>(19)?,
        tokens: row.get::<_, i64>(20)? as u64,
    })
}

pub(crate) const ENDED_TREES: &str = select!(
    "INDEXED BY runs_ended WHERE project = ?1 AND open = 0 AND parent_run IS NULL AND updated <= ?2
       AND NOT EXISTS (SELECT 1 FROM runs AS below INDEXED BY runs_of_root
                       WHERE below.root = runs.id AND below.parent_run IS NOT NULL
                         AND (below.open = 1 OR below.updated > ?2))
     ORDER BY updated LIMIT ?3"
);

/// Runs at the top of trees in which every run has ended by `before`.
pub(crate) fn ended_trees(
    connection: &Connection,
    project: ProjectId,
    before: Time,
    limit: usize,
) -> Result<Vec<RunRecord>, Fault> {
    let values = params![project.to_bytes(), before.0, bounded(limit)];
    rows(connection, ENDED_TREES, values, record)
}

pub(crate) const OPEN: &str = "
    SELECT id, lane, agent = ?2 AND parent_run IS NULL AND tool IS NULL FROM runs WHERE space = ?1 AND open = 1";

/// The lane of a run that begins in a space. Rejects a second open run of its agent, unless it is a child run or one call. Writes
/// are serial, so the result holds until the row is inserted.
pub(crate) fn admit(connection: &Connection, record: &RunRecord) -> Result<u8, Fault> {
    let key = params![record.space.to_bytes(), record.agent.as_str()];
    let open = rows(connection, OPEN, key, |row| {
        Ok((
            RunId::from_bytes(row.get(0)?),
            row.get::<_, u8>(1)?,
            row.get::<_, bool>(2)?,
        ))
    })?;
    let same = open.iter().filter(|(.., same)| *same).map(|(id, ..)| *id).max();
    if let Some(other) = same
        && record.parent.is_none()
        && record.tool.is_none()
        && !record.status.is_final()
    {
        // Writing the same run again is `Exists`, not a conflict.
        let refusal = match get(connection, record.id)? {
            Some(_) => StoreError::Exists,
            None => StoreError::OpenRun(other),
        };
        return Err(refusal.into());
    }
    let taken: Vec<u8> = open.iter().map(|(_, lane, _)| *lane).collect();
    Ok(crate::free_lane(&taken))
}

pub(crate) const OPEN_RUN: &str = select!(
    "WHERE space = ?1 AND open = 1 AND agent = ?2 AND parent_run IS NULL AND tool IS NULL ORDER BY id DESC LIMIT 1"
);

fn open(connection: &Connection, space: SpaceId, agent: &AgentName) -> Result<Option<RunRecord>, Fault> {
    first(
        connection,
        OPEN_RUN,
        params![space.to_bytes(), agent.as_str()],
        record,
    )
}

// Two queries, so that a run without child runs needs no entry in the index of run trees.
pub(crate) const FAMILY: &str = "
    SELECT count(*), coalesce(sum(tokens), 0) + coalesce((SELECT tokens FROM runs WHERE id = ?1), 0)
    FROM runs WHERE root = ?1 AND parent_run IS NOT NULL";

pub(crate) fn run_tree(connection: &Connection, root: RunId) -> Result<RunTree, Fault> {
    let tree = first(connection, FAMILY, [root.to_bytes()], |row| {
        Ok(RunTree {
            descendants: row.get(0)?,
            tokens: row.get::<_, i64>(1)? as u64,
        })
    })?;
    Ok(tree.unwrap_or_default())
}

/// Rejects another run below `root` if there are `max`. Writes are serial, so the count holds.
pub(crate) fn check_descendants(connection: &Connection, root: RunId, max: u32) -> Result<(), Fault> {
    match run_tree(connection, root)?.descendants < max {
        true => Ok(()),
        false => Err(StoreError::Full.into()),
    }
}

pub(crate) fn status(text: &str) -> Result<Status, Fault> {
    Status::parse(text).ok_or_else(|| StoreError::Corrupt(format!("a run in status {text:?}")).into())
}

// In the order of urgency: were more queued than are asked for, nobody would see a deadline behind them. The indices are
// named, because the planner would rather build one of its own over all runs.
pub(crate) const CLAIMABLE: &str = "
    SELECT runs.id FROM nodes INDEXED BY nodes_by_end CROSS JOIN runs INDEXED BY runs_open
    WHERE nodes.until < ?1 AND runs.open = 1 AND runs.node = nodes.id
    UNION ALL
    SELECT id FROM runs INDEXED BY runs_woken WHERE open = 1 AND wakes > 0 AND node IS NULL AND status <> 'queued'
    UNION ALL
    SELECT id FROM runs INDEXED BY runs_wake WHERE open = 1 AND status <> 'queued' AND wakes = 0
      AND wake_at IS NOT NULL AND wake_at <= ?1 AND node IS NULL
    UNION ALL
    SELECT id FROM runs INDEXED BY runs_queued WHERE status = 'queued' AND node IS NULL
    LIMIT ?2";

pub(crate) fn claimable(connection: &Connection, now: Time, limit: usize) -> Result<Vec<RunId>, Fault> {
    rows(connection, CLAIMABLE, params![now.0, bounded(limit)], |row| {
        Ok(RunId::from_bytes(row.get(0)?))
    })
}

const LIVE_NODES: &str = "SELECT count(*) FROM nodes WHERE until >= ?1";

fn live_nodes(connection: &Connection, now: Time) -> Result<u64, Fault> {
    let count = first(connection, LIVE_NODES, [now.0], |row| Ok(row.get::<_, i64>(0)?))?;
    Ok(count.unwrap_or_default() as u64)
}

pub(crate) const NEXT_WAKE: &str = "
    SELECT wake_at FROM runs WHERE wake_at IS NOT NULL AND open = 1 ORDER BY wake_at LIMIT 1";

pub(crate) fn next_wake(connection: &Connection) -> Result<Option<Time>, Fault> {
    first(connection, NEXT_WAKE, [], |row| Ok(Time(row.get(0)?)))
}

const CLAIM: &str = "
    UPDATE runs SET node = ?2, epoch = epoch + 1 WHERE id = ?1 AND open = 1
      AND (node IS NULL OR node = ?2
           OR NOT EXISTS (SELECT 1 FROM nodes WHERE nodes.id = runs.node AND nodes.until >= ?3))";

pub(crate) fn claim(
    connection: &Connection,
    run: RunId,
    node: NodeId,
    now: Time,
) -> Result<Option<RunRecord>, Fault> {
    match change(connection, CLAIM, params![run.to_bytes(), node.to_bytes(), now.0])? {
        0 => Ok(None),
        _ => {
            introduce(connection, node)?;
            get(connection, run)
        }
    }
}

const RELEASE: &str = "
    UPDATE runs SET node = NULL, wakes = max(wakes + ?3, 0), epoch = epoch + (?3 < 0)
    WHERE id = ?1 AND epoch = ?2";

pub(crate) fn release(connection: &Connection, run: RunId, epoch: u64, wakes: i32) -> Result<(), Fault> {
    change(connection, RELEASE, params![run.to_bytes(), epoch as i64, wakes])?;
    Ok(())
}

const WAKE: &str = "UPDATE runs SET wakes = max(wakes + ?2, 0) WHERE id = ?1";

pub(crate) fn wake(connection: &Connection, wake: Wake) -> Result<(), Fault> {
    change(connection, WAKE, params![wake.run.to_bytes(), wake.change])?;
    Ok(())
}

const INTRODUCE: &str = "INSERT INTO nodes (id, until) VALUES (?1, 0) ON CONFLICT DO NOTHING";

/// Makes sure that a node with a lease has a row, by which its runs are found when it dies. It has one from its first
/// heartbeat on, and then this only looks.
pub(crate) fn introduce(connection: &Connection, node: NodeId) -> Result<(), Fault> {
    change(connection, INTRODUCE, [node.to_bytes()])?;
    Ok(())
}

const HEARTBEAT: &str = "
    INSERT INTO nodes (id, until) VALUES (?1, ?2) ON CONFLICT (id) DO UPDATE SET until = excluded.until";

pub(crate) fn heartbeat(connection: &Connection, node: NodeId, until: Time) -> Result<(), Fault> {
    change(connection, HEARTBEAT, params![node.to_bytes(), until.0])?;
    Ok(())
}
