//! What is stored of the MCP servers of a project.
//!
//! One record set (owner: the project, kind: `mcp`) holds
//! - `index`: the servers that were added over HTTP and by agents, and how often each catalog has changed,
//! - `catalog:<server>`: what a server lists, and what was decided about it.
//!
//! Every change expects the version of `index` that it has read, so changes are made one after the other, on whichever
//! node.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use toolgate_engine::record_index::{ReadIndex, put};
use toolgate_engine::records::{Change, Owner, Record, RecordSet};
use toolgate_engine::store::StoreError;
use toolgate_kernel::id::ProjectId;
use toolgate_kernel::time::Time;

use crate::flags::Flag;

/// An index as it was read.
pub(crate) type Read = ReadIndex<Index>;

/// Kind of the records.
const KIND: &str = "mcp";

/// Records of a project's servers.
pub(crate) fn record_set(project: ProjectId) -> RecordSet {
    RecordSet {
        project,
        owner: Owner::Project,
        kind: KIND,
    }
}

/// The index, from its record.
pub(crate) fn read(record: Option<Record>) -> Result<Read, StoreError> {
    ReadIndex::of(record, "MCP servers")
}

/// Id of the record that holds a catalog.
pub(crate) fn catalog_id(server: &str) -> String {
    format!("catalog:{server}")
}

/// The servers of a project that are not in its settings. A server of an agent stands under `<agent>/<server>`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Index {
    pub servers: BTreeMap<String, StoredServer>,
    /// Changes of each stored catalog.
    pub catalogs: BTreeMap<String, u64>,
}

/// A server as it was added.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct StoredServer {
    /// As it was written. Headers and variables may hold keys, so it is never shown.
    pub config: Value,
    pub added_at: Time,
    pub updated_at: Time,
}

/// What a server lists, and what was decided about it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Catalog {
    /// The server that it belongs to: one at another address, or another program, is another server.
    pub fingerprint: String,
    /// The protocol revision that the server speaks.
    pub protocol: String,
    /// Name that the server gives of itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_name: Option<String>,
    /// Version that the server gives of itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_version: Option<String>,
    /// How the server wants its tools to be used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
    /// Its tools, by its own names.
    pub tools: BTreeMap<String, StoredTool>,
    /// Tools that were left out or simplified, in words.
    #[serde(default)]
    pub warnings: Vec<String>,
    /// Time of the last change.
    pub changed_at: Time,
}

/// A tool of a server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StoredTool {
    /// What models call it. Given once, and never taken apart.
    pub name: String,
    /// As the server lists it now.
    pub definition: Value,
    /// Hash of the definition.
    pub hash: String,
    /// What was decided about it.
    pub state: State,
    /// The definition that was accepted last, if that is another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accepted: Option<Value>,
    /// What in it looks like an instruction to the model.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flags: Vec<Flag>,
    /// The server lists it no longer. What was accepted is kept: it may come back as something else.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub gone: bool,
}

/// What was decided about a definition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", tag = "is")]
pub enum State {
    /// It is offered.
    Accepted,
    /// It waits for a person.
    Held {
        /// Reason for which it was held.
        why: Why,
        /// Time at which it was held.
        since: Time,
    },
    /// A person said no.
    Rejected {
        /// Time of the decision.
        at: Time,
    },
}

/// Why a definition waits for a person.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Why {
    /// Every definition of the server does.
    New,
    /// It looks like an instruction to the model.
    Flagged,
    /// It is not what was accepted.
    Changed,
}

impl Catalog {
    /// From the stored record.
    pub(crate) fn of(record: &Record) -> Result<Self, StoreError> {
        let broken = |error| StoreError::Corrupt(format!("a catalog of an MCP server: {error}"));
        record.body.read().map_err(broken)
    }

    /// Stores it.
    pub(crate) fn put(&self, server: &str) -> Change {
        let body = serde_json::to_value(self).expect("it has text keys");
        put(catalog_id(server), body.into())
    }

    /// Tools that wait for a person.
    pub fn held(&self) -> impl Iterator<Item = (&String, &StoredTool)> {
        let waits =
            |(_, tool): &(&String, &StoredTool)| !tool.gone && matches!(tool.state, State::Held { .. });
        self.tools.iter().filter(waits)
    }
}
