//! What is left of deleted people and runs: in memory of other nodes, in logs, in sums and in the archive.

mod expired;
mod repeated;

use std::collections::BTreeMap;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use tokio::sync::Semaphore;
use toolgate_engine::consumption::{Consumer, Days};
use toolgate_engine::deletion::{Deletions, Export};
use toolgate_engine::intake::{Answer, PostError};
use toolgate_engine::model::Ask;
use toolgate_engine::outbox::{Channel, Outbox};
use toolgate_engine::records::{Change, NewRecord, Owner, RecordSet, Records};
use toolgate_engine::retention::Rules;
use toolgate_engine::store::{EntityRecord, LogRange, SpaceRecord, Store, StoreError};
use toolgate_engine::usage::Day;
use toolgate_engine::workspace::{NewFile, Only, Place, Workspace, WorkspaceLimits};
use toolgate_kernel::history::Earlier;
use toolgate_kernel::id::{CallId, EntityId, NodeId, RunId, SpaceId};
use toolgate_kernel::message::Part;
use toolgate_kernel::time::Time;
use toolgate_store::MemoryStore;
use toolgate_testkit::scripted_model::{Say, ScriptedModel, call, last_results, text};
use uuid::Uuid;

use crate::meanwhile::MeanwhileRecords;
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
async fn nothing_begins_for_a_deleted_person_on_a_node_that_still_knows_them() {
    let (a, b, store) = deaf_pair(|_| vec![text("fine")]).await;
    let shared = shared_space(&*store, 1, vec![ada(), bob()]).await.id;
    let deletions = deletions(&a, store.clone());
    deletions.delete_entity(&entity(ada(), "ada")).await.unwrap();
    for (space, answer) in [
        (None, Answer::Default),
        (Some(shared), Answer::Default),
        (Some(shared), Answer::None),
    ] {
        let mut post = b.post_to(space, SECRET);
        post.message.from = Some(ada());
        post.answer = answer;
        let posted = b.engine.post(post).await;
        let is_refused = matches!(posted, Err(PostError::Store(StoreError::EntityDeleted)));
        assert!(is_refused, "{posted:?}");
    }
    assert_eq!(stored(&*store, shared).await, "[]");
    let left = a.store.spaces(project(), None, None, 9).await.unwrap();
    assert_eq!(left.iter().map(|space| space.id).collect::<Vec<_>>(), [shared]);
}

#[tokio::test(start_paused = true)]
async fn a_reply_under_way_at_a_deletion_counts_for_nobody() {
    let gate = Arc::new(Semaphore::new(0));
    let held = gate.clone();
    let script = move |_: &Ask| vec![Say::Gate(held.clone()), text("fine")];
    let (a, b, store) = deaf_pair(script).await;
    let space = shared_space(&*store, 1, vec![ada(), bob()]).await.id;
    let run = post(&b, space, ada(), "hello").await.unwrap();
    while b.model.asked().is_empty() {
        tokio::task::yield_now().await;
    }
    let deletions = deletions(&a, store.clone());
    deletions.delete_entity(&entity(ada(), "ada")).await.unwrap();
    gate.add_permits(1);
    b.finish(run).await;
    let today = Day::of(b.now());
    let days = Days {
        first: today,
        last: today,
    };
    let requests = async |consumer| {
        let consumed = b.engine.consumed(project(), consumer, days).await;
        consumed.unwrap().requests
    };
    assert_eq!(requests(Consumer::Project).await, 1);
    assert_eq!(requests(Consumer::User(ada())).await, 0);
}

#[tokio::test(start_paused = true)]
async fn deliveries_are_read_once_for_all_spaces_of_a_person() {
    let store = Arc::new(MemoryStore::new());
    let world = world_of(&store).await;
    let outbox = Outbox::new(store.clone(), world.clock.clone());
    for number in 1..=5 {
        let own = shared_space(&*store, number, vec![ada()]).await.id;
        let payload = json!({"type": "notification", "data": {"title": SECRET, "spaceId": own}});
        let queued = outbox.queue(project(), format!("{number}"), Channel::Webhook, payload);
        queued.await.unwrap();
    }
    let records = Arc::new(MeanwhileRecords::new(store.clone()));
    let rules = Arc::new(Rules::default());
    let deletions = Deletions::new(world.engine.clone(), records.clone(), rules);
    let removed = deletions.delete_entity(&entity(ada(), "ada")).await.unwrap();
    assert_eq!(
        (removed.get("spaces"), removed.get("delivery")),
        (Some(&5), Some(&5))
    );
    assert_eq!(records.pages_read("delivery"), 1);
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
    let lines = Value::from(exported(&deletions, entity(ada(), "ada")).await).to_string();
    assert_eq!(lines.matches(SECRET).count(), 2, "{lines}");
    deletions.delete_entity(&entity(ada(), "ada")).await.unwrap();
    for space in spaces {
        let left = stored(&*store, space).await;
        assert!(!left.contains(SECRET) && left.contains("history"), "{left}");
    }
}

