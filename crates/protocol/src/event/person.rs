//! Taking a person out of what is stored: their words and their id go, the event and its place stay.

use super::{Claim, Entry, Event};
use crate::id::EntityId;
use crate::message::{Message, Part};

/// What stands where somebody's words stood who was deleted.
pub const REMOVED: &str = "(removed)";

/// Stands for a person who was deleted where nobody at all would mean everybody.
pub fn nobody() -> EntityId {
    EntityId::from_bytes([0; 16])
}

impl Event {
    /// The event without a person: what they wrote is removed, and nothing names them. None when it has nothing of them.
    ///
    /// What agents wrote stays, also where it quotes the person.
    pub fn without_person(&self, person: EntityId) -> Option<Self> {
        let mut event = self.clone();
        event.remove_person(person);
        (event != *self).then_some(event)
    }

    fn is_said_by(&self, person: EntityId) -> bool {
        matches!(self, Self::Said(e) if e.message.from == Some(person))
    }

    fn remove_person(&mut self, person: EntityId) {
        match self {
            Self::RunStart(e) => hide(&mut e.offered_to, person),
            Self::Said(e) => remove_from(&mut e.message, person),
            Self::CallRequest(e) if e.from == Some(person) => {
                (e.from, e.sender, e.input) = (None, None, None);
            }
            Self::Told(e) if e.from == Some(person) => (e.from, e.turns) = (None, Vec::new()),
            Self::ToolInputStart(e) => hide(&mut e.offered_to, person),
            Self::ToolInputDelta(e) => hide(&mut e.offered_to, person),
            Self::ToolInputAvailable(e) => {
                hide(&mut e.offered_to, person);
                release(&mut e.reserved, person);
                if let Some(consent) = &mut e.consent {
                    hide(&mut consent.by, person);
                }
            }
            Self::ToolApprovalRequest(e) => {
                hide(&mut e.offered_to, person);
                if let Some(terms) = &mut e.terms {
                    hide(&mut terms.editor, person);
                    let requesters = terms.requesters.iter_mut();
                    requesters
                        .filter(|requester| **requester == person)
                        .for_each(|requester| *requester = nobody());
                }
            }
            Self::ToolApprovalResponse(e) => {
                hide(&mut e.offered_to, person);
                release(&mut e.reserved, person);
                if e.by == Some(person) {
                    // None would be a secret key, and a yes of nobody stands for no later call.
                    (e.by, e.reason, e.remembered) = (Some(nobody()), None, false);
                }
            }
            Self::ToolQuestion(e) => hide(&mut e.offered_to, person),
            Self::ToolQuestionResponse(e) => {
                hide(&mut e.offered_to, person);
                if e.by == Some(person) {
                    (e.by, e.content) = (None, None);
                }
            }
            Self::ToolSampling(e) => hide(&mut e.offered_to, person),
            Self::ToolExecuting(e) => {
                hide(&mut e.offered_to, person);
                release(&mut e.claim, person);
            }
            Self::ToolReleased(e) => hide(&mut e.offered_to, person),
            Self::ToolProgress(e) => hide(&mut e.offered_to, person),
            // A call that was offered to this person alone was read and answered by nobody else.
            Self::ToolOutputAvailable(e) => hide(&mut e.offered_to, person),
            Self::ToolOutputError(e) => hide(&mut e.offered_to, person),
            Self::ToolOutputDenied(e) => hide(&mut e.offered_to, person),
            Self::ChildCall(e) => e.event.remove_person(person),
            Self::CallRequest(_)
            | Self::Told(_)
            | Self::ContextCut(_)
            | Self::StepStart(_)
            | Self::StepRetry(_)
            | Self::TextStart(_)
            | Self::TextDelta(_)
            | Self::TextEnd(_)
            | Self::ReasoningStart(_)
            | Self::ReasoningDelta(_)
            | Self::ReasoningEnd(_)
            | Self::StepFinish(_)
            | Self::RunStatus(_)
            | Self::RunFinish(_)
            | Self::Notification(_)
            | Self::Opaque(_) => {}
        }
    }
}

impl Entry {
    /// The entry's events without a person, as many as before; see [`Event::without_person`]. What the person's client
    /// told of the past goes with the message that brought it. None when the entry has nothing of them.
    pub fn without_person(&self, person: EntityId) -> Option<Vec<Event>> {
        let mut events = self.events.clone();
        if events.iter().any(|event| event.is_said_by(person)) {
            for event in &mut events {
                match event {
                    Event::RunStart(start) => start.history.clear(),
                    // Older ones do not say whose they are.
                    Event::Told(told) => told.turns.clear(),
                    _ => {}
                }
            }
        }
        events.iter_mut().for_each(|event| event.remove_person(person));
        (events != self.events).then_some(events)
    }
}

fn remove_from(message: &mut Message, person: EntityId) {
    let worked_for_it = message.person() == Some(person);
    message.on_behalf_of.retain(|other| *other != person);
    if worked_for_it && message.from.is_none() {
        // No one at all would mean everybody for whom a secret key speaks.
        message.on_behalf_of.insert(0, nobody());
    }
    if message.from == Some(person) {
        let text = REMOVED.into();
        message.from = None;
        message.sender = None;
        message.metadata = None;
        message.parts = vec![Part::Text { text }];
    }
}

/// What was offered to one person is offered to nobody then, and not to everybody.
fn hide(offered_to: &mut Option<EntityId>, person: EntityId) {
    if *offered_to == Some(person) {
        *offered_to = Some(nobody());
    }
}

