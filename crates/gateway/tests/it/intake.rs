//! T4 and T5: results for a client call, all at once and as early as possible.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use tokio::task::JoinSet;
use toolgate_testkit::model_server::ModelServer;

use crate::harness::{Answer, LOOK, gateway, soon};

/// Results for one call at once.
const AT_ONCE: usize = 50;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_fifty_results_at_once_one_is_taken_and_all_are_told_which() {
    let models = ModelServer::start().await;
    let gateway = gateway(&models).await;
    let api = gateway.api();
    let run = api.start("call:ask text:1").await;
    let (run, space) = (run["runId"].as_str().unwrap(), run["spaceId"].as_str().unwrap());
    let offer = api.follow(run, 0).await.offer().await;
    let call = offer.call().to_owned();

    // Half say the same, the others each something else; through both routes.
    let mut posts = JoinSet::new();
    for n in 0..AT_ONCE {
        let path = match n % 3 {
            0 => format!("/v1/spaces/{space}/tool-results"),
            _ => format!("/v1/runs/{run}/tool-results"),
        };
        let value = json!({"answer": if n % 2 == 0 { 0 } else { n }});
        let (api, body) = (api.clone(), json!({"toolCallId": call, "result": value}));
        posts.spawn(async move { (value, api.post(&path, &body).await) });
    }
    let posts: Vec<(Value, Answer)> = soon("all answers", posts.join_all()).await;

    let taken: Vec<&(Value, Answer)> = posts.iter().filter(|(_, answer)| answer.status == 200).collect();
    let values: BTreeSet<String> = taken.iter().map(|(value, _)| value.to_string()).collect();
    assert_eq!(values.len(), 1, "one value wins: {taken:?}");
    let (winner, receipt) = taken[0];
    for (value, answer) in &posts {
        if value == winner {
            assert_eq!(answer, receipt, "the same result has the same receipt");
        } else {
            assert_eq!(
                (answer.status, &answer.body["winner"]),
                (409, &receipt.body),
                "{answer:?}"
            );
        }
    }
    let log = api.finished(run).await;
    let outputs: Vec<_> = log
        .iter()
        .filter(|event| event.kind == "tool-output-available")
        .collect();
    assert_eq!(outputs.len(), 1, "{outputs:?}");
    assert_eq!(
        (&outputs[0].data["output"], &outputs[0].data["seq"]),
        (winner, &receipt.body["seq"])
    );
    assert_eq!(models.results(&call).len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_result_is_taken_the_instant_the_call_is_offered() {
    let models = ModelServer::start().await;
    let gateway = gateway(&models).await;
    let api = gateway.api();
    for n in 0..20 {
        let run = api.start("call:ask text:1").await;
        let run = run["runId"].as_str().unwrap();
        let offer = api.follow(run, 0).await.offer().await;
        let receipt = api.result(run, offer.call(), &json!({"answer": n})).await;
        assert_eq!(receipt.status, 200, "{receipt:?}");
        let log = api.finished(run).await;
        let output = log
            .iter()
            .find(|event| event.kind == "tool-output-available")
            .unwrap();
        assert_eq!(output.data["output"], json!({"answer": n}));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_result_is_taken_while_the_model_still_writes_the_input() {
    let models = ModelServer::start().await;
    let gateway = gateway(&models).await;
    let api = gateway.api();
    // Held after the first fragment of the input.
    let run = api
        .start("call:ask input:{\"question\":\"which_one_of_them\"} text:1 hold:3")
        .await;
    let run = run["runId"].as_str().unwrap().to_owned();
    let mut stream = api.follow(&run, 0).await;
    let start = stream
        .until("the start of a call", |event| event.kind == "tool-input-start")
        .await;
    let call = start.call().to_owned();
    let posting = tokio::spawn({
        let (api, run, call) = (api.clone(), run.clone(), call.clone());
        async move { api.result(&run, &call, &json!({"answer": "early"})).await }
    });
    models.release(2);
    let receipt = soon("the receipt", posting).await.unwrap();
    assert_eq!(receipt.status, 200, "{receipt:?}");
    let log = api.finished(&run).await;
    let output = log
        .iter()
        .find(|event| event.kind == "tool-output-available")
        .unwrap();
    assert_eq!(
        (output.call(), &output.data["output"]),
        (call.as_str(), &json!({"answer": "early"}))
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_result_is_taken_before_anybody_reads_the_offer() {
    let models = ModelServer::start().await;
    let gateway = gateway(&models).await;
    let api = gateway.api();
    for _ in 0..20 {
        let run = api.start("call:ask text:1").await;
        let run = run["runId"].as_str().unwrap();
        // The first call of a run has number 0: known before anything is read.
        let call = format!("call_{}_0", run.strip_prefix("run_").unwrap());
        let receipt = soon("the receipt", async {
            loop {
                let answer = api.result(run, &call, &json!({"answer": "blind"})).await;
                // Not there yet is the only other thing that may be said.
                if answer.status != 404 {
                    return answer;
                }
                tokio::time::sleep(LOOK).await;
            }
        })
        .await;
        assert_eq!(receipt.status, 200, "{receipt:?}");
        let log = api.finished(run).await;
        assert_eq!(
            log.iter()
                .filter(|event| event.kind == "tool-output-available")
                .count(),
            1
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_repeated_message_gets_its_receipt_over_a_crash_and_another_one_under_its_id_is_refused() {
    let models = ModelServer::start().await;
    let mut gateway = gateway(&models).await;
    let api = gateway.api();
    let run = api.start("call:ask text:1").await;
    api.follow(run["runId"].as_str().unwrap(), 0).await.offer().await;
    let path = format!("/v1/spaces/{}/messages", run["spaceId"].as_str().unwrap());
    // Joins the run, which waits again afterwards; and then begins a run of its own.
    for (n, words) in ["call:ask text:2", "text:3", "text:4"].into_iter().enumerate() {
        let id = format!("msg_0000000000000000000000000{n}");
        let body = json!({"agent": "worker", "message": words, "messageId": id});
        let first = api.post(&path, &body).await;
        assert_eq!(first.status, 202, "{first:?}");
        assert_eq!(api.post(&path, &body).await, first);
        gateway.crash().await;
        assert_eq!(api.post(&path, &body).await, first);
        let other = json!({"agent": "worker", "message": "text:1", "messageId": id});
        let refused = api.post(&path, &other).await;
        assert_eq!(
            (refused.status, refused.text("code").as_str()),
            (409, "MESSAGE_ID_REUSED")
        );
        if n > 0 {
            api.finished(&first.text("runId")).await;
            assert_eq!(api.post(&path, &body).await, first);
        } else {
            // Until then the next message would not supersede the call, and the run would wait for its result.
            let seq = first.body["seq"].as_u64().expect("a place");
            api.follow(&first.text("runId"), seq).await.offer().await;
        }
    }
}
