//! Reads the `approval` of a tool's definition: who may decide, and on what terms.

use serde_json::Value;

use super::{ApprovalTerms, Approvers, Remember};
use crate::agent::{GROUP_CHARS_MAX, GROUPS_MAX};
use crate::members::Members;
use crate::problem::shown;

/// Most members of an input that a tool may hide from its approvers.
const HIDDEN_MAX: usize = 64;
const POINTER_CHARS_MAX: usize = 256;

/// The members of `approval`, `when` included.
pub(crate) const APPROVAL_MEMBERS: [&str; 6] = [
    "when",
    "approvers",
    "notRequester",
    "hide",
    "editable",
    "remember",
];

/// Reads who may decide on the calls of a tool, and on what terms.
pub(crate) fn read_terms(rule: &Members<'_>) -> ApprovalTerms {
    let flag = |name| rule.choice_of_bool(name);
    let hide = rule.texts("hide", HIDDEN_MAX, POINTER_CHARS_MAX);
    for (index, pointer) in hide.iter().enumerate() {
        if !pointer.starts_with('/') {
            let words = format!("expected a JSON pointer such as \"/iban\", got {pointer:?}");
            rule.problems.add(format!("{}/{index}", rule.at("hide")), words);
        }
    }
    let editable = flag("editable");
    if editable == Some(true) && !hide.is_empty() {
        let words = "an input with hidden members cannot be edited, since what they hold would be lost; leave out \"editable\" or \"hide\"";
        rule.wrong("editable", words);
    }
    let approvers = approvers(rule);
    let remember = rule.choice("remember", &Remember::WORDS);
    if remember.is_some() && matches!(approvers, Approvers::Groups(_)) {
        let words = "groups are known from a token alone, so a remembered yes would outlive them; name \"roles\" of the space, or leave out \"remember\"";
        rule.wrong("remember", words);
    }
    ApprovalTerms {
        approvers,
        not_requester: flag("notRequester").unwrap_or(false),
        requesters: Vec::new(),
        unknown_requester: false,
        hide,
        editable,
        editor: None,
        remember,
    }
}

fn approvers(rule: &Members<'_>) -> Approvers {
    match rule.get("approvers") {
        None => Approvers::Members,
        Some(Value::String(word)) if word == "members" => Approvers::Members,
        Some(Value::String(word)) if word == "backend" => Approvers::Backend,
        Some(Value::Object(named)) if named.len() == 1 => {
            let Some(section) = rule.section("approvers", &["roles", "groups"]) else {
                return Approvers::Backend;
            };
            let names = |member| section.texts(member, GROUPS_MAX, GROUP_CHARS_MAX);
            let (roles, groups) = (names("roles"), names("groups"));
            if roles.is_empty() && groups.is_empty() {
                section.lacks("expected \"roles\" or \"groups\" with at least one name");
            }
            match groups.is_empty() {
                true => Approvers::Roles(roles),
                false => Approvers::Groups(groups),
            }
        }
        Some(other) => {
            let words = "expected \"members\", \"backend\", {\"roles\": [names]} or {\"groups\": [names]}";
            rule.wrong("approvers", format!("{words}, got {}", shown(other)));
            Approvers::Backend
        }
    }
}
