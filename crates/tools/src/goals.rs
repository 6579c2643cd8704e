//! Tools for an agent's goals. Goals belong to the agent, in every run and space.

use std::time::Duration;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::{Number, Value, json};
use toolgate_engine::record_updater::RecordUpdater;
use toolgate_engine::records::{Amendment, Change, Expected, Listing, NewRecord, Record};
use toolgate_engine::store::StoreError;
use toolgate_engine::tools::{CallContext, CallFailure};
use toolgate_kernel::agent::Action;
use toolgate_kernel::call::ErrorCode;
use toolgate_kernel::members::Members;
use toolgate_kernel::time::Time;
use toolgate_kernel::tool::Retry;
use toolgate_kernel::words::words;

use crate::records::{body, input, is_minted, named, of_agent};
use crate::toolkit::ServerTool;

pub(crate) const KIND: &str = "goal";
/// The members of a goal that can be changed by hand.
pub(crate) const CHANGEABLE: [&str; 4] = ["description", "priority", "isLongTerm", "isCompleted"];
/// Most goals of one agent, completed ones included.
const GOALS_MAX: usize = 200;
const DESCRIPTION_CHARS_MAX: usize = 2000;
const TIMEOUT: Duration = Duration::from_secs(10);

/// `setGoals`: creates, changes and clears goals, all or nothing.
pub(crate) struct SetGoals(pub RecordUpdater);
/// `getGoals`: reads them.
pub(crate) struct GetGoals(pub RecordUpdater);

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SetInput {
    goals: Vec<GoalInput>,
    #[serde(default)]
    clear_existing: bool,
    #[serde(default)]
    clear_completed: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct GoalInput {
    id: Option<String>,
    description: String,
    priority: Option<Number>,
    is_long_term: Option<bool>,
    is_completed: Option<bool>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Goal {
    description: String,
    priority: Number,
    is_long_term: bool,
    is_completed: bool,
}

impl Default for Goal {
    fn default() -> Self {
        Self {
            description: String::new(),
            priority: 0.into(),
            is_long_term: false,
            is_completed: false,
        }
    }
}

#[async_trait]
impl ServerTool for SetGoals {
    fn name(&self) -> &'static str {
        "setGoals"
    }
    fn action(&self) -> Action {
        Action {
            description: "Set or update your goals. Use this to track objectives, priorities, and progress."
                .into(),
            parameters: json!({
                "type": "object",
                "properties": {
                    "goals": {
                        "type": "array",
                        "maxItems": GOALS_MAX,
                        "description": "Goals to set or update.",
                        "items": {
                            "type": "object",
                            "properties": {
                                "id": {"type": "string", "description": "Existing goal to update. Omit to create a new goal."},
                                "description": {"type": "string", "minLength": 1, "maxLength": DESCRIPTION_CHARS_MAX, "description": "What you want to achieve."},
                                "priority": {"type": "number", "description": "0 is lowest. Higher is more important."},
                                "isLongTerm": {"type": "boolean", "description": "Whether it is a long-term, ongoing goal."},
                                "isCompleted": {"type": "boolean", "description": "Whether it is done."},
                            },
                            "required": ["description"],
                        },
                    },
                    "clearExisting": {"type": "boolean", "description": "Remove all existing goals first. Default: false."},
                    "clearCompleted": {"type": "boolean", "description": "Remove the goals that are done first. Default: false."},
                },
                "required": ["goals"],
            }),
            timeout: TIMEOUT,
            // The change is stored with the call's receipt, so a repeated call has no further effect.
            retry: Retry::Safe,
        }
    }
    async fn call(&self, given: Value, context: &CallContext) -> Result<Value, CallFailure> {
        let wanted: SetInput = input(given)?;
        let read = || listed(&self.0, context);
        let decide = |records: Vec<Record>| decide(&wanted, goals(&records)?, context);
        let set = of_agent(context, KIND);
        self.0.update(set, context.now, read, decide).await
    }
}

#[async_trait]
impl ServerTool for GetGoals {
    fn name(&self) -> &'static str {
        "getGoals"
    }
    fn action(&self) -> Action {
        Action {
            description: "Read your current goals, most important first.".into(),
            parameters: json!({
                "type": "object",
                "properties": {
                    "includeCompleted": {"type": "boolean", "description": "Also those that are done. Default: true."},
                },
            }),
            timeout: TIMEOUT,
            retry: Retry::Safe,
        }
    }
    async fn call(&self, given: Value, context: &CallContext) -> Result<Value, CallFailure> {
        let all = given["includeCompleted"].as_bool().unwrap_or(true);
        let mut goals = goals(&listed(&self.0, context).await?)?;
        goals.retain(|held| all || !held.goal.is_completed);
        Ok(told(&mut goals))
    }
}

/// A goal with its record's id, creation time and version.
struct Held {
    id: String,
    created: Time,
    version: u64,
    goal: Goal,
}

