//! What is left of deleted people and runs: in memory of other nodes, in logs, in sums and in the archive.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use serde_json::{Value, json};
use tokio::sync::Semaphore;
use toolgate_engine::consumption::{Consumer, Days};
use toolgate_engine::deletion::{Deletions, Export};
use toolgate_engine::intake::Answer;
use toolgate_engine::model::Ask;
use toolgate_engine::records::{Change, NewRecord, Owner, RecordSet, Records};
use toolgate_engine::retention::{
    Archive, ArchiveError, ArchiveObject, Archived, Retention, RetentionRules, Rules,
};
use toolgate_engine::store::{EntityRecord, LogRange, SpaceRecord, Store, StoreError};
use toolgate_engine::usage::Day;
use toolgate_kernel::history::Earlier;
use toolgate_kernel::id::{EntityId, NodeId, ProjectId, RunId, SpaceId};
use toolgate_kernel::message::Part;
use toolgate_kernel::time::Time;
use toolgate_store::MemoryStore;
use toolgate_testkit::scripted_model::{Say, ScriptedModel, call, last_results, text};
use uuid::Uuid;

use crate::world::{Setup, World, project};

const SECRET: &str = "adas address";

fn ada() -> EntityId {
    EntityId::from_bytes([7; 16])
}

fn bob() -> EntityId {
    EntityId::from_bytes([8; 16])
}

fn entity(id: EntityId, subject: &str) -> EntityRecord {
    EntityRecord {
        id,
        project: project(),
        subject: subject.into(),
        kind: "user".into(),
        name: None,
        metadata: None,
        grants: Vec::new(),
        created: Time(0),
    }
}

/// A space that ada and bob are members of.
async fn shared_space(store: &dyn Store, number: u8, members: Vec<EntityId>) -> SpaceRecord {
    for (id, subject) in [(ada(), "ada"), (bob(), "bob")] {
        store.put_entity(entity(id, subject)).await.unwrap();
    }
    let space = SpaceRecord {
        id: SpaceId::from_bytes([number; 16]),
        project: project(),
        title: None,
        agent: None,
        metadata: None,
        by_backend: true,
        members,
        created: Time(0),
    };
    store.create_space(space.clone()).await.unwrap();
    space
}

async fn post(world: &World, space: SpaceId, who: EntityId, words: &str) -> Option<RunId> {
    let mut post = world.post_to(Some(space), words);
    post.message.from = Some(who);
    world.engine.post(post).await.unwrap().run_id
}

async fn talk(world: &World, space: SpaceId, who: EntityId, words: &str) -> RunId {
    let run = post(world, space, who, words).await.unwrap();
    world.finish(run).await;
    run
}

fn deletions(world: &World, records: Arc<MemoryStore>) -> Deletions {
    Deletions::new(world.engine.clone(), records, Arc::new(Rules::default()))
}

async fn stored(store: &dyn Store, space: SpaceId) -> String {
    let log = store.space_log(space, LogRange::default()).await.unwrap();
    let events: Vec<_> = log.entries.iter().flat_map(|entry| &entry.events).collect();
    serde_json::to_string(&events).unwrap()
}

fn last_ask(model: &ScriptedModel) -> String {
    format!("{:?}", model.asked().last().expect("it was asked").turns)
}

/// Two nodes that share a store and hear nothing of each other.
async fn deaf_pair(
    script: impl Fn(&Ask) -> Vec<Say> + Clone + Send + Sync + 'static,
) -> (World, World, Arc<MemoryStore>) {
    let store = Arc::new(MemoryStore::new());
    let node = |number: u128| Setup {
        store: store.clone(),
        records: store.clone(),
        node: NodeId::new(Uuid::from_u128(number)),
        model: ScriptedModel::new(script.clone()),
        ..Setup::default()
    };
    let (a, b) = (World::with(node(1)).await, World::with(node(2)).await);
    (a, b, store)
}

#[tokio::test(start_paused = true)]
async fn words_that_another_node_deleted_are_not_told_to_a_model_although_no_notice_came() {
    let (a, b, store) = deaf_pair(|_| vec![text("fine")]).await;
    let space = shared_space(&*store, 1, vec![ada(), bob()]).await.id;
    talk(&b, space, ada(), SECRET).await;
    talk(&b, space, bob(), "hello").await;
    assert!(last_ask(&b.model).contains(SECRET), "it is a conversation");
    let deletions = deletions(&a, store.clone());
    deletions.delete_entity(&entity(ada(), "ada")).await.unwrap();
    talk(&b, space, bob(), "and now?").await;
    let asked = last_ask(&b.model);
    assert!(!asked.contains(SECRET), "{asked}");
    assert!(asked.contains("hello"), "{asked}");
}

