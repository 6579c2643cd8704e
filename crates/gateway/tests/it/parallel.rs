//! T8: server and client calls of one step, answered in every order, some failing.

use serde_json::{Value, json};
use toolgate_testkit::model_server::ModelServer;

use crate::harness::{Event, gateway};

const SCRIPT: &str = "call:ask call:clock call:ask call:echo input:{\"said\":\"back\"} call:ask text:1";
/// The script's calls that the client answers, by their number.
const CLIENT_CALLS: [usize; 3] = [0, 2, 4];
const ORDERS: [[usize; 3]; 6] = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn results_reach_the_model_in_call_order_whatever_order_they_come_in() {
    let models = ModelServer::start().await;
    let gateway = gateway(&models).await;
    let api = gateway.api();
    for (round, order) in ORDERS.iter().enumerate() {
        let started = api.start(SCRIPT).await;
        let run = started["runId"].as_str().unwrap();
        let mut stream = api.follow(run, 0).await;
        let mut offers = Vec::new();
        while offers.len() < CLIENT_CALLS.len() {
            offers.push(stream.offer().await.call().to_owned());
        }
        let fails = round % CLIENT_CALLS.len();
        for &which in order {
            let body = match which == fails {
                true => json!({"toolCallId": offers[which], "error": format!("no answer {which}")}),
                false => json!({"toolCallId": offers[which], "result": {"answer": which}}),
            };
            let receipt = api.post(&format!("/v1/runs/{run}/tool-results"), &body).await;
            assert_eq!(receipt.status, 200, "{receipt:?}");
        }
        let log = api.finished(run).await;
        check_log(&log, &offers, fails);
        check_conversation(&models.conversations().last().unwrap()[..], &offers, fails);
    }
}

fn check_log(log: &[Event], offers: &[String], fails: usize) {
    for (which, call) in offers.iter().enumerate() {
        let settled: Vec<&Event> = log
            .iter()
            .filter(|event| event.kind.starts_with("tool-output") && event.call() == call)
            .collect();
        assert_eq!(settled.len(), 1, "{settled:?}");
        match which == fails {
            true => assert_eq!(settled[0].kind, "tool-output-error"),
            false => assert_eq!(settled[0].data["output"], json!({"answer": which})),
        }
    }
}

fn check_conversation(messages: &[Value], offers: &[String], fails: usize) {
    let results: Vec<&Value> = messages
        .iter()
        .filter(|message| message["role"] == "tool")
        .collect();
    let asked = messages
        .iter()
        .rfind(|message| message["role"] == "assistant")
        .unwrap();
    let calls: Vec<&Value> = asked["tool_calls"]
        .as_array()
        .unwrap()
        .iter()
        .map(|call| &call["id"])
        .collect();
    let answered: Vec<&Value> = results.iter().map(|result| &result["tool_call_id"]).collect();
    assert_eq!(answered, calls, "results must stand in call order");
    for (which, number) in CLIENT_CALLS.into_iter().enumerate() {
        assert_eq!(answered[number], offers[which].as_str());
        let content = results[number]["content"].to_string();
        let expected = if which == fails {
            format!("no answer {which}")
        } else {
            which.to_string()
        };
        assert!(content.contains(&expected), "{content} for call {which}");
    }
    assert!(
        results[1]["content"].to_string().contains("noon"),
        "{}",
        results[1]
    );
    assert!(
        results[3]["content"].to_string().contains("back"),
        "{}",
        results[3]
    );
}
