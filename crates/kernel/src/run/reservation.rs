//! Client calls that are offered to the sender of the message before anybody else.

use std::time::Duration;

use super::Run;
use crate::event::Claim;
use crate::time::Time;

/// How long a call waits for the client that sent the message. Long enough for a busy tab to claim it, short enough that
/// another client takes over before a person gives up.
pub const RESERVATION: Duration = Duration::from_secs(5);

impl Run {
    /// For whom a call of this client tool is reserved: for the client that sent the newest message, if it executes the tool.
    /// Claiming it and going away are what every claim knows, so a reservation is a claim that nobody has asked for yet.
    pub(super) fn reservation(&self, tool: &str, now: Time) -> Option<Claim> {
        let message = &self.state.messages().last()?.message;
        let executor = message.sender.as_ref()?.executor.as_ref()?;
        let given = self.tools.get(tool)?.given_name.as_deref().unwrap_or(tool);
        let is_executor = match &executor.tools {
            Some(tools) => tools.iter().any(|name| name == given),
            None => true,
        };
        let is_offered =
            self.offered_to.is_none() || self.offered_to == message.from || message.from.is_none();
        (is_executor && is_offered).then(|| Claim {
            holder: executor.holder.clone(),
            until: now.after(RESERVATION),
            by: message.from,
        })
    }
}
