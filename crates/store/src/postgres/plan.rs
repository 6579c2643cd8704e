//! Decides on the appends of a batch: which are accepted, and what they write. Touches nothing but what it is given, which
//! the batch has locked, so its decisions hold until the commit.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use toolgate_engine::consumption::Consumed;
use toolgate_engine::store::{
    Above, Append, IdempotencyRecord, LeaseWrite, RunRecord, RunWrite, SpaceRecord, StoreError,
    StoredDefinition,
};
use toolgate_engine::usage::Day;
use toolgate_kernel::call::ErrorCode;
use toolgate_kernel::event::{Seq, Status};
use toolgate_kernel::id::{EntityId, NodeId, ProjectId, RunId, SpaceId};
use toolgate_kernel::name::AgentName;
use toolgate_kernel::time::Time;

use super::consumption::ConsumptionRow;
use crate::text;

/// What the appends of a batch depend on, as it is stored, and then as they change it.
#[derive(Default)]
pub(crate) struct State {
    /// The last place of each space that is locked.
    pub(crate) heads: HashMap<SpaceId, Seq>,
    /// Spaces that are not locked have no log. Otherwise another node may hold them, and their appends have to wait.
    pub(crate) has_every_lock: bool,
    /// Runs that appends name, as far as they exist.
    pub(crate) runs: HashMap<RunId, RunState>,
    /// Open runs of the spaces in which runs begin.
    pub(crate) open: HashMap<SpaceId, Vec<OpenRun>>,
    /// Number of runs below the roots that have a limit.
    pub(crate) descendants: HashMap<RunId, u32>,
    pub(crate) removed_agents: HashSet<(ProjectId, AgentName)>,
    pub(crate) spaces: HashSet<SpaceId>,
    /// Spaces that were deleted, of those in which something begins.
    pub(crate) deleted: HashSet<SpaceId>,
    /// People who were deleted, of those for whom something begins or is consumed.
    pub(crate) deleted_people: HashSet<EntityId>,
    /// Times of the idempotency records that appends name.
    pub(crate) answers: HashMap<(ProjectId, String), Time>,
}

/// The columns of a run that appends change.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RunState {
    pub(crate) space: SpaceId,
    pub(crate) status: Status,
    pub(crate) updated: Time,
    pub(crate) version: Seq,
    pub(crate) wake_at: Option<Time>,
    pub(crate) node: Option<NodeId>,
    pub(crate) epoch: u64,
    pub(crate) tokens: u64,
    pub(crate) asks: bool,
    pub(crate) wakes: u32,
}

/// An open run of a space.
pub(crate) struct OpenRun {
    pub(crate) id: RunId,
    pub(crate) lane: u8,
    pub(crate) agent: AgentName,
    /// Neither a child run nor one call of a tool: an agent may have one of these.
    pub(crate) sole: bool,
}

/// Everything that the accepted appends of a batch write.
#[derive(Default)]
pub(crate) struct Writes {
    pub(crate) entries: Vec<EntryRow>,
    pub(crate) new_spaces: Vec<SpaceRecord>,
    pub(crate) new_runs: Vec<(RunRecord, RunState)>,
    /// Runs whose state is to be stored, beside the new ones.
    pub(crate) changed_runs: BTreeSet<RunId>,
    pub(crate) heads: BTreeSet<SpaceId>,
    pub(crate) definitions: BTreeMap<(ProjectId, String), StoredDefinition>,
    /// Nodes that hold a lease.
    pub(crate) nodes: BTreeSet<NodeId>,
    pub(crate) answers: BTreeMap<(ProjectId, String), IdempotencyRecord>,
    /// Keys whose record is older than a day, and is replaced.
    pub(crate) expired_answers: BTreeSet<(ProjectId, String)>,
    pub(crate) usage: BTreeMap<UsageKey, u64>,
    pub(crate) consumption: BTreeMap<ConsumptionRow, Consumed>,
}

