//! Lists of runs.

use tokio_postgres::Row;
use tokio_postgres::types::ToSql;
use toolgate_engine::store::{AskingFilter, RECENT_COUNT_MAX, RecentFilter, RunFilter, RunPage, RunRecord};
use toolgate_kernel::id::ProjectId;
use toolgate_kernel::name::{AgentName, ToolName};
use uuid::Uuid;

use super::column::{Id, Param, bounded, get, number, rows, rows_planned, text};
use super::fault::Fault;
use super::runs::{COLUMNS, columns, record, select};
use super::session::Db;
use crate::walk::{Walk, are_failures, sides, time_of};

/// Newest first.
pub(super) async fn list(db: &Db<'_>, project: ProjectId, filter: &RunFilter) -> Result<RunPage, Fault> {
    let values = ListValues::of(project, filter);
    let statement = statement(filter, &values);
    let found = rows_planned(db, &statement.sql, &statement.values, looked_at).await?;
    Ok(page(found, filter.limit))
}

/// A statement that looks at runs along an index.
pub(super) struct Statement<'a> {
    pub(super) sql: String,
    pub(super) values: Vec<Param<'a>>,
}

/// A row that a list was given.
struct LookedAt {
    run: RunRecord,
    fits: bool,
    /// No more rows may be looked at.
    is_last: bool,
}

fn looked_at(row: &Row) -> Result<LookedAt, Fault> {
    Ok(LookedAt {
        run: record(row)?,
        fits: get(row, 21)?,
        is_last: get(row, 22)?,
    })
}

fn page(found: Vec<LookedAt>, limit: usize) -> RunPage {
    let last = found.last();
    let next = last.filter(|last| last.is_last || found.len() == limit);
    RunPage {
        next: next.map(|last| last.run.id),
        runs: found
            .into_iter()
            .filter(|row| row.fits)
            .map(|row| row.run)
            .collect(),
    }
}

/// What a list filters by, as parameters.
pub(super) struct ListValues<'a> {
    project: Uuid,
    space: Option<Uuid>,
    parent: Option<Uuid>,
    root: Option<Uuid>,
    before: Option<Uuid>,
    /// When the run `before` was created, if it has no row any more.
    before_time: Option<i64>,
    failure: Option<&'static str>,
    statuses: Option<Vec<&'static str>>,
    agent: Option<&'a str>,
    user: Option<Uuid>,
    tool: Option<&'a str>,
    words: Option<String>,
    since: Option<i64>,
    until: Option<i64>,
    limit: i64,
    looked_at_max: i64,
}

impl<'a> ListValues<'a> {
    pub(super) fn of(project: ProjectId, filter: &'a RunFilter) -> Self {
        let is_failure = Walk::of(filter) == Walk::Failure;
        Self {
            project: project.uuid(),
            space: filter.space.map(Id::uuid),
            parent: filter.parent.map(Id::uuid),
            root: filter.root.map(Id::uuid),
            before: filter.before.map(Id::uuid),
            before_time: filter.before.map(|before| time_of(before).0),
            failure: is_failure.then(|| filter.statuses[0].as_str()),
            statuses: (!is_failure && !filter.statuses.is_empty())
                .then(|| filter.statuses.iter().map(|status| status.as_str()).collect()),
            agent: filter.agent.as_ref().map(AgentName::as_str),
            user: filter.user.map(Id::uuid),
            tool: filter.tool.as_ref().map(ToolName::as_str),
            words: filter.text.as_deref().map(pattern),
            since: filter.since.map(|at| at.0),
            until: filter.until.map(|at| at.0),
            limit: bounded(filter.limit),
            looked_at_max: bounded(filter.looked_at_max.0),
        }
    }
}

