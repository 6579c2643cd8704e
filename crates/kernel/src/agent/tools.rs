//! Reads the tools of an agent.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::Value;

use super::by_id::{read_with_name, with_name};
use super::execution::Read;
use super::{Defaults, Missing, NamedTool, TOOLS_MAX, execution, servers};
use crate::members::Members;
use crate::name::{AgentName, ToolName};
use crate::problem::{Problem, Problems, shown};
use crate::schema::Limits;
use crate::tool::approval_terms::{APPROVAL_MEMBERS, read_terms};
use crate::tool::source::members;
use crate::tool::{
    Approval, ApprovalRule, ApprovalTerms, BUILT_IN, Definition, EXECUTION_TIMEOUT, Prerequisite, Remember,
    Retry, Tool, Toolbox, Visibility, Voice, definition,
};

/// Most permissions, prerequisites or triggers of one tool.
const LIST_MAX: usize = 64;

/// Longest name for people.
const TITLE_CHARS_MAX: usize = 256;

const MEMBERS: [&str; 24] = [
    "name",
    "title",
    "description",
    "parameters",
    "inputSchema",
    "outputSchema",
    "executionType",
    "execution",
    "category",
    "permissions",
    "personPermissions",
    "prerequisites",
    "triggers",
    "voice",
    "voicePrompt",
    "voiceFeedback",
    "voiceEnabled",
    "approval",
    "approvalTimeout",
    "timeout",
    "retry",
    "visibility",
    "deprecated",
    "version",
];

/// What the tools of a configuration come to.
#[derive(Default)]
pub(super) struct Tools {
    pub toolbox: Toolbox,
    /// Every name that was written, also of those that have problems, and those of whole servers.
    pub names: Vec<String>,
    /// Tools that their sources do not offer at present, and why.
    pub left_out: Vec<Problem>,
}

/// Reads all tools of an agent; `agent` is its name, for servers of its own.
pub(super) fn read(agent: Option<&AgentName>, top: &Members<'_>, defaults: &Defaults<'_>) -> Tools {
    let mut tools = Tools::default();
    let written = top.list("tools", TOOLS_MAX).iter().enumerate();
    let mut items: Vec<(String, &Value)> = written
        .map(|(index, item)| (format!("{}/{index}", top.at("tools")), item))
        .collect();
    items.extend(servers::tools(agent, top, defaults, &mut tools.left_out));
    tools.names = items
        .iter()
        .filter_map(|(_, item)| match with_name(item).as_ref() {
            Value::String(name) => Some(name.clone()),
            item => item.get("name")?.as_str().map(str::to_owned),
        })
        .collect();
    if items.len() > TOOLS_MAX {
        let words = format!(
            "{} tools with those of the servers; at most {TOOLS_MAX} are allowed",
            items.len()
        );
        top.lacks(words);
        items.truncate(TOOLS_MAX);
    }
    let (mut places, mut cases) = (HashMap::new(), HashMap::new());
    for (pointer, item) in items {
        let read = read_with_name(item, &pointer, top.problems, |item, problems| {
            tool(item, &pointer, &mut tools, defaults, problems)
        });
        let Some(tool) = read else {
            continue;
        };
        let taken = cases.insert(tool.name.folded(), tool.name.clone());
        if places.insert(tool.name.clone(), pointer.clone()).is_some() {
            let words = format!("two tools are named {:?}", tool.name);
            top.problems.add(format!("{pointer}/name"), words);
        } else if let Some(other) = taken {
            let words = format!("{:?} differs from {other:?} only in case", tool.name);
            top.problems.add_if_new(format!("{pointer}/name"), words);
        }
        tools.toolbox.insert(tool.name.clone(), Arc::new(tool));
    }
    for name in circle(&tools.toolbox) {
        let words = format!("{name:?} could never run: its prerequisites wait for themselves");
        // A shared tool may have changed since the agent was stored. Its calls are refused then, not the agent.
        top.problems
            .add_if_new(format!("{}/prerequisites", places[name]), words);
    }
    tools
}

