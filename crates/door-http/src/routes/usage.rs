//! What projects consume, and how far their budgets are used up.

use axum::extract::State;
use serde::Serialize;
use toolgate_engine::budget::{Amounts, BudgetState, Scope};
use toolgate_engine::consumption::{
    Consumed, Consumer, ConsumptionBy, ConsumptionFilter, ConsumptionKey, Days,
};
use toolgate_engine::usage::Day;
use toolgate_http::answer::{Answer, ok};
use toolgate_http::caller::{Backend, Caller, Operator};
use toolgate_http::describe::{BackendOnly, BadQuery, Missing, Refused};
use toolgate_http::problem::Refusal;
use toolgate_http::query::{At, Query};
use toolgate_http::{Shared, schema};
use toolgate_kernel::id::{EntityId, ProjectId};
use toolgate_kernel::name::AgentName;
use toolgate_kernel::time::Time;
use utoipa::ToSchema;

/// Most days that are summed up at once.
const DAYS_MAX: i64 = 366;
/// Micro-units in a unit of a currency.
const MICROS: f64 = 1e6;

/// What a project has consumed: a page of groups, and the sum over all of them.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct UsageReport {
    /// The first day, in UTC.
    from: String,
    /// The last day, which is included.
    to: String,
    /// Currency of the costs.
    currency: String,
    /// All groups together.
    total: UsageSums,
    /// The groups, in the order of their keys.
    rows: Vec<UsageRow>,
    /// What to give as `after` for the next page; null on the last.
    next_cursor: Option<String>,
}

/// One group.
#[derive(Serialize, ToSchema)]
pub(crate) struct UsageRow {
    /// The day, the agent, the id of the user or the model as `provider:name`; null for runs that work for no user.
    key: Option<String>,
    /// Subject of the user, as its tokens name it; for groups by user alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    subject: Option<String>,
    #[serde(flatten)]
    sums: UsageSums,
}

/// What was consumed.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct UsageSums {
    /// Runs that were created, child runs and requested calls among them.
    runs: u64,
    /// Replies of models: steps, summaries, and what tools had a model asked.
    requests: u64,
    /// Tokens read.
    input_tokens: u64,
    /// Tokens written, reasoning included.
    output_tokens: u64,
    /// Of those read, how many came from the vendor's cache.
    cached_tokens: u64,
    /// Cost by the prices at the time of each request.
    cost: f64,
    /// Requests to models that had no price: their cost is unknown, and not in `cost`.
    unpriced_requests: u64,
}

impl From<Consumed> for UsageSums {
    fn from(consumed: Consumed) -> Self {
        Self {
            runs: consumed.runs,
            requests: consumed.requests,
            input_tokens: consumed.input_tokens,
            output_tokens: consumed.output_tokens,
            cached_tokens: consumed.cached_tokens,
            cost: consumed.cost_micros as f64 / MICROS,
            unpriced_requests: consumed.unpriced_requests,
        }
    }
}

/// What usage is grouped by.
#[derive(ToSchema)]
#[schema(as = UsageBy, rename_all = "lowercase")]
#[expect(dead_code, reason = "describes the engine's groups")]
pub(crate) enum UsageByWord {
    Day,
    Agent,
    User,
    Model,
}

/// What the project has consumed: runs, tokens and cost, by day, agent, user or model. Counted by the same writes as the
/// log, so the same on every node.
#[utoipa::path(
    get, path = "/v1/usage", operation_id = "get_usage", tag = "usage",
    params(
        ("from" = Option<String>, Query, description = "First day, as `2026-11-18`, in UTC; the first of this month unless said otherwise."),
        ("to" = Option<String>, Query, description = "Last day, which is included; today unless said otherwise."),
        ("by" = inline(Option<UsageByWord>), Query, description = "What the rows are of; `day` unless said otherwise."),
        ("after" = Option<String>, Query, description = "`nextCursor` of the page before."),
        ("limit" = Option<usize>, Query, minimum = 1, maximum = 500),
    ),
    responses((status = 200, description = "A page.", body = UsageReport), BadQuery, BackendOnly, Refused),
)]
pub(crate) async fn usage(
    State(door): State<Shared>,
    Backend(project): Backend,
    query: Query,
) -> Result<Answer<UsageReport>, Refusal> {
    report(&door, project, &query).await
}

