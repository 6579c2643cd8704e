//! Tools that a caller brings with its request: checked at the door, kept in the run's log, compiled for the run.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;

use serde_json::Value;

use super::{
    ApprovalRule, ApprovalTerms, CLIENT_DEADLINE, ClientTool, Definition, Execution, Retry, Tool, Toolbox,
    Visibility, client_tool_hash, definition,
};
use crate::json::{DEPTH_MAX, deeper_than};
use crate::members::Members;
use crate::problem::{Problem, Problems, shown};
use crate::schema::Limits;

/// What a request may bring.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClientToolLimits {
    /// Most tools in one request with a secret key.
    pub tools: usize,
    /// Most tools in one request with a public key, which any visitor of a page may send.
    pub public_tools: usize,
    /// Which of the two counts.
    pub key: KeyKind,
    /// Most bytes of all of them together.
    pub bytes: usize,
    /// Most bytes of the result of one call, as JSON.
    pub result_bytes: usize,
    /// What their schemas may be; never more than a trusted author's.
    pub schema: Limits,
}

/// The kind of key that a request shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyKind {
    /// A backend's.
    Secret,
    /// A user's, with a token.
    Public,
}

impl ClientToolLimits {
    /// The same limits, for a request with this kind of key.
    pub fn for_key(self, key: KeyKind) -> Self {
        Self { key, ..self }
    }

    /// Most tools in one request, and the setting that says so.
    pub fn tools_max(&self) -> (usize, &'static str) {
        match self.key {
            KeyKind::Secret => (self.tools, "client_tools.tools_max"),
            KeyKind::Public => (self.public_tools, "client_tools.public_tools_max"),
        }
    }
}

impl Default for ClientToolLimits {
    fn default() -> Self {
        Self {
            tools: 64,
            public_tools: 32,
            key: KeyKind::Secret,
            bytes: 64 * 1024,
            result_bytes: 256 * 1024,
            schema: Limits::CLIENT,
        }
    }
}

/// `strict` is OpenAI's, about how a model is asked: that is ours to decide, so it changes nothing.
const MEMBERS: [&str; 9] = [
    "name",
    "description",
    "parameters",
    "inputSchema",
    "outputSchema",
    "timeout",
    "version",
    "deprecated",
    "strict",
];

/// Reads the `clientTools` of a request, which stands at `pointer`. Each is `{name, description, parameters}`
/// or OpenAI's `{"type": "function", "function": {…}}`.
pub fn client_tools(
    value: &Value,
    pointer: &str,
    limits: &ClientToolLimits,
) -> Result<Vec<ClientTool>, Vec<Problem>> {
    let problems = Problems::default();
    let tools = read_all(value, pointer, limits, &problems);
    problems.or(tools)
}

fn read_all(
    value: &Value,
    pointer: &str,
    limits: &ClientToolLimits,
    problems: &Problems,
) -> Option<Vec<ClientTool>> {
    let Value::Array(items) = value else {
        problems.add(
            pointer,
            format!("expected an array of tools, got {}", shown(value)),
        );
        return None;
    };
    if deeper_than(value, DEPTH_MAX) || !fits(value, limits.bytes) {
        let max = limits.bytes;
        problems.add(
            pointer,
            format!(
                "the tools have more than {max} bytes or nest deeper than {DEPTH_MAX} levels; send fewer or shorter ones, or raise \
                 the setting `client_tools.bytes_max`"
            ),
        );
        return None;
    }
    let (max, setting) = limits.tools_max();
    if items.len() > max {
        let (seen, key) = (
            items.len(),
            match limits.key {
                KeyKind::Secret => "secret",
                KeyKind::Public => "public",
            },
        );
        problems.add(
            pointer,
            format!(
                "the request has {seen} tools, at most {max} are allowed with a {key} key; send fewer (in the SDKs: the option \
                 `only` of a chat or of the MCP plugin), or raise the setting `{setting}`"
            ),
        );
    }
    let mut names = HashMap::new();
    let mut tools = Vec::new();
    for (index, item) in items.iter().take(max).enumerate() {
        let place = format!("{pointer}/{index}");
        let Some(tool) = read(item, &place, &limits.schema, problems) else {
            continue;
        };
        match names.insert(tool.name.folded(), tool.name.clone()) {
            Some(other) if other == tool.name => {
                problems.add(place, format!("two tools are named {:?}", tool.name));
            }
            Some(other) => {
                let words = format!("{:?} differs from {other:?} only in case", tool.name);
                problems.add(place, words);
            }
            None => {}
        }
        tools.push(tool);
    }
    // One schema may have so many; so may all together, because a run keeps them all compiled.
    let (seen, max) = (tools.iter().map(patterns).sum::<usize>(), limits.schema.patterns);
    if seen > max {
        let words = format!(
            "the tools have {seen} patterns together, at most {max} are allowed in one request; raise the setting \
                 `client_tools.schema.patterns_max`"
        );
        problems.add(pointer, words);
    }
    Some(tools)
}

