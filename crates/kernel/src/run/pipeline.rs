//! Before a call runs: one pipeline, in one order. Each failure is an error the model can read and act on.

use std::sync::Arc;

use serde_json::Value;

use super::{APPROVAL_EXPIRY, Consent, EarlierOutput, Phase, Run};
use crate::call::{CallState, ErrorCode, Outcome};
use crate::id::{ApprovalId, CallId};
use crate::json::Json;
use crate::problem::Problem;
use crate::schema::Misfit;
use crate::time::Time;
use crate::tool::{BUILT_IN, ConsentRef, Execution, Placement, Prerequisite, Scope, Tool, Wait};

/// What the pipeline says of a call.
pub(super) struct Admission {
    /// The input as it will be kept: JSON even when the model wrote something else.
    pub input: Json,
    /// What happens to the call.
    pub fate: Fate,
    /// The remembered yes by which it is not asked about.
    pub consent: Option<ConsentRef>,
}

/// What happens to a call that the model asked for.
pub(super) enum Fate {
    /// It ends here.
    Refused { code: ErrorCode, message: String },
    /// A person has to decide.
    Ask { approval: ApprovalId, expires_at: Time },
    /// It runs on the gateway's side.
    Run,
    /// A client runs it.
    Offer { deadline: Time },
}

/// What a call is judged by besides itself.
#[derive(Clone, Copy)]
pub(super) struct Judged<'a> {
    /// What the person for whom the run works was given.
    pub person_grants: &'a [String],
    /// Outputs of earlier runs that prerequisites may count.
    pub earlier: &'a [EarlierOutput],
    /// Yeses that are remembered for the agent in the space.
    pub consents: &'a [Consent],
    pub now: Time,
}

/// Longest piece of malformed arguments that is kept.
const MALFORMED_BYTES_MAX: usize = 16 * 1024;
/// Most problems that a model is told of at once.
const PROBLEMS_TOLD_MAX: usize = 20;

impl Run {
    /// Known tool, arguments, prerequisites, permissions, limits, approval: in this order.
    pub(super) fn admit(
        &self,
        call: CallId,
        in_step: u32,
        name: &str,
        arguments: &str,
        by: Judged<'_>,
    ) -> Admission {
        let (mut input, mut value) = read(arguments);
        if let (Some(tool), Ok(value)) = (self.tools.get(name), &mut value)
            && drop_blanks(tool, value)
        {
            input = Json::from(&*value);
        }
        let value = value.as_ref().map_err(String::as_str);
        let (fate, consent) = match self.judge(call, in_step, name, value, by) {
            Ok(admitted) => admitted,
            Err((code, message)) => (Fate::Refused { code, message }, None),
        };
        Admission { input, fate, consent }
    }

    fn judge(
        &self,
        call: CallId,
        in_step: u32,
        name: &str,
        value: Result<&Value, &str>,
        Judged {
            person_grants,
            earlier,
            consents,
            now,
        }: Judged<'_>,
    ) -> Result<(Fate, Option<ConsentRef>), (ErrorCode, String)> {
        let tool = self
            .tools
            .get(name)
            .ok_or_else(|| (ErrorCode::NotFound, self.unknown(name)))?;
        let value = value.map_err(|why| (ErrorCode::ValidationFailed, why.to_owned()))?;
        tool.input.verify(value).map_err(|misfit| match misfit {
            Misfit::TooCostly(problem) => (ErrorCode::LimitExceeded, problem.message),
            Misfit::Invalid(problems) => (ErrorCode::ValidationFailed, sentences(&problems)),
        })?;
        if matches!(tool.execution, Execution::Waiting(Wait::Input))
            && let Some(words) = super::pause::unclear(name, value, now)
        {
            return Err((ErrorCode::ValidationFailed, words));
        }
        let unmet = |needed: &&Prerequisite| !self.is_met(needed, earlier, now);
        if let Some(missing) = tool.prerequisites.iter().find(unmet) {
            let before = &missing.tool;
            let when = match missing.scope {
                Scope::Space { within: Some(span) } => format!(" within the last {span:?}"),
                Scope::Space { within: None } | Scope::Run => " first".to_owned(),
            };
            return Err((
                ErrorCode::PrerequisitesNotMet,
                format!(
                    "{name} needs a successful call of {before}{when}. Call {before}, then call {name} again."
                ),
            ));
        }
        if let Some(missing) = tool
            .permissions
            .iter()
            .find(|needed| !self.agent.grants.contains(needed))
        {
            return Err((
                ErrorCode::PermissionDenied,
                format!("{name} needs the grant {missing:?}, which this agent was not given"),
            ));
        }
        // A run that no person asked for has nobody's grants.
        let lacking = |needed: &&String| !person_grants.contains(needed);
        if let Some(missing) = tool.person_permissions.iter().find(lacking) {
            return Err((
                ErrorCode::PermissionDenied,
                format!("{name} needs the grant {missing:?}, which the person who asks was not given"),
            ));
        }
        let limits = &self.agent.limits;
        if call.number >= limits.calls {
            return Err((
                ErrorCode::LimitExceeded,
                format!("this run may make {} calls, and has made them", limits.calls),
            ));
        }
        if in_step >= limits.calls_per_step {
            return Err((
                ErrorCode::LimitExceeded,
                format!("one step may make {} calls", limits.calls_per_step),
            ));
        }
        if self.state.usage.total() > limits.tokens {
            return Err((
                ErrorCode::LimitExceeded,
                format!("this run may use {} tokens, and has used them", limits.tokens),
            ));
        }
        // The run at the top bounds all below it, whatever these agents allow by themselves.
        let depth_max = self
            .budget
            .depth
            .map_or(limits.depth, |depth| depth.min(limits.depth));
        if tool.execution.is_run() && self.depth >= depth_max {
            return Err((
                ErrorCode::LimitExceeded,
                format!("agents may call agents {depth_max} deep"),
            ));
        }
        if tool.execution.is_run() && self.runs_of_step() >= limits.fanout {
            return Err((
                ErrorCode::LimitExceeded,
                format!("one step may start {} agents at once", limits.fanout),
            ));
        }
        if !tool.approval.needed(value) {
            return Ok((release(tool, now), None));
        }
        let ask = || Fate::Ask {
            approval: call.approval(),
            expires_at: now.after(tool.approval_timeout.unwrap_or(APPROVAL_EXPIRY)),
        };
        Ok(match self.consent_for(tool, consents) {
            None => (ask(), None),
            consent => (release(tool, now), consent),
        })
    }

