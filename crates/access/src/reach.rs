//! What a principal may reach: its project, and for a user the spaces it is a member of. Everything else does
//! not exist for it: [`AccessError::NotFound`], not `Forbidden`.

use std::sync::PoisonError;
use std::time::Duration;

use toolgate_engine::revocation::Revoked;
use toolgate_engine::store::{EntityRecord, MemberRecord, RunRecord, SpaceRecord, StoreError};
use toolgate_kernel::id::{EntityId, ProjectId, RunId, SpaceId};
use toolgate_kernel::tool::Decider;

use crate::{Access, AccessError, Principal};

/// How long it is remembered where a run belongs. It never moves, so this bounds memory, not staleness.
pub(crate) const PLACE_KNOWN: Duration = Duration::from_secs(3600);
/// Runs and spaces that are remembered.
pub(crate) const PLACES_MAX: usize = 20_000;

/// The run at the top of a run tree, in whose space people and clients answer what the runs of the tree ask.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Top {
    /// The run at the top.
    pub run: RunId,
    /// Its space.
    pub space: SpaceId,
    project: ProjectId,
}

impl Access {
    /// Forgets where runs, spaces and people are known to be once some of them were deleted, on whichever node.
    pub(crate) fn forget_deleted(&self) {
        let mut deletions = self.deletions.lock().unwrap_or_else(PoisonError::into_inner);
        let is_deletion = |revoked: &Revoked| {
            matches!(
                revoked,
                Revoked::Space(_) | Revoked::Words(_) | Revoked::Entity(_) | Revoked::Project(_)
            )
        };
        if deletions.concerns(is_deletion) {
            self.places.clear();
            self.tops.clear();
            self.spaces.clear();
            self.entities.clear();
        }
    }

    /// Where the calls and approvals of a run are answered, when `who` may answer there: of a child run a member of the
    /// top run's space may answer what it asks, and reach nothing else. `what` names the thing that was asked for.
    pub async fn reach_top(&self, who: &Principal, run: RunId, what: &str) -> Result<Top, AccessError> {
        let missing = || AccessError::not_found(what);
        self.forget_deleted();
        let top = match self.tops.get(&run) {
            Some(top) => top,
            None => {
                let record = self.runs.run(run).await?.ok_or_else(missing)?;
                let root = match record.root == run {
                    true => record,
                    false => self.runs.run(record.root).await?.ok_or_else(missing)?,
                };
                let top = Top {
                    run: root.id,
                    space: root.space,
                    project: root.project,
                };
                self.tops.put(run, top);
                top
            }
        };
        match self.reaches(who, (top.project, top.space)).await? {
            true => Ok(top),
            false => Err(missing()),
        }
    }

    /// A run's row, when `who` may reach it.
    pub async fn run(&self, who: &Principal, run: RunId) -> Result<RunRecord, AccessError> {
        let missing = || AccessError::not_found("run");
        let record = self.runs.run(run).await?.ok_or_else(missing)?;
        let place = (record.project, record.space);
        self.places.put(run, place);
        match self.reaches(who, place).await? {
            true => Ok(record),
            false => Err(missing()),
        }
    }

    /// The space of a run that `who` may reach. `what` names the thing that was asked for: the run, or a call or an
    /// approval of it.
    pub async fn reach_run(&self, who: &Principal, run: RunId, what: &str) -> Result<SpaceId, AccessError> {
        let missing = || AccessError::not_found(what);
        self.forget_deleted();
        let place = match self.places.get(&run) {
            Some(place) => place,
            None => {
                let record = self.runs.run(run).await?.ok_or_else(missing)?;
                self.places.put(run, (record.project, record.space));
                (record.project, record.space)
            }
        };
        match self.reaches(who, place).await? {
            true => Ok(place.1),
            false => Err(missing()),
        }
    }

    /// A space's row, when `who` may reach it.
    pub async fn space(&self, who: &Principal, space: SpaceId) -> Result<SpaceRecord, AccessError> {
        let record = self.directory.space(space).await?;
        record
            .filter(|record| is_in(who, record))
            .ok_or_else(|| AccessError::not_found("space"))
    }

