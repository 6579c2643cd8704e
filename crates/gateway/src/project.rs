//! The project `default`: made at the first start with its keys and an agent to talk to.

use anyhow::anyhow;
use toolgate_access::keys;
use toolgate_engine::store::{Directory, KeyKind, KeyRecord, ProjectRecord, StoreError};
use toolgate_engine::{AgentError, Engine};
use toolgate_kernel::agent::Secret;
use toolgate_kernel::id::ProjectId;
use toolgate_kernel::json::Json;
use toolgate_kernel::name::AgentName;
use uuid::Uuid;

use crate::settings::Settings;
use crate::welcome::Fresh;

/// The project that a gateway begins with.
const PROJECT: &str = "default";
/// The agent that a project begins with. It names no model: it has the one of the settings.
const AGENT: &str = "default";
const AGENT_CONFIG: &str = include_str!("../assets/default-agent.json");
/// The example agent that newcomers meet in the console.
const WELCOME: &str = "welcome";
const WELCOME_CONFIG: &str = include_str!("../assets/welcome-agent.json");
/// Marks the keys that come from the settings: when the setting changes, the old key ends.
const FROM_SETTINGS: &str = "settings";
const FIRST_START: &str = "first start";

/// Makes sure that the project `default` has what the settings say, and makes what is missing. `show` is
/// given what was made before it is stored: a key that nobody saw would lock its owner out, while one that was
/// shown and never stored is made anew at the next start.
pub async fn ensure(
    engine: &Engine,
    directory: &dyn Directory,
    settings: &Settings,
    show: impl FnOnce(&Fresh) -> std::io::Result<()>,
) -> anyhow::Result<ProjectId> {
    let mut fresh = Fresh::default();
    let (project, changed) = project(engine, directory, settings, &mut fresh).await?;
    let mut wanted = Vec::new();
    for (kind, given) in [
        (KeyKind::Secret, &settings.secret_key),
        (KeyKind::Public, &settings.public_key),
    ] {
        wanted.extend(key(engine, &project, kind, given.as_ref(), &mut fresh).await?);
    }
    if !fresh.is_empty() {
        show(&fresh)?;
    }
    if changed {
        directory.put_project(project.clone()).await?;
    }
    for record in wanted {
        match engine.put_key(record).await {
            Ok(()) | Err(StoreError::Exists) => {}
            Err(error) => return Err(error.into()),
        }
    }
    first_agents(engine, project.id, settings.agents.is_none()).await?;
    Ok(project.id)
}

/// Refuses keys of the settings that will not do.
pub fn check_keys(settings: &Settings) -> anyhow::Result<()> {
    if let Some(key) = &settings.operator_key {
        keys::check_operator(key.expose())
            .map_err(|reason| anyhow!("the key in TOOLGATE_OPERATOR_KEY will not do: {reason}"))?;
    }
    for (variable, kind, given) in [
        ("TOOLGATE_SECRET_KEY", KeyKind::Secret, &settings.secret_key),
        ("TOOLGATE_PUBLIC_KEY", KeyKind::Public, &settings.public_key),
    ] {
        if let Some(key) = given {
            keys::check(key.expose(), kind)
                .map_err(|reason| anyhow!("the key in {variable} will not do: {reason}"))?;
        }
    }
    Ok(())
}

/// The row as it should be, and whether that is news to the store.
async fn project(
    engine: &Engine,
    directory: &dyn Directory,
    settings: &Settings,
    fresh: &mut Fresh,
) -> anyhow::Result<(ProjectRecord, bool)> {
    let known = directory.project_named(PROJECT).await?;
    let mut project = known.clone().unwrap_or_else(|| ProjectRecord {
        id: ProjectId::new(Uuid::now_v7()),
        name: PROJECT.into(),
        jwt_secret: None,
        identity_provider: None,
        settings: None,
        created: engine.clock().now(),
    });
    if let Some(given) = &settings.jwt_secret {
        project.jwt_secret = Some(given.expose().into());
    } else if project.jwt_secret.is_none() {
        let made = keys::token_secret();
        fresh.jwt_secret = Some(Secret::new(made.clone()));
        project.jwt_secret = Some(made);
    }
    if let Some(given) = settings.jwt.identity_provider() {
        project.identity_provider = Some(given);
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
    let now = engine.clock().now();
    let mut known = engine.keys(project.id).await?;
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
    // A start has checked it before: see `check_keys`.
    let mut record = keys::record(given.expose(), project.id, kind, now).map_err(anyhow::Error::msg)?;
    record.name = Some(FROM_SETTINGS.into());
    for old in known {
        if old.name.as_deref() == Some(FROM_SETTINGS) && old.hash != record.hash {
            engine.remove_key(project.id, old.id).await?;
        }
    }
    Ok(Some(record))
}

/// Gives a project without agents its first ones: the default agent, and unless somebody brings agents as files the example
/// that the console shows to newcomers.
async fn first_agents(engine: &Engine, project: ProjectId, with_example: bool) -> anyhow::Result<()> {
    if !engine.agent_records(project).await?.is_empty() {
        return Ok(());
    }
    put_agent(engine, project, AGENT, first_agent()).await?;
    if with_example {
        let welcome = Json::parse(WELCOME_CONFIG.into()).expect("the asset is JSON");
        put_agent(engine, project, WELCOME, welcome).await?;
    }
    Ok(())
}

async fn put_agent(engine: &Engine, project: ProjectId, name: &str, config: Json) -> anyhow::Result<()> {
    let name: AgentName = name.parse().expect("a name");
    match engine.put_agent(project, &name, config).await {
        Ok(_) => Ok(()),
        Err(AgentError::TooManyWait(error)) => Err(error.into()),
        Err(AgentError::Store(error)) => Err(error.into()),
        Err(AgentError::Invalid(problems)) => panic!("the asset is an agent: {problems:?}"),
    }
}

/// Configuration of the agent that a project begins with.
pub fn first_agent() -> Json {
    Json::parse(AGENT_CONFIG.into()).expect("the asset is JSON")
}
