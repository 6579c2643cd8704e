//! What an AI SDK client posts: a turn of a chat.

use toolgate_http::client_tools::{Categories, ClientTools};
use toolgate_http::executor::MessageExecutor;
use toolgate_http::ui_message::{ChatMessage, Id, Messages};
use toolgate_http::wire::{TextOr, wire, words};

wire! {
    /// A turn of a chat, as the AI SDK's transports send it: the whole conversation, or its last message.
    ChatTurn {
        /// Names the chat; the same id goes on with the same conversation. Without one a new chat begins.
        id "id": Option<Id>,
        /// The conversation. A claim, not a fact: the new message and answers to what is open count, and in a chat that is
        /// new all of it, as told by the client. What does not match a known chat is reported in `data-run`.
        messages "messages": Option<Messages>,
        /// The last message alone, or just its words.
        message "message": Option<TextOr<ChatMessage>>,
        /// Tools that the caller executes itself.
        client_tools "clientTools": Option<ClientTools>,
        /// The sender, as a client that executes tools: calls are offered to it first.
        executor "executor": Option<MessageExecutor>,
        /// Of the agent's client tools only those of these categories, and those of none.
        categories "selectedToolCategories": Option<Categories>,
        /// What the client wants: an answer, or another one.
        trigger "trigger": Option<Trigger>,
        /// Which version of the stream the client reads; `v6` unless said otherwise.
        dialect "dialect": Option<Dialect>,
    }
    exactly one of [messages "messages", message "message"]
    ignore others
}

words! {
    /// Why the client sends the request.
    Trigger {
        /// An answer.
        Submit = "submit-message",
        /// Another answer to the same message.
        Regenerate = "regenerate-message",
        /// Follow the run under way.
        Resume = "resume-stream",
    }
}
words! {
    /// A version of the AI SDK's UI message stream.
    Dialect {
        /// Without approvals and other later chunks.
        V5 = "v5",
        /// With approvals.
        V6 = "v6",
        /// With everything that ai 7.0.169 reads.
        V7 = "v7",
    }
}
