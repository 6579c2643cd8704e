//! Kernel values in columns, and statements that are prepared once per connection. Ids are uuids, times are milliseconds.

use std::borrow::Cow;

use tokio_postgres::Row;
use tokio_postgres::types::{FromSqlOwned, ToSql};
use toolgate_engine::store::StoreError;
use toolgate_kernel::event::Seq;
use toolgate_kernel::id::{EntityId, KeyId, NodeId, ProjectId, RunId, SpaceId};
use toolgate_kernel::json::Json;
use toolgate_kernel::name::{AgentName, ToolName};
use uuid::Uuid;

use super::fault::Fault;
use super::session::Db;

/// A parameter of a statement.
pub(crate) type Param<'a> = &'a (dyn ToSql + Sync);

/// The rows of a query, each read by `read`.
pub(crate) async fn rows<T>(
    db: &Db<'_>,
    sql: &str,
    params: &[Param<'_>],
    read: impl Fn(&Row) -> Result<T, Fault>,
) -> Result<Vec<T>, Fault> {
    db.query(sql, params).await?.iter().map(read).collect()
}

/// The rows of a list of one project, planned for its values.
pub(crate) async fn rows_planned<T>(
    db: &Db<'_>,
    sql: &str,
    params: &[Param<'_>],
    read: impl Fn(&Row) -> Result<T, Fault>,
) -> Result<Vec<T>, Fault> {
    db.query_planned(sql, params).await?.iter().map(read).collect()
}

/// The first row of a query.
pub(crate) async fn first<T>(
    db: &Db<'_>,
    sql: &str,
    params: &[Param<'_>],
    read: impl Fn(&Row) -> Result<T, Fault>,
) -> Result<Option<T>, Fault> {
    db.query(sql, params).await?.first().map(read).transpose()
}

/// Runs a statement and returns the number of rows it changed.
pub(crate) async fn change(db: &Db<'_>, sql: &str, params: &[Param<'_>]) -> Result<u64, Fault> {
    db.execute(sql, params).await
}

/// Runs a conditional insert; `Exists` if it changed nothing.
pub(crate) async fn insert(db: &Db<'_>, sql: &str, params: &[Param<'_>]) -> Result<(), Fault> {
    match change(db, sql, params).await? {
        0 => Err(StoreError::Exists.into()),
        _ => Ok(()),
    }
}

/// A limit or sequence number as an SQL integer; larger values are clamped, as there is nothing beyond.
pub(crate) fn bounded(number: impl TryInto<i64>) -> i64 {
    number.try_into().unwrap_or(i64::MAX)
}

/// An id of the kernel as a uuid.
pub(crate) trait Id: Copy {
    fn uuid(self) -> Uuid;
    fn of(uuid: Uuid) -> Self;
}

macro_rules! ids {
    ($($id:ident),*) => {
        $(
            impl Id for $id {
                fn uuid(self) -> Uuid {
                    Uuid::from_bytes(self.to_bytes())
                }
                fn of(uuid: Uuid) -> Self {
                    Self::from_bytes(uuid.into_bytes())
                }
            }
        )*
    };
}
ids![EntityId, KeyId, NodeId, ProjectId, RunId, SpaceId];

/// Many ids as one parameter.
pub(crate) fn uuids<I: Id>(ids: impl IntoIterator<Item = I>) -> Vec<Uuid> {
    ids.into_iter().map(Id::uuid).collect()
}

pub(crate) fn get<T: FromSqlOwned>(row: &Row, column: usize) -> Result<T, Fault> {
    Ok(row.try_get(column)?)
}

pub(crate) fn id<I: Id>(row: &Row, column: usize) -> Result<I, Fault> {
    Ok(I::of(get(row, column)?))
}

pub(crate) fn optional_id<I: Id>(row: &Row, column: usize) -> Result<Option<I>, Fault> {
    Ok(get::<Option<Uuid>>(row, column)?.map(I::of))
}

pub(crate) fn number(row: &Row, column: usize) -> Result<u64, Fault> {
    Ok(get::<i64>(row, column)? as u64)
}

/// A number that fits a smaller type; `Corrupt` if it does not.
pub(crate) fn small<T: TryFrom<i64>>(row: &Row, column: usize) -> Result<T, Fault> {
    let number: i64 = get(row, column)?;
    let read = T::try_from(number);
    read.map_err(|_| StoreError::Corrupt(format!("{number} in a column of small numbers")).into())
}

pub(crate) fn seq(row: &Row, column: usize) -> Result<Seq, Fault> {
    Ok(Seq(number(row, column)?))
}

/// A text in the form in which it is stored. PostgreSQL's texts hold no zero byte, so zero and one are written as two bytes
/// each. The order and the prefixes of texts stay what they were.
pub(crate) fn text(text: &str) -> Cow<'_, str> {
    match text.bytes().any(|byte| byte < 2) {
        true => Cow::Owned(text.replace('\u{1}', "\u{1}\u{2}").replace('\0', "\u{1}\u{1}")),
        false => Cow::Borrowed(text),
    }
}

