//! Passes the deltas of a reply to the sink: adjacent ones are merged, call slots have no gaps, and limits on
//! calls and bytes are enforced.

use toolgate_engine::model::{Delta, ModelError, ReplySink};

use crate::failure::permanent;

/// Most calls in one reply.
pub const CALLS_MAX: usize = 128;
/// Most bytes of one call's input.
pub const INPUT_BYTES_MAX: usize = 1 << 20;
/// Most bytes of one reply: text, reasoning and inputs together.
pub const REPLY_BYTES_MAX: usize = 16 << 20;

/// A reply on its way to a sink.
pub(crate) struct Reply<'s> {
    sink: &'s mut dyn ReplySink,
    /// The kind of delta that `held` is a part of.
    kind: Kind,
    held: String,
    bytes: usize,
    /// Input bytes of each call, by slot.
    inputs: Vec<usize>,
    /// Whether deltas were passed on since the last flush.
    fresh: bool,
    /// Whether any delta was passed on.
    begun: bool,
    /// The limit that was exceeded.
    over: Option<&'static str>,
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Nothing,
    Text,
    Reasoning,
    Input(u32),
}

impl<'s> Reply<'s> {
    pub(crate) fn new(sink: &'s mut dyn ReplySink) -> Self {
        Self {
            sink,
            kind: Kind::Nothing,
            held: String::new(),
            bytes: 0,
            inputs: Vec::new(),
            fresh: false,
            begun: false,
            over: None,
        }
    }

    /// Appends text.
    pub(crate) fn text(&mut self, text: &str) {
        self.hold(Kind::Text, text);
    }

    /// Appends reasoning.
    pub(crate) fn reasoning(&mut self, text: &str) {
        self.hold(Kind::Reasoning, text);
    }

    /// Stores the signature that the vendor needs back with the reasoning. The tag names the adapter, so that
    /// no other adapter sends it.
    pub(crate) fn reasoning_signature(&mut self, tag: &str, signature: &str) {
        let tagged = [tag, signature].concat();
        self.give(Delta::ReasoningSignature(&tagged), tagged.len());
    }

    /// Begins a call and returns its slot.
    pub(crate) fn call(&mut self, name: &str) -> u32 {
        let slot = self.inputs.len() as u32;
        if self.inputs.len() == CALLS_MAX {
            self.over.get_or_insert("calls");
        } else {
            self.inputs.push(0);
        }
        self.give(Delta::CallStart { slot, name }, name.len());
        slot
    }

    /// Appends to a call's input.
    pub(crate) fn input(&mut self, slot: u32, text: &str) {
        if let Some(bytes) = self.inputs.get_mut(slot as usize) {
            *bytes += text.len();
            if *bytes > INPUT_BYTES_MAX {
                self.over.get_or_insert("bytes in the input of a call");
            }
        }
        self.hold(Kind::Input(slot), text);
    }

    /// Stores the signature that the vendor needs back with a call.
    pub(crate) fn call_signature(&mut self, slot: u32, tag: &str, signature: &str) {
        let signature = &[tag, signature].concat();
        self.give(Delta::CallSignature { slot, signature }, signature.len());
    }

    /// The number of calls so far.
    pub(crate) fn calls(&self) -> usize {
        self.inputs.len()
    }

    /// Whether a call has any input yet.
    pub(crate) fn has_input(&self, slot: u32) -> bool {
        self.inputs.get(slot as usize).is_some_and(|&bytes| bytes > 0)
    }

    /// Whether the sink has received anything.
    pub(crate) fn begun(&self) -> bool {
        self.begun
    }

    /// Passes on and flushes what has arrived. Fails if a limit was exceeded.
    pub(crate) fn flush(&mut self) -> Result<(), ModelError> {
        self.give_held();
        if std::mem::take(&mut self.fresh) {
            self.sink.flush();
        }
        match self.over {
            None => Ok(()),
            Some(what) => Err(permanent(format!("the model's reply has too many {what}"))),
        }
    }

    /// Completes the reply. A call without input gets the empty object: vendors send nothing for it.
    pub(crate) fn end(&mut self) -> Result<(), ModelError> {
        for slot in 0..self.inputs.len() {
            if self.inputs[slot] == 0 {
                self.input(slot as u32, "{}");
            }
        }
        self.flush()
    }

    fn hold(&mut self, kind: Kind, text: &str) {
        if text.is_empty() {
            return;
        }
        if self.kind != kind {
            self.give_held();
            self.kind = kind;
        }
        self.held.push_str(text);
    }

    fn give(&mut self, delta: Delta<'_>, bytes: usize) {
        self.give_held();
        self.pass(delta, bytes);
    }

    fn give_held(&mut self) {
        let mut held = std::mem::take(&mut self.held);
        let text = held.as_str();
        match std::mem::replace(&mut self.kind, Kind::Nothing) {
            Kind::Nothing => {}
            Kind::Text => self.pass(Delta::Text(text), text.len()),
            Kind::Reasoning => self.pass(Delta::Reasoning(text), text.len()),
            Kind::Input(slot) => self.pass(Delta::CallInput { slot, text }, text.len()),
        }
        held.clear();
        self.held = held;
    }

    fn pass(&mut self, delta: Delta<'_>, bytes: usize) {
        self.bytes += bytes;
        if self.bytes > REPLY_BYTES_MAX {
            self.over.get_or_insert("bytes");
        }
        if self.over.is_none() {
            self.sink.delta(delta);
            self.fresh = true;
            self.begun = true;
        }
    }
}
