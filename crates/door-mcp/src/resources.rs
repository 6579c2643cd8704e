//! Workspace files as resources: `toolgate://spaces/{space}/files/{path}`, of the spaces that the caller may reach.

use std::fmt;
use std::str::FromStr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rmcp::ErrorData;
use rmcp::model::{
    CacheScope, CompleteRequestParams, CompleteResult, CompletionInfo, ListResourceTemplatesResult,
    ListResourcesResult, ReadResourceResult, Reference, Resource, ResourceContents, ResourceTemplate,
};
use toolgate_access::Principal;
use toolgate_engine::records::Listing;
use toolgate_engine::workspace::{FileInfo, FileName, Place, WorkspaceError, is_output};
use toolgate_http::problem::Refusal;
use toolgate_kernel::id::SpaceId;

use crate::visitor::Visitor;
use crate::{Mcp, problem};

/// Template of every resource.
const TEMPLATE: &str = "toolgate://spaces/{space}/files/{+path}";
const BEFORE_SPACE: &str = "toolgate://spaces/";
const BEFORE_PATH: &str = "/files/";
/// Resources of one page.
const PAGE: usize = 100;
/// Most spaces that are looked at for one page.
const SPACES_PER_PAGE: usize = 50;
/// Largest file that is read as a resource; larger ones are read over REST.
const FILE_BYTES_MAX: u64 = 4 << 20;

/// A file of a space.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct FileUri {
    pub space: SpaceId,
    pub name: FileName,
}

impl fmt::Display for FileUri {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{BEFORE_SPACE}{}{BEFORE_PATH}", self.space)?;
        for byte in self.name.as_str().bytes() {
            match byte {
                b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => {
                    write!(out, "{}", char::from(byte))?;
                }
                other => write!(out, "%{other:02X}")?,
            }
        }
        Ok(())
    }
}

impl FromStr for FileUri {
    type Err = ();
    fn from_str(uri: &str) -> Result<Self, ()> {
        let rest = uri.strip_prefix(BEFORE_SPACE).ok_or(())?;
        let (space, path) = rest.split_once(BEFORE_PATH).ok_or(())?;
        let path = decoded(path).ok_or(())?;
        Ok(Self {
            space: space.parse().map_err(|_| ())?,
            name: path.parse().map_err(|_| ())?,
        })
    }
}

fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        match first {
            b'%' => {
                let (digits, after) = rest.split_at_checked(2)?;
                bytes.push(u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?);
                rest = after;
            }
            other => bytes.push(*other),
        }
    }
    String::from_utf8(bytes).ok()
}

/// `resources/list`: a page of files, space by space, the newest space first.
pub(crate) async fn list(
    mcp: &Mcp,
    visitor: &Visitor,
    cursor: Option<&str>,
) -> Result<ListResourcesResult, ErrorData> {
    let from = cursor.map(Cursor::parse).transpose()?;
    let page = page(mcp, &visitor.who, from).await.map_err(problem::error)?;
    let mut listed = ListResourcesResult::with_all_items(page.resources)
        .with_ttl_ms(0)
        .with_cache_scope(CacheScope::Private);
    listed.next_cursor = page.next.map(|next| next.to_string());
    Ok(listed)
}

/// `resources/templates/list`.
pub(crate) fn templates() -> ListResourceTemplatesResult {
    let template = ResourceTemplate::new(TEMPLATE, "workspace-file")
        .with_title("Workspace file")
        .with_description("A file in the workspace of a space, which its agents read and write.");
    ListResourceTemplatesResult::with_all_items(vec![template])
        .with_ttl_ms(0)
        .with_cache_scope(CacheScope::Private)
}

