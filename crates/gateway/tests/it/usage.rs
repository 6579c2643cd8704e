//! The figures of tools outlive the process.

use serde_json::json;
use toolgate_testkit::model_server::ModelServer;

use crate::harness::gateway;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn figures_are_as_durable_as_the_calls_they_count() {
    let models = ModelServer::start().await;
    let mut gateway = gateway(&models).await;
    let api = gateway.api();
    for _ in 0..3 {
        let run = api.start("call:clock call:ask text:1").await;
        let run = run["runId"].as_str().unwrap();
        let offer = api.follow(run, 0).await.offer().await;
        let taken = api.result(run, offer.call(), &json!({})).await;
        assert!(taken.is_success(), "{taken:?}");
    }
    gateway.crash().await;
    let api = gateway.api();
    for tool in ["clock", "ask"] {
        let told = api.get(&format!("/v1/tools/{tool}/usage")).await.body;
        assert_eq!(
            (&told["calls"], &told["failed"]),
            (&json!(3), &json!(0)),
            "{told}"
        );
        assert!(
            told["latencyMs"]["p50"].as_u64() <= told["latencyMs"]["p99"].as_u64(),
            "{told}"
        );
    }
}
