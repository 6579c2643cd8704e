//! The real servers that `make tests` installs.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Map, Value, json};
use tempfile::TempDir;

/// Real servers, and what they work on.
pub struct RealServers {
    pub directory: TempDir,
}

impl RealServers {
    pub fn new() -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let files = directory.path().join("files");
        std::fs::create_dir(&files).expect("a directory");
        std::fs::write(files.join("note.txt"), "remember the milk").expect("a file");
        let repository = directory.path().join("repository");
        let made = Command::new("git")
            .args(["init", "--quiet"])
            .arg(&repository)
            .status();
        assert!(made.expect("git runs").success());
        Self { directory }
    }

    pub fn files(&self) -> PathBuf {
        self.directory.path().join("files")
    }

    pub fn repository(&self) -> PathBuf {
        self.directory.path().join("repository")
    }

    /// The configurations of all eight, by name.
    pub fn all(&self) -> Map<String, Value> {
        let database = self.directory.path().join("data.sqlite");
        let memory = self.directory.path().join("memory.json");
        let mut servers = Map::new();
        let mut add = |name: &str, config: Value| drop(servers.insert(name.into(), config));
        add(
            "everything",
            json!({"command": node("mcp-server-everything"), "args": ["stdio"]}),
        );
        add(
            "filesystem",
            json!({"command": node("mcp-server-filesystem"), "args": [self.files()]}),
        );
        add(
            "memory",
            json!({"command": node("mcp-server-memory"), "env": {"MEMORY_FILE_PATH": memory}}),
        );
        add(
            "thinking",
            json!({"command": node("mcp-server-sequential-thinking")}),
        );
        add("time", time());
        add(
            "git",
            json!({"command": python("mcp-server-git"), "args": ["--repository", self.repository()]}),
        );
        add(
            "fetch",
            json!({"command": python("mcp-server-fetch"), "args": ["--allow-private-ips"]}),
        );
        let sqlite = folder("TOOLGATE_TEST_MCP_SQLITE").join("mcp-server-sqlite");
        add(
            "sqlite",
            json!({"command": sqlite, "args": ["--db-path", database]}),
        );
        servers
    }
}

/// The time server.
pub fn time() -> Value {
    json!({"command": python("mcp-server-time"), "args": ["--local-timezone", "UTC"]})
}

/// What a server needs to find its interpreter.
pub fn path() -> (&'static str, String) {
    ("PATH", std::env::var("PATH").expect("a PATH"))
}

fn node(program: &str) -> PathBuf {
    folder("TOOLGATE_TEST_MCP_NODE").join(program)
}

fn python(program: &str) -> PathBuf {
    folder("TOOLGATE_TEST_MCP_PYTHON").join(program)
}

/// A folder of programs that the environment names.
fn folder(variable: &str) -> PathBuf {
    let folder = std::env::var_os(variable).unwrap_or_else(|| {
        panic!(
            "{variable} does not name the folder with the MCP servers; `make tests` installs them and sets it"
        )
    });
    let folder = PathBuf::from(folder);
    assert!(
        folder.is_dir(),
        "{variable} names {}, which is no folder",
        folder.display()
    );
    folder
}

/// Processes whose command line holds this text.
pub fn processes(text: &str) -> Vec<i32> {
    let entries = std::fs::read_dir("/proc").expect("/proc").flatten();
    let ids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    ids.filter(|id| {
        let line = std::fs::read(Path::new("/proc").join(id.to_string()).join("cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line).contains(text)
    })
    .collect()
}