/// An optional text in the form in which it is stored.
pub(crate) fn optional_text(given: Option<&str>) -> Option<Cow<'_, str>> {
    given.map(text)
}

/// A stored text as it was given.
pub(crate) fn string(row: &Row, column: usize) -> Result<String, Fault> {
    Ok(unescape(get(row, column)?))
}

pub(crate) fn optional_string(row: &Row, column: usize) -> Result<Option<String>, Fault> {
    Ok(get::<Option<String>>(row, column)?.map(unescape))
}

pub(crate) fn unescape(stored: String) -> String {
    match stored.contains('\u{1}') {
        true => stored.replace("\u{1}\u{1}", "\0").replace("\u{1}\u{2}", "\u{1}"),
        false => stored,
    }
}

pub(crate) fn json(row: &Row, column: usize) -> Result<Json, Fault> {
    parse_json(get(row, column)?)
}

pub(crate) fn optional_json(row: &Row, column: usize) -> Result<Option<Json>, Fault> {
    get::<Option<String>>(row, column)?.map(parse_json).transpose()
}

/// Grants as they are stored; nothing when there are none.
pub(crate) fn grants_text(grants: &[String]) -> Option<String> {
    (!grants.is_empty()).then(|| serde_json::json!(grants).to_string())
}

pub(crate) fn grants(row: &Row, column: usize) -> Result<Vec<String>, Fault> {
    let text = get::<Option<String>>(row, column)?;
    let read = text.map(|text| serde_json::from_str(&text)).transpose();
    Ok(read.map_err(corrupt)?.unwrap_or_default())
}

pub(crate) fn agent_name(row: &Row, column: usize) -> Result<AgentName, Fault> {
    AgentName::try_from(get::<String>(row, column)?).map_err(|error| corrupt(error).into())
}

pub(crate) fn optional_agent_name(row: &Row, column: usize) -> Result<Option<AgentName>, Fault> {
    let name = get::<Option<String>>(row, column)?.map(AgentName::try_from);
    Ok(name.transpose().map_err(corrupt)?)
}

pub(crate) fn tool_name(row: &Row, column: usize) -> Result<Option<ToolName>, Fault> {
    let name = get::<Option<String>>(row, column)?.map(ToolName::try_from);
    Ok(name.transpose().map_err(corrupt)?)
}

fn parse_json(text: String) -> Result<Json, Fault> {
    Json::parse(text).map_err(|error| corrupt(error).into())
}

fn corrupt(error: impl std::fmt::Display) -> StoreError {
    StoreError::Corrupt(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::{text, unescape};

    #[test]
    fn texts_with_control_characters_keep_their_order_and_come_back() {
        let texts = [
            "",
            "\0",
            "\0\0",
            "\0\u{1}",
            "\0a",
            "\u{1}",
            "\u{1}\0",
            "\u{1}\u{1}",
            "\u{2}",
            "a",
            "a\0",
            "a\u{1}",
            "b",
        ];
        let stored: Vec<String> = texts.iter().map(|given| text(given).into_owned()).collect();
        assert!(stored.is_sorted() && stored.iter().all(|text| !text.contains('\0')));
        let read: Vec<String> = stored.into_iter().map(unescape).collect();
        assert_eq!(read, texts);
    }
}
