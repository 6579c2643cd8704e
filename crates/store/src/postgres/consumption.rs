//! Counters of runs, tokens and cost: one row for a day, an agent, a person, a model and a shard.

use std::collections::BTreeMap;

use tokio_postgres::Row;
use toolgate_engine::consumption::{
    Consumed, Consumer, ConsumptionBy, ConsumptionFilter, ConsumptionKey, Days,
};
use toolgate_engine::usage::Day;
use toolgate_kernel::id::{EntityId, ProjectId};
use toolgate_kernel::name::AgentName;
use uuid::Uuid;

use super::batch::Trip;
use super::column::{Id, Param, agent_name, bounded, change, first, get, id, number, rows, string, text};
use super::fault::Fault;
use super::session::Db;

/// What the sums of a row are of, without its shard.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ConsumptionRow {
    pub(crate) project: ProjectId,
    pub(crate) day: Day,
    pub(crate) agent: AgentName,
    pub(crate) user: Option<EntityId>,
    pub(crate) model: String,
}

const ADD: &str = "
    INSERT INTO consumption (project, day, agent, \"user\", model, shard, runs, requests, input_tokens, output_tokens,
        cached_tokens, cost_micros, unpriced)
    SELECT project, day, agent, \"user\", model, $13, runs, requests, input_tokens, output_tokens, cached_tokens,
        cost_micros, unpriced
    FROM unnest($1::uuid[], $2::bigint[], $3::text[], $4::uuid[], $5::text[], $6::bigint[], $7::bigint[], $8::bigint[],
        $9::bigint[], $10::bigint[], $11::bigint[], $12::bigint[])
        AS more (project, day, agent, \"user\", model, runs, requests, input_tokens, output_tokens, cached_tokens,
            cost_micros, unpriced)
    ON CONFLICT (project, day, agent, \"user\", model, shard) DO UPDATE SET
        runs = consumption.runs + excluded.runs, requests = consumption.requests + excluded.requests,
        input_tokens = consumption.input_tokens + excluded.input_tokens,
        output_tokens = consumption.output_tokens + excluded.output_tokens,
        cached_tokens = consumption.cached_tokens + excluded.cached_tokens,
        cost_micros = consumption.cost_micros + excluded.cost_micros,
        unpriced = consumption.unpriced + excluded.unpriced";

const REMOVE: &str = "
    DELETE FROM consumption WHERE ctid IN (
        SELECT ctid FROM consumption WHERE project = $1 AND day < $2
        ORDER BY day, agent, \"user\", model, shard LIMIT $3 FOR UPDATE)";

/// Removes sums of the days before one.
pub(super) async fn remove(db: &Db<'_>, project: ProjectId, before: Day, limit: usize) -> Result<u64, Fault> {
    change(db, REMOVE, &[&project.uuid(), &before.0, &bounded(limit)]).await
}

const UNLINK: &str = "
    WITH gone AS (
        DELETE FROM consumption WHERE ctid IN (
            SELECT ctid FROM consumption WHERE project = $1 AND \"user\" = $2
            ORDER BY day, agent, model, shard LIMIT $3 FOR UPDATE)
        RETURNING *)
    INSERT INTO consumption (project, day, agent, \"user\", model, shard, runs, requests, input_tokens, output_tokens,
        cached_tokens, cost_micros, unpriced)
    SELECT project, day, agent, $4, model, shard, runs, requests, input_tokens, output_tokens, cached_tokens, cost_micros,
        unpriced
    FROM gone ORDER BY day, agent, model, shard
    ON CONFLICT (project, day, agent, \"user\", model, shard) DO UPDATE SET
        runs = consumption.runs + excluded.runs, requests = consumption.requests + excluded.requests,
        input_tokens = consumption.input_tokens + excluded.input_tokens,
        output_tokens = consumption.output_tokens + excluded.output_tokens,
        cached_tokens = consumption.cached_tokens + excluded.cached_tokens,
        cost_micros = consumption.cost_micros + excluded.cost_micros,
        unpriced = consumption.unpriced + excluded.unpriced";

/// Adds sums of a person to those of nobody.
pub(super) async fn unlink(
    db: &Db<'_>,
    project: ProjectId,
    user: EntityId,
    limit: usize,
) -> Result<u64, Fault> {
    let values: [Param<'_>; 4] = [&project.uuid(), &user.uuid(), &bounded(limit), &Uuid::nil()];
    change(db, UNLINK, &values).await
}

/// What to add, as parameters. In the order of their keys, so that two writers do not wait for each other.
pub(super) struct Columns {
    projects: Vec<Uuid>,
    days: Vec<i64>,
    agents: Vec<String>,
    users: Vec<Uuid>,
    models: Vec<String>,
    /// Runs, requests, tokens read, written and cached, cost, unpriced requests.
    sums: [Vec<i64>; 7],
    shard: i64,
}

impl Columns {
    pub(super) fn of(added: &BTreeMap<ConsumptionRow, Consumed>, shard: i64) -> Self {
        let sums = |of: fn(&Consumed) -> u64| added.values().map(|sums| bounded(of(sums))).collect();
        Self {
            projects: added.keys().map(|row| row.project.uuid()).collect(),
            days: added.keys().map(|row| row.day.0).collect(),
            agents: added.keys().map(|row| row.agent.to_string()).collect(),
            users: added.keys().map(|row| user_id(row.user)).collect(),
            models: added.keys().map(|row| text(&row.model).into_owned()).collect(),
            sums: [
                sums(|sums| sums.runs),
                sums(|sums| sums.requests),
                sums(|sums| sums.input_tokens),
                sums(|sums| sums.output_tokens),
                sums(|sums| sums.cached_tokens),
                sums(|sums| sums.cost_micros),
                sums(|sums| sums.unpriced_requests),
            ],
            shard,
        }
    }

    pub(super) async fn add_to<'t>(&'t self, trip: &mut Trip<'t>) -> Result<(), Fault> {
        let [runs, requests, input, output, cached, cost, unpriced] = &self.sums;
        let params = vec![
            &self.projects as _,
            &self.days as _,
            &self.agents as _,
            &self.users as _,
            &self.models as _,
            runs as _,
            requests as _,
            input as _,
            output as _,
            cached as _,
            cost as _,
            unpriced as _,
            &self.shard as _,
        ];
        trip.add_if(!self.projects.is_empty(), ADD, params)
            .await
            .map(drop)
    }
}

/// The sums, behind the columns of a key.
macro_rules! select {
    ($key:literal, $rest:literal) => {
        concat!(
            "SELECT ",
            $key,
            "coalesce(sum(runs), 0)::bigint, coalesce(sum(requests), 0)::bigint,
             coalesce(sum(input_tokens), 0)::bigint, coalesce(sum(output_tokens), 0)::bigint,
             coalesce(sum(cached_tokens), 0)::bigint, coalesce(sum(cost_micros), 0)::bigint,
             coalesce(sum(unpriced), 0)::bigint
             FROM consumption WHERE project = $1 AND day BETWEEN $2 AND $3 ",
            $rest
        )
    };
}

const OF_PROJECT: &str = select!("", "");
pub(super) const OF_USER: &str = select!("", "AND \"user\" = $4");
const OF_AGENT: &str = select!("", "AND agent = $4");

/// What a part of a project has consumed.
pub(super) async fn sum(
    db: &Db<'_>,
    project: ProjectId,
    consumer: &Consumer,
    days: Days,
) -> Result<Consumed, Fault> {
    let project = project.uuid();
    let (from, to) = (days.first.0, days.last.0);
    let read = |row: &Row| sums(row, 0);
    let sum = match consumer {
        Consumer::Project => first(db, OF_PROJECT, &[&project, &from, &to], read).await,
        Consumer::User(user) => first(db, OF_USER, &[&project, &from, &to, &user.uuid()], read).await,
        Consumer::Agent(agent) => first(db, OF_AGENT, &[&project, &from, &to, &agent.as_str()], read).await,
    };
    Ok(sum?.unwrap_or_default())
}

const BY_DAY: &str = select!(
    "day, ",
    "AND ($4::bigint IS NULL OR day > $4) GROUP BY day ORDER BY day LIMIT $5"
);
const BY_AGENT: &str = select!(
    "agent, ",
    "AND ($4::text IS NULL OR agent > $4) GROUP BY agent ORDER BY agent LIMIT $5"
);
const BY_USER: &str = select!(
    "\"user\", ",
    "AND ($4::uuid IS NULL OR \"user\" > $4) GROUP BY \"user\" ORDER BY \"user\" LIMIT $5"
);
const BY_MODEL: &str = select!(
    "model, ",
    "AND ($4::text IS NULL OR model > $4) GROUP BY model ORDER BY model LIMIT $5"
);

/// What a project has consumed, in groups.
pub(super) async fn groups(
    db: &Db<'_>,
    project: ProjectId,
    filter: &ConsumptionFilter,
) -> Result<Vec<(ConsumptionKey, Consumed)>, Fault> {
    let project = project.uuid();
    let (from, to, limit) = (filter.days.first.0, filter.days.last.0, bounded(filter.limit));
    match filter.by {
        ConsumptionBy::Day => {
            let after = match &filter.after {
                Some(ConsumptionKey::Day(day)) => Some(day.0),
                _ => None,
            };
            let read = |row: &Row| Ok((ConsumptionKey::Day(Day(get(row, 0)?)), sums(row, 1)?));
            rows(db, BY_DAY, &[&project, &from, &to, &after, &limit], read).await
        }
        ConsumptionBy::Agent => {
            let after = match &filter.after {
                Some(ConsumptionKey::Agent(agent)) => Some(agent.as_str()),
                _ => None,
            };
            let read = |row: &Row| Ok((ConsumptionKey::Agent(agent_name(row, 0)?), sums(row, 1)?));
            rows(db, BY_AGENT, &[&project, &from, &to, &after, &limit], read).await
        }
        ConsumptionBy::User => {
            let after = match &filter.after {
                Some(ConsumptionKey::User(user)) => Some(user_id(*user)),
                _ => None,
            };
            let read = |row: &Row| Ok((ConsumptionKey::User(user(row, 0)?), sums(row, 1)?));
            rows(db, BY_USER, &[&project, &from, &to, &after, &limit], read).await
        }
        ConsumptionBy::Model => {
            let after = match &filter.after {
                Some(ConsumptionKey::Model(model)) => Some(text(model).into_owned()),
                _ => None,
            };
            let read = |row: &Row| Ok((ConsumptionKey::Model(string(row, 0)?), sums(row, 1)?));
            rows(db, BY_MODEL, &[&project, &from, &to, &after, &limit], read).await
        }
    }
}

fn sums(row: &Row, from: usize) -> Result<Consumed, Fault> {
    Ok(Consumed {
        runs: number(row, from)?,
        requests: number(row, from + 1)?,
        input_tokens: number(row, from + 2)?,
        output_tokens: number(row, from + 3)?,
        cached_tokens: number(row, from + 4)?,
        cost_micros: number(row, from + 5)?,
        unpriced_requests: number(row, from + 6)?,
    })
}

/// The person as it is stored; the nil uuid for nobody.
fn user_id(user: Option<EntityId>) -> Uuid {
    user.map_or(Uuid::nil(), Id::uuid)
}

fn user(row: &Row, column: usize) -> Result<Option<EntityId>, Fault> {
    let stored: EntityId = id(row, column)?;
    Ok(Some(stored).filter(|stored| stored.uuid() != Uuid::nil()))
}
