//! Tools for the files of the run's space.

use std::time::Duration;

use async_trait::async_trait;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde::Deserialize;
use serde_json::{Value, json};
use toolgate_engine::records::Listing;
use toolgate_engine::tools::{CallContext, CallFailure};
use toolgate_engine::workspace::{File, FileInfo, FileName, NewFile, Only, Place, Workspace, WorkspaceError};
use toolgate_kernel::agent::Action;
use toolgate_kernel::call::ErrorCode;
use toolgate_kernel::tool::Retry;

use crate::records::input;
use crate::toolkit::ServerTool;

/// Most bytes of a file that one call returns.
const READ_BYTES_DEFAULT: usize = 64 * 1024;
const READ_BYTES_MAX: usize = 128 * 1024;
/// Files listed by default.
const LISTED_DEFAULT: usize = 100;
const LISTED_MAX: usize = 500;
const TIMEOUT: Duration = Duration::from_secs(30);

/// Reads a file, or a part of it.
pub(crate) struct Read(pub Workspace);
/// Writes a file.
pub(crate) struct Write(pub Workspace);
/// Lists files.
pub(crate) struct List(pub Workspace);
/// Deletes a file.
pub(crate) struct Delete(pub Workspace);

#[derive(Deserialize)]
struct ReadInput {
    path: String,
    version: Option<u64>,
    offset: Option<usize>,
    length: Option<usize>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WriteInput {
    path: String,
    content: String,
    #[serde(default)]
    encoding: Encoding,
    mime_type: Option<String>,
    expected_version: Option<u64>,
}

#[derive(Deserialize, Default, Clone, Copy)]
#[serde(rename_all = "lowercase")]
enum Encoding {
    #[default]
    Text,
    Base64,
}

#[derive(Deserialize)]
struct ListInput {
    prefix: Option<String>,
    after: Option<String>,
    limit: Option<usize>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct DeleteInput {
    path: String,
    expected_version: Option<u64>,
}

#[async_trait]
impl ServerTool for Read {
    fn name(&self) -> &'static str {
        "vfs_read"
    }
    fn action(&self) -> Action {
        Action {
            description:
                "Read a file of the workspace. Text comes as it is, anything else as base64; a large file in \
                          pieces."
                    .into(),
            parameters: json!({
                "type": "object",
                "properties": {
                    "path": path(),
                    "version": {"type": "integer", "minimum": 1, "description": "An earlier version. Default: the newest."},
                    "offset": {"type": "integer", "minimum": 0, "description": "Byte to begin at. Default: 0."},
                    "length": {"type": "integer", "minimum": 1, "maximum": READ_BYTES_MAX, "description": "Most bytes to give. Default: 65536."},
                },
                "required": ["path"],
            }),
            timeout: TIMEOUT,
            retry: Retry::Safe,
        }
    }
    async fn call(&self, given: Value, context: &CallContext) -> Result<Value, CallFailure> {
        let wanted: ReadInput = input(given)?;
        let name = name(&wanted.path)?;
        let file = self.0.read(place(context), &name, wanted.version).await;
        let (offset, length) = (
            wanted.offset.unwrap_or(0),
            wanted.length.unwrap_or(READ_BYTES_DEFAULT),
        );
        Ok(piece(&file.map_err(failure)?, offset, length))
    }
}

#[async_trait]
impl ServerTool for Write {
    fn name(&self) -> &'static str {
        "vfs_write"
    }
    fn action(&self) -> Action {
        Action {
            description: "Write a file of the workspace, whole: it is made, or replaced by a new version."
                .into(),
            parameters: json!({
                "type": "object",
                "properties": {
                    "path": path(),
                    "content": {"type": "string", "description": "What it shall hold."},
                    "encoding": {"type": "string", "enum": ["text", "base64"], "description": "How the content is written. Default: text."},
                    "mimeType": {"type": "string", "maxLength": 127, "description": "Its media type. Default: by the name."},
                    "expectedVersion": {"type": "integer", "minimum": 0, "description": "Write only when the file is at this version; 0 when there must be none."},
                },
                "required": ["path", "content"],
            }),
            timeout: TIMEOUT,
            // The file is stored with the call's receipt, so a repeated call has no further effect.
            retry: Retry::Safe,
        }
    }
    async fn call(&self, given: Value, context: &CallContext) -> Result<Value, CallFailure> {
        let wanted: WriteInput = input(given)?;
        let data = match wanted.encoding {
            Encoding::Text => wanted.content.into_bytes(),
            Encoding::Base64 => BASE64
                .decode(wanted.content)
                .map_err(|error| invalid(format!("the content is no base64: {error}")))?,
        };
        let mime = wanted.mime_type.map(|mime| mime.parse()).transpose();
        let new = NewFile {
            name: name(&wanted.path)?,
            mime: mime.map_err(|error| invalid(format!("mimeType: {error}")))?,
            data,
            only: only(wanted.expected_version),
        };
        let receipt = |file: &FileInfo| context.receipt(json!(file).into());
        let written = self.0.write_once(place(context), new, context.now, receipt).await;
        Ok(json!(written.map_err(failure)?))
    }
}

