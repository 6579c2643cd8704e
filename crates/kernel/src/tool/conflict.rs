//! A caller's tool that has the name of a more trusted one.

use std::collections::{HashMap, HashSet};

use super::{ClientTool, Toolbox, definition};
use crate::name::{NAME_CHARS_MAX, ToolName};
use crate::problem::{Problem, Problems};

/// What becomes of a caller's tool that has the name of one of the agent's. It never takes the name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Conflict {
    /// The request is refused.
    #[default]
    Error,
    /// The caller's is called `client_<name>`.
    Prefix,
    /// The caller's is left out.
    KeepTrusted,
}

/// What a caller's tool is called that cannot have its own name.
const PREFIX: &str = "client_";
/// Characters of the hash that stands for what was cut off a name.
const HASH_CHARS: usize = 8;

/// A caller's tools as the run will have them. Done once, when they come: the run keeps what came of it.
pub fn settle_conflicts(
    agent: &Toolbox,
    client: Vec<ClientTool>,
    conflict: Conflict,
) -> Result<Vec<ClientTool>, Vec<Problem>> {
    // A model and a person take names for the same that differ only in case, so they are taken for the same here.
    let own: HashMap<String, &ToolName> = agent.keys().map(|name| (name.folded(), name)).collect();
    let taken = |tool: &ClientTool| own.contains_key(&tool.name.folded());
    let problems = Problems::default();
    let tools: Vec<ClientTool> = match conflict {
        Conflict::Error => {
            for (index, tool) in client.iter().enumerate() {
                // The very same name is told by whoever puts the two together.
                if let Some(other) = own.get(&tool.name.folded()).filter(|other| ***other != tool.name) {
                    let words = format!(
                        "{:?} differs only in case from the agent's {other:?}; choose another name",
                        tool.name
                    );
                    problems.add(format!("/clientTools/{index}"), words);
                }
            }
            client
        }
        Conflict::KeepTrusted => client.into_iter().filter(|tool| !taken(tool)).collect(),
        Conflict::Prefix => {
            let mut names: HashSet<String> = client.iter().map(|tool| tool.name.folded()).collect();
            let tools = client.into_iter().enumerate().map(|(index, tool)| {
                if !taken(&tool) {
                    return tool;
                }
                let name = prefixed(&tool.name);
                if own.contains_key(&name.folded()) || !names.insert(name.folded()) {
                    let words = format!("the agent has a tool named {:?} already, and {name:?} is taken as well; choose another name", tool.name);
                    problems.add(format!("/clientTools/{index}"), words);
                }
                let given_name = Some(tool.name);
                ClientTool { name, given_name, ..tool }
            });
            tools.collect()
        }
    };
    problems.or(Some(tools))
}

/// `client_<name>`, cut to what a name may be; the hash keeps two names that begin alike apart.
fn prefixed(name: &ToolName) -> ToolName {
    let whole = format!("{PREFIX}{name}");
    let fits = if whole.len() <= NAME_CHARS_MAX {
        whole
    } else {
        let hash = definition::hash(&name.as_str().into());
        let kept = NAME_CHARS_MAX - HASH_CHARS - 1;
        format!("{}_{}", &whole[..kept], &hash[..HASH_CHARS])
    };
    fits.parse().expect("a prefix and a name make a name")
}
