//! The files of a space: the same ones that its agents read and write.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use http::header::{
    CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG, HeaderName, HeaderValue, IF_NONE_MATCH,
    X_CONTENT_TYPE_OPTIONS,
};
use http::{HeaderMap, StatusCode};
use serde::Serialize;
use toolgate_access::Principal;
use toolgate_engine::records::Listing;
use toolgate_engine::store::Holdings;
use toolgate_engine::workspace::{
    BadFileName, FileInfo, FileName, Mime, NewFile, Place, WorkspaceError, is_output,
};
use toolgate_http::answer::{Answer, ok};
use toolgate_http::body::collect;
use toolgate_http::caller::Caller;
use toolgate_http::describe::{BadFile, BadQuery, Changed, Contended, Missing, Refused};
use toolgate_http::problem::Refusal;
use toolgate_http::query::{At, Query, SEQ_MAX};
use toolgate_http::{Shared, schema};
use toolgate_kernel::id::SpaceId;
use toolgate_kernel::time::Time;
use utoipa::ToSchema;

use crate::Resources;
use crate::precondition::{etag, only};

/// The version of a file.
const FILE_VERSION: HeaderName = HeaderName::from_static("toolgate-file-version");

/// What a file holds, as it is.
#[derive(ToSchema)]
#[schema(value_type = String, format = Binary)]
#[expect(dead_code, reason = "describes bytes that are no JSON")]
pub(crate) struct FileBytes(Vec<u8>);

/// What there is to say of a file.
#[derive(Serialize, ToSchema)]
#[schema(as = File)]
#[serde(rename_all = "camelCase")]
pub(crate) struct FileBody {
    /// Unique in its space.
    path: String,
    /// Media type of the content.
    mime_type: String,
    /// Size in bytes.
    bytes: u64,
    /// Higher with each change; no version of a name ever comes back.
    version: u64,
    /// When it was first written.
    #[schema(value_type = schema::Time)]
    created_at: Time,
    /// When this version was written.
    #[schema(value_type = schema::Time)]
    updated_at: Time,
}

impl From<FileInfo> for FileBody {
    fn from(info: FileInfo) -> Self {
        Self {
            path: info.path,
            mime_type: info.mime_type.into(),
            bytes: info.bytes,
            version: info.version,
            created_at: info.created_at,
            updated_at: info.updated_at,
        }
    }
}

/// A page of files, by name.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct FileList {
    /// The files.
    files: Vec<FileBody>,
    /// What to give as `after` for the next page; null on the last.
    next_cursor: Option<String>,
    /// Files that the space has.
    total_files: u64,
    /// Bytes that they take, earlier versions included.
    total_bytes: u64,
    /// Files that it may have.
    files_max: u64,
    /// Bytes that they may take.
    bytes_max: u64,
}

/// The files of a space, by name.
#[utoipa::path(
    get, path = "/v1/spaces/{space}/files", operation_id = "list_files", tag = "files",
    params(
        ("space" = inline(schema::SpaceId), Path),
        ("prefix" = Option<String>, Query, description = "Names that begin so, such as `notes/`."),
        ("after" = Option<String>, Query, description = "`nextCursor` of the page before."),
        ("limit" = Option<usize>, Query, minimum = 1, maximum = 500),
    ),
    responses((status = 200, description = "A page.", body = FileList), BadQuery, Missing, Refused),
)]
pub(crate) async fn list(
    State(door): State<Shared>,
    State(resources): State<Arc<Resources>>,
    Caller(who): Caller,
    At(space): At<SpaceId>,
    query: Query,
) -> Result<Answer<FileList>, Refusal> {
    door.access.reach_space(&who, space).await?;
    let place = place(&who, space);
    let limit = query.limit()?;
    let listing = Listing {
        prefix: query.text("prefix").unwrap_or_default().to_owned(),
        after: query.text("after").map(str::to_owned),
        limit,
    };
    let workspace = &resources.workspace;
    // What is hidden counts nowhere: a cursor or a total would tell of it.
    let (files, used) = match who.is_backend() {
        true => (
            workspace.list(place, listing).await?,
            workspace.used(place).await?,
        ),
        false => (
            workspace.list_shown(place, listing).await?,
            workspace.used_by_shown(place).await?,
        ),
    };
    let limits = workspace.limits();
    let next_cursor = files.last().filter(|_| files.len() == limit);
    Ok(ok(FileList {
        next_cursor: next_cursor.map(|file| file.path.clone()),
        files: files.into_iter().map(FileBody::from).collect(),
        total_files: used.files,
        total_bytes: used.bytes,
        files_max: limits.files_max,
        bytes_max: limits.space_bytes_max,
    }))
}

