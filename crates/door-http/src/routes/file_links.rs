//! Links to files that work without a key, for pages that show what an agent made: `<img src>` sends no headers.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use http::header::{
    CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderName, HeaderValue,
    REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
};
use serde::Serialize;
use toolgate_access::AccessError;
use toolgate_access::file_links::FileLink;
use toolgate_engine::workspace::{FileName, WorkspaceError};
use toolgate_http::answer::Answer;
use toolgate_http::body::Body;
use toolgate_http::caller::{Backend, Caller};
use toolgate_http::describe::{BackendOnly, BadBody, Limited, Missing, Refused};
use toolgate_http::problem::Refusal;
use toolgate_http::query::At;
use toolgate_http::wire::{Text, Whole, wire};
use toolgate_http::{Shared, schema};
use toolgate_kernel::id::SpaceId;
use toolgate_kernel::problem::Problem;
use toolgate_kernel::time::Time;
use utoipa::ToSchema;

use super::files::{FileBytes, name, place};
use crate::Resources;

const NAME_CHARS_MAX: usize = 512;
/// Largest version that a reader with doubles reads exactly.
const VERSION_MAX: u64 = (1 << 53) - 1;
/// Largest number of seconds that is read; the setting `files.link_lifetime_max` is checked afterwards.
const SECONDS_MAX: u64 = 10 * 365 * 24 * 3600;
const RESOURCE_POLICY: HeaderName = HeaderName::from_static("cross-origin-resource-policy");

wire! {
    /// A link to a file.
    CreateFileLink {
        /// Name of the file.
        path "path": Text<1, NAME_CHARS_MAX>,
        /// Version of the file; the newest if there is none.
        version "version": Option<Whole<1, VERSION_MAX>>,
        /// Seconds that it works for.
        expires_in "expiresIn": Option<Whole<1, SECONDS_MAX>>,
    }
}

/// A link to one version of a file, for anybody who has it.
#[derive(Serialize, ToSchema)]
#[schema(as = FileLink)]
#[serde(rename_all = "camelCase")]
pub(crate) struct FileLinkBody {
    /// The link: an address on this gateway, absolute if the setting `files.public_url` is set.
    url: String,
    /// Name of the file.
    path: String,
    /// Version of the file. The link never leads to another one.
    version: u64,
    /// Media type of the file.
    mime_type: String,
    /// Size in bytes.
    bytes: u64,
    /// Whether a browser shows it; it saves every other file.
    inline: bool,
    /// The link works until then at most.
    #[schema(value_type = schema::Time)]
    expires_at: Time,
}

/// Makes a link to one version of a file, which works without a key until it expires. It ends earlier when the version
/// is deleted, or when the user who made it is no longer a member of the space.
#[utoipa::path(
    post, path = "/v1/spaces/{space}/file-links", operation_id = "create_file_link", tag = "files",
    params(("space" = inline(schema::SpaceId), Path)),
    request_body = CreateFileLink,
    responses((status = 201, description = "Made.", body = FileLinkBody), BadBody, Missing, Refused),
)]
pub(crate) async fn create(
    State(door): State<Shared>,
    State(resources): State<Arc<Resources>>,
    Caller(who): Caller,
    At(space): At<SpaceId>,
    body: Body<CreateFileLink>,
) -> Result<Answer<FileLinkBody>, Refusal> {
    door.access.reach_space(&who, space).await?;
    let wanted = body.value;
    let lifetime = lifetime(&resources, wanted.expires_in)?;
    let (place, name) = (place(&who, space), name(&who, &wanted.path.0)?);
    let version = wanted.version.map(|version| version.0);
    // The version is fixed here: a link to "the newest" would show what is written later to whoever has it.
    let file = resources.workspace.read(place, &name, version).await?.info;
    let now = door.engine.clock().now();
    let link = FileLink {
        place,
        name,
        version: file.version,
        expires: now.after(lifetime),
        maker: who.entity(),
    };
    let signed = resources.links.sign(&link, now).await?;
    let base = resources.public_url.as_deref().unwrap_or_default();
    let body = FileLinkBody {
        url: format!("{base}/v1/file-links/{signed}"),
        path: file.path,
        version: file.version,
        inline: shown_as(file.mime_type.as_str()).is_some(),
        mime_type: file.mime_type.into(),
        bytes: file.bytes,
        expires_at: link.expires,
    };
    Ok(Answer(StatusCode::CREATED, body))
}

