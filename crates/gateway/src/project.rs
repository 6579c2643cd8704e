//! The project `default`: made at the first start with its keys and an agent to talk to.

use std::fmt;

use anyhow::{Context, anyhow};
use serde_json::Value;
use toolgate_door_http::keys;
use toolgate_engine::store::{KeyKind, KeyRecord, ProjectRecord, StoreError};
use toolgate_engine::{AgentError, Engine};
use toolgate_kernel::agent::Secret;
use toolgate_kernel::id::ProjectId;
use toolgate_kernel::json::Json;
use toolgate_kernel::name::AgentName;
use uuid::Uuid;

use crate::settings::{self, Settings};

/// The project that a gateway begins with.
const PROJECT: &str = "default";
/// The agent that a project begins with, and that `[model]` is for.
const AGENT: &str = "default";
const AGENT_CONFIG: &str = include_str!("../assets/default-agent.json");
/// Bytes of randomness in a token secret: as many as HS256 has in its hash.
const JWT_SECRET_BYTES: usize = 32;
/// Marks the keys that come from the settings: when the setting changes, the old key ends.
const FROM_SETTINGS: &str = "settings";
const FIRST_START: &str = "first start";

/// What was made and has to be shown now or never.
#[derive(Default)]
pub struct Fresh {
    /// The secret key.
    pub secret_key: Option<Secret>,
    /// The public key.
    pub public_key: Option<Secret>,
    /// What signs users' tokens.
    pub jwt_secret: Option<Secret>,
}

impl Fresh {
    fn is_empty(&self) -> bool {
        self.secret_key.is_none() && self.public_key.is_none() && self.jwt_secret.is_none()
    }
}

/// Makes sure that the project `default` has what the settings say, and makes what is missing. `show` is
/// given what was made before it is stored: a key that nobody saw would lock its owner out, while one that was
/// shown and never stored is made anew at the next start.
pub async fn ensure(
    engine: &Engine,
    settings: &Settings,
    show: impl FnOnce(&Fresh),
) -> anyhow::Result<ProjectId> {
    let mut fresh = Fresh::default();
    let (project, changed) = project(engine, settings, &mut fresh).await?;
    let mut wanted = Vec::new();
    for (kind, given) in [
        (KeyKind::Secret, &settings.secret_key),
        (KeyKind::Public, &settings.public_key),
    ] {
        wanted.extend(key(engine, &project, kind, given.as_ref(), &mut fresh).await?);
    }
    if !fresh.is_empty() {
        show(&fresh);
    }
    let store = engine.store();
    if changed {
        store.put_project(project.clone()).await?;
    }
    for record in wanted {
        match store.put_key(record).await {
            Ok(()) | Err(StoreError::Exists) => {}
            Err(error) => return Err(error.into()),
        }
    }
    agent(engine, project.id, &settings.model).await?;
    Ok(project.id)
}

/// The row as it should be, and whether that is news to the store.
async fn project(
    engine: &Engine,
    settings: &Settings,
    fresh: &mut Fresh,
) -> anyhow::Result<(ProjectRecord, bool)> {
    let known = engine.store().project_named(PROJECT).await?;
    let mut project = known.clone().unwrap_or_else(|| ProjectRecord {
        id: ProjectId::new(Uuid::now_v7()),
        name: PROJECT.into(),
        jwt_secret: None,
        jwks_url: None,
        created: engine.clock().now(),
    });
    if let Some(given) = &settings.jwt_secret {
        project.jwt_secret = Some(given.expose().into());
    } else if project.jwt_secret.is_none() {
        let made = random_text()?;
        fresh.jwt_secret = Some(Secret::new(made.clone()));
        project.jwt_secret = Some(made);
    }
    let changed = known.as_ref() != Some(&project);
    Ok((project, changed))
}

