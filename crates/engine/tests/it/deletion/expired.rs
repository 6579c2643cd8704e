//! Retention: what is archived before it is deleted, and what an operator or a user changes meanwhile.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use async_trait::async_trait;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use toolgate_engine::deletion::Deletions;
use toolgate_engine::intake::Answer;
use toolgate_engine::outbox::{Channel, Outbox};
use toolgate_engine::records::{Change, NewRecord, Owner, Receipt, RecordSet, Records};
use toolgate_engine::retention::{
    Applied, Archive, ArchiveError, ArchiveObject, Archived, Retention, RetentionRules, Rules,
};
use toolgate_engine::store::StoreError;
use toolgate_engine::workspace::{NewFile, Only, Place, Workspace, WorkspaceLimits};
use toolgate_kernel::id::{CallId, NodeId, ProjectId, RunId, SpaceId};
use toolgate_kernel::json::Json;
use toolgate_kernel::time::Time;
use toolgate_store::MemoryStore;

use super::{ada, bob, shared_space, stored, talk};
use crate::world::{Setup, World, project};

const RULES: Rules = Rules {
    runs: Some(Duration::from_secs(60)),
    files: None,
    deliveries: None,
    usage: None,
};
/// Longer than any rule here.
const LATER: i64 = 120_000;

/// What the operator has set, and an archive in memory.
#[derive(Clone)]
struct Operator(Arc<Mutex<State>>);

struct State {
    rules: Rules,
    archive: Standing,
    /// How long the archive takes to store an object.
    pace: Duration,
    objects: BTreeMap<String, String>,
}

#[derive(Clone, Copy, PartialEq)]
enum Standing {
    Writable,
    Blocked,
    NotSet,
}

impl Operator {
    fn new(rules: Rules) -> Self {
        Self(Arc::new(Mutex::new(State {
            rules,
            archive: Standing::Writable,
            pace: Duration::ZERO,
            objects: BTreeMap::new(),
        })))
    }
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap()
    }
    fn archived(&self) -> String {
        self.state().objects.values().cloned().collect()
    }
    /// Path, version and content of the files that were archived.
    fn files(&self) -> Vec<(String, u64, String)> {
        let archived = self.archived();
        let lines = archived.lines().map(|line| serde_json::from_str(line).unwrap());
        let files = lines.filter(|line: &Value| line["kind"] == "file");
        files
            .map(|line| {
                let path = line["path"].as_str().unwrap().to_owned();
                let data = STANDARD.decode(line["data"].as_str().unwrap()).unwrap();
                let version = line["content"]["version"].as_u64().unwrap();
                (path, version, String::from_utf8(data).unwrap())
            })
            .collect()
    }
}

struct Object {
    operator: Operator,
    name: String,
    text: String,
}

