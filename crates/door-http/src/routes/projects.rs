//! Projects: the tenants of the gateway. For the operator; a project's backend reads and changes its own settings.

use std::sync::Arc;

use axum::extract::State;
use http::StatusCode;
use serde::Serialize;
use toolgate_access::keys;
use toolgate_engine::default_agent;
use toolgate_engine::store::{IdentityProvider, KeyKind, ProjectRecord, StoreError};
use toolgate_http::answer::{Answer, ok};
use toolgate_http::body::Body;
use toolgate_http::caller::{Backend, Operator};
use toolgate_http::describe::{BackendOnly, BadBody, Contended, Missing, Refused};
use toolgate_http::problem::Refusal;
use toolgate_http::query::At;
use toolgate_http::wire::{AnyObject, Text, wire};
use toolgate_http::{Shared, schema};
use toolgate_kernel::id::{KeyId, ProjectId};
use toolgate_kernel::json::Json;
use toolgate_kernel::problem::Problem;
use toolgate_kernel::time::Time;
use utoipa::ToSchema;
use uuid::Uuid;

use super::keys::{CreateKey, KeyBody, KeyList, create_key};
use crate::Resources;

const NAME_CHARS_MAX: usize = 63;
const SECRET_CHARS_MAX: usize = 1_000;
const URL_CHARS_MAX: usize = 2_000;
/// Largest settings of one project: nodes keep those of many projects in memory.
const SETTINGS_BYTES_MAX: usize = 64 * 1024;
/// The project that the gateway's own settings make at every start.
const DEFAULT: &str = "default";
/// Sections of the settings that only the operator may change: they raise limits, let tools reach addresses inside the
/// operator's network, or let unsigned code run.
const OPERATOR_SECTIONS: [&str; 6] = ["outside", "clientTools", "search", "images", "plugins", "budgets"];
/// Stands for a secret that is set.
const MASK: &str = "***";

wire! {
    /// A new project.
    CreateProject {
        /// Unique among projects: lower-case letters, digits and hyphens.
        name "name": Text<1, NAME_CHARS_MAX>,
        /// Signs the tokens of its users (HS256); made and shown once when neither this nor `jwksUrl` is given.
        jwt_secret "jwtSecret": Option<Text<32, SECRET_CHARS_MAX>>,
        /// Where the keys are published that sign the tokens of its users (RS256, ES256, EdDSA).
        jwks_url "jwksUrl": Option<Text<1, URL_CHARS_MAX>>,
        /// What `iss` of a token that those keys sign must be; any when it is left out.
        jwt_issuer "jwtIssuer": Option<Text<1, URL_CHARS_MAX>>,
        /// What `aud` of a token that those keys sign must name; any when it is left out. Set it where the identity
        /// provider signs for other applications too.
        jwt_audience "jwtAudience": Option<Text<1, URL_CHARS_MAX>>,
        /// Its settings.
        settings "settings": Option<AnyObject>,
    }
}

/// A project. Secrets are masked.
#[derive(Serialize, ToSchema)]
#[schema(as = Project)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ProjectBody {
    /// The project's id.
    #[schema(value_type = schema::ProjectId)]
    id: ProjectId,
    /// Unique among projects.
    name: String,
    /// Where the keys are published that sign the tokens of its users.
    jwks_url: Option<String>,
    /// What `iss` of a token that those keys sign must be.
    jwt_issuer: Option<String>,
    /// What `aud` of a token that those keys sign must name.
    jwt_audience: Option<String>,
    /// Its settings, secrets masked.
    #[schema(value_type = Object)]
    settings: Json,
    /// When it was created.
    #[schema(value_type = schema::Time)]
    created_at: Time,
}

impl From<ProjectRecord> for ProjectBody {
    fn from(record: ProjectRecord) -> Self {
        let provider = record.identity_provider.unwrap_or_default();
        Self {
            id: record.id,
            settings: masked(record.settings.as_ref()),
            name: record.name,
            jwks_url: Some(provider.jwks_url).filter(|url| !url.is_empty()),
            jwt_issuer: provider.issuer,
            jwt_audience: provider.audience,
            created_at: record.created,
        }
    }
}

