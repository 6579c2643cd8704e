//! A space's log read as a conversation.