impl Archive for Operator {
    fn begin(&self, name: &str) -> Box<dyn ArchiveObject> {
        Box::new(Object {
            operator: self.clone(),
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
        let pace = self.operator.state().pace;
        tokio::time::sleep(pace).await;
        let mut state = self.operator.state();
        if state.archive == Standing::Blocked {
            return Err(ArchiveError("blocked".into()));
        }
        let bytes = self.text.len() as u64;
        state.objects.insert(self.name, self.text);
        let hash = "00".into();
        Ok(Archived { hash, bytes })
    }
}

#[async_trait]
impl RetentionRules for Operator {
    async fn rules(&self, _: ProjectId) -> Result<Rules, StoreError> {
        Ok(self.state().rules)
    }
    async fn archive(&self, _: ProjectId) -> Result<Option<Arc<dyn Archive>>, StoreError> {
        let is_set = self.state().archive != Standing::NotSet;
        Ok(is_set.then(|| Arc::new(self.clone()) as Arc<dyn Archive>))
    }
}

/// A node that applies what the operator has set.
struct Node {
    world: World,
    store: Arc<MemoryStore>,
    operator: Operator,
    deletions: Arc<Deletions>,
    retention: Retention,
    workspace: Workspace,
    outbox: Outbox,
}

impl Node {
    async fn new(rules: Rules) -> Self {
        let store = Arc::new(MemoryStore::new());
        let setup = Setup {
            store: store.clone(),
            records: store.clone(),
            ..Setup::default()
        };
        let world = World::with(setup).await;
        let operator = Operator::new(rules);
        let given: Arc<dyn RetentionRules> = Arc::new(operator.clone());
        let engine = world.engine.clone();
        let deletions = Arc::new(Deletions::new(engine.clone(), store.clone(), given.clone()));
        let retention = Retention::new(engine, deletions.clone(), given, Duration::from_secs(60));
        Self {
            operator,
            deletions,
            retention,
            workspace: Workspace::new(store.clone(), WorkspaceLimits::default()),
            outbox: Outbox::new(store.clone(), world.clock.clone()),
            world,
            store,
        }
    }

    async fn said(&self, space: SpaceId, words: &str) -> RunId {
        let run = talk(&self.world, space, bob(), words).await;
        self.world.rest().await;
        run
    }

    async fn write(&self, space: SpaceId, path: &str, content: &str) {
        let new = NewFile {
            name: path.parse().unwrap(),
            mime: None,
            data: content.into(),
            only: Only::Always,
        };
        let written = self.workspace.write(place(space), new, self.world.now()).await;
        written.unwrap();
    }

    async fn read(&self, space: SpaceId, path: &str) -> Option<String> {
        let name = path.parse().unwrap();
        let file = self.workspace.read(place(space), &name, None).await.ok()?;
        Some(String::from_utf8(file.data).unwrap())
    }

    async fn is_there(&self, run: RunId) -> bool {
        self.world.store.run(run).await.unwrap().is_some()
    }

    /// Applies the rules, and finishes batches that wait.
    async fn apply(&self) {
        self.retention.apply().await.unwrap();
        self.deletions.work_off().await;
        self.retention.apply().await.unwrap();
    }
}

fn place(space: SpaceId) -> Place {
    Place {
        project: project(),
        space,
    }
}

#[tokio::test(start_paused = true)]
async fn kept_outputs_are_archived_with_their_run() {
    let node = Node::new(RULES).await;
    let space = shared_space(&*node.store, 1, vec![ada(), bob()]).await.id;
    let run = node.said(space, "hello").await;
    let (call, now) = (CallId { run, number: 3 }, node.world.now());
    let kept = node
        .workspace
        .keep_output(place(space), call, ("txt", b"the output".to_vec()), now, |_| {
            Receipt {
                key: "kept".into(),
                answer: Json::null(),
                time: now,
            }
        });
    let path = kept.await.unwrap().path;
    node.world.clock.jump(LATER);
    node.apply().await;
    assert!(!node.is_there(run).await);
    assert_eq!(node.read(space, &path).await, None);
    assert_eq!(node.operator.files(), [(path, 1, "the output".to_owned())]);
}

#[tokio::test(start_paused = true)]
async fn what_a_child_run_leaves_in_its_space_is_archived_with_the_tree() {
    let node = Node::new(RULES).await;
    let space = shared_space(&*node.store, 1, vec![ada(), bob()]).await.id;
    let run = node.said(space, r#"call:helper={"prompt":"look"}"#).await;
    let filter = toolgate_engine::store::RunFilter {
        root: Some(run),
        limit: 9,
        ..Default::default()
    };
    let below = node.world.store.runs(project(), filter).await.unwrap().runs;
    let [child] = below.as_slice() else {
        panic!("one child: {below:?}");
    };
    node.write(child.space, "notes.md", "of the child").await;
    node.world.clock.jump(LATER);
    node.apply().await;
    assert_eq!(node.read(child.space, "notes.md").await, None);
    let notes = ("notes.md".to_owned(), 1, "of the child".to_owned());
    assert_eq!(node.operator.files(), [notes]);
}

#[tokio::test(start_paused = true)]
async fn earlier_versions_of_a_file_are_archived_with_it() {
    let rules = Rules {
        runs: None,
        files: RULES.runs,
        ..RULES
    };
    let node = Node::new(rules).await;
    let space = SpaceId::from_bytes([1; 16]);
    for content in ["one", "two", "three"] {
        node.write(space, "report.txt", content).await;
    }
    node.world.clock.jump(LATER);
    node.write(space, "fresh.txt", "today").await;
    node.apply().await;
    assert_eq!(node.read(space, "report.txt").await, None);
    assert_eq!(node.read(space, "fresh.txt").await.as_deref(), Some("today"));
    let version = |number, content: &str| ("report.txt".to_owned(), number, content.to_owned());
    let all = [version(1, "one"), version(2, "two"), version(3, "three")];
    assert_eq!(node.operator.files(), all);
}

#[tokio::test(start_paused = true)]
async fn a_batch_that_waits_for_its_archive_goes_by_the_rules_of_the_day() {
    let rules = Rules {
        files: RULES.runs,
        ..RULES
    };
    let node = Node::new(rules).await;
    let space = shared_space(&*node.store, 1, vec![ada(), bob()]).await.id;
    let run = node.said(space, "hello").await;
    node.write(space, "report.txt", "old").await;
    node.world.clock.jump(LATER);
    node.operator.state().archive = Standing::Blocked;
    node.apply().await;
    assert!(node.is_there(run).await, "nothing is deleted unarchived");

    node.operator.state().rules = Rules::default();
    node.operator.state().archive = Standing::Writable;
    node.world.clock.jump(LATER);
    node.apply().await;
    assert!(node.is_there(run).await);
    assert_eq!(node.read(space, "report.txt").await.as_deref(), Some("old"));
    assert_eq!(node.operator.archived(), "");

    node.operator.state().rules = rules;
    node.apply().await;
    assert!(!node.is_there(run).await);
    assert_eq!(node.read(space, "report.txt").await, None);
}

#[tokio::test(start_paused = true)]
async fn what_changes_while_a_batch_waits_for_its_archive_stays() {
    let rules = Rules {
        files: RULES.runs,
        deliveries: RULES.runs,
        ..RULES
    };
    let node = Node::new(rules).await;
    let space = SpaceId::from_bytes([1; 16]);
    for path in ["report.txt", "unchanged.txt"] {
        node.write(space, path, "old").await;
    }
    for id in ["one", "two"] {
        let queued = node
            .outbox
            .queue(project(), id.into(), Channel::Webhook, json!({}));
        queued.await.unwrap();
    }
    for mut dead in node.outbox.due(9).await.unwrap() {
        assert!(node.outbox.hold(&mut dead).await.unwrap());
        assert!(
            node.outbox
                .put_back(&mut dead, "gone".into(), None)
                .await
                .unwrap()
        );
    }
    node.world.clock.jump(LATER);
    node.operator.state().archive = Standing::Blocked;
    node.apply().await;

    node.write(space, "report.txt", "fresh").await;
    node.outbox.retry(project(), "one").await.unwrap().unwrap();
    node.operator.state().archive = Standing::Writable;
    node.world.clock.jump(61_000);
    node.write(space, "report.txt", "fresher").await;
    node.apply().await;
    assert_eq!(node.read(space, "unchanged.txt").await, None);
    assert_eq!(
        node.read(space, "report.txt").await.as_deref(),
        Some("fresher"),
        "it is young again"
    );
    let left = node.outbox.list(project(), None, None, 9).await.unwrap();
    let left: Vec<_> = left.iter().map(|delivery| delivery.id.as_str()).collect();
    assert_eq!(left, ["one"], "it is tried again");
    let archived = node.operator.files();
    assert_eq!(archived, [("unchanged.txt".to_owned(), 1, "old".to_owned())]);
}

#[tokio::test(start_paused = true)]
async fn retention_goes_on_after_the_archive_is_taken_away() {
    let node = Node::new(RULES).await;
    let space = shared_space(&*node.store, 1, vec![ada(), bob()]).await.id;
    let run = node.said(space, "hello").await;
    node.world.clock.jump(LATER);
    node.operator.state().archive = Standing::Blocked;
    node.apply().await;
    assert!(node.is_there(run).await);
    node.operator.state().archive = Standing::NotSet;
    node.world.clock.jump(LATER);
    node.apply().await;
    assert!(!node.is_there(run).await);
}

#[tokio::test(start_paused = true)]
async fn files_of_a_batch_of_an_earlier_version_are_planned_anew() {
    let rules = Rules {
        runs: None,
        files: RULES.runs,
        ..RULES
    };
    for archived in [Value::Null, json!("00")] {
        let node = Node::new(rules).await;
        let space = SpaceId::from_bytes([1; 16]);
        node.write(space, "report.txt", "old").await;
        let plan = json!({
            "what": "expired", "trees": [], "files": [[space, "report.txt"]], "deliveries": [],
            "before": Time(i64::MIN), "object": "earlier.jsonl.gz", "archived": archived,
            "node": NodeId::from_bytes([9; 16]), "removed": {},
        });
        let stored = Change::Put(NewRecord {
            id: "retention".into(),
            body: plan.into(),
            text: None,
            data: None,
            due: Some(node.world.now()),
        });
        let set = RecordSet {
            project: project(),
            owner: Owner::Project,
            kind: "deletion",
        };
        let stored = node
            .store
            .change_records(set, Vec::new(), vec![stored], node.world.now());
        stored.await.unwrap();
        node.deletions.work_off().await;
        assert_eq!(node.read(space, "report.txt").await.as_deref(), Some("old"));
        assert_eq!(node.store.record(set, "retention").await.unwrap(), None);
        node.world.clock.jump(LATER);
        node.apply().await;
        assert_eq!(node.read(space, "report.txt").await, None);
        let report = ("report.txt".to_owned(), 1, "old".to_owned());
        assert_eq!(node.operator.files(), [report]);
    }
}

#[tokio::test(start_paused = true)]
async fn messages_that_started_no_run_are_archived_before_they_are_deleted() {
    let node = Node::new(RULES).await;
    let (world, store) = (&node.world, &node.store);
    let busy = shared_space(&**store, 1, vec![ada(), bob()]).await.id;
    let quiet = shared_space(&**store, 2, vec![ada(), bob()]).await.id;
    let aside = async |space: SpaceId, words: &str| {
        let mut post = world.post_to(Some(space), words);
        post.answer = Answer::None;
        assert_eq!(world.engine.post(post).await.unwrap().run_id, None);
    };
    aside(busy, "said aside").await;
    talk(world, busy, bob(), "said to the agent").await;
    aside(quiet, "said to nobody").await;
    world.rest().await;
    world.clock.jump(LATER);
    aside(busy, "said later").await;

    assert_eq!(node.retention.apply().await.unwrap(), Applied::Done);
    let archived = node.operator.archived();
    for words in ["said aside", "said to the agent", "said to nobody"] {
        assert!(archived.contains(words), "{words}: {archived}");
    }
    assert_eq!(archived.matches("said aside").count(), 1, "once is enough");
    assert!(!archived.contains("said later"), "{archived}");
    let left = stored(&**store, busy).await;
    assert!(left.contains("said later") && !left.contains("aside"), "{left}");
    assert_eq!(stored(&**store, quiet).await, "[]");
}

#[tokio::test(start_paused = true)]
async fn what_a_project_has_no_time_for_in_its_turn_does_not_wait_for_the_next_minute() {
    let rules = Rules {
        runs: None,
        deliveries: RULES.runs,
        ..RULES
    };
    let node = Node::new(rules).await;
    let set = RecordSet {
        project: project(),
        owner: Owner::Project,
        kind: "delivery",
    };
    // Five batches, of which two fill a turn.
    let given_up = (0..1_000).map(|number| {
        Change::Put(NewRecord {
            id: format!("{number}"),
            body: json!({}).into(),
            text: None,
            data: None,
            due: None,
        })
    });
    let stored = node
        .store
        .change_records(set, Vec::new(), given_up.collect(), node.world.now());
    stored.await.unwrap();
    let left = async || node.store.records_size(set).await.unwrap().0;
    node.world.clock.jump(LATER);
    node.operator.state().pace = Duration::from_secs(6);

    assert_eq!(node.retention.apply().await.unwrap(), Applied::OutOfTime);
    assert_eq!(left().await, 600);
    let all_gone = async {
        while left().await > 0 {
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    };
    tokio::select! {
        () = node.retention.work(CancellationToken::new()) => unreachable!("it is not stopped"),
        // Less than the rest between two looks at a project that has nothing more.
        gone = tokio::time::timeout(Duration::from_secs(30), all_gone) => gone.expect("it is gone on with"),
    }
}
