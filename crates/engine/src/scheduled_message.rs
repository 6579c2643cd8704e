//! Messages that the gateway posts itself, on behalf of a plan that is due.

use sha2::{Digest, Sha256};
use toolgate_kernel::agent::Starter;
use toolgate_kernel::id::{EntityId, MessageId, ProjectId, RunId, SpaceId};
use toolgate_kernel::message::{Message, Origin, Part};
use toolgate_kernel::name::AgentName;
use toolgate_kernel::time::Time;
use uuid::Uuid;

use crate::Engine;
use crate::intake::{Answer, Charged, Post, PostError, UnderWay};

/// A system message that a due plan posts into a space, for an agent to answer.
#[derive(Debug, Clone)]
pub struct ScheduledMessage {
    /// Project of the space.
    pub project: ProjectId,
    /// Space that the message is posted into.
    pub space: SpaceId,
    /// Agent that answers.
    pub agent: AgentName,
    /// What the message is posted for, unique in the project. With `due` it is the idempotency key, so every version
    /// of every caller must write it in the same form.
    pub cause: String,
    /// Time for which the message was scheduled, which may be long before it is posted.
    pub due: Time,
    /// Text of the message.
    pub text: String,
    /// Plan that posts it.
    pub plan_id: String,
    /// The person who asked for the plan, where it is known.
    pub asked_by: Option<EntityId>,
    /// What it does when the agent has a run under way in the space.
    pub under_way: UnderWay,
}

impl Engine {
    /// Posts the message: it starts a run. If the agent has one open in the space, it joins that or is refused, as
    /// `under_way` says. Posting it again within a day, on this node or another, has no effect and returns the same run.
    pub async fn post_scheduled(&self, scheduled: ScheduledMessage) -> Result<RunId, PostError> {
        let posted = self.inner.post(scheduled.space, scheduled.post()).await?;
        Ok(posted.run_id.expect("an agent was asked to answer"))
    }
}

impl ScheduledMessage {
    fn post(self) -> Post {
        // The prefix keeps its old word: nodes of two versions may share a store, and must agree on the key.
        let key = format!("occasion/{}/{}", self.cause, self.due.0);
        // Only the key is hashed: the plan's text may change between two attempts.
        let request = Sha256::digest(&key).into();
        let parts = vec![Part::Text { text: self.text }];
        let message = Message {
            origin: Some(Origin::Plan {
                plan_id: self.plan_id,
                due_at: self.due,
            }),
            on_behalf_of: self.asked_by.into_iter().collect(),
            // Nobody's: the person's grants are not the plan's.
            ..Message::new(MessageId::new(Uuid::now_v7()), None, parts)
        };
        Post {
            user_token: None,
            call: None,
            project: self.project,
            starter: Starter::Backend,
            charged: Charged::SpaceOwner,
            space: Some(self.space),
            makes_space: false,
            message,
            answer: Answer::Agent(self.agent),
            client_tools: Vec::new(),
            categories: None,
            history: Vec::new(),
            under_way: self.under_way,
            told: Vec::new(),
            idempotency: Some((key, request)),
        }
    }
}
