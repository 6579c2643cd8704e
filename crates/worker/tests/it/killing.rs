//! Workers that never end by themselves, and what they have started.

use std::pin::pin;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::net::TcpListener;
use toolgate_worker::WorkerError;

use crate::{ONCE, ask, workers};

/// Waits until a process has ended.
pub async fn ended(pid: Pid) {
    // One that is gone already has no descriptor.
    let Ok(process) = pidfd_open(pid, PidfdFlags::empty()) else {
        return;
    };
    let wait = move || poll(&mut [PollFd::new(&process, PollFlags::IN)], None);
    let waited = tokio::task::spawn_blocking(wait).await.expect("no panic");
    waited.expect("it can be waited for");
}

/// Where a worker that hangs tells who it is.
struct Ear(TcpListener);

impl Ear {
    async fn open() -> (Self, String) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let request = format!("hang {}", listener.local_addr().unwrap());
        (Self(listener), request)
    }
    /// The worker, and the process that it started.
    async fn pids(&self) -> [Pid; 2] {
        let (stream, _) = self.0.accept().await.unwrap();
        let mut line = String::new();
        BufReader::new(stream).read_line(&mut line).await.unwrap();
        let mut pids = line
            .split_whitespace()
            .map(|pid| Pid::from_raw(pid.parse().unwrap()).unwrap());
        [pids.next().unwrap(), pids.next().unwrap()]
    }
}

#[tokio::test]
async fn a_worker_and_what_it_started_end_when_nobody_waits_for_it() {
    let workers = workers(ONCE);
    let (ear, request) = Ear::open().await;
    let pids = tokio::select! {
        _ = ask(&workers, "a", &request) => unreachable!("it hangs"),
        pids = ear.pids() => pids,
    };
    for pid in pids {
        ended(pid).await;
    }
    assert_eq!(ask(&workers, "a", "echo next").await.unwrap(), "next");
}

#[tokio::test]
async fn a_worker_and_what_it_started_end_when_their_time_is_over() {
    let workers = workers(ONCE);
    let (ear, request) = Ear::open().await;
    let mut hangs = pin!(ask(&workers, "a", &request));
    let pids = tokio::select! {
        _ = &mut hangs => unreachable!("it hangs"),
        pids = ear.pids() => pids,
    };
    tokio::time::pause();
    tokio::time::advance(ONCE.limits.wall).await;
    let failed = hangs.await;
    assert!(matches!(failed, Err(WorkerError::Failed)), "{failed:?}");
    for pid in pids {
        ended(pid).await;
    }
}

#[tokio::test]
async fn one_tenant_that_hangs_neither_holds_up_others_nor_queues_without_end() {
    let workers = workers(ONCE);
    let (ear, request) = Ear::open().await;
    let mut hangs = pin!(ask(&workers, "a", &request));
    tokio::select! {
        _ = &mut hangs => unreachable!("it hangs"),
        _ = ear.pids() => {}
    }
    let mut waits = pin!(ask(&workers, "a", "pid"));
    assert!(futures_util::poll!(&mut waits).is_pending());
    assert!(matches!(ask(&workers, "a", "pid").await, Err(WorkerError::Busy)));
    assert_eq!(ask(&workers, "b", "echo mine").await.unwrap(), "mine");
}

#[tokio::test]
async fn one_user_that_hangs_does_not_hold_up_other_users_of_its_tenant() {
    let mut kind = ONCE;
    kind.queue.running.tenant = 2;
    let workers = workers(kind);
    let (ear, request) = Ear::open().await;
    let mut hangs = pin!(ask(&workers, "ax", &request));
    tokio::select! {
        _ = &mut hangs => unreachable!("it hangs"),
        _ = ear.pids() => {}
    }
    let mut waits = pin!(ask(&workers, "ax", "pid"));
    assert!(futures_util::poll!(&mut waits).is_pending());
    assert_eq!(ask(&workers, "ay", "echo mine").await.unwrap(), "mine");
    assert!(futures_util::poll!(&mut waits).is_pending());
}