/// `resources/read`: text as text, everything else in base 64.
pub(crate) async fn read(mcp: &Mcp, visitor: &Visitor, uri: &str) -> Result<ReadResourceResult, ErrorData> {
    let missing = || ErrorData::resource_not_found(format!("there is no resource {uri}"), None);
    let file: FileUri = uri.parse().map_err(|()| missing())?;
    let info = stat(mcp, &visitor.who, &file).await.map_err(problem::error)?;
    let info = info.ok_or_else(missing)?;
    if info.bytes > FILE_BYTES_MAX {
        let (space, bytes) = (file.space, info.bytes);
        let words = format!(
            "the file has {bytes} bytes, and a resource may have {FILE_BYTES_MAX} at most; read it with GET \
             /v1/spaces/{space}/files/{}",
            file.name
        );
        return Err(ErrorData::invalid_params(words, None));
    }
    let place = place(&visitor.who, file.space);
    let content = match mcp.workspace.read(place, &file.name, None).await {
        Ok(content) => content,
        Err(WorkspaceError::Missing(_)) => return Err(missing()),
        Err(error) => return Err(problem::fault(error)),
    };
    let mime = content.info.mime_type.as_str().to_owned();
    let contents = match String::from_utf8(content.data) {
        Ok(text) => ResourceContents::text(text, uri),
        Err(bytes) => ResourceContents::blob(STANDARD.encode(bytes.as_bytes()), uri),
    };
    let contents = contents.with_mime_type(mime);
    Ok(ReadResourceResult::new(vec![contents])
        .with_ttl_ms(0)
        .with_cache_scope(CacheScope::Private))
}

/// `completion/complete`: ids of spaces, and names of files in one.
pub(crate) async fn complete(
    mcp: &Mcp,
    visitor: &Visitor,
    request: CompleteRequestParams,
) -> Result<CompleteResult, ErrorData> {
    let begun = request.argument.value.as_str();
    let known = request.context.as_ref();
    let space = known.and_then(|known| known.get_argument("space")).cloned();
    let values = match (&request.r#ref, request.argument.name.as_str()) {
        (Reference::Resource(named), "space") if named.uri == TEMPLATE => {
            let spaces = spaces(mcp, &visitor.who, None).await.map_err(problem::error)?;
            let ids = spaces.iter().map(SpaceId::to_string);
            ids.filter(|id| id.starts_with(begun)).collect()
        }
        (Reference::Resource(named), "path") if named.uri == TEMPLATE => {
            let space = space.and_then(|space| space.parse().ok());
            paths(mcp, &visitor.who, space, begun)
                .await
                .map_err(problem::error)?
        }
        _ => Vec::new(),
    };
    let completion = CompletionInfo::with_all_values(values);
    let completion = completion.map_err(|error| ErrorData::internal_error(error, None))?;
    Ok(CompleteResult::new(completion))
}

/// What there is to say of a file, if it is there and the caller may know of it.
pub(crate) async fn stat(mcp: &Mcp, who: &Principal, file: &FileUri) -> Result<Option<FileInfo>, Refusal> {
    if !who.is_backend() && is_output(file.name.as_str()) {
        return Ok(None);
    }
    mcp.shared.access.reach_space(who, file.space).await?;
    let listing = Listing {
        prefix: file.name.as_str().to_owned(),
        after: None,
        limit: 1,
    };
    // The name itself is the first of those that begin with it.
    let found = mcp.workspace.list(place(who, file.space), listing).await?;
    Ok(found.into_iter().find(|found| found.path == file.name.as_str()))
}

struct Page {
    resources: Vec<Resource>,
    next: Option<Cursor>,
}

/// Where the next page begins: in this space, after this file.
struct Cursor {
    space: SpaceId,
    after: Option<String>,
}

impl Cursor {
    fn parse(text: &str) -> Result<Self, ErrorData> {
        let wrong = || ErrorData::invalid_params("the cursor is not one of this list", None);
        let (space, after) = text.split_once('/').ok_or_else(wrong)?;
        Ok(Self {
            space: space.parse().map_err(|_| wrong())?,
            after: (!after.is_empty()).then(|| after.to_owned()),
        })
    }
}

impl fmt::Display for Cursor {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            out,
            "{}/{}",
            self.space,
            self.after.as_deref().unwrap_or_default()
        )
    }
}

