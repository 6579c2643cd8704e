//! A reply as it arrives: shown live, and gathered for the log.

use std::sync::Arc;
use std::time::Instant;

use toolgate_kernel::event::{
    Event, ReasoningDelta, ReasoningStart, TextDelta, TextStart, ToolInputDelta, ToolInputStart, ToolRef,
};
use toolgate_kernel::id::{CallId, EntityId, RunId};
use toolgate_kernel::run::{ReplyPart, Run, tool_ref};
use toolgate_kernel::tool::Toolbox;

use crate::clock::Clock;
use crate::driver::RequestProgress;
use crate::feed::Driving;
use crate::model::{Delta, ReplySink};

/// Gathers the parts of one reply and shows them as they grow.
pub(crate) struct Gathering {
    run: RunId,
    step: u32,
    /// Number of the reply's first call.
    first_call: u32,
    tools: Arc<Toolbox>,
    /// The only member of the space that the run's client calls are offered to.
    offered_to: Option<EntityId>,
    driving: Arc<Driving>,
    clock: Arc<dyn Clock>,
    progress: Arc<RequestProgress>,
    parts: Vec<ReplyPart>,
    /// The part of each call, by slot.
    calls: Vec<(usize, ToolRef)>,
    /// Not shown yet.
    fresh: Vec<Event>,
    /// When the first piece came.
    first: Option<Instant>,
}

impl Gathering {
    /// The reply to a step of `asked`, as it comes.
    pub fn new(
        asked: &Run,
        step: u32,
        driving: Arc<Driving>,
        clock: Arc<dyn Clock>,
        progress: Arc<RequestProgress>,
    ) -> Self {
        let CallId {
            run,
            number: first_call,
        } = asked.next_call(0);
        let (parts, calls, fresh) = (Vec::new(), Vec::new(), Vec::new());
        Self {
            run,
            step,
            first_call,
            tools: asked.tools().clone(),
            offered_to: asked.offered_to(),
            driving,
            clock,
            progress,
            parts,
            calls,
            fresh,
            first: None,
        }
    }

    /// When the first piece of the reply came.
    pub fn first(&self) -> Option<Instant> {
        self.first
    }

    /// Everything the model said.
    pub fn into_parts(self) -> Vec<ReplyPart> {
        self.parts
    }

    fn part_id(&self) -> Arc<str> {
        format!("{}.{}", self.step, self.parts.len()).into()
    }

    fn text(&mut self, words: &str) {
        if let Some(ReplyPart::Text { id, text }) = self.parts.last_mut() {
            text.push_str(words);
            match self.fresh.last_mut() {
                Some(Event::TextDelta(fresh)) if fresh.id == *id => fresh.delta.push_str(words),
                _ => self.fresh.push(
                    TextDelta {
                        id: id.clone(),
                        delta: words.to_owned(),
                    }
                    .into(),
                ),
            }
            return;
        }
        let id = self.part_id();
        self.fresh.push(TextStart { id: id.clone() }.into());
        self.fresh.push(
            TextDelta {
                id: id.clone(),
                delta: words.to_owned(),
            }
            .into(),
        );
        self.parts.push(ReplyPart::Text {
            id,
            text: words.to_owned(),
        });
    }

    fn reasoning(&mut self, words: &str) {
        if let Some(ReplyPart::Reasoning {
            id,
            text,
            signature: None,
        }) = self.parts.last_mut()
        {
            text.push_str(words);
            match self.fresh.last_mut() {
                Some(Event::ReasoningDelta(fresh)) if fresh.id == *id => fresh.delta.push_str(words),
                _ => self.fresh.push(
                    ReasoningDelta {
                        id: id.clone(),
                        delta: words.to_owned(),
                    }
                    .into(),
                ),
            }
            return;
        }
        let id = self.part_id();
        self.fresh.push(ReasoningStart { id: id.clone() }.into());
        self.fresh.push(
            ReasoningDelta {
                id: id.clone(),
                delta: words.to_owned(),
            }
            .into(),
        );
        self.parts.push(ReplyPart::Reasoning {
            id,
            text: words.to_owned(),
            signature: None,
        });
    }

    fn sign_reasoning(&mut self, given: &str) {
        if !matches!(
            self.parts.last(),
            Some(ReplyPart::Reasoning { signature: None, .. })
        ) {
            let id = self.part_id();
            self.parts.push(ReplyPart::Reasoning {
                id,
                text: String::new(),
                signature: None,
            });
        }
        if let Some(ReplyPart::Reasoning { signature, .. }) = self.parts.last_mut() {
            *signature = Some(given.to_owned());
        }
    }

    fn call_start(&mut self, name: &str) {
        let id = CallId {
            run: self.run,
            number: self.first_call + self.calls.len() as u32,
        };
        let name: Arc<str> = name.into();
        let tool = tool_ref(id, &name, &self.tools, self.offered_to);
        self.fresh.push(ToolInputStart::of(&tool).into());
        self.calls.push((self.parts.len(), tool));
        self.parts.push(ReplyPart::Call {
            name,
            arguments: String::new(),
            signature: None,
        });
    }

    fn call_input(&mut self, slot: u32, words: &str) {
        let Some((part, tool)) = self.calls.get(slot as usize) else {
            return;
        };
        let Some(ReplyPart::Call { arguments, .. }) = self.parts.get_mut(*part) else {
            return;
        };
        arguments.push_str(words);
        match self.fresh.last_mut() {
            Some(Event::ToolInputDelta(fresh)) if fresh.tool_call_id == tool.call => {
                fresh.input_text_delta.push_str(words);
            }
            _ => self.fresh.push(ToolInputDelta::of(tool, words.to_owned()).into()),
        }
    }

    fn sign_call(&mut self, slot: u32, given: &str) {
        let Some((part, _)) = self.calls.get(slot as usize) else {
            return;
        };
        if let Some(ReplyPart::Call { signature, .. }) = self.parts.get_mut(*part) {
            *signature = Some(given.to_owned());
        }
    }
}

impl ReplySink for Gathering {
    fn delta(&mut self, delta: Delta<'_>) {
        self.first.get_or_insert_with(Instant::now);
        self.progress.wrote(delta.bytes());
        match delta {
            Delta::Text(words) => self.text(words),
            Delta::Reasoning(words) => self.reasoning(words),
            Delta::ReasoningSignature(given) => self.sign_reasoning(given),
            Delta::CallStart { slot, name } => {
                debug_assert_eq!(slot as usize, self.calls.len(), "slots count up without gaps");
                self.call_start(name);
            }
            Delta::CallInput { slot, text } => self.call_input(slot, text),
            Delta::CallSignature { slot, signature } => self.sign_call(slot, signature),
        }
    }

    fn flush(&mut self) {
        if !self.fresh.is_empty() {
            self.driving
                .publish(self.run, self.clock.now(), std::mem::take(&mut self.fresh));
        }
    }
}