    fn unknown(&self, name: &str) -> String {
        let known: Vec<&str> = self.tools.keys().map(|name| name.as_str()).collect();
        match known.as_slice() {
            [] => format!("there is no tool named {name:?}, and no other. Answer without tools."),
            known => format!(
                "there is no tool named {name:?}. Call one of these: {}.",
                known.join(", ")
            ),
        }
    }

    /// Calls of the step that are runs of their own.
    fn runs_of_step(&self) -> u32 {
        let Phase::Calling { first } = self.state.phase else {
            return 0;
        };
        let open = self.state.calls[first as usize..].iter().filter(|call| {
            let is_run = call
                .definition
                .as_ref()
                .is_some_and(|tool| tool.execution.is_run());
            is_run && !matches!(call.state, CallState::Settled(_))
        });
        open.count() as u32
    }

    /// Whether the run, or the space where that counts, has an output of the tool. Only what ran where the tool of that
    /// name runs now counts, and nothing that a request brought: whoever speaks could bring a tool of that name.
    fn is_met(&self, needed: &Prerequisite, earlier: &[EarlierOutput], now: Time) -> bool {
        let tool = self.tools.get(needed.tool.as_str());
        let Some(tool) = tool.filter(|tool| !self.brought.contains(&tool.name)) else {
            return false;
        };
        let placement = tool.placement();
        let of_run = self.state.calls.iter().filter_map(|call| match &call.state {
            CallState::Settled(settled)
                if call.tool.name.as_ref() == needed.tool.as_str() && call.tool.placement == placement =>
            {
                matches!(settled.outcome, Outcome::Output(_)).then_some(settled.time)
            }
            _ => None,
        });
        let of_space = earlier
            .iter()
            .filter(|output| output.tool == needed.tool && output.placement == placement);
        let of_space = of_space.map(|output| output.time);
        match needed.scope {
            Scope::Run => of_run.count() > 0,
            Scope::Space { within } => {
                let is_fresh = |time: Time| within.is_none_or(|span| now.since(time) <= span);
                of_run.chain(of_space).any(is_fresh)
            }
        }
    }
}

/// Checks the arguments of a call of `tool` before there is a call, as the pipeline does afterwards.
pub fn check_arguments(tool: &Tool, input: &Json) -> Result<(), Misfit> {
    let mut value = input.to_value();
    drop_blanks(tool, &mut value);
    tool.input.verify(&value)
}

/// Where a call goes that nothing holds back any more.
pub(super) fn release(tool: &Arc<Tool>, now: Time) -> Fate {
    match tool.placement() {
        Placement::Client => Fate::Offer {
            deadline: now.after(tool.timeout),
        },
        Placement::Server | Placement::Plugin | Placement::Mcp => Fate::Run,
    }
}

/// Removes optional members that are empty text or null, which is how models write "none". True if there were any. Only
/// for tools whose schema is the gateway's own: elsewhere an empty text may mean something.
fn drop_blanks(tool: &Tool, input: &mut Value) -> bool {
    let own = match &tool.execution {
        Execution::Source(tool) => tool.source == BUILT_IN,
        Execution::Waiting(wait) => *wait == Wait::Input,
        Execution::Client
        | Execution::Static(_)
        | Execution::PassThrough
        | Execution::Agent { .. }
        | Execution::Spawn
        | Execution::Prompt(_) => false,
    };
    let is_blank = |value: &Value| value.is_null() || value == "";
    let Some(members) = input.as_object_mut().filter(|_| own) else {
        return false;
    };
    if !members.values().any(is_blank) {
        return false;
    }
    let schema = tool.parameters.to_value();
    let required = schema["required"].as_array();
    let is_required = |name: &str| required.is_some_and(|names| names.iter().any(|needed| needed == name));
    let before = members.len();
    members.retain(|name, value| is_required(name) || !is_blank(value));
    members.len() < before
}

/// The problems as the model reads them.
pub(super) fn sentences(problems: &[Problem]) -> String {
    let told: Vec<&str> = problems
        .iter()
        .take(PROBLEMS_TOLD_MAX)
        .map(|p| p.message.as_str())
        .collect();
    told.join("; ")
}

fn read(arguments: &str) -> (Json, Result<Value, String>) {
    let text = if arguments.trim().is_empty() {
        "{}"
    } else {
        arguments
    };
    match (Json::parse(text.to_owned()), serde_json::from_str(text)) {
        (Ok(json), Ok(value)) => (json, Ok(value)),
        (Err(error), _) | (_, Err(error)) => {
            let mut end = text.len().min(MALFORMED_BYTES_MAX);
            while !text.is_char_boundary(end) {
                end -= 1;
            }
            (
                Json::string(&text[..end]),
                Err(format!("the arguments are not JSON: {error}")),
            )
        }
    }
}
