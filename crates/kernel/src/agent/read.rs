//! Reads an agent: who it is, what it asks, what it may use up.

use std::sync::Arc;

use serde_json::{Value, json};

use super::tools::Tools;
use super::{
    Access, Agent, CALLS_MAX, CALLS_PER_STEP_MAX, CONTEXT_KEEP_MAX, CONTEXT_TOKENS, Compact, Context,
    Defaults, History, INSTRUCTIONS_CHARS_MAX, Limits, MASK, ModelName, ModelSpec, Provider,
    REPLY_TOKENS_MAX, RUN_DEPTH_MAX, STEPS_MAX, Secret, TOKENS_MAX, tools,
};
use crate::context::{TIME_ZONE_CHARS_MAX, is_time_zone};
use crate::json::{DEPTH_MAX, deeper_than};
use crate::members::Members;
use crate::name::AgentName;
use crate::problem::{Problems, kind, preview, shown};
use crate::prompt::ToolChoice;
use crate::tool::{ModelChoice, Tool};

const DESCRIPTION_CHARS_MAX: usize = 1_024;
const MODEL_NAME_CHARS_MAX: usize = 256;
const URL_CHARS_MAX: usize = 2_048;
const KEY_CHARS_MAX: usize = 4_096;
const METADATA_BYTES_MAX: usize = 16 << 10;
const GRANTS_MAX: usize = 256;
const GRANT_CHARS_MAX: usize = 256;
const FANOUT_MAX: u32 = 64;
const DESCENDANTS_MAX: u32 = 10_000;

const MEMBERS: [&str; 16] = [
    "version",
    "access",
    "agent",
    "description",
    "instructions",
    "model",
    "loop",
    "limits",
    "tools",
    "mcp",
    "mcpServers",
    "grants",
    "history",
    "context",
    "metadata",
    "runtime",
];
const MODEL_MEMBERS: [&str; 8] = [
    "provider",
    "name",
    "baseUrl",
    "apiKey",
    "temperature",
    "topP",
    "maxOutputTokens",
    "reasoningTokens",
];

/// Reads all of it. Where something is wrong that is noted, and a default stands in so that reading goes on.
pub(super) fn agent(
    name: &AgentName,
    config: &Value,
    defaults: &Defaults<'_>,
    problems: &Problems,
) -> Option<Agent> {
    if deeper_than(config, DEPTH_MAX) {
        problems.add(
            "",
            format!("the configuration nests deeper than {DEPTH_MAX} levels"),
        );
        return None;
    }
    let top = Members::open(config, "", &MEMBERS, problems)?;
    top.choice("version", &[("1.0", ()), ("1", ())]);
    metadata(&top);
    let about = top.section("agent", &["name", "description", "system"]);
    let about = about.as_ref().inspect(|about| same_name(name, about));
    let description = either(
        (&top, "description"),
        (about, "description"),
        DESCRIPTION_CHARS_MAX,
    );
    let instructions = either((&top, "instructions"), (about, "system"), INSTRUCTIONS_CHARS_MAX);
    let history = top.choice(
        "history",
        &[("server", History::Server), ("client", History::Client)],
    );
    let Tools {
        toolbox: tools,
        names,
        left_out,
    } = tools::read(Some(name), &top, defaults);
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let (steps, mut tool_choice) = steps(&top, &names);
    // A model cannot be made to use what it is not told of.
    tool_choice.take_if(|choice| matches!(choice, ToolChoice::Tool(name) if !tools.contains_key(name)));
    Some(Agent {
        name: name.clone(),
        access: Access::read(name, &top),
        description: description.map(str::to_owned),
        instructions: instructions.unwrap_or_default().to_owned(),
        model: match model_choice(&top) {
            None => defaults.model.clone(),
            Some(ModelChoice::Own(model)) => model,
            Some(ModelChoice::Named(name)) => defaults.model.named(&name),
        },
        tool_choice: tool_choice.unwrap_or_default(),
        limits: limits(&top, steps),
        grants: top.texts("grants", GRANTS_MAX, GRANT_CHARS_MAX),
        tools,
        left_out,
        history: history.unwrap_or_default(),
        context: context(&top),
        result: None,
    })
}

