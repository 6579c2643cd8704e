//! Reads the tools of an agent.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::{Action, Defaults, TOOLS_MAX, execution};
use crate::members::Members;
use crate::name::ToolName;
use crate::problem::{Problems, shown};
use crate::schema::Limits;
use crate::tool::{
    Approval, CHILD_TIMEOUT, CLIENT_DEADLINE, EXECUTION_TIMEOUT, Execution, Retry, TIMEOUT_MAX, Tool,
    Toolbox, Visibility, Wait, definition,
};

/// Most permissions, prerequisites or triggers of one tool.
const LIST_MAX: usize = 64;

const MEMBERS: [&str; 18] = [
    "name",
    "description",
    "parameters",
    "inputSchema",
    "outputSchema",
    "executionType",
    "execution",
    "category",
    "permissions",
    "prerequisites",
    "triggers",
    "voice",
    "approval",
    "timeout",
    "retry",
    "visibility",
    "deprecated",
    "version",
];

/// The tools, and every name that was written, also of those that have problems.
pub(super) fn read<'v>(top: &Members<'v>, defaults: &Defaults<'_>) -> (Toolbox, Vec<&'v str>) {
    let items = top.list("tools", TOOLS_MAX);
    let names: Vec<&str> = items
        .iter()
        .filter_map(|item| item.get("name")?.as_str())
        .collect();
    let mut tools = Toolbox::new();
    let mut places = HashMap::new();
    for (index, item) in items.iter().enumerate() {
        let pointer = format!("{}/{index}", top.at("tools"));
        let Some(tool) = tool(item, &pointer, &names, defaults, top.problems) else {
            continue;
        };
        if places.insert(tool.name.clone(), pointer.clone()).is_some() {
            let words = format!("two tools are named {:?}", tool.name);
            top.problems.add(format!("{pointer}/name"), words);
        }
        tools.insert(tool.name.clone(), Arc::new(tool));
    }
    for name in circle(&tools) {
        let words = format!("{name:?} could never run: its prerequisites wait for themselves");
        top.problems.add(format!("{}/prerequisites", places[name]), words);
    }
    (tools, names)
}

fn tool(
    item: &Value,
    pointer: &str,
    names: &[&str],
    defaults: &Defaults<'_>,
    problems: &Problems,
) -> Option<Tool> {
    let tool = Members::open(item, pointer, &MEMBERS, problems)?;
    let name = definition::name(&tool);
    let execution = execution::read(&tool, defaults);
    let action = match &execution {
        Some(Execution::Prebuilt { action }) => (defaults.actions)(action),
        _ => None,
    };
    let prebuilt = matches!(execution, Some(Execution::Prebuilt { .. }));
    let description = description(&tool, action.as_ref(), prebuilt);
    let usual = match (action, &execution) {
        (Some(action), _) => Usual::action(action),
        (None, Some(execution)) => Usual::of(execution),
        (None, None) => Usual::client(),
    };
    let parameters = definition::parameters(&tool, &usual.parameters, &Limits::TRUSTED);
    let output = definition::output(&tool, &Limits::TRUSTED);
    let approval = approval(&tool);
    let word = |name| tool.text(name, definition::WORD_CHARS_MAX).map(str::to_owned);
    let words = |name| tool.texts(name, LIST_MAX, definition::WORD_CHARS_MAX);
    let (category, version) = (word("category"), definition::version(&tool));
    let (triggers, permissions) = (words("triggers"), words("permissions"));
    let prerequisites = prerequisites(&tool, names);
    let timeout = definition::timeout(&tool).unwrap_or(usual.timeout);
    let retry = tool.choice("retry", &[("never", Retry::Never), ("safe", Retry::Safe)]);
    let visibility = tool.choice(
        "visibility",
        &[("private", Visibility::Private), ("public", Visibility::Public)],
    );
    let deprecated = definition::deprecated(&tool);
    if let Some(voice) = tool.get("voice").filter(|voice| !voice.is_object()) {
        tool.wrong("voice", format!("expected an object, got {}", shown(voice)));
    }
    let (parameters, input) = parameters?;
    Some(Tool {
        name: name?,
        description: description?,
        parameters,
        category,
        triggers,
        version,
        execution: execution?,
        visibility: visibility.unwrap_or_default(),
        permissions,
        prerequisites,
        approval: approval?,
        timeout,
        retry: retry.unwrap_or(usual.retry),
        deprecated,
        input,
        output: output.map(|(_, output)| output),
        hash: definition::hash(item),
    })
}

/// What a tool of some kind has when its author does not say.
struct Usual {
    parameters: Value,
    timeout: Duration,
    retry: Retry,
}

