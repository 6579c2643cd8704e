//! Tools for the space of a run: its metadata, members and last messages.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use toolgate_engine::record_updater::RecordUpdater;
use toolgate_engine::records::{Owner, RecordSet};
use toolgate_engine::store::{Directory, LogRange, Pages, SpaceRecord, Store};
use toolgate_engine::tools::{CallContext, CallFailure};
use toolgate_kernel::agent::Action;
use toolgate_kernel::call::ErrorCode;
use toolgate_kernel::event::Event;
use toolgate_kernel::id::RunId;
use toolgate_kernel::json::Json;
use toolgate_kernel::message::Part;
use toolgate_kernel::tool::Retry;

use crate::records::input;
use crate::toolkit::ServerTool;

/// Messages returned by default.
const MESSAGES_DEFAULT: usize = 10;
const MESSAGES_MAX: usize = 50;
/// Most characters of a message that are returned.
const MESSAGE_CHARS_MAX: usize = 2000;
/// Most members that are returned.
const MEMBERS_MAX: usize = 100;
/// Newest log entries that are searched for messages.
const ENTRIES_MAX: usize = 2_000;
/// Most bytes of a space's metadata.
const METADATA_BYTES_MAX: usize = 32 * 1024;
const TITLE_CHARS_MAX: usize = 200;
/// Kind of the record set whose lock serialises changes of a space's row; it has no records.
const KIND: &str = "space";
const TIMEOUT: Duration = Duration::from_secs(10);

/// Reads the space.
pub(crate) struct GetSpaceContext(pub Arc<dyn Store>);
/// Changes the space's title and metadata.
pub(crate) struct UpdateSpaceMetadata {
    pub store: Arc<dyn Directory>,
    pub updater: RecordUpdater,
}

#[derive(Deserialize)]
struct GetInput {
    messages: Option<usize>,
}

#[derive(Deserialize)]
struct UpdateInput {
    title: Option<String>,
    #[serde(default)]
    metadata: Map<String, Value>,
}

#[async_trait]
impl ServerTool for GetSpaceContext {
    fn name(&self) -> &'static str {
        "getSpaceContext"
    }
    fn action(&self) -> Action {
        Action {
            description:
                "Read about the conversation you are in: its title and metadata, who takes part, and the \
                          last messages."
                    .into(),
            parameters: json!({
                "type": "object",
                "properties": {
                    "messages": {"type": "integer", "minimum": 0, "maximum": MESSAGES_MAX, "description": "Most recent messages to give. Default: 10."},
                },
            }),
            timeout: TIMEOUT,
            retry: Retry::Safe,
        }
    }
    async fn call(&self, given: Value, context: &CallContext) -> Result<Value, CallFailure> {
        let wanted: GetInput = input(given)?;
        let space = own(self.0.space(context.space).await?, context)?;
        let mut members = Vec::new();
        for &id in space.members.iter().take(MEMBERS_MAX) {
            let entity = self.0.entity(id).await?;
            members.push(match entity {
                Some(entity) => {
                    json!({"id": id, "subject": entity.subject, "kind": entity.kind, "name": entity.name})
                }
                None => json!({"id": id}),
            });
        }
        let messages = self
            .messages(wanted.messages.unwrap_or(MESSAGES_DEFAULT), context)
            .await?;
        let mut told = told(&space);
        told["members"] = members.into();
        told["totalMembers"] = space.members.len().into();
        told["recentMessages"] = messages.into();
        Ok(told)
    }
}

impl GetSpaceContext {
    /// The last messages, oldest first.
    async fn messages(&self, limit: usize, context: &CallContext) -> Result<Vec<Value>, CallFailure> {
        let mut pages = Pages::of_space(context.space, LogRange::newest());
        let mut agents: HashMap<RunId, Value> = HashMap::new();
        let (mut said, mut read) = (Vec::new(), 0);
        while said.len() < limit
            && read < ENTRIES_MAX
            && let Some(page) = pages.next(&*self.0).await?
        {
            read += page.entries.len();
            for entry in &page.entries {
                for event in entry.events.iter().rev() {
                    let (from, text) = match event {
                        Event::Said(e) => (json!(e.message.from), words(&e.message.parts)),
                        Event::TextEnd(e) => {
                            let Some(run) = entry.run else { continue };
                            (self.agent_of(run, &mut agents).await?, e.text.clone())
                        }
                        _ => continue,
                    };
                    let text: String = text.chars().take(MESSAGE_CHARS_MAX).collect();
                    said.push(json!({"from": from, "text": text, "time": entry.time}));
                }
            }
        }
        said.truncate(limit);
        said.reverse();
        Ok(said)
    }

