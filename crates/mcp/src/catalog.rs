//! The tools of a server, as a model is told of them.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::connection::Listed;
use crate::fit::{self, Profile};
use crate::name::tool_name;

/// A definition as [`crate::Connection`] lists it: without what the SDK does not know.
pub fn as_listed(definition: &Value) -> Value {
    let known = serde_json::from_value::<rmcp::model::Tool>(definition.clone());
    let listed = known.and_then(serde_json::to_value);
    listed.unwrap_or_else(|_| definition.clone())
}

/// The tools of a server, as a model is told of them, and what became of the others.
#[derive(Debug, Clone, Default)]
pub struct Catalog {
    /// In the order of the server.
    tools: Vec<CatalogTool>,
    /// The place of each name.
    names: BTreeMap<String, usize>,
    /// Tools that were simplified or left out, in words.
    pub warnings: Vec<String>,
}

/// A tool with a name and a schema that fit.
#[derive(Debug, Clone, PartialEq)]
pub struct CatalogTool {
    /// `mcp_<server>_<tool>`, at most 64 characters. Never to be taken apart: [`CatalogTool::original`] is the server's.
    pub name: String,
    /// The server's own name for it, to be called by.
    pub original: String,
    /// What it does.
    pub description: String,
    /// JSON Schema of the arguments, of type object.
    pub parameters: Value,
}

impl Catalog {
    /// Makes names and schemas fit. `wanted` chooses tools by the server's own names.
    pub fn new(
        server: &str,
        listed: Vec<Result<Listed, String>>,
        profile: &Profile,
        wanted: impl Fn(&str) -> bool,
    ) -> Self {
        let mut catalog = Self::default();
        for tool in listed {
            match tool {
                Ok(tool) if wanted(&tool.name) => catalog.add(server, tool, profile),
                Ok(_) => {}
                Err(reason) => catalog.warnings.push(format!("a tool was left out: {reason}")),
            }
        }
        for warning in &catalog.warnings {
            tracing::warn!(server, "{warning}");
        }
        catalog
    }

    /// All of them, in the order of the server.
    pub fn tools(&self) -> impl Iterator<Item = &CatalogTool> {
        self.tools.iter()
    }

    /// The tool that a model calls by this name.
    pub fn get(&self, name: &str) -> Option<&CatalogTool> {
        self.names.get(name).map(|at| &self.tools[*at])
    }

    fn add(&mut self, server: &str, tool: Listed, profile: &Profile) {
        let original = tool.name;
        let name = tool_name(server, &original);
        if self.names.contains_key(&name) {
            let warning = format!("{original} was left out: there are two of that name");
            return self.warnings.push(warning);
        }
        let description = fit::description(&name, tool.description.as_deref());
        match fit::parameters(&name, &description, &tool.input_schema, profile) {
            Ok(fitted) => {
                if fitted.simplified {
                    self.warnings
                        .push(format!("the schema of {original} was simplified"));
                }
                let parameters = fitted.schema;
                self.names.insert(name.clone(), self.tools.len());
                self.tools.push(CatalogTool {
                    name,
                    original,
                    description,
                    parameters,
                });
            }
            Err(reason) => self.warnings.push(format!("{original} was left out: {reason}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use toolgate_kernel::tool::ClientToolLimits;

    use super::*;

    #[test]
    fn tools_are_found_by_names_that_fit_and_called_by_their_own() {
        let long = "read.".repeat(20);
        let listed = |name: &str| -> Result<Listed, String> {
            Ok(Listed {
                name: name.into(),
                description: None,
                input_schema: json!({"type": "object"}),
                output_schema: None,
                annotations: None,
            })
        };
        let tools = vec![
            listed("plain"),
            listed(&long),
            listed("plain"),
            Err("no name".into()),
            listed("not"),
        ];
        let profile = Profile::Client(ClientToolLimits::default());
        let catalog = Catalog::new("files", tools, &profile, |name| name != "not");
        let names: Vec<&str> = catalog.tools().map(|tool| tool.name.as_str()).collect();
        assert_eq!(names.len(), 2);
        assert_eq!(catalog.get("mcp_files_plain").unwrap().original, "plain");
        let cut = names.iter().find(|name| **name != "mcp_files_plain").unwrap();
        assert!(cut.len() <= 64, "{cut}");
        assert_eq!(catalog.get(cut).unwrap().original, long);
        assert_eq!(catalog.get("mcp_files_not"), None);
        assert_eq!(catalog.warnings.len(), 2, "{:?}", catalog.warnings);
    }
}
