//! Agents of other servers as tools, over A2A: `{"executionType": "ai-agent", "execution": {"url": "https://…"}}`.
//!
//! A call is one task of the remote agent. Its id is stored as soon as it is known, so that a restart goes on with the
//! same task and sends nothing twice; what the agent asks for is asked in the space. Outbound requests go through
//! `egress` with the project's allow-list and secrets. Nothing here starts a run, keeps a conversation, or trusts what
//! a remote agent says: every body, stream and list has a limit, and secrets are removed from what comes back.
//!
//! Start with `source`, then `remote_call`; `remote` is the protocol as a client speaks it, `card` what a tool is told
//! by, `outcome` what becomes of a task's parts.

mod card;
mod cards;
mod config;
mod endpoint;
mod event_stream;
mod open_streams;
mod outcome;
mod question;
mod remote;
mod remote_call;
mod source;
mod task_handle;

pub use source::{RemoteAgentParts, RemoteAgents, SOURCE};
