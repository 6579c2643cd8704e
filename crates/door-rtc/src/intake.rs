//! What a client wants, handed to the engine: the same calls, and the same checks before them, as over HTTP.

use toolgate_access::Principal;
use toolgate_engine::intake::IntakeError;
use toolgate_http::Shared;
use toolgate_http::problem::Refusal;
use toolgate_kernel::id::{RunId, SpaceId};
use toolgate_kernel::tool::Decider;

use crate::incoming::{Incoming, Request, other_tool};
use crate::members::Members;

/// Somebody who may reach the space right now, and what it is to the space's questions.
pub(crate) struct Sender<'a> {
    pub who: &'a Principal,
    pub space: SpaceId,
    pub reader: &'a Decider,
}

/// Refuses a message that names another tool than that of its call.
pub(crate) async fn check_tool(
    door: &Shared,
    sender: &Sender<'_>,
    message: &Incoming,
) -> Result<(), Refusal> {
    let Some(named) = &message.tool else {
        return Ok(());
    };
    let (call, what) = (message.request.call(), message.request.subject());
    sender.reach(door, call.run, what).await?;
    match door.engine.tool_of(call).await {
        Ok(tool) if tool.is_asked && !tool.is_named(named) => Err(other_tool(named, &tool)),
        // What there is not, or not for this sender, is refused below, in the words for it.
        Ok(_) | Err(IntakeError::Unknown(_)) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Does what is wanted. Gives the receipt; when it is refused nothing was changed.
pub(crate) async fn hand_in(
    door: &Shared,
    sender: &Sender<'_>,
    request: Request,
) -> Result<Option<Members>, Refusal> {
    let (by, what) = (sender.who.entity(), request.subject());
    match request {
        Request::Decide {
            approval,
            decision,
            remember,
        } => {
            sender.reach(door, approval.run, what).await?;
            let decided = door
                .engine
                .decide_with(approval, decision, remember, sender.reader.clone())
                .await?;
            Ok(Some(Members::of(&decided)))
        }
        Request::Claim { call, holder, lease } => {
            sender.reach(door, call.run, what).await?;
            let claimed = door.engine.claim_call(call, holder, by, lease).await?;
            Ok(Some(Members::of(&claimed)))
        }
        Request::Release { call, holder } => {
            sender.reach(door, call.run, what).await?;
            door.engine.release_call(call, holder, by).await?;
            Ok(None)
        }
        Request::Progress { call, progress } => {
            sender.reach(door, call.run, what).await?;
            door.settings.content.check_progress(&progress)?;
            door.engine.progress(call, progress, by).await?;
            Ok(None)
        }
        Request::Submit { call, submission } => {
            sender.reach(door, call.run, what).await?;
            let stored = door.engine.submit(call, submission, by).await?;
            Ok(Some(Members::of(&stored)))
        }
    }
}

impl Sender<'_> {
    /// What is asked in other spaces does not exist on this channel, also where its peer may reach it otherwise.
    async fn reach(&self, door: &Shared, run: RunId, what: &str) -> Result<(), Refusal> {
        let top = door.access.reach_top(self.who, run, what).await?;
        match top.space == self.space {
            true => Ok(()),
            false => Err(Refusal::not_found(what)),
        }
    }
}
