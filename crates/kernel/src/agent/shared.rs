//! Reads a tool that the agents of a project share.

use std::sync::Arc;

use serde_json::Value;

use super::Defaults;
use super::by_id::read_with_name;
use super::tools::{Tools, full_tool, tool};
use crate::json::{DEPTH_MAX, deeper_than};
use crate::name::ToolName;
use crate::problem::{Problem, Problems, shown};
use crate::tool::{SHARED, Tool};

/// Reads the definition of a shared tool by the rules for an agent's tool, and reports everything that is wrong with it.
/// Its name may be left out of the definition. A prerequisite may be any tool that agents can use by name.
pub fn read_shared(
    name: &ToolName,
    definition: &Value,
    defaults: &Defaults<'_>,
) -> Result<Tool, Vec<Problem>> {
    let problems = defaults.problems();
    let tool = read_with_name(definition, "", &problems, |definition, problems| {
        shared(name, definition, defaults, problems)
    });
    problems.or(tool)
}

fn shared(name: &ToolName, definition: &Value, defaults: &Defaults<'_>, problems: &Problems) -> Option<Tool> {
    if deeper_than(definition, DEPTH_MAX) {
        problems.add("", format!("the definition nests deeper than {DEPTH_MAX} levels"));
        return None;
    }
    let mut definition = definition.clone();
    if let Some(members) = definition.as_object_mut() {
        let written = members.entry("name").or_insert_with(|| name.as_str().into());
        if written != name.as_str() {
            let words = format!(
                "expected {name:?}, the name in the address, got {}",
                shown(written)
            );
            problems.add("/name", words);
        }
    }
    if let Some(words) = conflict(name, defaults) {
        problems.add("/name", words);
    }
    let mut tools = everything(defaults);
    tools.names.push(name.to_string());
    full_tool(&definition, "", None, &mut tools, defaults, problems)
}

/// Why the name cannot be a shared tool's: nothing may be called like a tool of another source.
fn conflict(name: &ToolName, defaults: &Defaults<'_>) -> Option<String> {
    let owner = defaults.catalog.owner(name)?;
    if owner.source != SHARED {
        let (other, source) = (&owner.name, owner.source);
        return Some(format!(
            "{other:?} is a tool of the source {source:?}; choose another name"
        ));
    }
    (owner.name != *name).then(|| {
        format!(
            "{name:?} differs only in case from the shared tool {:?}",
            owner.name
        )
    })
}

/// The tools that an agent gets by these names; one that nobody offers is missing.
pub fn tools_by_name(names: &[String], defaults: &Defaults<'_>) -> Vec<Arc<Tool>> {
    let read = |name: &String| {
        let problems = Problems::default();
        let name = name.as_str().into();
        let tool = tool(&name, "", &mut everything(defaults), defaults, &problems)?;
        problems.is_empty().then(|| Arc::new(tool))
    };
    names.iter().filter_map(read).collect()
}

/// Stands for an agent that has every tool that can be used by name: each may need another.
fn everything(defaults: &Defaults<'_>) -> Tools {
    Tools {
        names: defaults
            .catalog
            .tools()
            .map(|tool| tool.name.to_string())
            .collect(),
        ..Tools::default()
    }
}
