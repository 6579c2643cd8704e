//! Every event with a mark in every member, and exactly those that a public principal sees of it. A member that is
//! missing in the table is one that must stay hidden: showing it is a decision, made here and in `view.rs`.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::Value;
use serde_json::value::RawValue;
use uuid::Uuid;

use super::view;
use crate::event::{Event, every_marked};
use crate::id::EntityId;
use crate::tool::Decider;

/// Events that speak of no tool.
const SEEN: [(&str, &str); 17] = [
    (
        "run-start",
        "agent revision model.provider model.name depth clientTools[].name clientTools[].description \
         clientTools[].parameters clientTools[].outputSchema clientTools[].timeoutMs clientTools[].version \
         clientTools[].deprecated clientTools[].givenName",
    ),
    (
        "message",
        "message.messageId message.from message.parts[].type message.parts[].text message.parts[].url \
         message.parts[].mediaType message.metadata message.origin.type message.origin.planId message.origin.dueAt \
         message.onBehalfOf[]",
    ),
    (
        "history",
        "from turns[].user[].type turns[].user[].text turns[].user[].url turns[].user[].mediaType turns[].assistant[].text",
    ),
    ("call-request", "toolName from"),
    ("step-start", "step"),
    ("step-retry", "step attempt notBefore"),
    ("text-start", "id"),
    ("text-delta", "id delta"),
    ("text-end", "id text"),
    ("reasoning-start", "id"),
    ("reasoning-delta", "id delta"),
    ("reasoning-end", "id text"),
    (
        "step-finish",
        "step reason usage.inputTokens usage.outputTokens usage.reasoningTokens usage.cachedTokens usage.estimated",
    ),
    ("run-status", "status"),
    (
        "run-finish",
        "status reason usage.inputTokens usage.outputTokens usage.reasoningTokens usage.cachedTokens usage.estimated",
    ),
    ("notification", "title body messageId"),
    // As much of the event as there is to see of it anywhere: here of a call that is offered to another member.
    (
        "child-call",
        "ignorable agent childRunId event.type event.toolCallId event.toolName event.givenName event.placement event.shown",
    ),
];

/// Events of a call: what is seen of any tool, or `None` when nothing is; and what else of one that clients execute or
/// that opted in.
const SEEN_OF_CALLS: [(&str, Option<&str>, &str); 13] = [
    ("tool-input-start", Some(""), ""),
    ("tool-input-delta", None, "inputTextDelta"),
    (
        "tool-input-available",
        Some("deadline"),
        "input reserved.holder reserved.until consent.consentId consent.by consent.givenAt",
    ),
    (
        "tool-approval-request",
        // What it says of the reader is made for each reader.
        Some("approvalId expiresAt terms.approvers.roles[] terms.notRequester terms.editable terms.remember"),
        "input voice.text",
    ),
    (
        "tool-approval-response",
        Some("approvalId approved expired deadline remembered"),
        "reason input by reserved.holder reserved.until inputHash",
    ),
    (
        "tool-question",
        Some("questionId message schema url expiresAt"),
        "",
    ),
    ("tool-question-response", Some("questionId action expired"), "by"),
    (
        "tool-executing",
        Some(""),
        "claim.holder claim.until child pause.until pause.signal",
    ),
    ("tool-released", Some(""), ""),
    ("tool-progress", None, "progress"),
    ("tool-output-available", Some(""), "output warning voice.text"),
    ("tool-output-error", Some(""), "code errorText"),
    ("tool-output-denied", Some(""), "reason"),
];
const EVERY_CALL: &str = "toolCallId toolName givenName placement";

/// A member of the space without roles or groups.
fn member() -> Decider {
    Decider::Member {
        entity: EntityId::new(Uuid::nil()),
        roles: Vec::new(),
        token_roles: Arc::default(),
        groups: Arc::default(),
    }
}

/// Events that only backends see.
const UNSEEN: [&str; 2] = ["context-cut", "tool-sampling"];

/// `event` of a tool with this placement and visibility.
fn placed(event: &Event, placement: &str, shown: bool) -> Event {
    offered(event, placement, shown, None)
}

/// The same, offered to this member alone.
fn offered(event: &Event, placement: &str, shown: bool, to: Option<EntityId>) -> Event {
    let mut json = serde_json::to_value(event).unwrap();
    json["placement"] = placement.into();
    json["shown"] = shown.into();
    json["offeredTo"] = to.map(|to| to.to_string()).into();
    let raw = RawValue::from_string(json.to_string()).unwrap();
    Event::read(&raw).unwrap()
}

/// The leaves of a value with their paths, as in `message.parts[].text`.
fn leaves(value: &Value, path: &str, found: &mut Vec<(String, Value)>) {
    match value {
        Value::Object(members) => {
            let dot = if path.is_empty() { "" } else { "." };
            for (name, member) in members {
                leaves(member, &format!("{path}{dot}{name}"), found);
            }
        }
        Value::Array(items) => items
            .iter()
            .for_each(|item| leaves(item, &format!("{path}[]"), found)),
        leaf => found.push((path.to_owned(), leaf.clone())),
    }
}