fn release(claim: &mut Option<Claim>, person: EntityId) {
    if let Some(claim) = claim.as_mut().filter(|claim| claim.by == Some(person)) {
        claim.by = Some(nobody());
        claim.holder = REMOVED.into();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::every_marked;
    use crate::message::WorksFor;

    /// The ids of all entities that an event names.
    fn named(event: &Event) -> Vec<EntityId> {
        let text = serde_json::to_string(event).unwrap();
        let ids = text.match_indices("\"ent_").map(|(at, _)| {
            let id = &text[at + 1..];
            id[..id.find('"').unwrap()].parse().unwrap()
        });
        ids.collect()
    }

    #[test]
    fn nothing_of_a_person_is_left_in_any_event_that_names_them() {
        for event in every_marked() {
            for person in named(&event) {
                if matches!(&event, Event::RunStart(e) if e.entity == Some(person)) {
                    // The agent's own.
                    continue;
                }
                let after = event.without_person(person);
                let after = after.unwrap_or_else(|| panic!("{} names them", event.kind()));
                assert!(!named(&after).contains(&person), "{}", event.kind());
                assert_eq!(after.kind(), event.kind());
                assert_eq!(after.without_person(person), None, "once is enough");
            }
        }
    }

    #[test]
    fn the_words_of_a_message_go_with_its_sender() {
        let person = EntityId::from_bytes([7; 16]);
        let said = |from| {
            let text = "my address".to_owned();
            let id = crate::id::MessageId::from_bytes([1; 16]);
            let message = Message::new(id, Some(from), vec![Part::Text { text }]);
            Event::from(crate::event::Said { message })
        };
        let after = said(person).without_person(person).unwrap();
        let text = serde_json::to_string(&after).unwrap();
        assert!(text.contains(REMOVED) && !text.contains("my address"), "{text}");
        let removed =
            |event: &Event| matches!(event, Event::Said(e) if e.message.works_for() == WorksFor::Nobody);
        assert!(removed(&after) && !removed(&said(person)));
        let other = EntityId::from_bytes([8; 16]);
        assert_eq!(said(other).without_person(person), None);
    }

    #[test]
    fn a_plans_message_whose_person_was_deleted_is_for_nobody_and_not_for_anybody() {
        let [ada, bob] = [7, 8].map(|byte| EntityId::from_bytes([byte; 16]));
        let id = crate::id::MessageId::from_bytes([1; 16]);
        let plans = |people: &[EntityId]| Message {
            origin: Some(crate::message::Origin::Plan {
                plan_id: "plan_1".into(),
                due_at: crate::time::Time(0),
            }),
            on_behalf_of: people.to_vec(),
            ..Message::new(id, None, vec![Part::Text { text: "now".into() }])
        };
        let without_ada = |mut message: Message| {
            remove_from(&mut message, ada);
            (message.works_for(), message.people().collect::<Vec<_>>())
        };
        assert_eq!(without_ada(plans(&[ada])), (WorksFor::Nobody, vec![]));
        assert_eq!(without_ada(plans(&[ada, bob])), (WorksFor::Nobody, vec![bob]));
        assert_eq!(
            without_ada(plans(&[bob, ada])),
            (WorksFor::Person(bob), vec![bob])
        );
        assert_eq!(
            without_ada(plans(&[])),
            (WorksFor::Unknown, vec![]),
            "nobody was known"
        );
    }

    #[test]
    fn the_yes_of_a_deleted_person_is_nobodys_and_remembered_no_longer() {
        let marked = every_marked().into_iter().find_map(|event| match event {
            Event::ToolApprovalResponse(e) => Some(e),
            _ => None,
        });
        let decided = marked.expect("it is an event");
        assert!(decided.remembered);
        let after = Event::from(decided.clone()).without_person(decided.by.unwrap());
        let Some(Event::ToolApprovalResponse(after)) = after else {
            panic!("a decision stays one");
        };
        assert_eq!((after.by, after.remembered), (Some(nobody()), false));
    }

    #[test]
    fn what_a_client_told_of_the_past_goes_with_the_message_that_brought_it() {
        let (person, other) = (EntityId::from_bytes([7; 16]), EntityId::from_bytes([8; 16]));
        let entry = |by: EntityId, of: Option<EntityId>| {
            let parts = vec![Part::Text {
                text: "and now?".into(),
            }];
            let id = crate::id::MessageId::from_bytes([1; 16]);
            let turns = vec![crate::history::Earlier::User(vec![Part::Text {
                text: "my old address".into(),
            }])];
            let message = Message::new(id, Some(by), parts);
            let events = vec![
                crate::event::Told { turns, from: of }.into(),
                crate::event::Said { message }.into(),
            ];
            Entry {
                space: crate::id::SpaceId::from_bytes([1; 16]),
                run: None,
                first: crate::event::Seq::durable(1),
                time: crate::time::Time(0),
                events,
            }
        };
        for of in [None, Some(person)] {
            let after = entry(person, of).without_person(person).expect("it names them");
            let text = serde_json::to_string(&after).unwrap();
            assert!(!text.contains("my old address"), "{text}");
            assert_eq!(after.len(), 2, "every event keeps its place");
        }
        assert_eq!(entry(other, Some(other)).without_person(person), None);
    }

    #[test]
    fn somebody_elses_words_stay() {
        let other = EntityId::from_bytes([7; 16]);
        for event in every_marked() {
            assert_eq!(event.without_person(other), None, "{}", event.kind());
        }
    }
}
