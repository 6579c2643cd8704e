//! Budgets: what a project, each of its users and each of its agents may consume in a day and in a month (UTC). Checked before
//! a run starts and before each request to a model, never in the middle of one.
//!
//! What was consumed is read from the store at most once a second for each of them; what this node has added since is counted
//! here. Of what other nodes add, a node hears within that second, and a request under way is finished. So with `n` nodes a
//! budget of runs may be exceeded by what `n - 1` nodes start in one second, and a budget of tokens or cost by that and the
//! requests that were under way when it was used up.

mod known;
mod refusal;

pub use refusal::{Amount, BudgetError, BudgetExceeded, BudgetRefusal, Unpriced};

use std::sync::Arc;

use toolgate_kernel::agent::ModelName;
use toolgate_kernel::id::{EntityId, ProjectId};
use toolgate_kernel::name::AgentName;
use toolgate_kernel::time::Time;

pub(crate) use self::known::{AdmittedRun, Budgets};
use crate::consumption::{Consumed, Consumer};
use crate::project::ProjectSettings;
use crate::store::StoreError;
use crate::usage::Day;
use crate::{Engine, Inner};

/// The budgets of a project.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct BudgetLimits {
    /// Of all its runs together.
    pub project: Periods,
    /// Of the runs for one user.
    pub user: Periods,
    /// Of the runs of one agent.
    pub agent: Periods,
    /// What becomes of a run whose model has no price where a budget of cost holds.
    pub unpriced: UnpricedRule,
}

impl BudgetLimits {
    /// Whether a budget of cost holds for anybody.
    pub fn limit_cost(&self) -> bool {
        let of = [self.project, self.user, self.agent];
        of.iter()
            .any(|of| of.day.cost_micros.is_some() || of.month.cost_micros.is_some())
    }
}

/// What becomes of a run whose model has no price.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum UnpricedRule {
    /// It is refused: what it costs is unknown.
    #[default]
    Reject,
    /// It runs, and its requests count as unpriced.
    Allow,
}

/// Budgets of a day and of a month.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Periods {
    /// Of a day.
    pub day: Amounts,
    /// Of a calendar month.
    pub month: Amounts,
}

impl Periods {
    fn of(&self, period: Period) -> Amounts {
        match period {
            Period::Day => self.day,
            Period::Month => self.month,
        }
    }
    fn is_unlimited(&self) -> bool {
        *self == Self::default()
    }
}

/// How much may be consumed; none for as much as one likes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Amounts {
    /// Tokens read and written.
    pub tokens: Option<u64>,
    /// Runs, child runs and requested calls among them.
    pub runs: Option<u64>,
    /// Cost in millionths of a unit of the currency.
    pub cost_micros: Option<u64>,
}

/// How long a budget lasts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Period {
    /// A day in UTC.
    Day,
    /// A calendar month in UTC.
    Month,
}

impl Period {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Day, Self::Month];

    /// Its name in settings.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Day => "day",
            Self::Month => "month",
        }
    }
    /// When the period ends that a time is in.
    pub fn end(self, now: Time) -> Time {
        let today = Day::of(now);
        match self {
            Self::Day => today.next(),
            Self::Month => today.next_month(),
        }
        .start()
    }
}

/// Whose budgets they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// The project's.
    Project,
    /// One user's.
    User,
    /// One agent's.
    Agent,
}

impl Scope {
    /// Its name in settings.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Project => "project",
            Self::User => "user",
            Self::Agent => "agent",
        }
    }
}

/// How far a budget is used up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BudgetState {
    /// Whose it is.
    pub scope: Scope,
    /// How long it lasts.
    pub period: Period,
    /// What was consumed in the period so far.
    pub used: Consumed,
    /// What may be consumed in it.
    pub max: Amounts,
    /// When the next period begins.
    pub resets: Time,
}

/// A run, or a request to a model, that is about to begin.
#[derive(Clone, Copy)]
pub(crate) struct Asked<'a> {
    pub project: ProjectId,
    pub user: Option<EntityId>,
    pub agent: &'a AgentName,
    /// The model that it asks; none for a run that is one call.
    pub model: Option<&'a ModelName>,
}