/// What a link leads to. Needs no key. Images, sound, video and text are shown; every other file is saved, so that
/// nothing that an agent wrote runs as a page. A link that was not made here, has expired or leads to a deleted version
/// is the same 404.
#[utoipa::path(
    get, path = "/v1/file-links/{link}", operation_id = "read_file_link", tag = "files", security(()),
    params(("link" = String, Path, description = "What the gateway signed.")),
    responses(
        (status = 200, description = "All of the file.", body = inline(FileBytes), content_type = "*/*"),
        Missing, Limited,
    ),
)]
pub(crate) async fn read(
    State(door): State<Shared>,
    State(resources): State<Arc<Resources>>,
    At(text): At<String>,
) -> Result<Response, Refusal> {
    let now = door.engine.clock().now();
    let link = resources.links.open(&text, now).await?.ok_or_else(dead)?;
    door.access
        .reach_linked(&link, &text)
        .await
        .map_err(|error| match error {
            AccessError::NotFound(_) => dead(),
            other => other.into(),
        })?;
    let read = resources
        .workspace
        .read(link.place, &link.name, Some(link.version))
        .await;
    let file = read.map_err(|error| match error {
        WorkspaceError::Missing(_) => dead(),
        other => other.into(),
    })?;
    let shown = shown_as(file.info.mime_type.as_str());
    let mut response = (StatusCode::OK, file.data).into_response();
    let headers = response.headers_mut();
    let media = shown.unwrap_or("application/octet-stream");
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(media));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(
        CONTENT_SECURITY_POLICY,
        HeaderValue::from_static("default-src 'none'; sandbox"),
    );
    headers.insert(CONTENT_DISPOSITION, disposition(shown.is_some(), &link.name));
    // A cache keeps it no longer than the link works.
    let left = link.expires.since(now).as_secs();
    let cache = format!("private, max-age={left}");
    headers.insert(
        CACHE_CONTROL,
        HeaderValue::try_from(cache).expect("a number is ASCII"),
    );
    // The link is in the address, which must not reach whoever a document names.
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    headers.insert(RESOURCE_POLICY, HeaderValue::from_static("cross-origin"));
    Ok(response)
}

/// Ends every link of the project at once, also those that have not expired.
#[utoipa::path(
    delete, path = "/v1/file-links", operation_id = "end_file_links", tag = "files",
    responses((status = 204, description = "None of them works any more."), BackendOnly, Refused),
)]
pub(crate) async fn end_all(
    State(door): State<Shared>,
    State(resources): State<Arc<Resources>>,
    Backend(project): Backend,
) -> Result<StatusCode, Refusal> {
    let now = door.engine.clock().now();
    resources.links.end_all(project, now).await?;
    Ok(StatusCode::NO_CONTENT)
}

fn lifetime(resources: &Resources, wanted: Option<Whole<1, SECONDS_MAX>>) -> Result<Duration, Refusal> {
    let limits = resources.links.limits();
    let Some(Whole(seconds)) = wanted else {
        return Ok(limits.lifetime.min(limits.lifetime_max));
    };
    let longest = limits.lifetime_max.as_secs();
    match seconds <= longest {
        true => Ok(Duration::from_secs(seconds)),
        false => Err(Refusal::invalid(vec![Problem::new(
            "/expiresIn",
            format!("a link works for {longest} seconds at most, see the setting files.link_lifetime_max"),
        )])),
    }
}

/// One answer for every link that does not work, whatever the reason.
fn dead() -> Refusal {
    Refusal::missing("the link does not work or has expired, ask for a new one")
}

/// The type that a browser shows a file as, from a list of types that run nothing; none if it has to be saved. Text of any
/// kind is plain text.
fn shown_as(mime: &str) -> Option<&'static str> {
    Some(match mime {
        "image/png" => "image/png",
        "image/jpeg" => "image/jpeg",
        "image/gif" => "image/gif",
        "image/webp" => "image/webp",
        "image/avif" => "image/avif",
        "audio/mpeg" => "audio/mpeg",
        "audio/wav" => "audio/wav",
        "audio/ogg" => "audio/ogg",
        "video/mp4" => "video/mp4",
        "video/webm" => "video/webm",
        "text/plain" | "text/markdown" | "text/csv" | "application/json" => "text/plain; charset=utf-8",
        _ => return None,
    })
}

/// The name to save the file under, in the form of RFC 6266.
fn disposition(inline: bool, name: &FileName) -> HeaderValue {
    let how = if inline { "inline" } else { "attachment" };
    let file = name.as_str().rsplit('/').next().unwrap_or_default();
    let mut value = format!("{how}; filename*=UTF-8''");
    for byte in file.bytes() {
        match byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            true => value.push(char::from(byte)),
            false => value.push_str(&format!("%{byte:02X}")),
        }
    }
    HeaderValue::try_from(value).expect("percent-encoded text is ASCII")
}
