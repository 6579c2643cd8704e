//! Who may decide on a call, what they are shown of it, and whether they may change it.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::id::EntityId;
use crate::json::Json;
use crate::time::Time;

/// Who may decide, and on what terms. Stored: members may be added with a default, never renamed.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ApprovalTerms {
    /// Who may decide.
    pub approvers: Approvers,
    /// Whether it takes somebody else than the people who wrote to the run.
    #[serde(skip_serializing_if = "is_false")]
    pub not_requester: bool,
    /// The people who wrote to the run; filled in when a call asks, for `not_requester`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub requesters: Vec<EntityId>,
    /// Whether somebody wrote to the run whom the gateway does not know: a backend without naming the person, or a plan
    /// of before plans kept who asked for them.
    #[serde(skip_serializing_if = "is_false")]
    pub unknown_requester: bool,
    /// JSON pointers to members of the input that users who may decide are not shown.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hide: Vec<String>,
    /// Whether whoever decides may change the input; see [`ApprovalTerms::may_edit`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub editable: Option<bool>,
    /// The only member who may change the input where `editable` does not say more: the person with whose grants the call is
    /// made. Filled in when a call asks; none for a tool that needs no grants.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub editor: Option<EntityId>,
    /// Whether a yes is remembered, and for which calls it stands then; none if every call asks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remember: Option<Remember>,
}

/// Which later calls a remembered yes stands for. All are of the same agent in the same space, of the tool as it was
/// defined then, and until the yes is revoked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Remember {
    /// Every call in the space: the first one asks.
    FirstInSpace,
    /// Calls for the person whom the run worked for then.
    UntilRevoked,
}

impl Remember {
    /// Each with its word in JSON.
    pub const WORDS: [(&'static str, Self); 2] = [
        ("first-in-space", Self::FirstInSpace),
        ("until-revoked", Self::UntilRevoked),
    ];
}

/// The consent that a call runs by, in the call's events.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ConsentRef {
    /// What it is listed and revoked by.
    pub consent_id: String,
    /// Who gave it; absent for a secret key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<EntityId>,
    /// When it was given.
    pub given_at: Time,
}

/// Who may decide besides secret keys.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Approvers {
    /// Every member of the space, whoever asked included.
    #[default]
    Members,
    /// Nobody else.
    Backend,
    /// Members of the space with one of these roles, there or by their token.
    Roles(Vec<String>),
    /// Members of the space whose token names one of these groups.
    Groups(Vec<String>),
}

/// Somebody who wants to decide.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decider {
    /// A secret key: decides everything, since it answers for people of its own.
    Backend,
    /// A member of the space.
    Member {
        /// The person.
        entity: EntityId,
        /// Its role in the space.
        roles: Vec<String>,
        /// The roles that its token names.
        token_roles: Arc<[String]>,
        /// The groups that its token names.
        groups: Arc<[String]>,
    },
}

impl Decider {
    /// The person; none for a secret key.
    pub fn entity(&self) -> Option<EntityId> {
        match self {
            Self::Backend => None,
            Self::Member { entity, .. } => Some(*entity),
        }
    }

    /// The same without what its token says: what is still known of it when the token is not there.
    pub fn without_token(&self) -> Self {
        match self {
            Self::Backend => Self::Backend,
            Self::Member { entity, roles, .. } => Self::Member {
                entity: *entity,
                roles: roles.clone(),
                token_roles: Arc::default(),
                groups: Arc::default(),
            },
        }
    }
}

impl ApprovalTerms {
    /// Whether `who` may decide.
    pub fn admit(&self, who: &Decider) -> bool {
        let Decider::Member {
            entity,
            roles,
            token_roles,
            groups,
        } = who
        else {
            return true;
        };
        let named = match &self.approvers {
            Approvers::Members => true,
            Approvers::Backend => false,
            Approvers::Roles(needed) => roles
                .iter()
                .chain(token_roles.iter())
                .any(|role| needed.contains(role)),
            Approvers::Groups(needed) => groups.iter().any(|group| needed.contains(group)),
        };
        named && !(self.not_requester && self.may_have_asked(entity))
    }

    /// Whether a member who may decide otherwise may be the one who asked. Where it is not known who did, everybody may
    /// be; only a role or a group, which the tool's author names for this, tells them apart then.
    fn may_have_asked(&self, member: &EntityId) -> bool {
        let unknown = self.unknown_requester || self.requesters.is_empty();
        self.requesters.contains(member) || (unknown && self.approvers == Approvers::Members)
    }

    /// Whether every member may decide: it is consent then, not control.
    pub fn is_consent(&self) -> bool {
        self.approvers == Approvers::Members && !self.not_requester
    }

    /// Whether `who` may change the input. A tool that says nothing leaves a consent as it always was: a secret key may,
    /// and so may members who see the input anyway, but not what another member's grants are used for. With hidden members
    /// nobody may: what stands there would be lost.
    pub fn may_edit(&self, who: &Decider, is_seen: bool) -> bool {
        self.editable.unwrap_or_else(|| {
            let is_own = self.editor.is_none() || self.editor == who.entity();
            let trusted = (is_seen && is_own) || *who == Decider::Backend;
            self.is_consent() && self.hide.is_empty() && trusted
        })
    }

    /// The input as users who may decide see it.
    pub fn shown(&self, input: &Json) -> Json {
        if self.hide.is_empty() {
            return input.clone();
        }
        let mut value = input.to_value();
        for pointer in &self.hide {
            remove(&mut value, pointer);
        }
        value.into()
    }

