//! All stored state, and the conditional writes.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use toolgate_engine::store::{
    Above, AgentRecord, Append, Deleted, EntityRecord, IdempotencyRecord, KeyRecord, MemberRecord,
    ProjectRecord, RunRecord, RunTree, RunWrite, SpaceRecord, StoreError,
};
use toolgate_engine::usage::{Day, Latency};
use toolgate_kernel::call::ErrorCode;
use toolgate_kernel::event::{Entry, Seq};
use toolgate_kernel::id::{EntityId, KeyId, NodeId, ProjectId, RunId, SpaceId};
use toolgate_kernel::json::Json;
use toolgate_kernel::name::AgentName;
use toolgate_kernel::time::Time;

/// Calls of one tool on one day, counted by outcome and latency.
type Uses = BTreeMap<(Option<ErrorCode>, Latency), u64>;

#[derive(Default)]
pub(super) struct State {
    pub(super) log: HashMap<SpaceId, Vec<Arc<Entry>>>,
    /// The last place of each log that was deleted.
    pub(super) floors: HashMap<SpaceId, Seq>,
    /// How often entries of a log were deleted or rewritten.
    pub(super) rewrites: HashMap<SpaceId, u64>,
    /// What was deleted, and when.
    pub(super) deleted: HashMap<Deleted, (ProjectId, Time)>,
    pub(super) runs: BTreeMap<RunId, RunRecord>,
    /// Runs that may wait for an approval.
    pub(super) asking: HashSet<RunId>,
    pub(super) definitions: HashMap<(ProjectId, String), Json>,
    pub(super) nodes: HashMap<NodeId, Time>,
    pub(super) spaces: BTreeMap<SpaceId, SpaceRecord>,
    pub(super) members: HashMap<(SpaceId, EntityId), MemberRecord>,
    pub(super) entities: HashMap<EntityId, EntityRecord>,
    pub(super) agents: BTreeMap<(ProjectId, AgentName), Agent>,
    pub(super) projects: HashMap<ProjectId, ProjectRecord>,
    pub(super) keys: BTreeMap<KeyId, KeyRecord>,
    pub(super) records: super::records::RecordTable,
    pub(super) answers: HashMap<(ProjectId, String), IdempotencyRecord>,
    pub(super) usage: BTreeMap<(ProjectId, Arc<str>, Day), Uses>,
    pub(super) consumption: super::consumption::ConsumptionTable,
}

impl State {
    /// Checks every precondition, then writes everything; gives the entry, and that of the run at the top if there is one.
    pub(super) fn append(&mut self, append: Append) -> Result<Vec<Arc<Entry>>, StoreError> {
        let (tokens, asks) = (crate::tokens(&append), crate::asks(&append));
        let begins_for = append.begins_for();
        let Append {
            space,
            run,
            events,
            usage,
            consumption,
            above,
            wakes,
            time,
            idempotency,
        } = append;
        self.check_run(space, &run)?;
        self.check_people(&begins_for)?;
        idempotency
            .iter()
            .try_for_each(|record| self.check_answer(record))?;

        let before = self.tail(space);
        let mut entry = Entry {
            space,
            run: None,
            first: Seq(before.0 + Seq::STRIDE),
            time,
            events,
        };
        let last = entry.last();
        match run {
            RunWrite::None => {}
            RunWrite::Create {
                mut record,
                space,
                definitions,
                ..
            } => {
                for stored in definitions.iter() {
                    let key = (record.project, stored.hash.clone());
                    self.definitions
                        .entry(key)
                        .or_insert_with(|| stored.definition.clone());
                }
                entry.run = Some(record.id);
                record.version = last;
                record.updated = time;
                record.lane = self.free_lane(record.space);
                if let Some(space) = space {
                    self.spaces.insert(space.id, without_repeats(*space));
                }
                self.runs.insert(record.id, *record);
            }
            RunWrite::Extend {
                id,
                status,
                wake_at,
                lease,
                ..
            } => {
                entry.run = Some(id);
                let record = self.runs.get_mut(&id).expect("the run was checked");
                record.status = status;
                record.wake_at = wake_at;
                record.version = last;
                record.updated = time;
                super::leases::write(record, lease);
            }
        }
        if let Some(run) = entry.run {
            let record = self.runs.get_mut(&run).expect("the run was written");
            record.tokens = record.tokens.saturating_add(tokens);
            match asks {
                Some(true) => drop(self.asking.insert(run)),
                Some(false) => drop(self.asking.remove(&run)),
                None => {}
            }
        }
        wakes.into_iter().for_each(|wake| self.wake(wake));
        for record in idempotency {
            let forgotten = crate::idempotency_kept_since(record.time);
            self.answers.retain(|_, old| old.time >= forgotten);
            self.answers.insert((record.project, record.key.clone()), record);
        }
        for used in usage {
            let of_day = self
                .usage
                .entry((used.project, used.tool, Day::of(time)))
                .or_default();
            *of_day.entry((used.code, used.latency)).or_default() += 1;
        }
        for mut added in consumption {
            added.user = added.user.filter(|user| !self.is_deleted(*user));
            self.consumption.add(added, Day::of(time));
        }
        let mut entries = vec![Arc::new(entry)];
        entries.extend(above.map(|above| self.entry_above(above, time)));
        for entry in &entries {
            self.log.entry(entry.space).or_default().push(entry.clone());
        }
        Ok(entries)
    }

