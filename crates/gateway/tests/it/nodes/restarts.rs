//! A rolling restart behind a balancer.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use rustix::process::Signal;
use serde_json::json;
use tokio::task::JoinSet;

use super::balancer::Balancer;
use super::cluster::{Cluster, id};
use crate::harness::{Api, soon};

/// Callers at once.
const CALLERS: usize = 4;
/// How long nodes serve after SIGTERM: several looks of the balancer.
const NOTICE: &str = "1s";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rolling_restart_fails_no_request() {
    let mut cluster = Cluster::start_with(&[("TOOLGATE_DRAIN_NOTICE", NOTICE)]).await;
    let balancer = Balancer::start(cluster.nodes.iter().map(|node| node.address())).await;
    let stop = Arc::new(AtomicBool::new(false));
    let served = Arc::new(AtomicU64::new(0));
    let mut callers = JoinSet::new();
    for _ in 0..CALLERS {
        let api = Api::unpooled(balancer.port());
        callers.spawn(call_until(api, stop.clone(), served.clone()));
    }
    // A run in the middle of a step on each node goes on elsewhere when its node stops.
    let mut under_way = Vec::new();
    for node in &cluster.nodes {
        under_way.push(id(&node.api().start("call:ask text:2 delay:300").await, "runId"));
    }
    for node in &mut cluster.nodes {
        node.signal(Signal::TERM);
        let status = node.ended().await;
        assert!(status.success(), "{status}");
        node.spawn();
        node.ready().await;
    }
    let api = Api::unpooled(balancer.port());
    for run in under_way {
        let offer = api.follow(&run, 0).await;
        let offer = { offer }.offer().await;
        assert_eq!(
            api.result(&run, offer.call(), &json!({"answer": 1})).await.status,
            200
        );
        let log = api.finished(&run).await;
        assert_eq!(
            log.last().expect("not empty").data["status"],
            "completed",
            "{log:#?}"
        );
    }
    stop.store(true, Ordering::Relaxed);
    soon("the last request of every caller", callers.join_all()).await;
    let served = served.load(Ordering::Relaxed);
    eprintln!("a rolling restart: {served} requests, none failed");
    assert!(served > 50, "{served} requests are no load");
}

/// Starts runs and reads them, and never asks twice.
async fn call_until(api: Api, stop: Arc<AtomicBool>, served: Arc<AtomicU64>) {
    while !stop.load(Ordering::Relaxed) {
        let started = api
            .try_post(
                "/v1/runs",
                &json!({"agent": "worker", "message": "call:clock text:2"}),
            )
            .await;
        let started = started.expect("no request fails");
        assert_eq!(started.status, 201, "{started:?}");
        let run = started.text("runId");
        let read = api
            .try_get(&format!("/v1/runs/{run}"))
            .await
            .expect("no request fails");
        assert_eq!(read.status, 200, "{read:?}");
        let listed = api
            .try_get(&format!("/v1/runs/{run}/events"))
            .await
            .expect("no request fails");
        assert_eq!(listed.status, 200, "{listed:?}");
        served.fetch_add(3, Ordering::Relaxed);
    }
}