/// Reads a tool that is written out, or that stands by its name alone.
pub(super) fn tool(
    item: &Value,
    pointer: &str,
    tools: &mut Tools,
    defaults: &Defaults<'_>,
    problems: &Problems,
) -> Option<Tool> {
    let Some(name) = short_form(item) else {
        return full_tool(item, pointer, None, tools, defaults, problems);
    };
    let Some(named) = defaults.catalog.by_name(name) else {
        let words = defaults.catalog.unknown(name);
        let may_be_elsewhere = match defaults.missing {
            Missing::Refused => false,
            Missing::LeftOut => true,
            Missing::Unknown => defaults.catalog.meant(name).is_none(),
        };
        if may_be_elsewhere {
            tools.left_out.push(Problem::new(pointer, words));
            return None;
        }
        if item.is_object() {
            // It may have been meant as a tool of the agent's own, which lacks the rest.
            return full_tool(item, pointer, None, tools, defaults, problems);
        }
        problems.add(pointer, words);
        return None;
    };
    // A problem of a member that the short form does not have is a problem of the whole.
    let place = |at: String| match at.strip_prefix(pointer).and_then(|rest| item.pointer(rest)) {
        Some(_) => at,
        None => pointer.to_owned(),
    };
    let written_out = written_out(named, item);
    let reasons = Problems::default();
    // What a source says of a tool may have changed since the agent was stored, and the agent is still to be used.
    let noted = match defaults.missing {
        Missing::Refused | Missing::Unknown => problems,
        Missing::LeftOut => &reasons,
    };
    let tool = noted.placed(place, |problems| {
        let shared = named.shared.as_deref();
        full_tool(&written_out, pointer, shared, tools, defaults, problems)
    });
    if reasons.is_empty() {
        return tool;
    }
    tools.left_out.extend(reasons.or(tool).err().unwrap_or_default());
    None
}

/// Reads a tool that is written out; `shared` is the hash of the shared tool that it is a copy of.
pub(super) fn full_tool(
    item: &Value,
    pointer: &str,
    shared: Option<&str>,
    tools: &mut Tools,
    defaults: &Defaults<'_>,
    problems: &Problems,
) -> Option<Tool> {
    let tool = Members::open(item, pointer, &MEMBERS, problems)?;
    if let Some(name) = tool.get("name").and_then(Value::as_str)
        && tool.get("executionType").is_none()
        && tool.get("execution").is_none()
        && let Some(action) = defaults.catalog.by_name(name)
        && action.source == BUILT_IN
    {
        let words = format!(
            "{name:?} is an action of the gateway; write \"executionType\": \"prebuilt\" for it, or \"basic\" for a tool \
             of the client"
        );
        tool.wrong_if_new("executionType", words);
    }
    let (execution, usual) = match execution::read(&tool, defaults) {
        Read::Runs(execution, usual) => (Some(execution), usual),
        Read::Wrong(usual) => (None, usual),
        Read::LeftOut(reasons) => {
            tools.left_out.extend(reasons);
            return None;
        }
    };
    let tool = tool.with_usual(&usual);
    // A source may know what a tool is called, as the card of a remote agent says it.
    let name = definition::name(&tool);
    let description = definition::description(&tool);
    let parameters = definition::parameters(&tool, &Limits::TRUSTED);
    let output = definition::output(&tool, &Limits::TRUSTED);
    let approval = approval(&tool);
    let approval_timeout = definition::timeout_in(&tool, "approvalTimeout");
    let title = tool.text("title", TITLE_CHARS_MAX).map(str::to_owned);
    let word = |name| tool.text(name, definition::WORD_CHARS_MAX).map(str::to_owned);
    let words = |name| tool.texts(name, LIST_MAX, definition::WORD_CHARS_MAX);
    let (category, version) = (word("category"), definition::version(&tool));
    let (triggers, permissions) = (words("triggers"), words("permissions"));
    let person_permissions = words("personPermissions");
    let names: Vec<&str> = tools.names.iter().map(String::as_str).collect();
    let prerequisites = Prerequisite::read_all(&tool, LIST_MAX, &names);
    let timeout = definition::timeout(&tool).unwrap_or(EXECUTION_TIMEOUT);
    let retry = tool.choice("retry", &[("never", Retry::Never), ("safe", Retry::Safe)]);
    let visibility = tool.choice(
        "visibility",
        &[("private", Visibility::Private), ("public", Visibility::Public)],
    );
    let deprecated = definition::deprecated(&tool);
    let voice = Voice::read(&tool);
    let ((parameters, input), (rule, approval, approval_terms)) = (parameters?, approval?);
    let (output_schema, output) = output.unzip();
    let definition = Definition {
        name: name?,
        description: description?,
        parameters,
        output_schema,
        title,
        category,
        triggers,
        voice,
        version,
        execution: execution?,
        visibility: visibility.unwrap_or_default(),
        permissions,
        person_permissions,
        prerequisites,
        approval: rule,
        approval_terms,
        approval_timeout,
        timeout,
        retry: retry.unwrap_or_default(),
        deprecated,
        shared: shared.map(str::to_owned),
    };
    Some(Tool::new(definition, input, output, approval))
}