    fn entry_above(&mut self, above: Above, time: Time) -> Arc<Entry> {
        let mut entry = Entry {
            space: above.space,
            run: None,
            first: Seq(self.tail(above.space).0 + Seq::STRIDE),
            time,
            events: above.events,
        };
        let open = self.runs.get_mut(&above.run);
        if let Some(record) = open.filter(|record| !record.status.is_final()) {
            record.version = entry.last();
            entry.run = Some(above.run);
        }
        Arc::new(entry)
    }

    /// Sequence number of the last event of a space.
    pub(super) fn tail(&self, space: SpaceId) -> Seq {
        let last = self.log.get(&space).and_then(|log| log.last());
        let floor = self.floors.get(&space).copied().unwrap_or_default();
        last.map_or(floor, |entry| entry.last().max(floor))
    }

    fn check_run(&self, space: SpaceId, run: &RunWrite) -> Result<(), StoreError> {
        if !matches!(run, RunWrite::Extend { .. }) && self.deleted.contains_key(&Deleted::Space(space)) {
            return Err(StoreError::SpaceDeleted);
        }
        match run {
            RunWrite::None => Ok(()),
            RunWrite::Create {
                record,
                space,
                descendants_max,
                ..
            } => {
                if descendants_max.is_some_and(|max| self.run_tree(record.root).descendants >= max) {
                    return Err(StoreError::Full);
                }
                let agent = self.agents.get(&(record.project, record.agent.clone()));
                if record.parent.is_none() && agent.is_some_and(|agent| agent.removed) {
                    return Err(StoreError::AgentRemoved);
                }
                let known = |id| self.spaces.contains_key(id) || self.log.contains_key(id);
                let space_exists = space.as_ref().is_some_and(|space| known(&space.id));
                let exists = space_exists || self.runs.contains_key(&record.id);
                if exists {
                    return Err(StoreError::Exists);
                }
                match self.open_run(record.space, &record.agent) {
                    Some(open)
                        if record.parent.is_none() && record.tool.is_none() && !record.status.is_final() =>
                    {
                        Err(StoreError::OpenRun(open.id))
                    }
                    Some(_) | None => Ok(()),
                }
            }
            RunWrite::Extend {
                id, version, epoch, ..
            } => {
                let record = self.runs.get(id).ok_or(StoreError::Conflict)?;
                let read = record.space == space && record.version == *version && record.epoch == *epoch;
                let fits = read && !record.status.is_final();
                if fits { Ok(()) } else { Err(StoreError::Conflict) }
            }
        }
    }

    /// The newest open run of an agent in a space that is no child run.
    pub(super) fn open_run(&self, space: SpaceId, agent: &AgentName) -> Option<&RunRecord> {
        let mut open = self.open_runs(space);
        open.rfind(|run| run.agent == *agent && run.parent.is_none() && run.tool.is_none())
    }

    fn open_runs(&self, space: SpaceId) -> impl DoubleEndedIterator<Item = &RunRecord> {
        let runs = self.runs.values();
        runs.filter(move |run| run.space == space && !run.status.is_final())
    }

    fn free_lane(&self, space: SpaceId) -> u8 {
        let taken: Vec<u8> = self.open_runs(space).map(|run| run.lane).collect();
        crate::free_lane(&taken)
    }

    pub(super) fn run_tree(&self, root: RunId) -> RunTree {
        let below = self
            .runs
            .values()
            .filter(|run| run.root == root && run.parent.is_some());
        let tokens = |run: RunId| self.runs.get(&run).map_or(0, |run| run.tokens);
        below.fold(
            RunTree {
                descendants: 0,
                tokens: tokens(root),
            },
            |tree, run| RunTree {
                descendants: tree.descendants + 1,
                tokens: tree.tokens + tokens(run.id),
            },
        )
    }