/// What a project has consumed, for the operator.
#[utoipa::path(
    get, path = "/v1/projects/{project}/usage", operation_id = "get_project_usage", tag = "usage",
    params(
        ("project" = String, Path, description = "The project's name."),
        ("from" = Option<String>, Query, description = "First day, as `2026-11-18`, in UTC; the first of this month unless said otherwise."),
        ("to" = Option<String>, Query, description = "Last day, which is included; today unless said otherwise."),
        ("by" = inline(Option<UsageByWord>), Query, description = "What the rows are of; `day` unless said otherwise."),
        ("after" = Option<String>, Query, description = "`nextCursor` of the page before."),
        ("limit" = Option<usize>, Query, minimum = 1, maximum = 500),
    ),
    responses((status = 200, description = "A page.", body = UsageReport), BadQuery, Missing, BackendOnly, Refused),
)]
pub(crate) async fn of_project(
    State(door): State<Shared>,
    _: Operator,
    At(name): At<String>,
    query: Query,
) -> Result<Answer<UsageReport>, Refusal> {
    let project = super::projects::named(&door, &name).await?;
    report(&door, project.id, &query).await
}

async fn report(door: &Shared, project: ProjectId, query: &Query) -> Result<Answer<UsageReport>, Refusal> {
    let days = days_of(query, door.engine.clock().now())?;
    let by = by_of(query)?;
    let after = match query.text("after") {
        None => None,
        Some(text) => Some(ConsumptionKey::parse(by, text).ok_or_else(|| {
            Refusal::malformed("query after: must be nextCursor of the page before, with the same by")
        })?),
    };
    let limit = query.limit()?;
    let filter = ConsumptionFilter {
        days,
        by,
        after,
        limit,
    };
    let total = door.engine.consumed(project, Consumer::Project, days).await?;
    let groups = door.engine.consumption(project, filter).await?;
    let next_cursor = groups.last().filter(|_| groups.len() == limit);
    let next_cursor = next_cursor.map(|(key, _)| key.to_string());
    let mut rows = Vec::with_capacity(groups.len());
    for (key, consumed) in groups {
        rows.push(UsageRow {
            subject: subject_of(door, &key).await?,
            key: match key {
                ConsumptionKey::User(None) => None,
                key => Some(key.to_string()),
            },
            sums: consumed.into(),
        });
    }
    Ok(ok(UsageReport {
        from: days.first.to_string(),
        to: days.last.to_string(),
        currency: door.engine.currency(project).await?,
        total: total.into(),
        rows,
        next_cursor,
    }))
}

async fn subject_of(door: &Shared, key: &ConsumptionKey) -> Result<Option<String>, Refusal> {
    let ConsumptionKey::User(Some(user)) = key else {
        return Ok(None);
    };
    let entity = door.engine.entity(*user).await?;
    Ok(entity.map(|entity| entity.subject))
}

fn days_of(query: &Query, now: Time) -> Result<Days, Refusal> {
    let today = Day::of(now);
    let last = query.read("to")?.unwrap_or(today);
    let first = query.read("from")?.unwrap_or_else(|| last.min(today).month());
    if first > last {
        let words = format!("query from: {first} is after {last}, the last day");
        return Err(Refusal::malformed(words));
    }
    if last.0 - first.0 >= DAYS_MAX {
        let words =
            format!("query from: {first} to {last} are too many days, at most {DAYS_MAX} are summed up");
        return Err(Refusal::malformed(words));
    }
    Ok(Days { first, last })
}

