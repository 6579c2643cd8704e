//! Migrates a database to the schema of this version, while nodes of other versions may use it.
//!
//! Every migration says which version of the schema a program must know at least to go on working beside it. One that only
//! adds (a table, an index, a column that may be left out) names the same version as the one before: programs that
//! have never heard of it are accepted. One that takes something away names the version that does without it, and older
//! programs are refused. So an upgrade that removes something takes two releases: the first stops to use it.
//!
//! `apply` runs a migration so that programs which use the database go on writing: `CREATE INDEX` and `UPDATE` statements come
//! after the others have committed, indexes `CONCURRENTLY`. A migration is written as plain SQL. Its other statements must be quick whatever
//! the size of the tables, which a test checks, and its updates may be run twice.

mod apply;
#[cfg(test)]
mod tests;

use std::time::Duration;

use sha2::{Digest, Sha256};
use tokio::time::{Instant, sleep};
use tokio_postgres::Row;
use toolgate_engine::store::StoreError;

use super::column::{get, small};
use super::fault::Fault;
use super::session::{Db, Session};

/// A change of the schema. A released one is never edited.
struct Step {
    version: u32,
    /// The newest migration that a program must know at least to use a database with this one.
    oldest: u32,
    sql: &'static str,
}

const STEPS: &[Step] = &[
    Step {
        version: 1,
        oldest: 1,
        sql: include_str!("../../migrations/postgres/0001_first.sql"),
    },
    Step {
        version: 2,
        oldest: 1,
        sql: include_str!("../../migrations/postgres/0002_consumption.sql"),
    },
    Step {
        version: 3,
        oldest: 1,
        sql: include_str!("../../migrations/postgres/0003_retention.sql"),
    },
    Step {
        version: 4,
        oldest: 1,
        sql: include_str!("../../migrations/postgres/0004_list_indexes.sql"),
    },
    Step {
        version: 5,
        oldest: 1,
        sql: include_str!("../../migrations/postgres/0005_rewrites.sql"),
    },
    Step {
        version: 6,
        oldest: 1,
        sql: include_str!("../../migrations/postgres/0006_run_walks.sql"),
    },
    Step {
        version: 7,
        oldest: 1,
        sql: include_str!("../../migrations/postgres/0007_recent_runs.sql"),
    },
];

/// The advisory lock that whoever migrates holds: `toolgate` in ASCII.
const LOCK: i64 = 0x746f_6f6c_6761_7465;

/// How long to wait for another program that migrates, or for a lock that a program holds which uses the database.
const WAIT: Duration = Duration::from_secs(300);
/// Pause between two looks at what is waited for.
const LOOK_EVERY: Duration = Duration::from_millis(200);

const TABLE: &str = "
    CREATE TABLE IF NOT EXISTS migrations (
        version  bigint      NOT NULL PRIMARY KEY,
        oldest   bigint      NOT NULL,
        checksum bytea       NOT NULL,
        applied  timestamptz NOT NULL DEFAULT now()
    )";
const APPLIED: &str = "SELECT version, oldest, checksum FROM migrations ORDER BY version";
/// Migrations of which a part is still to do: their indexes are not built yet. A table of its own, because a column more would
/// lock out the programs that read `migrations`.
const UNFINISHED_TABLE: &str = "
    CREATE TABLE IF NOT EXISTS unfinished_migrations (version bigint NOT NULL PRIMARY KEY)";
const UNFINISHED: &str = "SELECT version FROM unfinished_migrations";

/// Applies missing migrations and returns their versions. Rejects a database that needs a newer program, or one made by
/// other migrations. Of several programs that start at once, one migrates. A migration that was interrupted is completed.
pub(crate) async fn migrate(session: &mut Session) -> Result<Vec<u32>, Fault> {
    migrate_with(session, STEPS).await
}

async fn migrate_with(session: &mut Session, steps: &'static [Step]) -> Result<Vec<u32>, Fault> {
    if missing_of(steps, &applied(session).await?)?.is_empty() {
        return Ok(Vec::new());
    }
    // A migration may take longer than any other statement.
    session
        .client
        .batch_execute("SET statement_timeout = 0; SET lock_timeout = 0")
        .await?;
    lock(session).await?;
    // It may have been migrated while this one waited.
    let applied = applied(session).await?;
    let missing = missing_of(steps, &applied)?;
    session.client.batch_execute(TABLE).await?;
    session.client.batch_execute(UNFINISHED_TABLE).await?;
    for step in &missing {
        let is_begun = applied.iter().any(|known| known.version == step.version);
        match (applied.is_empty(), is_begun) {
            (true, _) => apply::at_once(session, step).await?,
            (false, false) => apply::beside_writers(session, step).await?,
            (false, true) => apply::finish(session, step).await?,
        }
    }
    Ok(missing.iter().map(|step| step.version).collect())
}

