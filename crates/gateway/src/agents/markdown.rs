//! An agent in Markdown: front matter in YAML says what it has, the text below it what it is told.

use serde_json::{Map, Value, json};
use serde_saphyr::options::{DuplicateKeyPolicy, MergeKeyPolicy};
use toolgate_kernel::problem::Problem;

use super::place::{Node, Places};
use super::written::Fault;

/// What stands above and below front matter.
const FENCE: &str = "---";
/// The tool that starts any agent; the engine runs it, so it is no action.
const SPAWN_AGENT: &str = "spawn_agent";
/// What of a tool made of words belongs to its execution.
const EXECUTION: [&str; 3] = ["prompt", "model", "result_schema"];
/// Most values in front matter.
const NODES_MAX: usize = 20_000;
const DEPTH_MAX: usize = 64;

/// What a page says.
pub struct Page {
    /// What it calls the agent.
    pub name: Option<Value>,
    /// The configuration that it means.
    pub config: Value,
    /// What is wrong with it that the configuration no longer tells.
    pub problems: Vec<Problem>,
    /// Where everything stands.
    pub places: Places,
}

/// Reads a page.
pub fn read(text: &str, has_action: &dyn Fn(&str) -> bool) -> Result<Page, Fault> {
    let (matter, body) = split(text)?;
    let node = parse(matter)?;
    let places = Places::yaml(&node, 1);
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
            match configured(tool, has_action) {
                Ok(config) => *tool = config,
                Err(message) => problems.push(Problem::new(format!("/tools/{index}"), message)),
            }
        }
    }
    let body = body.trim();
    if members.contains_key("instructions") && !body.is_empty() {
        let words = "the instructions stand below the front matter already; give them once";
        problems.push(Problem::new("/instructions", words));
    } else if !body.is_empty() {
        members.insert("instructions".into(), body.into());
    }
    Ok(Page {
        name,
        config: Value::Object(members),
        problems,
        places,
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
        "the front matter has no end; expected a second line with ---",
    ))
}

/// Nothing in it can be larger than it is written: there are no anchors, and no merging.
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
            "the front matter is empty; expected at least a \"description\"",
        ));
    }
    serde_saphyr::from_str_with_options(matter, options).map_err(|error| {
        let line = error.location().map_or(0, |location| location.line() as usize);
        Fault::at(line + 1, words(&error))
    })
}

/// What is wrong, without the place: the library counts lines from the front matter on.
fn words(error: &serde_saphyr::Error) -> String {
    use serde_saphyr::Error;
    match error {
        Error::Budget { .. } => {
            "uses anchors or aliases, or is deeper or larger than front matter may be; write it out".into()
        }
        Error::DuplicateMappingKey { key: Some(key), .. } => format!("has the key {key:?} twice"),
        Error::DuplicateMappingKey { .. } => "has a key twice".into(),
        Error::MergeKeyNotAllowed { .. } => "has a merge key (<<), which is not taken; write it out".into(),
        _ => {
            let text = error.to_string();
            let text = text
                .rsplit_once(" at line ")
                .map_or(text.as_str(), |(words, _)| words);
            format!("is not YAML: {text}")
        }
    }
}

/// A tool of front matter as a configuration has it: a name alone is one of the gateway's own, one with a
/// `prompt` is made of words, and one with an `executionType` is written as in JSON.
fn configured(tool: &Value, has_action: &dyn Fn(&str) -> bool) -> Result<Value, String> {
    match tool {
        Value::String(name) => own(name, Map::new(), has_action),
        Value::Object(tool) if tool.contains_key("executionType") => {
            let mut tool = tool.clone();
            expand_parameters(&mut tool);
            Ok(Value::Object(tool))
        }
        Value::Object(tool) if tool.contains_key("prompt") => Ok(made_of_words(tool.clone())),
        Value::Object(tool) => match tool.get("name") {
            Some(Value::String(name)) => own(name, tool.clone(), has_action)
                .map_err(|_| "a tool of your own needs a \"prompt\", or an \"executionType\"".into()),
            _ => Err("expected a \"name\" and a \"prompt\"".into()),
        },
        _ => Err("expected the name of one of the gateway's tools, or a tool of your own".into()),
    }
}

/// One of the gateway's own tools; `said` is what the author says of it.
fn own(name: &str, said: Map<String, Value>, has_action: &dyn Fn(&str) -> bool) -> Result<Value, String> {
    let mut tool = said;
    tool.insert("name".into(), name.into());
    if name == SPAWN_AGENT {
        tool.insert("executionType".into(), "spawn-agent".into());
        let description = tool.entry("description");
        description.or_insert("Start another agent with a task, and get its answer.".into());
    } else if has_action(name) {
        tool.insert("executionType".into(), "prebuilt".into());
        tool.insert("execution".into(), json!({ "action": name }));
    } else {
        return Err(format!("the gateway has no tool named {name:?}"));
    }
    Ok(Value::Object(tool))
}

fn made_of_words(mut tool: Map<String, Value>) -> Value {
    let execution = EXECUTION
        .iter()
        .filter_map(|name| Some((name.to_string(), tool.shift_remove(*name)?)));
    let execution: Map<String, Value> = execution.collect();
    expand_parameters(&mut tool);
    tool.insert("executionType".into(), "prompt".into());
    tool.insert("execution".into(), Value::Object(execution));
    Value::Object(tool)
}

/// `{text: {type: string, required: true}}` becomes a JSON Schema; what is one already stays.
fn expand_parameters(tool: &mut Map<String, Value>) {
    let Some(Value::Object(short)) = tool.get("parameters") else {
        return;
    };
    // In the short form a parameter named `type` would be an object.
    if short.get("type").is_some_and(Value::is_string) {
        return;
    }
    let mut properties = short.clone();
    let mut required = Vec::new();
    for (name, property) in &mut properties {
        let Some(property) = property.as_object_mut() else {
            continue;
        };
        // A list is what JSON Schema says of an object; the short form has a truth value.
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
