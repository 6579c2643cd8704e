//! Lists of runs.

use std::cmp::Reverse;

use rusqlite::{Connection, ToSql, params};
use toolgate_engine::store::{AskingFilter, RECENT_COUNT_MAX, RecentFilter, RunFilter, RunPage, RunRecord};
use toolgate_kernel::event::Status;
use toolgate_kernel::id::{EntityId, ProjectId, RunId, SpaceId};
use toolgate_kernel::name::{AgentName, ToolName};

use super::column::{bounded, rows};
use super::fault::Fault;
use super::runs::{COLUMNS, columns, record};
use crate::walk::{Walk, are_failures, sides, time_of};

/// Newest first.
pub(super) fn list(
    connection: &Connection,
    project: ProjectId,
    filter: &RunFilter,
) -> Result<RunPage, Fault> {
    let values = ListValues::of(project, filter);
    let statement = statement(filter, &values);
    page(
        connection,
        &statement.sql,
        &statement.values,
        filter.limit,
        filter.looked_at_max.0,
    )
}

/// Looks at rows, each with whether it fits behind its columns, until the page is full or `looked_at_max` were looked at.
fn page(
    connection: &Connection,
    sql: &str,
    values: &[&dyn ToSql],
    limit: usize,
    looked_at_max: usize,
) -> Result<RunPage, Fault> {
    let mut page = RunPage::default();
    let mut statement = connection.prepare_cached(sql)?;
    let mut found = statement.query(values)?;
    let mut looked_at = 0;
    while page.runs.len() < limit
        && let Some(row) = found.next()?
    {
        looked_at += 1;
        if row.get(21)? {
            page.runs.push(record(row)?);
        }
        if page.runs.len() == limit || looked_at == looked_at_max {
            page.next = Some(RunId::from_bytes(row.get(0)?));
            break;
        }
    }
    Ok(page)
}

/// A statement that looks at runs along an index.
pub(crate) struct Statement<'a> {
    pub(crate) sql: String,
    pub(crate) values: Vec<&'a dyn ToSql>,
}

/// What a list filters by, as parameters.
pub(crate) struct ListValues<'a> {
    project: [u8; 16],
    space: Option<[u8; 16]>,
    parent: Option<[u8; 16]>,
    root: Option<[u8; 16]>,
    before: Option<[u8; 16]>,
    /// When the run `before` was created, if it has no row any more.
    before_time: Option<i64>,
    failure: Option<&'static str>,
    statuses: Option<String>,
    agent: Option<&'a str>,
    user: Option<[u8; 16]>,
    tool: Option<&'a str>,
    words: Option<String>,
    since: Option<i64>,
    until: Option<i64>,
}

impl<'a> ListValues<'a> {
    pub(crate) fn of(project: ProjectId, filter: &'a RunFilter) -> Self {
        let is_failure = Walk::of(filter) == Walk::Failure;
        Self {
            project: project.to_bytes(),
            space: filter.space.map(SpaceId::to_bytes),
            parent: filter.parent.map(RunId::to_bytes),
            root: filter.root.map(RunId::to_bytes),
            before: filter.before.map(RunId::to_bytes),
            before_time: filter.before.map(|before| time_of(before).0),
            failure: is_failure.then(|| filter.statuses[0].as_str()),
            statuses: (!is_failure && !filter.statuses.is_empty()).then(|| words_of(&filter.statuses)),
            agent: filter.agent.as_ref().map(AgentName::as_str),
            user: filter.user.map(EntityId::to_bytes),
            tool: filter.tool.as_ref().map(ToolName::as_str),
            words: filter.text.as_deref().map(pattern),
            since: filter.since.map(|at| at.0),
            until: filter.until.map(|at| at.0),
        }
    }
}

/// Statuses as one text, with a comma on both sides of each.
fn words_of(statuses: &[Status]) -> String {
    let words: Vec<&str> = statuses.iter().map(|status| status.as_str()).collect();
    format!(",{},", words.join(","))
}

/// One statement per combination of conditions. Those of the walk choose the rows to look at, along the index that is named; the
/// others are about what is found there.
pub(crate) fn statement<'a>(filter: &RunFilter, of: &'a ListValues<'_>) -> Statement<'a> {
    let walk = Walk::of(filter);
    let mut list = Conditions::of(&of.project);
    list.add(
        matches!(walk, Walk::Space | Walk::OpenOfSpace),
        "space = ?",
        &of.space,
    );
    list.add(walk == Walk::Children, "parent_run = ?", &of.parent);
    list.add(
        walk == Walk::Tree,
        "parent_run IS NOT NULL AND root = ?",
        &of.root,
    );
    list.add(walk == Walk::User, "user = ?", &of.user);
    list.add(walk == Walk::Tool, "tool = ?", &of.tool);
    list.add(walk == Walk::Agent, "agent = ?", &of.agent);
    list.add(walk == Walk::Time, "created >= ?", &of.since);
    list.add(walk == Walk::Time, "created < ?", &of.until);
    list.add(false, "title LIKE ? ESCAPE '\\'", &of.words);
    list.add(
        true,
        "(status = 'failed' OR status = 'cancelled') AND status = ?",
        &of.failure,
    );
    list.add(false, "instr(?, ',' || status || ',') > 0", &of.statuses);
    if matches!(walk, Walk::Open | Walk::OpenOfSpace) {
        list.walked.push_str(" AND open = 1");
    }
    if filter.top {
        list.left.push("parent_run IS NULL".into());
    }
    if walk == Walk::Time {
        list.add(
            true,
            "(created, id) < (coalesce((SELECT created FROM runs WHERE id = ?), ",
            &of.before,
        );
        list.add_last("?), ", &of.before_time);
        list.add_last("?)", &of.before);
    } else {
        list.add(true, "id < ?", &of.before);
    }
    list.statement(walk)
}