/// Takes the lock of whoever migrates, for as long as the connection lasts.
async fn lock(session: &Session) -> Result<(), Fault> {
    let until = Instant::now() + WAIT;
    loop {
        // Tried again and again: a statement that waits for a lock has a snapshot, and whoever builds an index waits until all
        // earlier snapshots are gone. Each would wait for the other.
        let tried = session
            .client
            .query_one("SELECT pg_try_advisory_lock($1)", &[&LOCK]);
        if tried.await?.try_get(0)? {
            return Ok(());
        }
        if Instant::now() >= until {
            let why = format!("another program migrates the database for more than {WAIT:?}");
            return Err(Fault::Failed(why));
        }
        sleep(LOOK_EVERY).await;
    }
}

/// Rejects a database that a newer program has migrated since, and that this one must not use any more.
pub(crate) async fn check(db: &Db<'_>) -> Result<(), Fault> {
    let applied = read_applied(&db.query(APPLIED, &[]).await?)?;
    missing(&applied)?;
    Ok(())
}

/// An error that names the remedy, unless the database has every migration that this program knows.
pub(crate) async fn require_current(session: &Session) -> Result<(), Fault> {
    let applied = applied(session).await?;
    if applied.is_empty() {
        let why = "it has no tables of Toolgate, see that its address is right; `toolgate store migrate` makes them";
        return Err(StoreError::Unavailable(why.into()).into());
    }
    match missing(&applied)?.first() {
        None => Ok(()),
        Some(step) => {
            let version = step.version;
            let why = format!(
                "it was made by an earlier version and has no migration {version}, run `toolgate store migrate` first"
            );
            Err(StoreError::Unavailable(why).into())
        }
    }
}

/// A migration that the database has, or has a part of.
struct Applied {
    version: u32,
    oldest: u32,
    checksum: Vec<u8>,
    is_finished: bool,
}

async fn applied(session: &Session) -> Result<Vec<Applied>, Fault> {
    // Asked first, because a user without the right to create tables may use a database that is migrated.
    const EXIST: &str = "
        SELECT to_regclass('migrations') IS NOT NULL, to_regclass('unfinished_migrations') IS NOT NULL";
    let tables = session.client.query_one(EXIST, &[]).await?;
    let (any, unfinished): (bool, bool) = (tables.try_get(0)?, tables.try_get(1)?);
    if !any {
        return Ok(Vec::new());
    }
    let mut applied = read_applied(&session.client.query(APPLIED, &[]).await?)?;
    if unfinished {
        for row in session.client.query(UNFINISHED, &[]).await? {
            let version: u32 = small(&row, 0)?;
            let of_it = applied.iter_mut().filter(|known| known.version == version);
            of_it.for_each(|known| known.is_finished = false);
        }
    }
    Ok(applied)
}

fn read_applied(rows: &[Row]) -> Result<Vec<Applied>, Fault> {
    let read = rows.iter().map(|row| {
        Ok(Applied {
            version: small(row, 0)?,
            oldest: small(row, 1)?,
            checksum: get(row, 2)?,
            is_finished: true,
        })
    });
    read.collect()
}

/// The steps that a database still needs; an error if this program must not use it.
fn missing(applied: &[Applied]) -> Result<Vec<&'static Step>, StoreError> {
    missing_of(STEPS, applied)
}

fn missing_of<'a>(steps: &'a [Step], applied: &[Applied]) -> Result<Vec<&'a Step>, StoreError> {
    let newest = steps.last().map_or(0, |step| step.version);
    for known in applied {
        match steps.iter().find(|step| step.version == known.version) {
            Some(step) if checksum_of(step.sql)[..] == known.checksum => {}
            Some(_) => {
                return Err(StoreError::Corrupt(format!(
                    "migration {} of the database is not the one this toolgate was built with",
                    known.version
                )));
            }
            None if known.oldest <= newest => {}
            None => {
                return Err(StoreError::Corrupt(format!(
                    "the database has version {}, which needs a toolgate that knows version {}; this one knows up to {newest}",
                    known.version, known.oldest
                )));
            }
        }
    }
    let is_done = |step: &Step| {
        let mut done = applied.iter().filter(|known| known.is_finished);
        done.any(|known| known.version == step.version)
    };
    Ok(steps.iter().filter(|step| !is_done(step)).collect())
}

fn checksum_of(sql: &str) -> Vec<u8> {
    Sha256::digest(sql).to_vec()
}
