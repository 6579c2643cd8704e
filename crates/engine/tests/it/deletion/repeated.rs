//! Deletions that break off in the middle, and requests that are repeated meanwhile.

use std::sync::Arc;

use toolgate_engine::deletion::{DeletionError, Deletions};
use toolgate_engine::retention::Rules;
use toolgate_engine::store::{Deleted, RunFilter, RunRecord, SpaceRecord, StoreError};
use toolgate_kernel::id::{EntityId, SpaceId};
use toolgate_store::MemoryStore;
use toolgate_testkit::faulty_store::FaultyStore;

use super::{SECRET, ada, bob, entity, shared_space, stored, talk};
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
    // The spaces are gone when it breaks off a second time.
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
async fn a_person_who_goes_on_making_spaces_cannot_keep_their_deletion_from_ending() {
    let (world, _, deletions, space, _) = begun().await;
    let own = world.store.space(space).await.unwrap().expect("the space");
    let maker = async {
        for number in 100..200 {
            let next = SpaceRecord {
                id: SpaceId::from_bytes([number; 16]),
                ..own.clone()
            };
            match world.store.create_space(next).await {
                Ok(()) => {}
                Err(StoreError::EntityDeleted) => return number,
                Err(error) => panic!("{error}"),
            }
        }
        panic!("they are never refused");
    };
    let ada = entity(ada(), "ada");
    let (_, removed) = tokio::join!(maker, deletions.delete_entity(&ada));
    removed.unwrap();
    let left = world
        .store
        .spaces(project(), Some(ada.id), None, 9)
        .await
        .unwrap();
    assert!(left.is_empty(), "{left:?}");
}

#[tokio::test(start_paused = true)]
async fn a_deletion_is_finished_wherever_it_breaks_off_and_leaves_a_new_person_of_the_same_name_alone() {
    let new = entity(EntityId::from_bytes([17; 16]), "ada");
    for step in [
        "remove_entity",
        "spaces",
        "remove_space",
        "runs",
        "remove_runs",
        "trim_log",
        "remove_records",
        "remove_member",
        "find_entries",
        "rewrite_entry",
        "unlink_runs",
        "unlink_consumption",
    ] {
        let (world, store, deletions, own, child) = begun().await;
        let shared = shared_space(&*store, 2, vec![ada(), bob()]).await.id;
        talk(&world, shared, ada(), SECRET).await;
        store.refuse(Some(step));
        deletions.delete_entity(&entity(ada(), "ada")).await.unwrap_err();
        store.refuse(None);
        let known = world.store.ensure_entity(new.clone()).await.unwrap();
        assert_eq!(known == new, step != "remove_entity", "{step}");
        let theirs = SpaceId::from_bytes([3; 16]);
        if known == new {
            let space = SpaceRecord {
                id: theirs,
                members: vec![new.id],
                ..world.store.space(shared).await.unwrap().expect("the space")
            };
            world.store.create_space(space).await.unwrap();
            talk(&world, theirs, new.id, "I am new").await;
        }

        world.clock.jump(LATER);
        deletions.work_off().await;
        let again = deletions.delete_entity_again(project(), "ada").await;
        assert!(again.unwrap().is_none(), "{step}: it is finished");
        assert_eq!(world.store.entity(ada()).await.unwrap(), None, "{step}");
        for space in [own, child.space] {
            assert_eq!(stored(&*store, space).await, "[]", "{step}");
            assert_eq!(world.store.space(space).await.unwrap(), None, "{step}");
        }
        let members = world
            .store
            .space(shared)
            .await
            .unwrap()
            .expect("it stays")
            .members;
        assert_eq!(members, [bob()], "{step}");
        let left = stored(&*store, shared).await;
        assert!(!left.contains(&ada().to_string()), "{step}: {left}");
        // What agents wrote stays, also where it quotes the person.
        assert_eq!(left.matches(SECRET).count(), 1, "{step}: {left}");
        if known == new {
            assert_eq!(world.store.entity(new.id).await.unwrap(), Some(new.clone()));
            let kept = stored(&*store, theirs).await;
            assert!(kept.contains("I am new"), "{step}: {kept}");
        }
    }
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
