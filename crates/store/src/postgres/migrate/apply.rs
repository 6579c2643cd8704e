//! Applies one migration while other programs use the tables.
//!
//! What changes the schema is one short transaction. What takes time with the size of a table comes after it: indexes are built
//! `CONCURRENTLY`, and rows are filled in by statements of their own. `unfinished_migrations` has the version until that is
//! done, so that the next start goes on after a crash.

use std::time::Duration;

use tokio::time::{Instant, sleep};
use tokio_postgres::Transaction;

use super::super::fault::Fault;
use super::super::session::Session;
use super::{Step, WAIT, checksum_of};

const APPLY: &str = "INSERT INTO migrations (version, oldest, checksum) VALUES ($1, $2, $3)";
const BEGUN: &str = "INSERT INTO unfinished_migrations (version) VALUES ($1)";
const FINISHED: &str = "DELETE FROM unfinished_migrations WHERE version = $1";

/// A change of the schema waits this long for others that use the table, and they wait behind it: longer would be an outage.
const LOCK_BRIEFLY: &str = "SET LOCAL lock_timeout = '200ms'";
/// Pause before the next attempt: many times longer, so that others hardly notice when it takes many.
const LOCK_AGAIN: Duration = Duration::from_secs(4);

/// Applies a migration to a database that nobody uses yet.
pub(super) async fn at_once(session: &mut Session, step: &Step) -> Result<(), Fault> {
    let transaction = session.client.transaction().await?;
    transaction.batch_execute(step.sql).await?;
    note(&transaction, step).await?;
    Ok(transaction.commit().await?)
}

/// Applies a migration to a database that others write to.
pub(super) async fn beside_writers(session: &mut Session, step: &Step) -> Result<(), Fault> {
    let until = Instant::now() + WAIT;
    while let Err(fault) = change_schema(session, step).await {
        // A backup that reads a table locks it for as long as it takes.
        let may_pass = fault.is_passing() && !session.client.is_closed();
        if !may_pass || Instant::now() >= until {
            return Err(fault);
        }
        tracing::warn!(version = step.version, ?fault, "the migration waits for a lock");
        sleep(LOCK_AGAIN).await;
    }
    finish(session, step).await
}

/// Does what a migration has left to do once the schema is changed, whatever of it was done before.
pub(super) async fn finish(session: &Session, step: &Step) -> Result<(), Fault> {
    for statement in statements(step.sql) {
        match part_of(statement) {
            Part::Schema => {}
            Part::Rows => session.client.batch_execute(statement).await?,
            Part::Index { name, rest } => build(session, name, rest).await?,
        }
    }
    let version = i64::from(step.version);
    session.client.execute(FINISHED, &[&version]).await?;
    Ok(())
}

async fn change_schema(session: &mut Session, step: &Step) -> Result<(), Fault> {
    let transaction = session.client.transaction().await?;
    transaction.batch_execute(LOCK_BRIEFLY).await?;
    for statement in statements(step.sql) {
        if matches!(part_of(statement), Part::Schema) {
            transaction.batch_execute(statement).await?;
        }
    }
    note(&transaction, step).await?;
    let version = i64::from(step.version);
    transaction.execute(BEGUN, &[&version]).await?;
    Ok(transaction.commit().await?)
}

async fn note(transaction: &Transaction<'_>, step: &Step) -> Result<(), Fault> {
    let (version, oldest) = (i64::from(step.version), i64::from(step.oldest));
    transaction
        .execute(APPLY, &[&version, &oldest, &checksum_of(step.sql)])
        .await?;
    Ok(())
}

const IS_VALID: &str = "SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass($1::text)";

/// Builds an index beside writers, unless it is there.
async fn build(session: &Session, name: &str, rest: &str) -> Result<(), Fault> {
    let found = session.client.query_opt(IS_VALID, &[&name]).await?;
    let is_valid: Option<bool> = found.map(|row| row.try_get(0)).transpose()?;
    match is_valid {
        Some(true) => return Ok(()),
        // A build that was interrupted leaves an index that is written and never read.
        Some(false) => {
            let drop = format!("DROP INDEX CONCURRENTLY {name}");
            session.client.batch_execute(&drop).await?;
        }
        None => {}
    }
    tracing::info!(index = name, "building an index; others go on writing");
    let create = format!("{CREATE_INDEX}CONCURRENTLY {name} {rest}");
    Ok(session.client.batch_execute(&create).await?)
}

/// What a statement of a migration is for.
pub(super) enum Part<'a> {
    /// Quick however large the tables are, once it has its lock.
    Schema,
    /// Fills in rows. May be run again.
    Rows,
    Index {
        name: &'a str,
        /// What it is on.
        rest: &'a str,
    },
}

const CREATE_INDEX: &str = "CREATE INDEX ";

pub(super) fn part_of(statement: &str) -> Part<'_> {
    let index = statement.strip_prefix(CREATE_INDEX);
    match index.and_then(|index| index.split_once(' ')) {
        Some((name, rest)) => Part::Index { name, rest },
        None if statement.starts_with("UPDATE ") => Part::Rows,
        None => Part::Schema,
    }
}

/// The statements of a migration, without the comments before them. One ends with a semicolon at the end of a line, outside of
/// a function's body.
pub(super) fn statements(sql: &str) -> Vec<&str> {
    let (mut statements, mut start, mut place) = (Vec::new(), 0, 0);
    let mut in_body = false;
    for line in sql.split_inclusive('\n') {
        let is_between = sql[start..place].trim().is_empty();
        place += line.len();
        if is_between && line.starts_with("--") {
            start = place;
            continue;
        }
        in_body ^= line.matches("$$").count() % 2 == 1;
        if !in_body && line.trim_end().ends_with(';') {
            statements.push(sql[start..place].trim());
            start = place;
        }
    }
    statements
}