#[async_trait]
impl ServerTool for List {
    fn name(&self) -> &'static str {
        "vfs_list"
    }
    fn action(&self) -> Action {
        Action {
            description: "List the files of the workspace, by name.".into(),
            parameters: json!({
                "type": "object",
                "properties": {
                    "prefix": {"type": "string", "maxLength": 512, "description": "Only names that begin so."},
                    "after": {"type": "string", "maxLength": 512, "description": "Only names behind this one, to go on."},
                    "limit": {"type": "integer", "minimum": 1, "maximum": LISTED_MAX, "description": "Most files to give. Default: 100."},
                },
            }),
            timeout: TIMEOUT,
            retry: Retry::Safe,
        }
    }
    async fn call(&self, given: Value, context: &CallContext) -> Result<Value, CallFailure> {
        let wanted: ListInput = input(given)?;
        let limit = wanted.limit.unwrap_or(LISTED_DEFAULT);
        let listing = Listing {
            prefix: relative(&wanted.prefix.unwrap_or_default()).to_owned(),
            after: wanted.after,
            limit: limit + 1,
        };
        let mut files = self.0.list(place(context), listing).await.map_err(failure)?;
        let more = files.len() > limit;
        files.truncate(limit);
        let used = self.0.used(place(context)).await.map_err(failure)?;
        let mut told = json!({"files": files, "totalFiles": used.files, "totalBytes": used.bytes});
        if more {
            told["after"] = json!(files.last().map(|file| &file.path));
        }
        Ok(told)
    }
}

#[async_trait]
impl ServerTool for Delete {
    fn name(&self) -> &'static str {
        "vfs_delete"
    }
    fn action(&self) -> Action {
        Action {
            description: "Delete a file of the workspace, with its earlier versions.".into(),
            parameters: json!({
                "type": "object",
                "properties": {
                    "path": path(),
                    // An `expectedVersion` is read too, but not offered: models that are offered one make one up.
                },
                "required": ["path"],
            }),
            timeout: TIMEOUT,
            // Idempotent by the call's receipt, as a write is.
            retry: Retry::Safe,
        }
    }
    async fn call(&self, given: Value, context: &CallContext) -> Result<Value, CallFailure> {
        let wanted: DeleteInput = input(given)?;
        let name = name(&wanted.path)?;
        let only = only(wanted.expected_version);
        let gone = json!({"path": name.as_str(), "deleted": true});
        let receipt = context.receipt(gone.clone().into());
        let deleted = self
            .0
            .delete(place(context), &name, only, context.now, Some(receipt));
        match deleted.await {
            Ok(()) => Ok(gone),
            Err(WorkspaceError::Missing(_)) => Ok(json!({"path": name.as_str(), "deleted": false})),
            Err(error @ WorkspaceError::Changed(_)) => Err(CallFailure::failed(format!(
                "{error}; nothing was deleted. Call vfs_delete again without expectedVersion."
            ))),
            Err(error) => Err(failure(error)),
        }
    }
}

/// Owner of the files: the space of the call.
pub(crate) fn place(context: &CallContext) -> Place {
    Place {
        project: context.project,
        space: context.space,
    }
}

/// The failure that the model reads.
pub(crate) fn failure(error: WorkspaceError) -> CallFailure {
    let words = error.to_string();
    match error {
        WorkspaceError::Missing(_) => CallFailure::new(ErrorCode::NotFound, words),
        WorkspaceError::TooLarge(_) | WorkspaceError::Full(_) => {
            CallFailure::new(ErrorCode::LimitExceeded, words)
        }
        WorkspaceError::Reserved => CallFailure::new(ErrorCode::PermissionDenied, words),
        WorkspaceError::Changed(_) => CallFailure::failed(format!(
            "{words}; nothing was changed. Call vfs_read to see what it holds now, then write again."
        )),
        WorkspaceError::Store(error) => error.into(),
    }
}

/// Part of a file; a character on its end is left to the next part.
fn piece(file: &File, offset: usize, length: usize) -> Value {
    let mut told = json!(file.info);
    let rest = file.data.get(offset..).unwrap_or_default();
    // At least one character long, so that reading on always reaches the end.
    let mut part = &rest[..length.max(4).min(rest.len())];
    if std::str::from_utf8(&file.data).is_ok() && file.data.get(offset).is_none_or(|byte| is_start(*byte)) {
        while part.len() < rest.len() && !is_start(rest[part.len()]) {
            part = &rest[..part.len() - 1];
        }
        told["content"] = String::from_utf8_lossy(part).into();
        told["encoding"] = "text".into();
    } else {
        told["content"] = BASE64.encode(part).into();
        told["encoding"] = "base64".into();
    }
    let end = offset + part.len();
    if end < file.data.len() {
        told["nextOffset"] = end.into();
    }
    told
}

/// Whether this byte starts a UTF-8 character.
fn is_start(byte: u8) -> bool {
    byte & 0b1100_0000 != 0b1000_0000
}

fn only(version: Option<u64>) -> Only {
    match version {
        None => Only::Always,
        Some(0) => Only::New,
        Some(version) => Only::Version(version),
    }
}

/// A path without leading slashes: models write absolute paths, and there is only one workspace.
fn relative(path: &str) -> &str {
    path.trim_start_matches('/')
}

fn name(path: &str) -> Result<FileName, CallFailure> {
    relative(path)
        .parse()
        .map_err(|error: toolgate_engine::workspace::BadFileName| invalid(error.to_string()))
}

fn invalid(words: String) -> CallFailure {
    CallFailure::new(ErrorCode::ValidationFailed, words)
}

fn path() -> Value {
    json!({"type": "string", "minLength": 1, "maxLength": 512, "description": "Name of the file, such as notes/today.md."})
}
