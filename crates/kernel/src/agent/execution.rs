//! Reads what runs a tool: `executionType` and `execution`.

use std::sync::Arc;

use serde_json::{Value, json};

use super::catalog::Usual;
use super::{Defaults, Missing};
use crate::members::Members;
use crate::name::BadName;
use crate::problem::{Problem, Problems, shown};
use crate::schema::Limits;
use crate::template::Template;
use crate::tool::source::members;
use crate::tool::{
    CHILD_TIMEOUT, CLIENT_DEADLINE, Execution, PromptTool, ResultSchema, TIMEOUT_MAX, Wait, definition,
};

/// The execution types that the kernel itself decides on. All others belong to tool sources.
#[derive(Clone, Copy)]
enum Kind {
    Basic,
    Agent,
    Spawn,
    Prompt,
    Waiting,
}

const KINDS: [(&str, Kind); 5] = [
    ("basic", Kind::Basic),
    ("ai-agent", Kind::Agent),
    ("spawn-agent", Kind::Spawn),
    ("prompt", Kind::Prompt),
    ("waiting", Kind::Waiting),
];
const PROMPT_CHARS_MAX: usize = 100_000;
/// The `prebuilt` action that is `spawn-agent`.
pub(super) const SPAWN_ACTION: &str = "spawn_agent";

/// What came of reading `executionType` and `execution`.
pub(super) enum Read {
    /// What runs the tool, and the members that hold where its author says nothing else.
    Runs(Execution, Usual),
    /// It has problems, which are noted; these members hold for the rest of the tool.
    Wrong(Usual),
    /// Its source does not offer it at present, for these reasons.
    LeftOut(Vec<Problem>),
}

/// What runs the tool; `basic` when it does not say.
pub(super) fn read(tool: &Members<'_>, defaults: &Defaults<'_>) -> Read {
    let written = tool.get("executionType");
    let kind = match written {
        None => Some(Kind::Basic),
        Some(written) if written == "prebuilt" && names_spawn(tool) => Some(Kind::Spawn),
        Some(written) if written == "ai-agent" && has_address(tool) => None,
        Some(written) => KINDS
            .iter()
            .find_map(|(name, kind)| (written == name).then_some(*kind)),
    };
    match (kind, defaults.missing) {
        (Some(kind), _) => match own(kind, tool) {
            Some(execution) => {
                let usual = usual(&execution);
                Read::Runs(execution, usual)
            }
            None => Read::Wrong(usual(&Execution::Client)),
        },
        (None, Missing::Refused | Missing::Unknown) => match of_source(tool, defaults) {
            Some((execution, usual)) => Read::Runs(execution, usual),
            // The description may have been the source's to give: that it lacks is not worth a second problem.
            None => Read::Wrong(members(json!({ "description": "of a source" }))),
        },
        (None, Missing::LeftOut) => {
            let reasons = Problems::default();
            let read = of_source(&tool.noting(&reasons), defaults);
            match reasons.or(read) {
                Ok((execution, usual)) => Read::Runs(execution, usual),
                Err(reasons) => Read::LeftOut(reasons),
            }
        }
    }
}

/// `spawn_agent` is an action by its name alone: the engine runs it, because it is a run of its own.
fn names_spawn(tool: &Members<'_>) -> bool {
    let action = tool
        .get("execution")
        .and_then(|execution| execution.get("action"));
    action.is_some_and(|action| action == SPAWN_ACTION)
}

/// An agent with an address runs elsewhere: a source reads it, and no run of this gateway is started.
fn has_address(tool: &Members<'_>) -> bool {
    let execution = tool.get("execution");
    execution.is_some_and(|execution| execution.get("url").is_some())
}

fn own(kind: Kind, tool: &Members<'_>) -> Option<Execution> {
    match kind {
        Kind::Basic => basic(tool),
        Kind::Spawn => Some(Execution::Spawn),
        Kind::Prompt => prompt(tool).map(|prompt| Execution::Prompt(Arc::new(prompt))),
        Kind::Waiting => waiting(tool).map(Execution::Waiting),
        Kind::Agent => {
            let more = ["result_schema", "resultSchema"];
            let (section, agent) = tool.named_with("agent", &more)?;
            let agent = agent
                .parse()
                .map_err(|bad: BadName| section.wrong("agent", bad.to_string()));
            let result = result_schema(&section);
            agent.ok().map(|agent| Execution::Agent { agent, result })
        }
    }
}

fn of_source(tool: &Members<'_>, defaults: &Defaults<'_>) -> Option<(Execution, Usual)> {
    let written = tool.get("executionType")?;
    let read = written
        .as_str()
        .and_then(|name| defaults.catalog.read(name, tool));
    read.unwrap_or_else(|| {
        let own = KINDS.iter().map(|(name, _)| *name);
        let of_sources = defaults.catalog.names();
        let of_sources = of_sources.filter(|name| KINDS.iter().all(|(own, _)| own != name));
        let available: Vec<&str> = own.chain(of_sources).collect();
        let words = format!(
            "the execution type {} is not available; these are: {}",
            shown(written),
            available.join(", ")
        );
        tool.wrong("executionType", words);
        None
    })
}

