//! What a principal may reach: its project, and for a user the spaces it is a member of. Everything else is
//! not there for it: 404, not 403.

use std::time::Duration;

use toolgate_engine::store::{RunRecord, SpaceRecord};
use toolgate_kernel::id::{EntityId, ProjectId, RunId, SpaceId};
use toolgate_kernel::name::AgentName;

use crate::Door;
use crate::auth::Principal;
use crate::problem::Refusal;

/// How long it is remembered where a run stands. It never moves, so this bounds memory, not staleness.
pub(crate) const PLACE_KNOWN: Duration = Duration::from_secs(3600);
/// Runs and spaces that are remembered.
pub(crate) const PLACES_MAX: usize = 20_000;

impl Door {
    /// A run's row, when `who` may reach it.
    pub async fn run(&self, who: &Principal, run: RunId) -> Result<RunRecord, Refusal> {
        let missing = || Refusal::not_found("run");
        let record = self.engine.store().run(run).await?.ok_or_else(missing)?;
        self.runs.put(run, (record.project, record.space));
        if record.project != who.project {
            return Err(missing());
        }
        if who.user.is_some() {
            self.space(who, record.space).await.map_err(|_| missing())?;
        }
        Ok(record)
    }

    /// The space of a run that `who` may reach. `what` names the thing that was asked for.
    pub async fn reach_run(&self, who: &Principal, run: RunId, what: &str) -> Result<SpaceId, Refusal> {
        let missing = || Refusal::not_found(what);
        let (project, space) = match self.runs.get(&run) {
            Some(place) => place,
            None => {
                let record = self.engine.store().run(run).await?.ok_or_else(missing)?;
                self.runs.put(run, (record.project, record.space));
                (record.project, record.space)
            }
        };
        if project != who.project {
            return Err(missing());
        }
        if who.user.is_some() && !self.is_member(who, space).await? {
            return Err(missing());
        }
        Ok(space)
    }

    /// A space's row, when `who` may reach it.
    pub async fn space(&self, who: &Principal, space: SpaceId) -> Result<SpaceRecord, Refusal> {
        let record = self.engine.store().space(space).await?;
        record
            .filter(|record| reaches(who, record))
            .ok_or_else(|| Refusal::not_found("space"))
    }

    /// Refuses unless `who` may reach the space. A backend's spaces are remembered.
    pub async fn reach_space(&self, who: &Principal, space: SpaceId) -> Result<(), Refusal> {
        if who.user.is_none() && self.spaces.get(&space) == Some(who.project) {
            return Ok(());
        }
        let record = self.space(who, space).await?;
        self.spaces.put(space, record.project);
        Ok(())
    }

    /// Whether `who` is still let into a space that it reached before.
    pub async fn is_member(&self, who: &Principal, space: SpaceId) -> Result<bool, Refusal> {
        let record = self.engine.store().space(space).await?;
        Ok(record.is_some_and(|record| reaches(who, &record)))
    }

    /// Remembers a run that was just made.
    pub fn remember(&self, project: ProjectId, run: RunId, space: SpaceId) {
        self.runs.put(run, (project, space));
        self.spaces.put(space, project);
    }

    /// The entity that a backend means, by id or subject; a subject that is new makes one.
    pub async fn entity(&self, project: ProjectId, named: &str) -> Result<EntityId, Refusal> {
        match named.starts_with("ent_") {
            true => self.known_entity(project, named).await,
            false => Ok(self.entity_of(project, named.to_owned()).await?),
        }
    }

    /// The entity that a backend means, by id or subject.
    pub async fn known_entity(&self, project: ProjectId, named: &str) -> Result<EntityId, Refusal> {
        let store = self.engine.store();
        let record = match named.parse() {
            Ok(id) => store.entity(id).await?,
            Err(_) => store.entity_of(project, named).await?,
        };
        let record = record.filter(|record| record.project == project);
        record
            .map(|record| record.id)
            .ok_or_else(|| Refusal::missing(format!("there is no entity {named:?}")))
    }

    /// Refuses unless the project has this agent.
    pub async fn has_agent(&self, project: ProjectId, agent: &AgentName) -> Result<(), Refusal> {
        match self.engine.store().agent(project, agent, None).await? {
            Some(_) => Ok(()),
            None => Err(toolgate_engine::intake::PostError::NoAgent(agent.clone()).into()),
        }
    }
}

fn reaches(who: &Principal, space: &SpaceRecord) -> bool {
    space.project == who.project && who.entity().is_none_or(|entity| space.members.contains(&entity))
}
