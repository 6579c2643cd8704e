//! Any value of each type, for the properties.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use serde_json::{Map, Value, json};
use toolgate_a2a::message::{Message, Role};
use toolgate_a2a::part::{Content, Part};
use toolgate_a2a::stream::{ArtifactUpdate, StatusUpdate, StreamResponse};
use toolgate_a2a::task::{Artifact, TASK_STATES, Task, TaskStatus};
use toolgate_a2a::{Dialect, Metadata};

pub fn dialect() -> impl Strategy<Value = Dialect> {
    prop_oneof![Just(Dialect::V1), Just(Dialect::V03)]
}

/// Any JSON, not deep.
pub fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (-1.0e9..1.0e9_f64).prop_map(|number| json!(number + 0.5)),
        ".{0,8}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::from),
            members(inner).prop_map(Value::Object),
        ]
    })
}

fn members(value: impl Strategy<Value = Value>) -> impl Strategy<Value = Metadata> {
    vec((".{1,6}", value), 0..4).prop_map(|members| members.into_iter().collect::<Map<_, _>>())
}

fn metadata() -> impl Strategy<Value = Option<Metadata>> {
    option::of(members(value()))
}

fn id() -> impl Strategy<Value = String> {
    "[a-z0-9-]{1,8}"
}

fn texts() -> impl Strategy<Value = Vec<String>> {
    vec(".{0,8}", 0..3)
}

/// What 0.3 has no member for is left out of its parts.
fn part(dialect: Dialect) -> impl Strategy<Value = Part> {
    let content = prop_oneof![
        ".{0,12}".prop_map(Content::Text),
        vec(any::<u8>(), 0..12).prop_map(Content::Raw),
        ".{0,12}".prop_map(Content::Url),
        value().prop_map(Content::Data),
    ];
    let rest = (option::of(".{0,6}"), option::of(".{0,6}"), metadata());
    (content, rest).prop_map(move |(content, (filename, media_type, metadata))| {
        let is_file = matches!(content, Content::Raw(_) | Content::Url(_));
        let has_file = dialect == Dialect::V1 || is_file;
        Part {
            // An empty object means the same as none in 0.3's wrapped values.
            metadata: metadata.filter(|metadata| !metadata.is_empty()),
            filename: filename.filter(|_| has_file),
            media_type: media_type.filter(|_| has_file),
            content,
        }
    })
}

pub fn message(dialect: Dialect) -> impl Strategy<Value = Message> {
    let role = prop_oneof![Just(Role::User), Just(Role::Agent)];
    let ids = (id(), option::of(id()), option::of(id()));
    let more = (metadata(), texts(), texts());
    (ids, role, vec(part(dialect), 1..4), more).prop_map(
        |((message_id, context_id, task_id), role, parts, (metadata, extensions, reference_task_ids))| {
            Message {
                message_id,
                context_id,
                task_id,
                role,
                parts,
                metadata,
                extensions,
                reference_task_ids,
            }
        },
    )
}

fn status(dialect: Dialect) -> impl Strategy<Value = TaskStatus> {
    let state = (0..TASK_STATES.len()).prop_map(|index| TASK_STATES[index]);
    let stamp = option::of(Just("2026-11-18T04:45:00.123Z".to_owned()));
    (state, option::of(message(dialect)), stamp).prop_map(|(state, message, timestamp)| TaskStatus {
        state,
        message,
        timestamp,
    })
}

fn artifact(dialect: Dialect) -> impl Strategy<Value = Artifact> {
    let words = (option::of(".{0,6}"), option::of(".{0,6}"));
    (id(), words, vec(part(dialect), 1..3), metadata(), texts()).prop_map(
        |(artifact_id, (name, description), parts, metadata, extensions)| Artifact {
            artifact_id,
            name,
            description,
            parts,
            metadata,
            extensions,
        },
    )
}

pub fn task(dialect: Dialect) -> impl Strategy<Value = Task> {
    let made = (vec(artifact(dialect), 0..3), vec(message(dialect), 0..3));
    (id(), id(), status(dialect), made, metadata()).prop_map(
        |(id, context_id, status, (artifacts, history), metadata)| Task {
            id,
            context_id,
            status,
            artifacts,
            history,
            metadata,
        },
    )
}

pub fn event(dialect: Dialect) -> impl Strategy<Value = StreamResponse> {
    let flags = (any::<bool>(), any::<bool>());
    let is_03 = dialect == Dialect::V03;
    prop_oneof![
        task(dialect).prop_map(StreamResponse::Task),
        message(dialect).prop_map(StreamResponse::Message),
        (id(), id(), status(dialect), metadata(), any::<bool>()).prop_map(
            move |(task_id, context_id, status, metadata, is_final)| {
                StreamResponse::StatusUpdate(StatusUpdate {
                    task_id,
                    context_id,
                    status,
                    metadata,
                    is_final: is_final && is_03,
                })
            }
        ),
        (id(), id(), artifact(dialect), metadata(), flags).prop_map(
            |(task_id, context_id, artifact, metadata, (append, last_chunk))| {
                StreamResponse::ArtifactUpdate(ArtifactUpdate {
                    task_id,
                    context_id,
                    artifact,
                    append,
                    last_chunk,
                    metadata,
                })
            }
        ),
    ]
}
