//! Questions to a person: what is remembered of a yes, what runs after it, what is said aloud, and when it expires.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use toolgate_kernel::agent::{self, Agent};
use toolgate_kernel::call::{CallState, ErrorCode, Outcome};
use toolgate_kernel::event::{Event, ToolApprovalRequest, ToolApprovalResponse};
use toolgate_kernel::id::EntityId;
use toolgate_kernel::json::Json;
use toolgate_kernel::message::Message;
use toolgate_kernel::run::{Arrival, Consent, Rejected, Reply, Verdict};
use toolgate_kernel::tool::Decider;
use toolgate_kernel::view::view;
use uuid::Uuid;

use crate::agent::{catalog, defaults, read, read_as};
use crate::story::{START, Story, asks_for, message};

/// SHA-256 of `{"topic":"Luce"}` and of `{"topic":"Gravità"}`.
const LUCE_HASH: &str = "184bdedd16eae43004d42684a2c2a2bd1112dc3276ade2f42a0b8598b7bcb5bb";
const GRAVITY_HASH: &str = "5d2d7606de0b007f92e33809be970facc4cffd5be209f4246dfb73c9cbdf6b30";

fn agent(approval: Value) -> Arc<Agent> {
    let voice = json!({"template": "Creare un foglio su {topic}?", "requiresContext": ["topic"], "fallback": "Creare un nuovo foglio?"});
    let feedback =
        json!({"template": "Foglio su {topic} creato con {itemCount} elementi", "fallback": "Foglio creato"});
    let config = json!({"tools": [{
        "id": "my_tool", "name": "My Tool", "description": "Makes a sheet.", "executionType": "basic",
        "execution": {"mode": "pass-through"}, "approval": approval, "approvalTimeout": "5m",
        "voicePrompt": voice, "voiceFeedback": feedback, "triggers": ["mio_tool", "crea", "foglio"],
    }]});
    let catalog = catalog(&[]);
    Arc::new(agent::parse(&"tester".parse().unwrap(), &config, &defaults(&catalog)).unwrap())
}

fn person(number: u128) -> EntityId {
    EntityId::new(Uuid::from_u128(number))
}

fn member(number: u128, roles: &[&str]) -> Decider {
    Decider::Member {
        entity: person(number),
        roles: roles.iter().map(|&role| role.to_owned()).collect(),
        token_roles: Arc::default(),
        groups: Arc::default(),
    }
}

/// A run in which this person speaks.
fn story(agent: &Arc<Agent>, speaker: Option<u128>) -> Story {
    let from = speaker.map(person);
    story_of(agent, Message { from, ..message(1) })
}

/// A run that a plan of this person began.
fn plans_story(agent: &Arc<Agent>, asked_by: u128) -> Story {
    let on_behalf_of = vec![person(asked_by)];
    let posted = Message {
        on_behalf_of,
        ..message(1)
    };
    story_of(agent, posted)
}

fn story_of(agent: &Arc<Agent>, first: Message) -> Story {
    let mut story = Story::begin(agent);
    story.take(Arrival::Message(first)).unwrap();
    // A step that answers the message.
    let words = crate::story::words("on my way");
    let _ = story.take(Arrival::Reply(words));
    story
}

