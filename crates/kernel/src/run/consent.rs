//! A yes that was remembered: it stands for the answer to a question that is asked again.

use super::Run;
use crate::id::EntityId;
use crate::message::WorksFor;
use crate::name::ToolName;
use crate::time::Time;
use crate::tool::{ConsentRef, Decider, Remember, Tool};

/// A yes that was remembered, as it stands now.
#[derive(Debug, Clone, PartialEq)]
pub struct Consent {
    /// What it is listed and revoked by.
    pub id: String,
    /// The tool that it was given for.
    pub tool: ToolName,
    /// SHA-256 of the definition that it was given for, in hex: a changed one asks again.
    pub hash: String,
    /// Who gave it, with the role that this person has in the space now.
    pub by: Decider,
    /// Person whom the run worked for when it was given.
    pub given_for: Option<EntityId>,
    /// When it was given.
    pub given: Time,
}

impl Run {
    /// The remembered yes that a call of this tool runs by, if it needs one. Whoever gave it must still be one who may
    /// decide on this very call: a yes of somebody who lost the role, or who asks for the call themselves where
    /// another has to decide, is none.
    pub(super) fn consent_for(&self, tool: &Tool, consents: &[Consent]) -> Option<ConsentRef> {
        let terms = self.terms(tool.name.as_str())?;
        let remember = terms.remember?;
        let counts = |consent: &&Consent| {
            let is_of_tool = consent.tool == tool.name && consent.hash == tool.hash;
            let is_for_person = match remember {
                Remember::FirstInSpace => true,
                Remember::UntilRevoked => self.is_for_person(consent),
            };
            is_of_tool && is_for_person && terms.admit(&consent.by)
        };
        consents.iter().find(counts).map(|consent| ConsentRef {
            consent_id: consent.id.clone(),
            by: consent.by.entity(),
            given_at: consent.given,
        })
    }

    /// Whether the run works for the person for whom it was given, also by a plan of theirs. Where nobody is known, a backend
    /// speaks for its people, and only its own consent counts for them.
    fn is_for_person(&self, consent: &Consent) -> bool {
        match self.state.sender.works_for {
            WorksFor::Person(person) => consent.given_for == Some(person),
            WorksFor::Unknown => consent.given_for.is_none() && consent.by == Decider::Backend,
            WorksFor::Nobody => false,
        }
    }
}
