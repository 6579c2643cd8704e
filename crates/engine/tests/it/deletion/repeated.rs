//! Deletions that break off in the middle, and requests that are repeated meanwhile.

use std::sync::Arc;

use toolgate_engine::deletion::{DeletionError, Deletions};
use toolgate_engine::retention::Rules;
use toolgate_engine::store::{Deleted, RunFilter, RunRecord};
use toolgate_kernel::id::SpaceId;
use toolgate_store::MemoryStore;
use toolgate_testkit::faulty_store::FaultyStore;

use super::{ada, entity, shared_space, stored, talk};
use crate::world::{Setup, World, project};

/// Longer than a deletion is left to the node that worked on it last.
const LATER: i64 = 61_000;

/// A person's own space in which a run has a child run, and a store that can fail.
async fn begun() -> (World, Arc<FaultyStore>, Deletions, SpaceId, RunRecord) {
    let memory = Arc::new(MemoryStore::new());
    let store = Arc::new(FaultyStore::new(memory.clone(), 0, 0));
    let setup = Setup {
        store: store.clone(),
        records: memory.clone(),
        ..Setup::default()
    };
    let world = World::with(setup).await;
    let space = shared_space(&*store, 1, vec![ada()]).await.id;
    let run = talk(&world, space, ada(), r#"call:helper={"prompt":"look"}"#).await;
    world.rest().await;
    let filter = RunFilter {
        root: Some(run),
        limit: 9,
        ..RunFilter::default()
    };
    let below = world.store.runs(project(), filter).await.unwrap().runs;
    let child = below.into_iter().next().expect("a child run");
    let deletions = Deletions::new(world.engine.clone(), memory, Arc::new(Rules::default()));
    (world, store, deletions, space, child)
}

#[tokio::test(start_paused = true)]
async fn a_person_is_gone_when_a_repeated_request_says_so() {
    let (world, store, deletions, space, child) = begun().await;
    let ada = entity(ada(), "ada");
    // The rows of the runs are gone by then, of the logs nothing is.
    store.refuse(Some("trim_log"));
    deletions.delete_entity(&ada).await.unwrap_err();
    store.refuse(None);
    world.clock.jump(LATER);
    // The entity itself is gone when it breaks off a second time.
    store.refuse(Some("find_entries"));
    deletions.delete_entity(&ada).await.unwrap_err();
    store.refuse(None);
    for space in [space, child.space] {
        assert_eq!(stored(&*store, space).await, "[]");
    }
    for named in ["ada".to_owned(), ada.id.to_string()] {
        let again = deletions.delete_entity_again(project(), &named).await;
        assert!(matches!(again, Err(DeletionError::UnderWay)), "{again:?}");
    }
    let other = deletions.delete_entity_again(project(), "bob").await;
    assert!(other.unwrap().is_none());
    world.clock.jump(LATER);
    let again = deletions.delete_entity_again(project(), "ada").await;
    let removed = again.unwrap().expect("it is finished now");
    assert_eq!(removed.get("spaces"), Some(&1), "of all attempts: {removed:?}");
    let again = deletions.delete_entity_again(project(), "ada").await;
    assert!(again.unwrap().is_none());
}

#[tokio::test(start_paused = true)]
async fn a_space_is_gone_when_a_repeated_request_says_so() {
    let (world, store, deletions, space, child) = begun().await;
    let record = world.store.space(space).await.unwrap().expect("the space");
    store.refuse(Some("trim_log"));
    deletions.delete_space(&record).await.unwrap_err();
    store.refuse(None);
    let deleted = Deleted::Space(space);
    let again = deletions.delete_again(project(), deleted).await;
    assert!(matches!(again, Err(DeletionError::UnderWay)), "{again:?}");
    world.clock.jump(LATER);
    let removed = deletions.delete_again(project(), deleted).await.unwrap();
    let removed = removed.expect("it is finished now");
    assert_eq!(removed.get("spaces"), Some(&1), "of all attempts: {removed:?}");
    for space in [space, child.space] {
        assert_eq!(stored(&*store, space).await, "[]");
    }
    let removed = deletions.delete_again(project(), deleted).await.unwrap();
    assert!(removed.expect("it was deleted").is_empty());
}
