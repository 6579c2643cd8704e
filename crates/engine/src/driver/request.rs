//! A request to the model under way: how far it has come, and what it has used if it is cut off here.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use toolgate_kernel::event::Usage;

use crate::estimate;
use crate::model::Ask;

/// How far a request has come. Shared by the task that makes it and the driver that may give it up.
#[derive(Default)]
pub(crate) struct RequestProgress {
    /// Whether the model was asked; until then it waits for its time or its turn.
    begun: AtomicBool,
    /// Tokens of the request, as they are estimated.
    input_tokens: AtomicU64,
    /// Bytes of the reply so far.
    written: AtomicU64,
}

impl RequestProgress {
    /// The model is asked now.
    pub fn begin(&self, ask: &Ask) {
        self.input_tokens
            .store(estimate::usage_of(ask, 0).input_tokens, Ordering::Relaxed);
        self.begun.store(true, Ordering::Release);
    }

    pub fn has_begun(&self) -> bool {
        self.begun.load(Ordering::Acquire)
    }

    /// So many more bytes of the reply have come.
    pub fn wrote(&self, bytes: usize) {
        self.written.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// What the request has used if no more of it comes; none if the model was not asked yet.
    pub fn usage(&self) -> Option<Usage> {
        self.has_begun().then(|| Usage {
            input_tokens: self.input_tokens.load(Ordering::Relaxed),
            ..estimate::written(self.written.load(Ordering::Relaxed))
        })
    }
}
