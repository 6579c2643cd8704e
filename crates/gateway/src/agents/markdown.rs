//! An agent in Markdown: the YAML front matter is its configuration, the text below it the system prompt.

use serde_json::{Map, Value, json};
use serde_saphyr::options::{DuplicateKeyPolicy, MergeKeyPolicy};
use toolgate_kernel::problem::Problem;

use super::agent_file::Fault;
use super::lines::{Lines, Node};

/// The line above and below front matter.
const FENCE: &str = "---";
/// The tool that starts a child run of any agent; the engine executes it, so it is not among the toolkit's
/// actions.
const SPAWN_AGENT: &str = "spawn_agent";
/// Members of a prompt tool that belong into `execution`.
const EXECUTION: [&str; 3] = ["prompt", "model", "result_schema"];
/// Members by which a tool is defined and not only named.
const DEFINING: [&str; 4] = ["description", "parameters", "inputSchema", "execution"];
/// Most values in front matter.
const NODES_MAX: usize = 20_000;
const DEPTH_MAX: usize = 64;

/// A parsed Markdown file.
pub struct Page {
    /// The member `name`.
    pub name: Option<Value>,
    /// The configuration, as the HTTP API accepts it.
    pub config: Value,
    /// Problems that cannot be found in the configuration any more.
    pub problems: Vec<Problem>,
    /// The line of every part.
    pub lines: Lines,
}

/// Parses a file.
pub fn read(text: &str, has_action: &dyn Fn(&str) -> bool) -> Result<Page, Fault> {
    let (matter, body) = split(text)?;
    let node = parse(matter)?;
    let lines = Lines::yaml(&node, 1);
    let Value::Object(mut members) = node.value() else {
        return Err(Fault::at(
            2,
            "expected front matter such as \"name: research-agent\"",
        ));
    };
    let name = members.shift_remove("name");
    let mut problems = Vec::new();
    if let Some(Value::Array(tools)) = members.get_mut("tools") {
        for (index, tool) in tools.iter_mut().enumerate() {
            match config_tool(tool, has_action) {
                Ok(config) => *tool = config,
                Err(message) => problems.push(Problem::new(format!("/tools/{index}"), message)),
            }
        }
    }
    let body = body.trim();
    if members.contains_key("instructions") && !body.is_empty() {
        let words = "the instructions are already below the front matter, write them once";
        problems.push(Problem::new("/instructions", words));
    } else if !body.is_empty() {
        members.insert("instructions".into(), body.into());
    }
    Ok(Page {
        name,
        config: Value::Object(members),
        problems,
        lines,
    })
}

/// The front matter and the text below it.
fn split(text: &str) -> Result<(&str, &str), Fault> {
    let is_fence = |line: &str| line.trim_end() == FENCE;
    let mut lines = text.split_inclusive('\n');
    let first = lines.next().filter(|line| is_fence(line)).ok_or_else(|| {
        Fault::at(
            1,
            "expected front matter: a line with ---, YAML, and again a line with ---",
        )
    })?;
    let mut end = first.len();
    for line in lines {
        if is_fence(line) {
            return Ok((&text[first.len()..end], &text[end + line.len()..]));
        }
        end += line.len();
    }
    Err(Fault::at(
        1,
        "the front matter is not closed, expected a second line with ---",
    ))
}

/// Parses the front matter. Anchors and merge keys are disabled, so that a small file cannot expand into a
/// large value.
fn parse(matter: &str) -> Result<Node, Fault> {
    let options = serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_anchors: 0,
            max_aliases: 0,
            max_documents: 1,
            max_depth: DEPTH_MAX,
            max_nodes: NODES_MAX,
        },
        duplicate_keys: DuplicateKeyPolicy::Error,
        merge_keys: MergeKeyPolicy::Error,
        strict_booleans: true,
        with_snippet: false,
    };
    if matter.trim().is_empty() {
        return Err(Fault::at(
            1,
            "the front matter is empty, expected at least a \"description\"",
        ));
    }
    serde_saphyr::from_str_with_options(matter, options).map_err(|error| {
        let line = error.location().map_or(0, |location| location.line() as usize);
        Fault::at(line + 1, yaml_error(&error))
    })
}

