//! The rows of runs.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use async_trait::async_trait;
use toolgate_engine::activity::{Activity, Hour, HourRecord};
use toolgate_engine::consumption::{Consumed, Consumer, ConsumptionFilter, ConsumptionKey, Days};
use toolgate_engine::store::{
    AskingFilter, RECENT_COUNT_MAX, RecentFilter, RunFilter, RunPage, RunRecord, RunTree, Runs, StoreError,
};
use toolgate_engine::usage::{Day, UsageRecord};
use toolgate_kernel::id::{NodeId, ProjectId, RunId, SpaceId};
use toolgate_kernel::name::AgentName;
use toolgate_kernel::time::Time;

use super::MemoryStore;
use crate::walk::{Walk, time_of};

#[async_trait]
impl Runs for MemoryStore {
    async fn run(&self, run: RunId) -> Result<Option<RunRecord>, StoreError> {
        Ok(self.state().runs.get(&run).cloned())
    }
    async fn runs(&self, project: ProjectId, filter: RunFilter) -> Result<RunPage, StoreError> {
        let state = self.state();
        let fits = |run: &&RunRecord| {
            run.project == project
                && filter.space.is_none_or(|space| run.space == space)
                && (filter.statuses.is_empty() || filter.statuses.contains(&run.status))
                && filter
                    .parent
                    .is_none_or(|parent| run.parent.is_some_and(|call| call.run == parent))
                && filter
                    .root
                    .is_none_or(|root| run.root == root && run.parent.is_some())
                && (!filter.top || run.parent.is_none())
                && filter.agent.as_ref().is_none_or(|agent| run.agent == *agent)
                && filter.user.is_none_or(|user| run.user == Some(user))
                && filter
                    .tool
                    .as_ref()
                    .is_none_or(|tool| run.tool.as_ref() == Some(tool))
                && filter.text.as_ref().is_none_or(|text| has_text(run, text))
                && filter.since.is_none_or(|since| run.created >= since)
                && filter.until.is_none_or(|until| run.created < until)
        };
        let place = |id: RunId| match Walk::of(&filter) {
            Walk::Time => {
                let created = state.runs.get(&id).map(|run| run.created);
                (created.unwrap_or_else(|| time_of(id)), id)
            }
            _ => (Time(0), id),
        };
        let before = filter.before.map(place);
        let mut runs: Vec<&RunRecord> = state.runs.values().filter(fits).collect();
        runs.sort_by_key(|run| Reverse(place(run.id)));
        let runs = runs
            .into_iter()
            .filter(|run| before.is_none_or(|before| place(run.id) < before));
        Ok(page(runs.take(filter.limit), filter.limit))
    }
    async fn asking(&self, project: ProjectId, filter: AskingFilter) -> Result<RunPage, StoreError> {
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
        Ok(page(runs.filter(fits).take(filter.limit), filter.limit))
    }
    async fn recent_runs(
        &self,
        project: ProjectId,
        filter: RecentFilter,
    ) -> Result<(Vec<RunRecord>, u64), StoreError> {
        let state = self.state();
        let has = |space: SpaceId, member| {
            let space = state.spaces.get(&space);
            space.is_some_and(|space| space.members.contains(&member))
        };
        let fits = |run: &&RunRecord| {
            run.project == project
                && run.parent.is_none()
                && run.tool.is_none()
                && filter.agent.as_ref().is_none_or(|agent| run.agent == *agent)
                && filter.space.is_none_or(|space| run.space == space)
                && filter.member.is_none_or(|member| has(run.space, member))
                && (filter.statuses.is_empty() || filter.statuses.contains(&run.status))
                && filter.since.is_none_or(|since| run.updated >= since)
        };
        let mut runs: Vec<&RunRecord> = state.runs.values().filter(fits).collect();
        let total = (runs.len() as u64).min(RECENT_COUNT_MAX);
        runs.sort_by_key(|run| Reverse((run.updated, run.id)));
        let page = runs
            .into_iter()
            .filter(|run| filter.before.is_none_or(|before| (run.updated, run.id) < before))
            .take(filter.limit);
        Ok((page.cloned().collect(), total))
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
    async fn live_nodes(&self, now: Time) -> Result<u64, StoreError> {
        let state = self.state();
        let living = state.nodes.values().filter(|until| **until >= now);
        Ok(living.count() as u64)
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

    async fn activity(&self, project: ProjectId, since: Time) -> Result<Activity, StoreError> {
        let state = self.state();
        let (mut open, mut hours) = (BTreeMap::<_, u64>::new(), BTreeMap::<_, (u64, u64)>::new());
        for run in state.runs.values().filter(|run| run.project == project) {
            if !run.status.is_final() {
                *open.entry(run.status).or_default() += 1;
            }
            if run.created >= since {
                let (runs, tokens) = hours.entry((Hour::of(run.created), run.status)).or_default();
                *runs += 1;
                *tokens += run.tokens;
            }
        }
        let mut calls: BTreeMap<_, u64> = BTreeMap::new();
        for ((of, _, day), uses) in &state.usage {
            for (key, count) in uses.iter().filter(|_| *of == project && *day >= Day::of(since)) {
                *calls.entry(*key).or_default() += count;
            }
        }
        let hour = |((hour, status), (runs, tokens))| HourRecord {
            hour,
            status,
            runs,
            tokens,
        };
        let call = |((code, latency), calls)| UsageRecord { code, latency, calls };
        Ok(Activity {
            open: open.into_iter().collect(),
            hours: hours.into_iter().map(hour).collect(),
            calls: calls.into_iter().map(call).collect(),
        })
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
    async fn consumed(
        &self,
        project: ProjectId,
        consumer: Consumer,
        days: Days,
    ) -> Result<Consumed, StoreError> {
        Ok(self.state().consumption.sum(project, &consumer, days))
    }
    async fn consumption(
        &self,
        project: ProjectId,
        filter: ConsumptionFilter,
    ) -> Result<Vec<(ConsumptionKey, Consumed)>, StoreError> {
        Ok(self.state().consumption.groups(project, &filter))
    }
}

/// Every row is looked at, so a page is short only if it is the last.
fn page<'a>(runs: impl Iterator<Item = &'a RunRecord>, limit: usize) -> RunPage {
    let runs: Vec<RunRecord> = runs.cloned().collect();
    let next = runs.last().filter(|_| runs.len() == limit).map(|run| run.id);
    RunPage { runs, next }
}

/// Whether the title of a run has this text, whatever the case of ASCII letters.
fn has_text(run: &RunRecord, text: &str) -> bool {
    let title = run.title.as_deref().unwrap_or_default().to_ascii_lowercase();
    title.contains(&text.to_ascii_lowercase())
}
