//! Data directories that are not as they were left: a damaged database, a lost one, a disk that takes nothing.

use std::path::Path;
use std::process::{Command, Output};

use rustix::process::Signal;
use toolgate_testkit::model_server::ModelServer;

use crate::harness::{binary, gateway};

/// Runs the binary to its end.
fn run(arguments: &[&str], data: &Path) -> Output {
    let mut command = binary();
    command.args(arguments).arg("--data").arg(data);
    command.output().expect("the binary starts")
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn damage_is_told_at_the_start_after_an_unclean_end_and_by_store_check() {
    let models = ModelServer::start().await;
    let mut gateway = gateway(&models).await;
    let api = gateway.api();
    for _ in 0..20 {
        let started = api.start("text:40").await;
        api.finished(started["runId"].as_str().unwrap()).await;
    }
    // Everything is moved into the database file, and the next end is not a clean one.
    gateway.signal(Signal::TERM);
    gateway.ended().await;
    gateway.spawn();
    gateway.ready().await;
    gateway.kill();
    let database = gateway.database();
    let data = database.parent().unwrap();
    let whole = run(&["store", "check"], data);
    assert_eq!(whole.status.code(), Some(0), "{whole:?}");
    assert!(text(&whole.stdout).contains("is whole"), "{whole:?}");

    let mut bytes = std::fs::read(&database).unwrap();
    let half = bytes.len() / 2;
    bytes[half..].fill(0xaa);
    std::fs::write(&database, bytes).unwrap();
    let damaged = run(&["store", "check"], data);
    assert_eq!(damaged.status.code(), Some(1), "{damaged:?}");
    let told = text(&damaged.stdout);
    assert!(told.contains("is damaged") && told.contains("backup"), "{told}");
    let refused = run(&["serve", "--listen", "127.0.0.1:0"], data);
    assert_eq!(refused.status.code(), Some(1), "{refused:?}");
    assert!(refused.stdout.is_empty(), "{refused:?}");
    let told = text(&refused.stderr);
    assert!(
        told.contains("toolgate.db") && told.contains("toolgate store check") && told.contains("--force"),
        "{told}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_directory_that_lost_its_database_does_not_start_as_new_without_a_word() {
    let models = ModelServer::start().await;
    let mut gateway = gateway(&models).await;
    gateway.signal(Signal::TERM);
    gateway.ended().await;
    let database = gateway.database();
    let data = database.parent().unwrap();
    for lose in [
        |path: &Path| std::fs::remove_file(path),
        |path: &Path| std::fs::write(path, ""),
    ] {
        lose(&database).unwrap();
        let refused = run(&["serve", "--listen", "127.0.0.1:0"], data);
        assert_eq!(refused.status.code(), Some(1), "{refused:?}");
        let told = text(&refused.stderr);
        assert!(told.contains("toolgate.db") && told.contains("--force"), "{told}");
    }
    gateway.spawn_with(&["--force"]);
    gateway.ready().await;
}

#[test]
fn a_start_on_a_disk_that_takes_nothing_says_so_first() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("data");
    // No file may grow: what a full disk is to a process.
    let full = Command::new("/bin/sh")
        .args(["-c", "trap '' XFSZ; ulimit -f 0; exec \"$@\"", "sh"])
        .arg(binary().get_program())
        .args(["serve", "--listen", "127.0.0.1:0", "--data"])
        .arg(&data)
        .env_clear()
        .output()
        .expect("the binary starts");
    assert_eq!(full.status.code(), Some(1), "{full:?}");
    assert!(full.stdout.is_empty(), "{full:?}");
    let told = text(&full.stderr);
    let path = data.to_str().unwrap();
    assert!(
        told.contains(path) && told.contains("disk is full") && told.contains("--data"),
        "{told}"
    );
    // A directory that takes no files, whoever asks.
    let refused = run(&["serve", "--listen", "127.0.0.1:0"], Path::new("/proc/self/fd"));
    assert_eq!(refused.status.code(), Some(1), "{refused:?}");
    let told = text(&refused.stderr);
    assert!(
        told.contains("cannot write to the data directory /proc/self/fd"),
        "{told}"
    );
}
