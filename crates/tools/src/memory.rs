//! Tools for an agent's long-term memory, in all its runs and spaces. A memory has a topic and is found by it or by its
//! words.

use std::collections::BTreeMap;
use std::time::Duration;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use toolgate_engine::record_updater::RecordUpdater;
use toolgate_engine::records::{Amendment, Change, Expected, Listing, NewRecord, Record};
use toolgate_engine::store::StoreError;
use toolgate_engine::tools::{CallContext, CallFailure};
use toolgate_kernel::agent::Action;
use toolgate_kernel::call::ErrorCode;
use toolgate_kernel::tool::Retry;
use toolgate_kernel::words::words;

use crate::records::{body, input, of_agent, share};
use crate::toolkit::ServerTool;

const KIND: &str = "memory";
/// Most memories of one agent.
const MEMORIES_MAX: usize = 1000;
const TOPIC_CHARS_MAX: usize = 200;
const CONTENT_CHARS_MAX: usize = 8000;
/// Memories returned by default.
const TOLD_DEFAULT: usize = 20;
const TOLD_MAX: usize = 100;
const TIMEOUT: Duration = Duration::from_secs(10);

/// `setMemory`: stores, changes and deletes memories.
pub(crate) struct SetMemory(pub RecordUpdater);
/// `getMemory`: lists and searches memories.
pub(crate) struct GetMemory(pub RecordUpdater);

#[derive(Deserialize)]
struct SetInput {
    topic: String,
    content: Option<String>,
    id: Option<String>,
}

#[derive(Deserialize)]
struct GetInput {
    topic: Option<String>,
    query: Option<String>,
    limit: Option<usize>,
}

#[derive(Serialize, Deserialize)]
struct Memory {
    topic: String,
    content: String,
}

#[async_trait]
impl ServerTool for SetMemory {
    fn name(&self) -> &'static str {
        "setMemory"
    }
    fn action(&self) -> Action {
        Action {
            description:
                "Remember something for later runs, under a topic. It stays until you change or forget it."
                    .into(),
            parameters: json!({
                "type": "object",
                "properties": {
                    "topic": {"type": "string", "minLength": 1, "maxLength": TOPIC_CHARS_MAX, "description": "What it is about, in a few words. Use the same words for the same thing."},
                    "content": {"type": "string", "minLength": 1, "maxLength": CONTENT_CHARS_MAX, "description": "What to remember. Leave it out to forget: the memory with this id, or all under the topic."},
                    "id": {"type": "string", "description": "Existing memory of the topic to change. Omit to add one."},
                },
                "required": ["topic"],
            }),
            timeout: TIMEOUT,
            // The change is stored with the call's receipt, so a repeated call has no further effect.
            retry: Retry::Safe,
        }
    }
    async fn call(&self, given: Value, context: &CallContext) -> Result<Value, CallFailure> {
        let wanted: SetInput = input(given)?;
        let id = wanted.id.as_deref();
        match wanted.content {
            Some(content) => {
                let memory = Memory {
                    topic: wanted.topic,
                    content,
                };
                self.remember(memory, id, context).await
            }
            None => self.forget(&wanted.topic, id, context).await,
        }
    }
}

impl SetMemory {
    async fn remember(
        &self,
        memory: Memory,
        id: Option<&str>,
        context: &CallContext,
    ) -> Result<Value, CallFailure> {
        let set = of_agent(context, KIND);
        let read = || async {
            let known = match id {
                Some(id) => self.known(&memory.topic, id, context).await?,
                None => None,
            };
            Ok((known, self.0.records().records_size(set).await?.0))
        };
        let decide = |(known, count): (Option<Record>, u64)| {
            let (id, action) = match id {
                Some(id) if known.is_some() => (id.to_owned(), "updated"),
                Some(id) => return Err(missing(&memory.topic, id)),
                None if count >= MEMORIES_MAX as u64 => {
                    let words = format!("you may have {MEMORIES_MAX} memories; forget some first");
                    return Err(CallFailure::new(ErrorCode::LimitExceeded, words));
                }
                None => (
                    format!("{}mem_{}", prefix(&memory.topic), context.call),
                    "created",
                ),
            };
            let told = json!({"success": true, "action": action, "id": id, "topic": memory.topic});
            let put = Change::Put(NewRecord {
                id,
                text: Some(format!("{}\n{}", memory.topic, memory.content)),
                body: serde_json::to_value(&memory).expect("a memory is JSON").into(),
                data: None,
                due: None,
            });
            let amendment = Amendment {
                expected: known.iter().map(as_it_is).collect(),
                at_most: Some(MEMORIES_MAX as u64),
                changes: vec![put],
                receipt: Some(context.receipt(told.clone().into())),
            };
            Ok((amendment, told))
        };
        self.0.update(set, context.now, read, decide).await
    }

