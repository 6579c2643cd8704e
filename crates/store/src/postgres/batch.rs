//! One batch of appends: two round trips and one commit, however many they are.
//!
//! The first trip begins a transaction, locks the spaces and runs, and reads what the decisions depend on. Locks are
//! taken in the order of ids, so that two nodes do not wait for each other. A space that another node holds is left out:
//! its appends are done by themselves, and the others do not wait. The second trip writes and commits.

use std::collections::BTreeSet;

use futures_util::future::{BoxFuture, join_all};
use tokio_postgres::{Error, Row, Statement};
use toolgate_engine::store::{Append, RunWrite};
use toolgate_kernel::id::{EntityId, NodeId, ProjectId, RunId, SpaceId};
use toolgate_kernel::name::AgentName;
use toolgate_kernel::time::Time;
use uuid::Uuid;

use super::column::{
    Id, Param, agent_name, first, get, id, number, optional_id, seq, small, string, text, uuids,
};
use super::fault::{self, Fault};
use super::plan::{OpenRun, RunState, State, Writes};
use super::runs::{self, status};
use super::session::Db;
use super::{agents, consumption, definitions, idempotency, people, retention, spaces, usage};

/// How a batch treats spaces that another node writes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Locking {
    /// Their appends are left out.
    Skip,
    /// It waits for them.
    Wait,
}

/// What the appends of a batch name, each once and in order.
#[derive(Default)]
struct Names {
    spaces: BTreeSet<SpaceId>,
    /// Spaces that may have no head yet.
    begun_spaces: BTreeSet<SpaceId>,
    new_spaces: BTreeSet<SpaceId>,
    runs: BTreeSet<RunId>,
    /// Spaces in which runs begin.
    starts: BTreeSet<SpaceId>,
    roots: BTreeSet<RunId>,
    agents: BTreeSet<(ProjectId, AgentName)>,
    answers: BTreeSet<(ProjectId, String)>,
    /// People for whom something begins or is consumed.
    people: BTreeSet<EntityId>,
}

impl Names {
    fn of<'a>(appends: impl Iterator<Item = &'a Append>) -> Self {
        let mut names = Self::default();
        for append in appends {
            names.spaces.insert(append.space);
            if let Some(above) = &append.above {
                names.spaces.insert(above.space);
                names.begun_spaces.insert(above.space);
                names.runs.insert(above.run);
            }
            match &append.run {
                RunWrite::None => {
                    names.begun_spaces.insert(append.space);
                }
                RunWrite::Create {
                    record,
                    space,
                    descendants_max,
                    ..
                } => {
                    names.begun_spaces.insert(append.space);
                    names.new_spaces.extend(space.as_ref().map(|space| space.id));
                    names.starts.insert(append.space);
                    names.runs.insert(record.id);
                    if descendants_max.is_some() {
                        // Locked, so that what is counted below it stays.
                        names.runs.insert(record.root);
                        names.roots.insert(record.root);
                    }
                    if record.parent.is_none() {
                        names.agents.insert((record.project, record.agent.clone()));
                    }
                }
                RunWrite::Extend { id, .. } => {
                    names.runs.insert(*id);
                }
            }
            names.runs.extend(append.wakes.iter().map(|wake| wake.run));
            names.people.extend(append.begins_for());
            names
                .people
                .extend(append.consumption.iter().filter_map(|added| added.user));
            let keys = append.idempotency.iter();
            names
                .answers
                .extend(keys.map(|record| (record.project, record.key.clone())));
        }
        names
    }
}

const BEGIN_HEADS: &str = "
    INSERT INTO heads (space, last)
    SELECT new.space, 0 FROM unnest($1::uuid[]) AS new (space)
    WHERE NOT EXISTS (SELECT 1 FROM heads WHERE heads.space = new.space)
    ORDER BY new.space
    ON CONFLICT DO NOTHING";
pub(super) const LOCK_HEADS: &str = "
    SELECT space, last FROM heads WHERE space = ANY ($1::uuid[]) ORDER BY space FOR UPDATE";
pub(super) const LOCK_FREE_HEADS: &str = "
    SELECT space, last FROM heads WHERE space = ANY ($1::uuid[]) ORDER BY space FOR UPDATE SKIP LOCKED";
pub(super) const LOCK_RUNS: &str = "
    SELECT id, space, status, updated, version, wake_at, node, epoch, tokens, asks, wakes FROM runs
    WHERE id = ANY ($1::uuid[]) ORDER BY id FOR UPDATE";
