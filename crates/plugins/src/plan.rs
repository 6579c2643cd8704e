//! What stands against a change of the installed plugins, found before anything changes. Pure: it looks at the index as
//! it would be.

use std::collections::{BTreeMap, BTreeSet};

use semver::{Version, VersionReq};
use toolgate_engine::tool_names::TakenNames;
use toolgate_kernel::problem::member;

use crate::error::{Reason, Refused};
use crate::index::{Index, Stored};
use crate::settings::{PluginLimits, PluginSettings};

/// What a plan goes by besides the index.
pub(crate) struct Ground<'a> {
    /// Settings of the project.
    pub settings: &'a PluginSettings,
    /// Version of the gateway.
    pub engine: &'a Version,
    /// Names of tools that other sources have.
    pub taken: &'a TakenNames,
}

impl Ground<'_> {
    /// What stands against making `package` the current one of its plugin.
    pub fn against_running(&self, index: &Index, package: &Stored) -> Vec<Refused> {
        let mut refused = Vec::new();
        refused.extend(self.engine_mismatch(package));
        refused.extend(self.missing_dependencies(index, package));
        refused.extend(unsatisfied_dependents(index, package));
        refused.extend(cycle(index, package));
        refused.extend(self.name_conflicts(index, package));
        refused
    }

    fn engine_mismatch(&self, package: &Stored) -> Option<Refused> {
        let range = package.engine.as_deref()?;
        let words = format!("it needs version {range} of the gateway, this is {}", self.engine);
        (!fits(range, self.engine)).then(|| Reason::Engine.at("/engine", words))
    }

    fn missing_dependencies(&self, index: &Index, package: &Stored) -> Vec<Refused> {
        let missing = package.dependencies.iter().filter_map(|(needed, range)| {
            // A plugin that needs itself is a cycle, and told as one.
            if *needed == package.plugin {
                return None;
            }
            let words = match index.running(needed, self.settings) {
                Err(_) if !index.plugins.contains_key(needed) => {
                    format!("it needs the plugin {needed:?} in version {range}, which is not installed; install that first")
                }
                Err(stopped) => format!("it needs the plugin {needed:?}, which does not run: {}", stopped.words()),
                Ok((_, found, _)) if !has_version(range, found) => format!(
                    "it needs the plugin {needed:?} in version {range}, installed is {}; install another version of it first",
                    found.version
                ),
                Ok(_) => return None,
            };
            Some(Reason::Dependency.at(member("/dependencies", needed), words))
        });
        missing.collect()
    }

    fn name_conflicts(&self, index: &Index, package: &Stored) -> Vec<Refused> {
        let others = index.plugins.iter().filter(|(id, _)| **id != package.plugin);
        let mut theirs = BTreeMap::new();
        for (id, _) in others {
            for tool in index.current(id).into_iter().flat_map(|(_, other)| &other.tools) {
                theirs.insert(folded(tool), format!("the plugin {id:?}"));
            }
        }
        let taken = |tool: &String| {
            let other = self.taken.owner(tool).map(str::to_owned);
            other.or_else(|| theirs.get(&folded(tool)).cloned())
        };
        let conflicts = package.tools.iter().enumerate().filter_map(|(number, tool)| {
            let words = format!(
                "{} has a tool named {tool:?} already; a plugin cannot take that name",
                taken(tool)?
            );
            Some(Reason::NameConflict.at(format!("/tools/{number}/name"), words))
        });
        conflicts.collect()
    }
}

/// What stands against storing one more package.
pub(crate) fn against_storing(
    index: &Index,
    hash: &str,
    package: &Stored,
    limits: &PluginLimits,
) -> Vec<Refused> {
    let mut refused = Vec::new();
    let mut beyond = |exceeded: bool, words: String| {
        if exceeded {
            refused.push(Reason::LimitExceeded.at("", words));
        }
    };
    let is_new = !index.plugins.contains_key(&package.plugin);
    beyond(
        is_new && index.plugins.len() >= limits.installed,
        format!(
            "the project has {} plugins, which is the most it may have; remove one first",
            index.plugins.len()
        ),
    );
    if !index.packages.contains_key(hash) {
        beyond(
            index.packages.len() >= limits.packages,
            format!(
                "the project stores {} packages, which is the most it may; purge a removed plugin or old versions first",
                index.packages.len()
            ),
        );
        let bytes = index.bytes() + package.bytes;
        beyond(
            bytes > limits.bytes,
            format!(
                "the project's packages would have {bytes} bytes, at most {} are allowed; purge a removed plugin or old \
                 versions first",
                limits.bytes
            ),
        );
    }
    refused
}

/// What stands against removing a plugin: others that need it.
pub(crate) fn against_removing(index: &Index, plugin: &str) -> Vec<Refused> {
    let needing = dependents(index, plugin).map(|(id, range)| {
        let words = format!("the plugin {id:?} needs it in version {range}; remove that first");
        Reason::Dependency.at("", words)
    });
    needing.collect()
}

/// Installed plugins whose current package needs this plugin, with the range they need.
fn dependents<'i>(index: &'i Index, plugin: &'i str) -> impl Iterator<Item = (&'i str, &'i str)> {
    index.plugins.keys().filter_map(move |id| {
        let (_, package) = index.current(id).filter(|_| id != plugin)?;
        Some((id.as_str(), package.dependencies.get(plugin)?.as_str()))
    })
}

fn unsatisfied_dependents(index: &Index, package: &Stored) -> Vec<Refused> {
    let needing = dependents(index, &package.plugin).filter(|(_, range)| !has_version(range, package));
    let needing = needing.map(|(id, range)| {
        let words = format!(
            "the plugin {id:?} needs it in version {range}, this is {}",
            package.version
        );
        Reason::Dependency.at("/version", words)
    });
    needing.collect()
}

/// A circle of dependencies that `package` would close.
fn cycle(index: &Index, package: &Stored) -> Option<Refused> {
    let mut seen = BTreeSet::new();
    let mut path = vec![package.plugin.as_str()];
    closes(index, package, &package.plugin, &mut seen, &mut path).then(|| {
        path.push(&package.plugin);
        let words = format!(
            "plugins would depend on each other in a circle: {}",
            path.join(" → ")
        );
        Reason::Dependency.at("/dependencies", words)
    })
}

/// Whether the dependencies of `package` lead to `goal`; `path` is then the way. Each plugin is looked at once.
fn closes<'i>(
    index: &'i Index,
    package: &'i Stored,
    goal: &str,
    seen: &mut BTreeSet<&'i str>,
    path: &mut Vec<&'i str>,
) -> bool {
    for needed in package.dependencies.keys() {
        if needed == goal {
            return true;
        }
        if !seen.insert(needed) {
            continue;
        }
        let Some((_, next)) = index.current(needed) else {
            continue;
        };
        path.push(needed);
        if closes(index, next, goal, seen, path) {
            return true;
        }
        path.pop();
    }
    false
}

fn has_version(range: &str, package: &Stored) -> bool {
    Version::parse(&package.version).is_ok_and(|version| fits(range, &version))
}

/// A range that cannot be read fits nothing.
fn fits(range: &str, version: &Version) -> bool {
    VersionReq::parse(range).is_ok_and(|range| range.matches(version))
}

/// Names that differ only in case are one name to people.
fn folded(name: &str) -> String {
    name.to_ascii_lowercase()
}
