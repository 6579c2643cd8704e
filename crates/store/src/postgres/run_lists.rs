//! Lists of runs.

use toolgate_engine::store::{AskingFilter, RECENT_COUNT_MAX, RecentFilter, RunFilter, RunRecord};
use toolgate_kernel::event::Status;
use toolgate_kernel::id::ProjectId;
use toolgate_kernel::name::{AgentName, ToolName};

use super::column::{Id, Param, bounded, number, rows, rows_planned, text};
use super::fault::Fault;
use super::runs::{record, select};
use super::session::Db;

/// Newest first: ids sort by creation time.
pub(super) async fn list(
    db: &Db<'_>,
    project: ProjectId,
    filter: &RunFilter,
) -> Result<Vec<RunRecord>, Fault> {
    let project = project.uuid();
    let space = filter.space.map(Id::uuid);
    let parent = filter.parent.map(Id::uuid);
    let root = filter.root.map(Id::uuid);
    let before = filter.before.map(Id::uuid);
    let status = filter.status.map(|status| status.as_str());
    let agent = filter.agent.as_ref().map(AgentName::as_str);
    let user = filter.user.map(Id::uuid);
    let tool = filter.tool.as_ref().map(ToolName::as_str);
    let words = filter.text.as_deref().map(pattern);
    let (since, until) = (filter.since.map(|at| at.0), filter.until.map(|at| at.0));
    let limit = bounded(filter.limit);
    fn given<T: tokio_postgres::types::ToSql + Sync>(value: &Option<T>) -> Option<Param<'_>> {
        value.as_ref().map(|value| value as Param<'_>)
    }
    // In the order of the conditions in `list_sql`.
    let conditions = [
        given(&space),
        given(&parent),
        given(&root),
        given(&before),
        given(&status),
        given(&agent),
        given(&user),
        given(&tool),
        given(&words),
        given(&since),
        given(&until),
    ];
    let mut values: Vec<Param<'_>> = vec![&project];
    values.extend(conditions.into_iter().flatten());
    values.push(&limit);
    rows_planned(db, &list_sql(filter), &values, record).await
}

/// One statement per combination of conditions, so that each uses its index.
pub(super) fn list_sql(filter: &RunFilter) -> String {
    // `+ 0`: in the order of ids a page is full before long, while the index of times would have everything sorted. Not so for
    // `since`: the planner knows its value, and what it leaves comes first in either order.
    // What is open and what did not complete are few, and have indexes.
    let status = match filter.status {
        Some(Status::Failed | Status::Cancelled) => " AND failure = $",
        Some(status) if !status.is_final() => " AND open AND status = $",
        _ => " AND status = $",
    };
    let conditions = [
        (filter.space.is_some(), " AND space = $"),
        (filter.parent.is_some(), " AND parent_run = $"),
        (filter.root.is_some(), " AND parent_run IS NOT NULL AND root = $"),
        (filter.before.is_some(), " AND id < $"),
        (filter.status.is_some(), status),
        (filter.agent.is_some(), " AND agent = $"),
        (filter.user.is_some(), " AND \"user\" = $"),
        (filter.tool.is_some(), " AND tool = $"),
        (filter.text.is_some(), " AND lower(title) LIKE $"),
        (filter.since.is_some(), " AND created >= $"),
        (filter.until.is_some(), " AND created + 0 < $"),
    ];
    let mut sql = String::from(select!("WHERE project = $1"));
    let asked = conditions.into_iter().filter(|(asked, _)| *asked);
    let mut parameter = 2;
    for (_, condition) in asked {
        sql.push_str(&format!("{condition}{parameter}"));
        parameter += 1;
    }
    if filter.top {
        sql.push_str(" AND parent_run IS NULL");
    }
    // A run tree is small: without the second column the planner would rather walk all runs of the project in their order
    // than sort it.
    let order = if filter.root.is_some() {
        "id DESC, created"
    } else {
        "id DESC"
    };
    sql.push_str(&format!(" ORDER BY {order} LIMIT ${parameter}"));
    sql
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
pub(super) const ASKING: &str = select!(
    "WHERE project = $1 AND asks AND ($2::uuid IS NULL OR id < $2) AND ($4::text IS NULL OR agent = $4)
       AND ($3::uuid IS NULL OR $3 = (SELECT top.space FROM runs AS top WHERE top.id = runs.root))
       AND ($5::uuid IS NULL OR EXISTS (SELECT 1 FROM members WHERE entity = $5
            AND members.space = (SELECT top.space FROM runs AS top WHERE top.id = runs.root)))
     ORDER BY id DESC LIMIT $6"
);

pub(super) async fn asking(
    db: &Db<'_>,
    project: ProjectId,
    filter: &AskingFilter,
) -> Result<Vec<RunRecord>, Fault> {
    let values: [Param<'_>; 6] = [
        &project.uuid(),
        &filter.before.map(Id::uuid),
        &filter.space.map(Id::uuid),
        &filter.agent.as_ref().map(AgentName::as_str),
        &filter.member.map(Id::uuid),
        &bounded(filter.limit),
    ];
    rows(db, ASKING, &values, record).await
}

// A user's runs are found by its spaces. The order has no index for open runs, because every append would have to write it: they
// are few, and looked at apart from those that ended.
macro_rules! recent_where {
    () => {
        "WHERE project = $1 AND parent_run IS NULL AND tool IS NULL AND ($2::text IS NULL OR agent = $2)
           AND ($3::uuid IS NULL OR space = $3)
           AND ($4::uuid IS NULL OR space IN (SELECT members.space FROM members WHERE entity = $4))
           AND ($5::text[] IS NULL OR status = ANY ($5)) AND ($6::bigint IS NULL OR updated >= $6)"
    };
}
const RECENT: &str = select!(recent_where!());
const RECENT_ONE: &str = concat!("SELECT 1 FROM runs ", recent_where!());
const AFTER_CURSOR: &str = "($7::bigint IS NULL OR (updated, id) < ($7, $8::uuid))";
const IN_ORDER: &str = "ORDER BY updated DESC, id DESC";

/// The statement of a page, with nine parameters, and that of the count, with seven.
pub(super) fn recent_sql(filter: &RecentFilter) -> [String; 2] {
    let is_failure = |status: &Status| matches!(status, Status::Failed | Status::Cancelled);
    let failures = !filter.statuses.is_empty() && filter.statuses.iter().all(is_failure);
    let few = if failures { " AND failure IS NOT NULL" } else { "" };
    let page = ["open", "NOT open"]
        .map(|which| format!("({RECENT}{few} AND {which} AND {AFTER_CURSOR} {IN_ORDER} LIMIT $9)"));
    let counted = ["open", "NOT open"].map(|which| format!("{RECENT_ONE}{few} AND {which}"));
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
