//! The rows of runs: status, lease and wake-up time of each.

use std::time::Duration;

use async_trait::async_trait;
use tokio_postgres::Row;
use toolgate_engine::activity::Activity;
use toolgate_engine::consumption::{Consumed, Consumer, ConsumptionFilter, ConsumptionKey, Days};
use toolgate_engine::store::{
    AskingFilter, RecentFilter, RunFilter, RunPage, RunRecord, RunTree, Runs, StoreError,
};
use toolgate_engine::usage::{Day, UsageRecord};
use toolgate_kernel::event::Status;
use toolgate_kernel::id::{CallId, NodeId, ProjectId, RunId, SpaceId};
use toolgate_kernel::name::{AgentName, ToolName};
use toolgate_kernel::time::Time;
use uuid::Uuid;

use super::attempts::{read, snapshot};
use super::batch::Trip;
use super::column::{
    Id, agent_name, bounded, first, get, id, number, optional_id, optional_string, rows, seq, small, text,
    tool_name, uuids,
};
use super::fault::Fault;
use super::plan::RunState;
use super::session::Db;
use super::{PostgresStore, activity, consumption, run_lists, usage};

#[async_trait]
impl Runs for PostgresStore {
    async fn run(&self, run: RunId) -> Result<Option<RunRecord>, StoreError> {
        read!(self, db => of(db, run))
    }
    async fn runs(&self, project: ProjectId, filter: RunFilter) -> Result<RunPage, StoreError> {
        read!(self, db => run_lists::list(db, project, &filter))
    }
    async fn asking(&self, project: ProjectId, filter: AskingFilter) -> Result<RunPage, StoreError> {
        read!(self, db => run_lists::asking(db, project, &filter))
    }
    async fn recent_runs(
        &self,
        project: ProjectId,
        filter: RecentFilter,
    ) -> Result<(Vec<RunRecord>, u64), StoreError> {
        read!(self, db => run_lists::recent(db, project, &filter))
    }
    async fn open_run(&self, space: SpaceId, agent: &AgentName) -> Result<Option<RunRecord>, StoreError> {
        read!(self, db => open(db, space, agent))
    }
    async fn run_tree(&self, root: RunId) -> Result<RunTree, StoreError> {
        read!(self, db => run_tree(db, root))
    }
    async fn claimable(&self, now: Time, limit: usize) -> Result<Vec<RunId>, StoreError> {
        read!(self, db => claimable(db, self.lease, now, limit))
    }
    async fn claim(&self, run: RunId, node: NodeId, now: Time) -> Result<Option<RunRecord>, StoreError> {
        read!(self, db => claim(db, self.lease, run, node, now))
    }
    async fn release(&self, run: RunId, epoch: u64, wakes: i32) -> Result<(), StoreError> {
        read!(self, db => release(db, run, epoch, wakes))
    }
    async fn live_nodes(&self, now: Time) -> Result<u64, StoreError> {
        read!(self, db => live_nodes(db, self.lease, now))
    }
    async fn heartbeat(&self, node: NodeId, until: Time) -> Result<(), StoreError> {
        // It comes by every few seconds, and a node that must not use the database any more has to seem dead to others.
        self.check_version().await?;
        read!(self, db => heartbeat(db, self.lease, node, until))
    }
    async fn next_wake(&self) -> Result<Option<Time>, StoreError> {
        read!(self, db => next_wake(db))
    }
    async fn activity(&self, project: ProjectId, since: Time) -> Result<Activity, StoreError> {
        snapshot!(self, db => activity::since(db, project, since))
    }
    async fn usage(
        &self,
        project: ProjectId,
        tool: &str,
        since: Day,
    ) -> Result<Vec<UsageRecord>, StoreError> {
        read!(self, db => usage::since(db, project, tool, since))
    }
    async fn consumed(
        &self,
        project: ProjectId,
        consumer: Consumer,
        days: Days,
    ) -> Result<Consumed, StoreError> {
        read!(self, db => consumption::sum(db, project, &consumer, days))
    }
    async fn consumption(
        &self,
        project: ProjectId,
        filter: ConsumptionFilter,
    ) -> Result<Vec<(ConsumptionKey, Consumed)>, StoreError> {
        read!(self, db => consumption::groups(db, project, &filter))
    }
}