/// Conditions with their values.
struct Conditions<'a> {
    /// Of the rows to look at.
    walked: String,
    /// Of those that fit.
    left: Vec<String>,
    values: Vec<&'a dyn ToSql>,
}

impl<'a> Conditions<'a> {
    fn of(project: &'a [u8; 16]) -> Self {
        Self {
            walked: "project = ?1".into(),
            left: Vec::new(),
            values: vec![project],
        }
    }

    /// Adds a condition on a value, if there is one.
    fn add<T: ToSql>(&mut self, is_walked: bool, condition: &str, value: &'a Option<T>) {
        let Some(value) = value else { return };
        let condition = condition.replace('?', &self.number(value));
        match is_walked {
            true => self.walked.push_str(&format!(" AND {condition}")),
            false => self.left.push(condition),
        }
    }

    /// Adds to the last condition of the walk.
    fn add_last<T: ToSql>(&mut self, more: &str, value: &'a Option<T>) {
        let Some(value) = value else { return };
        let more = more.replace('?', &self.number(value));
        self.walked.push_str(&more);
    }

    /// The parameter of a value.
    fn number(&mut self, value: &'a dyn ToSql) -> String {
        self.values.push(value);
        format!("?{}", self.values.len())
    }

    fn statement(self, walk: Walk) -> Statement<'a> {
        let fits = match self.left.is_empty() {
            true => "1".to_owned(),
            false => format!("({}) IS TRUE", self.left.join(" AND ")),
        };
        let index = index_of(walk);
        let order = match walk {
            Walk::Time => "created DESC, id DESC",
            _ => "id DESC",
        };
        let walked = &self.walked;
        let sql =
            format!("SELECT {COLUMNS}, {fits} FROM runs INDEXED BY {index} WHERE {walked} ORDER BY {order}");
        Statement {
            sql,
            values: self.values,
        }
    }
}

/// The index that has what a list walks over, in its order.
fn index_of(walk: Walk) -> &'static str {
    match walk {
        Walk::Tree => "runs_of_root",
        Walk::Children => "runs_of_parent",
        Walk::OpenOfSpace => "runs_open",
        Walk::Space => "runs_of_space",
        Walk::User => "runs_of_user",
        Walk::Time => "runs_by_time",
        Walk::Tool => "runs_of_tool",
        Walk::Failure => "runs_failed",
        Walk::Open => "runs_open_of_project",
        Walk::Agent => "runs_of_agent",
        Walk::Project => "runs_of_project",
    }
}

/// What `LIKE` finds a text by, wherever it stands.
fn pattern(text: &str) -> String {
    let mut pattern = String::from("%");
    for c in text.chars() {
        if matches!(c, '%' | '_' | '\\') {
            pattern.push('\\');
        }
        pattern.push(c);
    }
    pattern.push('%');
    pattern
}

// Walks what waits in the project, and no more. What a child run asks is asked in the space of the run at the top.
pub(crate) const ASKING: &str = concat!(
    "SELECT ",
    columns!(),
    ", ((?4 IS NULL OR agent = ?4)
       AND (?3 IS NULL OR ?3 = (SELECT top.space FROM runs AS top WHERE top.id = runs.root))
       AND (?5 IS NULL OR EXISTS (SELECT 1 FROM members WHERE entity = ?5
            AND members.space = (SELECT top.space FROM runs AS top WHERE top.id = runs.root)))) IS TRUE
     FROM runs WHERE project = ?1 AND asks = 1 AND id < ?2 ORDER BY id DESC"
);

pub(super) fn asking(
    connection: &Connection,
    project: ProjectId,
    filter: &AskingFilter,
) -> Result<RunPage, Fault> {
    let values = params![
        project.to_bytes(),
        // The largest id is nobody's.
        filter.before.map_or([u8::MAX; 16], RunId::to_bytes),
        filter.space.map(SpaceId::to_bytes),
        filter.agent.as_ref().map(|agent| agent.as_str()),
        filter.member.map(EntityId::to_bytes),
    ];
    page(connection, ASKING, values, filter.limit, filter.looked_at_max.0)
}