/// Changes of the goals, and the report to the agent.
fn decide(
    wanted: &SetInput,
    mut goals: Vec<Held>,
    context: &CallContext,
) -> Result<(Amendment, Value), CallFailure> {
    let mut expected = Vec::new();
    let mut changes = Vec::new();
    let mut modified = Vec::new();
    if wanted.clear_existing {
        changes.push(Change::Clear);
        goals.clear();
    }
    if wanted.clear_completed {
        let done = goals.extract_if(.., |held| held.goal.is_completed);
        changes.extend(done.map(|held| Change::Remove(held.id)));
    }
    for (index, input) in wanted.goals.iter().enumerate() {
        let (place, action) = match place(input, &goals, &expected)? {
            Some(place) => (place, "updated"),
            None => {
                goals.push(Held {
                    id: format!("goal_{}_{index:03}", context.call),
                    created: context.now,
                    version: 0,
                    goal: Goal::default(),
                });
                (goals.len() - 1, "created")
            }
        };
        let held = &mut goals[place];
        if held.version > 0 {
            expected.push(Expected {
                id: held.id.clone(),
                version: Some(held.version),
            });
        }
        held.goal.change(input);
        modified.push(json!({"action": action, "id": held.id, "description": held.goal.description}));
        changes.push(Change::Put(put(held.id.clone(), &held.goal)));
    }
    if goals.len() > GOALS_MAX {
        let words = format!(
            "you may have {GOALS_MAX} goals, those that are done among them; nothing was changed. Remove those \
             that are done with clearCompleted, or all with clearExisting"
        );
        return Err(CallFailure::new(ErrorCode::LimitExceeded, words));
    }
    let mut told = told(&mut goals);
    told["success"] = true.into();
    told["goalsModified"] = modified.into();
    let amendment = Amendment {
        expected,
        at_most: Some(GOALS_MAX as u64),
        changes,
        receipt: Some(context.receipt(told.clone().into())),
        ..Amendment::default()
    };
    Ok((amendment, told))
}

/// The goal that an input changes; none if it is a new one. One that says whether it is done means the goal of the same
/// description, unless this call has changed that one already.
fn place(input: &GoalInput, goals: &[Held], changed: &[Expected]) -> Result<Option<usize>, CallFailure> {
    // An id that the model made up counts as left out.
    if let Some(id) = input.id.as_ref().filter(|id| is_minted(id, "goal_")) {
        let missing = || {
            let there = goals
                .iter()
                .map(|held| (held.id.as_str(), held.goal.description.as_str()));
            let words = format!(
                "you have no goal {id:?}; nothing was changed. Your goals: {}. Call setGoals again with one of these ids, \
                 or without id for a new goal.",
                named(there)
            );
            CallFailure::new(ErrorCode::NotFound, words)
        };
        let place = goals.iter().position(|held| held.id == *id).ok_or_else(missing)?;
        return Ok(Some(place));
    }
    if input.is_completed.is_none() {
        return Ok(None);
    }
    let described: Vec<String> = words(&input.description).collect();
    let is_same = |held: &&(usize, &Held)| {
        let (_, held) = held;
        held.version > 0
            && !changed.iter().any(|expected| expected.id == held.id)
            && words(&held.goal.description).eq(described.iter().cloned())
    };
    let same = goals.iter().enumerate();
    let same = same.filter(|held| is_same(&held));
    Ok(same
        .min_by_key(|(_, held)| held.goal.is_completed)
        .map(|(place, _)| place))
}

impl Goal {
    /// Fields that are not given stay as they are.
    fn change(&mut self, input: &GoalInput) {
        self.description.clone_from(&input.description);
        if let Some(priority) = &input.priority {
            self.priority = priority.clone();
        }
        self.is_long_term = input.is_long_term.unwrap_or(self.is_long_term);
        self.is_completed = input.is_completed.unwrap_or(self.is_completed);
    }
}

/// The goal with changes by hand.
pub(crate) fn changed(record: &Record, changes: &Members<'_>) -> Option<NewRecord> {
    let mut goal: Goal = record.body.read().ok()?;
    if let Some(description) = changes.text("description", DESCRIPTION_CHARS_MAX) {
        goal.description = description.to_owned();
    }
    match changes.get("priority") {
        None => {}
        Some(Value::Number(priority)) => goal.priority = priority.clone(),
        Some(_) => changes.wrong("priority", "expected a number, 0 for the lowest"),
    }
    goal.is_long_term = changes.choice_of_bool("isLongTerm").unwrap_or(goal.is_long_term);
    goal.is_completed = changes.choice_of_bool("isCompleted").unwrap_or(goal.is_completed);
    Some(put(record.id.clone(), &goal))
}

/// The record of a goal.
fn put(id: String, goal: &Goal) -> NewRecord {
    NewRecord {
        id,
        body: serde_json::to_value(goal).expect("a goal is JSON").into(),
        text: None,
        data: None,
        due: None,
    }
}

async fn listed(updater: &RecordUpdater, context: &CallContext) -> Result<Vec<Record>, StoreError> {
    let listing = Listing {
        limit: GOALS_MAX,
        ..Listing::default()
    };
    let set = of_agent(context, KIND);
    updater.records().list_records(set, listing).await
}

fn goals(records: &[Record]) -> Result<Vec<Held>, CallFailure> {
    let held = |record: &Record| {
        Ok(Held {
            id: record.id.clone(),
            created: record.created,
            version: record.version,
            goal: body(record)?,
        })
    };
    records.iter().map(held).collect()
}

/// Goals by priority, then by age.
fn told(goals: &mut [Held]) -> Value {
    let priority = |held: &Held| held.goal.priority.as_f64().unwrap_or(0.0);
    let age = |held: &Held| (held.created, held.id.clone());
    goals.sort_by(|a, b| {
        let by_priority = priority(b).total_cmp(&priority(a));
        by_priority.then_with(|| age(a).cmp(&age(b)))
    });
    let told = |held: &Held| {
        let mut told = serde_json::to_value(&held.goal).expect("a goal is JSON");
        told["id"] = held.id.clone().into();
        told["createdAt"] = held.created.to_string().into();
        told
    };
    let current: Vec<Value> = goals.iter().map(told).collect();
    json!({"totalGoals": current.len(), "currentGoals": current})
}
