//! Something to answer that nobody said: a plan's moment has come.

use sha2::{Digest, Sha256};
use toolgate_kernel::id::{MessageId, ProjectId, RunId, SpaceId};
use toolgate_kernel::message::{Message, Part};
use toolgate_kernel::name::AgentName;
use toolgate_kernel::time::Time;
use uuid::Uuid;

use crate::Engine;
use crate::intake::{Answer, Post, PostError};

/// A message that nobody sends, to be answered in a space.
#[derive(Debug, Clone)]
pub struct Occasion {
    /// In which project.
    pub project: ProjectId,
    /// Where.
    pub space: SpaceId,
    /// Who has to answer.
    pub agent: AgentName,
    /// What it is for, unique in the project. With the moment it names the occasion, so it must be written the same
    /// way by every version of every caller.
    pub cause: String,
    /// When it was due.
    pub due: Time,
    /// What the agent is told.
    pub text: String,
}

impl Engine {
    /// Starts the run for an occasion, or tells the one that its agent has under way in the space, as a message
    /// would. Doing it twice within a day, here or on another node, is doing it once.
    pub async fn start_once(&self, occasion: Occasion) -> Result<RunId, PostError> {
        let posted = self.inner.post(occasion.space, occasion.post()).await?;
        Ok(posted.run_id.expect("an agent was asked to answer"))
    }
}

impl Occasion {
    fn post(self) -> Post {
        let key = format!("occasion/{}/{}", self.cause, self.due.0);
        // What a plan says may change; that it was due then does not.
        let request = Sha256::digest(&key).into();
        let message = Message {
            message_id: MessageId::new(Uuid::now_v7()),
            from: None,
            parts: vec![Part::Text { text: self.text }],
            metadata: None,
        };
        Post {
            project: self.project,
            space: Some(self.space),
            makes_space: false,
            message,
            answer: Answer::Agent(self.agent),
            client_tools: Vec::new(),
            categories: None,
            history: Vec::new(),
            idempotency: Some((key, request)),
        }
    }
}