macro_rules! columns {
    () => {
        "id, project, space, agent, revision, parent_run, parent_call, root, status, created, updated, version, wake_at, node,
         epoch, lane, wakes, tool, \"user\", title, tokens"
    };
}
macro_rules! select {
    ($($rest:tt)*) => {
        concat!("SELECT ", columns!(), " FROM runs ", $($rest)*)
    };
}
pub(super) use {columns, select};

/// What `record` reads, in its order.
pub(super) const COLUMNS: &str = columns!();

const GET: &str = select!("WHERE id = $1");

pub(super) async fn of(db: &Db<'_>, run: RunId) -> Result<Option<RunRecord>, Fault> {
    first(db, GET, &[&run.uuid()], record).await
}

/// The run of a row that [`select`] has read.
pub(super) const ENDED_TREES: &str = select!(
    "WHERE project = $1 AND NOT open AND parent_run IS NULL AND updated <= $2
       AND NOT EXISTS (SELECT 1 FROM runs AS below
                       WHERE below.root = runs.id AND below.parent_run IS NOT NULL
                         AND (below.open OR below.updated > $2))
     ORDER BY updated LIMIT $3"
);

/// Runs at the top of trees in which every run has ended by `before`.
pub(super) async fn ended_trees(
    db: &Db<'_>,
    project: ProjectId,
    before: Time,
    limit: usize,
) -> Result<Vec<RunRecord>, Fault> {
    rows(
        db,
        ENDED_TREES,
        &[&project.uuid(), &before.0, &bounded(limit)],
        record,
    )
    .await
}

pub(super) fn record(row: &Row) -> Result<RunRecord, Fault> {
    let parent = optional_id::<RunId>(row, 5)?;
    let call = get::<Option<i64>>(row, 6)?;
    Ok(RunRecord {
        id: id(row, 0)?,
        project: id(row, 1)?,
        space: id(row, 2)?,
        agent: agent_name(row, 3)?,
        revision: small(row, 4)?,
        parent: parent.zip(call).map(|(run, number)| CallId {
            run,
            number: number as u32,
        }),
        root: id(row, 7)?,
        status: status(&get::<String>(row, 8)?)?,
        created: Time(get(row, 9)?),
        updated: Time(get(row, 10)?),
        version: seq(row, 11)?,
        wake_at: get::<Option<i64>>(row, 12)?.map(Time),
        node: optional_id(row, 13)?,
        epoch: number(row, 14)?,
        lane: small(row, 15)?,
        wakes: small(row, 16)?,
        tool: tool_name(row, 17)?,
        user: optional_id(row, 18)?,
        title: optional_string(row, 19)?.map(Into::into),
        tokens: number(row, 20)?,
    })
}

pub(super) fn status(text: &str) -> Result<Status, Fault> {
    Status::parse(text).ok_or_else(|| StoreError::Corrupt(format!("a run in status {text:?}")).into())
}

pub(super) const OPEN_RUN: &str = select!(
    "WHERE space = $1 AND open AND agent = $2 AND parent_run IS NULL AND tool IS NULL ORDER BY id DESC LIMIT 1"
);

async fn open(db: &Db<'_>, space: SpaceId, agent: &AgentName) -> Result<Option<RunRecord>, Fault> {
    first(db, OPEN_RUN, &[&space.uuid(), &agent.as_str()], record).await
}

// Two queries, so that a run without child runs needs no entry in the index of run trees.
pub(super) const TREE: &str = "
    SELECT count(*), (coalesce(sum(tokens), 0) + coalesce((SELECT tokens FROM runs WHERE id = $1), 0))::bigint
    FROM runs WHERE root = $1 AND parent_run IS NOT NULL";

