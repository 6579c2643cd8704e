//! The files of a space.

use std::sync::Arc;

use serde_json::{Value, json};
use toolgate_engine::records::Listing;
use toolgate_engine::workspace::{NewFile, Only, Place, Workspace, WorkspaceError, WorkspaceLimits};
use toolgate_kernel::id::{ProjectId, SpaceId};
use toolgate_kernel::time::Time;
use toolgate_store::MemoryStore;

use crate::world::on_every_store;

fn paths(told: &Value) -> Vec<&str> {
    let files = told["files"].as_array().unwrap();
    files.iter().map(|file| file["path"].as_str().unwrap()).collect()
}

on_every_store! {
    async fn a_file_is_written_read_listed_and_deleted(world) {
        let space = world.space().await;
        let call = async |tool: &str, input| world.call_in(space, "ada", tool, input).await;
        let written = call("vfs_write", json!({"path": "./notes//a.md", "content": "# Über"})).await.unwrap();
        assert_eq!((&written["path"], &written["mimeType"], &written["version"], &written["bytes"]),
            (&json!("notes/a.md"), &json!("text/markdown"), &json!(1), &json!(7)));
        let read = call("vfs_read", json!({"path": "notes/a.md"})).await.unwrap();
        assert_eq!((&read["content"], &read["encoding"]), (&json!("# Über"), &json!("text")));
        call("vfs_write", json!({"path": "b.bin", "content": "/wD+", "encoding": "base64"})).await.unwrap();
        let read = call("vfs_read", json!({"path": "b.bin"})).await.unwrap();
        assert_eq!((&read["content"], &read["mimeType"]), (&json!("/wD+"), &json!("application/octet-stream")));
        let all = call("vfs_list", json!({})).await.unwrap();
        assert_eq!((paths(&all), &all["totalBytes"]), (vec!["b.bin", "notes/a.md"], &json!(10)));
        assert_eq!(paths(&call("vfs_list", json!({"prefix": "notes/"})).await.unwrap()), ["notes/a.md"]);
        assert_eq!(call("vfs_delete", json!({"path": "b.bin"})).await.unwrap()["deleted"], true);
        assert_eq!(call("vfs_delete", json!({"path": "b.bin"})).await.unwrap()["deleted"], false);
        let gone = call("vfs_read", json!({"path": "b.bin"})).await.unwrap_err();
        assert!(gone.contains("NotFound"), "{gone}");
    }

    async fn earlier_versions_stay_readable_and_a_stale_write_is_refused(world) {
        let space = world.space().await;
        let call = async |tool: &str, input| world.call_in(space, "ada", tool, input).await;
        for content in ["one", "two", "three"] {
            call("vfs_write", json!({"path": "a.txt", "content": content})).await.unwrap();
        }
        let read = call("vfs_read", json!({"path": "a.txt", "version": 1})).await.unwrap();
        assert_eq!((&read["content"], &read["version"]), (&json!("one"), &json!(1)));
        assert_eq!(paths(&call("vfs_list", json!({})).await.unwrap()), ["a.txt"]);
        let stale = json!({"path": "a.txt", "content": "mine", "expectedVersion": 2});
        let refused = call("vfs_write", stale).await.unwrap_err();
        assert!(refused.contains("at version 3"), "{refused}");
        let fresh = json!({"path": "a.txt", "content": "mine", "expectedVersion": 3});
        assert_eq!(call("vfs_write", fresh).await.unwrap()["version"], 4);
        let new = json!({"path": "a.txt", "content": "mine", "expectedVersion": 0});
        assert!(call("vfs_write", new).await.is_err());
    }

    async fn a_large_file_is_read_in_pieces_that_keep_characters_whole(world) {
        let space = world.space().await;
        let call = async |tool: &str, input| world.call_in(space, "ada", tool, input).await;
        let text = "aü".repeat(50);
        call("vfs_write", json!({"path": "long", "content": text})).await.unwrap();
        let (mut read, mut offset) = (String::new(), json!(0));
        while !offset.is_null() {
            let piece = call("vfs_read", json!({"path": "long", "offset": offset, "length": 8})).await.unwrap();
            read.push_str(piece["content"].as_str().unwrap());
            offset = piece["nextOffset"].clone();
        }
        assert_eq!(read, text);
    }

    async fn names_that_lead_elsewhere_are_refused(world) {
        let space = world.space().await;
        for path in ["../x", "/../etc/passwd", "a/../../b", "a\\..\\b", "a\u{0}b", "..\u{2215}x", "\u{1}", "\u{2}a\u{1}000000000001"] {
            for tool in ["vfs_read", "vfs_write", "vfs_delete"] {
                let refused = world.call_in(space, "ada", tool, json!({"path": path, "content": ""})).await.unwrap_err();
                assert!(refused.contains("ValidationFailed"), "{tool} {path:?}: {refused}");
            }
        }
        world.call_in(space, "ada", "vfs_write", json!({"path": "a", "content": "x"})).await.unwrap();
        for odd in [json!({"after": "\u{0}"}), json!({"prefix": "\u{1}"}), json!({"prefix": "\u{2}"})] {
            let told = world.call_in(space, "ada", "vfs_list", odd).await.unwrap();
            assert!(paths(&told).iter().all(|path| *path == "a"), "{told}");
        }
    }

    async fn another_space_has_files_of_its_own(world) {
        let (here, there) = (world.space().await, world.space().await);
        world.call_in(here, "ada", "vfs_write", json!({"path": "a", "content": "secret"})).await.unwrap();
        assert!(world.call_in(there, "ada", "vfs_read", json!({"path": "a"})).await.is_err());
        assert_eq!(paths(&world.call_in(there, "ada", "vfs_list", json!({})).await.unwrap()), [""; 0]);
        assert_eq!(world.call_in(here, "bob", "vfs_read", json!({"path": "a"})).await.unwrap()["content"], "secret");
    }

    async fn files_written_at_once_are_all_counted(world) {
        let space = world.space().await;
        let calls = ["a", "b", "c", "d", "e", "f"].map(|path| ("vfs_write", json!({"path": path, "content": "12"})));
        assert!(world.calls_in(space, "ada", &calls).await.iter().all(Result::is_ok));
        let told = world.call_in(space, "ada", "vfs_list", json!({})).await.unwrap();
        assert_eq!((&told["totalFiles"], &told["totalBytes"]), (&json!(6), &json!(12)));
    }

    async fn an_output_that_is_too_large_becomes_a_file(world) {
        let space = world.space().await;
        let out = world.call_in(space, "ada", "shout", json!({"letters": 300_000})).await.unwrap();
        assert_eq!((&out["truncated"], &out["file"]["bytes"]), (&json!(true), &json!(300_000)));
        assert!(out["preview"].as_str().unwrap().starts_with("AAA") && out.to_string().len() < 4_000);
        let read = json!({"path": out["file"]["path"], "offset": 299_999});
        assert_eq!(world.call_in(space, "ada", "vfs_read", read).await.unwrap()["content"], "A");
        let small = world.call_in(space, "ada", "shout", json!({"letters": 3})).await.unwrap();
        assert_eq!(small, "AAA");
    }
}

