//! A gateway does not start on a database that holds a part of an import.

use std::path::Path;
use std::process::Output;

use rustix::process::Signal;
use toolgate_testkit::model_server::ModelServer;
use toolgate_testkit::postgres_server::PostgresServer;

use crate::harness::{Gateway, Version, binary, gateway};

/// Runs the binary to its end, on the database of a data directory or of a URL.
fn run(arguments: &[&str], data: &Path, store: Option<&str>) -> Output {
    let mut command = binary();
    command.args(arguments).arg("--data").arg(data);
    if let Some(url) = store {
        command.env("TOOLGATE_STORE", url);
    }
    command.output().expect("the binary starts")
}

fn told(output: &Output, code: i32) -> String {
    assert_eq!(output.status.code(), Some(code), "{output:?}");
    let all = [&output.stdout[..], &output.stderr[..]].concat();
    String::from_utf8(all).unwrap()
}

/// Imports the beginning of a file, and sees that no gateway starts then.
fn import_half(file: &Path, data: &Path, store: Option<&str>) {
    let part = file.with_extension("part");
    let bytes = std::fs::read(file).unwrap();
    std::fs::write(&part, &bytes[..bytes.len() - 60]).unwrap();
    told(&run(&["store", "import", part.to_str().unwrap()], data, store), 1);
    let refused = run(&["serve", "--listen", "127.0.0.1:0"], data, store);
    let words = told(&refused, 1);
    assert!(
        words.contains("toolgate store import") && words.contains("--force"),
        "{words}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_that_is_half_imported_does_not_start_until_the_import_has_ended() {
    let models = ModelServer::start().await;
    let mut gateway = gateway(&models).await;
    let api = gateway.api();
    let started = api.start("text:40").await;
    api.finished(started["runId"].as_str().unwrap()).await;
    gateway.signal(Signal::TERM);
    gateway.ended().await;
    let database = gateway.database();
    let data = database.parent().unwrap();
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("all.jsonl.gz");
    let export = ["store", "export", file.to_str().unwrap()];
    told(&run(&export, data, None), 0);

    let url = PostgresServer::shared().database();
    let import = ["store", "import", file.to_str().unwrap()];
    for (place, store) in [("a", None), ("b", Some(url.as_str()))] {
        let place = directory.path().join(place);
        import_half(&file, &place, store);
        let words = told(&run(&import, &place, store), 0);
        assert!(words.contains("counts and hashes agree"), "{words}");
        let words = told(&run(&["store", "check"], &place, store), 0);
        assert!(words.contains("is whole"), "{words}");
    }

    // Whoever wants the part says so once.
    for end in ["", "-wal", "-shm"] {
        let _ = std::fs::remove_file(data.join(format!("toolgate.db{end}")));
    }
    import_half(&file, data, None);
    gateway.spawn_with(&["--force"]);
    gateway.ready().await;
    gateway.signal(Signal::TERM);
    gateway.ended().await;
    gateway.spawn();
    gateway.ready().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_import_beside_a_running_gateway_is_refused() {
    let url = PostgresServer::shared().database();
    let settings = [("TOOLGATE_STORE", url.as_str())];
    let mut gateway = Gateway::start_version(Version::Present, &settings).await;
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("all.jsonl.gz");
    let store = Some(url.as_str());
    let export = ["store", "export", file.to_str().unwrap()];
    told(&run(&export, directory.path(), store), 0);
    let import = ["store", "import", file.to_str().unwrap(), "--force"];
    let words = told(&run(&import, directory.path(), store), 1);
    assert!(words.contains("a gateway runs on the database"), "{words}");
    gateway.signal(Signal::TERM);
    gateway.ended().await;
    told(&run(&import, directory.path(), store), 0);

    // A start that fails at the last is no gateway that runs, however often it is tried.
    let mut failing = binary();
    failing
        .args(["serve", "--listen", "127.0.0.1:0", "--data"])
        .arg(directory.path());
    failing
        .env("TOOLGATE_STORE", &url)
        .env("TOOLGATE_A2A_SIGNING_KEY", "short");
    let words = told(&failing.output().unwrap(), 1);
    assert!(words.contains("`a2a.signing_key` is no key"), "{words}");
    told(&run(&import, directory.path(), store), 0);
}
