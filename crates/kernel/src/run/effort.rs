//! How long taking an arrival could keep a thread busy: schemas are checked then.

use super::{Arrival, Reply, ReplyPart, Run, Verdict};
use crate::call::Outcome;
use crate::id::CallId;
use crate::schema::Validator;
use crate::tool::{Approval, Tool};

/// Steps that are short enough to be taken where nothing else must wait: a millisecond or two.
const QUICK_STEPS: u64 = 100_000;

impl Run {
    /// Whether [`Run::take`] takes a few milliseconds at most. Any other arrival is to be taken on a thread of its own.
    pub fn is_quick(&self, arrival: &Arrival) -> bool {
        self.steps(arrival) <= QUICK_STEPS
    }

    fn steps(&self, arrival: &Arrival) -> u64 {
        match arrival {
            Arrival::Result { call, outcome, .. } | Arrival::Output { call, outcome, .. } => {
                let schema = self.tool(*call).and_then(|tool| tool.output.as_ref());
                match (schema, outcome) {
                    (Some(schema), Outcome::Output(output)) => schema.steps_of_bytes(output.as_str().len()),
                    (None, Outcome::Output(_)) | (_, Outcome::Error { .. }) => 0,
                }
            }
            Arrival::Decide {
                approval,
                verdict: Verdict::Approve(Some(input)),
                ..
            } => self
                .tool(approval.call())
                .map_or(0, |tool| tool.input.steps_of_bytes(input.as_str().len())),
            // The schema of a question is compiled to check an answer.
            Arrival::Answer { response, .. } if response.content.is_some() => u64::MAX,
            Arrival::Reply(reply) => self.reply_steps(reply),
            Arrival::Decide { .. }
            | Arrival::Begin
            | Arrival::Message(_)
            | Arrival::Broke { .. }
            | Arrival::Cut(_)
            | Arrival::Signal { .. }
            | Arrival::Exhausted(_)
            | Arrival::Started { .. }
            | Arrival::Sampled { .. }
            | Arrival::Delegated { .. }
            | Arrival::Claim { .. }
            | Arrival::Release { .. }
            | Arrival::Answer { .. }
            | Arrival::Tick
            | Arrival::Cancel
            | Arrival::Recovered => 0,
        }
    }

    /// The inputs of all calls, and the answer where it must have a form.
    fn reply_steps(&self, reply: &Reply) -> u64 {
        let steps = reply.parts.iter().map(|part| match part {
            ReplyPart::Call { name, arguments, .. } => {
                let tool = self.tools.get(name.as_ref());
                tool.map_or(0, |tool| input_steps(tool, arguments.len()))
            }
            ReplyPart::Text { text, .. } => {
                let result = self.agent.result.as_ref();
                result.map_or(0, |result| result.validator.steps_of_bytes(text.len()))
            }
            ReplyPart::Reasoning { .. } => 0,
        });
        steps.fold(0, u64::saturating_add)
    }

    fn tool(&self, call: CallId) -> Option<&Tool> {
        self.call(call)?.definition.as_deref()
    }
}

fn input_steps(tool: &Tool, bytes: usize) -> u64 {
    let rule: Option<&Validator> = match &tool.approval {
        Approval::When(rule) => Some(rule),
        Approval::Never | Approval::Always => None,
    };
    let rule = rule.map_or(0, |rule| rule.steps_of_bytes(bytes));
    tool.input.steps_of_bytes(bytes).saturating_add(rule)
}