fn calls(consents: &[Consent]) -> Arrival {
    Arrival::Reply(Reply {
        consents: consents.to_vec(),
        ..asks_for(&[("my_tool", r#"{"topic": "Gravità"}"#)])
    })
}

fn decide(story: &Story, verdict: Verdict, remember: Option<bool>, by: Decider) -> Arrival {
    let call = story.run.calls().last().unwrap().tool.call;
    Arrival::Decide {
        approval: call.approval(),
        verdict,
        remember,
        by: Box::new(by),
    }
}

fn response(events: &[Event]) -> &ToolApprovalResponse {
    let found = events.iter().find_map(|event| match event {
        Event::ToolApprovalResponse(response) => Some(response),
        _ => None,
    });
    found.expect("a decision is told")
}

fn consent(agent: &Agent, by: Decider, given_for: Option<u128>) -> Consent {
    let tool = &agent.tools["my_tool"];
    Consent {
        id: "consent_1".into(),
        tool: tool.name.clone(),
        hash: tool.hash.clone(),
        by,
        given_for: given_for.map(person),
        given: START,
    }
}

/// Whether a call asks, with this consent remembered.
fn asks(approval: Value, speaker: Option<u128>, make: impl Fn(&Agent) -> Consent) -> bool {
    let agent = agent(approval);
    asks_in(story(&agent, speaker), make(&agent))
}

fn asks_in(mut story: Story, remembered: Consent) -> bool {
    let events = story.take(calls(&[remembered])).unwrap();
    let asked = events
        .iter()
        .any(|event| matches!(event, Event::ToolApprovalRequest(_)));
    let consents = events.iter().find_map(|event| match event {
        Event::ToolInputAvailable(e) => Some(e.consent.clone()),
        _ => None,
    });
    assert_eq!(
        consents.flatten().is_none(),
        asked,
        "the log says by whose yes it runs"
    );
    asked
}

#[test]
fn a_yes_is_remembered_as_the_tool_says_and_as_the_person_wishes() {
    for (approval, remember, expected) in [
        (json!("always"), None, Ok(false)),
        (json!("always"), Some(false), Ok(false)),
        (json!("first-in-space"), None, Ok(true)),
        (json!("first-in-space"), Some(false), Ok(false)),
        (json!("until-revoked"), Some(true), Ok(true)),
        (json!({"remember": "until-revoked", "when": {}}), None, Ok(true)),
        (json!("always"), Some(true), Err("/remember")),
    ] {
        let mut story = story(&agent(approval.clone()), Some(1));
        story.take(calls(&[])).unwrap();
        let yes = decide(&story, Verdict::Approve(None), remember, member(1, &[]));
        match (story.take(yes), expected) {
            (Ok(events), Ok(expected)) => assert_eq!(response(&events).remembered, expected, "{approval}"),
            (Err(Rejected::Invalid(problems)), Err(pointer)) => assert_eq!(problems[0].pointer, pointer),
            (other, expected) => panic!("{approval} {remember:?}: {other:?}, not {expected:?}"),
        }
    }
}

#[test]
fn where_nobody_is_known_only_a_secret_key_is_remembered_until_it_is_revoked() {
    let agent = agent(json!("until-revoked"));
    for (by, remember, expected) in [
        (Decider::Backend, None, Ok(true)),
        (member(1, &[]), None, Ok(false)),
        (member(1, &[]), Some(false), Ok(false)),
        (member(1, &[]), Some(true), Err("/remember")),
    ] {
        let mut asked = story(&agent, None);
        asked.take(calls(&[])).unwrap();
        let yes = decide(&asked, Verdict::Approve(None), remember, by.clone());
        match (asked.take(yes), expected) {
            (Ok(events), Ok(expected)) => assert_eq!(response(&events).remembered, expected, "{by:?}"),
            (Err(Rejected::Invalid(problems)), Err(pointer)) => assert_eq!(problems[0].pointer, pointer),
            (other, expected) => panic!("{by:?} {remember:?}: {other:?}, not {expected:?}"),
        }
        // What is remembered counts, and what is not would not.
        let counts = !asks_in(story(&agent, None), consent(&agent, by, None));
        assert_eq!(counts, expected == Ok(true));
    }
}

#[test]
fn a_yes_to_a_changed_input_is_for_that_call_alone() {
    let agent = agent(json!({"remember": "first-in-space", "editable": true}));
    let edited = || Verdict::Approve(Some(json!({"topic": "Luce"}).into()));
    let mut story = story(&agent, Some(1));
    story.take(calls(&[])).unwrap();
    let wish = decide(&story, edited(), Some(true), member(1, &[]));
    assert!(matches!(story.take(wish), Err(Rejected::Invalid(_))));
    let yes = decide(&story, edited(), None, member(1, &[]));
    let events = story.take(yes).unwrap();
    assert!(!response(&events).remembered);
}

#[test]
fn what_was_approved_is_what_runs_and_the_log_proves_it() {
    let agent = agent(json!({"editable": true}));
    for edited in [None, Some(json!({"topic": "Luce"}))] {
        let mut story = story(&agent, Some(1));
        story.take(calls(&[])).unwrap();
        let verdict = Verdict::Approve(edited.clone().map(Json::from));
        let yes = decide(&story, verdict, None, member(2, &[]));
        let events = story.take(yes).unwrap();
        let decision = response(&events);
        assert_eq!(decision.by, Some(person(2)));
        let call = story.run.calls().last().unwrap();
        let expected = edited.unwrap_or_else(|| json!({"topic": "Gravità"}));
        assert_eq!(call.input().to_value(), expected);
        // SHA-256 over the JSON with sorted members, as anybody can compute it of the input that ran.
        let known = match expected["topic"].as_str() {
            Some("Luce") => LUCE_HASH,
            _ => GRAVITY_HASH,
        };
        let hash = decision.input_hash.as_deref().unwrap();
        assert_eq!(hash, known);
        let replayed = story.replayed();
        let record = replayed.decision(call.tool.call.approval()).unwrap();
        assert_eq!(record.input_hash.as_deref(), Some(hash));
        assert_eq!(replayed.calls().last().unwrap().input().to_value(), expected);
    }
}

#[test]
fn the_first_yes_in_a_space_stands_for_every_later_call_there() {
    let first = || json!("first-in-space");
    assert!(!asks(first(), Some(2), |agent| consent(
        agent,
        member(1, &[]),
        Some(1)
    )));
    assert!(!asks(first(), None, |agent| consent(
        agent,
        Decider::Backend,
        None
    )));
    assert!(asks(json!("always"), Some(1), |agent| consent(
        agent,
        member(1, &[]),
        Some(1)
    )));
}

#[test]
fn a_yes_until_it_is_revoked_stands_for_the_person_it_was_given_for() {
    let until = || json!("until-revoked");
    assert!(!asks(until(), Some(1), |agent| consent(
        agent,
        member(1, &[]),
        Some(1)
    )));
    assert!(!asks(until(), Some(1), |agent| consent(
        agent,
        member(2, &[]),
        Some(1)
    )));
    assert!(asks(until(), Some(2), |agent| consent(
        agent,
        member(1, &[]),
        Some(1)
    )));
    assert!(asks(until(), None, |agent| consent(agent, member(1, &[]), None)));
    assert!(!asks(until(), None, |agent| consent(
        agent,
        Decider::Backend,
        None
    )));
    assert!(asks(until(), Some(1), |agent| consent(
        agent,
        Decider::Backend,
        None
    )));
}

#[test]
fn a_yes_until_it_is_revoked_stands_for_the_plans_of_its_person_and_for_nobody_elses() {
    let agent = agent(json!("until-revoked"));
    let asks =
        |asked_by, by, given_for| asks_in(plans_story(&agent, asked_by), consent(&agent, by, given_for));
    assert!(!asks(1, member(1, &[]), Some(1)));
    assert!(!asks(1, Decider::Backend, Some(1)));
    assert!(asks(2, Decider::Backend, Some(1)));
    assert!(asks(2, Decider::Backend, None));

    // It is remembered for that person.
    let mut story = plans_story(&agent, 1);
    story.take(calls(&[])).unwrap();
    let yes = decide(&story, Verdict::Approve(None), None, Decider::Backend);
    story.take(yes).unwrap();
    let approval = story.run.calls().last().unwrap().tool.call.approval();
    let record = story.run.decision(approval).unwrap();
    assert_eq!((record.remembered, record.works_for), (true, Some(person(1))));
    // A deleted person leaves no yes for nobody, which a plan of anybody else's could be.
    for entry in &mut story.log {
        if let Some(events) = entry.without_person(person(1)) {
            entry.events = events;
        }
    }
    let replayed = story.replayed();
    let record = replayed.decision(approval).unwrap();
    assert_eq!((record.remembered, record.works_for), (false, None));
}

#[test]
fn a_run_below_works_for_nobody_where_the_one_above_does() {
    let agent = agent(json!("until-revoked"));
    let mut above = story(&agent, Some(2));
    above.take(Arrival::Message(message(2))).unwrap();
    let _ = above.take(Arrival::Reply(crate::story::words("on my way again")));
    assert_eq!(above.run.works_for(), None, "who wrote last is not known");
    let prompt = Message {
        on_behalf_of: above.run.others_behind(),
        ..message(3)
    };
    assert_eq!(
        prompt.people().collect::<Vec<_>>(),
        [person(2)],
        "who may have asked"
    );
    for (by, given_for) in [
        (member(2, &[]), Some(2)),
        (Decider::Backend, Some(2)),
        (Decider::Backend, None),
    ] {
        let below = story_of(&agent, prompt.clone());
        assert!(asks_in(below, consent(&agent, by, given_for)));
    }
    // Nor is a yes there one for that person, or for anybody.
    let mut below = story_of(&agent, prompt);
    below.take(calls(&[])).unwrap();
    let yes = decide(&below, Verdict::Approve(None), None, Decider::Backend);
    let events = below.take(yes).unwrap();
    assert!(!response(&events).remembered);
}

#[test]
fn a_member_changes_no_input_that_another_members_grants_are_used_for() {
    let config = json!({"tools": [{
        "name": "my_tool", "description": "Makes a sheet.", "executionType": "basic",
        "execution": {"mode": "pass-through"}, "approval": "always", "visibility": "public",
        "personPermissions": ["refunds"],
        "parameters": {"type": "object", "properties": {"topic": {"type": "string"}}},
    }]});
    let catalog = catalog(&[]);
    let agent = Arc::new(agent::parse(&"tester".parse().unwrap(), &config, &defaults(&catalog)).unwrap());
    let edited = |topic: Value| Verdict::Approve(Some(json!({ "topic": topic }).into()));
    for (who, topic, expected) in [
        (member(2, &[]), json!("Luce"), Some("/input")),
        (member(1, &[]), json!(7), Some("/input/topic")),
        (member(1, &[]), json!("Luce"), None),
        (Decider::Backend, json!("Luce"), None),
    ] {
        let mut story = story(&agent, Some(1));
        let Arrival::Reply(reply) = calls(&[]) else {
            unreachable!("a reply")
        };
        let person_grants = vec!["refunds".to_owned()];
        let events = story
            .take(Arrival::Reply(Reply {
                person_grants,
                ..reply
            }))
            .unwrap();
        let Some(Event::ToolApprovalRequest(seen)) =
            view(&Event::from(request(&events).clone()), &who).map(std::borrow::Cow::into_owned)
        else {
            panic!("it is asked")
        };
        if let Decider::Member { entity, .. } = &who {
            let told = (seen.may_decide, seen.editable);
            assert_eq!(told, (Some(true), Some(*entity == person(1))));
        }
        let decision = decide(&story, edited(topic), None, who);
        match (story.take(decision), expected) {
            (Ok(_), None) => {}
            (Err(Rejected::Invalid(problems)), Some(pointer)) => assert_eq!(problems[0].pointer, pointer),
            (other, expected) => panic!("{other:?}, not {expected:?}"),
        }
    }
}

#[test]
fn another_definition_asks_again() {
    assert!(asks(json!("first-in-space"), Some(1), |agent| Consent {
        hash: "0".repeat(64),
        ..consent(agent, member(1, &[]), Some(1))
    }));
    assert!(asks(json!("first-in-space"), Some(1), |agent| Consent {
        tool: "other".parse().unwrap(),
        ..consent(agent, member(1, &[]), Some(1))
    }));
}

#[test]
fn a_yes_counts_while_its_giver_may_decide() {
    let chief = || json!({"approvers": {"roles": ["chief"]}, "remember": "first-in-space"});
    assert!(!asks(chief(), Some(1), |agent| consent(
        agent,
        member(2, &["chief"]),
        Some(1)
    )));
    assert!(asks(chief(), Some(1), |agent| consent(
        agent,
        member(2, &["guest"]),
        Some(1)
    )));
    let second = || json!({"notRequester": true, "remember": "first-in-space"});
    assert!(asks(second(), Some(1), |agent| consent(
        agent,
        member(1, &[]),
        Some(2)
    )));
}

#[test]
fn groups_are_not_remembered() {
    let config = json!({"tools": [{"name": "a", "description": "d", "executionType": "basic",
        "approval": {"approvers": {"groups": ["x"]}, "remember": "until-revoked"}}]});
    let problems = read_as("helper", &config, &[]).unwrap_err();
    assert!(
        problems[0].starts_with("/tools/0/approval/remember groups are known"),
        "{problems:?}"
    );
}

#[test]
fn a_proposal_expires_when_its_tool_says_and_the_model_is_told() {
    let mut story = story(&agent(json!("always")), Some(1));
    story.take(calls(&[])).unwrap();
    let expiry = START.after(Duration::from_secs(300));
    assert_eq!(story.run.wake_at(), Some(expiry));
    story.now = expiry;
    story.take(Arrival::Tick).unwrap();
    let CallState::Settled(settled) = &story.run.calls().last().unwrap().state else {
        panic!("it is over");
    };
    let Outcome::Error { code, message } = &settled.outcome else {
        panic!("nobody said yes");
    };
    assert_eq!(*code, ErrorCode::Denied);
    assert!(message.contains("nobody answered"), "{message}");
}

fn request(events: &[Event]) -> &ToolApprovalRequest {
    let found = events.iter().find_map(|event| match event {
        Event::ToolApprovalRequest(request) => Some(request),
        _ => None,
    });
    found.expect("it asks")
}

fn heard(event: &Event, reader: &Decider) -> Option<String> {
    let seen = view(event, reader).unwrap();
    let json = serde_json::to_value(&*seen).unwrap();
    json.pointer("/voice/text")
        .map(|text| text.as_str().unwrap().to_owned())
}

#[test]
fn a_proposal_is_said_aloud_as_far_as_each_listener_may_know() {
    let with = "Creare un foglio su Gravità?";
    let without = "Creare un nuovo foglio?";
    for (approval, to_ada, to_chief) in [
        (json!("always"), with, with),
        (json!({"hide": ["/topic"]}), without, without),
        (json!({"approvers": {"roles": ["chief"]}}), without, with),
        (json!({"approvers": "backend"}), without, without),
    ] {
        let mut story = story(&agent(approval.clone()), Some(1));
        let events = story.take(calls(&[])).unwrap();
        let event = Event::from(request(&events).clone());
        assert_eq!(heard(&event, &Decider::Backend).unwrap(), with);
        assert_eq!(heard(&event, &member(1, &[])).unwrap(), to_ada, "{approval}");
        assert_eq!(
            heard(&event, &member(2, &["chief"])).unwrap(),
            to_chief,
            "{approval}"
        );
    }
}

#[test]
fn a_completion_is_said_aloud_with_values_only_to_those_who_see_the_output() {
    let agent = agent(json!("always"));
    let mut story = story(&agent, Some(1));
    story.take(calls(&[])).unwrap();
    let yes = decide(&story, Verdict::Approve(None), None, member(1, &[]));
    story.take(yes).unwrap();
    let call = story.run.calls().last().unwrap().tool.call;
    let output = Arrival::Output {
        call,
        leg: 0,
        outcome: Outcome::Output(json!({"success": true, "data": {"itemCount": 3}}).into()),
        log: None,
    };
    let events = story.take(output).unwrap();
    let done = events.iter().find(|event| event.settles().is_some()).unwrap();
    let with = "Foglio su Gravità creato con 3 elementi";
    assert_eq!(heard(done, &Decider::Backend).unwrap(), with);
    assert_eq!(heard(done, &member(1, &[])).unwrap(), "Foglio creato");
}

#[test]
fn what_failed_by_its_own_word_is_not_confirmed_aloud() {
    for (output, said) in [
        (json!({"success": false, "error": "Error message"}), None),
        (json!({"success": "false"}), Some("Foglio creato")),
        (json!("no object"), Some("Foglio creato")),
    ] {
        let mut story = story(&agent(json!("never")), Some(1));
        story.take(calls(&[])).unwrap();
        let call = story.run.calls().last().unwrap().tool.call;
        let arrival = Arrival::Output {
            call,
            leg: 0,
            outcome: Outcome::Output(output.clone().into()),
            log: None,
        };
        let events = story.take(arrival).unwrap();
        let done = events.iter().find(|event| event.settles().is_some()).unwrap();
        assert_eq!(heard(done, &Decider::Backend).as_deref(), said, "{output}");
    }
}

#[test]
fn the_seeds_members_are_read() {
    let agent = agent(json!("always"));
    let tool = &agent.tools["my_tool"];
    assert_eq!(tool.display_name(), "My Tool");
    assert_eq!(
        tool.voice
            .as_ref()
            .unwrap()
            .prompt
            .as_ref()
            .unwrap()
            .requires_context,
        ["topic"]
    );
    let quiet = read(
        json!({"tools": [{"id": "a", "name": "A", "description": "d", "voicePrompt": "Hm?", "voiceEnabled": false}]}),
    );
    assert!(!quiet.tools["a"].voice.as_ref().unwrap().enabled);
}

#[test]
fn problems_of_the_seeds_members_stand_where_they_were_written() {
    let config = json!({"tools": [
        {"id": "not a name", "name": "", "description": "d", "voicePrompt": {"templat": "x"}, "voice": {"loud": 1},
         "voiceFeedback": 7, "voiceEnabled": "yes", "approvalTimeout": "soon"},
        {"id": "two", "name": "Two", "description": "d", "voice": {"prompt": "a"}, "voicePrompt": "b"},
    ]});
    let problems = read_as("helper", &config, &[]).unwrap_err();
    let places: Vec<&str> = problems
        .iter()
        .map(|line| line.split(' ').next().unwrap())
        .collect();
    for place in [
        "/tools/0/id",
        "/tools/0/name",
        "/tools/0/voicePrompt",
        "/tools/0/voice/loud",
        "/tools/0/voiceFeedback",
        "/tools/0/voiceEnabled",
        "/tools/0/approvalTimeout",
        "/tools/1/voicePrompt",
    ] {
        assert!(places.contains(&place), "{place} in {problems:#?}");
    }
}