impl Usual {
    fn client() -> Self {
        Self {
            parameters: json!({ "type": "object" }),
            timeout: CLIENT_DEADLINE,
            retry: Retry::Never,
        }
    }
    fn action(action: Action) -> Self {
        Self {
            parameters: action.parameters,
            timeout: action.timeout,
            retry: action.retry,
        }
    }
    fn of(execution: &Execution) -> Self {
        let server = |parameters, retry| Self {
            parameters,
            timeout: EXECUTION_TIMEOUT,
            retry,
        };
        // A child run is a log of its own: going on with it is not doing it again.
        let child = |parameters| Self {
            parameters,
            timeout: CHILD_TIMEOUT,
            retry: Retry::Safe,
        };
        let prompt = || json!({ "type": "object", "properties": { "prompt": { "type": "string" } }, "required": ["prompt"] });
        match execution {
            Execution::Client => Self::client(),
            Execution::Static(_) | Execution::PassThrough => server(json!({ "type": "object" }), Retry::Safe),
            Execution::Agent { .. } => child(prompt()),
            Execution::Spawn => child(json!({ "type": "object", "properties": {
                "agent": { "type": "string", "description": "The name of the agent." },
                "prompt": { "type": "string", "description": "What it has to do." },
            }, "required": ["agent", "prompt"] })),
            Execution::Prompt(_) => child(json!({ "type": "object" })),
            Execution::Request(call) => {
                let retry = if call.method.is_idempotent() {
                    Retry::Safe
                } else {
                    Retry::Never
                };
                server(json!({ "type": "object" }), retry)
            }
            Execution::Image(_) => server(prompt(), Retry::Never),
            Execution::Waiting(wait) => Self {
                parameters: waiting_parameters(*wait),
                timeout: TIMEOUT_MAX,
                retry: Retry::Safe,
            },
            Execution::Prebuilt { .. } => server(json!({ "type": "object" }), Retry::Never),
        }
    }
}

fn waiting_parameters(wait: Wait) -> Value {
    match wait {
        Wait::For(_) | Wait::Until(_) | Wait::Signal => json!({ "type": "object" }),
        Wait::Input => json!({ "type": "object", "properties": {
            "seconds": { "type": "number", "minimum": 0, "maximum": TIMEOUT_MAX.as_secs(), "description": "How long." },
            "until": { "type": "string", "format": "date-time", "description": "Until when. Without either: until a signal comes." },
        }, "additionalProperties": false }),
    }
}

fn description(tool: &Members<'_>, action: Option<&Action>, prebuilt: bool) -> Option<String> {
    match (tool.get("description"), action) {
        (None, Some(action)) => Some(action.description.clone()),
        // An action that is not there was told already.
        (None, None) if prebuilt => None,
        (Some(_), _) | (None, None) => definition::description(tool),
    }
}

fn prerequisites(tool: &Members<'_>, names: &[&str]) -> Vec<ToolName> {
    let mut prerequisites = Vec::new();
    for (index, item) in tool.list("prerequisites", LIST_MAX).iter().enumerate() {
        match item.as_str().filter(|name| names.contains(name)) {
            // What is no name was noted where the tool is defined.
            Some(name) => prerequisites.extend(name.parse::<ToolName>().ok()),
            None => {
                let words = format!("expected the name of a tool of this agent, got {}", shown(item));
                tool.problems
                    .add(format!("{}/{index}", tool.at("prerequisites")), words);
            }
        }
    }
    prerequisites
}

/// Tools that wait for each other in a circle: none of them could ever run.
fn circle(tools: &Toolbox) -> Vec<&ToolName> {
    let mut stuck: Vec<&ToolName> = tools.keys().collect();
    loop {
        let waits = |name: &&ToolName| {
            tools[*name]
                .prerequisites
                .iter()
                .any(|before| stuck.contains(&before))
        };
        let still: Vec<&ToolName> = stuck.iter().copied().filter(waits).collect();
        if still.len() == stuck.len() {
            return stuck;
        }
        stuck = still;
    }
}

fn approval(tool: &Members<'_>) -> Option<Approval> {
    match tool.get("approval") {
        None => Some(Approval::Never),
        Some(Value::String(word)) if word == "never" => Some(Approval::Never),
        Some(Value::String(word)) if word == "always" => Some(Approval::Always),
        Some(Value::Object(_)) => {
            let rule = tool.section("approval", &["when"])?;
            let Some(schema) = rule.get("when") else {
                rule.lacks("expected \"when\" with a schema of the inputs that need approval");
                return None;
            };
            let compiled = definition::compile(schema, &Limits::TRUSTED, &rule.at("when"), rule.problems);
            compiled.map(|(_, validator)| Approval::When(validator))
        }
        Some(other) => {
            let words = "expected \"never\", \"always\" or {\"when\": schema}";
            tool.wrong("approval", format!("{words}, got {}", shown(other)));
            None
        }
    }
}