/// What a file holds. `etag` and `toolgate-file-version` name its version; `if-none-match` with that `etag` asks for it
/// only when it changed.
#[utoipa::path(
    get, path = "/v1/spaces/{space}/files/{*path}", operation_id = "read_file", tag = "files",
    params(
        ("space" = inline(schema::SpaceId), Path),
        ("path" = String, Path, description = "Name of the file; may have slashes."),
        ("version" = Option<u64>, Query, minimum = 1, description = "An earlier version; some are kept."),
        ("if-none-match" = Option<String>, Header, description = "`etag` of the version that is known."),
    ),
    responses(
        (status = 200, description = "All of it, with its own media type.", body = inline(FileBytes), content_type = "*/*"),
        (status = 304, description = "It is at the version that is known."),
        BadQuery, Missing, Refused,
    ),
)]
pub(crate) async fn read(
    State(door): State<Shared>,
    State(resources): State<Arc<Resources>>,
    Caller(who): Caller,
    At((space, path)): At<(SpaceId, String)>,
    query: Query,
    asked: HeaderMap,
) -> Result<Response, Refusal> {
    door.access.reach_space(&who, space).await?;
    let version = query.whole("version", 1..=SEQ_MAX)?;
    let workspace = &resources.workspace;
    let file = workspace
        .read(place(&who, space), &name(&who, &path)?, version)
        .await?;
    let tag = etag(file.info.version);
    if knows(&asked, &tag) {
        return Ok((StatusCode::NOT_MODIFIED, [(ETAG, tag)]).into_response());
    }
    let media = HeaderValue::try_from(file.info.mime_type.as_str()).expect("a media type is ASCII");
    let mut response = (StatusCode::OK, file.data).into_response();
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, media);
    // Whatever an agent wrote is never a page of the gateway's own.
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(
        CONTENT_SECURITY_POLICY,
        HeaderValue::from_static("default-src 'none'; sandbox"),
    );
    headers.insert(FILE_VERSION, HeaderValue::from(file.info.version));
    headers.insert(ETAG, tag);
    Ok(response)
}

/// Writes a file, whole. `if-none-match: *` writes only a new one, `if-match` only over this version, or with `*` only
/// over one that is there. `etag` names the version that was written.
#[utoipa::path(
    put, path = "/v1/spaces/{space}/files/{*path}", operation_id = "write_file", tag = "files",
    params(
        ("space" = inline(schema::SpaceId), Path),
        ("path" = String, Path, description = "Name of the file; may have slashes."),
        ("if-match" = inline(Option<schema::EtagOrAny>), Header, description = "`etag` of the version to write over; `*`: whichever there is."),
        ("if-none-match" = inline(Option<schema::AnyEtag>), Header, description = "`*`: there must be none."),
    ),
    request_body(content = inline(Option<FileBytes>), content_type = "*/*", description = "All of it."),
    responses(
        (status = 200, description = "Written.", body = FileBody),
        (status = 201, description = "Made.", body = FileBody),
        BadFile, Contended, Changed, Missing, Refused,
    ),
)]
pub(crate) async fn write(
    State(door): State<Shared>,
    State(resources): State<Arc<Resources>>,
    Caller(who): Caller,
    At((space, path)): At<(SpaceId, String)>,
    request: Request,
) -> Result<Response, Refusal> {
    door.access.reach_space(&who, space).await?;
    let workspace = &resources.workspace;
    let (parts, body) = request.into_parts();
    let new = NewFile {
        name: name(&who, &path)?,
        mime: media(&parts.headers)?,
        only: only(&parts.headers)?,
        data: collect(&door, &parts, body, workspace.limits().file_bytes_max)
            .await?
            .to_vec(),
    };
    let adds = Holdings {
        bytes: new.data.len().max(1) as u64,
        ..Holdings::default()
    };
    let reserved = door.engine.reserve(who.project, who.entity(), adds).await?;
    let now = door.engine.clock().now();
    let written = workspace.write(place(&who, space), new, now).await?;
    reserved.keep();
    let status = match written.is_new {
        true => StatusCode::CREATED,
        false => StatusCode::OK,
    };
    let tag = etag(written.file.version);
    let body = Answer(status, FileBody::from(written.file));
    Ok(([(ETAG, tag)], body).into_response())
}

