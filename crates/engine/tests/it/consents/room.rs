//! A space has room for so many consents, revoked ones included: which of them go.

use std::sync::Arc;

use serde_json::json;
use toolgate_bus::InProcessBus;
use toolgate_engine::consents::{CONSENTS_MAX, ConsentRecord};
use toolgate_engine::intake::Decision;
use toolgate_engine::record_index::put;
use toolgate_engine::records::{Amendment, RecordSet, Records};
use toolgate_kernel::id::{ApprovalId, NodeId, SpaceId};
use toolgate_kernel::time::Time;
use toolgate_store::MemoryStore;
use uuid::Uuid;

use super::{ADA, BOB, approve, asks, call_of, consents, consents_of, member, say, setup, space};
use crate::meanwhile::MeanwhileRecords;
use crate::world::{Setup, World, project};

#[tokio::test(start_paused = true)]
async fn a_space_keeps_so_many_consents_and_one_that_cannot_be_read_holds_nothing_up() {
    let records = Arc::new(MemoryStore::new());
    let world = World::with(Setup {
        records: records.clone(),
        ..setup(json!("first-in-space"))
    })
    .await;
    let space = space(&world).await;
    let set = consents_of(space);
    let broken = |number: usize| {
        let body = json!({"unreadable": number}).into();
        put(format!("consent_{number:05}"), body)
    };
    let amendment = Amendment {
        changes: (0..CONSENTS_MAX).map(broken).collect(),
        ..Amendment::default()
    };
    records.amend_records(set, amendment, Time(0)).await.unwrap();
    let approval = asks(&world, space, Some(ADA)).await.unwrap();
    approve(&world, approval, member(ADA)).await;
    assert_eq!(asks(&world, space, Some(ADA)).await, None);
    assert_eq!(consents(&world, space).await.len(), 1);
    assert_eq!(records.records_size(set).await.unwrap().0, CONSENTS_MAX as u64);
}

/// The consents of a space, with others beside them that no call is for.
struct Shelf {
    records: Arc<MemoryStore>,
    set: RecordSet,
    sample: ConsentRecord,
}

impl Shelf {
    /// Adds consents of other tools, given and revoked at these times.
    async fn fill(&self, count: usize, given_at: Time, revoked_at: Option<Time>) {
        let filler = |number: usize| {
            let consent = ConsentRecord {
                tool: format!("other_{number}").parse().unwrap(),
                given_at,
                revoked_at,
                ..self.sample.clone()
            };
            let body = serde_json::to_value(&consent).unwrap().into();
            put(format!("consent_{number:05}"), body)
        };
        let amendment = Amendment {
            changes: (0..count).map(filler).collect(),
            ..Amendment::default()
        };
        self.records
            .amend_records(self.set, amendment, Time(0))
            .await
            .unwrap();
    }

    async fn has(&self, id: &str) -> bool {
        self.records.record(self.set, id).await.unwrap().is_some()
    }

    async fn size(&self) -> usize {
        self.records.records_size(self.set).await.unwrap().0 as usize
    }
}

/// A space where Ada's consent was revoked: the question that she answered, and the mark.
async fn revoked_consent(records: Arc<MemoryStore>, world: &World, space: SpaceId) -> (ApprovalId, Shelf) {
    let approval = asks(world, space, Some(ADA)).await.unwrap();
    approve(world, approval, member(ADA)).await;
    let sample = consents(world, space).await.remove(0);
    world.clock.jump(1_000);
    let revoked = world
        .engine
        .revoke_consent(project(), space, &sample.id, |_| true);
    assert!(revoked.await.unwrap());
    world.rest().await;
    let set = consents_of(space);
    let shelf = Shelf { records, set, sample };
    (approval, shelf)
}

/// Ada answers again as she did: the run is read from its log, with the remembered decision in it.
async fn answer_again(world: &World, approval: ApprovalId) {
    let same = world
        .engine
        .decide(approval, Decision::Approve(None), member(ADA));
    assert!(same.await.unwrap().remembered);
    world.rest().await;
}

