//! Why a run is not started, or a model is not asked.

use std::fmt;
use std::time::Duration;

use toolgate_kernel::agent::ModelName;
use toolgate_kernel::time::Time;

use super::{Amounts, Period, Scope};
use crate::consumption::Consumed;
use crate::price::Prices;
use crate::store::StoreError;

/// Micro-units in a unit of a currency.
const MICROS: u64 = 1_000_000;

/// A budget is used up. Nothing was changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BudgetExceeded {
    /// Whose budget it is.
    pub scope: Scope,
    /// How long it lasts.
    pub period: Period,
    /// What it limits.
    pub of: Amount,
    /// What was consumed, in tokens, runs or micro-units.
    pub used: u64,
    /// What may be consumed, in the same unit.
    pub max: u64,
    /// When the next period begins.
    pub resets: Time,
    /// Currency of a cost.
    currency: String,
}

/// What a budget limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Amount {
    /// Tokens read and written.
    Tokens,
    /// Runs.
    Runs,
    /// Cost.
    Cost,
}

impl Amount {
    /// Its name in settings.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Tokens => "tokens",
            Self::Runs => "runs",
            Self::Cost => "cost",
        }
    }
}

impl BudgetExceeded {
    /// The setting that holds the budget.
    pub fn setting(&self) -> String {
        let Self {
            scope, period, of, ..
        } = self;
        format!("budgets.{}.{}.{}", scope.as_str(), period.as_str(), of.as_str())
    }

    /// The refusal in words, for whoever may know only of themselves: how much others consumed is left out.
    pub fn to_user(&self) -> String {
        match self.scope {
            Scope::User => self.to_string(),
            Scope::Project | Scope::Agent => {
                format!("the budget {} is used up until {}", self.setting(), self.resets)
            }
        }
    }

    /// `used` or `max` in tokens, runs or units of the currency.
    pub fn amount_in_units(&self, number: u64) -> f64 {
        match self.of {
            Amount::Tokens | Amount::Runs => number as f64,
            Amount::Cost => number as f64 / MICROS as f64,
        }
    }

    fn amount(&self, number: u64) -> String {
        match self.of {
            Amount::Tokens => format!("{number} tokens"),
            Amount::Runs => format!("{number} runs"),
            Amount::Cost => format!("{}.{:06} {}", number / MICROS, number % MICROS, self.currency),
        }
    }
}

impl fmt::Display for BudgetExceeded {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            out,
            "the budget {} is used up until {}: {} of {} in this {}",
            self.setting(),
            self.resets,
            self.amount(self.used),
            self.amount(self.max),
            self.period.as_str(),
        )
    }
}

impl std::error::Error for BudgetExceeded {}

/// A request that a budget refuses, as its sender is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BudgetRefusal {
    /// The budget that is used up.
    pub exceeded: BudgetExceeded,
    /// Whether the sender may know how much the project and its agents have consumed.
    pub tells_amounts: bool,
    /// How long it is until the next period begins.
    pub retry_after: Duration,
}

impl fmt::Display for BudgetRefusal {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.tells_amounts {
            true => self.exceeded.fmt(out),
            false => out.write_str(&self.exceeded.to_user()),
        }
    }
}

/// The model of a run has no price, and a budget of cost holds.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "the model {0} has no price and a budget of cost holds, so it is not asked; set its price in prices.models, or \
     budgets.unpriced to \"allow\""
)]
pub struct Unpriced(pub ModelName);

/// Why a run or a request to a model was not admitted.
#[derive(Debug, thiserror::Error)]
pub enum BudgetError {
    /// A budget is used up.
    #[error(transparent)]
    Exceeded(#[from] BudgetExceeded),
    /// What it costs is unknown.
    #[error(transparent)]
    Unpriced(#[from] Unpriced),
    /// The store failed; the request may be sent again.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl BudgetError {
    /// The refusal in words for a member of a space; none when the store failed.
    pub(crate) fn to_user(&self) -> Option<String> {
        match self {
            Self::Exceeded(exceeded) => Some(exceeded.to_user()),
            Self::Unpriced(unpriced) => Some(unpriced.to_string()),
            Self::Store(_) => None,
        }
    }
}

/// Whether another run or request may begin after `used` was consumed.
pub(super) fn check(
    scope: Scope,
    period: Period,
    used: Consumed,
    max: Amounts,
    now: Time,
    prices: &Prices,
) -> Result<(), BudgetExceeded> {
    let amounts = [
        (Amount::Runs, used.runs, max.runs),
        (Amount::Tokens, used.tokens(), max.tokens),
        (Amount::Cost, used.cost_micros, max.cost_micros),
    ];
    for (of, used, max) in amounts {
        if let Some(max) = max.filter(|max| used >= *max) {
            return Err(BudgetExceeded {
                scope,
                period,
                of,
                used,
                max,
                resets: period.end(now),
                currency: prices.currency.clone(),
            });
        }
    }
    Ok(())
}
