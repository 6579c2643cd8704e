//! Package files: a document, or a source whose tools name their code with `executorFile`.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::path::{Component, Path, PathBuf};

use anyhow::{Context as _, bail};
use serde_json::Value;
use toolgate_kernel::problem::Problem;
use toolgate_package::document::{CODE_BYTES_MAX, DOCUMENT_BYTES_MAX};
use toolgate_package::{CuratorKeys, Package, strict_json};

/// Name of the package file in a folder.
pub const FILE: &str = "plugin.json";

/// Largest file with curators' keys.
const CURATORS_BYTES_MAX: usize = 4 << 20;

/// A package file that was read.
pub struct Source {
    /// The file.
    pub path: PathBuf,
    /// The document, with the code of all tools in it.
    pub document: Value,
    /// Files that hold code of it.
    pub code_files: Vec<PathBuf>,
}

impl Source {
    /// Reads `path`; of a folder its `plugin.json`.
    pub fn read(path: &Path) -> anyhow::Result<Self> {
        let path = match path.is_dir() {
            true => path.join(FILE),
            false => path.to_owned(),
        };
        let bytes = read_bounded(&path, DOCUMENT_BYTES_MAX)?;
        let mut document = strict_json::parse(&bytes).map_err(|problems| told(&path, &problems))?;
        let folder = path.parent().unwrap_or(Path::new("."));
        let code_files = include_code(&mut document, folder)?;
        Ok(Self {
            path,
            document,
            code_files,
        })
    }

    /// The package, if it is valid.
    pub fn package(&self) -> anyhow::Result<Package> {
        Package::from_value(self.document.clone()).map_err(|problems| told(&self.path, &problems))
    }
}

/// Replaces `executorFile` of each tool by the text of that file.
fn include_code(document: &mut Value, folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    let tools = document.get_mut("tools").and_then(Value::as_array_mut);
    for tool in tools.into_iter().flatten().filter_map(Value::as_object_mut) {
        let Some(name) = tool.get("executorFile").and_then(Value::as_str) else {
            continue;
        };
        let relative = Path::new(name);
        if !relative
            .components()
            .all(|part| matches!(part, Component::Normal(_) | Component::CurDir))
        {
            bail!("executorFile {name:?} leads out of the folder of the package; name a file in it");
        }
        let file = file_below(folder, relative)?;
        let code = String::from_utf8(read_bounded(&file, CODE_BYTES_MAX)?)
            .with_context(|| format!("{} is not UTF-8", file.display()))?;
        tool.shift_remove("executorFile");
        if tool.insert("executorCode".into(), code.into()).is_some() {
            bail!("a tool has executorCode and executorFile; leave one of them out");
        }
        files.push(file);
    }
    Ok(files)
}

/// A regular file in the folder: a link in somebody's package must not put another file of this machine into it.
fn file_below(folder: &Path, relative: &Path) -> anyhow::Result<PathBuf> {
    let file = folder.join(relative);
    let unreadable = || format!("cannot read {}", file.display());
    // The folder of a file named without one is the empty path.
    let folder = Path::new(".")
        .join(folder)
        .canonicalize()
        .with_context(unreadable)?;
    let real = file.canonicalize().with_context(unreadable)?;
    if !real.starts_with(&folder) {
        bail!(
            "executorFile {} leads out of the folder of the package; name a file in it",
            relative.display()
        );
    }
    if !real.is_file() {
        bail!("executorFile {} is no regular file", relative.display());
    }
    Ok(file)
}

/// Reads a file, as long as it is not larger than it may be.
pub fn read_bounded(path: &Path, bytes_max: usize) -> anyhow::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)
        .and_then(|file| file.take(bytes_max as u64 + 1).read_to_end(&mut bytes))
        .with_context(|| format!("cannot read {}", path.display()))?;
    if bytes.len() > bytes_max {
        bail!("{} has more than {bytes_max} bytes", path.display());
    }
    Ok(bytes)
}

/// Reads a JSON file with the keys of curators.
pub fn read_curators(path: &Path) -> anyhow::Result<CuratorKeys> {
    let bytes = read_bounded(path, CURATORS_BYTES_MAX)?;
    strict_json::parse(&bytes)
        .and_then(|value| CuratorKeys::read(&value, ""))
        .map_err(|problems| listed("the curators cannot be read".into(), path, &problems))
}

/// All problems of a package file, as an error.
pub fn told(path: &Path, problems: &[Problem]) -> anyhow::Error {
    let words = match problems.len() {
        1 => "the package has a problem".to_owned(),
        many => format!("the package has {many} problems"),
    };
    listed(words, path, problems)
}

fn listed(words: String, path: &Path, problems: &[Problem]) -> anyhow::Error {
    let mut text = words;
    for Problem { pointer, message } in problems {
        write!(text, "\n  {}#{pointer}: {message}", path.display()).expect("a string takes everything");
    }
    anyhow::anyhow!(text)
}

/// Writes a file whole or not at all: nobody reads half a package.
pub fn write_whole(path: &Path, text: &str) -> anyhow::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let failed = || format!("cannot write {}", path.display());
    let mut file = tempfile::Builder::new()
        // As every new file: the umask takes away what others must not have.
        .permissions(std::fs::Permissions::from_mode(0o666))
        .tempfile_in(folder.unwrap_or(Path::new(".")))
        .with_context(failed)?;
    file.write_all(text.as_bytes()).with_context(failed)?;
    file.persist(path).with_context(failed)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_is_read_from_regular_files_in_the_folder_of_the_package_only() {
        let outside = tempfile::tempdir().unwrap();
        std::fs::write(outside.path().join("private"), "a private key").unwrap();
        let folder = tempfile::tempdir().unwrap();
        let code = |name: &str| {
            let document = serde_json::json!({"tools": [{"executorFile": name}]});
            std::fs::write(folder.path().join(FILE), document.to_string()).unwrap();
            Source::read(folder.path()).map(|source| source.document["tools"][0]["executorCode"].clone())
        };
        std::fs::write(folder.path().join("own.js"), "return 1;").unwrap();
        std::os::unix::fs::symlink("own.js", folder.path().join("linked.js")).unwrap();
        assert_eq!(code("own.js").unwrap(), "return 1;");
        assert_eq!(code("linked.js").unwrap(), "return 1;");
        std::os::unix::fs::symlink(outside.path().join("private"), folder.path().join("file.js")).unwrap();
        std::os::unix::fs::symlink(outside.path(), folder.path().join("folder")).unwrap();
        for name in ["file.js", "folder/private"] {
            let refused = code(name).unwrap_err().to_string();
            assert!(refused.contains("leads out of the folder"), "{name}: {refused}");
        }
        std::fs::create_dir(folder.path().join("sub")).unwrap();
        assert!(code("sub").unwrap_err().to_string().contains("no regular file"));
    }
}
