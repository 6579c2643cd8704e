//! The plugins of a project: install, list, roll back, remove, revoke, sign. For backends: nothing of it, and none of the
//! code, is ever given to a user.

use std::sync::Arc;

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::header::{CACHE_CONTROL, ETAG, IF_NONE_MATCH};
use http::{HeaderMap, HeaderValue, StatusCode};
use serde::Deserialize;
use serde::de::IgnoredAny;
use toolgate_engine::shares::share_of;
use toolgate_engine::store::StoreError;
use toolgate_http::Shared;
use toolgate_http::answer::{Answer, json, ok};
use toolgate_http::body::{self, Body, MaybeBody};
use toolgate_http::caller::{Backend, Caller};
use toolgate_http::describe::{BackendOnly, BadBody, BadQuery, Contended, Missing, NoRoom, Refused};
use toolgate_http::problem::Refusal;
use toolgate_http::query::{At, Query};
use toolgate_http::wire::{AnyObject, Text, wire};
use toolgate_kernel::id::ProjectId;
use toolgate_kernel::problem::Problem;
use toolgate_package::PackageHash;
use toolgate_plugins::{Candidate, Install, PluginError, Reason, Revoke, RollBack};

use super::plugin_bodies::{PluginList, ReviewBody, SignedBody};
use crate::Resources;

const URL_CHARS_MAX: usize = 2_000;
const HASH_CHARS: usize = 64;
const ID_CHARS_MAX: usize = 64;
const REASON_CHARS_MAX: usize = 500;
/// What an address by the hash of the document gives never changes, and only its project may have it.
const IMMUTABLE: HeaderValue = HeaderValue::from_static("private, max-age=31536000, immutable");
/// A package may be stored again with better signatures, which its hash does not cover.
const REVALIDATED: HeaderValue = HeaderValue::from_static("private, no-cache");

wire! {
    /// A package to fetch and install.
    InstallFrom {
        /// Address of the document.
        source_url "sourceUrl": Text<1, URL_CHARS_MAX>,
        /// Hash that the package must have.
        package_hash "packageHash": Text<HASH_CHARS, HASH_CHARS>,
    }
}
wire! {
    /// Where a plugin goes back to.
    RollBackPlugin {
        /// Hash of a stored package of the plugin; the one before the current if it is left out.
        package_hash "packageHash": Option<Text<HASH_CHARS, HASH_CHARS>>,
    }
}
wire! {
    /// What must not run any more: a package, or every stored package of a plugin.
    RevokePlugin {
        /// Hash of the package, stored or not.
        package_hash "packageHash": Option<Text<HASH_CHARS, HASH_CHARS>>,
        /// Id of the plugin.
        plugin "plugin": Option<Text<1, ID_CHARS_MAX>>,
        /// Why, for those who read the list.
        reason "reason": Option<Text<1, REASON_CHARS_MAX>>,
    }
}

/// Tells the two forms of a body apart: a document has tools.
#[derive(Deserialize)]
struct Form {
    tools: Option<IgnoredAny>,
}

/// The installed plugins with their versions, permissions and verification state; never their code.
#[utoipa::path(
    get, path = "/v1/plugins", operation_id = "list_plugins", tag = "plugins",
    responses((status = 200, description = "All of them, by id.", body = PluginList), BackendOnly, Refused),
)]
pub(crate) async fn list(
    State(resources): State<Arc<Resources>>,
    Backend(project): Backend,
) -> Result<Answer<PluginList>, Refusal> {
    let (index, settings) = resources.plugins.index(project).await?;
    Ok(ok(PluginList::of(&index, &settings)))
}

