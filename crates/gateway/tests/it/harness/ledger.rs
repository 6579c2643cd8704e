//! What clients were told, and whether the log agrees. The log is read from the database (`stored.rs`), not from a gateway.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use toolgate_testkit::model_server::ModelServer;

use super::Event;
use super::stored::{Stored, StoredEvent};

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
    /// A call that asks another agent.
    Asked { call: String, said: String },
    /// A plan that is due once.
    Plan {
        space: String,
        plan: String,
        due: String,
        said: String,
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
            Fact::Result { .. } | Fact::Decision { .. } | Fact::Asked { .. } | Fact::Plan { .. } => None,
        })
    }

    /// How many calls asked another agent, and how many plans were due.
    pub fn asked_and_planned(&self) -> (usize, usize) {
        let count = |wanted: fn(&Fact) -> bool| self.facts.iter().filter(|fact| wanted(fact)).count();
        (
            count(|fact| matches!(fact, Fact::Asked { .. })),
            count(|fact| matches!(fact, Fact::Plan { .. })),
        )
    }

    /// Compares everything with what is stored and what the model was shown.
    pub fn verify(&self, stored: &Stored, models: &ModelServer) {
        let known: BTreeSet<&String> = self.runs.iter().map(|facts| &facts.run).collect();
        assert_eq!(
            known.len(),
            self.runs.len(),
            "a client was given a run of another"
        );
        let there: BTreeSet<&String> = stored.runs.keys().collect();
        let differ: Vec<_> = there.symmetric_difference(&known).collect();
        assert!(differ.is_empty(), "lost, or started twice: {differ:?}");
        for facts in &self.runs {
            verify_run(facts, stored);
        }
        let said = Said::of(stored);
        for fact in &self.facts {
            verify_fact(fact, stored, &said, models);
        }
        let asked = |fact: &&Fact| matches!(fact, Fact::Asked { .. });
        let children = stored.runs.values().filter(|run| run.parent.is_some());
        assert_eq!(
            children.count(),
            self.facts.iter().filter(asked).count(),
            "a run below another for each call that asked for one"
        );
        let due = |said: &&StoredEvent| !said.event.data["message"]["origin"].is_null();
        let plans = |fact: &&Fact| matches!(fact, Fact::Plan { .. });
        assert_eq!(
            stored.of_kind("message").filter(due).count(),
            self.facts.iter().filter(plans).count(),
            "a message for each plan that was due"
        );
    }
}

/// Messages by their last word, which no two have.
struct Said<'s>(BTreeMap<&'s str, Vec<&'s StoredEvent>>);

impl<'s> Said<'s> {
    fn of(stored: &'s Stored) -> Self {
        let mut by_mark: BTreeMap<&str, Vec<&StoredEvent>> = BTreeMap::new();
        for said in stored.of_kind("message") {
            let text = said.event.data["message"]["parts"][0]["text"].as_str();
            by_mark.entry(mark(text.expect("a text"))).or_default().push(said);
        }
        Self(by_mark)
    }

    /// The one message that says this.
    fn once(&self, said: &str) -> &'s StoredEvent {
        match self.0.get(mark(said)).map(Vec::as_slice) {
            Some([one]) => one,
            Some(several) => panic!("{said:?} is stored {} times", several.len()),
            None => panic!("{said:?} is lost"),
        }
    }
}

fn verify_run(facts: &RunFacts, stored: &Stored) {
    let RunFacts { run, space, seen } = facts;
    let row = &stored.runs[run];
    assert_eq!((row.status.as_str(), &row.space), ("completed", space), "{run}");
    let log: Vec<Value> = stored.log(run).iter().map(|stored| stored.shown()).collect();
    let seen: Vec<&Value> = seen.iter().map(|event| &event.data).collect();
    assert!(
        seen.iter().copied().eq(&log),
        "what was streamed of {run} is not what is stored: {seen:#?} {log:#?}"
    );
}

fn verify_fact(fact: &Fact, stored: &Stored, said_once: &Said<'_>, models: &ModelServer) {
    match fact {
        Fact::Message { space, message, said } => {
            let found = said_once.once(said);
            assert_eq!(
                (&found.event.data["message"]["messageId"], &found.space),
                (&message.as_str().into(), space),
                "{fact:?}"
            );
        }
        Fact::Result {
            run,
            call,
            value,
            seq,
        } => {
            let log = stored.log(run);
            let of_call = log
                .iter()
                .map(|stored| &stored.event)
                .filter(|event| event.kind == "tool-output-available" && event.call() == call);
            let outputs: Vec<(u64, &Value)> =
                of_call.map(|event| (event.seq, &event.data["output"])).collect();
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
            let log = stored.log(run);
            let responses = log.iter().map(|stored| &stored.event).filter(|event| {
                event.kind == "tool-approval-response" && event.text("approvalId") == approval
            });
            let responses: Vec<(u64, &Value)> = responses
                .map(|event| (event.seq, &event.data["approved"]))
                .collect();
            assert_eq!(
                responses,
                [(*seq, &Value::Bool(*approved))],
                "{fact:?} must be stored once"
            );
        }
        Fact::Asked { call, said } => {
            let child = said_once.once(said).run.as_deref();
            verify_asked(
                call,
                child.unwrap_or_else(|| panic!("no run for {fact:?}")),
                stored,
                models,
            );
        }
        Fact::Plan {
            space,
            plan,
            due,
            said,
        } => {
            let found = said_once.once(said);
            let origin = &found.event.data["message"]["origin"];
            assert_eq!(
                (&found.space, origin["planId"].as_str(), origin["dueAt"].as_str()),
                (space, Some(plan.as_str()), Some(due.as_str())),
                "{fact:?}"
            );
            let run = found
                .run
                .as_deref()
                .unwrap_or_else(|| panic!("no run for {fact:?}"));
            let messages = stored.log(run);
            let messages = messages.iter().filter(|stored| stored.event.kind == "message");
            assert_eq!(messages.count(), 1, "{run} is the run of {fact:?} alone");
        }
    }
}

/// The call has started this run, and no other. What it said is what the call came to (that much holds for every log, see
/// `stored.rs`), and the model of the run above was told so.
fn verify_asked(call: &str, child: &str, stored: &Stored, models: &ModelServer) {
    assert_eq!(stored.started_by(call), [child], "{call}");
    let log = stored.log(child);
    let messages = log.iter().filter(|stored| stored.event.kind == "message");
    assert_eq!(messages.count(), 1, "{child} was asked by {call} alone");
    let end = &log.last().expect("not empty").event;
    assert_eq!(end.data["status"], "completed", "{child}");
    let shown = models.results(call);
    assert_eq!(shown.len(), 1, "the model saw {shown:?} for {call}");
}

/// The word that no other message has.
fn mark(said: &str) -> &str {
    said.rsplit(' ').next().expect("a mark")
}
