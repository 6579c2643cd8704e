//! Files below one directory, for an agent to read and write.
//!
//! Nothing outside is reachable: not by `..`, not by an absolute path, not by a symbolic link, also not by one that
//! is swapped in between (the system resolves every path below an open directory).

use std::io::{self, Read as _};
use std::path::Path;
use std::sync::Arc;

use cap_std::ambient_authority;
use cap_std::fs::Dir;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::plugin::Plugin;
use crate::tool::{Tool, ToolError};

/// Most bytes of a file that are read at once.
const READ_BYTES_MAX: u64 = 256 * 1024;
/// Most bytes that are written at once.
const WRITE_BYTES_MAX: usize = 1024 * 1024;
/// Most entries of a directory that are listed.
const ENTRIES_MAX: usize = 1_000;

/// What may be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Read and list.
    Read,
    /// Also write.
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
            "Writes a text file, over what was there. Missing directories are made.",
            move |file: WriteFile| in_background(dir.clone(), move |dir| write(dir, &file)),
        )),
    })
}

#[derive(Deserialize, JsonSchema)]
struct ReadFile {
    /// Such as "notes/today.md".
    path: String,
    /// From this byte on; for files that are too long to be read at once.
    offset: Option<u64>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct FileText {
    text: String,
    /// Where to go on; absent at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_offset: Option<u64>,
}

#[derive(Deserialize, JsonSchema)]
struct ListDirectory {
    /// Such as "notes"; the shared directory itself when it is left out.
    path: Option<String>,
}

#[derive(Serialize)]
struct Listing {
    entries: Vec<Entry>,
    /// There are more.
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
    /// Such as "notes/today.md".
    path: String,
    /// All of the new text.
    content: String,
}

#[derive(Serialize)]
struct Written {
    bytes: usize,
}

/// Files block; the tasks around them must not.
async fn in_background<T: Send + 'static>(
    dir: Arc<Dir>,
    work: impl FnOnce(&Dir) -> Result<T, ToolError> + Send + 'static,
) -> Result<T, ToolError> {
    tokio::task::spawn_blocking(move || work(&dir)).await?
}

fn read(dir: &Dir, file: &ReadFile) -> Result<FileText, ToolError> {
    let why = |error| told(&file.path, error);
    // A pipe would be waited for without end.
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
        // Not in the middle of a character.
        let end = bytes.iter().rposition(|byte| byte & 0xc0 != 0x80).unwrap_or(0);
        bytes.truncate(end);
    }
    let next_offset = cut.then_some(offset + bytes.len() as u64);
    let text = String::from_utf8(bytes)
        .map_err(|_| ToolError::new(format_args!("{} is not text, or does not begin there", file.path)))?;
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
    for entry in dir.read_dir(path).map_err(|error| told(path, error))? {
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
            "{bytes} bytes are too many; at most {WRITE_BYTES_MAX} are written at once"
        )));
    }
    let why = |error| told(&file.path, error);
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

fn told(path: &str, error: io::Error) -> ToolError {
    match error.kind() {
        io::ErrorKind::PermissionDenied => ToolError::new(format_args!(
            "{path} is outside the shared directory, or may not be touched"
        )),
        _ => ToolError::new(format_args!("{path}: {error}")),
    }
}
