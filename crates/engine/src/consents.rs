//! Consents: yeses to a call that were remembered, and stand for the answer to later questions of the same kind.
//!
//! The decision in the log says that it is remembered; the record here is what counts afterwards, and what is listed and
//! revoked. It is written after the log and before the decision is acknowledged, and again whenever a run in memory has
//! a remembered decision without one, so a crash between the two writes loses nothing that was acknowledged. A revoked
//! consent stays as a mark, so that an older decision cannot bring it back. Marks are bounded too: the oldest ones are dropped
//! for a moment before which no decision counts that has no record.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use toolgate_kernel::id::{ApprovalId, BadId, EntityId, ProjectId, SpaceId};
use toolgate_kernel::name::{AgentName, ToolName};
use toolgate_kernel::run::Run;
use toolgate_kernel::time::Time;

use crate::Engine;
use crate::record_index::put;
use crate::record_updater::RecordUpdater;
use crate::records::{Amendment, Change, Expected, Listing, Owner, Record, RecordSet, Records};
use crate::store::StoreError;

/// Most consents of one space, revoked ones included. One more takes the place of the one that was revoked first; where none
/// was revoked, of the oldest, whose tool asks again.
pub const CONSENTS_MAX: usize = 1_000;
pub(crate) const KIND: &str = "consent";
/// Id of the one record that is no consent: [`Forgotten`].
const FORGOTTEN: &str = "forgotten";
/// Most records of one space.
const RECORDS_MAX: usize = CONSENTS_MAX + 1;
/// Hex digits of each half of an id.
const ID_DIGITS: usize = 20;

/// A yes that was remembered. Stored: members may be added with a default, never renamed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ConsentRecord {
    /// Id, unique in its space. A later yes of the same person for the same tool, agent and person takes its place.
    #[serde(skip)]
    pub id: String,
    /// Agent whose calls it is for.
    pub agent: AgentName,
    /// Tool that it is for.
    pub tool: ToolName,
    /// SHA-256 of the tool's definition, in hex: it is for no other.
    pub hash: String,
    /// Who gave it.
    #[serde(default)]
    pub by: Giver,
    /// Person whom the run worked for when it was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub given_for: Option<EntityId>,
    /// The question that was answered.
    pub approval: ApprovalId,
    /// When it was given.
    pub given_at: Time,
    /// When it was revoked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revoked_at: Option<Time>,
}

/// Who gave a yes. Stored as a word or an id; what is not said is nobody, never a secret key, which may do more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum Giver {
    /// Nobody who is known: the yes does not count.
    #[default]
    Nobody,
    /// A secret key.
    Backend,
    /// A member of the space.
    Member(EntityId),
}

impl Giver {
    /// The person; none for a secret key.
    pub fn entity(self) -> Option<EntityId> {
        match self {
            Self::Nobody | Self::Backend => None,
            Self::Member(entity) => Some(entity),
        }
    }

    /// Whoever made a decision that is in the log: it names everybody but secret keys.
    fn of(decided_by: Option<EntityId>) -> Self {
        decided_by.map_or(Self::Backend, Self::Member)
    }
}

impl From<Giver> for String {
    fn from(giver: Giver) -> Self {
        match giver {
            Giver::Nobody => NOBODY.to_owned(),
            Giver::Backend => BACKEND.to_owned(),
            Giver::Member(entity) => entity.to_string(),
        }
    }
}

impl TryFrom<String> for Giver {
    type Error = BadId;
    fn try_from(word: String) -> Result<Self, BadId> {
        match word.as_str() {
            NOBODY => Ok(Self::Nobody),
            BACKEND => Ok(Self::Backend),
            id => id.parse().map(Self::Member),
        }
    }
}

const NOBODY: &str = "nobody";
const BACKEND: &str = "backend";

impl ConsentRecord {
    /// None for one that cannot be read: it counts as never given, and its tool asks again.
    fn read(record: Record) -> Option<Self> {
        match record.body.read::<Self>() {
            Ok(body) => Some(Self {
                id: record.id,
                ..body
            }),
            Err(error) => {
                tracing::warn!(consent = record.id, %error, "a stored consent cannot be read");
                None
            }
        }
    }

    fn change(&self) -> Change {
        let body = serde_json::to_value(self).expect("a consent is JSON");
        put(self.id.clone(), body.into())
    }

    /// Whether another decision must not take its place: it was made before, or before the revocation.
    fn outlasts(&self, other: &Self) -> bool {
        let order = |consent: &Self| (consent.given_at, consent.approval.run, consent.approval.number);
        order(self) >= order(other) || self.revoked_at.is_some_and(|revoked| revoked > other.given_at)
    }
}

/// The consents of all spaces.
pub(crate) struct Consents {
    updater: RecordUpdater,
}

impl Consents {
    pub fn new(records: Arc<dyn Records>) -> Self {
        Self {
            updater: RecordUpdater::new(records),
        }
    }

    fn records(&self) -> &Arc<dyn Records> {
        self.updater.records()
    }