/// One statement per combination of conditions. Those of the walk choose the rows to look at, and have an index in the order of
/// the list; the others are about what is found there.
pub(super) fn statement<'a>(filter: &RunFilter, of: &'a ListValues<'_>) -> Statement<'a> {
    let walk = Walk::of(filter);
    let mut list = Conditions::of(&of.project);
    list.add(
        matches!(walk, Walk::Space | Walk::OpenOfSpace),
        "space = $",
        &of.space,
    );
    list.add(walk == Walk::Children, "parent_run = $", &of.parent);
    list.add(
        walk == Walk::Tree,
        "parent_run IS NOT NULL AND root = $",
        &of.root,
    );
    list.add(walk == Walk::User, "\"user\" = $", &of.user);
    list.add(walk == Walk::Tool, "tool = $", &of.tool);
    list.add(walk == Walk::Agent, "agent = $", &of.agent);
    list.add(walk == Walk::Time, "created >= $", &of.since);
    list.add(walk == Walk::Time, "created < $", &of.until);
    list.add(false, "lower(title) LIKE $", &of.words);
    list.add(true, "failure = $", &of.failure);
    list.add(false, "status = ANY ($)", &of.statuses);
    if matches!(walk, Walk::Open | Walk::OpenOfSpace) {
        list.walked.push_str(" AND open");
    }
    if filter.top {
        list.left.push("parent_run IS NULL".into());
    }
    if walk == Walk::Time {
        list.add(
            true,
            "(created, id) < (coalesce((SELECT created FROM runs WHERE id = $), ",
            &of.before,
        );
        list.add_last("$), ", &of.before_time);
        list.add_last("$)", &of.before);
        return list.statement("created DESC, id DESC", of);
    }
    list.add(true, "id < $", &of.before);
    // A run tree is small: by its id alone the planner would rather walk all runs of the project than sort it.
    let order = if walk == Walk::Tree {
        "id DESC, created"
    } else {
        "id DESC"
    };
    list.statement(order, of)
}

/// Conditions with their values.
struct Conditions<'a> {
    /// Of the rows to look at.
    walked: String,
    /// Of those that fit.
    left: Vec<String>,
    values: Vec<Param<'a>>,
}

impl<'a> Conditions<'a> {
    fn of(project: &'a Uuid) -> Self {
        Self {
            walked: "project = $1".into(),
            left: Vec::new(),
            values: vec![project],
        }
    }

    /// Adds a condition on a value, if there is one.
    fn add<T: ToSql + Sync>(&mut self, is_walked: bool, condition: &str, value: &'a Option<T>) {
        let Some(value) = value else { return };
        let condition = condition.replace('$', &self.number(value));
        match is_walked {
            true => self.walked.push_str(&format!(" AND {condition}")),
            false => self.left.push(condition),
        }
    }

    /// Adds to the last condition of the walk.
    fn add_last<T: ToSql + Sync>(&mut self, more: &str, value: &'a Option<T>) {
        let Some(value) = value else { return };
        let more = more.replace('$', &self.number(value));
        self.walked.push_str(&more);
    }

    /// The parameter of a value.
    fn number(&mut self, value: Param<'a>) -> String {
        self.values.push(value);
        format!("${}", self.values.len())
    }

    fn statement(mut self, order: &str, of: &'a ListValues<'_>) -> Statement<'a> {
        let limit = self.number(&of.limit);
        let walked = &self.walked;
        if self.left.is_empty() {
            let sql = format!(
                "SELECT {COLUMNS}, true, false FROM runs WHERE {walked} ORDER BY {order} LIMIT {limit}"
            );
            return Statement {
                sql,
                values: self.values,
            };
        }
        let looked_at_max = of.looked_at_max;
        let left = self.left.join(" AND ");
        // Numbers its rows as they come, so it stops where the page is full. The last one tells where the next page begins.
        let sql = format!(
            "SELECT {COLUMNS}, ({left}) IS TRUE, place = {looked_at_max} FROM (
                SELECT *, row_number() OVER (ORDER BY {order}) AS place FROM runs
                WHERE {walked} ORDER BY {order} LIMIT {looked_at_max}) AS runs
             WHERE ({left}) OR place = {looked_at_max} ORDER BY {order} LIMIT {limit}"
        );
        Statement {
            sql,
            values: self.values,
        }
    }
}

/// What `LIKE` finds a text by, wherever it stands. In small letters, as the title is compared.
fn pattern(words: &str) -> String {
    let mut pattern = String::from("%");
    for c in text(words).chars() {
        if matches!(c, '%' | '_' | '\\') {
            pattern.push('\\');
        }
        pattern.push(c.to_ascii_lowercase());
    }
    pattern.push('%');
    pattern
}

// Walks what waits in the project, and no more. What a child run asks is asked in the space of the run at the top.
pub(super) const ASKING: &str = concat!(
    "SELECT ",
    columns!(),
    ", fits, place = $7 FROM (
        SELECT *, row_number() OVER (ORDER BY id DESC) AS place FROM runs
        WHERE project = $1 AND asks AND id < $2 ORDER BY id DESC LIMIT $7) AS runs
     CROSS JOIN LATERAL (SELECT (($4::text IS NULL OR agent = $4)
        AND ($3::uuid IS NULL OR $3 = (SELECT top.space FROM runs AS top WHERE top.id = runs.root))
        AND ($5::uuid IS NULL OR EXISTS (SELECT 1 FROM members WHERE entity = $5
             AND members.space = (SELECT top.space FROM runs AS top WHERE top.id = runs.root)))) IS TRUE) AS judged (fits)
     WHERE fits OR place = $7 ORDER BY id DESC LIMIT $6"
);

