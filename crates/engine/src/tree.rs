//! What a run at the top and all below it have used up. Read from their logs: only runs that start others pay for it.

use toolgate_kernel::event::{Budget, Event};
use toolgate_kernel::id::{ProjectId, RunId};

use crate::Inner;
use crate::store::{RunFilter, RunRecord, StoreError};

/// Children of one run that are looked at.
const CHILDREN_MAX: usize = 10_000;

/// What was used up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Spent {
    /// Runs below the one at the top.
    pub descendants: u32,
    /// Tokens of all of them together.
    pub tokens: u64,
}

impl Spent {
    /// Why nothing more may be used, if so.
    pub fn beyond(self, budget: Budget) -> Option<String> {
        if self.tokens > budget.tokens {
            return Some(format!(
                "this run and those below it used {} tokens; together they may use {}",
                self.tokens, budget.tokens
            ));
        }
        (self.descendants >= budget.descendants).then(|| {
            format!(
                "{} agents were started below the first run, which is all that may be",
                self.descendants
            )
        })
    }
    /// Why no more tokens may be used, if so.
    pub fn beyond_tokens(self, budget: Budget) -> Option<String> {
        Self {
            descendants: 0,
            ..self
        }
        .beyond(Budget {
            descendants: u32::MAX,
            ..budget
        })
    }
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
        self.store.runs(project, filter).await
    }

    /// What `root` and all below it have used up so far.
    pub(crate) async fn spent(&self, project: ProjectId, root: RunId) -> Result<Spent, StoreError> {
        let mut spent = Spent::default();
        let mut rest = vec![root];
        while let Some(run) = rest.pop() {
            let log = self.store.run_log(run).await?;
            let steps = log
                .iter()
                .flat_map(|entry| &entry.events)
                .filter_map(|event| match event {
                    Event::StepFinish(step) => Some(step.usage.total()),
                    _ => None,
                });
            spent.tokens += steps.sum::<u64>();
            let children = self.children(project, run).await?;
            spent.descendants += children.len() as u32;
            rest.extend(children.into_iter().map(|child| child.id));
        }
        Ok(spent)
    }
}
