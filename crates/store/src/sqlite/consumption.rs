//! Counters of runs, tokens and cost: one row for a day, an agent, a person and a model.

use rusqlite::types::ToSql;
use rusqlite::{Connection, Row, params};
use toolgate_engine::consumption::{
    Consumed, Consumer, Consumption, ConsumptionBy, ConsumptionFilter, ConsumptionKey, Days,
};
use toolgate_engine::usage::Day;
use toolgate_kernel::id::{EntityId, ProjectId};

use super::column::{agent_name, bounded, change, first, rows};
use super::fault::Fault;
use super::retention;

/// Stands for no person.
const NOBODY: [u8; 16] = [0; 16];

const ADD: &str = "
    INSERT INTO consumption (project, day, agent, user, model, runs, requests, input_tokens, output_tokens, cached_tokens,
        cost_micros, unpriced)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)
    ON CONFLICT DO UPDATE SET
        runs = runs + excluded.runs, requests = requests + excluded.requests,
        input_tokens = input_tokens + excluded.input_tokens, output_tokens = output_tokens + excluded.output_tokens,
        cached_tokens = cached_tokens + excluded.cached_tokens, cost_micros = cost_micros + excluded.cost_micros,
        unpriced = unpriced + excluded.unpriced";

/// Adds to the counters of a day.
pub(crate) fn add(connection: &Connection, added: &Consumption, day: Day) -> Result<(), Fault> {
    let Consumed {
        runs,
        requests,
        input_tokens,
        output_tokens,
        cached_tokens,
        cost_micros,
        unpriced_requests,
    } = added.consumed;
    // A reply that was under way when its person was deleted.
    let user = retention::unless_deleted(connection, added.user)?;
    let row = params![
        added.project.to_bytes(),
        day.0,
        added.agent.as_str(),
        user_bytes(user),
        added.model,
        bounded(runs),
        bounded(requests),
        bounded(input_tokens),
        bounded(output_tokens),
        bounded(cached_tokens),
        bounded(cost_micros),
        bounded(unpriced_requests),
    ];
    change(connection, ADD, row).map(drop)
}

const REMOVE: &str = "
    DELETE FROM consumption WHERE (project, day, agent, user, model) IN (
        SELECT project, day, agent, user, model FROM consumption WHERE project = ?1 AND day < ?2 LIMIT ?3)";

/// Removes sums of the days before one.
pub(crate) fn remove(
    connection: &Connection,
    project: ProjectId,
    before: Day,
    limit: usize,
) -> Result<u64, Fault> {
    let values = params![project.to_bytes(), before.0, bounded(limit)];
    Ok(change(connection, REMOVE, values)? as u64)
}

const OF_ONE: &str = "
    SELECT day, agent, model, runs, requests, input_tokens, output_tokens, cached_tokens, cost_micros, unpriced
    FROM consumption INDEXED BY consumption_of_user WHERE project = ?1 AND user = ?2 LIMIT ?3";
const REMOVE_ONE: &str = "
    DELETE FROM consumption WHERE project = ?1 AND day = ?2 AND agent = ?3 AND user = ?4 AND model = ?5";

/// Adds sums of a person to those of nobody.
pub(crate) fn unlink(
    connection: &Connection,
    project: ProjectId,
    user: EntityId,
    limit: usize,
) -> Result<u64, Fault> {
    let values = params![project.to_bytes(), user.to_bytes(), bounded(limit)];
    let found = rows(connection, OF_ONE, values, |row| {
        let sums = Consumption {
            project,
            agent: agent_name(row, 1)?,
            user: None,
            model: row.get(2)?,
            consumed: sums(row, 3)?,
        };
        Ok((Day(row.get(0)?), sums))
    })?;
    for (day, sums) in &found {
        let key = params![
            project.to_bytes(),
            day.0,
            sums.agent.as_str(),
            user.to_bytes(),
            sums.model
        ];
        change(connection, REMOVE_ONE, key)?;
        add(connection, sums, *day)?;
    }
    Ok(found.len() as u64)
}

/// The sums, behind the columns of a key.
macro_rules! select {
    ($key:literal, $rest:literal) => {
        select!($key, "consumption", $rest)
    };
    ($key:literal, $from:literal, $rest:literal) => {
        concat!(
            "SELECT ",
            $key,
            "coalesce(sum(runs), 0), coalesce(sum(requests), 0), coalesce(sum(input_tokens), 0),
             coalesce(sum(output_tokens), 0), coalesce(sum(cached_tokens), 0), coalesce(sum(cost_micros), 0),
             coalesce(sum(unpriced), 0)
             FROM ",
            $from,
            " WHERE project = ?1 AND day BETWEEN ?2 AND ?3 ",
            $rest
        )
    };
}