    /// What every member may know of the terms.
    pub fn public(&self) -> Self {
        Self {
            approvers: self.approvers.clone(),
            not_requester: self.not_requester,
            requesters: Vec::new(),
            unknown_requester: false,
            hide: Vec::new(),
            editable: self.editable,
            editor: None,
            remember: self.remember,
        }
    }

    /// Whether users who may decide are not shown what stands at this path of the input, its steps parted by points.
    pub(crate) fn hides(&self, path: &str) -> bool {
        let pointer = format!("/{}", path.replace('.', "/"));
        let is_within = |hidden: &String| {
            let rest = pointer.strip_prefix(hidden.as_str());
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        self.hide.iter().any(is_within)
    }
}

/// Takes out what a pointer (RFC 6901) leads to. An item of a list becomes null, so that the others keep their places.
fn remove(value: &mut Value, pointer: &str) {
    let Some((parent, last)) = pointer.rsplit_once('/') else {
        return;
    };
    let last = last.replace("~1", "/").replace("~0", "~");
    match value.pointer_mut(parent) {
        Some(Value::Object(members)) => {
            members.remove(&last);
        }
        Some(Value::Array(items)) => {
            let item = last.parse::<usize>().ok().and_then(|index| items.get_mut(index));
            if let Some(item) = item {
                *item = Value::Null;
            }
        }
        Some(Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_)) | None => {}
    }
}

fn is_false(b: &bool) -> bool {
    !*b
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use uuid::Uuid;

    use super::*;

    fn member(number: u128, roles: &[&str], groups: &[&str]) -> Decider {
        Decider::Member {
            entity: EntityId::new(Uuid::from_u128(number)),
            roles: roles.iter().map(|&role| role.to_owned()).collect(),
            token_roles: Arc::default(),
            groups: groups.iter().map(|&group| group.to_owned()).collect(),
        }
    }

    #[test]
    fn those_decide_whom_the_tool_names_and_a_secret_key_always() {
        let asked = [EntityId::new(Uuid::from_u128(1))];
        let (ada, bob) = (member(1, &["chief"], &[]), member(2, &[], &["staff"]));
        for (terms, by_ada, by_bob) in [
            (json!({}), true, true),
            (json!({"notRequester": true}), false, true),
            (json!({"approvers": "backend"}), false, false),
            (json!({"approvers": {"roles": ["chief"]}}), true, false),
            (
                json!({"approvers": {"roles": ["chief"]}, "notRequester": true}),
                false,
                false,
            ),
            (json!({"approvers": {"roles": ["staff"]}}), false, false),
            (json!({"approvers": {"groups": ["staff", "x"]}}), false, true),
        ] {
            let mut read: ApprovalTerms = serde_json::from_value(terms.clone()).unwrap();
            read.requesters = asked.to_vec();
            let decides = |who| read.admit(who);
            assert_eq!((decides(&ada), decides(&bob)), (by_ada, by_bob), "{terms}");
            assert!(decides(&Decider::Backend), "{terms}");
        }
    }

    #[test]
    fn a_role_of_the_token_decides_and_is_not_known_without_the_token() {
        let terms: ApprovalTerms =
            serde_json::from_value(json!({"approvers": {"roles": ["chief"]}})).unwrap();
        let chief = Decider::Member {
            entity: EntityId::new(Uuid::from_u128(1)),
            roles: Vec::new(),
            token_roles: ["chief".to_owned()].into(),
            groups: Arc::default(),
        };
        assert!(terms.admit(&chief) && !terms.admit(&chief.without_token()));
        assert!(terms.admit(&member(1, &["chief"], &[]).without_token()));
        assert!(terms.admit(&Decider::Backend.without_token()));
    }

    #[test]
    fn where_it_is_not_known_who_asked_only_a_role_or_a_backend_tells_them_apart() {
        let (ada, chief) = (member(1, &[], &[]), member(2, &["chief"], &[]));
        let second_pair_of_eyes = json!({"notRequester": true, "unknownRequester": true});
        let by_role = json!({"notRequester": true, "approvers": {"roles": ["chief"]}});
        for (terms, by_ada, by_chief) in [
            (json!({"notRequester": true}), false, false),
            (second_pair_of_eyes, false, false),
            (by_role, false, true),
            (json!({"unknownRequester": true}), true, true),
        ] {
            let mut read: ApprovalTerms = serde_json::from_value(terms.clone()).unwrap();
            if read.unknown_requester {
                // Somebody known spoke as well.
                read.requesters = vec![EntityId::new(Uuid::from_u128(3))];
            }
            assert_eq!(
                (read.admit(&ada), read.admit(&chief)),
                (by_ada, by_chief),
                "{terms}"
            );
            assert!(read.admit(&Decider::Backend), "{terms}");
        }
    }

    #[test]
    fn hidden_members_are_taken_out_of_what_an_approver_sees() {
        let terms = ApprovalTerms {
            hide: ["/iban", "/to/0", "/a~1b/c", "/none/there", "/to/x"]
                .map(str::to_owned)
                .to_vec(),
            ..ApprovalTerms::default()
        };
        let input = json!({"iban": "DE", "to": ["x", "y"], "a/b": {"c": 1, "d": 2}, "amount": 3});
        assert_eq!(
            terms.shown(&input.into()).to_value(),
            json!({"to": [null, "y"], "a/b": {"d": 2}, "amount": 3})
        );
    }
}