/// Checks what the author attached: an object of some size that no model is told of, such as suggestions for a chat.
fn metadata(top: &Members<'_>) {
    let Some(attached) = top.get("metadata") else {
        return;
    };
    let bytes = attached.to_string().len();
    if !attached.is_object() {
        top.wrong("metadata", format!("expected an object, got {}", kind(attached)));
    } else if bytes > METADATA_BYTES_MAX {
        let words = format!("has {bytes} bytes; expected at most {METADATA_BYTES_MAX}");
        top.wrong("metadata", words);
    }
}

/// Reads tools alone; problems stand under `/tools`.
pub(super) fn tools_alone(
    list: &Value,
    defaults: &Defaults<'_>,
    problems: &Problems,
) -> Option<Vec<Arc<Tool>>> {
    if deeper_than(list, DEPTH_MAX) {
        let words = format!("the tools nest deeper than {DEPTH_MAX} levels");
        problems.add("/tools", words);
        return None;
    }
    let config = json!({ "tools": list });
    let top = Members::open(&config, "", &["tools"], problems)?;
    let tools = tools::read(None, &top, defaults);
    Some(super::in_order(tools.toolbox, list))
}

fn same_name(name: &AgentName, about: &Members<'_>) {
    if let Some(written) = about.get("name").filter(|written| *written != name.as_str()) {
        let words = format!(
            "expected {name:?}, the name in the address, got {}",
            shown(written)
        );
        about.wrong("name", words);
    }
}

/// A text that may stand at the top or in `agent`, but not in both.
fn either<'v>(
    (top, short): (&Members<'v>, &str),
    (about, long): (Option<&Members<'v>>, &str),
    chars_max: usize,
) -> Option<&'v str> {
    let Some(about) = about.filter(|about| about.get(long).is_some()) else {
        return top.text(short, chars_max);
    };
    if top.get(short).is_some() {
        top.wrong(
            short,
            format!("it stands at {} already; give it once", about.at(long)),
        );
    }
    about.text(long, chars_max)
}

/// A model by its name alone, or with all that belongs to it.
pub(super) fn model_choice(section: &Members<'_>) -> Option<ModelChoice> {
    match section.get("model")? {
        Value::String(_) => {
            let name = section.text("model", MODEL_NAME_CHARS_MAX)?;
            Some(ModelChoice::Named(name.to_owned()))
        }
        _ => model(section).map(ModelChoice::Own),
    }
}

fn model(top: &Members<'_>) -> Option<ModelSpec> {
    let model = top.section("model", &MODEL_MEMBERS)?;
    let provider = model.choice("provider", Provider::ALL);
    if model.get("provider").is_none() {
        let known: Vec<&str> = Provider::ALL.iter().map(|(name, _)| *name).collect();
        model.lacks(format!("a model needs a provider: one of {}", known.join(", ")));
    }
    if model.get("name").is_none() && !matches!(provider, Some(Provider::Demo) | None) {
        model.lacks("a model needs the name that its vendor gave it");
    }
    let name = model.text("name", MODEL_NAME_CHARS_MAX);
    Some(ModelSpec {
        name: ModelName {
            provider: provider.unwrap_or(Provider::Demo),
            name: name.unwrap_or("demo").to_owned(),
        },
        base_url: base_url(&model),
        api_key: api_key(&model),
        temperature: model.number("temperature", 0.0..=2.0),
        top_p: model.number("topP", 0.0..=1.0),
        max_output_tokens: model.whole("maxOutputTokens", 1..=REPLY_TOKENS_MAX),
        reasoning_tokens: model.whole("reasoningTokens", 1..=REPLY_TOKENS_MAX),
    })
}

fn base_url(model: &Members<'_>) -> Option<String> {
    let url = model.text("baseUrl", URL_CHARS_MAX)?;
    let rest = url
        .strip_prefix("https://")
        .or_else(|| url.strip_prefix("http://"));
    let odd = |c: char| c.is_whitespace() || c.is_control();
    if !rest.is_some_and(|rest| !rest.is_empty() && !rest.starts_with('/') && !rest.contains(odd)) {
        let words = "expected an address such as \"https://api.example.com/v1\"";
        model.wrong("baseUrl", format!("{words}, got {}", preview(url)));
    }
    Some(url.to_owned())
}

