//! Which process handles a request.

use std::fs;

use rustix::process::{Pid, Signal, kill_process};
use toolgate_worker::{WorkerError, Workers};

use crate::killing::ended;
use crate::{ONCE, THRICE, ask, program, workers};

#[tokio::test]
async fn a_process_for_one_request_is_never_used_again() {
    let workers = workers(ONCE);
    let first = ask(&workers, "a", "pid").await.unwrap();
    let second = ask(&workers, "a", "pid").await.unwrap();
    assert_ne!(first, second);
}

#[tokio::test]
async fn a_process_handles_so_many_requests_of_one_tenant_and_none_of_another() {
    let workers = workers(THRICE);
    let mut pids = Vec::new();
    for tenant in ["a", "b", "a", "b", "a", "a", "b", "b"] {
        pids.push((tenant, ask(&workers, tenant, "pid").await.unwrap()));
    }
    let of = |tenant: &str| -> Vec<&String> {
        let own = pids.iter().filter(|(of, _)| *of == tenant);
        own.map(|(_, pid)| pid).collect()
    };
    let (a, b) = (of("a"), of("b"));
    for pids in [&a, &b] {
        assert!(pids[0] == pids[1] && pids[1] == pids[2], "three on one: {pids:?}");
        assert_ne!(pids[2], pids[3], "the fourth is another");
    }
    assert!(a.iter().all(|pid| !b.contains(pid)), "{a:?} {b:?}");
}

#[tokio::test]
async fn a_request_is_handled_by_a_process_that_was_started_ahead() {
    let program = program();
    let directory = tempfile::tempdir_in(program.parent().unwrap()).unwrap();
    let name = directory.path().join("program");
    // Not a copy: a process that another test forks meanwhile would hold it open for writing, and it could not be started.
    fs::hard_link(&program, &name).unwrap();
    let workers = Workers::new(name.clone(), ONCE);
    ask(&workers, "a", "echo first").await.unwrap();
    fs::remove_file(name).unwrap();
    // Nothing can be started any more.
    assert_eq!(ask(&workers, "a", "echo ahead").await.unwrap(), "ahead");
    assert!(matches!(
        ask(&workers, "a", "pid").await,
        Err(WorkerError::Start(_))
    ));
}

#[tokio::test]
async fn a_process_that_died_while_idle_is_replaced() {
    let workers = workers(THRICE);
    let idle = ask(&workers, "a", "pid").await.unwrap();
    let pid = Pid::from_raw(idle.parse().unwrap()).unwrap();
    kill_process(pid, Signal::KILL).unwrap();
    ended(pid).await;
    assert_ne!(ask(&workers, "a", "pid").await.unwrap(), idle);
}