/// Installs a plugin or replaces its current version, from a document or from an address. With `dryRun` it only says who
/// signed it, what it may do and what would change.
#[utoipa::path(
    post, path = "/v1/plugins", operation_id = "install_plugin", tag = "plugins",
    params(
        ("dryRun" = Option<bool>, Query, description = "Change nothing; problems are told in the review."),
        ("replaceCurator" = Option<bool>, Query, description = "Accept that another curator than so far has signed it."),
    ),
    request_body(
        content = Object, content_type = "application/json",
        description = "A package, or `{sourceUrl, packageHash}` of one that is fetched.",
    ),
    responses(
        (status = 200, description = "A review, or nothing had to be changed.", body = ReviewBody),
        (status = 201, description = "Installed.", body = ReviewBody),
        BadBody, BadQuery, BackendOnly, Contended, NoRoom, Refused,
    ),
)]
pub(crate) async fn install(
    State(door): State<Shared>,
    State(resources): State<Arc<Resources>>,
    Backend(project): Backend,
    query: Query,
    body: Body<AnyObject>,
) -> Result<Answer<ReviewBody>, Refusal> {
    let flag = |name| query.flag(name);
    let (dry_run, replace_curator) = (flag("dryRun")?, flag("replaceCurator")?);
    let form: Form = body
        .value
        .0
        .read()
        .map_err(|error| Refusal::malformed(error.to_string()))?;
    let (candidate, source_url) = match form.tools {
        Some(_) => (parsed(&door, project, body.bytes.to_vec()).await?, None),
        None => fetched(&resources, project, body.value.0.as_str()).await?,
    };
    let install = Install {
        candidate,
        source_url,
        replace_curator,
    };
    let (plugins, sources) = (&resources.plugins, door.engine.sources());
    if dry_run {
        let review = plugins.review(project, &install, sources).await;
        return Ok(ok(ReviewBody::of(review.map_err(refused)?, false)));
    }
    let installed = plugins.install(project, install, sources).await;
    let review = ReviewBody::of(installed.map_err(refused)?, true);
    door.engine.tools_changed(project);
    let status = match review.changed() {
        true => StatusCode::CREATED,
        false => StatusCode::OK,
    };
    Ok(Answer(status, review))
}

/// A stored package, its code included. By its `documentHash`, the hash of the very bytes, it never changes and may be kept;
/// by its `packageHash` it may come with better signatures later.
#[utoipa::path(
    get, path = "/v1/plugins/{plugin}", operation_id = "get_plugin_package", tag = "plugins",
    params(("plugin" = String, Path, description = "`documentHash` or `packageHash` of a stored package.")),
    responses(
        (status = 200, description = "The document as it was signed.", body = Object),
        (status = 304, description = "It is what `if-none-match` names."),
        Missing, BackendOnly, Refused,
    ),
)]
pub(crate) async fn get(
    State(resources): State<Arc<Resources>>,
    Backend(project): Backend,
    At(hash): At<String>,
    headers: HeaderMap,
) -> Result<Response, Refusal> {
    let missing = || Refusal::not_found("package; expected the hash of a stored one");
    let hash: PackageHash = hash.parse().map_err(|_| missing())?;
    let hash = hash.to_string();
    let document = resources.plugins.document(project, &hash).await?;
    let document = document.ok_or_else(missing)?;
    let tag = HeaderValue::from_str(&format!("\"{}\"", document.hash)).expect("hex fits in a header");
    let known = headers.get(IF_NONE_MATCH).and_then(|known| known.to_str().ok());
    let is_known = known.is_some_and(|known| known.contains(&document.hash) || known.trim() == "*");
    let mut response = match is_known {
        true => StatusCode::NOT_MODIFIED.into_response(),
        false => json(StatusCode::OK, document.body.as_str().as_bytes().to_vec()),
    };
    let cached = match document.hash == hash {
        true => IMMUTABLE,
        false => REVALIDATED,
    };
    response.headers_mut().insert(ETAG, tag);
    response.headers_mut().insert(CACHE_CONTROL, cached);
    Ok(response)
}