async fn run_tree(db: &Db<'_>, root: RunId) -> Result<RunTree, Fault> {
    let tree = first(db, TREE, &[&root.uuid()], |row| {
        Ok(RunTree {
            descendants: small(row, 0)?,
            tokens: number(row, 1)?,
        })
    })
    .await;
    Ok(tree?.unwrap_or_default())
}

/// The time of the server, unless the parameter in front of it is a time. That of the statement's begin: one that has waited
/// for a lock judges a lease as it was before, and takes none that was prolonged meanwhile.
macro_rules! or_server_time {
    ($parameter:literal) => {
        concat!(
            "coalesce(",
            $parameter,
            "::bigint, (extract(epoch FROM statement_timestamp()) * 1000)::bigint)"
        )
    };
}
pub(super) use or_server_time;

/// The caller's time if leases go by that, and none if they go by the server's.
fn lease_time(lease: Option<Duration>, now: Time) -> Option<i64> {
    lease.is_none().then_some(now.0)
}

// In the order of urgency: were more queued than are asked for, nobody would see a deadline behind them.
pub(super) const CLAIMABLE: &str = concat!(
    "(SELECT runs.id, 1 AS urgency FROM nodes JOIN runs ON runs.node = nodes.id AND runs.open
     WHERE nodes.until < ",
    or_server_time!("$3"),
    " LIMIT $2)
    UNION ALL
    (SELECT id, 2 FROM runs WHERE open AND wakes > 0 AND node IS NULL AND NOT queued LIMIT $2)
    UNION ALL
    (SELECT id, 3 FROM runs WHERE open AND wake_at IS NOT NULL AND wake_at <= $1 AND node IS NULL AND wakes = 0
        AND NOT queued ORDER BY wake_at LIMIT $2)
    UNION ALL
    (SELECT id, 4 FROM runs WHERE queued AND node IS NULL LIMIT $2)
    ORDER BY urgency LIMIT $2"
);