/// Takes a file away, with its earlier versions.
#[utoipa::path(
    delete, path = "/v1/spaces/{space}/files/{*path}", operation_id = "delete_file", tag = "files",
    params(
        ("space" = inline(schema::SpaceId), Path),
        ("path" = String, Path, description = "Name of the file; may have slashes."),
        ("if-match" = inline(Option<schema::EtagOrAny>), Header, description = "`etag` of the version to take away; `*`: whichever there is."),
    ),
    responses((status = 204, description = "It is gone."), BadQuery, Contended, Changed, Missing, Refused),
)]
pub(crate) async fn remove(
    State(door): State<Shared>,
    State(resources): State<Arc<Resources>>,
    Caller(who): Caller,
    At((space, path)): At<(SpaceId, String)>,
    headers: HeaderMap,
) -> Result<StatusCode, Refusal> {
    door.access.reach_space(&who, space).await?;
    let (name, only) = (name(&who, &path)?, only(&headers)?);
    let now = door.engine.clock().now();
    let workspace = &resources.workspace;
    workspace
        .delete(place(&who, space), &name, only, now, None)
        .await?;
    Ok(StatusCode::NO_CONTENT)
}

pub(super) fn place(who: &Principal, space: SpaceId) -> Place {
    Place {
        project: who.project,
        space,
    }
}

/// A file that this principal may know of.
pub(super) fn name(who: &Principal, path: &str) -> Result<FileName, Refusal> {
    let name: FileName = path
        .parse()
        .map_err(|error: BadFileName| Refusal::malformed(error.to_string()))?;
    match is_shown(who, name.as_str()) {
        true => Ok(name),
        false => Err(WorkspaceError::Missing(name.to_string()).into()),
    }
}

/// What a tool gave may be too much for whom it ran.
fn is_shown(who: &Principal, path: &str) -> bool {
    who.is_backend() || !is_output(path)
}

fn media(headers: &HeaderMap) -> Result<Option<Mime>, Refusal> {
    let Some(value) = headers.get(CONTENT_TYPE) else {
        return Ok(None);
    };
    let read = value.to_str().unwrap_or_default().parse();
    read.map(Some).map_err(|error| {
        Refusal::new(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "UNSUPPORTED_MEDIA_TYPE",
            format!("content-type: {error}"),
        )
    })
}

/// Whether the headers say that this version is known.
fn knows(headers: &HeaderMap, tag: &HeaderValue) -> bool {
    let values = headers.get_all(IF_NONE_MATCH).iter();
    let mut tags = values.flat_map(|value| value.as_bytes().split(|byte| *byte == b','));
    tags.any(|known| {
        let known = known.trim_ascii();
        // A cache on the way may have made it a weak one.
        known == b"*" || known.strip_prefix(b"W/").unwrap_or(known) == tag.as_bytes()
    })
}
