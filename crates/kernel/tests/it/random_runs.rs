//! Random stories of a run: never a stuck run, one outcome per call, and a log that rebuilds the state.

use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;
use serde_json::json;
use toolgate_kernel::agent::Agent;
use toolgate_kernel::call::{CallState, ErrorCode, Outcome};
use toolgate_kernel::event::{ChildStatus, Claim, Event, Seq, Status};
use toolgate_kernel::id::{ApprovalId, CallId, QuestionId};
use toolgate_kernel::json::Json;
use toolgate_kernel::question::{Action, Ask, Question, Response};
use toolgate_kernel::run::{Arrival, Verdict};
use toolgate_kernel::tool::Decider;

use crate::reservation::message_from;
use crate::story::{Story, asks_for, handle, message, test_agent, words};

#[derive(Debug, Clone)]
enum Move {
    Reply(Vec<(u8, bool)>),
    Words,
    Broke(bool),
    Started(u8),
    Delegated(u8, u8),
    Output(u8, bool),
    Result(u8, u8),
    Claim(u8, u8),
    Release(u8, u8),
    Decide(u8, u8),
    Answer(u8, u8, u8),
    Wait(u16),
    Tick,
    Cancel,
    Recovered,
    Message(u8),
    Signal(u8),
}

const NAMES: [&str; 12] = [
    "nap",
    "bell",
    "asked_nap",
    "server",
    "safe",
    "client",
    "asked",
    "asked_client",
    "child",
    "after",
    "strict",
    "nothing",
];