pub(super) const OPEN_RUNS: &str = "
    SELECT space, id, lane, agent, parent_run IS NULL AND tool IS NULL FROM runs
    WHERE space = ANY ($1::uuid[]) AND open";
pub(super) const DESCENDANTS: &str = "
    SELECT root, count(*) FROM runs WHERE root = ANY ($1::uuid[]) AND parent_run IS NOT NULL GROUP BY root";
const KNOWN_SPACES: &str = "SELECT id FROM spaces WHERE id = ANY ($1::uuid[])";

/// Begins the transaction, and locks and reads what the appends depend on.
pub(crate) async fn load<'a>(
    db: &Db<'_>,
    appends: impl Iterator<Item = &'a Append>,
    locking: Locking,
) -> Result<State, Fault> {
    let names = Names::of(appends);
    let spaces = uuids(names.spaces);
    let begun = uuids(names.begun_spaces);
    let new_spaces = uuids(names.new_spaces);
    let runs = uuids(names.runs);
    let starts = uuids(names.starts);
    let roots = uuids(names.roots);
    let (projects, agents) = pairs(
        names
            .agents
            .iter()
            .map(|(project, name)| (*project, name.as_str())),
    );
    let agent_locks = agents::lock_keys(&names.agents);
    let people_locks = people::lock_keys(&names.people);
    let named_people = uuids(names.people);
    let (of_answers, answers) = pairs(
        names
            .answers
            .iter()
            .map(|(project, key)| (*project, key.as_str())),
    );

    let lock_heads = match locking {
        Locking::Skip => LOCK_FREE_HEADS,
        Locking::Wait => LOCK_HEADS,
    };
    let mut trip = Trip::new(db);
    trip.add_if(!begun.is_empty(), BEGIN_HEADS, vec![&begun]).await?;
    let heads_at = trip.add(lock_heads, vec![&spaces]).await?;
    let deleted_at = trip
        .add_if(!begun.is_empty(), retention::DELETED_SPACES, vec![&begun])
        .await?;
    let runs_at = trip.add_if(!runs.is_empty(), LOCK_RUNS, vec![&runs]).await?;
    let open_at = trip.add_if(!starts.is_empty(), OPEN_RUNS, vec![&starts]).await?;
    let below_at = trip.add_if(!roots.is_empty(), DESCENDANTS, vec![&roots]).await?;
    let any_agents = !agents.is_empty();
    trip.add_if(any_agents, agents::LOCK_SHARED, vec![&agent_locks])
        .await?;
    let removed_at = trip
        .add_if(any_agents, agents::REMOVED_OF, vec![&projects, &agents])
        .await?;
    let any_people = !named_people.is_empty();
    trip.add_if(any_people, people::LOCK_SHARED, vec![&people_locks])
        .await?;
    let deleted_people_at = trip
        .add_if(any_people, people::DELETED_OF, vec![&named_people])
        .await?;
    let spaces_at = trip
        .add_if(!new_spaces.is_empty(), KNOWN_SPACES, vec![&new_spaces])
        .await?;
    let answers_at = trip
        .add_if(
            !answers.is_empty(),
            idempotency::TIMES,
            vec![&of_answers, &answers],
        )
        .await?;
    let rows = trip.begin_and_run().await?;

    let of = |at: Option<usize>| at.map_or(&[][..], |at| rows[at].as_slice()).iter();
    let mut state = State {
        has_every_lock: locking == Locking::Wait,
        ..State::default()
    };
    for row in rows[heads_at].iter() {
        state.heads.insert(id(row, 0)?, seq(row, 1)?);
    }
    for row in of(runs_at) {
        state.runs.insert(id(row, 0)?, run_state(row)?);
    }
    for row in of(open_at) {
        let open = OpenRun {
            id: id(row, 1)?,
            lane: small(row, 2)?,
            agent: agent_name(row, 3)?,
            sole: get(row, 4)?,
        };
        state.open.entry(id(row, 0)?).or_default().push(open);
    }
    for row in of(below_at) {
        state.descendants.insert(id(row, 0)?, small(row, 1)?);
    }
    // Roots without runs below them have no row.
    for root in roots {
        state.descendants.entry(RunId::of(root)).or_default();
    }
    for row in of(removed_at) {
        state.removed_agents.insert((id(row, 0)?, agent_name(row, 1)?));
    }
    for row in of(deleted_at) {
        state.deleted.insert(id(row, 0)?);
    }
    for row in of(deleted_people_at) {
        state.deleted_people.insert(id(row, 0)?);
    }
    for row in of(spaces_at) {
        state.spaces.insert(id(row, 0)?);
    }
    for row in of(answers_at) {
        let key = (id(row, 0)?, string(row, 1)?);
        state.answers.insert(key, Time(get(row, 2)?));
    }
    Ok(state)
}