impl Engine {
    /// How far the budgets are used up that hold for these: every one of the project, and those of a user and of an agent
    /// where one is given, whether there is a limit or not.
    pub async fn budget_states(
        &self,
        project: ProjectId,
        user: Option<EntityId>,
        agent: Option<&AgentName>,
    ) -> Result<Vec<BudgetState>, StoreError> {
        let inner = &self.inner;
        let limits = inner.project_settings(project).await?.budgets;
        let now = inner.clock.now();
        let mut states = Vec::new();
        for (scope, consumer, periods) in scopes(&limits, user, agent) {
            let known = inner.budgets.fresh(inner, (project, consumer), now).await?;
            let used = known.used();
            states.extend(Period::ALL.map(|period| BudgetState {
                scope,
                period,
                used: used.of(period),
                max: periods.of(period),
                resets: period.end(now),
            }));
        }
        Ok(states)
    }

    /// The currency in which the costs of a project are counted.
    pub async fn currency(&self, project: ProjectId) -> Result<String, StoreError> {
        Ok(self
            .inner
            .project_settings(project)
            .await?
            .prices
            .currency
            .clone())
    }
}

impl Inner {
    /// Whether a request to a model may be made: no budget of tokens or cost is used up that holds for its run.
    pub(crate) async fn check_budgets(&self, asked: Asked<'_>) -> Result<(), BudgetError> {
        let settings = self.project_settings(asked.project).await?;
        check_price(&settings, asked)?;
        let now = self.clock.now();
        let agent = Some(asked.agent);
        for (scope, consumer, periods) in scopes(&settings.budgets, asked.user, agent) {
            if periods.is_unlimited() {
                continue;
            }
            let known = self.budgets.fresh(self, (asked.project, consumer), now).await?;
            let used = known.used();
            for period in Period::ALL {
                // The run itself is counted already.
                let max = Amounts {
                    runs: None,
                    ..periods.of(period)
                };
                refusal::check(scope, period, used.of(period), max, now, &settings.prices)?;
            }
        }
        Ok(())
    }

    /// Whether a run may be started: no budget is used up. The run is counted here as long as the value is held.
    pub(crate) async fn admit_run(self: &Arc<Self>, asked: Asked<'_>) -> Result<AdmittedRun, BudgetError> {
        if asked.model.is_some() {
            self.check_budgets(asked).await?;
        }
        let settings = self.project_settings(asked.project).await?;
        let now = self.clock.now();
        let mut admitted = AdmittedRun::default();
        for (scope, consumer, periods) in scopes(&settings.budgets, asked.user, Some(asked.agent)) {
            if periods.day.runs.is_none() && periods.month.runs.is_none() {
                continue;
            }
            let known = self.budgets.fresh(self, (asked.project, consumer), now).await?;
            let check = |used: known::Used| {
                Period::ALL.into_iter().try_for_each(|period| {
                    let runs = Amounts {
                        runs: periods.of(period).runs,
                        ..Amounts::default()
                    };
                    refusal::check(scope, period, used.of(period), runs, now, &settings.prices)
                })
            };
            known.reserve_run(check)?;
            admitted.add(known);
        }
        Ok(admitted)
    }
}

/// The budgets that hold for a run.
fn scopes(
    limits: &BudgetLimits,
    user: Option<EntityId>,
    agent: Option<&AgentName>,
) -> impl Iterator<Item = (Scope, Consumer, Periods)> {
    let project = (Scope::Project, Consumer::Project, limits.project);
    let user = user.map(|user| (Scope::User, Consumer::User(user), limits.user));
    let agent = agent.map(|agent| (Scope::Agent, Consumer::Agent(agent.clone()), limits.agent));
    [Some(project), user, agent].into_iter().flatten()
}

fn check_price(settings: &ProjectSettings, asked: Asked<'_>) -> Result<(), Unpriced> {
    let Some(model) = asked.model else {
        return Ok(());
    };
    let rejects = settings.budgets.unpriced == UnpricedRule::Reject && settings.budgets.limit_cost();
    match rejects && settings.prices.of(model).is_none() {
        true => Err(Unpriced(model.clone())),
        false => Ok(()),
    }
}
