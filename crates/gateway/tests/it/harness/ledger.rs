//! What clients were told, and whether the log agrees.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use toolgate_testkit::model_server::ModelServer;

use super::{Api, Event};

/// Something that the gateway acknowledged.
#[derive(Debug)]
pub enum Fact {
    Message {
        space: String,
        message: String,
        said: String,
    },
    Result {
        run: String,
        call: String,
        value: Value,
        seq: u64,
    },
    Decision {
        run: String,
        approval: String,
        approved: bool,
        seq: u64,
    },
}

/// A run that a client saw to its end.
#[derive(Debug)]
pub struct RunFacts {
    pub run: String,
    pub space: String,
    /// Its durable events as the client read them, over every cut.
    pub seen: Vec<Event>,
}

/// Everything that clients were told.
#[derive(Debug, Default)]
pub struct Ledger {
    pub facts: Vec<Fact>,
    pub runs: Vec<RunFacts>,
}

impl Ledger {
    pub fn joined(ledgers: Vec<Ledger>) -> Self {
        ledgers.into_iter().fold(Self::default(), |mut all, ledger| {
            all.facts.extend(ledger.facts);
            all.runs.extend(ledger.runs);
            all
        })
    }

    /// The last message that was posted.
    pub fn last_said(&self) -> Option<&str> {
        self.facts.iter().rev().find_map(|fact| match fact {
            Fact::Message { said, .. } => Some(said.as_str()),
            Fact::Result { .. } | Fact::Decision { .. } => None,
        })
    }

    /// Compares everything with what the gateway has stored and what the model was shown.
    pub async fn verify(&self, api: &Api, models: &ModelServer) {
        let known: BTreeSet<String> = self.runs.iter().map(|facts| facts.run.clone()).collect();
        let stored = api.runs().await;
        let differ: Vec<&String> = stored.symmetric_difference(&known).collect();
        assert!(differ.is_empty(), "lost, or started twice: {differ:?}");
        let mut logs = BTreeMap::new();
        for facts in &self.runs {
            let log = api.list(&format!("/v1/runs/{}/events", facts.run)).await;
            verify_run(
                facts,
                &log,
                &api.get(&format!("/v1/runs/{}", facts.run)).await.body,
            );
            logs.insert(facts.run.as_str(), log);
        }
        let mut spaces = BTreeMap::new();
        for space in self.runs.iter().map(|facts| facts.space.as_str()) {
            if !spaces.contains_key(space) {
                let log = api.list(&format!("/v1/spaces/{space}/events")).await;
                assert!(
                    log.is_sorted_by(|a, b| a.seq < b.seq),
                    "the places of {space} do not increase"
                );
                spaces.insert(space, log);
            }
        }
        for fact in &self.facts {
            verify_fact(fact, &logs, &spaces, models);
        }
    }
}

fn verify_run(facts: &RunFacts, log: &[Event], run: &Value) {
    let name = &facts.run;
    let count = |kind: &str| log.iter().filter(|event| event.kind == kind).count();
    assert!(
        log.is_sorted_by(|a, b| a.seq < b.seq),
        "the places of {name} do not increase"
    );
    assert_eq!(
        (count("run-start"), count("run-finish")),
        (1, 1),
        "{name} must begin and end once: {log:#?}"
    );
    let last = log.last().expect("not empty");
    assert_eq!(
        (last.kind.as_str(), &last.data["status"]),
        ("run-finish", &"completed".into()),
        "{last:?}"
    );
    assert_eq!(run["status"], "completed", "{run}");
    let places = |events: &[Event]| {
        events
            .iter()
            .map(|event| (event.seq, event.kind.clone()))
            .collect::<Vec<_>>()
    };
    assert_eq!(
        places(&facts.seen),
        places(log),
        "what was streamed of {name} is not what is stored"
    );
    for call in log.iter().filter(|event| event.kind == "tool-input-available") {
        let settled = log.iter().filter(|event| {
            let settles = ["tool-output-available", "tool-output-error", "tool-output-denied"];
            settles.contains(&event.kind.as_str()) && event.call() == call.call()
        });
        assert_eq!(settled.count(), 1, "{} must settle once: {log:#?}", call.call());
    }
}

fn verify_fact(
    fact: &Fact,
    logs: &BTreeMap<&str, Vec<Event>>,
    spaces: &BTreeMap<&str, Vec<Event>>,
    models: &ModelServer,
) {
    match fact {
        Fact::Message { space, message, said } => {
            let log = &spaces[space.as_str()];
            let stored = log
                .iter()
                .filter(|event| event.kind == "message" && event.data.to_string().contains(said_mark(said)));
            let ids: Vec<&Value> = stored.map(|event| &event.data["message"]["messageId"]).collect();
            assert_eq!(ids, [message.as_str()], "{fact:?} must be stored once");
        }
        Fact::Result {
            run,
            call,
            value,
            seq,
        } => {
            let of_call = |event: &&Event| event.kind == "tool-output-available" && event.call() == call;
            let outputs: Vec<(u64, &Value)> = logs[run.as_str()]
                .iter()
                .filter(of_call)
                .map(|event| (event.seq, &event.data["output"]))
                .collect();
            assert_eq!(
                outputs,
                [(*seq, value)],
                "{fact:?} must be stored once, where the receipt says"
            );
            let shown = models.results(call);
            let mark = value["answer"].as_str().expect("a mark");
            assert!(
                shown.len() == 1 && shown[0].contains(mark),
                "the model saw {shown:?} for {fact:?}"
            );
        }
        Fact::Decision {
            run,
            approval,
            approved,
            seq,
        } => {
            let responses: Vec<(u64, &Value)> = logs[run.as_str()]
                .iter()
                .filter(|event| {
                    event.kind == "tool-approval-response" && event.text("approvalId") == approval
                })
                .map(|event| (event.seq, &event.data["approved"]))
                .collect();
            assert_eq!(
                responses,
                [(*seq, &Value::Bool(*approved))],
                "{fact:?} must be stored once"
            );
        }
    }
}

/// The word that no other message has.
fn said_mark(said: &str) -> &str {
    said.rsplit(' ').next().expect("a mark")
}
