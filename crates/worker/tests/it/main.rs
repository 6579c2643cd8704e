//! Workers with real processes: limits, recycling, killing.

mod killing;
mod kinds;
mod pool;

use std::path::PathBuf;

use toolgate_fair::Share;
use toolgate_worker::{Kind, WorkerError, Workers};

use kinds::{ONCE, THRICE};

fn program() -> PathBuf {
    env!("CARGO_BIN_EXE_toolgate-worker-fixture").into()
}

fn workers(kind: Kind) -> Workers {
    Workers::new(program(), kind)
}

/// `a` is a user of the tenant a, `ax` its user x.
fn share(name: &str) -> Share {
    let mut letters = name.bytes().map(u128::from);
    Share {
        tenant: letters.next().expect("a name"),
        user: Some(letters.next().unwrap_or_default()),
    }
}

async fn ask(workers: &Workers, tenant: &str, request: &str) -> Result<String, WorkerError> {
    let response = workers.run(share(tenant), request.as_bytes()).await?;
    Ok(String::from_utf8(response).expect("text"))
}

#[tokio::test]
async fn a_worker_responds_and_sees_nothing_of_the_environment() {
    // Cargo sets this for every test: it stands for whatever else the gateway was given.
    assert!(std::env::var_os("CARGO_MANIFEST_DIR").is_some());
    let workers = workers(ONCE);
    assert_eq!(ask(&workers, "a", "echo hello").await.unwrap(), "hello");
    assert_eq!(ask(&workers, "a", "env").await.unwrap(), "0");
}

#[tokio::test]
async fn what_runs_over_its_limits_is_ended_and_the_next_request_is_handled() {
    let workers = workers(THRICE);
    for over in ["spin", "eat", "die", "long 2000000"] {
        let failed = ask(&workers, "a", over).await;
        assert!(matches!(failed, Err(WorkerError::Failed)), "{over}: {failed:?}");
        assert_eq!(
            ask(&workers, "a", "echo next").await.unwrap(),
            "next",
            "after {over}"
        );
    }
    let long = "x".repeat(ONCE.limits.request_bytes_max + 1);
    let failed = ask(&workers, "a", &long).await;
    assert!(matches!(failed, Err(WorkerError::TooLong(_))), "{failed:?}");
}

#[tokio::test]
async fn a_program_that_cannot_be_started_is_an_error() {
    let workers = Workers::new("/does/not/exist".into(), ONCE);
    assert!(matches!(
        ask(&workers, "a", "pid").await,
        Err(WorkerError::Start(_))
    ));
}