async fn claimable(
    db: &Db<'_>,
    lease: Option<Duration>,
    now: Time,
    limit: usize,
) -> Result<Vec<RunId>, Fault> {
    let values: [super::column::Param<'_>; 3] = [&now.0, &bounded(limit), &lease_time(lease, now)];
    rows(db, CLAIMABLE, &values, |row| id(row, 0)).await
}

pub(super) const NEXT_WAKE: &str = "
    SELECT wake_at FROM runs WHERE open AND wake_at IS NOT NULL ORDER BY wake_at LIMIT 1";

async fn next_wake(db: &Db<'_>) -> Result<Option<Time>, Fault> {
    first(db, NEXT_WAKE, &[], |row| Ok(Time(get(row, 0)?))).await
}

// Waits for a write to the run that is under way, and then looks again: a run that is merely being written to has no holder
// because of that. `nodes` gets its row in the same statement, so that whoever holds a lease has one.
pub(super) const CLAIM: &str = concat!(
    "WITH claimed AS (
        UPDATE runs SET node = $2, epoch = epoch + 1 WHERE id = $1 AND open
          AND (node IS NULL OR node = $2
               OR NOT EXISTS (SELECT 1 FROM nodes WHERE nodes.id = runs.node AND nodes.until >= ",
    or_server_time!("$3"),
    "))
        RETURNING *),
    introduced AS (INSERT INTO nodes (id, until) SELECT $2, 0 FROM claimed ON CONFLICT DO NOTHING)
    SELECT id, project, space, agent, revision, parent_run, parent_call, root, status, created,
           updated, version, wake_at, node, epoch, lane, wakes, tool, \"user\", title, tokens FROM claimed"
);

async fn claim(
    db: &Db<'_>,
    lease: Option<Duration>,
    run: RunId,
    node: NodeId,
    now: Time,
) -> Result<Option<RunRecord>, Fault> {
    let claimed = db
        .query_alone(CLAIM, &[&run.uuid(), &node.uuid(), &lease_time(lease, now)])
        .await?;
    claimed.first().map(record).transpose()
}

const RELEASE: &str = "
    UPDATE runs SET node = NULL, wakes = greatest(wakes + $3, 0), epoch = epoch + ($3 < 0)::int
    WHERE id = $1 AND epoch = $2";

async fn release(db: &Db<'_>, run: RunId, epoch: u64, wakes: i32) -> Result<(), Fault> {
    let values: [super::column::Param<'_>; 3] = [&run.uuid(), &(epoch as i64), &i64::from(wakes)];
    db.execute_alone(RELEASE, &values).await.map(drop)
}

const LIVE_NODES: &str = concat!(
    "SELECT count(*) FROM nodes WHERE until >= ",
    or_server_time!("$1")
);

async fn live_nodes(db: &Db<'_>, lease: Option<Duration>, now: Time) -> Result<u64, Fault> {
    let count = first(db, LIVE_NODES, &[&lease_time(lease, now)], |row| number(row, 0)).await?;
    Ok(count.unwrap_or_default())
}

const HEARTBEAT: &str = concat!(
    "INSERT INTO nodes (id, until) VALUES ($1, ",
    or_server_time!("$2"),
    " + $3) ON CONFLICT (id) DO UPDATE SET until = excluded.until"
);

async fn heartbeat(db: &Db<'_>, lease: Option<Duration>, node: NodeId, until: Time) -> Result<(), Fault> {
    // A heartbeat that ends at zero is the last one, by every clock.
    let (until, lasts) = match lease.filter(|_| until.0 > 0) {
        Some(lease) => (None, lease.as_millis() as i64),
        None => (Some(until.0), 0),
    };
    db.execute_alone(HEARTBEAT, &[&node.uuid(), &until, &lasts])
        .await
        .map(drop)
}

const CREATE: &str = "
    INSERT INTO runs (id, project, space, agent, revision, parent_run, parent_call, root, status, created, updated,
                      version, wake_at, node, epoch, tokens, lane, wakes, open, queued, asks, tool, \"user\", title)
    SELECT * FROM unnest($1::uuid[], $2::uuid[], $3::uuid[], $4::text[], $5::bigint[], $6::uuid[], $7::bigint[],
        $8::uuid[], $9::text[], $10::bigint[], $11::bigint[], $12::bigint[], $13::bigint[], $14::uuid[], $15::bigint[],
        $16::bigint[], $17::bigint[], $18::bigint[], $19::boolean[], $20::boolean[], $21::boolean[], $22::text[],
        $23::uuid[], $24::text[])";

/// New runs, as parameters.
#[derive(Default)]
pub(super) struct Columns<'a> {
    ids: Vec<Uuid>,
    projects: Vec<Uuid>,
    spaces: Vec<Uuid>,
    agents: Vec<&'a str>,
    revisions: Vec<i64>,
    parent_runs: Vec<Option<Uuid>>,
    parent_calls: Vec<Option<i64>>,
    roots: Vec<Uuid>,
    created: Vec<i64>,
    lanes: Vec<i64>,
    tools: Vec<Option<&'a str>>,
    users: Vec<Option<Uuid>>,
    titles: Vec<Option<String>>,
    states: States,
}

impl<'a> Columns<'a> {
    pub(super) fn of(runs: &'a [(RunRecord, RunState)]) -> Self {
        let mut columns = Self::default();
        for (record, state) in runs {
            columns.ids.push(record.id.uuid());
            columns.projects.push(record.project.uuid());
            columns.spaces.push(record.space.uuid());
            columns.agents.push(record.agent.as_str());
            columns.revisions.push(i64::from(record.revision));
            columns
                .parent_runs
                .push(record.parent.map(|call| call.run.uuid()));
            columns
                .parent_calls
                .push(record.parent.map(|call| i64::from(call.number)));
            columns.roots.push(record.root.uuid());
            columns.created.push(record.created.0);
            columns.lanes.push(i64::from(record.lane));
            columns.tools.push(record.tool.as_ref().map(ToolName::as_str));
            columns.users.push(record.user.map(Id::uuid));
            columns
                .titles
                .push(record.title.as_deref().map(|title| text(title).into_owned()));
            columns.states.push(state);
        }
        columns
    }

    pub(super) async fn add_to<'t>(&'t self, trip: &mut Trip<'t>) -> Result<(), Fault> {
        let states = &self.states;
        let params = vec![
            &self.ids as _,
            &self.projects as _,
            &self.spaces as _,
            &self.agents as _,
            &self.revisions as _,
            &self.parent_runs as _,
            &self.parent_calls as _,
            &self.roots as _,
            &states.statuses as _,
            &self.created as _,
            &states.updated as _,
            &states.versions as _,
            &states.wake_at as _,
            &states.nodes as _,
            &states.epochs as _,
            &states.tokens as _,
            &self.lanes as _,
            &states.wakes as _,
            &states.open as _,
            &states.queued as _,
            &states.asks as _,
            &self.tools as _,
            &self.users as _,
            &self.titles as _,
        ];
        trip.add_if(!self.ids.is_empty(), CREATE, params).await.map(drop)
    }
}

pub(super) const CHANGE: &str = "
    UPDATE runs SET status = new.status, updated = new.updated, version = new.version, wake_at = new.wake_at,
        node = new.node, epoch = new.epoch, tokens = new.tokens, wakes = new.wakes, open = new.open,
        queued = new.queued, asks = new.asks
    FROM unnest($1::uuid[], $2::text[], $3::bigint[], $4::bigint[], $5::bigint[], $6::uuid[], $7::bigint[],
        $8::bigint[], $9::bigint[], $10::boolean[], $11::boolean[], $12::boolean[])
        AS new (id, status, updated, version, wake_at, node, epoch, tokens, wakes, open, queued, asks)
    WHERE runs.id = new.id";

/// New states of runs, as parameters.
pub(super) struct Changes {
    ids: Vec<Uuid>,
    states: States,
}

impl Changes {
    pub(super) fn of<'a>(changed: impl Iterator<Item = (RunId, &'a RunState)>) -> Self {
        let (ids, states): (Vec<RunId>, Vec<&RunState>) = changed.unzip();
        let mut columns = States::default();
        states.into_iter().for_each(|state| columns.push(state));
        Self {
            ids: uuids(ids),
            states: columns,
        }
    }

    pub(super) async fn add_to<'t>(&'t self, trip: &mut Trip<'t>) -> Result<(), Fault> {
        let states = &self.states;
        let params = vec![
            &self.ids as _,
            &states.statuses as _,
            &states.updated as _,
            &states.versions as _,
            &states.wake_at as _,
            &states.nodes as _,
            &states.epochs as _,
            &states.tokens as _,
            &states.wakes as _,
            &states.open as _,
            &states.queued as _,
            &states.asks as _,
        ];
        trip.add_if(!self.ids.is_empty(), CHANGE, params).await.map(drop)
    }
}

/// States of runs, column by column.
#[derive(Default)]
struct States {
    statuses: Vec<&'static str>,
    updated: Vec<i64>,
    versions: Vec<i64>,
    wake_at: Vec<Option<i64>>,
    nodes: Vec<Option<Uuid>>,
    epochs: Vec<i64>,
    tokens: Vec<i64>,
    wakes: Vec<i64>,
    open: Vec<bool>,
    queued: Vec<bool>,
    asks: Vec<bool>,
}

impl States {
    fn push(&mut self, state: &RunState) {
        self.statuses.push(state.status.as_str());
        self.updated.push(state.updated.0);
        self.versions.push(state.version.0 as i64);
        self.wake_at.push(state.wake_at.map(|at| at.0));
        self.nodes.push(state.node.map(Id::uuid));
        self.epochs.push(state.epoch as i64);
        self.tokens.push(state.tokens as i64);
        self.wakes.push(i64::from(state.wakes));
        self.open.push(!state.status.is_final());
        self.queued.push(state.status == Status::Queued);
        self.asks.push(state.asks);
    }
}
