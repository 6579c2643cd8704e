//! What a project, its users and its agents may consume in a day and in a month: `[budgets]`.

use anyhow::ensure;
use serde::{Deserialize, Deserializer, de};
use toolgate_engine::budget::{self, BudgetLimits, UnpricedRule};

use super::{DEFAULT_PROJECT, Settings};

/// Stands for a budget that is not limited.
const UNLIMITED: &str = "unlimited";
/// Highest budget of cost, in units of the currency.
const COST_MAX: f64 = 1e12;

/// Budgets of each project, of each of its users and of each of its agents.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Budgets {
    /// What becomes of a run whose model has no price where a budget of cost holds.
    pub unpriced: Unpriced,
    /// Of one project.
    pub project: Periods,
    /// Of one user of a project.
    pub user: Periods,
    /// Of one agent of a project.
    pub agent: Periods,
}

/// What becomes of a run whose model has no price.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Unpriced {
    /// It is refused.
    #[default]
    Reject,
    /// It runs, and its cost is in no sum.
    Allow,
}

/// Budgets of a day and of a month.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Periods {
    /// Of a day in UTC.
    pub day: Amounts,
    /// Of a calendar month in UTC.
    pub month: Amounts,
}

/// How much may be consumed; none for as much as one likes.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Amounts {
    /// Tokens read and written.
    #[serde(deserialize_with = "whole")]
    pub tokens: Option<u64>,
    /// Runs.
    #[serde(deserialize_with = "whole")]
    pub runs: Option<u64>,
    /// Cost in the currency of the prices.
    #[serde(deserialize_with = "number")]
    pub cost: Option<f64>,
}

impl Budgets {
    /// What the engine checks.
    pub fn limits(&self) -> anyhow::Result<BudgetLimits> {
        Ok(BudgetLimits {
            project: self.project.limits("project")?,
            user: self.user.limits("user")?,
            agent: self.agent.limits("agent")?,
            unpriced: match self.unpriced {
                Unpriced::Reject => UnpricedRule::Reject,
                Unpriced::Allow => UnpricedRule::Allow,
            },
        })
    }
}

impl Settings {
    /// Logs the default models of projects that have no price where a budget of cost holds.
    pub fn warn_of_unpriced_models(&self) {
        let names = self.projects.keys().map(String::as_str);
        for name in std::iter::once(DEFAULT_PROJECT).chain(names) {
            if let Some(words) = self.of_project(name, None).unpriced_model() {
                tracing::warn!(project = name, "{words}");
            }
        }
    }

    fn unpriced_model(&self) -> Option<String> {
        let limits = self.budgets.limits().ok()?;
        let model = self.model.spec().name;
        if !limits.limit_cost() || self.prices.table().ok()?.of(&model).is_some() {
            return None;
        }
        let becomes = match self.budgets.unpriced {
            Unpriced::Reject => "its runs are refused",
            Unpriced::Allow => "its runs count as if they cost nothing",
        };
        Some(format!(
            "the default model {model} has no price in prices.models and a budget of cost holds, so {becomes}"
        ))
    }
}

impl Periods {
    fn limits(&self, of: &str) -> anyhow::Result<budget::Periods> {
        Ok(budget::Periods {
            day: self.day.limits(&format!("{of}.day"))?,
            month: self.month.limits(&format!("{of}.month"))?,
        })
    }
}

impl Amounts {
    fn limits(&self, of: &str) -> anyhow::Result<budget::Amounts> {
        if let Some(cost) = self.cost {
            ensure!(
                (0.0..=COST_MAX).contains(&cost),
                "the setting `budgets.{of}.cost` is {cost}, expected a number from 0 to {COST_MAX}"
            );
        }
        Ok(budget::Amounts {
            tokens: self.tokens,
            runs: self.runs,
            cost_micros: self.cost.map(|cost| (cost * 1e6).round() as u64),
        })
    }
}

/// A number, or the word for none.
#[derive(Deserialize)]
#[serde(untagged)]
enum NumberOrWord {
    Whole(u64),
    Number(f64),
    Word(String),
}

fn whole<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u64>, D::Error> {
    match NumberOrWord::deserialize(from) {
        Ok(NumberOrWord::Whole(number)) => Ok(Some(number)),
        Ok(NumberOrWord::Word(word)) if word == UNLIMITED => Ok(None),
        _ => Err(de::Error::custom(
            "expected a whole number, which may be 0, or \"unlimited\"",
        )),
    }
}

fn number<'de, D: Deserializer<'de>>(from: D) -> Result<Option<f64>, D::Error> {
    match NumberOrWord::deserialize(from) {
        Ok(NumberOrWord::Whole(number)) => Ok(Some(number as f64)),
        Ok(NumberOrWord::Number(number)) => Ok(Some(number)),
        Ok(NumberOrWord::Word(word)) if word == UNLIMITED => Ok(None),
        _ => Err(de::Error::custom(
            "expected a number, which may be 0, or \"unlimited\"",
        )),
    }
}