/// The key of this kind that has to be stored: the one from the settings, or a new one when the project has
/// none at all. Ends the one that stood in the settings before.
async fn key(
    engine: &Engine,
    project: &ProjectRecord,
    kind: KeyKind,
    given: Option<&Secret>,
    fresh: &mut Fresh,
) -> anyhow::Result<Option<KeyRecord>> {
    let store = engine.store();
    let now = engine.clock().now();
    let mut known = store.keys(project.id).await?;
    known.retain(|key| key.kind == kind);
    let Some(given) = given else {
        if !known.is_empty() {
            return Ok(None);
        }
        let (made, record) = keys::mint(project.id, kind, Some(FIRST_START.into()), now);
        match kind {
            KeyKind::Secret => fresh.secret_key = Some(Secret::new(made)),
            KeyKind::Public => fresh.public_key = Some(Secret::new(made)),
        }
        return Ok(Some(record));
    };
    let variable = match kind {
        KeyKind::Secret => "TOOLGATE_SECRET_KEY",
        KeyKind::Public => "TOOLGATE_PUBLIC_KEY",
    };
    let mut record = keys::record(given.expose(), project.id, kind, now)
        .map_err(|reason| anyhow!("the key in {variable} will not do: {reason}"))?;
    record.name = Some(FROM_SETTINGS.into());
    for old in known {
        if old.name.as_deref() == Some(FROM_SETTINGS) && old.hash != record.hash {
            store.remove_key(project.id, old.id).await?;
        }
    }
    Ok(Some(record))
}

/// Gives a project without agents its first one, and the agent `default` the model of the settings.
async fn agent(engine: &Engine, project: ProjectId, model: &settings::Model) -> anyhow::Result<()> {
    let name: AgentName = AGENT.parse().expect("a name");
    let agents = engine.store().agents(project).await?;
    let stored = agents.iter().find(|agent| agent.name == name);
    let mut config: Value = match stored {
        Some(stored) => stored.config.to_value(),
        None if agents.is_empty() => serde_json::from_str(AGENT_CONFIG).expect("the asset is JSON"),
        None => return Ok(()),
    };
    if let Some(model) = model_config(model) {
        config["model"] = model;
    } else if stored.is_some() {
        return Ok(());
    }
    match engine.put_agent(project, &name, Json::from(config)).await {
        Ok(_) => Ok(()),
        Err(AgentError::Store(error)) => Err(error.into()),
        Err(AgentError::Invalid(problems)) => {
            let told: Vec<String> = problems
                .iter()
                .map(|problem| format!("{} {}", problem.pointer, problem.message))
                .collect();
            Err(anyhow!("{}", told.join("; "))).context("the agent `default` cannot be stored")
        }
    }
}

/// The model of the settings as an agent's configuration writes it; none when the settings have none.
fn model_config(model: &settings::Model) -> Option<Value> {
    const NAME_WITHOUT_ONE: &str = "default";
    if model.base_url.is_none() && model.name.is_none() {
        return None;
    }
    let mut config = serde_json::json!({
        "provider": "openai",
        "name": model.name.as_deref().unwrap_or(NAME_WITHOUT_ONE),
    });
    if let Some(base_url) = &model.base_url {
        config["baseUrl"] = base_url.as_str().into();
    }
    if let Some(api_key) = &model.api_key {
        config["apiKey"] = api_key.expose().into();
    }
    Some(config)
}

fn random_text() -> anyhow::Result<String> {
    let mut bytes = [0; JWT_SECRET_BYTES];
    aws_lc_rs::rand::fill(&mut bytes).map_err(|_| anyhow!("the system gives no random numbers"))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// What a person needs who has just started the gateway for the first time. `url` is where it listens.
pub struct Welcome<'a> {
    /// What was made.
    pub fresh: &'a Fresh,
    /// Where the gateway listens.
    pub url: &'a str,
}

impl fmt::Display for Welcome<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { fresh, url } = self;
        writeln!(
            out,
            "\nKeys of the project `{PROJECT}`. They are shown this once:"
        )?;
        for (what, made) in [
            ("secret key", &fresh.secret_key),
            ("public key", &fresh.public_key),
            ("JWT secret", &fresh.jwt_secret),
        ] {
            if let Some(made) = made {
                writeln!(out, "  {what}  {}", made.expose())?;
            }
        }
        let Some(key) = fresh.secret_key.as_ref().map(Secret::expose) else {
            return Ok(());
        };
        writeln!(out, "\nConsole\n  {url}/#key={key}")?;
        writeln!(out, "\nFirst message")?;
        writeln!(out, "  curl {url}/v1/runs -H 'authorization: Bearer {key}' \\")?;
        writeln!(
            out,
            "    -H 'content-type: application/json' -d '{{\"message\": \"Where is my order A-1042?\"}}'"
        )
    }
}