    /// The consents of a space that were not revoked; of one tool of an agent when given.
    pub async fn list(
        &self,
        set: RecordSet,
        of: Option<(&AgentName, &ToolName)>,
    ) -> Result<Vec<ConsentRecord>, StoreError> {
        let prefix = of.map(|(agent, tool)| prefix(agent, tool)).unwrap_or_default();
        let records = self.all(set, prefix).await?;
        let consents = records.into_iter().filter_map(ConsentRecord::read);
        Ok(consents.filter(|consent| consent.revoked_at.is_none()).collect())
    }

    /// The records of consents whose ids begin so.
    async fn all(&self, set: RecordSet, prefix: String) -> Result<Vec<Record>, StoreError> {
        let listing = Listing {
            prefix,
            after: None,
            limit: RECORDS_MAX,
        };
        let mut records = self.records().list_records(set, listing).await?;
        records.retain(|record| record.id != FORGOTTEN);
        Ok(records)
    }

    /// Stores a consent unless a newer one stands in its place, or it was revoked since.
    pub async fn remember(&self, set: RecordSet, consent: ConsentRecord) -> Result<(), StoreError> {
        let read = || self.place_of(set, &consent);
        let decide = |place: Place| Ok::<_, StoreError>((place.amendment(&consent), ()));
        self.updater.update(set, consent.given_at, read, decide).await
    }

    /// What stands in the way of a consent.
    async fn place_of(&self, set: RecordSet, consent: &ConsentRecord) -> Result<Place, StoreError> {
        let forgotten = self.records().record(set, FORGOTTEN).await?;
        let known = self.records().record(set, &consent.id).await?;
        let leaving = match known {
            Some(_) => Vec::new(),
            None => self.leaving(set, forgotten.is_some()).await?,
        };
        Ok(Place {
            known,
            forgotten,
            leaving,
        })
    }

    /// The consents that go so that there is room for one more: those that cannot be read, then those that were revoked
    /// first, then the oldest.
    async fn leaving(&self, set: RecordSet, has_forgotten: bool) -> Result<Vec<Leaving>, StoreError> {
        let (count, _) = self.records().records_size(set).await?;
        let consents = count.saturating_sub(u64::from(has_forgotten));
        let excess = (consents + 1).saturating_sub(CONSENTS_MAX as u64);
        if excess == 0 {
            return Ok(Vec::new());
        }
        let records = self.all(set, String::new()).await?;
        let mut leaving: Vec<Leaving> = records.into_iter().map(Leaving::of).collect();
        leaving.sort();
        leaving.truncate(usize::try_from(excess).unwrap_or(usize::MAX));
        Ok(leaving)
    }

    /// Revokes a consent that `may` allows; false when there is none.
    async fn revoke(
        &self,
        set: RecordSet,
        id: &str,
        may: impl Fn(&ConsentRecord) -> bool,
        now: Time,
    ) -> Result<bool, StoreError> {
        let read = || self.records().record(set, id);
        let decide = |record: Option<Record>| {
            let nothing = (Amendment::default(), false);
            let Some(record) = record else {
                return Ok(nothing);
            };
            let version = record.version;
            let consent = ConsentRecord::read(record).filter(|consent| consent.revoked_at.is_none());
            let Some(consent) = consent.filter(|consent| may(consent)) else {
                return Ok(nothing);
            };
            let revoked = ConsentRecord {
                revoked_at: Some(now),
                ..consent
            };
            let amendment = Amendment {
                expected: vec![Expected {
                    id: id.to_owned(),
                    version: Some(version),
                }],
                changes: vec![revoked.change()],
                ..Amendment::default()
            };
            Ok::<_, StoreError>((amendment, true))
        };
        self.updater.update(set, now, read, decide).await
    }
}

/// Stands for the marks of revoked consents that were dropped. Stored: members may be added with a default, never renamed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
struct Forgotten {
    /// When the last of them was revoked. A decision of then or before that has no record may be one of theirs.
    until: Time,
}

/// A consent that has to go, in the order in which they do.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Leaving {
    /// It cannot be read.
    Broken { id: String },
    /// It is a mark.
    Revoked { at: Time, id: String },
    /// It counts.
    Given { at: Time, id: String },
}

impl Leaving {
    fn of(record: Record) -> Self {
        let id = record.id.clone();
        match ConsentRecord::read(record) {
            None => Self::Broken { id },
            Some(consent) => match consent.revoked_at {
                Some(at) => Self::Revoked { at, id },
                None => {
                    let at = consent.given_at;
                    Self::Given { at, id }
                }
            },
        }
    }

    fn id(&self) -> &str {
        match self {
            Self::Broken { id } | Self::Revoked { id, .. } | Self::Given { id, .. } => id,
        }
    }

    fn revoked_at(&self) -> Option<Time> {
        match self {
            Self::Revoked { at, .. } => Some(*at),
            Self::Broken { .. } | Self::Given { .. } => None,
        }
    }
}

/// Where a consent is to be stored.
struct Place {
    /// What stands there.
    known: Option<Record>,
    forgotten: Option<Record>,
    leaving: Vec<Leaving>,
}