/// A workspace with room for little.
fn small() -> (Workspace, Place) {
    let limits = WorkspaceLimits {
        files_max: 2,
        file_bytes_max: 10,
        space_bytes_max: 20,
        versions_max: 2,
    };
    let place = Place {
        project: ProjectId::from_bytes([1; 16]),
        space: SpaceId::from_bytes([2; 16]),
    };
    (Workspace::new(Arc::new(MemoryStore::new()), limits), place)
}

fn file(name: &str, bytes: usize) -> NewFile {
    NewFile {
        name: name.parse().unwrap(),
        mime: None,
        data: vec![b'x'; bytes],
        only: Only::Always,
    }
}

#[tokio::test]
async fn quotas_hold_and_deleting_gives_room_back() {
    let (files, place) = small();
    let write = async |name: &str, bytes| files.write(place, file(name, bytes), Time(1)).await;
    assert!(matches!(write("a", 11).await, Err(WorkspaceError::TooLarge(10))));
    write("a", 10).await.unwrap();
    write("b", 8).await.unwrap();
    assert!(matches!(write("c", 1).await, Err(WorkspaceError::Full(_))));
    files
        .delete(place, &"b".parse().unwrap(), Only::Always, Time(1), None)
        .await
        .unwrap();
    assert_eq!(files.used(place).await.unwrap().bytes, 10);
    write("c", 10).await.unwrap();
    assert_eq!(files.used(place).await.unwrap().bytes, 20);
}