fn by_of(query: &Query) -> Result<ConsumptionBy, Refusal> {
    let known = [
        ("day", ConsumptionBy::Day),
        ("agent", ConsumptionBy::Agent),
        ("user", ConsumptionBy::User),
        ("model", ConsumptionBy::Model),
    ];
    Ok(query.word("by", &known)?.unwrap_or(ConsumptionBy::Day))
}

/// How far budgets are used up.
#[derive(Serialize, ToSchema)]
pub(crate) struct BudgetList {
    /// Currency of the costs.
    currency: String,
    /// For a backend those of the project, and of the user and the agent that it names; for a user its own.
    budgets: Vec<BudgetBody>,
}

/// One budget.
#[derive(Serialize, ToSchema)]
#[schema(as = Budget)]
#[serde(rename_all = "camelCase")]
pub(crate) struct BudgetBody {
    /// Whose it is: `project`, `user` or `agent`.
    #[schema(value_type = String)]
    scope: &'static str,
    /// How long it lasts, in UTC: `day` or `month`.
    #[schema(value_type = String)]
    period: &'static str,
    /// What was consumed in it so far.
    used: BudgetAmounts,
    /// What may be consumed in it; null for what is not limited.
    max: BudgetAmounts,
    /// When the next one begins.
    #[schema(value_type = schema::Time)]
    resets_at: Time,
}

/// Amounts that budgets limit.
#[derive(Serialize, ToSchema)]
pub(crate) struct BudgetAmounts {
    /// Tokens read and written.
    tokens: Option<u64>,
    /// Runs, child runs and requested calls among them.
    runs: Option<u64>,
    /// Cost; users are told of it where their cost is limited.
    cost: Option<f64>,
}

impl BudgetBody {
    fn of(state: BudgetState, tells_cost: bool) -> Self {
        let Amounts {
            tokens,
            runs,
            cost_micros,
        } = state.max;
        let units = |micros: u64| micros as f64 / MICROS;
        let tells_cost = tells_cost || cost_micros.is_some();
        Self {
            scope: state.scope.as_str(),
            period: state.period.as_str(),
            used: BudgetAmounts {
                tokens: Some(state.used.tokens()),
                runs: Some(state.used.runs),
                cost: tells_cost.then(|| units(state.used.cost_micros)),
            },
            max: BudgetAmounts {
                tokens,
                runs,
                cost: cost_micros.map(units),
            },
            resets_at: state.resets,
        }
    }
}

/// How far the budgets of this day and this month are used up. A user is told its own, a backend those of the project and of
/// whom it names.
#[utoipa::path(
    get, path = "/v1/budgets", operation_id = "get_budgets", tag = "usage",
    params(
        ("user" = inline(Option<schema::EntityId>), Query, description = "Also those of this user; for backends."),
        ("agent" = inline(Option<schema::AgentName>), Query, description = "Also those of this agent; for backends."),
    ),
    responses((status = 200, description = "The budgets.", body = BudgetList), BadQuery, BackendOnly, Refused),
)]
pub(crate) async fn budgets(
    State(door): State<Shared>,
    Caller(who): Caller,
    query: Query,
) -> Result<Answer<BudgetList>, Refusal> {
    let (user, agent): (Option<EntityId>, Option<AgentName>) = (query.read("user")?, query.read("agent")?);
    let own = who.entity();
    if own.is_some() && (user.is_some() || agent.is_some()) {
        return Err(Refusal::forbidden(
            "users are told of their own budgets alone, leave user and agent out",
        ));
    }
    let states = door
        .engine
        .budget_states(who.project, own.or(user), agent.as_ref())
        .await?;
    let is_shown = |state: &BudgetState| own.is_none() || state.scope == Scope::User;
    let shown = states.into_iter().filter(is_shown);
    Ok(ok(BudgetList {
        currency: door.engine.currency(who.project).await?,
        budgets: shown.map(|state| BudgetBody::of(state, own.is_none())).collect(),
    }))
}
