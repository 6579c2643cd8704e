//! Tools for long-term memory, of a person, a space or an agent. A memory has a topic and is found by it or by its words.

mod change;
mod scope;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use toolgate_engine::record_updater::RecordUpdater;
use toolgate_engine::records::{
    Amendment, Change, Expected, Listing, NewRecord, Record, RecordSet, SearchText,
};
use toolgate_engine::store::{Store, StoreError};
use toolgate_engine::tools::{CallContext, CallFailure};
use toolgate_kernel::agent::Action;
use toolgate_kernel::call::ErrorCode;
use toolgate_kernel::tool::Retry;
use toolgate_kernel::words::words;

use crate::records::{body, input, share};
use crate::toolkit::ServerTool;
pub(crate) use change::{CHANGEABLE, changed};
pub(crate) use scope::check_scope;
use scope::{Scope, Scopes};

pub(crate) const KIND: &str = "memory";
/// Most memories of one person, one space or one agent.
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
pub(crate) struct SetMemory {
    pub updater: RecordUpdater,
    /// Knows who is a member of a space.
    pub store: Arc<dyn Store>,
}
/// `getMemory`: lists and searches memories.
pub(crate) struct GetMemory {
    pub updater: RecordUpdater,
    /// Knows who is a member of a space.
    pub store: Arc<dyn Store>,
}

#[derive(Deserialize)]
struct SetInput {
    topic: String,
    content: Option<String>,
    id: Option<String>,
    scope: Option<Scope>,
}

#[derive(Deserialize)]
struct GetInput {
    topic: Option<String>,
    query: Option<String>,
    limit: Option<usize>,
    scope: Option<Scope>,
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
                    // An `id` and a `scope` are read too, but not offered: models that are offered them make one up.
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
        if let Some(content) = wanted.content.as_deref().filter(|content| means_forget(content)) {
            return Err(CallFailure::new(
                ErrorCode::ValidationFailed,
                format!(
                    "the content {content:?} would be remembered as it is; nothing was changed. Call setMemory again with \
                     topic {:?} alone, without content, to forget what is under it.",
                    wanted.topic
                ),
            ));
        }
        let scopes = Scopes::of(&self.store, context).await?;
        // An id that the model made up counts as left out.
        let id = wanted.id.as_deref().filter(|id| id.contains(MINTED));
        // One person's run neither changes nor erases what others recall, unless the author of the agent chose that.
        let place = scopes.for_new(wanted.scope)?;
        if id.is_some() || wanted.content.is_none() {
            let own_first = std::iter::once(place).chain(scopes.readable(wanted.scope));
            let own_first: Vec<Place> = own_first.collect();
            if let Some((scope, _)) = self.find(&wanted.topic, id, &own_first).await?
                && scope != place.0
            {
                return Err(of_others(&wanted.topic, scope));
            }
        }
        match wanted.content {
            Some(content) => {
                let memory = Memory {
                    topic: wanted.topic,
                    content,
                };
                self.remember(memory, id, place, context).await
            }
            None => {
                let others = self.topics(&[place]).await?;
                self.forget(&wanted.topic, id, place, others, context).await
            }
        }
    }
}

/// Tells a model that a memory is not the one of whom it works for.
fn of_others(topic: &str, scope: Scope) -> CallFailure {
    let whose = match scope {
        Scope::User => "one person's",
        Scope::Space => "of this space and recalled by everybody in it",
        Scope::Agent => "yours for everybody you work for",
    };
    let words = format!(
        "the memory under {topic:?} is {whose}, so it is not changed or forgotten here; nothing was changed. \
         Call setMemory again with topic {topic:?} and a content, without id, to remember what holds here instead."
    );
    CallFailure::new(ErrorCode::PermissionDenied, words)
}

/// Whose memories, and where they are.
type Place = (Scope, RecordSet);

