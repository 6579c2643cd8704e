//! Ids, records and appends to test stores with. Ids count upwards, as real ones do with time.

use serde_json::value::to_raw_value;
use serde_json::{Value, json};
use toolgate_engine::store::{
    Append, EntityRecord, IdempotencyRecord, KeyKind, KeyRecord, LeaseWrite, LogOrder, LogRange,
    ProjectRecord, RunRecord, RunWrite, SpaceRecord,
};
use toolgate_kernel::event::{Event, Seq, Status};
use toolgate_kernel::id::{EntityId, KeyId, NodeId, ProjectId, RunId, SpaceId};
use toolgate_kernel::time::Time;

/// A whole log in one page.
pub const EVERYTHING: LogRange = LogRange {
    after: Seq(0),
    before: None,
    order: LogOrder::OldestFirst,
    limit: usize::MAX,
    bytes: usize::MAX,
};

fn bytes(n: u64) -> [u8; 16] {
    u128::from(n).to_be_bytes()
}

/// The `n`-th project.
pub fn project(n: u64) -> ProjectId {
    ProjectId::from_bytes(bytes(n))
}
/// The `n`-th space.
pub fn space(n: u64) -> SpaceId {
    SpaceId::from_bytes(bytes(n))
}
/// The `n`-th run.
pub fn run(n: u64) -> RunId {
    RunId::from_bytes(bytes(n))
}
/// The `n`-th entity.
pub fn entity(n: u64) -> EntityId {
    EntityId::from_bytes(bytes(n))
}
/// The `n`-th node.
pub fn node(n: u64) -> NodeId {
    NodeId::from_bytes(bytes(n))
}
/// The `n`-th key.
pub fn key(n: u64) -> KeyId {
    KeyId::from_bytes(bytes(n))
}

/// A durable event.
pub fn event(stored: Value) -> Event {
    let raw = to_raw_value(&stored).expect("JSON prints as JSON");
    Event::read(&raw).expect("a stored event")
}

/// A text part.
pub fn text(words: &str) -> Event {
    event(json!({"type": "text-end", "id": "1", "text": words}))
}

/// A row of project 1 without a lease: `queued`, created at time 1, of an agent that has no other run.
pub fn run_record(id: RunId, space: SpaceId) -> RunRecord {
    RunRecord {
        tool: None,
        user: None,
        title: None,
        tokens: 0,
        id,
        project: project(1),
        space,
        agent: format!("agent_{}", u128::from_be_bytes(id.to_bytes()))
            .parse()
            .expect("a name"),
        revision: 1,
        parent: None,
        root: id,
        status: Status::Queued,
        created: Time(1),
        updated: Time(1),
        version: Seq::default(),
        wake_at: None,
        node: None,
        epoch: 0,
        lane: 0,
        wakes: 0,
    }
}

/// An empty space of project 1.
pub fn space_record(id: SpaceId) -> SpaceRecord {
    SpaceRecord {
        id,
        project: project(1),
        title: None,
        agent: None,
        metadata: None,
        by_backend: true,
        members: Vec::new(),
        created: Time(1),
    }
}

/// A user of project 1.
pub fn entity_record(id: EntityId, subject: &str) -> EntityRecord {
    EntityRecord {
        id,
        project: project(1),
        subject: subject.into(),
        kind: "person".into(),
        name: None,
        metadata: None,
        grants: Vec::new(),
        created: Time(1),
    }
}

/// A project.
pub fn project_record(id: ProjectId, name: &str) -> ProjectRecord {
    ProjectRecord {
        id,
        name: name.into(),
        jwt_secret: None,
        identity_provider: None,
        settings: None,
        created: Time(1),
    }
}

/// A secret key of project 1 whose hash consists of `hash` bytes.
pub fn key_record(id: KeyId, hash: u8) -> KeyRecord {
    KeyRecord {
        id,
        project: project(1),
        kind: KeyKind::Secret,
        hash: [hash; 32],
        hint: "sk_abc".into(),
        name: None,
        created: Time(1),
    }
}

/// An idempotency record of project 1, of time 1.
pub fn answer(key: &str) -> IdempotencyRecord {
    IdempotencyRecord {
        project: project(1),
        key: key.into(),
        request: [7; 32],
        answer: json!({"runId": run(1)}).into(),
        time: Time(1),
    }
}

/// An append of a message that belongs to no run.
pub fn say(space: SpaceId, words: &str) -> Append {
    Append {
        space,
        run: RunWrite::None,
        events: vec![text(words)],
        usage: Vec::new(),
        consumption: Vec::new(),
        above: None,
        wakes: Vec::new(),
        time: Time(2),
        idempotency: Vec::new(),
    }
}

/// The start of a run with one event.
pub fn create(record: RunRecord) -> Append {
    Append {
        space: record.space,
        run: RunWrite::Create {
            record: Box::new(record),
            space: None,
            descendants_max: None,
            definitions: Default::default(),
        },
        events: vec![text("begins")],
        usage: Vec::new(),
        consumption: Vec::new(),
        above: None,
        wakes: Vec::new(),
        time: Time(2),
        idempotency: Vec::new(),
    }
}

/// An append of one event to a run by a writer that has read up to `version`; nothing else changes: the run is
/// `running` and keeps its lease.
pub fn extend(record: &RunRecord, version: Seq) -> Append {
    Append {
        space: record.space,
        run: RunWrite::Extend {
            id: record.id,
            version,
            epoch: record.epoch,
            status: Status::Running,
            wake_at: None,
            lease: LeaseWrite::Keep,
        },
        events: vec![text("goes on")],
        usage: Vec::new(),
        consumption: Vec::new(),
        above: None,
        wakes: Vec::new(),
        time: Time(3),
        idempotency: Vec::new(),
    }
}
