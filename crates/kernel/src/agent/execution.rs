//! Reads what runs a tool: `executionType` and `execution`.

use serde_json::Value;

use super::Defaults;
use crate::members::Members;
use crate::name::BadName;
use crate::problem::{preview, shown};
use crate::tool::Execution;

/// Longest name of an action or an agent that is looked at.
const NAME_CHARS_MAX: usize = 256;

#[derive(Clone, Copy)]
enum Kind {
    Basic,
    Agent,
    Prebuilt,
}

const KINDS: [(&str, Kind); 3] = [
    ("basic", Kind::Basic),
    ("ai-agent", Kind::Agent),
    ("prebuilt", Kind::Prebuilt),
];

/// What runs the tool; `basic` when it does not say.
pub(super) fn read(tool: &Members<'_>, defaults: &Defaults<'_>) -> Option<Execution> {
    match kind(tool)? {
        Kind::Basic => basic(tool),
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
