//! What an agent works toward. Goals belong to the agent, in every run and space.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::{Number, Value, json};
use toolgate_engine::records::{Change, Expected, Listing, NewRecord, Record, Records};
use toolgate_engine::store::StoreError;
use toolgate_engine::tools::{CallContext, CallFailure};
use toolgate_kernel::agent::Action;
use toolgate_kernel::call::ErrorCode;
use toolgate_kernel::time::Time;
use toolgate_kernel::tool::Retry;

use crate::shelf::{body, input, of_agent, store};
use crate::toolkit::ServerTool;

const KIND: &str = "goal";
/// Goals that one agent may have.
const GOALS_MAX: usize = 200;
/// How often a change is made again that another run came between.
const ATTEMPTS: u32 = 5;
const TIMEOUT: Duration = Duration::from_secs(10);

/// Creates, changes and clears goals: all that is asked for, or nothing.
pub(crate) struct SetGoals(pub Arc<dyn Records>);
/// Reads them.
pub(crate) struct GetGoals(pub Arc<dyn Records>);

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SetInput {
    goals: Vec<GoalInput>,
    #[serde(default)]
    clear_existing: bool,
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

#[derive(Serialize, Deserialize, Clone)]
#[serde(rename_all = "camelCase")]
struct Goal {
    description: String,
    priority: Number,
    is_long_term: bool,
    is_completed: bool,
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
                                "description": {"type": "string", "minLength": 1, "maxLength": 2000, "description": "What you want to achieve."},
                                "priority": {"type": "number", "description": "0 is lowest. Higher is more important."},
                                "isLongTerm": {"type": "boolean", "description": "Whether it is a long-term, ongoing goal."},
                                "isCompleted": {"type": "boolean", "description": "Whether it is done."},
                            },
                            "required": ["description"],
                        },
                    },
                    "clearExisting": {"type": "boolean", "description": "Remove all existing goals first. Default: false."},
                },
                "required": ["goals"],
            }),
            timeout: TIMEOUT,
            // New goals are named by the call: doing it again is doing it once.
            retry: Retry::Safe,
        }
    }
    async fn call(&self, given: Value, context: &CallContext) -> Result<Value, CallFailure> {
        let wanted: SetInput = input(given)?;
        for _ in 0..ATTEMPTS {
            let existing = goals(&self.0, context).await?;
            let (expected, changes, modified) = plan(&wanted, &existing, context)?;
            let shelf = of_agent(context, KIND);
            match self.0.change_records(shelf, expected, changes, context.now).await {
                Ok(()) => {
                    let current = goals(&self.0, context).await?;
                    let mut told = told(&current)?;
                    told["success"] = true.into();
                    told["goalsModified"] = modified.into();
                    return Ok(told);
                }
                Err(StoreError::Conflict) => {}
                Err(error) => return Err(store(error)),
            }
        }
        Err(CallFailure::unavailable(
            "the goals are being changed by another run; try again",
        ))
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
        let mut kept = Vec::new();
        for record in goals(&self.0, context).await? {
            if all || !body::<Goal>(&record)?.is_completed {
                kept.push(record);
            }
        }
        told(&kept)
    }
}

/// What has to change, what must not have changed meanwhile, and what the agent is told of it.
type Planned = (Vec<Expected>, Vec<Change>, Vec<Value>);

fn plan(wanted: &SetInput, existing: &[Record], context: &CallContext) -> Result<Planned, CallFailure> {
    let mut expected: Vec<Expected> = Vec::new();
    let mut changes: Vec<Change> = wanted
        .clear_existing
        .then_some(Change::Clear)
        .into_iter()
        .collect();
    let mut modified = Vec::new();
    let kept = if wanted.clear_existing { 0 } else { existing.len() };
    let created = wanted.goals.iter().filter(|goal| goal.id.is_none()).count();
    if kept + created > GOALS_MAX {
        let words = format!("you may have {GOALS_MAX} goals; complete or clear some first");
        return Err(CallFailure::new(ErrorCode::LimitExceeded, words));
    }
    for (index, goal) in wanted.goals.iter().enumerate() {
        let (id, before, action) = match &goal.id {
            None => (format!("goal_{}_{index:03}", context.call), None, "created"),
            Some(id) => {
                let record = existing
                    .iter()
                    .find(|record| record.id == *id && !wanted.clear_existing);
                let record = record.ok_or_else(|| {
                    CallFailure::new(
                        ErrorCode::NotFound,
                        format!("you have no goal {id:?}; nothing was changed"),
                    )
                })?;
                expected.push(Expected {
                    id: id.clone(),
                    version: Some(record.version),
                });
                (id.clone(), Some(body::<Goal>(record)?), "updated")
            }
        };
        let now = Goal {
            description: goal.description.clone(),
            priority: goal
                .priority
                .clone()
                .or(before.as_ref().map(|goal| goal.priority.clone()))
                .unwrap_or_else(|| 0.into()),
            is_long_term: goal
                .is_long_term
                .or(before.as_ref().map(|goal| goal.is_long_term))
                .unwrap_or(false),
            is_completed: goal
                .is_completed
                .or(before.as_ref().map(|goal| goal.is_completed))
                .unwrap_or(false),
        };
        modified.push(json!({"action": action, "id": id, "description": now.description}));
        changes.push(Change::Put(NewRecord {
            id,
            body: serde_json::to_value(now).expect("a goal is JSON").into(),
            text: None,
            data: None,
            due: None,
        }));
    }
    Ok((expected, changes, modified))
}

/// The agent's goals: by priority, then by age.
async fn goals(records: &Arc<dyn Records>, context: &CallContext) -> Result<Vec<Record>, CallFailure> {
    let listing = Listing {
        limit: GOALS_MAX,
        ..Listing::default()
    };
    let listed = records
        .list_records(of_agent(context, KIND), listing)
        .await
        .map_err(store)?;
    let mut ranked = Vec::with_capacity(listed.len());
    for record in listed {
        ranked.push((body::<Goal>(&record)?.priority.as_f64().unwrap_or(0.0), record));
    }
    let age = |record: &Record| (record.created, record.id.clone());
    ranked.sort_by(|(p, a), (q, b)| q.total_cmp(p).then_with(|| age(a).cmp(&age(b))));
    Ok(ranked.into_iter().map(|(_, record)| record).collect())
}

fn told(records: &[Record]) -> Result<Value, CallFailure> {
    let mut goals = Vec::with_capacity(records.len());
    for record in records {
        let mut goal = serde_json::to_value(body::<Goal>(record)?).expect("a goal is JSON");
        goal["id"] = record.id.clone().into();
        goal["createdAt"] = Time::to_string(&record.created).into();
        goals.push(goal);
    }
    Ok(json!({"currentGoals": goals, "totalGoals": goals.len()}))
}