    async fn forget(
        &self,
        topic: &str,
        id: Option<&str>,
        context: &CallContext,
    ) -> Result<Value, CallFailure> {
        let read = || async {
            match id {
                Some(id) => Ok(self.known(topic, id, context).await?.into_iter().collect()),
                None => under(&self.0, prefix(topic), context).await,
            }
        };
        let decide = |gone: Vec<Record>| {
            if let (Some(id), []) = (id, gone.as_slice()) {
                return Err(missing(topic, id));
            }
            let told = json!({"success": true, "action": "forgotten", "count": gone.len(), "topic": topic});
            let amendment = Amendment {
                expected: gone.iter().map(as_it_is).collect(),
                changes: gone.into_iter().map(|record| Change::Remove(record.id)).collect(),
                receipt: Some(context.receipt(told.clone().into())),
                ..Amendment::default()
            };
            Ok((amendment, told))
        };
        let set = of_agent(context, KIND);
        self.0.update(set, context.now, read, decide).await
    }

    /// The memory with this id, if it belongs to the topic.
    async fn known(
        &self,
        topic: &str,
        id: &str,
        context: &CallContext,
    ) -> Result<Option<Record>, StoreError> {
        if !id.starts_with(&prefix(topic)) {
            return Ok(None);
        }
        let set = of_agent(context, KIND);
        self.0.records().record(set, id).await
    }
}

fn missing(topic: &str, id: &str) -> CallFailure {
    let words = format!("you have no memory {id:?} under {topic:?}; nothing was changed");
    CallFailure::new(ErrorCode::NotFound, words)
}

#[async_trait]
impl ServerTool for GetMemory {
    fn name(&self) -> &'static str {
        "getMemory"
    }
    fn action(&self) -> Action {
        Action {
            description:
                "Recall what you remembered: by topic, by words that occur in it, or the newest of all."
                    .into(),
            parameters: json!({
                "type": "object",
                "properties": {
                    "topic": {"type": "string", "minLength": 1, "maxLength": TOPIC_CHARS_MAX, "description": "Only memories under this topic."},
                    "query": {"type": "string", "minLength": 1, "maxLength": 1000, "description": "Words to look for; best matches first."},
                    "limit": {"type": "integer", "minimum": 1, "maximum": TOLD_MAX, "description": "Most memories to give. Default: 20."},
                },
            }),
            timeout: TIMEOUT,
            retry: Retry::Safe,
        }
    }
    async fn call(&self, given: Value, context: &CallContext) -> Result<Value, CallFailure> {
        let wanted: GetInput = input(given)?;
        let limit = wanted.limit.unwrap_or(TOLD_DEFAULT);
        let prefix = wanted.topic.as_deref().map(prefix).unwrap_or_default();
        match &wanted.query {
            Some(query) => self.matching(query, &prefix, limit, context).await,
            None => self.newest(prefix, limit, context).await,
        }
    }
}

impl GetMemory {
    async fn matching(
        &self,
        query: &str,
        prefix: &str,
        limit: usize,
        context: &CallContext,
    ) -> Result<Value, CallFailure> {
        let set = of_agent(context, KIND);
        let records = self.0.records();
        let found = records.find_records(set, query, MEMORIES_MAX).await?;
        let best = found.first().map_or(1.0, |found| found.score);
        let mut memories = Vec::new();
        let fitting = found.iter().filter(|found| found.record.id.starts_with(prefix));
        for found in fitting.take(limit) {
            let mut memory = told(&found.record)?;
            memory["score"] = share(found.score, best).into();
            memories.push(memory);
        }
        Ok(json!({ "memories": memories }))
    }

    async fn newest(
        &self,
        prefix: String,
        limit: usize,
        context: &CallContext,
    ) -> Result<Value, CallFailure> {
        let mut records = under(&self.0, prefix, context).await?;
        records.sort_by(|a, b| (b.updated, &a.id).cmp(&(a.updated, &b.id)));
        // The newest spelling of the topic.
        let mut counts: BTreeMap<String, (String, usize)> = BTreeMap::new();
        for record in &records {
            let topic = body::<Memory>(record)?.topic;
            counts.entry(self::prefix(&topic)).or_insert((topic, 0)).1 += 1;
        }
        let topics: BTreeMap<String, usize> = counts.into_values().collect();
        let memories: Result<Vec<Value>, CallFailure> = records.iter().take(limit).map(told).collect();
        Ok(json!({"memories": memories?, "totalMemories": records.len(), "topics": topics}))
    }
}

async fn under(
    updater: &RecordUpdater,
    prefix: String,
    context: &CallContext,
) -> Result<Vec<Record>, StoreError> {
    let listing = Listing {
        prefix,
        limit: MEMORIES_MAX,
        after: None,
    };
    let set = of_agent(context, KIND);
    updater.records().list_records(set, listing).await
}

/// Id prefix of a topic's memories: its folded words, so that punctuation and case do not matter.
fn prefix(topic: &str) -> String {
    let words: Vec<String> = words(topic).collect();
    format!("{}.", words.join("-"))
}

fn as_it_is(record: &Record) -> Expected {
    Expected {
        id: record.id.clone(),
        version: Some(record.version),
    }
}

fn told(record: &Record) -> Result<Value, CallFailure> {
    let memory: Memory = body(record)?;
    Ok(json!({
        "id": record.id,
        "topic": memory.topic,
        "content": memory.content,
        "createdAt": record.created,
        "updatedAt": record.updated,
    }))
}
