//! Consents: approvals of a call that were remembered, and stand for the answer to later questions of the same kind.
//!
//! The decision in the log says that it is remembered; the record here is what counts afterwards, and what is listed and
//! revoked. It is written after the log and before the decision is acknowledged, and again whenever a run in memory has
//! a remembered decision without one, so a crash between the two writes loses nothing that was acknowledged. A revoked
//! consent stays as a mark, so that an older decision cannot bring it back. The oldest marks are replaced by one timestamp: a
//! remembered decision from before it without a record is ignored.

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
/// Id of the record that stands for all dropped marks. It holds the latest of their revocation times and names nobody. Older
/// gateways keep it as an ordinary mark.
const FORGOTTEN: &str = "forgotten";
/// Most records of one space.
const RECORDS_MAX: usize = CONSENTS_MAX + 1;
/// Hex digits of each half of an id.
const ID_DIGITS: usize = 20;

/// An approval that was remembered. Stored: members may be added with a default, never renamed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ConsentRecord {
    /// Id, unique in its space. A later consent of the same person for the same tool, agent and person takes its place.
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

/// Who gave a consent. Stored as a word or an id; what is not said is nobody, never a secret key, which may do more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum Giver {
    /// Nobody who is known: the consent does not count.
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

    /// Stores a consent unless a newer one stands in its place, or it was revoked since. Whether it is stored by this.
    pub async fn remember(&self, set: RecordSet, consent: &ConsentRecord) -> Result<bool, StoreError> {
        let read = || self.stored_state(set, consent);
        let decide = |state: StoredState| {
            let counts = state.accepts(consent);
            Ok::<_, StoreError>((state.amendment(consent), counts))
        };
        self.updater.update(set, consent.given_at, read, decide).await
    }

    /// Reads the records that decide whether a consent may be stored.
    async fn stored_state(&self, set: RecordSet, consent: &ConsentRecord) -> Result<StoredState, StoreError> {
        let forgotten = self.records().record(set, FORGOTTEN).await?;
        let known = self.records().record(set, &consent.id).await?;
        // The first one too where nothing changes in it: a mark may be dropped between two reads.
        let mut state = StoredState {
            expected: vec![
                expect(FORGOTTEN, forgotten.as_ref()),
                expect(&consent.id, known.as_ref()),
            ],
            leaving: Vec::new(),
            forgotten: forgotten.map(forgotten_until),
            known: None,
        };
        if let Some(known) = known {
            state.known = ConsentRecord::read(known);
            return Ok(state);
        }
        let earlier = self.earlier_form(set, consent).await?;
        state.known = earlier
            .clone()
            .and_then(ConsentRecord::read)
            .filter(|earlier| earlier.revoked_at.is_some());
        if state.accepts(consent) {
            state.leaving = self.leaving(set, state.forgotten.is_some()).await?;
            state.leaving.extend(earlier.map(Leaving::of));
        }
        Ok(state)
    }

    /// The record of the same decision under the id that versions before this one gave it when a plan had called the tool: as
    /// if it was for nobody.
    async fn earlier_form(
        &self,
        set: RecordSet,
        consent: &ConsentRecord,
    ) -> Result<Option<Record>, StoreError> {
        if consent.given_for.is_none() {
            return Ok(None);
        }
        let id = id(&consent.agent, &consent.tool, consent.by, None);
        let record = self.records().record(set, &id).await?;
        let is_same = |record: &Record| {
            let read = record.body.read::<ConsentRecord>();
            read.is_ok_and(|earlier| earlier.approval == consent.approval)
        };
        Ok(record.filter(is_same))
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
        leaving.sort_by(|a, b| a.order().cmp(&b.order()));
        leaving.truncate(usize::try_from(excess).unwrap_or(usize::MAX));
        Ok(leaving)
    }

    /// Revokes a consent that `may` allows; false when there is none.
    pub async fn revoke(
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

/// What an amendment expects of a record that was read.
fn expect(id: &str, record: Option<&Record>) -> Expected {
    Expected {
        id: id.to_owned(),
        version: record.map(|record| record.version),
    }
}

/// A consent that has to go.
struct Leaving {
    /// It must be as it was read: of one that was revoked since, the mark would go without a trace.
    expected: Expected,
    /// None if it cannot be read.
    consent: Option<ConsentRecord>,
}

impl Leaving {
    fn of(record: Record) -> Self {
        Self {
            expected: expect(&record.id, Some(&record)),
            consent: ConsentRecord::read(record),
        }
    }

    /// The order in which they go: those that cannot be read, marks, those that count.
    fn order(&self) -> (u8, Time, &str) {
        let (rank, time) = match &self.consent {
            None => (0, Time(0)),
            Some(consent) => match consent.revoked_at {
                Some(revoked) => (1, revoked),
                None => (2, consent.given_at),
            },
        };
        (rank, time, &self.expected.id)
    }
}

/// State read before a consent is stored.
struct StoredState {
    /// What was read.
    expected: Vec<Expected>,
    /// Consent stored under the same id, or a revoked one under the id of an earlier version.
    known: Option<ConsentRecord>,
    /// Latest revocation time among dropped marks.
    forgotten: Option<Time>,
    leaving: Vec<Leaving>,
}

impl StoredState {
    /// Whether the consent counts.
    fn accepts(&self, consent: &ConsentRecord) -> bool {
        match (&self.known, &self.forgotten) {
            (Some(stands), _) => !stands.outlasts(consent),
            (None, Some(forgotten)) => *forgotten < consent.given_at,
            (None, None) => true,
        }
    }

    /// Stores the consent; nothing if it does not count any more.
    fn amendment(self, consent: &ConsentRecord) -> Amendment {
        if !self.accepts(consent) {
            return Amendment::default();
        }
        let mut amendment = Amendment {
            expected: self.expected,
            ..Amendment::default()
        };
        for Leaving { expected, .. } in &self.leaving {
            amendment.changes.push(Change::Remove(expected.id.clone()));
            amendment.expected.push(expected.clone());
        }
        let marks = self.leaving.into_iter().filter_map(|leaving| leaving.consent);
        if let Some(last) = marks.max_by_key(|consent| consent.revoked_at)
            && last.revoked_at > self.forgotten
        {
            // It names nobody: a record that names a person goes when the person is deleted.
            let mark = ConsentRecord {
                id: FORGOTTEN.to_owned(),
                by: Giver::Nobody,
                given_for: None,
                ..last
            };
            amendment.changes.push(mark.change());
        }
        amendment.changes.push(consent.change());
        amendment
    }
}

/// One that cannot be read counts as made when it was written: nothing older comes back.
fn forgotten_until(record: Record) -> Time {
    let written = record.updated;
    let mark = ConsentRecord::read(record);
    mark.and_then(|mark| mark.revoked_at).unwrap_or(written)
}

/// The remembered decisions of a run, as the consents that they are.
pub(crate) fn remembered(run: &Run) -> Vec<ConsentRecord> {
    let own = run.state().decisions().filter(|record| record.remembered);
    let consents = own.filter_map(|record| {
        // Of a run below there is a copy of its calls here, and no definition: it has its own driver.
        let call = run.call(record.approval.call())?;
        let tool = call.definition.as_ref()?;
        let (agent, by) = (&run.agent().name, Giver::of(record.by));
        let given_for = record.works_for;
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