/// All lines of a person's export.
async fn exported(deletions: &Deletions, of: EntityRecord) -> Vec<Value> {
    let (mut export, mut lines) = (Export::of(of), Vec::new());
    while let Some(more) = deletions.export(&mut export).await.unwrap() {
        let more = std::str::from_utf8(&more).unwrap().lines();
        lines.extend(more.map(|line| serde_json::from_str::<Value>(line).unwrap()));
    }
    lines
}

/// A world whose records are in its store.
async fn world_of(store: &Arc<MemoryStore>) -> World {
    let setup = Setup {
        store: store.clone(),
        records: store.clone(),
        ..Setup::default()
    };
    World::with(setup).await
}

#[tokio::test(start_paused = true)]
async fn files_of_spaces_of_their_own_are_exported_with_earlier_versions() {
    let store = Arc::new(MemoryStore::new());
    let world = world_of(&store).await;
    let own = [
        shared_space(&*store, 1, vec![ada()]).await.id,
        shared_space(&*store, 2, vec![ada()]).await.id,
    ];
    let shared = shared_space(&*store, 3, vec![ada(), bob()]).await.id;
    let workspace = Workspace::new(store.clone(), WorkspaceLimits::default());
    let files = [
        (own[0], "a.txt", "one"),
        (own[0], "a.txt", "two"),
        (own[0], "b.txt", "three"),
        (own[1], "a.txt", "four"),
        (shared, "a.txt", "of both"),
    ];
    for (space, path, content) in files {
        let new = NewFile {
            name: path.parse().unwrap(),
            mime: None,
            data: content.into(),
            only: Only::Always,
        };
        let place = Place {
            project: project(),
            space,
        };
        workspace.write(place, new, world.now()).await.unwrap();
    }
    let deletions = deletions(&world, store.clone());
    let lines = exported(&deletions, entity(ada(), "ada")).await;
    let files = lines.iter().filter(|line| line["kind"] == "file");
    let mut told: Vec<String> = files
        .map(|line| {
            let data = STANDARD.decode(line["data"].as_str().unwrap()).unwrap();
            let content = String::from_utf8(data).unwrap();
            format!("{} {} {content}", line["path"], line["content"]["version"])
        })
        .collect();
    told.sort();
    let all = [
        r#""a.txt" 1 four"#,
        r#""a.txt" 1 one"#,
        r#""a.txt" 2 two"#,
        r#""b.txt" 1 three"#,
    ];
    assert_eq!(told, all);
}

#[tokio::test(start_paused = true)]
async fn deliveries_go_with_the_run_the_space_or_the_person_that_they_are_of() {
    let store = Arc::new(MemoryStore::new());
    let world = world_of(&store).await;
    let own = shared_space(&*store, 1, vec![ada()]).await;
    let shared = shared_space(&*store, 2, vec![ada(), bob()]).await;
    let other = shared_space(&*store, 3, vec![bob()]).await;
    let outbox = Outbox::new(store.clone(), world.clock.clone());
    let queue = async |space: SpaceId, run: RunId| {
        let call = CallId { run, number: 3 };
        let data = json!({"title": SECRET, "spaceId": space, "runId": run});
        let payload = json!({"type": "notification", "data": data});
        let queued = outbox.queue(project(), call.to_string(), Channel::Webhook, payload);
        queued.await.unwrap();
    };
    let left = async || {
        let left = outbox.list(project(), None, None, 9).await.unwrap();
        left.len()
    };
    let run = talk(&world, shared.id, bob(), "hello").await;
    for (space, run) in [
        (own.id, talk(&world, own.id, ada(), "hello").await),
        // Of a run that an earlier version deleted.
        (own.id, RunId::from_bytes([9; 16])),
        (shared.id, run),
        (shared.id, talk(&world, shared.id, bob(), "again").await),
        (other.id, talk(&world, other.id, bob(), "hello").await),
    ] {
        queue(space, run).await;
    }
    world.rest().await;
    assert_eq!(left().await, 5);
    let deletions = deletions(&world, store.clone());
    let removed = deletions.delete_entity(&entity(ada(), "ada")).await.unwrap();
    assert_eq!((removed.get("delivery"), left().await), (Some(&2), 3));
    let run = world.store.run(run).await.unwrap().unwrap();
    let removed = deletions.delete_run(&run).await.unwrap();
    assert_eq!((removed.get("delivery"), left().await), (Some(&1), 2));
    let removed = deletions.delete_space(&shared).await.unwrap();
    assert_eq!((removed.get("delivery"), left().await), (Some(&1), 1));
}

#[tokio::test(start_paused = true)]
async fn nothing_names_a_deleted_person_in_records_of_others_or_in_sums() {
    let store = Arc::new(MemoryStore::new());
    let world = world_of(&store).await;
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
    let mut kinds = BTreeMap::<String, usize>::new();
    for line in exported(&deletions, entity(ada(), "ada")).await {
        *kinds.entry(line["kind"].as_str().unwrap().into()).or_default() += 1;
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