#[tokio::test(start_paused = true)]
async fn a_run_under_way_forgets_words_that_are_deleted_meanwhile() {
    let gate = Arc::new(Semaphore::new(0));
    let held = gate.clone();
    let script = move |ask: &Ask| match last_results(ask) {
        Some(_) => vec![text("done")],
        None => vec![Say::Gate(held.clone()), call("mirror", "{}")],
    };
    let (a, b, store) = deaf_pair(script).await;
    let space = shared_space(&*store, 1, vec![ada(), bob()]).await.id;
    gate.add_permits(1);
    talk(&b, space, ada(), SECRET).await;
    let run = post(&b, space, bob(), "work").await.unwrap();
    while b.model.asked().len() < 3 {
        tokio::task::yield_now().await;
    }
    assert!(last_ask(&b.model).contains(SECRET));
    let deletions = deletions(&a, store.clone());
    deletions.delete_entity(&entity(ada(), "ada")).await.unwrap();
    gate.add_permits(1);
    b.finish(run).await;
    assert_eq!(b.model.asked().len(), 4);
    let asked = last_ask(&b.model);
    assert!(!asked.contains(SECRET) && asked.contains("work"), "{asked}");
}

#[tokio::test(start_paused = true)]
async fn what_clients_told_of_the_past_is_exported_and_goes_with_its_person() {
    let world = World::new().await;
    let store = world.store.clone();
    let told = || {
        let parts = vec![Part::Text { text: SECRET.into() }];
        vec![Earlier::User(parts)]
    };
    // Told with a message, and of a new space; others become members later.
    let alone = shared_space(&*store, 2, vec![ada()]).await;
    world.engine.tell_past(&alone, told()).await.unwrap();
    let mut first = world.post_to(None, "and tomorrow?");
    first.message.from = Some(ada());
    first.told = told();
    let brought = world.engine.post(first).await.unwrap();
    world.finish(brought.run_id.unwrap()).await;
    let spaces = [alone.id, brought.space_id];
    for space in spaces {
        for member in [ada(), bob()] {
            world.engine.add_member(space, member).await.unwrap();
        }
        assert!(stored(&*store, space).await.contains(SECRET), "{space}");
    }
    let deletions = deletions(&world, Arc::new(MemoryStore::new()));
    let (mut export, mut lines) = (Export::of(entity(ada(), "ada")), String::new());
    while let Some(more) = deletions.export(&mut export).await.unwrap() {
        lines += std::str::from_utf8(&more).unwrap();
    }
    assert_eq!(lines.matches(SECRET).count(), 2, "{lines}");
    deletions.delete_entity(&entity(ada(), "ada")).await.unwrap();
    for space in spaces {
        let left = stored(&*store, space).await;
        assert!(!left.contains(SECRET) && left.contains("history"), "{left}");
    }
}

#[tokio::test(start_paused = true)]
async fn nothing_names_a_deleted_person_in_records_of_others_or_in_sums() {
    let store = Arc::new(MemoryStore::new());
    let setup = Setup {
        store: store.clone(),
        records: store.clone(),
        ..Setup::default()
    };
    let world = World::with(setup).await;
    let space = shared_space(&*store, 1, vec![ada(), bob()]).await.id;
    talk(&world, space, ada(), "hello").await;
    talk(&world, space, bob(), "hello").await;
    let set = |owner, kind| RecordSet {
        project: project(),
        owner,
        kind,
    };
    let sets = [
        set(Owner::Space(space), "consent"),
        set(Owner::Space(SpaceId::from_bytes([9; 16])), "plan"),
    ];
    for set in sets {
        let changes = [ada(), bob()].map(|person| {
            Change::Put(NewRecord {
                id: format!("of {person}"),
                body: json!({"by": person, "what": set.kind}).into(),
                text: None,
                data: None,
                due: None,
            })
        });
        let changes = changes.into_iter().collect();
        store
            .change_records(set, Vec::new(), changes, Time(1))
            .await
            .unwrap();
    }
    let deletions = deletions(&world, store.clone());
    let (mut export, mut kinds) = (Export::of(entity(ada(), "ada")), BTreeMap::<String, usize>::new());
    while let Some(more) = deletions.export(&mut export).await.unwrap() {
        for line in std::str::from_utf8(&more).unwrap().lines() {
            let line: Value = serde_json::from_str(line).unwrap();
            *kinds.entry(line["kind"].as_str().unwrap().into()).or_default() += 1;
        }
    }
    assert_eq!((kinds.get("plan"), kinds.get("consent")), (Some(&1), Some(&1)));

    let today = Day::of(world.now());
    let days = Days {
        first: today,
        last: today,
    };
    let runs = async |consumer| {
        let consumed = world.engine.consumed(project(), consumer, days).await;
        consumed.unwrap().runs
    };
    assert_eq!(runs(Consumer::User(ada())).await, 1);
    deletions.delete_entity(&entity(ada(), "ada")).await.unwrap();
    assert_eq!(runs(Consumer::User(ada())).await, 0);
    assert_eq!(runs(Consumer::Project).await, 2, "what was consumed stays");
    for set in sets {
        let listing = toolgate_engine::records::Listing {
            limit: 9,
            ..Default::default()
        };
        let left = store.list_records(set, listing).await.unwrap();
        let ids: Vec<_> = left.into_iter().map(|record| record.id).collect();
        assert_eq!(ids, [format!("of {}", bob())], "{}", set.kind);
    }
}