/// A project that was just created, with what is shown only now.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CreatedProject {
    #[serde(flatten)]
    project: ProjectBody,
    /// The key of its backend: only here, only now.
    secret_key: String,
    /// The key of its users' browsers.
    public_key: String,
    /// Signs the tokens of its users, when it was made here: only here, only now.
    #[serde(skip_serializing_if = "Option::is_none")]
    jwt_secret: Option<String>,
}

/// The projects of the gateway.
#[derive(Serialize, ToSchema)]
pub(crate) struct ProjectList {
    /// By name.
    projects: Vec<ProjectBody>,
}

/// Every project.
#[utoipa::path(
    get, path = "/v1/projects", operation_id = "list_projects", tag = "projects",
    responses((status = 200, description = "All of them, by name.", body = ProjectList), BackendOnly, Refused),
)]
pub(crate) async fn list(State(door): State<Shared>, _: Operator) -> Result<Answer<ProjectList>, Refusal> {
    let projects = door.engine.projects().await?.into_iter();
    Ok(ok(ProjectList {
        projects: projects.map(ProjectBody::from).collect(),
    }))
}

/// Creates a project with a secret key, a public key and a first agent.
#[utoipa::path(
    post, path = "/v1/projects", operation_id = "create_project", tag = "projects",
    request_body = CreateProject,
    responses(
        (status = 201, description = "Created.", body = CreatedProject),
        BadBody, BackendOnly, Contended, Refused,
    ),
)]
pub(crate) async fn create(
    State(door): State<Shared>,
    State(resources): State<Arc<Resources>>,
    _: Operator,
    body: Body<CreateProject>,
) -> Result<Answer<CreatedProject>, Refusal> {
    let wanted = body.value;
    let settings = wanted.settings.map(|settings| settings.0);
    let mut problems: Vec<Problem> = name_problem(&wanted.name.0).into_iter().collect();
    problems.extend(settings_problems(&door, "/settings", settings.as_ref()));
    let (issuer, audience) = (wanted.jwt_issuer, wanted.jwt_audience);
    for (given, pointer) in [(&issuer, "/jwtIssuer"), (&audience, "/jwtAudience")] {
        if given.is_some() && wanted.jwks_url.is_none() {
            problems.push(Problem::new(
                pointer,
                "is for tokens of an identity provider: give its jwksUrl",
            ));
        }
    }
    if !problems.is_empty() {
        return Err(Refusal::invalid(problems));
    }
    let identity_provider = wanted.jwks_url.map(|url| IdentityProvider {
        jwks_url: url.0,
        issuer: issuer.map(|issuer| issuer.0),
        audience: audience.map(|audience| audience.0),
    });
    let given = wanted.jwt_secret.map(|secret| secret.0);
    let made = (given.is_none() && identity_provider.is_none()).then(keys::token_secret);
    let now = door.engine.clock().now();
    let record = ProjectRecord {
        id: ProjectId::new(Uuid::now_v7()),
        name: wanted.name.0,
        jwt_secret: given.or_else(|| made.clone()),
        identity_provider,
        settings,
        created: now,
    };
    match door.engine.put_project(record.clone()).await {
        Err(StoreError::Exists) => return Err(taken(&record.name)),
        stored => stored?,
    }
    let mut minted = [KeyKind::Secret, KeyKind::Public].map(|kind| keys::mint(record.id, kind, None, now));
    for (_, key) in &minted {
        door.engine.put_key(key.clone()).await?;
    }
    let first = resources.first_agent.clone();
    door.engine.put_agent(record.id, &default_agent(), first).await?;
    let [secret_key, public_key] = minted.each_mut().map(|(key, _)| std::mem::take(key));
    let created = CreatedProject {
        project: record.into(),
        secret_key,
        public_key,
        jwt_secret: made,
    };
    Ok(Answer(StatusCode::CREATED, created))
}

/// A project.
#[utoipa::path(
    get, path = "/v1/projects/{project}", operation_id = "get_project", tag = "projects",
    params(("project" = String, Path, description = "The project's name.")),
    responses((status = 200, description = "The project.", body = ProjectBody), Missing, BackendOnly, Refused),
)]
pub(crate) async fn get(
    State(door): State<Shared>,
    _: Operator,
    At(name): At<String>,
) -> Result<Answer<ProjectBody>, Refusal> {
    Ok(ok(named(&door, &name).await?.into()))
}