    fn check_answer(&self, record: &IdempotencyRecord) -> Result<(), StoreError> {
        match self.answers.get(&(record.project, record.key.clone())) {
            Some(old) if old.time >= crate::idempotency_kept_since(record.time) => Err(StoreError::Exists),
            Some(_) | None => Ok(()),
        }
    }

    pub(super) fn is_deleted(&self, entity: EntityId) -> bool {
        self.deleted.contains_key(&Deleted::Entity(entity))
    }

    pub(super) fn check_people(&self, people: &[EntityId]) -> Result<(), StoreError> {
        match people.iter().any(|person| self.is_deleted(*person)) {
            true => Err(StoreError::EntityDeleted),
            false => Ok(()),
        }
    }

    pub(super) fn create_space(&mut self, space: SpaceRecord) -> Result<(), StoreError> {
        self.check_people(&space.members)?;
        if self.spaces.contains_key(&space.id) {
            return Err(StoreError::Exists);
        }
        self.spaces.insert(space.id, without_repeats(space));
        Ok(())
    }

    pub(super) fn put_entity(&mut self, entity: EntityRecord) -> Result<EntityRecord, StoreError> {
        let same = |old: &&mut EntityRecord| old.project == entity.project && old.subject == entity.subject;
        if let Some(old) = self.entities.values_mut().find(same) {
            old.kind = entity.kind;
            old.name = entity.name;
            old.metadata = entity.metadata;
            old.grants = entity.grants;
            return Ok(old.clone());
        }
        if self.entities.contains_key(&entity.id) {
            return Err(StoreError::Exists);
        }
        self.entities.insert(entity.id, entity.clone());
        Ok(entity)
    }

    pub(super) fn put_project(&mut self, project: ProjectRecord) -> Result<(), StoreError> {
        if let Some(old) = self.projects.get_mut(&project.id) {
            old.jwt_secret = project.jwt_secret;
            old.identity_provider = project.identity_provider;
            old.settings = project.settings;
            return Ok(());
        }
        if self.projects.values().any(|other| other.name == project.name) {
            return Err(StoreError::Exists);
        }
        self.projects.insert(project.id, project);
        Ok(())
    }

    pub(super) fn remove_project(&mut self, id: ProjectId) -> bool {
        let spaces = &self.spaces;
        let is_kept = |space: &SpaceId| {
            spaces
                .get(space)
                .is_none_or(|space: &SpaceRecord| space.project != id)
        };
        self.log.retain(|space, _| is_kept(space));
        self.floors.retain(|space, _| is_kept(space));
        self.rewrites.retain(|space, _| is_kept(space));
        self.deleted.retain(|_, (project, _)| *project != id);
        self.members.retain(|(space, _), _| is_kept(space));
        self.spaces.retain(|_, space| space.project != id);
        self.runs.retain(|_, run| run.project != id);
        self.definitions.retain(|(project, _), _| *project != id);
        self.keys.retain(|_, key| key.project != id);
        self.entities.retain(|_, entity| entity.project != id);
        self.agents.retain(|(project, _), _| *project != id);
        self.answers.retain(|(project, _), _| *project != id);
        self.usage.retain(|(project, ..), _| *project != id);
        self.consumption.remove_project(id);
        self.records.remove_project(id);
        self.projects.remove(&id).is_some()
    }
}

fn without_repeats(mut space: SpaceRecord) -> SpaceRecord {
    let mut members = Vec::with_capacity(space.members.len());
    for member in space.members {
        if !members.contains(&member) {
            members.push(member);
        }
    }
    space.members = members;
    space
}

/// Every revision of an agent, oldest first.
#[derive(Default)]
pub(super) struct Agent {
    pub(super) revisions: Vec<AgentRecord>,
    pub(super) removed: bool,
    /// What it kept was deleted; only of a removed one.
    pub(super) purged: bool,
}

impl Agent {
    /// The newest revision, unless the agent was removed.
    pub(super) fn newest(&self) -> Option<&AgentRecord> {
        self.revisions.last().filter(|_| !self.removed)
    }

    pub(super) fn put(&mut self, project: ProjectId, name: &AgentName, config: Json, created: Time) -> u32 {
        if let Some(newest) = self.newest().filter(|newest| newest.config == config) {
            return newest.revision;
        }
        let revision = self.revisions.len() as u32 + 1;
        let name = name.clone();
        self.revisions.push(AgentRecord {
            project,
            name,
            revision,
            config,
            created,
        });
        self.removed = false;
        self.purged = false;
        revision
    }
}
