//! Counters of runs, tokens and cost.

use std::collections::BTreeMap;

use toolgate_engine::consumption::{
    Consumed, Consumer, Consumption, ConsumptionBy, ConsumptionFilter, ConsumptionKey, Days,
};
use toolgate_engine::usage::Day;
use toolgate_kernel::id::{EntityId, ProjectId};
use toolgate_kernel::name::AgentName;

/// What the sums of a row are of.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Row {
    project: ProjectId,
    day: Day,
    agent: AgentName,
    user: Option<EntityId>,
    model: String,
}

/// Every row.
#[derive(Default)]
pub(super) struct ConsumptionTable(BTreeMap<Row, Consumed>);

impl ConsumptionTable {
    pub(super) fn add(&mut self, added: Consumption, day: Day) {
        let Consumption {
            project,
            agent,
            user,
            model,
            consumed,
        } = added;
        let row = Row {
            project,
            day,
            agent,
            user,
            model,
        };
        let sums = self.0.entry(row).or_default();
        *sums = *sums + consumed;
    }

    pub(super) fn remove(&mut self, project: ProjectId, before: Day, limit: usize) -> u64 {
        let is_old = |row: &Row| row.project == project && row.day < before;
        self.0.extract_if(.., |row, _| is_old(row)).take(limit).count() as u64
    }

    /// Adds sums of a person to those of nobody.
    pub(super) fn unlink(&mut self, project: ProjectId, user: EntityId, limit: usize) -> u64 {
        let is_theirs = |row: &Row| row.project == project && row.user == Some(user);
        let gone = self.0.extract_if(.., |row, _| is_theirs(row));
        let gone: Vec<_> = gone.take(limit).collect();
        let count = gone.len() as u64;
        for (row, consumed) in gone {
            let sums = self.0.entry(Row { user: None, ..row }).or_default();
            *sums = *sums + consumed;
        }
        count
    }

    pub(super) fn sum(&self, project: ProjectId, consumer: &Consumer, days: Days) -> Consumed {
        let is_of = |row: &Row| match consumer {
            Consumer::Project => true,
            Consumer::User(user) => row.user == Some(*user),
            Consumer::Agent(agent) => row.agent == *agent,
        };
        let rows = self.of(project, days).filter(|(row, _)| is_of(row));
        rows.map(|(_, consumed)| consumed).sum()
    }

    pub(super) fn groups(
        &self,
        project: ProjectId,
        filter: &ConsumptionFilter,
    ) -> Vec<(ConsumptionKey, Consumed)> {
        let mut groups: BTreeMap<ConsumptionKey, Consumed> = BTreeMap::new();
        for (row, consumed) in self.of(project, filter.days) {
            let key = match filter.by {
                ConsumptionBy::Day => ConsumptionKey::Day(row.day),
                ConsumptionBy::Agent => ConsumptionKey::Agent(row.agent.clone()),
                ConsumptionBy::User => ConsumptionKey::User(row.user),
                ConsumptionBy::Model => ConsumptionKey::Model(row.model.clone()),
            };
            let sums = groups.entry(key).or_default();
            *sums = *sums + consumed;
        }
        let behind = |key: &ConsumptionKey| filter.after.as_ref().is_none_or(|after| key > after);
        let groups = groups.into_iter().filter(|(key, _)| behind(key));
        groups.take(filter.limit).collect()
    }

    pub(super) fn remove_project(&mut self, project: ProjectId) {
        self.0.retain(|row, _| row.project != project);
    }

    fn of(&self, project: ProjectId, days: Days) -> impl Iterator<Item = (&Row, Consumed)> {
        let on_days = move |row: &Row| row.project == project && (days.first..=days.last).contains(&row.day);
        let rows = self.0.iter().filter(move |(row, _)| on_days(row));
        rows.map(|(row, consumed)| (row, *consumed))
    }
}
