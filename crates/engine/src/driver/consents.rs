//! Consents of the run in memory: those that its decisions are, and those that its calls run by.

use toolgate_kernel::event::Event;
use toolgate_kernel::id::ApprovalId;
use toolgate_kernel::run::{Consent, ReplyPart};
use toolgate_kernel::tool::{Decider, Tool};

use super::effects::Person;
use super::{Driver, patient};
use crate::Inner;
use crate::consents::{ConsentRecord, Giver, remembered, set};
use crate::store::StoreError;

impl Driver {
    /// Stores the consents that the run's decisions are, where these events hold one.
    pub(super) async fn remember_consents(&mut self, events: &[Event]) -> Result<(), StoreError> {
        let decided: Vec<ApprovalId> = events
            .iter()
            .filter_map(|event| match event {
                Event::ToolApprovalResponse(e) if e.remembered => Some(e.approval_id),
                _ => None,
            })
            .collect();
        // No others: who gave them may have been deleted since the run was read.
        match decided.is_empty() {
            true => Ok(()),
            false => {
                self.store_consents(|consent| decided.contains(&consent.approval))
                    .await
            }
        }
    }

    /// Stores every consent of the run that is missing, as after a crash between its decision and its record.
    pub(super) async fn restore_consents(&mut self) -> Result<(), StoreError> {
        self.store_consents(|_| true).await
    }

    async fn store_consents(&mut self, which: impl Fn(&ConsentRecord) -> bool) -> Result<(), StoreError> {
        let set = set(self.project, self.home);
        for consent in remembered(&self.run).into_iter().filter(which) {
            if patient(|| self.inner.consents.remember(set, &consent)).await? {
                self.revoke_if_removed(&consent).await?;
            }
        }
        Ok(())
    }

    /// Whoever gave the consent may have been removed from the space before it was stored, and come back: whoever removes a
    /// member revokes what is stored by then.
    async fn revoke_if_removed(&mut self, consent: &ConsentRecord) -> Result<(), StoreError> {
        let Giver::Member(giver) = consent.by else {
            return Ok(());
        };
        let inner = &self.inner;
        if patient(|| inner.store.member(self.home, giver)).await?.is_some() {
            return Ok(());
        }
        let (set, now) = (set(self.project, self.home), inner.clock.now());
        let is_this = |stored: &ConsentRecord| stored.approval == consent.approval;
        patient(|| inner.consents.revoke(set, &consent.id, is_this, now)).await?;
        Ok(())
    }
}

impl Person {
    /// The consents that may stand for a yes to the reply's calls; only looked up for tools that remember one. Those of
    /// people who are no longer members are left out, and the others have the role that they have now.
    pub(super) async fn consents_for(
        &self,
        inner: &Inner,
        parts: &[ReplyPart],
    ) -> Result<Vec<Consent>, StoreError> {
        let mut tools: Vec<&Tool> = Vec::new();
        for part in parts {
            let ReplyPart::Call { name, .. } = part else {
                continue;
            };
            let tool = self.toolbox.get(name.as_ref()).map(AsRef::as_ref);
            let remembers = |tool: &&Tool| tool.approval_terms.remember.is_some();
            tools.extend(
                tool.filter(remembers)
                    .filter(|tool| !tools.iter().any(|known| known.name == tool.name)),
            );
        }
        let mut consents = Vec::new();
        for tool in tools {
            let set = set(self.project, self.space);
            let of = Some((&self.agent, &tool.name));
            let found = patient(|| inner.consents.list(set, of)).await?;
            for record in found.into_iter().filter(|record| record.hash == tool.hash) {
                consents.extend(self.consent(inner, record).await?);
            }
        }
        Ok(consents)
    }

    async fn consent(&self, inner: &Inner, record: ConsentRecord) -> Result<Option<Consent>, StoreError> {
        let by = match record.by {
            Giver::Nobody => return Ok(None),
            Giver::Backend => Decider::Backend,
            Giver::Member(entity) => {
                let Some(member) = patient(|| inner.store.member(self.space, entity)).await? else {
                    return Ok(None);
                };
                Decider::Member {
                    entity,
                    roles: member.role.into_iter().collect(),
                    token_roles: Default::default(),
                    // What a token said when the consent was given may no longer be so.
                    groups: Default::default(),
                }
            }
        };
        Ok(Some(Consent {
            id: record.id,
            tool: record.tool,
            hash: record.hash,
            by,
            given_for: record.given_for,
            given: record.given_at,
        }))
    }
}
