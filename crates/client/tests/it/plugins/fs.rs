//! The file system: what is below the root, and nothing else.

use std::os::unix::fs::symlink;

use serde_json::{Value, json};
use tempfile::TempDir;
use toolgate_client::plugins::fs::{Access, plugin};
use toolgate_client::{Client, ToolError};

use crate::{client, words};

/// A directory `shared` with `a.txt` and `sub/b.txt`, beside a file `secret`, and links to both sides.
struct World {
    directory: TempDir,
    client: Client,
}

impl World {
    async fn new(access: Access) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let shared = directory.path().join("shared");
        std::fs::create_dir_all(shared.join("sub")).unwrap();
        std::fs::write(directory.path().join("secret"), "hidden").unwrap();
        std::fs::write(shared.join("a.txt"), "alpha").unwrap();
        std::fs::write(shared.join("sub/b.txt"), "beta").unwrap();
        symlink(directory.path(), shared.join("out")).unwrap();
        symlink("../secret", shared.join("leak")).unwrap();
        symlink("a.txt", shared.join("inside")).unwrap();
        let client = client();
        client.use_plugin(plugin(&shared, access).unwrap()).await.unwrap();
        Self { directory, client }
    }
    async fn call(&self, tool: &str, input: Value) -> Result<Value, ToolError> {
        self.client.try_tool(tool, input).await
    }
    async fn read(&self, path: &str) -> Result<Value, ToolError> {
        self.call("read_file", json!({"path": path})).await
    }
}

#[tokio::test]
async fn files_below_the_root_are_read() {
    let world = World::new(Access::Read).await;
    for (path, text) in [
        ("a.txt", "alpha"),
        ("sub/b.txt", "beta"),
        ("./sub/../a.txt", "alpha"),
        ("inside", "alpha"),
    ] {
        assert_eq!(world.read(path).await.unwrap(), json!({"text": text}), "{path}");
    }
}

#[tokio::test]
async fn nothing_outside_the_root_is_reached() {
    let world = World::new(Access::Write).await;
    let secret = world.directory.path().join("secret");
    let secret = secret.to_str().unwrap();
    for path in [
        "../secret",
        "sub/../../secret",
        secret,
        "out/secret",
        "leak",
        "/etc/passwd",
        "out/../secret",
    ] {
        let read = words(world.read(path).await);
        assert!(!read.contains("hidden"), "{path}: {read}");
        words(
            world
                .call("write_file", json!({"path": path, "content": "mine"}))
                .await,
        );
    }
    words(world.call("list_directory", json!({"path": ".."})).await);
    words(world.call("list_directory", json!({"path": "out"})).await);
    words(
        world
            .call("write_file", json!({"path": "out/new", "content": "x"}))
            .await,
    );
    assert_eq!(std::fs::read_to_string(secret).unwrap(), "hidden");
    assert!(!world.directory.path().join("new").exists());
}

#[tokio::test]
async fn a_directory_is_listed_in_order_with_kinds_and_sizes() {
    let world = World::new(Access::Read).await;
    let listing = world.call("list_directory", json!({})).await.unwrap();
    assert_eq!(
        listing,
        json!({"truncated": false, "entries": [
            {"name": "a.txt", "kind": "file", "bytes": 5},
            {"name": "inside", "kind": "link"},
            {"name": "leak", "kind": "link"},
            {"name": "out", "kind": "link"},
            {"name": "sub", "kind": "directory"},
        ]})
    );
}

#[tokio::test]
async fn a_file_is_written_with_the_directories_it_needs() {
    let world = World::new(Access::Write).await;
    let written = world
        .call(
            "write_file",
            json!({"path": "new/deep/c.txt", "content": "gamma"}),
        )
        .await;
    assert_eq!(written.unwrap(), json!({"bytes": 5}));
    assert_eq!(world.read("new/deep/c.txt").await.unwrap()["text"], "gamma");
}

#[tokio::test]
async fn writing_is_no_tool_where_only_reading_is_allowed() {
    let world = World::new(Access::Read).await;
    assert!(!world.client.has_tool("write_file"));
}

#[tokio::test]
async fn a_long_file_is_read_in_pieces_that_never_split_a_character() {
    let world = World::new(Access::Read).await;
    let text = "ä€".repeat(100_000);
    std::fs::write(world.directory.path().join("shared/long"), &text).unwrap();
    let (mut read, mut offset) = (String::new(), json!(0));
    while !offset.is_null() {
        let piece = world
            .call("read_file", json!({"path": "long", "offset": offset}))
            .await
            .unwrap();
        read += piece["text"].as_str().unwrap();
        offset = piece["nextOffset"].clone();
    }
    assert!(read == text);
}

#[tokio::test]
async fn what_is_no_text_or_too_much_is_refused() {
    let world = World::new(Access::Write).await;
    std::fs::write(world.directory.path().join("shared/binary"), [0xff, 0xfe]).unwrap();
    assert!(words(world.read("binary").await).contains("not UTF-8 text"));
    assert!(words(world.read("sub").await).contains("not a file"));
    let huge = json!({"path": "huge", "content": "x".repeat(2 << 20)});
    assert!(words(world.call("write_file", huge).await).contains("too many"));
}