/// How many patterns a definition has, at most.
fn patterns(tool: &ClientTool) -> usize {
    let schemas = [Some(&tool.parameters), tool.output_schema.as_ref()];
    schemas
        .into_iter()
        .flatten()
        .map(|schema| keywords(&schema.to_value()))
        .sum()
}

fn keywords(value: &Value) -> usize {
    match value {
        Value::Object(members) => {
            let own = members.iter().map(|(name, value)| match (name.as_str(), value) {
                ("pattern", Value::String(_)) => 1,
                ("patternProperties", Value::Object(patterns)) => patterns.len(),
                _ => 0,
            });
            own.sum::<usize>() + members.values().map(keywords).sum::<usize>()
        }
        Value::Array(items) => items.iter().map(keywords).sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
    }
}

/// One tool; whatever is wrong with it is noted.
fn read(item: &Value, pointer: &str, limits: &Limits, problems: &Problems) -> Option<ClientTool> {
    let tool = match item.get("function") {
        Some(function) => {
            let wrapping = Members::open(item, pointer, &["type", "function"], problems)?;
            wrapping.choice("type", &[("function", ())]);
            // Not `section`: to it `null` is left out, and the tool would be dropped without a problem.
            definition::open(function, &wrapping.at("function"), &MEMBERS, problems)?
        }
        None => definition::open(item, pointer, &MEMBERS, problems)?,
    };
    let name = definition::name(&tool);
    let description = definition::description(&tool);
    let parameters = definition::parameters(&tool, limits);
    let output = definition::output(&tool, limits);
    let timeout = definition::timeout(&tool);
    let version = definition::version(&tool);
    let deprecated = definition::deprecated(&tool);
    Some(ClientTool {
        name: name?,
        description: description?,
        parameters: parameters?.0,
        output_schema: output.map(|(schema, _)| schema),
        timeout_ms: timeout.map(|timeout| timeout.as_millis() as u64),
        version,
        deprecated,
        given_name: None,
    })
}

/// Whether `value` has at most `bytes_max` bytes as text. Stops counting there.
fn fits(value: &Value, bytes_max: usize) -> bool {
    struct Room(usize);
    impl io::Write for Room {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 = self
                .0
                .checked_sub(bytes.len())
                .ok_or(io::ErrorKind::FileTooLarge)?;
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    serde_json::to_writer(Room(bytes_max), value).is_ok()
}

/// Makes a definition ready to validate calls. It was checked by [`client_tools`] when it came, so only one that
/// came otherwise has problems.
pub fn compile_client(tool: &ClientTool) -> Result<Tool, Vec<Problem>> {
    // The door's limits may have changed since the tool came; what it was taken with still runs.
    let compiled = Definition {
        name: tool.name.clone(),
        description: tool.description.clone(),
        parameters: tool.parameters.clone(),
        output_schema: tool.output_schema.clone(),
        title: None,
        category: None,
        triggers: Vec::new(),
        voice: None,
        version: tool.version.clone(),
        execution: Execution::Client,
        visibility: Visibility::default(),
        permissions: Vec::new(),
        person_permissions: Vec::new(),
        prerequisites: Vec::new(),
        approval: ApprovalRule::Never,
        approval_terms: ApprovalTerms::default(),
        approval_timeout: None,
        timeout: tool
            .timeout_ms
            .map_or(CLIENT_DEADLINE, std::time::Duration::from_millis),
        retry: Retry::Never,
        deprecated: tool.deprecated.clone(),
        shared: None,
    }
    .compile()?;
    Ok(Tool {
        hash: client_tool_hash(tool),
        given_name: tool.given_name.as_ref().map(|name| name.as_str().into()),
        ..compiled
    })
}

/// The tools of a run: the agent's and the caller's. A caller's tool never takes the name of an agent's.
pub fn merge(agent: &Toolbox, client: &[ClientTool]) -> Result<Toolbox, Vec<Problem>> {
    merge_with(agent, client, |tool| compile_client(tool).map(Arc::new))
}

/// The same, for a caller that keeps compiled tools by [`client_tool_hash`].
pub fn merge_with(
    agent: &Toolbox,
    client: &[ClientTool],
    mut compile: impl FnMut(&ClientTool) -> Result<Arc<Tool>, Vec<Problem>>,
) -> Result<Toolbox, Vec<Problem>> {
    let problems = Problems::default();
    let mut tools = agent.clone();
    for (index, tool) in client.iter().enumerate() {
        let pointer = format!("/clientTools/{index}");
        let name = &tool.name;
        if agent.contains_key(name) {
            problems.add(
                pointer,
                format!("the agent has a tool named {name:?} already; choose another name"),
            );
            continue;
        }
        match compile(tool) {
            Err(found) => found
                .into_iter()
                .for_each(|problem| problems.add(format!("{pointer}{}", problem.pointer), problem.message)),
            Ok(compiled) => {
                if tools.insert(name.clone(), compiled).is_some() {
                    problems.add(pointer, format!("two tools are named {name:?}"));
                }
            }
        }
    }
    problems.or(Some(tools))
}
