//! The registered plugins of a client: validated at registration, kept in order.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use toolgate_protocol::name::NAME_CHARS_MAX;

use crate::definition_rules;
use crate::error::PluginError;
use crate::plugin::Plugin;
use crate::tool::{Definition, Tool};

/// What a gateway with `conflict = "prefix"` puts before the name of a client tool that the agent has as well.
const CONFLICT_PREFIX: &str = "client_";
/// Characters of the hash that ends a name which is too long with the prefix.
const CUT_HASH_CHARS: usize = 8;

/// The name that this client gave a tool which the gateway calls `client_<name>`.
pub(crate) fn given_name(name: &str) -> Option<&str> {
    name.strip_prefix(CONFLICT_PREFIX)
}

/// The plugins, and the owner of each tool.
#[derive(Debug, Default)]
pub(crate) struct Registry {
    plugins: Vec<Arc<Plugin>>,
    /// Each tool's plugin, and its index in that plugin.
    tools: BTreeMap<String, (Arc<Plugin>, usize)>,
}

impl Registry {
    /// Registers a plugin if it is valid; otherwise nothing changes.
    pub fn insert(&mut self, plugin: Plugin) -> Result<Arc<Plugin>, PluginError> {
        if plugin.name.trim().is_empty() {
            return Err(PluginError::Unnamed);
        }
        if plugin.version.trim().is_empty() {
            return Err(PluginError::Unversioned(plugin.name));
        }
        if self.get(&plugin.name).is_some() {
            return Err(PluginError::Registered(plugin.name));
        }
        check_definitions(&plugin)?;
        let plugin = Arc::new(with_executors(plugin)?);
        check_executors(&plugin)?;
        for tool in &plugin.tools {
            if let Some((holder, _)) = self.tools.get(&tool.definition.name) {
                return Err(PluginError::Conflict {
                    tool: tool.definition.name.clone(),
                    plugin: plugin.name.clone(),
                    holder: holder.name.clone(),
                });
            }
        }
        for (index, tool) in plugin.tools.iter().enumerate() {
            let place = (plugin.clone(), index);
            self.tools.insert(tool.definition.name.clone(), place);
        }
        self.plugins.push(plugin.clone());
        Ok(plugin)
    }

    /// Replaces the tools of a registered plugin if they are valid; otherwise nothing changes.
    #[cfg(feature = "mcp")]
    pub fn replace_tools(&mut self, name: &str, tools: Vec<Tool>) -> Result<(), PluginError> {
        let at = self.plugins.iter().position(|plugin| plugin.name == name);
        let at = at.ok_or_else(|| PluginError::Unknown(name.into()))?;
        let before = self.plugins[at].clone();
        let plugin = Plugin {
            tools,
            ..(*before).clone()
        };
        check_definitions(&plugin)?;
        for tool in &plugin.tools {
            let holder = self.tools.get(&tool.definition.name).map(|(holder, _)| holder);
            if let Some(holder) = holder.filter(|holder| !Arc::ptr_eq(holder, &before)) {
                return Err(PluginError::Conflict {
                    tool: tool.definition.name.clone(),
                    plugin: plugin.name.clone(),
                    holder: holder.name.clone(),
                });
            }
        }
        let plugin = Arc::new(plugin);
        self.tools.retain(|_, (holder, _)| !Arc::ptr_eq(holder, &before));
        for (index, tool) in plugin.tools.iter().enumerate() {
            let place = (plugin.clone(), index);
            self.tools.insert(tool.definition.name.clone(), place);
        }
        self.plugins[at] = plugin;
        Ok(())
    }

    /// Removes a plugin and its tools.
    pub fn remove(&mut self, name: &str) -> Result<Arc<Plugin>, PluginError> {
        let at = self.plugins.iter().position(|plugin| plugin.name == name);
        let at = at.ok_or_else(|| PluginError::Unknown(name.into()))?;
        let plugin = self.plugins.remove(at);
        self.tools.retain(|_, (holder, _)| !Arc::ptr_eq(holder, &plugin));
        Ok(plugin)
    }

    /// The plugin of this name.
    pub fn get(&self, name: &str) -> Option<&Arc<Plugin>> {
        self.plugins.iter().find(|plugin| plugin.name == name)
    }

    /// All plugins, in order of registration.
    pub fn plugins(&self) -> &[Arc<Plugin>] {
        &self.plugins
    }

    /// The tool that a call of this name means, and its plugin: the one of the same name, or the one that the
    /// gateway has renamed because the agent has a tool of its name.
    pub fn tool(&self, name: &str) -> Option<(&Arc<Plugin>, &Tool)> {
        let (plugin, index) = self.tools.get(name).or_else(|| self.renamed(name))?;
        Some((plugin, &plugin.tools[*index]))
    }

    fn renamed(&self, name: &str) -> Option<&(Arc<Plugin>, usize)> {
        let given = given_name(name)?;
        self.tools.get(given).or_else(|| {
            // Too long with the prefix: the end of the name is cut off and replaced by a hash.
            let (start, hash) = given.rsplit_once('_')?;
            let is_cut = name.len() == NAME_CHARS_MAX && hash.len() == CUT_HASH_CHARS;
            let mut alike = self.tools.range(start.to_owned()..);
            let (found, place) = alike
                .next()
                .filter(|(found, _)| is_cut && found.starts_with(start))?;
            // Two that begin alike cannot be told apart without the hash: neither is executed by mistake.
            let is_lone = alike.next().is_none_or(|(next, _)| !next.starts_with(start));
            (is_lone && found.len() + CONFLICT_PREFIX.len() > NAME_CHARS_MAX).then_some(place)
        })
    }

    /// The definitions of all tools, in order of registration.
    pub fn definitions(&self) -> Vec<Definition> {
        let tools = self.plugins.iter().flat_map(|plugin| &plugin.tools);
        tools.map(|tool| tool.definition.clone()).collect()
    }
}

/// Validates definitions by the gateway's own rules, before they are sent.
fn check_definitions(plugin: &Plugin) -> Result<(), PluginError> {
    let definitions: Vec<&Definition> = plugin.tools.iter().map(|tool| &tool.definition).collect();
    let value = serde_json::to_value(definitions).expect("definitions are JSON");
    definition_rules::check(&value).map_err(|faults| PluginError::BadTools {
        plugin: plugin.name.clone(),
        faults,
    })
}

/// Refuses a tool without an executor where no hook could execute it either.
fn check_executors(plugin: &Plugin) -> Result<(), PluginError> {
    let bare = plugin.tools.iter().find(|tool| tool.executor.is_none());
    match bare {
        Some(tool) if plugin.hooks.is_none() => Err(PluginError::Unexecuted {
            tool: tool.definition.name.clone(),
            plugin: plugin.name.clone(),
        }),
        _ => Ok(()),
    }
}

/// Attaches to each tool the executor that the plugin has for it.
fn with_executors(mut plugin: Plugin) -> Result<Plugin, PluginError> {
    let mut given = HashSet::new();
    for (name, executor) in std::mem::take(&mut plugin.executors) {
        let tool = plugin.tools.iter_mut().find(|tool| tool.definition.name == name);
        match tool {
            Some(tool) if given.insert(name.clone()) => tool.executor = Some(executor),
            _ => {
                return Err(PluginError::Orphan {
                    tool: name,
                    plugin: plugin.name,
                });
            }
        }
    }
    Ok(plugin)
}
