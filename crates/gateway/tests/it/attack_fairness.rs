//! One user with many slow runs: another user's run is next, by the order in which the model is asked.

use serde_json::{Value, json};
use toolgate_testkit::model_server::ModelServer;

use crate::harness::{Gateway, put_agent, soon, worker};

const SEATS: usize = 4;
const SLOW: &str = "text:2 hold:1";

/// A gateway with few seats, all of which one user may take.
async fn gateway(models: &ModelServer, settings: &[(&str, &str)]) -> Gateway {
    let gateway = Gateway::start(settings).await;
    let mut config = worker(models);
    config["access"] = "public".into();
    put_agent(&gateway.api(), "worker", &config).await;
    gateway
}

/// Whether the request of this number was for the run that says these words.
fn is_for(models: &ModelServer, number: usize, words: &str) -> bool {
    let asked = models.conversations();
    asked[number]
        .iter()
        .any(|message| message.to_string().contains(words))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_users_run_begins_next_however_many_one_user_has_queued() {
    let models = ModelServer::start().await;
    let settings = [
        ("TOOLGATE_ENGINE_RUNS_ACTIVE_MAX", "4"),
        ("TOOLGATE_ENGINE_RUNS_ACTIVE_PER_USER", "4"),
    ];
    let gateway = gateway(&models, &settings).await;
    let (ada, bob) = (gateway.api().as_user("ada"), gateway.api().as_user("bob"));
    for _ in 0..30 {
        ada.start(SLOW).await;
    }
    let run = bob.start("text:1 bob").await;
    let path = format!("/v1/runs/{}", run["runId"].as_str().unwrap());
    assert_eq!(bob.get(&path).await.body["status"], "queued");
    soon("all seats taken", models.held(SEATS as u64)).await;
    models.release(1);
    soon("a run of ada behind it", models.held(SEATS as u64 + 1)).await;
    assert!((0..SEATS).all(|number| is_for(&models, number, SLOW)));
    assert!(is_for(&models, SEATS, "text:1 bob"), "bob's run began next");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_user_leaves_seats_and_model_calls_to_others() {
    let models = ModelServer::start().await;
    for setting in ["RUNS_ACTIVE", "MODEL_CALLS"] {
        let name = format!("TOOLGATE_ENGINE_{setting}_MAX");
        let gateway = gateway(&models, &[(&name, "8")]).await;
        let (ada, bob) = (gateway.api().as_user("ada"), gateway.api().as_user("bob"));
        for _ in 0..5 {
            ada.start(SLOW).await;
        }
        // Nothing of ada's ends before this has.
        let run = bob.start("text:1").await;
        let log = bob.finished(run["runId"].as_str().unwrap()).await;
        let last: &Value = &log.last().unwrap().data;
        assert_eq!(last["status"], json!("completed"), "{setting}");
    }
}
