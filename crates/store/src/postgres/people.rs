//! People who were deleted: nothing begins for them any more.

use std::collections::BTreeSet;

use sha2::{Digest, Sha256};
use toolgate_engine::store::{Deleted, StoreError};
use toolgate_kernel::id::{EntityId, ProjectId};
use toolgate_kernel::time::Time;

use super::column::{Id, Param, change, first, id, uuids};
use super::fault::Fault;
use super::retention::remember;
use super::session::Db;

// A lock per person, in memory alone: whoever begins something for them shares it until that is stored, and whoever deletes them
// has it to itself. So what was begun before is found, and what begins later sees the deletion.
pub(super) const LOCK_SHARED: &str =
    "SELECT pg_advisory_xact_lock_shared(lock) FROM unnest($1::bigint[]) AS locks (lock)";
const LOCK: &str = "SELECT pg_advisory_xact_lock($1)";

/// The locks of people, in order.
pub(super) fn lock_keys(people: &BTreeSet<EntityId>) -> Vec<i64> {
    let keys: BTreeSet<i64> = people.iter().map(|person| lock_key(*person)).collect();
    keys.into_iter().collect()
}

/// Two people may share a key, which only makes one wait for the other.
fn lock_key(person: EntityId) -> i64 {
    let mut hash = Sha256::new();
    hash.update(b"person");
    hash.update(person.to_bytes());
    let hash: [u8; 32] = hash.finalize().into();
    let [a, b, c, d, e, f, g, h, ..] = hash;
    i64::from_le_bytes([a, b, c, d, e, f, g, h])
}

/// Those of these people who were deleted.
pub(super) const DELETED_OF: &str = "
    SELECT person FROM unnest($1::uuid[]) AS named (person)
    WHERE EXISTS (SELECT 1 FROM deleted WHERE id = '\\x65'::bytea || uuid_send(named.person))";

/// Rejects what would begin for people who were deleted, and keeps the others from being deleted until it is stored.
pub(super) async fn check(db: &Db<'_>, people: &[EntityId]) -> Result<(), Fault> {
    let people: BTreeSet<EntityId> = people.iter().copied().collect();
    if people.is_empty() {
        return Ok(());
    }
    db.query(LOCK_SHARED, &[&lock_keys(&people)]).await?;
    match db.query(DELETED_OF, &[&uuids(people)]).await?.is_empty() {
        true => Ok(()),
        false => Err(StoreError::EntityDeleted.into()),
    }
}

const PROJECT: &str = "SELECT project FROM entities WHERE id = $1 FOR UPDATE";
const REMOVE: &str = "DELETE FROM entities WHERE id = $1";

/// Removes a person's row, and remembers that it was deleted. False when there is no such person.
pub(super) async fn remove(
    db: &Db<'_>,
    project: ProjectId,
    person: EntityId,
    now: Time,
) -> Result<bool, Fault> {
    db.query(LOCK, &[&lock_key(person)]).await?;
    let key: [Param<'_>; 1] = [&person.uuid()];
    let of = first(db, PROJECT, &key, |row| id::<ProjectId>(row, 0)).await?;
    if of.is_some_and(|of| of != project) {
        return Ok(false);
    }
    change(db, REMOVE, &key).await?;
    remember(db, project, std::iter::once(Deleted::Entity(person)), now).await?;
    Ok(of.is_some())
}
