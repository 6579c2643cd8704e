//! What agents may plan.

use std::time::Duration;

use serde::Deserialize;
use toolgate_tools::PlanLimits;

use super::text;

/// Limits on plans.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Plans {
    /// How far ahead a moment has to be.
    #[serde(deserialize_with = "text::duration")]
    pub ahead_min: Duration,
    /// Runs that the plans of one agent may start in an hour.
    pub starts_per_hour: u32,
    /// How long a due plan waits for the run under way in its space.
    #[serde(deserialize_with = "text::duration")]
    pub wait_max: Duration,
}

impl Default for Plans {
    fn default() -> Self {
        let PlanLimits {
            ahead_min,
            starts_per_hour,
            wait_max,
        } = PlanLimits::default();
        Self {
            ahead_min,
            starts_per_hour,
            wait_max,
        }
    }
}

impl Plans {
    /// As the tools take it.
    pub fn limits(&self) -> PlanLimits {
        PlanLimits {
            ahead_min: self.ahead_min,
            starts_per_hour: self.starts_per_hour,
            wait_max: self.wait_max,
        }
    }
}