/// The error without its position: the library counts lines from the beginning of the front matter.
fn yaml_error(error: &serde_saphyr::Error) -> String {
    use serde_saphyr::Error;
    match error {
        Error::Budget { .. } => {
            "uses anchors or aliases, which are not supported, or is nested too deep or too large".into()
        }
        Error::DuplicateMappingKey { key: Some(key), .. } => format!("has the key {key:?} twice"),
        Error::DuplicateMappingKey { .. } => "has a key twice".into(),
        Error::MergeKeyNotAllowed { .. } => {
            "has a merge key (<<), which is not supported, write the members out".into()
        }
        _ => {
            let text = error.to_string();
            let text = text
                .rsplit_once(" at line ")
                .map_or(text.as_str(), |(words, _)| words);
            format!("is not YAML: {text}")
        }
    }
}

/// A tool of front matter as a configuration has it: a name alone is a server tool, a tool with a `prompt` is
/// a prompt tool, and one with an `executionType` is written as in JSON.
fn config_tool(tool: &Value, has_action: &dyn Fn(&str) -> bool) -> Result<Value, String> {
    match tool {
        Value::String(name) if name == SPAWN_AGENT || has_action(name) => {
            server_tool(name, Map::new(), has_action)
        }
        // The short form is the same in JSON: there an unknown name is told the nearest one.
        Value::String(_) => Ok(tool.clone()),
        Value::Object(tool) if tool.contains_key("executionType") => {
            let mut tool = tool.clone();
            expand_parameters(&mut tool);
            Ok(Value::Object(tool))
        }
        Value::Object(tool) if tool.contains_key("prompt") => Ok(prompt_tool(tool.clone())),
        Value::Object(tool) => match tool.get("name") {
            Some(Value::String(name)) => match server_tool(name, tool.clone(), has_action) {
                Err(_) if DEFINING.iter().any(|member| tool.contains_key(*member)) => {
                    Err("a tool with a \"name\" needs a \"prompt\" or an \"executionType\"".into())
                }
                // A shared tool, or one of a plugin, with members that the agent changes.
                Err(_) => Ok(Value::Object(tool.clone())),
                written => written,
            },
            _ => Err("expected a \"name\" and a \"prompt\"".into()),
        },
        _ => Err("expected the name of a server tool, or an object with a \"name\" and a \"prompt\"".into()),
    }
}

/// A server tool; `said` are the members that the author overrides.
fn server_tool(
    name: &str,
    said: Map<String, Value>,
    has_action: &dyn Fn(&str) -> bool,
) -> Result<Value, String> {
    let mut tool = said;
    tool.insert("name".into(), name.into());
    if name == SPAWN_AGENT {
        tool.insert("executionType".into(), "spawn-agent".into());
    } else if has_action(name) {
        tool.insert("executionType".into(), "prebuilt".into());
        tool.insert("execution".into(), json!({ "action": name }));
    } else {
        return Err(format!("the gateway has no tool named {name:?}"));
    }
    Ok(Value::Object(tool))
}

fn prompt_tool(mut tool: Map<String, Value>) -> Value {
    let execution = EXECUTION
        .iter()
        .filter_map(|name| Some((name.to_string(), tool.shift_remove(*name)?)));
    let execution: Map<String, Value> = execution.collect();
    expand_parameters(&mut tool);
    tool.insert("executionType".into(), "prompt".into());
    tool.insert("execution".into(), Value::Object(execution));
    Value::Object(tool)
}

/// Turns the short form `{text: {type: string, required: true}}` into a JSON Schema; a JSON Schema stays as
/// it is.
fn expand_parameters(tool: &mut Map<String, Value>) {
    let Some(Value::Object(short)) = tool.get("parameters") else {
        return;
    };
    // A string under `type` means a JSON Schema: in the short form a parameter named `type` is an object.
    if short.get("type").is_some_and(Value::is_string) {
        return;
    }
    let mut properties = short.clone();
    let mut required = Vec::new();
    for (name, property) in &mut properties {
        let Some(property) = property.as_object_mut() else {
            continue;
        };
        // A list under `required` is JSON Schema's; the short form has a boolean.
        if let Some(Value::Bool(is_required)) = property.get("required") {
            if *is_required {
                required.push(name.clone());
            }
            property.shift_remove("required");
        }
    }
    let schema = json!({ "type": "object", "properties": properties, "required": required });
    tool.insert("parameters".into(), schema);
}