/// Calls that are counted together: project, tool, day, error code and latency class.
pub(crate) type UsageKey = (ProjectId, String, i64, &'static str, u16);

/// A row of the log.
pub(crate) struct EntryRow {
    pub(crate) space: SpaceId,
    pub(crate) first: Seq,
    pub(crate) last: Seq,
    pub(crate) run: Option<RunId>,
    pub(crate) time: Time,
    pub(crate) format: u32,
    pub(crate) events: String,
}

/// What becomes of an append.
pub(crate) enum Decision {
    Accepted(Placed),
    Refused(StoreError),
    /// One of its spaces is locked by another node.
    Waits,
}

/// Where the events of an append are written.
#[derive(Clone, Copy)]
pub(crate) struct Placed {
    pub(crate) first: Seq,
    /// The first place in the log of the run at the top, and that run unless it has ended.
    pub(crate) above: Option<(Seq, Option<RunId>)>,
}

/// Decides on one append after those before it.
pub(crate) fn decide(state: &mut State, writes: &mut Writes, append: &Append, events: &str) -> Decision {
    let above = append.above.as_ref().map(|above| above.space);
    let mut spaces = [Some(append.space), above].into_iter().flatten();
    if !spaces.all(|space| state.heads.contains_key(&space)) {
        return match state.has_every_lock {
            // A run is never in a space without a log, and a log that is gone was removed with its project.
            true => Decision::Refused(StoreError::Conflict),
            false => Decision::Waits,
        };
    }
    let checked = check_run(state, append)
        .and_then(|()| check_people(state, append))
        .and_then(|()| check_answers(state, append));
    match checked {
        Ok(()) => Decision::Accepted(write(state, writes, append, events)),
        Err(why) => Decision::Refused(why),
    }
}

fn check_people(state: &State, append: &Append) -> Result<(), StoreError> {
    let mut people = append.begins_for().into_iter();
    match people.any(|person| state.deleted_people.contains(&person)) {
        true => Err(StoreError::EntityDeleted),
        false => Ok(()),
    }
}

fn check_run(state: &State, append: &Append) -> Result<(), StoreError> {
    match &append.run {
        RunWrite::None | RunWrite::Create { .. } if state.deleted.contains(&append.space) => {
            Err(StoreError::SpaceDeleted)
        }
        RunWrite::None => Ok(()),
        RunWrite::Create {
            record,
            space,
            descendants_max,
            ..
        } => {
            let below = state.descendants.get(&record.root).copied().unwrap_or_default();
            if descendants_max.is_some_and(|max| below >= max) {
                return Err(StoreError::Full);
            }
            let agent = (record.project, record.agent.clone());
            // Child runs end with the run that started them.
            if record.parent.is_none() && state.removed_agents.contains(&agent) {
                return Err(StoreError::AgentRemoved);
            }
            let has_log = state.heads[&append.space] != Seq::default();
            let space_exists = space
                .as_ref()
                .is_some_and(|space| has_log || state.spaces.contains(&space.id));
            if space_exists || state.runs.contains_key(&record.id) {
                return Err(StoreError::Exists);
            }
            match open_run(state, record) {
                Some(open) if is_sole(record) && !record.status.is_final() => Err(StoreError::OpenRun(open)),
                Some(_) | None => Ok(()),
            }
        }
        RunWrite::Extend {
            id, version, epoch, ..
        } => {
            let run = state.runs.get(id).ok_or(StoreError::Conflict)?;
            let read = run.space == append.space && run.version == *version && run.epoch == *epoch;
            match read && !run.status.is_final() {
                true => Ok(()),
                false => Err(StoreError::Conflict),
            }
        }
    }
}

fn is_sole(record: &RunRecord) -> bool {
    record.parent.is_none() && record.tool.is_none()
}

/// The newest open run of the record's agent in its space that no call started.
fn open_run(state: &State, record: &RunRecord) -> Option<RunId> {
    let open = state.open.get(&record.space).into_iter().flatten();
    let same = open.filter(|open| open.sole && open.agent == record.agent);
    same.map(|open| open.id).max()
}

fn check_answers(state: &State, append: &Append) -> Result<(), StoreError> {
    let mut keys = HashSet::new();
    for record in &append.idempotency {
        let known = state.answers.get(&(record.project, record.key.clone()));
        let kept = known.is_some_and(|time| *time >= crate::idempotency_kept_since(record.time));
        if kept || !keys.insert((record.project, &record.key)) {
            return Err(StoreError::Exists);
        }
    }
    Ok(())
}

fn write(state: &mut State, writes: &mut Writes, append: &Append, events: &str) -> Placed {
    let (first, last) = advance(state, writes, append.space, append.events.len());
    let run = match &append.run {
        RunWrite::None => None,
        RunWrite::Create {
            record,
            space,
            definitions,
            ..
        } => {
            if let Some(space) = space {
                state.spaces.insert(space.id);
                writes.new_spaces.push((**space).clone());
            }
            for stored in definitions.iter() {
                let key = (record.project, stored.hash.clone());
                writes.definitions.entry(key).or_insert_with(|| stored.clone());
            }
            create(state, writes, record, append, last);
            Some(record.id)
        }
        RunWrite::Extend { id, .. } => {
            extend(state, writes, append, last);
            Some(*id)
        }
    };
    if let Some(node) = new_holder(&append.run) {
        writes.nodes.insert(node);
    }
    for wake in &append.wakes {
        if let Some(woken) = state.runs.get_mut(&wake.run) {
            woken.wakes = woken.wakes.saturating_add_signed(wake.change);
            writes.changed_runs.insert(wake.run);
        }
    }
    for record in &append.idempotency {
        let key = (record.project, record.key.clone());
        if state.answers.insert(key.clone(), record.time).is_some() {
            writes.expired_answers.insert(key.clone());
        }
        writes.answers.insert(key, record.clone());
    }
    for used in &append.usage {
        let code = used.code.map_or("", ErrorCode::as_str);
        let day = Day::of(append.time).0;
        let key = (used.project, used.tool.to_string(), day, code, used.latency.0);
        *writes.usage.entry(key).or_default() += 1;
    }
    for added in &append.consumption {
        let row = ConsumptionRow {
            project: added.project,
            day: Day::of(append.time),
            agent: added.agent.clone(),
            // None for a reply that was under way when its person was deleted.
            user: added.user.filter(|user| !state.deleted_people.contains(user)),
            model: added.model.clone(),
        };
        let sums = writes.consumption.entry(row).or_default();
        *sums = *sums + added.consumed;
    }
    writes.entries.push(EntryRow {
        space: append.space,
        first,
        last,
        run,
        time: append.time,
        format: text::format(&append.events),
        events: events.to_owned(),
    });
    let above = append.above.as_ref();
    Placed {
        first,
        above: above.map(|above| write_above(state, writes, above, append.time)),
    }
}

/// The first and last place of so many new events of a space.
fn advance(state: &mut State, writes: &mut Writes, space: SpaceId, events: usize) -> (Seq, Seq) {
    let head = state.heads.get_mut(&space).expect("the space is locked");
    let first = Seq(head.0 + Seq::STRIDE);
    head.0 += events as u64 * Seq::STRIDE;
    writes.heads.insert(space);
    (first, *head)
}

fn create(state: &mut State, writes: &mut Writes, record: &RunRecord, append: &Append, last: Seq) {
    let open = state.open.entry(record.space).or_default();
    let taken: Vec<u8> = open.iter().map(|run| run.lane).collect();
    let lane = crate::free_lane(&taken);
    if !record.status.is_final() {
        open.push(OpenRun {
            id: record.id,
            lane,
            agent: record.agent.clone(),
            sole: is_sole(record),
        });
    }
    if record.parent.is_some()
        && let Some(below) = state.descendants.get_mut(&record.root)
    {
        *below += 1;
    }
    let run = RunState {
        space: record.space,
        status: record.status,
        updated: append.time,
        version: last,
        wake_at: record.wake_at,
        node: record.node,
        epoch: record.epoch,
        tokens: crate::tokens(append),
        asks: crate::asks(append).unwrap_or_default() && !record.status.is_final(),
        wakes: record.wakes,
    };
    let record = RunRecord {
        lane,
        ..record.clone()
    };
    writes.new_runs.push((record.clone(), run.clone()));
    state.runs.insert(record.id, run);
}

fn extend(state: &mut State, writes: &mut Writes, append: &Append, last: Seq) {
    let &RunWrite::Extend {
        id,
        status,
        wake_at,
        lease,
        ..
    } = &append.run
    else {
        return;
    };
    let run = state.runs.get_mut(&id).expect("the run was checked");
    run.status = status;
    run.updated = append.time;
    run.version = last;
    run.wake_at = wake_at;
    run.tokens = run.tokens.saturating_add(crate::tokens(append));
    run.asks = crate::asks(append).unwrap_or(run.asks) && !status.is_final();
    match lease {
        LeaseWrite::Keep => {}
        LeaseWrite::Release => run.node = None,
        LeaseWrite::Take(node) => {
            run.node = Some(node);
            run.epoch += 1;
        }
    }
    if status.is_final()
        && let Some(open) = state.open.get_mut(&append.space)
    {
        open.retain(|run| run.id != id);
    }
    writes.changed_runs.insert(id);
}

/// The node that drives the run from this append on, if that is new.
fn new_holder(run: &RunWrite) -> Option<NodeId> {
    match run {
        RunWrite::Create { record, .. } => record.node,
        RunWrite::Extend {
            lease: LeaseWrite::Take(node),
            ..
        } => Some(*node),
        RunWrite::None | RunWrite::Extend { .. } => None,
    }
}

fn write_above(state: &mut State, writes: &mut Writes, above: &Above, time: Time) -> (Seq, Option<RunId>) {
    let (first, last) = advance(state, writes, above.space, above.events.len());
    let open = state.runs.get_mut(&above.run);
    let open = open.filter(|run| !run.status.is_final());
    let run = open.map(|run| {
        run.version = last;
        writes.changed_runs.insert(above.run);
        above.run
    });
    writes.entries.push(EntryRow {
        space: above.space,
        first,
        last,
        run,
        time,
        format: text::format(&above.events),
        events: text::write(&above.events),
    });
    (first, run)
}