impl Move {
    fn arrival(&self, story: &Story) -> Option<Arrival> {
        let id = |number: &u8| CallId {
            run: story.run.id(),
            number: u32::from(*number),
        };
        let leg = |number: &u8| story.run.call(id(number)).map_or(0, |call| call.leg);
        Some(match self {
            Self::Reply(calls) => {
                let calls: Vec<(&str, &str)> = calls
                    .iter()
                    .map(|(name, good)| {
                        (
                            NAMES[*name as usize % NAMES.len()],
                            if *good { r#"{"n":1}"# } else { "{x" },
                        )
                    })
                    .collect();
                Arrival::Reply(asks_for(&calls))
            }
            Self::Words => Arrival::Reply(words("hi")),
            Self::Broke(retryable) => Arrival::Broke {
                step: 0,
                failures: 0,
                error: "cut".into(),
                retryable: *retryable,
                retry_after: None,
            },
            Self::Started(call) => Arrival::Started { call: id(call) },
            Self::Delegated(call, to) => Arrival::Delegated {
                call: id(call),
                leg: leg(call),
                questions: questions(*to),
                handle: handle(*to),
                check_at: (to % 3 > 0).then(|| story.now.after(Duration::from_secs(u64::from(*to)))),
                // A child run that asks, that moves on, or that begins.
                child: match to % 4 {
                    0 => None,
                    kind => Some(ChildStatus {
                        status: [Status::Running, Status::WaitingTool, Status::WaitingApproval]
                            [usize::from(kind) - 1],
                        seq: Seq(u64::from(*to)),
                    }),
                },
            },
            Self::Output(call, true) => Arrival::Output {
                call: id(call),
                leg: leg(call),
                outcome: Outcome::Output(Json::from(json!({"ok": 1}))),
                log: None,
            },
            Self::Output(call, false) => Arrival::Output {
                call: id(call),
                leg: leg(call),
                outcome: Outcome::error(ErrorCode::ExecutionFailed, "no"),
                log: None,
            },
            Self::Result(call, value) => Arrival::Result {
                call: id(call),
                outcome: Outcome::Output(Json::from(json!(value % 2))),
                by: None,
            },
            Self::Claim(call, holder) => {
                let until = story.now.after(Duration::from_secs(10));
                Arrival::Claim {
                    call: id(call),
                    claim: Claim {
                        holder: format!("h{}", holder % 2),
                        until,
                        by: None,
                    },
                }
            }
            Self::Release(call, holder) => Arrival::Release {
                call: id(call),
                holder: format!("h{}", holder % 2),
                by: None,
            },
            Self::Decide(call, how) => {
                let approval = ApprovalId {
                    run: story.run.id(),
                    number: u32::from(*call),
                };
                let verdict = match how % 4 {
                    0 => Verdict::Approve(None),
                    1 => Verdict::Approve(Some(Json::from(json!({"n": 2})))),
                    2 => Verdict::Approve(Some(Json::from(json!("not an object")))),
                    _ => Verdict::Deny(Some("no".into())),
                };
                Arrival::Decide {
                    approval,
                    verdict,
                    remember: None,
                    by: Box::new(Decider::Backend),
                }
            }
            Self::Answer(call, number, how) => Arrival::Answer {
                question: QuestionId {
                    call: id(call),
                    number: u32::from(*number),
                },
                response: Response {
                    action: [Action::Accept, Action::Decline, Action::Cancel][usize::from(how % 3)],
                    content: (how % 2 == 0).then(|| Json::from(json!({"seat": how}))),
                },
                by: Box::new(Decider::Backend),
            },
            Self::Signal(call) => Arrival::Signal {
                call: id(call),
                value: Json::from(json!("ring")),
            },
            Self::Wait(_) => return None,
            Self::Tick => Arrival::Tick,
            Self::Cancel => Arrival::Cancel,
            Self::Recovered => Arrival::Recovered,
            // Some from a client that executes tools, of which some claim.
            Self::Message(number) => Arrival::Message(match number % 4 {
                0 => message(u128::from(*number)),
                holder => message_from(&format!("h{holder}"), u128::from(*number)),
            }),
        })
    }
}

/// Of a child run none, of a task as many as its number says.
fn questions(to: u8) -> Vec<Question> {
    let question = |number: u8| Question {
        key: number.to_string(),
        message: "Which seat?".into(),
        timeout: None,
        ask: match number {
            0 => Ask::Form {
                schema: json!({"type": "object", "required": ["seat"]}).into(),
            },
            _ => Ask::Url {
                url: "https://example.com".into(),
            },
        },
    };
    let count = if to == 0 { 0 } else { to - 1 };
    (0..count).map(question).collect()
}

fn moves() -> impl Strategy<Value = Vec<Move>> {
    let call = 0u8..10;
    let one = prop_oneof![
        6 => prop::collection::vec((any::<u8>(), prop::bool::weighted(0.9)), 1..6).prop_map(Move::Reply),
        1 => Just(Move::Words),
        1 => any::<bool>().prop_map(Move::Broke),
        3 => call.clone().prop_map(Move::Started),
        3 => (call.clone(), 0u8..4).prop_map(|(c, to)| Move::Delegated(c, to)),
        4 => (call.clone(), any::<bool>()).prop_map(|(c, ok)| Move::Output(c, ok)),
        4 => (call.clone(), any::<u8>()).prop_map(|(c, v)| Move::Result(c, v)),
        2 => (call.clone(), any::<u8>()).prop_map(|(c, h)| Move::Claim(c, h)),
        1 => (call.clone(), any::<u8>()).prop_map(|(c, h)| Move::Release(c, h)),
        2 => call.clone().prop_map(Move::Signal),
        3 => (call.clone(), any::<u8>()).prop_map(|(c, h)| Move::Decide(c, h)),
        3 => (call, 0u8..4, any::<u8>()).prop_map(|(c, q, h)| Move::Answer(c, q, h)),
        2 => any::<u16>().prop_map(Move::Wait),
        2 => Just(Move::Tick),
        1 => prop::bool::weighted(0.2).prop_map(|yes| if yes { Move::Cancel } else { Move::Tick }),
        1 => Just(Move::Recovered),
        2 => any::<u8>().prop_map(Move::Message),
    ];
    prop::collection::vec(one, 1..40)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_order_of_arrivals_gives_one_outcome_per_call_and_never_a_stuck_run(moves in moves()) {
        let agent = test_agent_once();
        let mut story = Story::begin(&agent);
        for one in &moves {
            if let Move::Wait(seconds) = one {
                story.now = story.now.after(Duration::from_secs(u64::from(*seconds)));
            }
            if let Some(arrival) = one.arrival(&story) {
                // Rejected or not: `take` has checked that a rejection leaves no trace.
                let _ = story.take(arrival);
            }
            prop_assert_eq!(format!("{:?}", story.replayed()), format!("{:?}", story.run));
            story.check_readers();
        }
        story.play_to_the_end();
        prop_assert_eq!(format!("{:?}", story.replayed()), format!("{:?}", story.run));
        let settled = story.settled();
        for call in story.run.calls() {
            prop_assert!(matches!(call.state, CallState::Settled(_)));
            prop_assert_eq!(settled.get(&call.tool.call), Some(&1), "{:?} settles once", call.tool.call);
        }
        let ends = story.log.iter().flat_map(|e| &e.events).filter(|e| matches!(e, Event::RunFinish(_))).count();
        prop_assert_eq!(ends, 1);
    }
}

fn test_agent_once() -> Arc<Agent> {
    static AGENT: std::sync::OnceLock<Arc<Agent>> = std::sync::OnceLock::new();
    AGENT.get_or_init(test_agent).clone()
}

/// The names are those of the configuration.
#[test]
fn every_name_but_the_last_is_a_tool() {
    let agent = test_agent();
    let known: Vec<bool> = NAMES.iter().map(|name| agent.tools.contains_key(*name)).collect();
    assert_eq!(known.iter().filter(|known| !**known).count(), 1);
}