fn leaves_of(event: &Event) -> Vec<(String, Value)> {
    let mut found = Vec::new();
    leaves(&serde_json::to_value(event).unwrap(), "", &mut found);
    found.retain(|(path, _)| path != "type");
    found
}

/// Checks that the reader sees of `event` the members at `expected`, and no byte of any other.
fn check(event: &Event, reader: &Decider, expected: Option<&BTreeSet<String>>) {
    let kind = event.kind();
    let seen = view(event, reader);
    assert_eq!(seen.is_some(), expected.is_some(), "{kind}");
    let (Some(seen), Some(expected)) = (seen, expected) else {
        return;
    };
    let seen_leaves = leaves_of(&seen);
    let (shown, hidden): (Vec<_>, Vec<_>) = leaves_of(event)
        .into_iter()
        .partition(|leaf| seen_leaves.contains(leaf));
    let paths: BTreeSet<String> = shown.into_iter().map(|(path, _)| path).collect();
    assert_eq!(paths, *expected, "{kind} to {reader:?}");
    let text = serde_json::to_string(&*seen).unwrap();
    // What is said without variables stands in for what is said with them.
    for (path, mark) in hidden.into_iter().filter(|(path, _)| path != "voice.plain") {
        // `true` and names of variants are no marks.
        let unique = |mark: &str| mark.contains("100");
        let mark = mark.as_str().map_or_else(|| mark.to_string(), str::to_owned);
        assert!(
            !unique(&mark) || !text.contains(&mark),
            "{kind}: {path} in {text}"
        );
    }
}

fn paths(lists: &[&str]) -> BTreeSet<String> {
    let paths = lists.iter().flat_map(|list| list.split_whitespace());
    paths.map(str::to_owned).collect()
}

#[test]
fn a_public_principal_sees_the_listed_members_of_every_event_and_no_other() {
    let mut kinds = BTreeSet::new();
    for event in every_marked() {
        let kind = event.kind().to_owned();
        if let Some((_, seen)) = SEEN.iter().find(|(name, _)| *name == kind) {
            check(&event, &member(), Some(&paths(&[seen])));
        } else if UNSEEN.contains(&kind.as_str()) {
            check(&event, &member(), None);
        } else {
            let (_, always, payload) = SEEN_OF_CALLS
                .iter()
                .find(|(name, ..)| *name == kind)
                .unwrap_or_else(|| panic!("{kind} is not in the table: who sees what of it?"));
            let hidden = always.map(|always| paths(&[EVERY_CALL, always]));
            let seen = paths(&[EVERY_CALL, always.unwrap_or_default(), payload]);
            let opted_in = paths(&[EVERY_CALL, "shown", always.unwrap_or_default(), payload]);
            for placement in ["server", "plugin", "mcp"] {
                check(&placed(&event, placement, false), &member(), hidden.as_ref());
                check(&placed(&event, placement, true), &member(), Some(&opted_in));
            }
            check(&placed(&event, "client", false), &member(), Some(&seen));
            // What is offered to another member looks like a call on the gateway's side, and is no offer.
            let others = hidden.map(|mut hidden| {
                hidden.remove("deadline");
                hidden
            });
            let other = EntityId::new(Uuid::from_u128(7));
            check(
                &offered(&event, "client", false, Some(other)),
                &member(),
                others.as_ref(),
            );
            let own = offered(&event, "client", false, member().entity());
            check(&own, &member(), Some(&seen));
        }
        kinds.insert(kind);
    }
    assert_eq!(kinds.len(), SEEN.len() + SEEN_OF_CALLS.len() + UNSEEN.len());
}

#[test]
fn whoever_answered_a_question_sees_what_it_answered() {
    let answers = |event: &Event| matches!(event, Event::ToolQuestionResponse(_));
    let event = every_marked().into_iter().find(answers).unwrap();
    let Event::ToolQuestionResponse(response) = placed(&event, "mcp", false) else {
        unreachable!("found as one");
    };
    let who = |entity: EntityId| Decider::Member {
        entity,
        roles: Vec::new(),
        token_roles: Arc::default(),
        groups: Arc::default(),
    };
    let own = response.by.unwrap();
    let event = Event::from(response);
    let seen = paths(&[EVERY_CALL, "questionId action expired by content"]);
    check(&event, &who(own), Some(&seen));
    let seen = paths(&[EVERY_CALL, "questionId action expired"]);
    check(&event, &who(EntityId::new(Uuid::nil())), Some(&seen));
}

#[test]
fn a_secret_principal_sees_every_member_of_every_event() {
    for event in every_marked() {
        let all = leaves_of(&event).into_iter().map(|(path, _)| path).collect();
        check(&event, &Decider::Backend, Some(&all));
    }
}

#[test]
fn an_event_of_a_newer_version_is_not_shown_to_a_public_principal() {
    let raw = RawValue::from_string(r#"{"type":"newer","ignorable":true,"secret":1}"#.into()).unwrap();
    let event = Event::read(&raw).unwrap();
    assert!(view(&event, &member()).is_none());
    assert!(view(&event, &Decider::Backend).is_some());
}