const OF_PROJECT: &str = select!("", "");
// By its own choice SQLite would read the rows of all users of these days.
const OF_USER: &str = select!("", "consumption INDEXED BY consumption_of_user", "AND user = ?4");
const OF_AGENT: &str = select!("", "AND agent = ?4");

/// What a part of a project has consumed.
pub(crate) fn sum(
    connection: &Connection,
    project: ProjectId,
    consumer: &Consumer,
    days: Days,
) -> Result<Consumed, Fault> {
    let project = project.to_bytes();
    let (from, to) = (days.first.0, days.last.0);
    let read = |row: &Row<'_>| sums(row, 0);
    let sum = match consumer {
        Consumer::Project => first(connection, OF_PROJECT, params![project, from, to], read),
        Consumer::User(user) => first(
            connection,
            OF_USER,
            params![project, from, to, user.to_bytes()],
            read,
        ),
        Consumer::Agent(agent) => first(
            connection,
            OF_AGENT,
            params![project, from, to, agent.as_str()],
            read,
        ),
    };
    Ok(sum?.unwrap_or_default())
}

const BY_DAY: &str = select!("day, ", "AND day > ?4 GROUP BY day ORDER BY day LIMIT ?5");
const BY_AGENT: &str = select!("agent, ", "AND agent > ?4 GROUP BY agent ORDER BY agent LIMIT ?5");
const BY_USER: &str = select!(
    "user, ",
    "AND (?4 IS NULL OR user > ?4) GROUP BY user ORDER BY user LIMIT ?5"
);
const BY_MODEL: &str = select!("model, ", "AND model > ?4 GROUP BY model ORDER BY model LIMIT ?5");

/// What a project has consumed, in groups.
pub(crate) fn groups(
    connection: &Connection,
    project: ProjectId,
    filter: &ConsumptionFilter,
) -> Result<Vec<(ConsumptionKey, Consumed)>, Fault> {
    let (sql, start): (_, Box<dyn ToSql>) = match filter.by {
        ConsumptionBy::Day => (BY_DAY, Box::new(i64::MIN)),
        ConsumptionBy::Agent => (BY_AGENT, Box::new("")),
        ConsumptionBy::User => (BY_USER, Box::new(None::<[u8; 16]>)),
        ConsumptionBy::Model => (BY_MODEL, Box::new("")),
    };
    let after: Box<dyn ToSql> = match filter.after.clone() {
        None => start,
        Some(ConsumptionKey::Day(day)) => Box::new(day.0),
        Some(ConsumptionKey::Agent(agent)) => Box::new(agent.to_string()),
        Some(ConsumptionKey::User(user)) => Box::new(user_bytes(user)),
        Some(ConsumptionKey::Model(model)) => Box::new(model),
    };
    let params = params![
        project.to_bytes(),
        filter.days.first.0,
        filter.days.last.0,
        after,
        bounded(filter.limit)
    ];
    rows(connection, sql, params, |row| {
        Ok((key(row, filter.by)?, sums(row, 1)?))
    })
}

fn key(row: &Row<'_>, by: ConsumptionBy) -> Result<ConsumptionKey, Fault> {
    Ok(match by {
        ConsumptionBy::Day => ConsumptionKey::Day(Day(row.get(0)?)),
        ConsumptionBy::Agent => ConsumptionKey::Agent(agent_name(row, 0)?),
        ConsumptionBy::User => ConsumptionKey::User(user(row.get(0)?)),
        ConsumptionBy::Model => ConsumptionKey::Model(row.get(0)?),
    })
}

fn sums(row: &Row<'_>, from: usize) -> Result<Consumed, Fault> {
    let sum = |column| row.get::<_, i64>(from + column).map(|sum| sum.max(0) as u64);
    Ok(Consumed {
        runs: sum(0)?,
        requests: sum(1)?,
        input_tokens: sum(2)?,
        output_tokens: sum(3)?,
        cached_tokens: sum(4)?,
        cost_micros: sum(5)?,
        unpriced_requests: sum(6)?,
    })
}

/// The person as it is stored; zeros for nobody.
fn user_bytes(user: Option<EntityId>) -> [u8; 16] {
    user.map_or(NOBODY, EntityId::to_bytes)
}

fn user(bytes: [u8; 16]) -> Option<EntityId> {
    (bytes != NOBODY).then(|| EntityId::from_bytes(bytes))
}
