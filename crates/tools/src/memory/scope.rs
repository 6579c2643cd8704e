//! Whose a memory is: the person's whom the run works for, the space's, or the agent's.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use toolgate_engine::records::{Owner, RecordSet};
use toolgate_engine::store::Store;
use toolgate_engine::tools::{CallContext, CallFailure};
use toolgate_kernel::id::EntityId;
use toolgate_kernel::members::Members;
use toolgate_kernel::problem::shown;

use super::KIND;

/// Whose a memory is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Scope {
    /// The person's whom the run works for: all agents of the project recall it when they work for that person.
    User,
    /// The space's: recalled in the space, whoever speaks.
    Space,
    /// The agent's: recalled in every run of it, whoever speaks.
    Agent,
}

impl Scope {
    /// All of them, the narrowest first.
    const ALL: [Self; 3] = [Self::User, Self::Space, Self::Agent];
}

/// Names of the actions that have a scope.
const ACTIONS: [&str; 2] = ["setMemory", "getMemory"];

/// Notes what is wrong with the `scope` that an `execution` has.
pub(crate) fn check_scope(tool: &Members<'_>, execution: &Value, scope: &Value) {
    let at = format!("{}/scope", tool.at("execution"));
    let action = execution["action"].as_str().unwrap_or_default();
    if !ACTIONS.contains(&action) {
        let words = format!("only the actions {} have a scope", ACTIONS.join(" and "));
        tool.problems.add(at, words);
    } else if serde_json::from_value::<Scope>(scope.clone()).is_err() {
        let words = "expected \"user\", \"space\" or \"agent\"";
        tool.problems.add(at, format!("{words}, got {}", shown(scope)));
    }
}

/// The memories that a call may see.
pub(super) struct Scopes<'c> {
    context: &'c CallContext,
    person: Person,
}

/// Whom the run works for, as far as its memories are concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Person {
    Nobody,
    Member(EntityId),
    /// Somebody who is no member of the space any more. What is remembered of them is not for those who still are.
    Left,
}

impl<'c> Scopes<'c> {
    pub async fn of(store: &Arc<dyn Store>, context: &'c CallContext) -> Result<Self, CallFailure> {
        let person = match context.works_for {
            None => Person::Nobody,
            Some(person) => match store.member(context.space, person).await? {
                Some(_) => Person::Member(person),
                None => Person::Left,
            },
        };
        Ok(Self { context, person })
    }

    /// Where something new is kept: in the scope that was chosen, or with the person if there is one, or else with the
    /// agent.
    pub fn for_new(&self, chosen: Option<Scope>) -> Result<(Scope, RecordSet), CallFailure> {
        let scope = chosen.unwrap_or(match self.person {
            Person::Nobody => Scope::Agent,
            Person::Member(_) | Person::Left => Scope::User,
        });
        let set = self.set(scope).ok_or_else(|| {
            CallFailure::unavailable(match self.person {
                Person::Left => {
                    "whom this run works for is no longer a member of the space, so nothing is remembered for them; \
                     go on without it"
                }
                Person::Nobody | Person::Member(_) => {
                    "this run works for no person, so nothing can be remembered for one; go on without it"
                }
            })
        })?;
        Ok((scope, set))
    }

    /// Everything that may be recalled, of the scope that was chosen or of all: what is the person's first.
    pub fn readable(&self, chosen: Option<Scope>) -> Vec<(Scope, RecordSet)> {
        let scopes = Scope::ALL
            .into_iter()
            .filter(|scope| chosen.is_none_or(|chosen| chosen == *scope));
        scopes
            .filter_map(|scope| Some((scope, self.set(scope)?)))
            .collect()
    }

    /// The memories of a scope; none where there is no such person.
    fn set(&self, scope: Scope) -> Option<RecordSet> {
        let owner = match (scope, self.person) {
            (Scope::User, Person::Member(person)) => Owner::Entity(person),
            (Scope::User, Person::Nobody | Person::Left) => return None,
            (Scope::Space, _) => Owner::Space(self.context.space),
            (Scope::Agent, _) => Owner::Entity(self.context.entity),
        };
        Some(RecordSet {
            project: self.context.project,
            owner,
            kind: KIND,
        })
    }
}