impl SetMemory {
    /// The first of these that has the memory with this id, or one under the topic.
    async fn find(
        &self,
        topic: &str,
        id: Option<&str>,
        places: &[Place],
    ) -> Result<Option<Place>, StoreError> {
        for place in places {
            let is_there = match id {
                Some(id) => self.known(topic, id, place.1).await?.is_some(),
                None => !under(&self.updater, prefix(topic), place.1).await?.is_empty(),
            };
            if is_there {
                return Ok(Some(*place));
            }
        }
        Ok(None)
    }

    async fn topics(&self, places: &[Place]) -> Result<BTreeMap<String, usize>, StoreError> {
        let mut records = Vec::new();
        for (_, set) in places {
            records.extend(under(&self.updater, String::new(), *set).await?);
        }
        Ok(topics(records.iter()))
    }

    async fn remember(
        &self,
        memory: Memory,
        id: Option<&str>,
        (scope, set): Place,
        context: &CallContext,
    ) -> Result<Value, CallFailure> {
        let read = || async {
            let known = match id {
                Some(id) => self.known(&memory.topic, id, set).await?,
                None => None,
            };
            Ok((known, self.updater.records().records_size(set).await?.0))
        };
        let decide = |(known, count): (Option<Record>, u64)| {
            let (id, action) = match id {
                Some(id) if known.is_some() => (id.to_owned(), "updated"),
                Some(id) => return Err(missing(&memory.topic, id)),
                None if count >= MEMORIES_MAX as u64 => {
                    let words = format!(
                        "there are {MEMORIES_MAX} memories, which is all that may be; forget some first"
                    );
                    return Err(CallFailure::new(ErrorCode::LimitExceeded, words));
                }
                None => (
                    format!("{}mem_{}", prefix(&memory.topic), context.call),
                    "created",
                ),
            };
            let told =
                json!({"success": true, "action": action, "id": id, "topic": memory.topic, "scope": scope});
            let amendment = Amendment {
                expected: known.iter().map(as_it_is).collect(),
                at_most: Some(MEMORIES_MAX as u64),
                changes: vec![Change::Put(put(id, &memory))],
                receipt: Some(context.receipt(told.clone().into())),
                ..Amendment::default()
            };
            Ok((amendment, told))
        };
        self.updater.update(set, context.now, read, decide).await
    }