/// Removes a project with everything in it: keys, agents, spaces, runs and their logs, files, documents.
#[utoipa::path(
    delete, path = "/v1/projects/{project}", operation_id = "remove_project", tag = "projects",
    params(("project" = String, Path, description = "The project's name.")),
    responses(
        (status = 204, description = "Removed."),
        Missing, BackendOnly, Contended, Refused,
    ),
)]
pub(crate) async fn remove(
    State(door): State<Shared>,
    _: Operator,
    At(name): At<String>,
) -> Result<StatusCode, Refusal> {
    let project = named(&door, &name).await?;
    if name == DEFAULT {
        let detail = "the project default is made by the gateway's own settings at every start, so it cannot be removed";
        return Err(Refusal::new(StatusCode::CONFLICT, "CONFLICT", detail));
    }
    // Sessions go first, as its keys do: nothing new begins while its runs are cancelled.
    let sessions = door.access.end_sessions(project.id).await?;
    sessions
        .into_iter()
        .for_each(|session| door.engine.session_ended(session));
    door.engine.remove_project(project.id).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Replaces the settings of a project.
#[utoipa::path(
    put, path = "/v1/projects/{project}/settings", operation_id = "put_project_settings", tag = "projects",
    params(("project" = String, Path, description = "The project's name.")),
    request_body(content = Object, description = "The settings.", content_type = "application/json"),
    responses((status = 200, description = "Stored.", body = ProjectBody), BadBody, Missing, BackendOnly, Refused),
)]
pub(crate) async fn put_settings(
    State(door): State<Shared>,
    _: Operator,
    At(name): At<String>,
    body: Body<AnyObject>,
) -> Result<Answer<ProjectBody>, Refusal> {
    let project = named(&door, &name).await?;
    store_settings(&door, project, body.value.0).await
}

/// The keys of a project.
#[utoipa::path(
    get, path = "/v1/projects/{project}/keys", operation_id = "list_project_keys", tag = "projects",
    params(("project" = String, Path, description = "The project's name.")),
    responses((status = 200, description = "All of them.", body = KeyList), Missing, BackendOnly, Refused),
)]
pub(crate) async fn keys(
    State(door): State<Shared>,
    _: Operator,
    At(name): At<String>,
) -> Result<Answer<KeyList>, Refusal> {
    let project = named(&door, &name).await?;
    Ok(ok(KeyList::of(door.engine.keys(project.id).await?)))
}

/// Makes a key of a project and shows it once.
#[utoipa::path(
    post, path = "/v1/projects/{project}/keys", operation_id = "create_project_key", tag = "projects",
    params(("project" = String, Path, description = "The project's name.")),
    request_body = CreateKey,
    responses((status = 201, description = "Made.", body = KeyBody), BadBody, Missing, BackendOnly, Refused),
)]
pub(crate) async fn add_key(
    State(door): State<Shared>,
    _: Operator,
    At(name): At<String>,
    body: Body<CreateKey>,
) -> Result<Answer<KeyBody>, Refusal> {
    let project = named(&door, &name).await?;
    create_key(&door, project.id, body.value).await
}

/// Removes a key of a project.
#[utoipa::path(
    delete, path = "/v1/projects/{project}/keys/{key}", operation_id = "remove_project_key", tag = "projects",
    params(("project" = String, Path, description = "The project's name."), ("key" = inline(schema::KeyId), Path)),
    responses((status = 204, description = "Removed."), Missing, BackendOnly, Refused),
)]
pub(crate) async fn remove_key(
    State(door): State<Shared>,
    _: Operator,
    At((name, key)): At<(String, KeyId)>,
) -> Result<StatusCode, Refusal> {
    let project = named(&door, &name).await?;
    super::keys::remove_key(&door, project.id, key).await
}

/// The project's own settings, secrets masked.
#[utoipa::path(
    get, path = "/v1/settings", operation_id = "get_settings", tag = "projects",
    responses((status = 200, description = "The project.", body = ProjectBody), BackendOnly, Refused),
)]
pub(crate) async fn own_settings(
    State(door): State<Shared>,
    Backend(project): Backend,
) -> Result<Answer<ProjectBody>, Refusal> {
    Ok(ok(own(&door, project).await?.into()))
}

