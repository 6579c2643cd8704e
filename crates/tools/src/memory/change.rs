//! Changes of a memory by hand.

use toolgate_engine::records::{NewRecord, Record};
use toolgate_kernel::members::Members;

use super::{CONTENT_CHARS_MAX, Memory, TOPIC_CHARS_MAX, prefix, put};

/// The members of a memory that can be changed.
pub(crate) const CHANGEABLE: [&str; 2] = ["topic", "content"];

/// The memory with these changes. Its topic is part of its id, so another topic gives it another id.
pub(crate) fn changed(record: &Record, changes: &Members<'_>) -> Option<NewRecord> {
    let mut memory: Memory = record.body.read().ok()?;
    if let Some(content) = changes.text("content", CONTENT_CHARS_MAX) {
        memory.content = content.to_owned();
    }
    let Some(topic) = changes.text("topic", TOPIC_CHARS_MAX) else {
        return Some(put(record.id.clone(), &memory));
    };
    let tail = record
        .id
        .rsplit_once('.')
        .map_or(record.id.as_str(), |(_, tail)| tail);
    let id = format!("{}{tail}", prefix(topic));
    memory.topic = topic.to_owned();
    Some(put(id, &memory))
}
