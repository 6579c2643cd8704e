//! T15: several clients give different results for one call, on several nodes at once. What they are told is what one
//! register would have told them: the first result wins, and everybody who asks from then on is told so.

use std::time::Instant;

use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::cluster::{Cluster, id};
use crate::harness::{Api, Random, setting};

/// Calls that are fought over.
const CALLS: u64 = 12;
/// Clients that fight.
const CLIENTS: usize = 9;

/// One submission: when it was asked and answered, and what.
#[derive(Debug)]
struct Asked {
    invoked: Instant,
    answered: Instant,
    value: Value,
    status: u16,
    body: Value,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn results_given_to_several_nodes_at_once_have_one_winner_for_everybody() {
    let calls = setting("TOOLGATE_INTAKE_CALLS", CALLS);
    let mut random = Random::seeded("intake");
    let cluster = Cluster::start().await;
    let apis = cluster.apis();
    for _ in 0..calls {
        let run = id(
            &apis[random.below(3) as usize].start("call:ask text:1").await,
            "runId",
        );
        let offer = apis[0].follow(&run, 0).await;
        let call = { offer }.offer().await.call().to_owned();
        let mut clients = JoinSet::new();
        for client in 0..CLIENTS {
            // Some give the same value as others.
            let value = json!({"answer": format!("#{}.", client % 6)});
            let (api, run, call) = (apis[client % 3].clone(), run.clone(), call.clone());
            clients.spawn(async move { submit(&api, &run, &call, value).await });
        }
        let history = clients.join_all().await;
        let log = apis[1].finished(&run).await;
        let outputs: Vec<_> = log
            .iter()
            .filter(|event| event.kind == "tool-output-available")
            .collect();
        assert_eq!(outputs.len(), 1, "{log:#?}");
        check(&history, &outputs[0].data["output"], outputs[0].seq);
        let shown = cluster.models.results(&call);
        assert_eq!(shown.len(), 1, "the model saw one result: {shown:?}");
    }
}

async fn submit(api: &Api, run: &str, call: &str, value: Value) -> Asked {
    let invoked = Instant::now();
    let answer = api.result(run, call, &value).await;
    Asked {
        invoked,
        answered: Instant::now(),
        value,
        status: answer.status,
        body: answer.body,
    }
}

/// Whether the history is one of a register that is written once. The write took effect between the invocation of a
/// submission of the winning value and its first answer; whoever was answered must have been answered as the winner's
/// equal or as a loser, and nobody can have lost before the winner was invoked.
fn check(history: &[Asked], winner: &Value, place: u64) {
    let first_win = history
        .iter()
        .filter(|asked| asked.value == *winner)
        .map(|asked| asked.invoked)
        .min();
    let first_win = first_win.expect("the winner is one of the values");
    for asked in history {
        assert!(
            asked.answered >= first_win,
            "answered before the winner was there: {asked:?}"
        );
        match asked.status {
            200 => {
                assert_eq!(
                    asked.value, *winner,
                    "a result that is not stored has a receipt: {asked:?}"
                );
                assert_eq!(
                    asked.body["seq"], place,
                    "every receipt names the same place: {asked:?}"
                );
            }
            409 => {
                assert_ne!(asked.value, *winner, "the winning value was refused: {asked:?}");
                assert_eq!(asked.body["winner"]["seq"], place, "{asked:?}");
            }
            _ => panic!("neither a receipt nor the winner's: {asked:?}"),
        }
    }
}
