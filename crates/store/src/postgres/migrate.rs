//! Migrates a database to the schema of this version, while nodes of other versions may use it.
//!
//! Every migration says which version of the schema a program must know at least to go on working beside it. One that only
//! adds (a table, an index, a column that may be left out) names the same version as the one before: programs that
//! have never heard of it are accepted. One that takes something away names the version that does without it, and older
//! programs are refused. So an upgrade that removes something takes two releases: the first stops to use it.

use std::time::Duration;

use sha2::{Digest, Sha256};
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
];

/// The advisory lock that whoever migrates holds: `toolgate` in ASCII.
const LOCK: i64 = 0x746f_6f6c_6761_7465;

/// How long to wait for another program that migrates.
const WAIT: Duration = Duration::from_secs(300);

const TABLE: &str = "
    CREATE TABLE IF NOT EXISTS migrations (
        version  bigint      NOT NULL PRIMARY KEY,
        oldest   bigint      NOT NULL,
        checksum bytea       NOT NULL,
        applied  timestamptz NOT NULL DEFAULT now()
    )";
const APPLIED: &str = "SELECT version, oldest, checksum FROM migrations ORDER BY version";
const APPLY: &str = "INSERT INTO migrations (version, oldest, checksum) VALUES ($1, $2, $3)";

/// Applies missing migrations and returns their versions. Rejects a database that needs a newer program, or one made by
/// other migrations. Of several programs that start at once, one migrates.
pub(crate) async fn migrate(session: &mut Session) -> Result<Vec<u32>, Fault> {
    if missing(&applied(session).await?)?.is_empty() {
        return Ok(Vec::new());
    }
    // A migration may take longer than any other statement, and waiting for the lock as well.
    session
        .client
        .batch_execute("SET statement_timeout = 0; SET lock_timeout = 0")
        .await?;
    let locking = session.client.execute("SELECT pg_advisory_lock($1)", &[&LOCK]);
    tokio::time::timeout(WAIT, locking).await.map_err(|_| {
        Fault::Failed(format!(
            "another program migrates the database for more than {WAIT:?}"
        ))
    })??;
    // It may have been migrated while this one waited.
    let missing = missing(&applied(session).await?)?;
    for step in &missing {
        apply(session, step).await?;
    }
    Ok(missing.iter().map(|step| step.version).collect())
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

async fn apply(session: &mut Session, step: &Step) -> Result<(), Fault> {
    let transaction = session.client.transaction().await?;
    transaction.batch_execute(TABLE).await?;
    transaction.batch_execute(step.sql).await?;
    let (version, oldest) = (i64::from(step.version), i64::from(step.oldest));
    transaction
        .execute(APPLY, &[&version, &oldest, &checksum_of(step.sql)])
        .await?;
    Ok(transaction.commit().await?)
}

/// A migration that the database has.
struct Applied {
    version: u32,
    oldest: u32,
    checksum: Vec<u8>,
}

async fn applied(session: &Session) -> Result<Vec<Applied>, Fault> {
    // Asked first, because a user without the right to create tables may use a database that is migrated.
    const EXISTS: &str = "SELECT to_regclass('migrations') IS NOT NULL";
    let exists: bool = session.client.query_one(EXISTS, &[]).await?.try_get(0)?;
    if !exists {
        return Ok(Vec::new());
    }
    read_applied(&session.client.query(APPLIED, &[]).await?)
}

fn read_applied(rows: &[Row]) -> Result<Vec<Applied>, Fault> {
    let read = rows.iter().map(|row| {
        Ok(Applied {
            version: small(row, 0)?,
            oldest: small(row, 1)?,
            checksum: get(row, 2)?,
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
    let is_missing = |step: &&Step| applied.iter().all(|known| known.version != step.version);
    Ok(steps.iter().filter(is_missing).collect())
}

fn checksum_of(sql: &str) -> Vec<u8> {
    Sha256::digest(sql).to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn step(version: u32, oldest: u32, sql: &'static str) -> Step {
        Step { version, oldest, sql }
    }

    fn known(step: &Step) -> Applied {
        Applied {
            version: step.version,
            oldest: step.oldest,
            checksum: checksum_of(step.sql),
        }
    }

    /// What a program with the first `of_program` steps says of a database with the first `of_database`.
    fn check(of_program: usize, of_database: usize) -> Result<Vec<u32>, StoreError> {
        // The third takes away what the first made and the second does without.
        let steps = [step(1, 1, "a"), step(2, 1, "b"), step(3, 2, "c"), step(4, 2, "d")];
        let applied: Vec<Applied> = steps[..of_database].iter().map(known).collect();
        let missing = missing_of(&steps[..of_program], &applied)?;
        Ok(missing.iter().map(|step| step.version).collect())
    }

    #[test]
    fn a_program_works_beside_newer_ones_until_they_take_something_away() {
        assert_eq!(check(4, 0).unwrap(), [1, 2, 3, 4]);
        assert_eq!(check(4, 3).unwrap(), [4]);
        assert_eq!(check(1, 2).unwrap(), [0; 0]);
        assert_eq!(check(2, 4).unwrap(), [0; 0]);
        let words = check(1, 3).unwrap_err().to_string();
        assert!(words.contains("needs a toolgate that knows version 2"), "{words}");
    }

    #[test]
    fn a_changed_migration_is_refused() {
        let applied = [known(&step(1, 1, "other"))];
        assert!(missing_of(&[step(1, 1, "a")], &applied).is_err());
    }
}
