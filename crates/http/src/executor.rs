//! The client that sends a message, as one that executes tools.

use toolgate_access::Principal;
use toolgate_kernel::message::{Executor, Sender};

use crate::wire::{List, Text, wire};

/// Longest name of a client that claims calls.
pub const HOLDER_CHARS_MAX: usize = 128;
/// Longest name of a tool.
const NAME_CHARS_MAX: usize = 64;
/// Most tools that a sender names: its own and the agent's client tools.
const EXECUTOR_TOOLS_MAX: usize = 256;

wire! {
    /// The client that sends a message. Calls of its tools are reserved for it for a few seconds, then for whoever claims them.
    MessageExecutor {
        /// The name with which it claims calls.
        holder "holder": Text<1, HOLDER_CHARS_MAX>,
        /// Names of the tools that it executes; every client tool unless said otherwise.
        tools "tools": Option<List<Text<1, NAME_CHARS_MAX>, 0, EXECUTOR_TOOLS_MAX>>,
    }
}

/// The sender of a message that `who` posts from this client.
pub fn sender(who: &Principal, executor: Option<MessageExecutor>) -> Option<Sender> {
    let known = who.sender();
    let Some(MessageExecutor { holder, tools }) = executor else {
        return known;
    };
    let executor = Executor {
        holder: holder.0,
        tools: tools.map(|names| names.0.into_iter().map(|name| name.0).collect()),
    };
    Some(Sender {
        executor: Some(executor),
        ..known.unwrap_or_default()
    })
}
