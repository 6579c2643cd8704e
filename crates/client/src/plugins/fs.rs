//! Files below one directory, for an agent to read and write.
//!
//! Paths are confined to the directory: `..`, absolute paths and symbolic links that lead out of it are
//! rejected, also a link that is swapped in between check and use, because the system resolves every path
//! relative to an open directory.

use std::io::{self, Read as _};
use std::path::Path;
use std::sync::Arc;

use cap_std::ambient_authority;
use cap_std::fs::Dir;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::plugin::Plugin;
use crate::tool::{Tool, ToolError};

/// Most bytes that one read returns.
const READ_BYTES_MAX: u64 = 256 * 1024;
/// Most bytes of one write.
const WRITE_BYTES_MAX: usize = 1024 * 1024;
/// Most directory entries that are listed.
const ENTRIES_MAX: usize = 1_000;

/// The operations that the plugin allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Read files and list directories.
    Read,
    /// Also write files.
    Write,
}

/// The plugin `fs` with the tools `read_file`, `list_directory` and, with [`Access::Write`], `write_file`.
pub fn plugin(root: impl AsRef<Path>, access: Access) -> io::Result<Plugin> {
    let dir = Arc::new(Dir::open_ambient_dir(root, ambient_authority())?);
    let (reader, lister) = (dir.clone(), dir.clone());
    let plugin = Plugin::new("fs", env!("CARGO_PKG_VERSION"))
        .tool(Tool::typed(
            "read_file",
            "Reads a text file. Paths are relative to the directory that was shared.",
            move |file: ReadFile| in_background(reader.clone(), move |dir| read(dir, &file)),
        ))
        .tool(Tool::typed(
            "list_directory",
            "Lists the files and directories in a directory that was shared.",
            move |place: ListDirectory| in_background(lister.clone(), move |dir| list(dir, &place)),
        ));
    Ok(match access {
        Access::Read => plugin,
        Access::Write => plugin.tool(Tool::typed(
            "write_file",
            "Writes a text file and replaces an existing one. Missing directories are created.",
            move |file: WriteFile| in_background(dir.clone(), move |dir| write(dir, &file)),
        )),
    })
}

#[derive(Deserialize, JsonSchema)]
struct ReadFile {
    /// Path relative to the shared directory, such as "notes/today.md".
    path: String,
    /// Start at this byte; for files that are too long to be read at once.
    offset: Option<u64>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct FileText {
    text: String,
    /// Offset of the next read; absent at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_offset: Option<u64>,
}

#[derive(Deserialize, JsonSchema)]
struct ListDirectory {
    /// Path relative to the shared directory, such as "notes"; the shared directory itself by default.
    path: Option<String>,
}

#[derive(Serialize)]
struct Listing {
    entries: Vec<Entry>,
    /// Whether there are more entries.
    truncated: bool,
}

#[derive(Serialize, PartialEq, Eq, PartialOrd, Ord)]
struct Entry {
    name: String,
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes: Option<u64>,
}

#[derive(Deserialize, JsonSchema)]
struct WriteFile {
    /// Path relative to the shared directory, such as "notes/today.md".
    path: String,
    /// The complete new text.
    content: String,
}

#[derive(Serialize)]
struct Written {
    bytes: usize,
}

/// Runs blocking file operations off the async tasks.
async fn in_background<T: Send + 'static>(
    dir: Arc<Dir>,
    work: impl FnOnce(&Dir) -> Result<T, ToolError> + Send + 'static,
) -> Result<T, ToolError> {
    tokio::task::spawn_blocking(move || work(&dir)).await?
}

fn read(dir: &Dir, file: &ReadFile) -> Result<FileText, ToolError> {
    let why = |error| file_error(&file.path, error);
    // Opening a named pipe would block until somebody writes to it.
    if !dir.metadata(&file.path).map_err(why)?.is_file() {
        return Err(ToolError::new(format_args!("{} is not a file", file.path)));
    }
    let mut opened = dir.open(&file.path).map_err(why)?;
    let offset = file.offset.unwrap_or(0);
    io::Seek::seek(&mut opened, io::SeekFrom::Start(offset)).map_err(why)?;
    let mut bytes = Vec::new();
    (&mut opened)
        .take(READ_BYTES_MAX + 1)
        .read_to_end(&mut bytes)
        .map_err(why)?;
    let cut = bytes.len() as u64 > READ_BYTES_MAX;
    if cut {
        bytes.truncate(READ_BYTES_MAX as usize);
        // Cuts between two characters, not inside one.
        let end = bytes.iter().rposition(|byte| byte & 0xc0 != 0x80).unwrap_or(0);
        bytes.truncate(end);
    }
    let next_offset = cut.then_some(offset + bytes.len() as u64);
    let text = String::from_utf8(bytes).map_err(|_| {
        ToolError::new(format_args!(
            "{} is not UTF-8 text, or the offset is inside a character",
            file.path
        ))
    })?;
    Ok(FileText { text, next_offset })
}

fn list(dir: &Dir, place: &ListDirectory) -> Result<Listing, ToolError> {
    let path = place
        .path
        .as_deref()
        .filter(|path| !path.is_empty())
        .unwrap_or(".");
    let mut entries = Vec::new();
    let mut truncated = false;
    for entry in dir.read_dir(path).map_err(|error| file_error(path, error))? {
        if entries.len() == ENTRIES_MAX {
            truncated = true;
            break;
        }
        let entry = entry?;
        let kind = entry.file_type()?;
        let kind = match (kind.is_dir(), kind.is_file(), kind.is_symlink()) {
            (true, ..) => "directory",
            (_, true, _) => "file",
            (_, _, true) => "link",
            _ => "other",
        };
        entries.push(Entry {
            name: entry.file_name().to_string_lossy().into_owned(),
            kind,
            bytes: (kind == "file")
                .then(|| entry.metadata().ok().map(|of| of.len()))
                .flatten(),
        });
    }
    entries.sort();
    Ok(Listing { entries, truncated })
}

fn write(dir: &Dir, file: &WriteFile) -> Result<Written, ToolError> {
    let bytes = file.content.len();
    if bytes > WRITE_BYTES_MAX {
        return Err(ToolError::new(format_args!(
            "{bytes} bytes are too many, at most {WRITE_BYTES_MAX} can be written at once"
        )));
    }
    let why = |error| file_error(&file.path, error);
    if let Some(parent) = Path::new(&file.path)
        .parent()
        .filter(|parent| *parent != Path::new(""))
    {
        dir.create_dir_all(parent).map_err(why)?;
    }
    match dir.metadata(&file.path) {
        Ok(there) if !there.is_file() => {
            return Err(ToolError::new(format_args!("{} is not a file", file.path)));
        }
        Ok(_) | Err(_) => dir.write(&file.path, &file.content).map_err(why)?,
    }
    Ok(Written { bytes })
}

fn file_error(path: &str, error: io::Error) -> ToolError {
    match error.kind() {
        io::ErrorKind::PermissionDenied => ToolError::new(format_args!(
            "{path} is outside the shared directory, or its permissions do not allow access"
        )),
        _ => ToolError::new(format_args!("{path}: {error}")),
    }
}