pub(super) async fn asking(db: &Db<'_>, project: ProjectId, filter: &AskingFilter) -> Result<RunPage, Fault> {
    let values: [Param<'_>; 7] = [
        &project.uuid(),
        // The largest uuid is nobody's id.
        &filter.before.map_or(Uuid::max(), Id::uuid),
        &filter.space.map(Id::uuid),
        &filter.agent.as_ref().map(AgentName::as_str),
        &filter.member.map(Id::uuid),
        &bounded(filter.limit),
        &bounded(filter.looked_at_max.0),
    ];
    let found = rows(db, ASKING, &values, looked_at).await?;
    Ok(page(found, filter.limit))
}

// A user's runs are found by its spaces. The order has no index for open runs, because every append would have to write it: they
// are few, and looked at apart from those that ended.
macro_rules! recent_where {
    () => {
        "WHERE project = $1 AND parent_run IS NULL AND tool IS NULL AND ($2::text IS NULL OR agent = $2)
           AND ($3::uuid IS NULL OR space = $3)
           AND {member}
           AND ($5::text[] IS NULL OR status = ANY ($5)) AND ($6::bigint IS NULL OR updated >= $6)"
    };
}
const RECENT: &str = select!(recent_where!());
const RECENT_ONE: &str = concat!("SELECT 1 FROM runs ", recent_where!());
const AFTER_CURSOR: &str = "($7::bigint IS NULL OR (updated, id) < ($7, $8::uuid))";
const IN_ORDER: &str = "ORDER BY updated DESC, id DESC";

/// The statement of a page, with nine parameters, and that of the count, with seven.
pub(super) fn recent_sql(filter: &RecentFilter) -> [String; 2] {
    let few = match are_failures(&filter.statuses) {
        true => " AND failure IS NOT NULL",
        false => "",
    };
    // `+ 0`: the runs of a space or of a user's spaces are few, and sorted; the planner would rather walk all of the agent in the
    // order of changes.
    let order = match filter.space.is_some() || filter.member.is_some() {
        true => "ORDER BY updated + 0 DESC, id DESC",
        false => IN_ORDER,
    };
    // An array, which the index of a space's runs is looked up with: of a subquery, as one of two conditions, the planner makes a
    // filter.
    let member = match filter.member {
        Some(_) => "space = ANY (ARRAY(SELECT members.space FROM members WHERE entity = $4::uuid))",
        None => "$4::uuid IS NULL",
    };
    let sides: Vec<&str> = sides(&filter.statuses)
        .map(|is_open| if is_open { "open" } else { "NOT open" })
        .collect();
    let page: Vec<String> = sides
        .iter()
        .map(|which| format!("({RECENT}{few} AND {which} AND {AFTER_CURSOR} {order} LIMIT $9)"))
        .collect();
    let counted: Vec<String> = sides
        .iter()
        .map(|which| format!("{RECENT_ONE}{few} AND {which}"))
        .collect();
    [
        format!(
            "SELECT * FROM ({}) AS found {IN_ORDER} LIMIT $9",
            page.join(" UNION ALL ")
        ),
        format!(
            "SELECT count(*) FROM ({} LIMIT $7) AS counted",
            counted.join(" UNION ALL ")
        ),
    ]
    .map(|sql| sql.replace("{member}", member))
}

pub(super) async fn recent(
    db: &Db<'_>,
    project: ProjectId,
    filter: &RecentFilter,
) -> Result<(Vec<RunRecord>, u64), Fault> {
    let statuses: Vec<&str> = filter.statuses.iter().map(|status| status.as_str()).collect();
    let statuses = (!statuses.is_empty()).then_some(statuses);
    let project = project.uuid();
    let agent = filter.agent.as_ref().map(AgentName::as_str);
    let space = filter.space.map(Id::uuid);
    let member = filter.member.map(Id::uuid);
    let since = filter.since.map(|since| since.0);
    let (time, id) = filter.before.unzip();
    let (time, id) = (time.map(|time| time.0), id.map(Id::uuid));
    let (limit, count_max) = (bounded(filter.limit), RECENT_COUNT_MAX as i64);
    let common: [Param<'_>; 6] = [&project, &agent, &space, &member, &statuses, &since];
    let page = [&common[..], &[&time, &id, &limit]].concat();
    let [page_sql, count_sql] = recent_sql(filter);
    let page = rows_planned(db, &page_sql, &page, record).await?;
    let counted = [&common[..], &[&count_max]].concat();
    let total = rows_planned(db, &count_sql, &counted, |row| number(row, 0)).await?;
    Ok((page, total.first().copied().unwrap_or_default()))
}