/// The members of a tool that hold where its author says nothing else.
fn usual(execution: &Execution) -> Usual {
    // A child run is a log of its own: going on with it is not doing it again.
    let child =
        |parameters| json!({ "parameters": parameters, "timeout": CHILD_TIMEOUT.as_secs(), "retry": "safe" });
    members(match execution {
        Execution::Client => json!({ "timeout": CLIENT_DEADLINE.as_secs() }),
        Execution::Static(_) | Execution::PassThrough => json!({ "retry": "safe" }),
        Execution::Agent { .. } => child(json!({
            "type": "object", "properties": { "prompt": { "type": "string" } }, "required": ["prompt"],
        })),
        Execution::Spawn => {
            let mut usual = child(json!({ "type": "object", "properties": {
                "agent": { "type": "string", "description": "The name of the agent." },
                "prompt": { "type": "string", "description": "What it has to do." },
            }, "required": ["agent", "prompt"] }));
            usual["description"] =
                "Start a child run of another agent with a task, and get its answer.".into();
            usual
        }
        Execution::Prompt(_) => child(json!({ "type": "object" })),
        Execution::Waiting(wait) => {
            json!({ "parameters": waiting_parameters(*wait), "timeout": TIMEOUT_MAX.as_secs(), "retry": "safe" })
        }
        Execution::Source(_) => unreachable!("its source says what is usual"),
    })
}

fn waiting_parameters(wait: Wait) -> Value {
    match wait {
        Wait::For(_) | Wait::Until(_) | Wait::Signal => json!({ "type": "object" }),
        Wait::Input => json!({ "type": "object", "properties": {
            "seconds": { "type": "number", "minimum": 0, "maximum": TIMEOUT_MAX.as_secs(), "description": "How long. Give exactly one of seconds and until; leave the other out." },
            "until": { "type": "string", "format": "date-time", "description": "Until when, a moment to come. Without either: until a signal comes." },
        }, "additionalProperties": false }),
    }
}

/// `null` and `no-execution` leave it to the client; `static` gives the same each time; `pass-through` gives the
/// input back.
fn basic(tool: &Members<'_>) -> Option<Execution> {
    let (mode, output) = match tool.get("execution") {
        None => return Some(Execution::Client),
        Some(Value::Object(_)) => {
            let section = tool.section("execution", &["mode", "output", "static"])?;
            match (section.written("static"), section.get("mode")) {
                (Some(output), None) => return Some(Execution::Static(output.into())),
                (_, mode) => (mode, section.written("output")),
            }
        }
        mode @ Some(_) => (mode, None),
    };
    match (mode.and_then(Value::as_str), output) {
        (Some("no-execution"), None) => Some(Execution::Client),
        (Some("pass-through"), None) => Some(Execution::PassThrough),
        (Some("static"), Some(output)) => Some(Execution::Static(output.into())),
        (Some("static"), None) => {
            tool.wrong("execution", "the mode \"static\" needs an \"output\"");
            None
        }
        (Some("no-execution" | "pass-through"), Some(_)) => {
            tool.wrong("execution", "only the mode \"static\" has an \"output\"");
            None
        }
        (Some(_) | None, _) => {
            let words = "expected null, {\"mode\": \"no-execution\"}, {\"mode\": \"pass-through\"} or {\"static\": output}";
            tool.wrong("execution", words);
            None
        }
    }
}

/// `{"duration": "10m"}`, `{"until": moment}`, `{"signal": true}`; without any the input says.
fn waiting(tool: &Members<'_>) -> Option<Wait> {
    let Some(section) = tool.section("execution", &["duration", "until", "signal"]) else {
        return Some(Wait::Input);
    };
    match (
        section.get("duration"),
        section.get("until"),
        section.get("signal"),
    ) {
        (None, None, None) => Some(Wait::Input),
        (Some(span), None, None) => match definition::duration(span) {
            Some(span) if span <= TIMEOUT_MAX => Some(Wait::For(span)),
            _ => {
                let words = "expected seconds or a text such as \"30s\", \"10m\" or \"2h\", up to 30 days";
                section.wrong("duration", format!("{words}, got {}", shown(span)));
                None
            }
        },
        (None, Some(moment), None) => match serde_json::from_value(moment.clone()) {
            Ok(moment) => Some(Wait::Until(moment)),
            Err(_) => {
                let words = "expected a moment such as \"2027-01-31T09:00:00Z\"";
                section.wrong("until", format!("{words}, got {}", shown(moment)));
                None
            }
        },
        (None, None, Some(Value::Bool(true))) => Some(Wait::Signal),
        _ => {
            tool.wrong(
                "execution",
                "give one of \"duration\", \"until\" and \"signal\": true",
            );
            None
        }
    }
}

fn prompt(tool: &Members<'_>) -> Option<PromptTool> {
    if tool.get("execution").is_none() {
        tool.lacks("expected \"execution\": {\"prompt\": text}");
    }
    let section = tool.section("execution", &["prompt", "model", "result_schema", "resultSchema"])?;
    if section.get("prompt").is_none() {
        section.lacks("expected the \"prompt\" that is asked");
    }
    let text = section.text("prompt", PROMPT_CHARS_MAX);
    Some(PromptTool {
        prompt: Template::new(text?),
        model: super::read::model_choice(&section),
        result: result_schema(&section),
    })
}

/// What the answer of a child run must be: `result_schema`, or `resultSchema`.
fn result_schema(section: &Members<'_>) -> Option<ResultSchema> {
    let name = match section.get("result_schema") {
        Some(_) => "result_schema",
        None => "resultSchema",
    };
    let schema = section.get(name)?;
    let compiled = definition::compile(schema, &Limits::TRUSTED, &section.at(name), section.problems);
    compiled.map(|(schema, validator)| ResultSchema {
        schema,
        validator: Arc::new(validator),
    })
}
