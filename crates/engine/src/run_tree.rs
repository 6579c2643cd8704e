//! A run at the top and all below it: how one starts another, and what they may use up together.

use std::sync::Arc;

use toolgate_kernel::event::Budget;
use toolgate_kernel::id::{ProjectId, RunId, SpaceId};
use toolgate_kernel::message::Message;
use toolgate_kernel::name::AgentName;

use crate::Inner;
use crate::agents::Compiled;
use crate::budget::{Asked, BudgetError};
use crate::start::{Kinship, NewRun};
use crate::store::{RunFilter, RunRecord, RunTree, SpaceRecord, StoreError};

/// Children of one run that are looked at.
const CHILDREN_MAX: usize = 10_000;
/// Names of agents that are told to a model that asked for one that is not there.
const NAMES_TOLD_MAX: usize = 20;

/// A run to be started by a call of another.
#[derive(Clone)]
pub(crate) struct ChildStart {
    pub id: RunId,
    pub project: ProjectId,
    pub agent: AgentName,
    /// The newest, unless said otherwise.
    pub revision: Option<u32>,
    pub kinship: Kinship,
    pub message: Message,
}

/// What became of the start of a child.
pub(crate) enum Birth {
    /// It is there.
    Started,
    /// There is no such agent; these there are.
    NoAgent(Vec<AgentName>),
    /// Its run tree has used up what it may.
    UsedUp(String),
    /// The run at the top has ended, and those below are about to.
    Ended,
}

impl Inner {
    /// The runs that the calls of a run have started.
    pub(crate) async fn children(
        &self,
        project: ProjectId,
        run: RunId,
    ) -> Result<Vec<RunRecord>, StoreError> {
        let filter = RunFilter {
            parent: Some(run),
            limit: CHILDREN_MAX,
            ..RunFilter::default()
        };
        Ok(self.store.runs(project, filter).await?.runs)
    }

    /// Starts a run for a call of another; nothing happens when it is there.
    pub(crate) async fn start_child(self: &Arc<Self>, child: ChildStart) -> Result<Birth, StoreError> {
        let ChildStart {
            id,
            project,
            agent,
            revision,
            kinship,
            message,
        } = child;
        let top = self.store.run(kinship.root).await?;
        if top.is_none_or(|top| top.status.is_final()) {
            return Ok(Birth::Ended);
        }
        let budget = kinship.budget;
        let tree = self.store.run_tree(kinship.root).await?;
        if let Some(words) = beyond(tree, budget).or_else(|| full(tree, budget)) {
            return Ok(Birth::UsedUp(words));
        }
        let compiled = self.compiled(project, &agent, revision).await?;
        let Some(agent) = compiled.and_then(|agent| agent.behind(kinship.behind.as_ref())) else {
            return Ok(Birth::NoAgent(self.agent_names(project).await?));
        };
        let _admitted = match self.admit_run(asked(project, &agent, &message)).await {
            Ok(admitted) => admitted,
            Err(BudgetError::Store(error)) => return Err(error),
            Err(error) => {
                tracing::warn!(%project, run = %id, %error, "a child run is refused by a budget");
                return Ok(Birth::UsedUp(error.to_user().unwrap_or_default()));
            }
        };
        let space = SpaceId::from_bytes(id.to_bytes());
        let new_space = SpaceRecord {
            id: space,
            project,
            title: None,
            agent: Some(agent.agent.name.clone()),
            metadata: None,
            by_backend: true,
            members: Vec::new(),
            created: self.clock.now(),
        };
        let started = self.start(NewRun {
            new_space: Some(new_space),
            kinship: Some(kinship),
            ..NewRun::new(id, project, space, agent, message)
        });
        match started.await {
            Ok(_) | Err(StoreError::Exists) => Ok(Birth::Started),
            Err(StoreError::Full) => Ok(Birth::UsedUp(full_words(budget.descendants))),
            Err(error) => Err(error),
        }
    }

    async fn agent_names(&self, project: ProjectId) -> Result<Vec<AgentName>, StoreError> {
        let agents = self.store.agents(project).await?.into_iter();
        Ok(agents.map(|agent| agent.name).take(NAMES_TOLD_MAX).collect())
    }
}

/// A run of an agent that asks its model, begun by a message.
pub(crate) fn asked<'a>(project: ProjectId, agent: &'a Compiled, message: &Message) -> Asked<'a> {
    Asked {
        project,
        user: message.person(),
        agent: &agent.agent.name,
        model: Some(&agent.agent.model.name),
    }
}

/// Why a run tree may use no more tokens, if so.
pub(crate) fn beyond(tree: RunTree, budget: Budget) -> Option<String> {
    (tree.tokens > budget.tokens).then(|| {
        format!(
            "this run and those below it used {} tokens; together they may use {}",
            tree.tokens, budget.tokens
        )
    })
}

/// Why a run tree may not grow, if so. Only the store knows for sure: others may be born at this moment.
fn full(tree: RunTree, budget: Budget) -> Option<String> {
    (tree.descendants >= budget.descendants).then(|| full_words(budget.descendants))
}

fn full_words(descendants: u32) -> String {
    format!("{descendants} agents were started below the first run, which is all that may be")
}
