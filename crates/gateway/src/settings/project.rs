//! Settings that a project may have of its own: the gateway's, overlaid by `[projects.NAME]` of the settings file,
//! overlaid by what was stored over HTTP. A section that is given replaces the whole section below it; secrets are
//! joined by name.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use toolgate_kernel::agent::Secret;
use toolgate_kernel::json::Json;
use toolgate_kernel::problem::{Problem, member};

use super::{
    Budgets, ClientTools, Images, Mcp, Model, Outside, Plugins, Retention, RetentionAges, Search, Settings,
    text,
};

/// Name of the project that the gateway begins with; the gateway's own secrets and outbound allow-list are its alone.
pub const DEFAULT_PROJECT: &str = "default";

/// The sections of a project's settings, each as far as it is given.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ProjectOverlay {
    /// The model of agents that name none.
    pub model: Option<Model>,
    /// Limits on tools that requests bring, and the policy for conflicts of names.
    pub client_tools: Option<ClientTools>,
    /// Outbound network access of the project's tools.
    pub outside: Option<Outside>,
    /// What `request` tools may send by name.
    #[serde(deserialize_with = "text::secrets")]
    pub secrets: BTreeMap<String, Secret>,
    /// The web search provider.
    pub search: Option<Search>,
    /// The image provider.
    pub images: Option<Images>,
    /// Plugins.
    pub plugins: Option<Plugins>,
    /// What the project, its users and its agents may consume.
    pub budgets: Option<Budgets>,
    /// How long what has ended is kept.
    pub retention: Option<Retention>,
    /// The same as it was stored over HTTP: without an archive.
    #[serde(skip)]
    pub retention_ages: Option<RetentionAges>,
    /// MCP servers. In the settings file alone: they may run programs and lead inside.
    pub mcp: Option<Mcp>,
}

impl ProjectOverlay {
    /// Reads settings as they are stored: JSON with camelCase members. Every problem has a pointer to its section.
    pub fn read(settings: &Json) -> Result<Self, Vec<Problem>> {
        let Value::Object(sections) = settings.to_value() else {
            return Err(vec![Problem::new("", "expected an object of sections")]);
        };
        let (mut overlay, mut problems) = (Self::default(), Vec::new());
        for (name, section) in sections {
            let read = match name.as_str() {
                "model" => section_of(section).map(|read| overlay.model = Some(read)),
                "clientTools" => section_of(section).map(|read| overlay.client_tools = Some(read)),
                "outside" => section_of(section).map(|read| overlay.outside = Some(read)),
                "search" => section_of(section).map(|read| overlay.search = Some(read)),
                "images" => section_of(section).map(|read| overlay.images = Some(read)),
                "plugins" => section_of(section).map(|read| overlay.plugins = Some(read)),
                "budgets" => section_of(section).map(|read| overlay.budgets = Some(read)),
                "retention" => section_of(section).map(|read| overlay.retention_ages = Some(read)),
                // Names of secrets are the project's own.
                "secrets" => text::secrets(section).map(|read| overlay.secrets = read),
                _ => Err(serde::de::Error::custom(
                    "unknown section, expected one of model, clientTools, outside, secrets, search, images, plugins, \
                     budgets, retention",
                )),
            };
            // The value may be a secret: serde's messages quote numbers and words, so only what is expected is told.
            problems.extend(
                read.err()
                    .map(|error| Problem::new(member("", &name), error.to_string())),
            );
        }
        match problems.is_empty() {
            true => Ok(overlay),
            false => Err(problems),
        }
    }
}

fn section_of<T: DeserializeOwned>(section: Value) -> Result<T, serde_json::Error> {
    T::deserialize(snake_case(section))
}

/// The same value with the member names of the settings file.
fn snake_case(value: Value) -> Value {
    match value {
        Value::Object(members) => {
            let members = members
                .into_iter()
                .map(|(name, value)| (snake(&name), snake_case(value)));
            Value::Object(members.collect::<Map<_, _>>())
        }
        other => other,
    }
}

fn snake(name: &str) -> String {
    let mut snake = String::with_capacity(name.len());
    for c in name.chars() {
        if c.is_ascii_uppercase() {
            snake.push('_');
        }
        snake.push(c.to_ascii_lowercase());
    }
    snake
}

impl Settings {
    /// The gateway's settings as the project of this name has them, with what was stored for it.
    pub fn of_project(&self, name: &str, stored: Option<ProjectOverlay>) -> Self {
        let mut own = Self {
            projects: BTreeMap::new(),
            ..self.clone()
        };
        if name != DEFAULT_PROJECT {
            own.secrets.clear();
            own.outside.allow.clear();
            own.plugins.signing = Default::default();
            own.outside.user_token.clear();
            own.mcp = own.mcp.for_others();
        }
        // Of every layer: one that replaces the section must not give the key of the one below to tools.
        let mut signing_secrets = Vec::from_iter(own.plugins.signing.secret.clone());
        for overlay in [self.projects.get(name).cloned(), stored].into_iter().flatten() {
            let plugins = overlay.plugins.as_ref();
            signing_secrets.extend(plugins.and_then(|plugins| plugins.signing.secret.clone()));
            own.model = overlay.model.unwrap_or(own.model);
            own.client_tools = overlay.client_tools.unwrap_or(own.client_tools);
            own.outside = overlay.outside.unwrap_or(own.outside);
            own.search = overlay.search.unwrap_or(own.search);
            own.images = overlay.images.unwrap_or(own.images);
            own.plugins = overlay.plugins.unwrap_or(own.plugins);
            own.budgets = overlay.budgets.unwrap_or(own.budgets);
            own.mcp = overlay.mcp.unwrap_or(own.mcp);
            own.retention = overlay.retention.unwrap_or(own.retention);
            if let Some(ages) = overlay.retention_ages {
                own.retention = own.retention.with_ages(ages);
            }
            own.secrets.extend(overlay.secrets);
        }
        let signing = &mut own.plugins.signing;
        signing.private_key = signing
            .secret
            .as_ref()
            .and_then(|name| own.secrets.get(name))
            .cloned();
        own.secrets.retain(|name, _| !signing_secrets.contains(name));
        own
    }
}