    async fn agent_of(&self, run: RunId, known: &mut HashMap<RunId, Value>) -> Result<Value, CallFailure> {
        if let Some(agent) = known.get(&run) {
            return Ok(agent.clone());
        }
        let record = self.0.run(run).await?;
        let agent = json!({"agent": record.map(|record| record.agent.to_string())});
        known.insert(run, agent.clone());
        Ok(agent)
    }
}

#[async_trait]
impl ServerTool for UpdateSpaceMetadata {
    fn name(&self) -> &'static str {
        "updateSpaceMetadata"
    }
    fn action(&self) -> Action {
        Action {
            description:
                "Change the metadata of the conversation you are in. Members that you leave out stay as they \
                          are; null takes one away."
                    .into(),
            parameters: json!({
                "type": "object",
                "properties": {
                    "metadata": {"type": "object", "description": "What to merge into the metadata."},
                    // A `title` is read too, but not offered: models that are offered one change it unasked.
                },
            }),
            timeout: TIMEOUT,
            // The change is stored with the call's receipt, so a repeated call has no further effect.
            retry: Retry::Safe,
        }
    }
    async fn call(&self, given: Value, context: &CallContext) -> Result<Value, CallFailure> {
        let wanted: UpdateInput = input(given)?;
        let set = RecordSet {
            project: context.project,
            owner: Owner::Space(context.space),
            kind: KIND,
        };
        let attempt = || async {
            let found = self.store.space(context.space).await?;
            let (before, after) = match own(found, context).and_then(|before| wanted.change(before)) {
                Ok(changed) => changed,
                Err(refusal) => return Ok(Err(refusal)),
            };
            let told = told(&after);
            let receipt = context.receipt(told.clone().into());
            let amended = self
                .store
                .amend_space(before, after.title, after.metadata, Some(receipt));
            amended.await?;
            Ok(Ok(told))
        };
        self.updater.in_turn(set, attempt).await?
    }
}

impl UpdateInput {
    /// The space before and after the change.
    fn change(&self, before: SpaceRecord) -> Result<(SpaceRecord, SpaceRecord), CallFailure> {
        let mut after = before.clone();
        let chars = self.title.as_ref().map_or(0, |title| title.chars().count());
        if chars > TITLE_CHARS_MAX {
            let words =
                format!("a title may have {TITLE_CHARS_MAX} characters, got {chars}; nothing was changed");
            return Err(CallFailure::new(ErrorCode::ValidationFailed, words));
        }
        after.title = self.title.clone().or(after.title);
        if !self.metadata.is_empty() {
            let old = before.metadata.as_ref().map_or(Value::Null, Json::to_value);
            after.metadata = Some(merged(old, self.metadata.clone().into()).into());
        }
        let bytes = after.metadata.as_ref().map_or(0, |it| it.as_str().len());
        if bytes > METADATA_BYTES_MAX {
            let words = format!("the metadata may have {METADATA_BYTES_MAX} bytes; nothing was changed");
            return Err(CallFailure::new(ErrorCode::LimitExceeded, words));
        }
        Ok((before, after))
    }
}

fn own(found: Option<SpaceRecord>, context: &CallContext) -> Result<SpaceRecord, CallFailure> {
    let own = found.filter(|space| space.project == context.project);
    own.ok_or_else(|| CallFailure::new(ErrorCode::NotFound, "this run stands in no space of its own"))
}

fn told(space: &SpaceRecord) -> Value {
    json!({
        "spaceId": space.id,
        "title": space.title,
        "metadata": space.metadata,
        "createdAt": space.created,
    })
}

fn words(parts: &[Part]) -> String {
    let texts = parts.iter().map(|part| match part {
        Part::Text { text } => text.as_str(),
        Part::Image { .. } => "[image]",
    });
    texts.collect::<Vec<_>>().join(" ")
}

/// `old` with `patch` merged into it, as RFC 7396 says.
fn merged(old: Value, patch: Value) -> Value {
    let Value::Object(patch) = patch else { return patch };
    let mut members = match old {
        Value::Object(members) => members,
        _ => Map::new(),
    };
    for (name, value) in patch {
        if value.is_null() {
            members.shift_remove(&name);
        } else {
            let old = members.get_mut(&name).map_or(Value::Null, Value::take);
            members.insert(name, merged(old, value));
        }
    }
    members.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_patch_is_merged_member_by_member() {
        let old = json!({"a": 1, "b": {"c": 2, "d": 3}, "e": [1]});
        let patch = json!({"a": null, "b": {"c": 9, "x": null}, "e": {"f": null}, "g": 0});
        assert_eq!(
            merged(old, patch),
            json!({"b": {"c": 9, "d": 3}, "e": {}, "g": 0})
        );
    }
}