fn run_state(row: &Row) -> Result<RunState, Fault> {
    Ok(RunState {
        space: id(row, 1)?,
        status: status(&get::<String>(row, 2)?)?,
        updated: Time(get(row, 3)?),
        version: seq(row, 4)?,
        wake_at: get::<Option<i64>>(row, 5)?.map(Time),
        node: optional_id(row, 6)?,
        epoch: number(row, 7)?,
        tokens: number(row, 8)?,
        asks: get(row, 9)?,
        wakes: small(row, 10)?,
    })
}

/// Ids and texts as two parameters.
pub(super) fn pairs<'a, I: Id>(of: impl Iterator<Item = (I, &'a str)>) -> (Vec<Uuid>, Vec<String>) {
    of.map(|(id, name)| (id.uuid(), text(name).into_owned())).unzip()
}

const INSERT_LOG: &str = "
    INSERT INTO log (space, first, last, run, time, format, events)
    SELECT * FROM unnest($1::uuid[], $2::bigint[], $3::bigint[], $4::uuid[], $5::bigint[], $6::bigint[], $7::text[])";
pub(super) const ADVANCE_HEADS: &str = "
    UPDATE heads SET last = new.last FROM unnest($1::uuid[], $2::bigint[]) AS new (space, last)
    WHERE heads.space = new.space";
const INTRODUCE: &str = "
    INSERT INTO nodes (id, until) SELECT id, 0 FROM unnest($1::uuid[]) AS new (id) ON CONFLICT DO NOTHING";

/// How the second trip of a batch ended.
pub(crate) enum Stored {
    Committed,
    /// A statement failed: nothing is stored.
    Undone(Fault),
    /// The connection was lost: nobody knows yet.
    Unknown,
}

/// Writes what was accepted and commits.
pub(crate) async fn store(
    db: &Db<'_>,
    state: &State,
    writes: &Writes,
    shard: i64,
    known_nodes: &BTreeSet<NodeId>,
) -> Result<Stored, Fault> {
    let entries = &writes.entries;
    let log_spaces = uuids(entries.iter().map(|entry| entry.space));
    let firsts: Vec<i64> = entries.iter().map(|entry| entry.first.0 as i64).collect();
    let lasts: Vec<i64> = entries.iter().map(|entry| entry.last.0 as i64).collect();
    let log_runs: Vec<Option<Uuid>> = entries.iter().map(|entry| entry.run.map(Id::uuid)).collect();
    let times: Vec<i64> = entries.iter().map(|entry| entry.time.0).collect();
    let formats: Vec<i64> = entries.iter().map(|entry| i64::from(entry.format)).collect();
    let events: Vec<&str> = entries.iter().map(|entry| entry.events.as_str()).collect();
    let heads = uuids(writes.heads.iter().copied());
    let places: Vec<i64> = writes
        .heads
        .iter()
        .map(|space| state.heads[space].0 as i64)
        .collect();
    let nodes = uuids(writes.nodes.difference(known_nodes).copied());
    let new_spaces = spaces::Columns::of(&writes.new_spaces);
    let new_runs = runs::Columns::of(&writes.new_runs);
    let changed = runs::Changes::of(writes.changed_runs.iter().map(|id| (*id, &state.runs[id])));
    let definitions = definitions::Columns::of(&writes.definitions);
    let answers = idempotency::Columns::of(&writes.answers);
    let (of_expired, expired) = pairs(
        writes
            .expired_answers
            .iter()
            .map(|(project, key)| (*project, key.as_str())),
    );
    let usage = usage::Columns::of(&writes.usage, shard);
    let consumption = consumption::Columns::of(&writes.consumption, shard);

    let mut trip = Trip::new(db);
    new_spaces.add_to(&mut trip).await?;
    new_runs.add_to(&mut trip).await?;
    changed.add_to(&mut trip).await?;
    definitions.add_to(&mut trip).await?;
    trip.add_if(!nodes.is_empty(), INTRODUCE, vec![&nodes]).await?;
    trip.add_if(
        !expired.is_empty(),
        idempotency::REMOVE,
        vec![&of_expired, &expired],
    )
    .await?;
    answers.add_to(&mut trip).await?;
    trip.add(
        INSERT_LOG,
        vec![&log_spaces, &firsts, &lasts, &log_runs, &times, &formats, &events],
    )
    .await?;
    trip.add(ADVANCE_HEADS, vec![&heads, &places]).await?;
    // Last, because other nodes may change the same rows and have to wait until the commit.
    usage.add_to(&mut trip).await?;
    consumption.add_to(&mut trip).await?;
    Ok(trip.run_and_commit().await)
}

