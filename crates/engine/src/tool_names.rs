//! Names of a project's tools: a name belongs to one source, whatever two of them do at the same moment.
//!
//! Whoever stores a tool under a new name reads what the other sources have ([`Sources::taken_names`]) and amends its own
//! records with [`TakenNames::turn`]. All of them share that turn, so of two changes that have read the same names one is
//! made, and the other reads again. A source whose tools come from elsewhere by themselves has a prefix of its own
//! instead ([`ToolSource::name_prefix`]), so nobody has to ask it.
//!
//! [`ToolSource::name_prefix`]: crate::tools::ToolSource::name_prefix

use std::collections::BTreeMap;

use toolgate_kernel::id::ProjectId;

use crate::records::{Owner, RecordSet, Turn};
use crate::sources::Sources;
use crate::store::StoreError;
use crate::tools::{BUILT_IN, CallFailure, SHARED};

/// Kind of the record that changes whenever a name is taken.
const KIND: &str = "tool-name";
/// Its id.
const STAMP: &str = "stamp";

/// Names that a source must not use, as they were at one moment.
#[derive(Debug, Clone)]
pub struct TakenNames {
    /// By name, folded: names that differ only in case are one name to people.
    owners: BTreeMap<String, String>,
    /// What names of other sources begin with.
    prefixes: Vec<(&'static str, String)>,
    turn: Turn,
}

impl TakenNames {
    /// What was read at the version of the stamp that `turn` names.
    fn new(turn: Turn) -> Self {
        Self {
            owners: BTreeMap::new(),
            prefixes: Vec::new(),
            turn,
        }
    }

    /// With a name that a source has.
    fn add(&mut self, name: &str, source: &str) {
        self.owners
            .entry(name.to_ascii_lowercase())
            .or_insert_with(|| owner(source));
    }

    /// Who has a name, in words; none if it is free.
    pub fn owner(&self, name: &str) -> Option<&str> {
        let name = name.to_ascii_lowercase();
        let by_prefix = self.prefixes.iter().find(|(prefix, _)| name.starts_with(prefix));
        let owner = self.owners.get(&name);
        owner.or(by_prefix.map(|(_, owner)| owner)).map(String::as_str)
    }

    /// Part of an amendment that takes names: it is refused if names were taken since these were read.
    pub fn turn(&self) -> Turn {
        self.turn.clone()
    }
}

/// The names of a source cannot be read, so no name counts as free.
#[derive(Debug, thiserror::Error)]
pub enum NamesUnknown {
    /// A source does not say what its tools are called.
    #[error(
        "the names of the tools of {owner} cannot be read now, and a new name may be one of them; nothing was changed, \
         try again later: {failure}"
    )]
    Source {
        /// Who has the tools, in words.
        owner: String,
        /// Why they cannot be read.
        failure: CallFailure,
    },
    /// The store does not say who took a name last.
    #[error("the names of the project's tools cannot be read now; nothing was changed, try again later")]
    Store(#[from] StoreError),
}

impl Sources {
    /// The names that sources other than `except` have in a project, as they are stored now. No name counts as free while
    /// one of the sources cannot say.
    pub async fn taken_names(&self, project: ProjectId, except: &str) -> Result<TakenNames, NamesUnknown> {
        // Read first: a name that is taken after this changes it.
        let stamp = self.records().record(set(project), STAMP).await?;
        let mut taken = TakenNames::new(Turn {
            set: set(project),
            id: STAMP.into(),
            version: stamp.map(|stamp| stamp.version),
        });
        for source in self.all().iter().filter(|source| source.name() != except) {
            if let Some(prefix) = source.name_prefix() {
                let owner = format!("{}, whose names begin with {prefix:?},", owner(source.name()));
                taken.prefixes.push((prefix, owner));
                continue;
            }
            let names = source.names(project).await;
            let names = names.map_err(|failure| NamesUnknown::Source {
                owner: owner(source.name()),
                failure,
            })?;
            for name in &names {
                taken.add(name, source.name());
            }
        }
        Ok(taken)
    }
}

fn set(project: ProjectId) -> RecordSet {
    RecordSet {
        project,
        owner: Owner::Project,
        kind: KIND,
    }
}

fn owner(source: &str) -> String {
    match source {
        BUILT_IN => "the gateway".into(),
        SHARED => "the project (a shared tool)".into(),
        other => format!("the source {other:?}"),
    }
}

#[cfg(test)]
mod tests {
    use toolgate_kernel::id::ProjectId;

    use super::{TakenNames, set};
    use crate::records::Turn;

    #[test]
    fn a_name_is_taken_whatever_its_case_and_so_is_every_one_with_the_prefix_of_a_source() {
        let turn = Turn {
            set: set(ProjectId::from_bytes([1; 16])),
            id: "stamp".into(),
            version: None,
        };
        let mut taken = TakenNames::new(turn);
        taken.add("getTime", "plugin");
        taken.prefixes.push(("mcp_", "the source \"mcp\"".into()));
        assert_eq!(taken.owner("GETTIME"), Some("the source \"plugin\""));
        assert_eq!(taken.owner("MCP_files_read"), Some("the source \"mcp\""));
        assert_eq!(taken.owner("mcp"), None);
    }
}