#[tokio::test(start_paused = true)]
async fn a_space_full_of_revoked_consents_remembers_another_and_revives_none() {
    let records = Arc::new(MemoryStore::new());
    let world = World::with(Setup {
        records: records.clone(),
        ..setup(json!("first-in-space"))
    })
    .await;
    let space = space(&world).await;
    let (old, shelf) = revoked_consent(records, &world, space).await;
    world.clock.jump(1_000);
    // The mark is the oldest: it goes first.
    let later = Time(shelf.sample.given_at.0 + 2_000);
    shelf.fill(CONSENTS_MAX - 1, later, Some(later)).await;
    let approval = asks(&world, space, Some(ADA)).await.unwrap();
    approve(&world, approval, member(BOB)).await;
    assert_eq!(
        asks(&world, space, Some(ADA)).await,
        None,
        "the new consent counts"
    );
    assert!(!shelf.has(&shelf.sample.id).await, "there was no other room");
    let known = consents(&world, space).await;
    answer_again(&world, old).await;
    assert_eq!(consents(&world, space).await, known, "nothing came back");
    // Again and again: the number of records stays, and each new consent counts.
    for person in [ADA, BOB] {
        let mine = consents(&world, space).await.remove(0);
        world.clock.jump(1_000);
        let revoked = world.engine.revoke_consent(project(), space, &mine.id, |_| true);
        assert!(revoked.await.unwrap());
        world.clock.jump(1_000);
        let approval = asks(&world, space, Some(ADA)).await.unwrap();
        approve(&world, approval, member(person)).await;
        assert_eq!(asks(&world, space, Some(ADA)).await, None);
        assert_eq!(
            shelf.size().await,
            CONSENTS_MAX + 1,
            "with the mark that stands for those that went"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_full_space_drops_revoked_consents_first_and_then_the_oldest() {
    let records = Arc::new(MemoryStore::new());
    let world = World::with(Setup {
        records: records.clone(),
        ..setup(json!("first-in-space"))
    })
    .await;
    let space = space(&world).await;
    let (old, shelf) = revoked_consent(records, &world, space).await;
    // All of these count, and are older than the mark.
    shelf.fill(CONSENTS_MAX - 1, Time(1), None).await;
    world.clock.jump(1_000);
    let approval = asks(&world, space, Some(ADA)).await.unwrap();
    approve(&world, approval, member(BOB)).await;
    assert!(!shelf.has(&shelf.sample.id).await);
    assert_eq!(consents(&world, space).await.len(), CONSENTS_MAX);
    answer_again(&world, old).await;
    assert!(!shelf.has(&shelf.sample.id).await, "it was revoked");
    // No mark is left: the oldest goes.
    world.clock.jump(1_000);
    let run = say(&world, space, Some(ADA), "call:board").await.run_id.unwrap();
    let asked = call_of(&world, run).await.1.unwrap();
    let yes = world.engine.decide(asked, Decision::Approve(None), member(BOB));
    assert!(yes.await.unwrap().remembered);
    assert_eq!(consents(&world, space).await.len(), CONSENTS_MAX);
    assert!(!shelf.has("consent_00000").await);
}

#[tokio::test(start_paused = true)]
async fn a_consent_that_is_revoked_while_it_makes_room_for_another_stays_revoked() {
    let (store, inner) = (Arc::new(MemoryStore::new()), Arc::new(MemoryStore::new()));
    let bus = Arc::new(InProcessBus::default());
    let between = Arc::new(MeanwhileRecords::new(inner.clone()));
    let node = |number, records: Arc<dyn Records>| Setup {
        store: store.clone(),
        records,
        bus: bus.clone(),
        node: NodeId::new(Uuid::from_u128(number)),
        ..setup(json!("first-in-space"))
    };
    let (a, b) = (
        World::with(node(1, between.clone())).await,
        World::with(node(2, inner.clone())).await,
    );
    let space = space(&a).await;
    let old = asks(&a, space, Some(ADA)).await.unwrap();
    approve(&a, old, member(ADA)).await;
    let sample = consents(&a, space).await.remove(0);
    let shelf = Shelf {
        records: inner,
        set: consents_of(space),
        sample: sample.clone(),
    };
    let later = Time(sample.given_at.0 + 500);
    shelf.fill(CONSENTS_MAX - 1, later, None).await;
    a.clock.jump(1_000);
    let run = say(&a, space, Some(ADA), "call:board").await.run_id.unwrap();
    let asked = call_of(&a, run).await.1.unwrap();
    // Hers is the oldest. It is revoked on the other node once this one has read that it has to go.
    let (engine, id) = (b.engine.clone(), sample.id.clone());
    between.before_next(async move {
        let revoked = engine.revoke_consent(project(), space, &id, |_| true);
        assert!(revoked.await.unwrap());
    });
    let yes = a.engine.decide(asked, Decision::Approve(None), member(BOB));
    assert!(yes.await.unwrap().remembered);
    a.rest().await;
    answer_again(&a, old).await;
    let known = consents(&a, space).await;
    assert!(known.iter().any(|consent| consent.tool.as_str() == "board"));
    assert!(
        known.iter().all(|consent| consent.id != sample.id),
        "it came back"
    );
}