/// The name of a tool that is used by its name: that alone, or an object that says neither what it does nor what runs it.
fn short_form(item: &Value) -> Option<&str> {
    const WRITTEN_OUT: [&str; 5] = [
        "executionType",
        "execution",
        "description",
        "parameters",
        "inputSchema",
    ];
    match item {
        Value::String(name) => Some(name),
        Value::Object(tool) => {
            let is_short = WRITTEN_OUT.iter().all(|member| !tool.contains_key(*member));
            tool.get("name")?.as_str().filter(|_| is_short)
        }
        _ => None,
    }
}

/// The tool as its source says it, with what the short form says instead.
fn written_out(named: &NamedTool, item: &Value) -> Value {
    let mut tool = members(named.written.clone());
    if let Value::Object(said) = item {
        tool.extend(said.clone());
    }
    Value::Object(tool)
}

/// Tools that wait for each other in a circle: none of them could ever run.
fn circle(tools: &Toolbox) -> Vec<&ToolName> {
    let mut stuck: Vec<&ToolName> = tools.keys().collect();
    loop {
        let waits = |name: &&ToolName| {
            tools[*name]
                .prerequisites
                .iter()
                .any(|before| stuck.contains(&&before.tool))
        };
        let still: Vec<&ToolName> = stuck.iter().copied().filter(waits).collect();
        if still.len() == stuck.len() {
            return stuck;
        }
        stuck = still;
    }
}

fn approval(tool: &Members<'_>) -> Option<(ApprovalRule, Approval, ApprovalTerms)> {
    let never = (ApprovalRule::Never, Approval::Never, ApprovalTerms::default());
    let always = |terms| (ApprovalRule::Always, Approval::Always, terms);
    match tool.get("approval") {
        None => Some(never),
        Some(Value::String(word)) if word == "never" => Some(never),
        Some(Value::String(word)) if word == "always" => Some(always(ApprovalTerms::default())),
        Some(Value::String(word)) if remembered(word).is_some() => Some(always(ApprovalTerms {
            remember: remembered(word),
            ..ApprovalTerms::default()
        })),
        Some(Value::Object(members)) => {
            let rule = tool.section("approval", &APPROVAL_MEMBERS)?;
            if members.is_empty() {
                let known = APPROVAL_MEMBERS.join(", ");
                rule.lacks(format!(
                    "expected at least one of {known}; \"always\" asks for every call"
                ));
            }
            let terms = read_terms(&rule);
            let Some(schema) = rule.get("when") else {
                return Some(always(terms));
            };
            let compiled = definition::compile(schema, &Limits::TRUSTED, &rule.at("when"), rule.problems);
            compiled.map(|(schema, validator)| (ApprovalRule::When(schema), Approval::When(validator), terms))
        }
        Some(other) => {
            let words =
                "expected \"never\", \"always\", \"first-in-space\", \"until-revoked\" or {\"when\": schema}";
            tool.wrong("approval", format!("{words}, got {}", shown(other)));
            None
        }
    }
}

fn remembered(word: &str) -> Option<Remember> {
    let known = Remember::WORDS.iter().find(|(known, _)| *known == word);
    known.map(|(_, remember)| *remember)
}