const IS_STORED: &str = "
    SELECT 1 FROM log WHERE space = $1 AND first = $2 AND last = $3 AND time = $4 AND events = $5";

/// Whether a batch whose commit got no answer is stored. Waits for its transaction to end, if the server still works on it.
pub(crate) async fn is_stored(db: &Db<'_>, writes: &Writes) -> Result<bool, Fault> {
    let Some(entry) = writes.entries.first() else {
        return Ok(true);
    };
    let space = entry.space.uuid();
    // Whoever commits holds this lock until it has.
    db.query(LOCK_HEADS, &[&vec![space]]).await?;
    let (place, last) = (entry.first.0 as i64, entry.last.0 as i64);
    let row: [Param<'_>; 5] = [&space, &place, &last, &entry.time.0, &entry.events];
    Ok(first(db, IS_STORED, &row, |_| Ok(())).await?.is_some())
}

/// Statements that are sent together, and answered one after the other.
pub(super) struct Trip<'a> {
    db: &'a Db<'a>,
    statements: Vec<(Statement, Vec<Param<'a>>)>,
}

impl<'a> Trip<'a> {
    pub(super) fn new(db: &'a Db<'a>) -> Self {
        Self {
            db,
            statements: Vec::new(),
        }
    }

    /// Adds a statement and gives its place. It is prepared now: what is sent together does not wait for that.
    pub(super) async fn add(&mut self, sql: &str, params: Vec<Param<'a>>) -> Result<usize, Fault> {
        let statement = self.db.prepare(sql).await?;
        self.statements.push((statement, params));
        Ok(self.statements.len() - 1)
    }

    /// Adds a statement if it has anything to do.
    pub(super) async fn add_if(
        &mut self,
        needed: bool,
        sql: &str,
        params: Vec<Param<'a>>,
    ) -> Result<Option<usize>, Fault> {
        match needed {
            true => Ok(Some(self.add(sql, params).await?)),
            false => Ok(None),
        }
    }

    /// Runs the statements within the transaction that the connection is in.
    pub(super) async fn run(&self) -> Result<(), Fault> {
        for answer in self.send(None, None).await? {
            answer?;
        }
        Ok(())
    }

    /// Begins a transaction and gives the rows of each statement.
    async fn begin_and_run(&self) -> Result<Vec<Vec<Row>>, Fault> {
        let mut answers = self.send(Some("BEGIN"), None).await?;
        answers.remove(0)?;
        Ok(answers.into_iter().collect::<Result<_, Error>>()?)
    }

    /// Runs the statements and commits. After a statement that fails, the server takes the commit for a rollback.
    async fn run_and_commit(&self) -> Stored {
        let Ok(answers) = self.send(None, Some("COMMIT")).await else {
            return Stored::Unknown;
        };
        match answers.into_iter().find_map(Result::err) {
            None => Stored::Committed,
            Some(error) if fault::is_lost(&error) => Stored::Unknown,
            Some(error) => Stored::Undone(error.into()),
        }
    }

    async fn send(
        &self,
        before: Option<&'static str>,
        after: Option<&'static str>,
    ) -> Result<Vec<Result<Vec<Row>, Error>>, Fault> {
        let client = self.db.client;
        let control = |sql: &'static str| -> BoxFuture<'_, Result<Vec<Row>, Error>> {
            Box::pin(async move { client.batch_execute(sql).await.map(|()| Vec::new()) })
        };
        let mut asked: Vec<BoxFuture<'_, Result<Vec<Row>, Error>>> = Vec::new();
        asked.extend(before.map(control));
        for (statement, params) in &self.statements {
            asked.push(Box::pin(client.query(statement, params)));
        }
        asked.extend(after.map(control));
        // Each is sent when it is first polled, which happens in this order.
        self.db.answer(join_all(asked)).await
    }
}