    /// Fails unless `who` may reach the space. A backend's spaces are remembered; a user may be taken out at any
    /// time, so its membership is read each time.
    pub async fn reach_space(&self, who: &Principal, space: SpaceId) -> Result<(), AccessError> {
        self.forget_deleted();
        if who.user.is_none() && self.spaces.get(&space) == Some(who.project) {
            return Ok(());
        }
        let record = self.space(who, space).await?;
        self.spaces.put(space, record.project);
        Ok(())
    }

    /// Fails when the space exists and `who` may not reach it; one that does not exist yet may be made. `what` names
    /// the thing that was asked for.
    pub async fn reach_if_made(
        &self,
        who: &Principal,
        space: SpaceId,
        what: &str,
    ) -> Result<(), AccessError> {
        match self.directory.space(space).await? {
            Some(record) if !is_in(who, &record) => Err(AccessError::not_found(what)),
            _ => Ok(()),
        }
    }

    /// Who `who` is to the questions of a space that it may reach: its role there and what its token says.
    pub async fn decider(&self, who: &Principal, space: SpaceId) -> Result<Decider, StoreError> {
        let Some(user) = &who.user else {
            return Ok(Decider::Backend);
        };
        let member = self.directory.member(space, user.entity).await?;
        Ok(Decider::Member {
            entity: user.entity,
            roles: member.and_then(|member| member.role).into_iter().collect(),
            token_roles: user.roles.clone(),
            groups: user.groups.clone(),
        })
    }

    /// Who a member of a space is to its questions, by its role there: what it sees when its token names no roles and no
    /// groups.
    pub async fn member_view(&self, space: SpaceId, entity: EntityId) -> Result<Decider, StoreError> {
        let member = self.directory.member(space, entity).await?;
        Ok(Decider::Member {
            entity,
            roles: member.and_then(|member| member.role).into_iter().collect(),
            token_roles: Default::default(),
            groups: Default::default(),
        })
    }

    /// Remembers a run that was just made.
    pub fn remember(&self, project: ProjectId, run: RunId, space: SpaceId) {
        self.places.put(run, (project, space));
        self.tops.put(run, Top { run, space, project });
        self.spaces.put(space, project);
    }

    /// The entity that a backend means, by id or subject; a subject that is new makes one.
    pub async fn entity(&self, project: ProjectId, named: &str) -> Result<EntityId, AccessError> {
        match named.starts_with("ent_") {
            true => self.known_entity(project, named).await,
            false => Ok(self.entity_of(project, named.to_owned()).await?),
        }
    }

    /// The id of the entity that a backend means, by id or subject.
    pub async fn known_entity(&self, project: ProjectId, named: &str) -> Result<EntityId, AccessError> {
        Ok(self.entity_record(project, named).await?.id)
    }

    /// What is known of the entity that a backend means, by id or subject.
    pub async fn entity_record(&self, project: ProjectId, named: &str) -> Result<EntityRecord, AccessError> {
        let record = match named.parse() {
            Ok(id) => self.directory.entity(id).await?,
            Err(_) => self.directory.entity_of(project, named).await?,
        };
        let record = record.filter(|record| record.project == project);
        record.ok_or_else(|| AccessError::NotFound(format!("there is no entity {named:?}")))
    }

    /// What an entity was given in a space; none when it takes no part.
    pub async fn member(&self, space: SpaceId, entity: EntityId) -> Result<Option<MemberRecord>, StoreError> {
        self.directory.member(space, entity).await
    }

    async fn reaches(
        &self,
        who: &Principal,
        (project, space): (ProjectId, SpaceId),
    ) -> Result<bool, StoreError> {
        Ok(project == who.project && (who.user.is_none() || self.is_member(who, space).await?))
    }

    pub(crate) async fn is_member(&self, who: &Principal, space: SpaceId) -> Result<bool, StoreError> {
        let record = self.directory.space(space).await?;
        Ok(record.is_some_and(|record| is_in(who, &record)))
    }
}

fn is_in(who: &Principal, space: &SpaceRecord) -> bool {
    space.project == who.project && who.entity().is_none_or(|entity| space.members.contains(&entity))
}