fn api_key(model: &Members<'_>) -> Option<Secret> {
    let key = model.text("apiKey", KEY_CHARS_MAX)?;
    // A configuration that was shown and is put back would lose its key without a word.
    if key == MASK {
        model.wrong(
            "apiKey",
            "this is the mask of a key; give the key itself, or leave it out",
        );
    }
    Some(Secret::new(key))
}

/// `loop`: how many steps, and whether they use tools.
fn steps(top: &Members<'_>, names: &[&str]) -> (Option<u32>, Option<ToolChoice>) {
    let Some(section) = top.section("loop", &["maxSteps", "toolChoice"]) else {
        return (None, None);
    };
    (
        section.whole("maxSteps", 1..=STEPS_MAX),
        tool_choice(&section, names),
    )
}

fn tool_choice(section: &Members<'_>, names: &[&str]) -> Option<ToolChoice> {
    let value = section.get("toolChoice")?;
    let tool = match value {
        Value::String(word) => match word.as_str() {
            "auto" => return Some(ToolChoice::Auto),
            "required" => return Some(ToolChoice::Required),
            "none" => return Some(ToolChoice::None),
            _ => None,
        },
        Value::Object(_) => {
            let choice = section.section("toolChoice", &["type", "tool", "toolName", "name"])?;
            choice.choice("type", &[("tool", ())]);
            let mut named = ["tool", "toolName", "name"]
                .iter()
                .filter_map(|name| choice.get(name));
            named.next().and_then(Value::as_str)
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => None,
    };
    let Some(tool) = tool else {
        let words = "expected \"auto\", \"required\", \"none\" or {\"tool\": name}";
        section.wrong("toolChoice", format!("{words}, got {}", shown(value)));
        return None;
    };
    if !names.contains(&tool) {
        section.wrong(
            "toolChoice",
            format!("the agent has no tool named {}", preview(tool)),
        );
    }
    tool.parse().ok().map(ToolChoice::Tool)
}

fn context(top: &Members<'_>) -> Context {
    let Some(section) = top.section("context", &["maxTokens", "keep", "compact", "timeZone"]) else {
        return Context::default();
    };
    let compact = [("drop", Compact::Drop), ("summary", Compact::Summary)];
    Context {
        max_tokens: section.whole("maxTokens", CONTEXT_TOKENS),
        keep: section.whole("keep", 1..=CONTEXT_KEEP_MAX),
        compact: section.choice("compact", &compact).unwrap_or_default(),
        time_zone: time_zone(&section),
    }
}

/// The name of a time zone by its form: which ones there are is not known here.
fn time_zone(section: &Members<'_>) -> Option<String> {
    let zone = section.text("timeZone", TIME_ZONE_CHARS_MAX)?;
    if !is_time_zone(zone) {
        let words = "expected the name of a time zone such as \"Europe/Rome\"";
        section.wrong("timeZone", format!("{words}, got {}", preview(zone)));
    }
    Some(zone.to_owned())
}

fn limits(top: &Members<'_>, steps: Option<u32>) -> Limits {
    let mut limits = Limits::default();
    limits.steps = steps.unwrap_or(limits.steps);
    if let Some(section) = top.section(
        "limits",
        &[
            "calls",
            "callsPerStep",
            "tokens",
            "depth",
            "fanout",
            "descendants",
        ],
    ) {
        limits.calls = section.whole("calls", 1..=CALLS_MAX).unwrap_or(limits.calls);
        let calls_per_step = section.whole("callsPerStep", 1..=CALLS_PER_STEP_MAX);
        limits.calls_per_step = calls_per_step.unwrap_or(limits.calls_per_step);
        limits.tokens = section.whole("tokens", 1..=TOKENS_MAX).unwrap_or(limits.tokens);
        limits.fanout = section.whole("fanout", 0..=FANOUT_MAX).unwrap_or(limits.fanout);
        let descendants = section.whole("descendants", 0..=DESCENDANTS_MAX);
        limits.descendants = descendants.unwrap_or(limits.descendants);
        limits.depth = section.whole("depth", 0..=RUN_DEPTH_MAX).unwrap_or(limits.depth);
    }
    limits
}