async fn page(mcp: &Mcp, who: &Principal, from: Option<Cursor>) -> Result<Page, Refusal> {
    let mut resources = Vec::new();
    let (mut space, mut after) = match from {
        Some(from) => (Some(from.space), from.after),
        None => (spaces(mcp, who, None).await?.first().copied(), None),
    };
    for _ in 0..SPACES_PER_PAGE {
        let Some(here) = space else {
            return Ok(Page {
                resources,
                next: None,
            });
        };
        let limit = PAGE - resources.len();
        let files = files(mcp, who, here, after.take(), String::new(), limit).await?;
        let last = files.last().map(|file| file.path.clone());
        let is_full = files.len() == limit;
        resources.extend(files.into_iter().filter_map(|file| resource(here, file)));
        if is_full {
            let next = Cursor {
                space: here,
                after: last,
            };
            return Ok(Page {
                resources,
                next: Some(next),
            });
        }
        space = spaces(mcp, who, Some(here)).await?.first().copied();
    }
    let next = space.map(|space| Cursor { space, after: None });
    Ok(Page { resources, next })
}

/// Spaces that the caller may reach, newest first, older than `before`.
async fn spaces(mcp: &Mcp, who: &Principal, before: Option<SpaceId>) -> Result<Vec<SpaceId>, Refusal> {
    let limit = CompletionInfo::MAX_VALUES;
    let found = mcp
        .shared
        .engine
        .spaces(who.project, who.entity(), before, limit)
        .await?;
    Ok(found.into_iter().map(|space| space.id).collect())
}

async fn paths(
    mcp: &Mcp,
    who: &Principal,
    space: Option<SpaceId>,
    begun: &str,
) -> Result<Vec<String>, Refusal> {
    let Some(space) = space else {
        return Ok(Vec::new());
    };
    let files = files(
        mcp,
        who,
        space,
        None,
        begun.to_owned(),
        CompletionInfo::MAX_VALUES,
    )
    .await?;
    Ok(files.into_iter().map(|file| file.path).collect())
}

/// Files of a space as the caller may see them; none of a space that it may not reach any longer.
async fn files(
    mcp: &Mcp,
    who: &Principal,
    space: SpaceId,
    after: Option<String>,
    prefix: String,
    limit: usize,
) -> Result<Vec<FileInfo>, Refusal> {
    if mcp.shared.access.reach_space(who, space).await.is_err() {
        return Ok(Vec::new());
    }
    let listing = Listing { prefix, after, limit };
    let place = place(who, space);
    Ok(match who.is_backend() {
        true => mcp.workspace.list(place, listing).await?,
        false => mcp.workspace.list_shown(place, listing).await?,
    })
}

fn resource(space: SpaceId, file: FileInfo) -> Option<Resource> {
    let uri = FileUri {
        space,
        name: file.path.parse().ok()?,
    };
    Some(
        Resource::new(uri.to_string(), file.path)
            .with_mime_type(file.mime_type.as_str())
            .with_size(file.bytes),
    )
}

pub(crate) fn place(who: &Principal, space: SpaceId) -> Place {
    Place {
        project: who.project,
        space,
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    #[test]
    fn an_address_names_one_file_and_nothing_else() {
        let space = SpaceId::new(Uuid::from_u128(7));
        let uri = FileUri {
            space,
            name: "Küche/plan 1%.png".parse().unwrap(),
        };
        let text = uri.to_string();
        assert!(text.ends_with("/files/K%C3%BCche/plan%201%25.png"), "{text}");
        assert_eq!(text.parse::<FileUri>(), Ok(uri));
        for wrong in [
            "",
            "file:///etc/passwd",
            "toolgate://spaces/x/files/a",
            &format!("toolgate://spaces/{space}/files/"),
            &format!("toolgate://spaces/{space}/files/%zz"),
            &format!("toolgate://spaces/{space}/files/%ff"),
        ] {
            assert_eq!(wrong.parse::<FileUri>(), Err(()), "{wrong}");
        }
    }
}
