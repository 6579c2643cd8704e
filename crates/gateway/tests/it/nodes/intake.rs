//! T15: several clients give different results for one call, on several nodes at once. What they are told is what one
//! register would have told them: the first result wins, and everybody who asks from then on is told so. So it is while nodes
//! are killed and stopped, PostgreSQL restarts and the network is cut; what got no answer may have happened or not.

mod history;

use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::{Value, json};
use tokio::task::JoinSet;
use toolgate_testkit::postgres_server::Stop;

use self::history::{Told, Written, check};
use super::cable::Cable;
use super::cluster::{Cluster, id};
use crate::harness::{Api, Event, Random, setting, soon};

/// Calls that are fought over.
const CALLS: u64 = 12;
/// The same with a trouble for each; one of each kind.
const TROUBLED_CALLS: u64 = 6;
/// Clients that fight.
const CLIENTS: usize = 9;
/// Different results that they give.
const RESULTS: usize = 6;
/// Longest time until a client gives its result.
const LATE_MS: u64 = 400;
/// Longest time that a node or a server is away: longer than the lease of a node.
const TROUBLE_MS: u64 = 2_500;
/// How long a client waits at first for an answer before it gives the same result to another node: on a busy machine a node that
/// is well may need longer, so each time that was too short is followed by one twice as long.
const PATIENCE: Duration = Duration::from_millis(700);
const PATIENCE_MAX: Duration = Duration::from_secs(6);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn results_given_to_several_nodes_at_once_have_one_winner_for_everybody() {
    let calls = setting("TOOLGATE_INTAKE_CALLS", CALLS);
    let mut random = Random::seeded("intake");
    let cluster = Cluster::start().await;
    for _ in 0..calls {
        let fight = Fight::start(&cluster, &mut random, 0).await;
        fight.end(&cluster).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn results_given_in_every_trouble_have_one_winner_for_everybody() {
    let calls = setting("TOOLGATE_INTAKE_CALLS", TROUBLED_CALLS);
    let mut random = Random::seeded("intake, in trouble");
    let mut cluster = Cluster::start().await;
    let mut unknown = 0;
    for call in 0..calls {
        let fight = Fight::start(&cluster, &mut random, LATE_MS).await;
        // Not a wait for anything: the moment of the trouble is what is being varied.
        tokio::time::sleep(Duration::from_millis(random.below(LATE_MS / 2))).await;
        trouble(&mut cluster, &mut random, call).await;
        unknown += fight.end(&cluster).await;
    }
    eprintln!("intake, in trouble: {calls} calls, {unknown} requests without an answer");
    assert!(unknown > 0, "the trouble was no trouble");
}

/// One trouble, and its end.
async fn trouble(cluster: &mut Cluster, random: &mut Random, call: u64) {
    let node = random.below(cluster.nodes.len() as u64) as usize;
    let lasts = Duration::from_millis(random.below(TROUBLE_MS));
    match call % TROUBLED_CALLS {
        0 | 1 => {
            cluster.nodes[node].kill();
            tokio::time::sleep(lasts).await;
            cluster.nodes[node].spawn();
        }
        2 => {
            cluster.nodes[node].signal(Signal::STOP);
            tokio::time::sleep(lasts).await;
            cluster.nodes[node].signal(Signal::CONT);
        }
        3 => {
            cluster.store_cables[node].iter().for_each(Cable::cut);
            tokio::time::sleep(lasts).await;
            cluster.store_cables[node].iter().for_each(Cable::mend);
        }
        way => {
            let how = [Stop::AtOnce, Stop::Killed][way as usize % 2];
            cluster.postgres.stop(how);
            tokio::time::sleep(lasts / 2).await;
            cluster.postgres.start_again();
        }
    }
    for node in &mut cluster.nodes {
        node.ready().await;
    }
}

/// A call, and clients that give results for it and look at it.
struct Fight {
    run: String,
    call: String,
    clients: JoinSet<Vec<Told>>,
}

impl Fight {
    /// Starts a run, and the clients once it waits for a result; each begins at most so late.
    async fn start(cluster: &Cluster, random: &mut Random, late_ms: u64) -> Self {
        let apis = cluster.apis();
        let started = apis[random.below(3) as usize].start("call:ask text:1").await;
        let run = id(&started, "runId");
        let call = { apis[0].follow(&run, 0).await }.offer().await.call().to_owned();
        let began = Instant::now();
        let mut clients = JoinSet::new();
        for client in 0..CLIENTS {
            let late = Duration::from_millis(random.below(late_ms.max(1)));
            let (apis, run, call) = (cluster.apis(), run.clone(), call.clone());
            clients.spawn(async move {
                tokio::time::sleep(late).await;
                let mut told = vec![look(&apis[(client + 1) % 3], &run, &call, began).await];
                told.extend(insist(&apis, client, &run, &call, began).await);
                told.push(look(&apis[(client + 2) % 3], &run, &call, began).await);
                told
            });
        }
        Self { run, call, clients }
    }

    /// Waits until all is over, and checks what everybody was told; how many were told nothing.
    async fn end(self, cluster: &Cluster) -> usize {
        let told = soon("the answers to all clients", self.clients.join_all()).await;
        let history: Vec<Told> = told.into_iter().flatten().collect();
        let log = cluster.apis()[1].finished(&self.run).await;
        let stored = cluster.stored();
        let stored = stored.log(&self.run);
        let outputs = stored.iter().map(|stored| &stored.event);
        let outputs: Vec<&Event> = outputs
            .filter(|event| event.kind == "tool-output-available")
            .collect();
        let [output] = outputs.as_slice() else {
            panic!("{} outputs of one call: {log:#?}", outputs.len());
        };
        let winner = &output.data["output"];
        if let Err(why) = check(&history, winner, output.seq) {
            panic!("{why}; {winner} won at {}: {history:#?}", output.seq);
        }
        let shown = cluster.models.results(&self.call);
        assert_eq!(shown.len(), 1, "the model saw one result: {shown:?}");
        history
            .iter()
            .filter(|told| told.written == Written::Unknown)
            .count()
    }
}

/// Gives one result to one node after the other, until there is an answer.
async fn insist(apis: &[Api; 3], client: usize, run: &str, call: &str, began: Instant) -> Vec<Told> {
    // Some give the same value as others.
    let value = json!({"answer": format!("#{}.", client % RESULTS)});
    let mut told = Vec::new();
    let mut patience = PATIENCE;
    for node in (0..apis.len()).cycle().skip(client) {
        let invoked = began.elapsed();
        let answer = tokio::time::timeout(patience, submit(&apis[node], run, call, &value)).await;
        if answer.is_err() {
            patience = (patience * 2).min(PATIENCE_MAX);
        }
        let written = answer.unwrap_or(Written::Unknown);
        let is_over = written != Written::Unknown;
        told.push(Told {
            invoked,
            answered: began.elapsed(),
            value: Some(value.clone()),
            written,
        });
        if is_over {
            break;
        }
        tokio::time::sleep(crate::harness::LOOK).await;
    }
    told
}

async fn submit(api: &Api, run: &str, call: &str, value: &Value) -> Written {
    let body = json!({"toolCallId": call, "result": value});
    let answer = api.try_post(&format!("/v1/runs/{run}/tool-results"), &body).await;
    match answer {
        Ok(answer) if answer.status == 200 => Written::Won(answer.body["seq"].as_u64().expect("a place")),
        Ok(answer) if answer.status == 409 => {
            Written::Lost(answer.body["winner"]["seq"].as_u64().expect("a place"))
        }
        // A refusal may come after the commit: the node that says so has lost its connection to the store.
        Ok(answer) if answer.status == 503 => Written::Unknown,
        Ok(answer) => panic!("neither a receipt nor the winner's: {answer:?}"),
        Err(_) => Written::Unknown,
    }
}

/// Reads whether the call has an output.
async fn look(api: &Api, run: &str, call: &str, began: Instant) -> Told {
    let invoked = began.elapsed();
    let path = format!("/v1/runs/{run}/events");
    let read = tokio::time::timeout(PATIENCE, api.try_get(&path)).await;
    let events = match &read {
        Ok(Ok(answer)) if answer.status == 200 => answer.body["events"].as_array(),
        _ => None,
    };
    let output = |event: &&Value| event["type"] == "tool-output-available" && event["toolCallId"] == call;
    let written = match events {
        Some(events) => match events.iter().find(output) {
            Some(output) => Written::Read(output["seq"].as_u64().expect("a place"), output["output"].clone()),
            None => Written::Nothing,
        },
        None => Written::Unknown,
    };
    Told {
        invoked,
        answered: began.elapsed(),
        value: None,
        written,
    }
}