impl Place {
    /// Stores the consent; nothing if it does not count any more.
    fn amendment(self, consent: &ConsentRecord) -> Amendment {
        let version = |record: &Option<Record>| record.as_ref().map(|record| record.version);
        let expect = |id: &str, record| Expected {
            id: id.to_owned(),
            version: version(record),
        };
        // The second one too where nothing changes in it: a mark may be dropped between two reads.
        let expected = vec![
            expect(&consent.id, &self.known),
            expect(FORGOTTEN, &self.forgotten),
        ];
        let forgotten = self.forgotten.map(read_forgotten);
        let is_ended = match self.known.and_then(ConsentRecord::read) {
            Some(stands) => stands.outlasts(consent),
            None => forgotten.is_some_and(|forgotten| consent.given_at <= forgotten.until),
        };
        if is_ended {
            return Amendment::default();
        }
        let mut changes: Vec<Change> = self
            .leaving
            .iter()
            .map(|leaving| Change::Remove(leaving.id().to_owned()))
            .collect();
        let dropped = self.leaving.iter().filter_map(Leaving::revoked_at).max();
        if let Some(until) = dropped {
            let forgotten = Forgotten { until }.max(forgotten.unwrap_or_default());
            let body = serde_json::to_value(forgotten).expect("a moment is JSON");
            changes.push(put(FORGOTTEN.to_owned(), body.into()));
        }
        changes.push(consent.change());
        Amendment {
            expected,
            changes,
            ..Amendment::default()
        }
    }
}

/// One that cannot be read counts as written when it was: nothing older comes back.
fn read_forgotten(record: Record) -> Forgotten {
    record.body.read().unwrap_or_else(|error| {
        tracing::warn!(%error, "the stored moment before which no decision counts cannot be read");
        Forgotten {
            until: record.updated,
        }
    })
}

/// The remembered decisions of a run, as the consents that they are.
pub(crate) fn remembered(run: &Run) -> Vec<ConsentRecord> {
    let own = run.state().decisions().filter(|record| record.remembered);
    let consents = own.filter_map(|record| {
        // Of a run below there is a copy of its calls here, and no definition: it has its own driver.
        let call = run.call(record.approval.call())?;
        let tool = call.definition.as_ref()?;
        let (agent, by) = (&run.agent().name, Giver::of(record.by));
        let given_for = record.speaker;
        Some(ConsentRecord {
            id: id(agent, &tool.name, by, given_for),
            agent: agent.clone(),
            tool: tool.name.clone(),
            hash: tool.hash.clone(),
            by,
            given_for,
            approval: record.approval,
            given_at: record.time,
            revoked_at: None,
        })
    });
    consents.collect()
}

/// The record set of a space.
pub(crate) fn set(project: ProjectId, space: SpaceId) -> RecordSet {
    RecordSet {
        project,
        owner: Owner::Space(space),
        kind: KIND,
    }
}

fn id(agent: &AgentName, tool: &ToolName, by: Giver, given_for: Option<EntityId>) -> String {
    let given_for = given_for.map_or_else(String::new, |person| person.to_string());
    let people = digest(&[&String::from(by), &given_for]);
    format!("{}{people}", prefix(agent, tool))
}

/// What the ids of the consents for one tool of an agent begin with.
fn prefix(agent: &AgentName, tool: &ToolName) -> String {
    format!("consent_{}_", digest(&[agent.as_str(), tool.as_str()]))
}

fn digest(parts: &[&str]) -> String {
    let hash = Sha256::digest(parts.join("\n"));
    let hex: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
    hex[..ID_DIGITS].to_owned()
}

impl Engine {
    /// The consents of a space that were not revoked, by id. One counts while whoever gave it is a member that may decide.
    pub async fn consents(
        &self,
        project: ProjectId,
        space: SpaceId,
    ) -> Result<Vec<ConsentRecord>, StoreError> {
        self.inner.consents.list(set(project, space), None).await
    }

    /// Revokes a consent of a space, if it is one that `may` allows: from now on its tool asks again. False when there is
    /// none.
    pub async fn revoke_consent(
        &self,
        project: ProjectId,
        space: SpaceId,
        id: &str,
        may: impl Fn(&ConsentRecord) -> bool,
    ) -> Result<bool, StoreError> {
        let now = self.inner.clock.now();
        self.inner
            .consents
            .revoke(set(project, space), id, may, now)
            .await
    }

    /// Revokes every consent that a person gave in a space or that was given for it there.
    pub(crate) async fn revoke_consents_of(
        &self,
        space: SpaceId,
        person: EntityId,
    ) -> Result<(), StoreError> {
        let Some(record) = self.inner.store.space(space).await? else {
            return Ok(());
        };
        let is_of =
            |consent: &ConsentRecord| [consent.by.entity(), consent.given_for].contains(&Some(person));
        for consent in self.consents(record.project, space).await? {
            if is_of(&consent) {
                self.revoke_consent(record.project, space, &consent.id, is_of)
                    .await?;
            }
        }
        Ok(())
    }
}
