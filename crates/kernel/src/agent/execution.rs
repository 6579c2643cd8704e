//! Reads what runs a tool: `executionType` and `execution`.

mod request;

use std::sync::Arc;

use serde_json::Value;

use super::{Defaults, Secret};
use crate::members::Members;
use crate::name::BadName;
use crate::problem::{preview, shown};
use crate::schema::Limits;
use crate::template::Template;
use crate::tool::{Execution, ImageCall, PromptTool, ResultSchema, TIMEOUT_MAX, Wait, definition};

/// Longest name of an action or an agent that is looked at.
const NAME_CHARS_MAX: usize = 256;

#[derive(Clone, Copy)]
enum Kind {
    Basic,
    Request,
    Agent,
    Spawn,
    Prompt,
    Image,
    Waiting,
    Prebuilt,
}

const KINDS: [(&str, Kind); 8] = [
    ("basic", Kind::Basic),
    ("request", Kind::Request),
    ("ai-agent", Kind::Agent),
    ("spawn-agent", Kind::Spawn),
    ("prompt", Kind::Prompt),
    ("image-generator", Kind::Image),
    ("waiting", Kind::Waiting),
    ("prebuilt", Kind::Prebuilt),
];
const PROMPT_CHARS_MAX: usize = 100_000;

/// What runs the tool; `basic` when it does not say.
pub(super) fn read(tool: &Members<'_>, defaults: &Defaults<'_>) -> Option<Execution> {
    match kind(tool)? {
        Kind::Basic => basic(tool),
        Kind::Request => request::read(tool).map(|call| Execution::Request(Arc::new(call))),
        Kind::Spawn => Some(Execution::Spawn),
        Kind::Prompt => prompt(tool).map(|prompt| Execution::Prompt(Arc::new(prompt))),
        Kind::Image => Some(Execution::Image(Arc::new(image(tool)))),
        Kind::Waiting => waiting(tool).map(Execution::Waiting),
        Kind::Agent => {
            let (section, agent) = named(tool, "agent")?;
            let agent = agent
                .parse()
                .map_err(|bad: BadName| section.wrong("agent", bad.to_string()));
            agent.ok().map(|agent| Execution::Agent { agent })
        }
        Kind::Prebuilt => {
            let (section, action) = named(tool, "action")?;
            if (defaults.actions)(action).is_none() {
                section.wrong(
                    "action",
                    format!("the gateway has no action named {}", preview(action)),
                );
            }
            let action = action.to_owned();
            Some(Execution::Prebuilt { action })
        }
    }
}

fn kind(tool: &Members<'_>) -> Option<Kind> {
    let Some(written) = tool.get("executionType") else {
        return Some(Kind::Basic);
    };
    let known = KINDS.iter().find(|(name, _)| written.as_str() == Some(name));
    if known.is_none() {
        let available = KINDS.map(|(name, _)| name).join(", ");
        let words = format!(
            "the execution type {} is not available; these are: {available}",
            shown(written)
        );
        tool.wrong("executionType", words);
    }
    known.map(|(_, kind)| *kind)
}

/// `execution` and the one name that it has to give.
fn named<'v>(tool: &Members<'v>, member: &str) -> Option<(Members<'v>, &'v str)> {
    if tool.get("execution").is_none() {
        tool.lacks(format!("expected \"execution\": {{{member:?}: name}}"));
    }
    let section = tool.section("execution", &[member])?;
    if section.get(member).is_none() {
        section.lacks(format!("expected {{{member:?}: name}}"));
    }
    let name = section.text(member, NAME_CHARS_MAX)?;
    Some((section, name))
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

fn image(tool: &Members<'_>) -> ImageCall {
    let call = tool.section("execution", &["model", "baseUrl", "apiKey", "size"]);
    let text = |name| Some(call.as_ref()?.text(name, NAME_CHARS_MAX)?.to_owned());
    if let (Some(call), Some(url)) = (&call, text("baseUrl"))
        && !url.starts_with("https://")
        && !url.starts_with("http://")
    {
        let words = "expected an address that begins with https:// or http://";
        call.wrong("baseUrl", format!("{words}, got {}", preview(&url)));
    }
    ImageCall {
        model: text("model"),
        base_url: text("baseUrl"),
        api_key: text("apiKey").map(Secret::new),
        size: text("size"),
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
    let name = if section.get("result_schema").is_some() {
        "result_schema"
    } else {
        "resultSchema"
    };
    let result = section.get(name).and_then(|schema| {
        let compiled = definition::compile(schema, &Limits::TRUSTED, &section.at(name), section.problems);
        compiled.map(|(schema, validator)| ResultSchema {
            schema,
            validator: Arc::new(validator),
        })
    });
    Some(PromptTool {
        prompt: Template::new(text?),
        model: super::read::model_choice(&section),
        result,
    })
}