/// Those that changed last first, and how many there are.
pub(super) fn recent(
    connection: &Connection,
    project: ProjectId,
    filter: &RecentFilter,
) -> Result<(Vec<RunRecord>, u64), Fault> {
    // One snapshot: a run that ends meanwhile is on one side.
    let snapshot = connection.unchecked_transaction()?;
    let values = RecentValues::of(project, filter);
    let (mut found, mut total) = (Vec::new(), 0);
    for is_open in sides(&filter.statuses) {
        let page = recent_page(filter, is_open, &values);
        found.extend(rows(&snapshot, &page.sql, &page.values[..], record)?);
        let count = recent_count(filter, is_open, &values);
        let mut counted = snapshot.prepare_cached(&count.sql)?;
        total += counted.query_row(&count.values[..], |row| row.get::<_, i64>(0))? as u64;
    }
    found.sort_by_key(|run| Reverse((run.updated, run.id)));
    found.truncate(filter.limit);
    Ok((found, total.min(RECENT_COUNT_MAX)))
}

/// What is listed in the order of changes, as parameters.
pub(crate) struct RecentValues<'a> {
    project: [u8; 16],
    agent: Option<&'a str>,
    space: Option<[u8; 16]>,
    member: Option<[u8; 16]>,
    statuses: Option<String>,
    since: Option<i64>,
    before_time: Option<i64>,
    before: Option<[u8; 16]>,
    limit: i64,
    count_max: i64,
}

impl<'a> RecentValues<'a> {
    pub(crate) fn of(project: ProjectId, filter: &'a RecentFilter) -> Self {
        Self {
            project: project.to_bytes(),
            agent: filter.agent.as_ref().map(AgentName::as_str),
            space: filter.space.map(SpaceId::to_bytes),
            member: filter.member.map(EntityId::to_bytes),
            statuses: (!filter.statuses.is_empty()).then(|| words_of(&filter.statuses)),
            since: filter.since.map(|since| since.0),
            before_time: filter.before.map(|(time, _)| time.0),
            before: filter.before.map(|(_, run)| run.to_bytes()),
            limit: bounded(filter.limit),
            count_max: RECENT_COUNT_MAX as i64,
        }
    }
}

pub(crate) fn recent_page<'a>(
    filter: &RecentFilter,
    is_open: bool,
    of: &'a RecentValues<'_>,
) -> Statement<'a> {
    let mut list = recent_conditions(filter, is_open, of);
    list.add(true, "(updated, id) < (?, ", &of.before_time);
    list.add_last("?)", &of.before);
    let (index, limit) = (recent_index(filter, is_open), list.number(&of.limit));
    let walked = &list.walked;
    let sql = format!(
        "SELECT {COLUMNS} FROM runs INDEXED BY {index} WHERE {walked} ORDER BY updated DESC, id DESC LIMIT {limit}"
    );
    Statement {
        sql,
        values: list.values,
    }
}

pub(crate) fn recent_count<'a>(
    filter: &RecentFilter,
    is_open: bool,
    of: &'a RecentValues<'_>,
) -> Statement<'a> {
    let mut list = recent_conditions(filter, is_open, of);
    let (index, limit) = (recent_index(filter, is_open), list.number(&of.count_max));
    let walked = &list.walked;
    let sql =
        format!("SELECT count(*) FROM (SELECT 1 FROM runs INDEXED BY {index} WHERE {walked} LIMIT {limit})");
    Statement {
        sql,
        values: list.values,
    }
}

fn recent_conditions<'a>(filter: &RecentFilter, is_open: bool, of: &'a RecentValues<'_>) -> Conditions<'a> {
    let mut list = Conditions::of(&of.project);
    list.walked.push_str(match is_open {
        true => " AND parent_run IS NULL AND tool IS NULL AND open = 1",
        false => " AND parent_run IS NULL AND tool IS NULL AND open = 0",
    });
    if are_failures(&filter.statuses) {
        list.walked
            .push_str(" AND (status = 'failed' OR status = 'cancelled')");
    }
    list.add(true, "agent = ?", &of.agent);
    list.add(true, "space = ?", &of.space);
    list.add(
        true,
        "space IN (SELECT members.space FROM members WHERE entity = ?)",
        &of.member,
    );
    list.add(true, "instr(?, ',' || status || ',') > 0", &of.statuses);
    list.add(true, "updated >= ?", &of.since);
    list
}

/// Only runs that ended have an index in the order of changes, because every append would have to write it: those that are open are
/// few. So are those of a space, of a user's spaces, and those that failed.
fn recent_index(filter: &RecentFilter, is_open: bool) -> &'static str {
    match (filter, is_open) {
        (RecentFilter { space: Some(_), .. } | RecentFilter { member: Some(_), .. }, true) => "runs_open",
        (RecentFilter { space: Some(_), .. } | RecentFilter { member: Some(_), .. }, false) => {
            "runs_of_space"
        }
        (_, true) => "runs_open_of_project",
        (_, false) if are_failures(&filter.statuses) => "runs_failed",
        (RecentFilter { agent: Some(_), .. }, false) => "runs_recent_of_agent",
        (_, false) => "runs_ended",
    }
}