/// Replaces the project's own settings. The sections `outside`, `clientTools`, `search`, `images`, `plugins` and `budgets`
/// are the operator's.
#[utoipa::path(
    put, path = "/v1/settings", operation_id = "put_settings", tag = "projects",
    request_body(content = Object, description = "The settings.", content_type = "application/json"),
    responses((status = 200, description = "Stored.", body = ProjectBody), BadBody, BackendOnly, Refused),
)]
pub(crate) async fn put_own_settings(
    State(door): State<Shared>,
    Backend(project): Backend,
    body: Body<AnyObject>,
) -> Result<Answer<ProjectBody>, Refusal> {
    let project = own(&door, project).await?;
    let mut wanted = body.value.0.to_value();
    let before = project.settings.as_ref().map(Json::to_value).unwrap_or_default();
    let mut problems = Vec::new();
    for section in OPERATOR_SECTIONS {
        let kept = before.get(section);
        match (wanted.get(section), kept) {
            (Some(given), kept) if Some(given) != kept => {
                let words =
                    "only the operator may change this section, with PUT /v1/projects/{project}/settings";
                problems.push(Problem::new(format!("/{section}"), words));
            }
            // What the operator gave stays also where it is not repeated.
            (None, Some(kept)) => wanted[section] = kept.clone(),
            (Some(_) | None, _) => {}
        }
    }
    match problems.is_empty() {
        true => store_settings(&door, project, wanted.into()).await,
        false => Err(Refusal::invalid(problems)),
    }
}

async fn store_settings(
    door: &Shared,
    project: ProjectRecord,
    settings: Json,
) -> Result<Answer<ProjectBody>, Refusal> {
    let settings = unmasked(settings, project.settings.as_ref());
    let problems = settings_problems(door, "", Some(&settings));
    if !problems.is_empty() {
        return Err(Refusal::invalid(problems));
    }
    let changed = ProjectRecord {
        settings: Some(settings),
        ..project
    };
    door.engine.put_project(changed.clone()).await?;
    Ok(ok(changed.into()))
}

pub(super) async fn named(door: &Shared, name: &str) -> Result<ProjectRecord, Refusal> {
    let project = door.engine.project_named(name).await?;
    project.ok_or_else(|| Refusal::not_found("project"))
}

async fn own(door: &Shared, project: ProjectId) -> Result<ProjectRecord, Refusal> {
    let project = door.engine.project(project).await?;
    project.ok_or_else(|| Refusal::not_found("project"))
}

fn settings_problems(door: &Shared, at: &str, settings: Option<&Json>) -> Vec<Problem> {
    let check = |settings: &Json| match settings.as_str().len() {
        size if size > SETTINGS_BYTES_MAX => {
            let words = format!("the settings have {size} bytes, at most {SETTINGS_BYTES_MAX} are allowed");
            vec![Problem::new("", words)]
        }
        _ => door.engine.check_project_settings(settings),
    };
    let problems = settings.map(check).unwrap_or_default().into_iter();
    problems
        .map(|problem| Problem::new(format!("{at}{}", problem.pointer), problem.message))
        .collect()
}

fn name_problem(name: &str) -> Option<Problem> {
    let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let words = "must have lower-case letters, digits and hyphens only, and begin with a letter or a digit";
    let good = name.chars().all(fits) && !name.starts_with('-');
    (!good).then(|| Problem::new("/name", words))
}

fn taken(name: &str) -> Refusal {
    let detail = format!("there is a project named {name} already");
    Refusal::new(StatusCode::CONFLICT, "CONFLICT", detail)
}

/// Settings that were read masked and are written back keep the secrets they had.
fn unmasked(settings: Json, before: Option<&Json>) -> Json {
    let mut value = settings.to_value();
    let before = before.map(Json::to_value).unwrap_or_default();
    for (name, section) in value.as_object_mut().into_iter().flatten() {
        for (member, given) in section.as_object_mut().into_iter().flatten() {
            if *given == MASK
                && let Some(kept) = before.get(name).and_then(|section| section.get(member))
            {
                *given = kept.clone();
            }
        }
    }
    value.into()
}

/// The settings with every secret masked: values under `secrets`, and members that hold a key.
fn masked(settings: Option<&Json>) -> Json {
    let mut value = settings.map_or_else(|| serde_json::json!({}), Json::to_value);
    for (name, section) in value.as_object_mut().into_iter().flatten() {
        for (member, secret) in section.as_object_mut().into_iter().flatten() {
            if name == "secrets" || member == "apiKey" {
                *secret = MASK.into();
            }
        }
    }
    value.into()
}