#[tokio::test]
async fn earlier_versions_give_way_to_the_newest() {
    let (files, place) = small();
    let name = "a".parse().unwrap();
    for bytes in [3, 4, 5, 6] {
        files.write(place, file("a", bytes), Time(1)).await.unwrap();
    }
    // Two earlier ones are kept; the first is gone.
    assert!(files.read(place, &name, Some(1)).await.is_err());
    assert_eq!(files.read(place, &name, Some(2)).await.unwrap().data.len(), 4);
    assert_eq!(files.used(place).await.unwrap().bytes, 4 + 5 + 6);
    // Room is made for the newest by dropping the oldest.
    files.write(place, file("a", 10), Time(1)).await.unwrap();
    assert_eq!(files.used(place).await.unwrap().bytes, 6 + 10);
    files
        .delete(place, &name, Only::Always, Time(1), None)
        .await
        .unwrap();
    let used = files.used(place).await.unwrap();
    assert_eq!((used.files, used.bytes), (0, 0));
    let listing = Listing {
        limit: 10,
        ..Listing::default()
    };
    assert_eq!(files.list(place, listing).await.unwrap(), []);
}

#[tokio::test]
async fn earlier_versions_of_any_file_give_way_when_there_is_no_room() {
    let (files, place) = small();
    let (a, b) = ("a".parse().unwrap(), "b".parse().unwrap());
    for (now, name, bytes) in [(1, "b", 2), (2, "b", 2), (3, "a", 8), (4, "a", 8)] {
        files.write(place, file(name, bytes), Time(now)).await.unwrap();
    }
    // Twenty bytes, four of them with b. The oldest earlier version is b's, then a's.
    files.write(place, file("b", 2), Time(5)).await.unwrap();
    assert!(files.read(place, &b, Some(1)).await.is_err());
    assert!(files.read(place, &a, Some(1)).await.is_ok());
    files.write(place, file("b", 10), Time(6)).await.unwrap();
    assert!(files.read(place, &a, Some(1)).await.is_err());
    assert_eq!(files.read(place, &a, None).await.unwrap().data.len(), 8);
    assert_eq!(files.used(place).await.unwrap().bytes, 8 + 10 + 2);
}

#[tokio::test]
async fn a_file_that_is_made_anew_has_a_version_of_its_own() {
    let (files, place) = small();
    let name = "a".parse().unwrap();
    let first = files.write(place, file("a", 1), Time(1)).await.unwrap();
    files
        .delete(place, &name, Only::Version(1), Time(1), None)
        .await
        .unwrap();
    let second = files.write(place, file("a", 1), Time(1)).await.unwrap();
    assert!(first.is_new && second.is_new && second.file.version > first.file.version);
    let stale = NewFile {
        only: Only::Version(first.file.version),
        ..file("a", 2)
    };
    let refused = files.write(place, stale, Time(1)).await;
    assert!(
        matches!(refused, Err(WorkspaceError::Changed(Some(2)))),
        "{refused:?}"
    );
    let existing = |name| NewFile {
        only: Only::Existing,
        ..file(name, 2)
    };
    files.write(place, existing("a"), Time(1)).await.unwrap();
    let refused = files.write(place, existing("b"), Time(1)).await;
    assert!(
        matches!(refused, Err(WorkspaceError::Changed(None))),
        "{refused:?}"
    );
}
