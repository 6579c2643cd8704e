//! Tools for an agent's long-term memory, in all its runs and spaces. A memory has a topic and is found by it or by its
//! words.

use std::collections::BTreeMap;
use std::time::Duration;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use toolgate_engine::record_updater::RecordUpdater;
use toolgate_engine::records::{Amendment, Change, Expected, Listing, NewRecord, Record, SearchText};
use toolgate_engine::store::StoreError;
use toolgate_engine::tools::{CallContext, CallFailure};
use toolgate_kernel::agent::Action;
use toolgate_kernel::call::ErrorCode;
use toolgate_kernel::tool::Retry;
use toolgate_kernel::words::words;

use crate::records::{body, input, of_agent, share};
use crate::toolkit::ServerTool;

pub(crate) const KIND: &str = "memory";
/// Most memories of one agent.
const MEMORIES_MAX: usize = 1000;
const TOPIC_CHARS_MAX: usize = 200;
const CONTENT_CHARS_MAX: usize = 8000;
/// Memories returned by default.
const TOLD_DEFAULT: usize = 20;
const TOLD_MAX: usize = 100;
/// Most topics that a model is told of when it meant another one.
const TOPICS_TOLD_MAX: usize = 20;
/// Part of every id that the gateway gives to a memory.
const MINTED: &str = ".mem_call_";
/// Contents by which models mean that something shall be forgotten.
const FORGET: [&str; 6] = ["forget", "forgotten", "delete", "deleted", "remove", "removed"];
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

impl Memory {
    fn search_text(&self) -> SearchText {
        SearchText::new(&self.topic, &self.content)
    }
}

/// What a stored memory is found by; none if it cannot be read.
pub(crate) fn search_text(record: &Record) -> Option<SearchText> {
    let memory: Memory = record.body.read().ok()?;
    Some(memory.search_text())
}

#[async_trait]
impl ServerTool for SetMemory {
    fn name(&self) -> &'static str {
        "setMemory"
    }
    fn action(&self) -> Action {
        Action {
            description:
                "Remember something for later runs, under a topic. Call it with the topic alone to forget \
                          what is under the topic; forget first what shall be replaced."
                    .into(),
            parameters: json!({
                "type": "object",
                "properties": {
                    "topic": {"type": "string", "minLength": 1, "maxLength": TOPIC_CHARS_MAX, "description": "What it is about, in a few words. Use the same words for the same thing."},
                    "content": {"type": "string", "minLength": 1, "maxLength": CONTENT_CHARS_MAX, "description": "What to remember. Leave it out to forget."},
                    // An `id` is read too, but not offered: models that are offered one make one up.
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
        // An id that the model made up counts as left out.
        let id = wanted.id.as_deref().filter(|id| id.contains(MINTED));
        match wanted.content {
            Some(content) if means_forget(&content) => Err(CallFailure::new(
                ErrorCode::ValidationFailed,
                format!(
                    "the content {content:?} would be remembered as it is; nothing was changed. Call setMemory again with \
                     topic {:?} alone, without content, to forget what is under it.",
                    wanted.topic
                ),
            )),
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
                text: Some(memory.search_text()),
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
            let gone: Vec<Record> = match id {
                Some(id) => self.known(topic, id, context).await?.into_iter().collect(),
                None => under(&self.0, prefix(topic), context).await?,
            };
            let others = match gone.is_empty() {
                true => topics(&under(&self.0, String::new(), context).await?),
                false => BTreeMap::new(),
            };
            Ok((gone, others))
        };
        let decide = |(gone, others): (Vec<Record>, BTreeMap<String, usize>)| {
            if let (Some(id), []) = (id, gone.as_slice()) {
                return Err(missing(topic, id));
            }
            let mut told =
                json!({"success": true, "action": "forgotten", "count": gone.len(), "topic": topic});
            if !others.is_empty() {
                let others: Vec<&String> = others.keys().take(TOPICS_TOLD_MAX).collect();
                told["note"] = "nothing was stored under this topic. Call setMemory again with one of these topics alone, \
                                without content, if one of them is meant."
                    .into();
                told["topics"] = json!(others);
            }
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
    let words = format!(
        "you have no memory {id:?} under {topic:?}; nothing was changed. Call setMemory again without id."
    );
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
        let told = match &wanted.query {
            Some(query) => self.matching(query, &prefix, limit, context).await?,
            None => self.newest(prefix, limit, context).await?,
        };
        match &wanted.topic {
            Some(topic) if is_empty(&told) => {
                self.elsewhere(topic, wanted.query.as_deref(), limit, context)
                    .await
            }
            _ => Ok(told),
        }
    }
}

fn is_empty(told: &Value) -> bool {
    told["memories"].as_array().is_none_or(Vec::is_empty)
}

impl GetMemory {
    /// Memories of other topics that have the words: a topic is seldom named as it was stored.
    async fn elsewhere(
        &self,
        topic: &str,
        query: Option<&str>,
        limit: usize,
        context: &CallContext,
    ) -> Result<Value, CallFailure> {
        let words = format!("{topic} {}", query.unwrap_or_default());
        let mut told = self.matching(&words, "", limit, context).await?;
        told["note"] = format!("nothing fits under the topic {topic:?}; all topics were searched").into();
        if is_empty(&told) {
            told["topics"] = json!(topics(&under(&self.0, String::new(), context).await?));
        }
        Ok(told)
    }

    async fn matching(
        &self,
        query: &str,
        prefix: &str,
        limit: usize,
        context: &CallContext,
    ) -> Result<Value, CallFailure> {
        let set = of_agent(context, KIND);
        let records = self.0.records();
        let found = records.find_records(&[set], query, MEMORIES_MAX).await?.hits;
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
        let memories: Result<Vec<Value>, CallFailure> = records.iter().take(limit).map(told).collect();
        Ok(json!({"memories": memories?, "totalMemories": records.len(), "topics": topics(&records)}))
    }
}

/// Topics with the number of their memories, each as the first record spells it.
fn topics(records: &[Record]) -> BTreeMap<String, usize> {
    let mut counts: BTreeMap<String, (String, usize)> = BTreeMap::new();
    // A record that cannot be read does not hide the others.
    for memory in records.iter().filter_map(|record| body::<Memory>(record).ok()) {
        counts.entry(prefix(&memory.topic)).or_insert((memory.topic, 0)).1 += 1;
    }
    counts.into_values().collect()
}

/// Whether the content is nothing but an order to forget.
fn means_forget(content: &str) -> bool {
    let mut said = words(content);
    matches!((said.next(), said.next()), (Some(word), None) if FORGET.contains(&word.as_str()))
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