/// An archive in memory.
#[derive(Clone, Default)]
struct Kept(Arc<Mutex<BTreeMap<String, String>>>);

struct Object {
    kept: Kept,
    name: String,
    text: String,
}

impl Archive for Kept {
    fn begin(&self, name: &str) -> Box<dyn ArchiveObject> {
        Box::new(Object {
            kept: self.clone(),
            name: name.into(),
            text: String::new(),
        })
    }
}

#[async_trait]
impl ArchiveObject for Object {
    fn write(&mut self, line: &[u8]) {
        self.text += std::str::from_utf8(line).unwrap();
    }
    async fn finish(self: Box<Self>) -> Result<Archived, ArchiveError> {
        let bytes = self.text.len() as u64;
        self.kept.0.lock().unwrap().insert(self.name, self.text);
        let hash = "00".into();
        Ok(Archived { hash, bytes })
    }
}

#[async_trait]
impl RetentionRules for Kept {
    async fn rules(&self, _: ProjectId) -> Result<Rules, StoreError> {
        Ok(Rules {
            runs: Some(Duration::from_secs(60)),
            ..Rules::default()
        })
    }
    async fn archive(&self, _: ProjectId) -> Result<Option<Arc<dyn Archive>>, StoreError> {
        Ok(Some(Arc::new(self.clone())))
    }
}

#[tokio::test(start_paused = true)]
async fn messages_that_started_no_run_are_archived_before_they_are_deleted() {
    let store = Arc::new(MemoryStore::new());
    let setup = Setup {
        store: store.clone(),
        records: store.clone(),
        ..Setup::default()
    };
    let world = World::with(setup).await;
    let busy = shared_space(&*store, 1, vec![ada(), bob()]).await.id;
    let quiet = shared_space(&*store, 2, vec![ada(), bob()]).await.id;
    let aside = async |space: SpaceId, words: &str| {
        let mut post = world.post_to(Some(space), words);
        post.answer = Answer::None;
        assert_eq!(world.engine.post(post).await.unwrap().run_id, None);
    };
    aside(busy, "said aside").await;
    talk(&world, busy, bob(), "said to the agent").await;
    aside(quiet, "said to nobody").await;
    world.rest().await;
    world.clock.jump(120_000);
    aside(busy, "said later").await;

    let kept = Kept::default();
    let rules: Arc<dyn RetentionRules> = Arc::new(kept.clone());
    let deletions = Deletions::new(world.engine.clone(), store.clone(), rules.clone());
    let retention = Retention::new(
        world.engine.clone(),
        Arc::new(deletions),
        rules,
        Duration::from_secs(60),
    );
    assert!(retention.apply().await.unwrap());
    let archived: String = kept.0.lock().unwrap().values().cloned().collect();
    for words in ["said aside", "said to the agent", "said to nobody"] {
        assert!(archived.contains(words), "{words}: {archived}");
    }
    assert_eq!(archived.matches("said aside").count(), 1, "once is enough");
    assert!(!archived.contains("said later"), "{archived}");
    let left = stored(&*store, busy).await;
    assert!(left.contains("said later") && !left.contains("aside"), "{left}");
    assert_eq!(stored(&*store, quiet).await, "[]");
}