/// Removes a plugin, by its id, unless others need it. Runs under way keep its stored packages until they are purged. With
/// the hash of a package that is not current, deletes that one.
#[utoipa::path(
    delete, path = "/v1/plugins/{plugin}", operation_id = "remove_plugin", tag = "plugins",
    params(
        ("plugin" = String, Path, description = "Id of the plugin, or hash of one of its packages."),
        ("purge" = Option<bool>, Query, description = "Delete all stored packages of the plugin too."),
    ),
    responses((status = 204, description = "Removed."), Missing, BadQuery, BackendOnly, Contended, Refused),
)]
pub(crate) async fn remove(
    State(door): State<Shared>,
    State(resources): State<Arc<Resources>>,
    Backend(project): Backend,
    At(plugin): At<String>,
    query: Query,
) -> Result<StatusCode, Refusal> {
    let purge = query.flag("purge")?;
    let removed = match plugin.parse::<PackageHash>() {
        Ok(_) => resources.plugins.purge(project, &plugin).await,
        Err(_) => resources.plugins.remove(project, &plugin, purge).await,
    };
    removed.map_err(refused)?;
    door.engine.tools_changed(project);
    Ok(StatusCode::NO_CONTENT)
}

/// Goes back to an earlier package of a plugin.
#[utoipa::path(
    post, path = "/v1/plugins/{plugin}/rollback", operation_id = "roll_back_plugin", tag = "plugins",
    params(("plugin" = String, Path, description = "Id of the plugin.")),
    request_body = RollBackPlugin,
    responses(
        (status = 200, description = "All plugins as they are now.", body = PluginList),
        BadBody, Missing, BackendOnly, Contended, Refused,
    ),
)]
pub(crate) async fn roll_back(
    State(door): State<Shared>,
    State(resources): State<Arc<Resources>>,
    Backend(project): Backend,
    At(plugin): At<String>,
    body: MaybeBody<RollBackPlugin>,
) -> Result<Answer<PluginList>, Refusal> {
    let to = match body.0.package_hash {
        Some(hash) => RollBack::To(hash.0),
        None => RollBack::Previous,
    };
    let sources = door.engine.sources();
    let rolled = resources.plugins.roll_back(project, &plugin, &to, sources).await;
    rolled.map_err(refused)?;
    door.engine.tools_changed(project);
    list(State(resources), Backend(project)).await
}

/// Stops packages for good. Calls under way are cut off at once; on other nodes within a second.
#[utoipa::path(
    post, path = "/v1/plugins/revoke", operation_id = "revoke_plugin", tag = "plugins",
    request_body = RevokePlugin,
    responses(
        (status = 200, description = "All plugins as they are now.", body = PluginList),
        BadBody, Missing, BackendOnly, Contended, NoRoom, Refused,
    ),
)]
pub(crate) async fn revoke(
    State(door): State<Shared>,
    State(resources): State<Arc<Resources>>,
    Backend(project): Backend,
    body: Body<RevokePlugin>,
) -> Result<Answer<PluginList>, Refusal> {
    let RevokePlugin {
        package_hash,
        plugin,
        reason,
    } = body.value;
    let what = match (package_hash, plugin) {
        (Some(hash), None) => {
            let hash = hash.0.parse::<PackageHash>();
            let hash =
                hash.map_err(|bad| Refusal::invalid(vec![Problem::new("/packageHash", bad.to_string())]))?;
            Revoke::Package(hash.to_string())
        }
        (None, Some(plugin)) => Revoke::Plugin(plugin.0),
        (None, None) | (Some(_), Some(_)) => {
            return Err(Refusal::invalid(vec![Problem::new(
                "",
                "expected packageHash or plugin, one of them",
            )]));
        }
    };
    let reason = reason.as_ref().map(|reason| reason.0.as_str());
    let revoked = resources.plugins.revoke(project, &what, reason).await;
    revoked.map_err(refused)?;
    door.engine.tools_changed(project);
    list(State(resources), Backend(project)).await
}