    async fn forget(
        &self,
        topic: &str,
        id: Option<&str>,
        (scope, set): Place,
        others: BTreeMap<String, usize>,
        context: &CallContext,
    ) -> Result<Value, CallFailure> {
        let read = || async {
            Ok(match id {
                Some(id) => self.known(topic, id, set).await?.into_iter().collect(),
                None => under(&self.updater, prefix(topic), set).await?,
            })
        };
        let decide = |gone: Vec<Record>| {
            if let (Some(id), []) = (id, gone.as_slice()) {
                return Err(missing(topic, id));
            }
            let mut told = json!({"success": true, "action": "forgotten", "count": gone.len(), "topic": topic, "scope": scope});
            if gone.is_empty() && !others.is_empty() {
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
        self.updater.update(set, context.now, read, decide).await
    }

    /// The memory with this id, if it belongs to the topic.
    async fn known(&self, topic: &str, id: &str, set: RecordSet) -> Result<Option<Record>, StoreError> {
        if !id.starts_with(&prefix(topic)) {
            return Ok(None);
        }
        self.updater.records().record(set, id).await
    }
}

/// The record of a memory.
fn put(id: String, memory: &Memory) -> NewRecord {
    NewRecord {
        id,
        text: Some(memory.search_text()),
        body: serde_json::to_value(memory).expect("a memory is JSON").into(),
        data: None,
        due: None,
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
        let scopes = Scopes::of(&self.store, context).await?;
        let places = scopes.readable(wanted.scope);
        let limit = wanted.limit.unwrap_or(TOLD_DEFAULT);
        let prefix = wanted.topic.as_deref().map(prefix).unwrap_or_default();
        let told = match &wanted.query {
            Some(query) => self.matching(query, &prefix, limit, &places).await?,
            None => self.newest(&prefix, limit, &places).await?,
        };
        match &wanted.topic {
            Some(topic) if is_empty(&told) => {
                self.elsewhere(topic, wanted.query.as_deref(), limit, &places)
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
        places: &[Place],
    ) -> Result<Value, CallFailure> {
        let words = format!("{topic} {}", query.unwrap_or_default());
        let mut told = self.matching(&words, "", limit, places).await?;
        told["note"] = format!("nothing fits under the topic {topic:?}; all topics were searched").into();
        if is_empty(&told) {
            let records = self.all("", places).await?;
            told["topics"] = json!(topics(records.iter().map(|(_, record)| record)));
        }
        Ok(told)
    }

    async fn matching(
        &self,
        query: &str,
        prefix: &str,
        limit: usize,
        places: &[Place],
    ) -> Result<Value, CallFailure> {
        let sets: Vec<RecordSet> = places.iter().map(|(_, set)| *set).collect();
        let records = self.updater.records();
        let found = records.find_records(&sets, query, MEMORIES_MAX).await?.hits;
        let best = found.first().map_or(1.0, |found| found.score);
        let mut memories = Vec::new();
        let fitting = found.iter().filter(|found| found.record.id.starts_with(prefix));
        for found in fitting.take(limit) {
            let scope = places.iter().find(|(_, set)| *set == found.set);
            let mut memory = told(scope.map(|(scope, _)| *scope), &found.record)?;
            memory["score"] = share(found.score, best).into();
            memories.push(memory);
        }
        Ok(json!({ "memories": memories }))
    }

    async fn newest(&self, prefix: &str, limit: usize, places: &[Place]) -> Result<Value, CallFailure> {
        let mut records = self.all(prefix, places).await?;
        records.sort_by(|(_, a), (_, b)| (b.updated, &a.id).cmp(&(a.updated, &b.id)));
        let memories = records.iter().take(limit);
        let memories: Result<Vec<Value>, CallFailure> = memories
            .map(|(scope, record)| told(Some(*scope), record))
            .collect();
        let topics = topics(records.iter().map(|(_, record)| record));
        Ok(json!({"memories": memories?, "totalMemories": records.len(), "topics": topics}))
    }

    async fn all(&self, prefix: &str, places: &[Place]) -> Result<Vec<(Scope, Record)>, StoreError> {
        let mut all = Vec::new();
        for (scope, set) in places {
            let records = under(&self.updater, prefix.to_owned(), *set).await?;
            all.extend(records.into_iter().map(|record| (*scope, record)));
        }
        Ok(all)
    }
}

/// Topics with the number of their memories, each as the first record spells it.
fn topics<'r>(records: impl Iterator<Item = &'r Record>) -> BTreeMap<String, usize> {
    let mut counts: BTreeMap<String, (String, usize)> = BTreeMap::new();
    // A record that cannot be read does not hide the others.
    for memory in records.filter_map(|record| body::<Memory>(record).ok()) {
        counts.entry(prefix(&memory.topic)).or_insert((memory.topic, 0)).1 += 1;
    }
    counts.into_values().collect()
}

/// Whether the content is nothing but an order to forget.
fn means_forget(content: &str) -> bool {
    let mut said = words(content);
    matches!((said.next(), said.next()), (Some(word), None) if FORGET.contains(&word.as_str()))
}

async fn under(updater: &RecordUpdater, prefix: String, set: RecordSet) -> Result<Vec<Record>, StoreError> {
    let listing = Listing {
        prefix,
        limit: MEMORIES_MAX,
        after: None,
    };
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

fn told(scope: Option<Scope>, record: &Record) -> Result<Value, CallFailure> {
    let memory: Memory = body(record)?;
    Ok(json!({
        "id": record.id,
        "scope": scope,
        "topic": memory.topic,
        "content": memory.content,
        "createdAt": record.created,
        "updatedAt": record.updated,
    }))
}
