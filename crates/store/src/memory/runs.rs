//! The rows of runs.

use std::collections::BTreeMap;

use async_trait::async_trait;
use toolgate_engine::store::{AskingFilter, RunFilter, RunRecord, RunTree, Runs, StoreError};
use toolgate_engine::usage::{Day, UsageRecord};
use toolgate_kernel::id::{NodeId, ProjectId, RunId, SpaceId};
use toolgate_kernel::name::AgentName;
use toolgate_kernel::time::Time;

use super::MemoryStore;

#[async_trait]
impl Runs for MemoryStore {
    async fn run(&self, run: RunId) -> Result<Option<RunRecord>, StoreError> {
        Ok(self.state().runs.get(&run).cloned())
    }
    async fn runs(&self, project: ProjectId, filter: RunFilter) -> Result<Vec<RunRecord>, StoreError> {
        let state = self.state();
        let fits = |run: &&RunRecord| {
            run.project == project
                && filter.space.is_none_or(|space| run.space == space)
                && filter.status.is_none_or(|status| run.status == status)
                && filter
                    .parent
                    .is_none_or(|parent| run.parent.is_some_and(|call| call.run == parent))
                && filter.before.is_none_or(|before| run.id < before)
        };
        let runs = state.runs.values().rev();
        Ok(runs.filter(fits).take(filter.limit).cloned().collect())
    }
    async fn asking(&self, project: ProjectId, filter: AskingFilter) -> Result<Vec<RunRecord>, StoreError> {
        let state = self.state();
        let has = |space: SpaceId, member| {
            let space = state.spaces.get(&space);
            space.is_some_and(|space| space.members.contains(&member))
        };
        // What a child run asks is asked in the space of the run at the top.
        let home = |run: &RunRecord| state.runs.get(&run.root).map_or(run.space, |root| root.space);
        let fits = |run: &&RunRecord| {
            run.project == project
                && state.asking.contains(&run.id)
                && filter.space.is_none_or(|space| home(run) == space)
                && filter.agent.as_ref().is_none_or(|agent| run.agent == *agent)
                && filter.member.is_none_or(|member| has(home(run), member))
                && filter.before.is_none_or(|before| run.id < before)
        };
        let runs = state.runs.values().rev();
        Ok(runs.filter(fits).take(filter.limit).cloned().collect())
    }
    async fn open_run(&self, space: SpaceId, agent: &AgentName) -> Result<Option<RunRecord>, StoreError> {
        Ok(self.state().open_run(space, agent).cloned())
    }
    async fn run_tree(&self, root: RunId) -> Result<RunTree, StoreError> {
        Ok(self.state().run_tree(root))
    }
    async fn claimable(&self, now: Time, limit: usize) -> Result<Vec<RunId>, StoreError> {
        Ok(self.state().claimable(now, limit))
    }
    async fn claim(&self, run: RunId, node: NodeId, now: Time) -> Result<Option<RunRecord>, StoreError> {
        Ok(self.state().claim(run, node, now))
    }
    async fn release(&self, run: RunId, epoch: u64, wakes: i32) -> Result<(), StoreError> {
        self.state().release(run, epoch, wakes);
        Ok(())
    }
    async fn heartbeat(&self, node: NodeId, until: Time) -> Result<(), StoreError> {
        self.state().nodes.insert(node, until);
        Ok(())
    }
    async fn next_wake(&self) -> Result<Option<Time>, StoreError> {
        let state = self.state();
        let open = state.runs.values().filter(|row| !row.status.is_final());
        Ok(open.filter_map(|row| row.wake_at).min())
    }

    async fn usage(
        &self,
        project: ProjectId,
        tool: &str,
        since: Day,
    ) -> Result<Vec<UsageRecord>, StoreError> {
        let state = self.state();
        let mut sum: BTreeMap<_, u64> = BTreeMap::new();
        let of_tool = (project, tool.into(), since)..=(project, tool.into(), Day(i64::MAX));
        for ((code, latency), calls) in state.usage.range(of_tool).flat_map(|(_, of_day)| of_day) {
            *sum.entry((*code, *latency)).or_default() += calls;
        }
        let record = |((code, latency), calls)| UsageRecord { code, latency, calls };
        Ok(sum.into_iter().map(record).collect())
    }
}