/// Signs a package with the project's key, and tells what a reviewer should look at. Only for API keys that the project's
/// settings name.
#[utoipa::path(
    post, path = "/v1/plugins/sign", operation_id = "sign_plugin", tag = "plugins",
    request_body(content = Object, description = "A package without signatures.", content_type = "application/json"),
    responses(
        (status = 200, description = "The signed package and the audit report.", body = SignedBody),
        BadBody, BackendOnly, Refused,
    ),
)]
pub(crate) async fn sign(
    State(door): State<Shared>,
    State(resources): State<Arc<Resources>>,
    Caller(who): Caller,
    body: Body<AnyObject>,
) -> Result<Answer<SignedBody>, Refusal> {
    if who.user.is_some() {
        return Err(Refusal::forbidden("this needs a secret key"));
    }
    // Read strictly first: a member that occurs twice must not be signed.
    let candidate = parsed(&door, who.project, body.bytes.to_vec()).await?;
    let key = who.key.map(|key| key.id().to_string());
    let signed = resources
        .plugins
        .sign(who.project, candidate, key.as_deref())
        .await;
    Ok(ok(SignedBody::of(signed.map_err(refused)?)))
}

/// A package that was sent; a large one is read off the runtime's threads.
async fn parsed(door: &Shared, project: ProjectId, bytes: Vec<u8>) -> Result<Candidate, Refusal> {
    let parse = move || Candidate::parse(&bytes);
    let parsed = door.engine.run_blocking(share_of(project, None), parse).await?;
    parsed.map_err(Refusal::invalid)
}

async fn fetched(
    resources: &Resources,
    project: ProjectId,
    body: &str,
) -> Result<(Candidate, Option<String>), Refusal> {
    let from = body::read::<InstallFrom>(body)?;
    let wrong = |pointer: &str, words: String| Refusal::invalid(vec![Problem::new(pointer, words)]);
    let url = from.source_url.0;
    let address = url
        .parse()
        .map_err(|error| wrong("/sourceUrl", format!("is no address: {error}")))?;
    let hash = from.package_hash.0.parse::<PackageHash>();
    let hash = hash.map_err(|bad| wrong("/packageHash", bad.to_string()))?;
    let package = resources.plugins.fetch(project, address, hash).await;
    Ok((package.map_err(refused)?, Some(url)))
}

/// Why a change of plugins was not made.
pub(super) fn refused(error: PluginError) -> Refusal {
    let words = error.to_string();
    let at = |pointer: &str, code: &'static str| {
        let refusal = Refusal::new(StatusCode::UNPROCESSABLE_ENTITY, code, words.clone());
        refusal.with_errors(vec![Problem::new(pointer, words.clone())])
    };
    match error {
        PluginError::Invalid(problems) => Refusal::invalid(problems),
        PluginError::Refused(refused) => not_made(&refused),
        PluginError::Missing(_) => Refusal::missing(words),
        PluginError::Fetch(_) => at("/sourceUrl", "FETCH_FAILED"),
        PluginError::OtherPackage { .. } => at("/packageHash", "HASH_MISMATCH"),
        PluginError::CannotSign(_) => Refusal::new(StatusCode::FORBIDDEN, "CANNOT_SIGN", words),
        PluginError::NamesUnknown(_) => Refusal::unavailable(words),
        PluginError::Store(StoreError::Conflict) => Refusal::contended(),
        PluginError::Store(error) => error.into(),
    }
}

/// All reasons at once; the code is theirs if they have the same.
fn not_made(refused: &[toolgate_plugins::Refused]) -> Refusal {
    let reason = refused.first().map(|first| first.reason);
    let reason = reason.filter(|reason| refused.iter().all(|other| other.reason == *reason));
    let (status, code) = match reason {
        Some(reason @ (Reason::Dependency | Reason::NameConflict)) => (StatusCode::CONFLICT, reason.code()),
        Some(reason @ Reason::LimitExceeded) => (StatusCode::INSUFFICIENT_STORAGE, reason.code()),
        Some(reason @ (Reason::NotVerified | Reason::Revoked | Reason::Engine)) => {
            (StatusCode::UNPROCESSABLE_ENTITY, reason.code())
        }
        None => (StatusCode::UNPROCESSABLE_ENTITY, "PLUGIN_REFUSED"),
    };
    let problems: Vec<Problem> = refused.iter().map(|refused| refused.problem.clone()).collect();
    let detail = match problems.as_slice() {
        [one] => one.message.clone(),
        many => format!("{} things stand against it; see errors", many.len()),
    };
    Refusal::new(status, code, detail).with_errors(problems)
}
