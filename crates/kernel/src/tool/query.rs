//! Looks for tools by what they are for.

use super::Tool;
use crate::words::{stand_in, words};

/// Which tools somebody looks for. What is not said does not matter, so the default finds all.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Query {
    /// Words that stand in one of its triggers, one after the other. Case and accents do not matter.
    pub trigger: Option<String>,
    /// Its category. Case and accents do not matter.
    pub category: Option<String>,
    /// A permission that it needs, to the letter: that is how grants name it.
    pub permission: Option<String>,
}

impl Query {
    /// Whether a tool is all that is asked for.
    pub fn fits(&self, tool: &Tool) -> bool {
        let triggers = |wanted: &String| {
            let wanted: Vec<String> = words(wanted).collect();
            tool.triggers.iter().any(|own| stand_in(&wanted, own))
        };
        let category = |wanted: &String| {
            let own = tool.category.as_deref();
            own.is_some_and(|own| words(own).eq(words(wanted)))
        };
        self.trigger.as_ref().is_none_or(triggers)
            && self.category.as_ref().is_none_or(category)
            && self
                .permission
                .as_ref()
                .is_none_or(|wanted| tool.permissions.contains(wanted))
    }
}
