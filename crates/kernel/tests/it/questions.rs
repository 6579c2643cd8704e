//! Questions that a tool asks people in the middle of a call.

use std::time::Duration;

use serde_json::{Value, json};
use toolgate_kernel::call::{CallState, ErrorCode, Outcome};
use toolgate_kernel::event::{Event, RunStart, Status, ToolQuestionResponse};
use toolgate_kernel::id::{CallId, QuestionId};
use toolgate_kernel::json::Json;
use toolgate_kernel::question::{Action, Answer, Ask, QUESTION_EXPIRY, Question, Response, problem_of};
use toolgate_kernel::run::{Arrival, Due, Rejected};
use toolgate_kernel::tool::Decider;

use crate::story::{START, Story, asks_for, handle, message, test_agent};

fn form(key: &str) -> Question {
    Question {
        key: key.into(),
        message: format!("Which {key}?"),
        timeout: None,
        ask: Ask::Form {
            schema: json!({
                "type": "object", "properties": {"name": {"type": "string", "maxLength": 3}}, "required": ["name"],
            })
            .into(),
        },
    }
}

fn page(key: &str) -> Question {
    Question {
        key: key.into(),
        message: "Please sign in.".into(),
        timeout: None,
        ask: Ask::Url {
            url: "https://example.com/in".into(),
        },
    }
}

fn said(action: Action, content: Option<Value>) -> Response {
    Response {
        action,
        content: content.map(Json::from),
    }
}

fn named(name: &str) -> Response {
    said(Action::Accept, Some(json!({ "name": name })))
}

/// A run whose only call asks.
struct Asking {
    story: Story,
    call: CallId,
}

impl Asking {
    /// Of a tool that asks these questions at once.
    fn of(tool: &str, questions: Vec<Question>) -> Self {
        let mut story = Story::begin(&test_agent());
        story.take(Arrival::Reply(asks_for(&[(tool, "{}")]))).unwrap();
        let call = story.run.calls()[0].tool.call;
        let mut asking = Self { story, call };
        asking.delegate(questions).unwrap();
        asking
    }

    fn delegate(&mut self, questions: Vec<Question>) -> Result<Vec<Event>, Rejected> {
        let leg = self.story.run.call(self.call).unwrap().leg;
        self.delegate_on(leg, questions)
    }

    fn delegate_on(&mut self, leg: u32, questions: Vec<Question>) -> Result<Vec<Event>, Rejected> {
        self.story.take(Arrival::Delegated {
            call: self.call,
            leg,
            handle: handle(1),
            check_at: None,
            child: None,
            questions,
        })
    }

    fn id(&self, number: u32) -> QuestionId {
        QuestionId {
            call: self.call,
            number,
        }
    }

    fn answer(&mut self, number: u32, response: Response) -> Result<Vec<Event>, Rejected> {
        let question = self.id(number);
        self.story.take(Arrival::Answer {
            question,
            response,
            by: Box::new(Decider::Backend),
        })
    }

    fn state(&self) -> CallState {
        self.story.run.call(self.call).unwrap().state.clone()
    }

    fn is_due(&self) -> bool {
        matches!(self.story.run.due()[..], [Due::Call(_)])
    }

    fn answers(&self) -> Vec<Answer> {
        self.story.run.call(self.call).unwrap().questions.answers()
    }
}

#[test]
fn a_call_waits_for_all_answers_and_goes_on_with_them() {
    let mut asking = Asking::of("server", vec![form("city"), page("login")]);
    assert_eq!(asking.story.run.status(), Status::WaitingApproval);
    assert!(!asking.is_due());
    assert_eq!(asking.story.run.wake_at(), Some(START.after(QUESTION_EXPIRY)));
    asking.answer(0, named("Rom")).unwrap();
    assert_eq!(asking.story.run.status(), Status::WaitingApproval);
    asking.answer(1, said(Action::Accept, None)).unwrap();
    assert!(asking.is_due());
    assert_eq!(asking.story.run.status(), Status::Running);
    let expected = [("city", Some(json!({"name": "Rom"}))), ("login", None)];
    let expected = expected.map(|(key, content)| Answer {
        key: key.into(),
        action: Action::Accept,
        content: content.map(Json::from),
    });
    assert_eq!(asking.answers(), expected);
    let call = asking.story.run.call(asking.call).unwrap();
    assert_eq!(call.task(), Some(&handle(1)), "whom it goes on with");
}

#[test]
fn the_time_in_which_people_are_asked_is_not_the_tools_time() {
    let mut asking = Asking::of("server", vec![form("city")]);
    let timeout = asking.story.run.calls()[0].definition.as_ref().unwrap().timeout;
    asking.story.now = START.after(timeout * 5);
    asking.story.take(Arrival::Tick).unwrap();
    asking.answer(0, named("Rom")).unwrap();
    asking.story.take(Arrival::Started { call: asking.call }).unwrap();
    let call = asking.story.run.call(asking.call).unwrap();
    assert_eq!(call.deadline(), asking.story.now.after(timeout));
    asking.story.now = asking.story.now.after(timeout / 2);
    asking.delegate(Vec::new()).unwrap();
    assert_eq!(asking.story.run.wake_at(), Some(START.after(timeout * 6)));
}

#[test]
fn an_answer_must_be_what_the_question_asks_for() {
    let mut asking = Asking::of("server", vec![form("city"), page("login")]);
    let cases = [
        (0, named("Rome"), "/content/name"),
        (0, said(Action::Accept, Some(json!({}))), "/content/name"),
        (0, said(Action::Accept, None), "/content"),
        (0, said(Action::Decline, Some(json!({}))), "/content"),
        (1, said(Action::Accept, Some(json!({}))), "/content"),
    ];
    for (number, response, pointer) in cases {
        let Err(Rejected::Invalid(problems)) = asking.answer(number, response.clone()) else {
            panic!("{response:?} was taken");
        };
        assert_eq!(problems[0].pointer, pointer, "{problems:?}");
    }
    assert_eq!(asking.answer(7, named("Rom")), Err(Rejected::Unknown));
}

#[test]
fn the_first_answer_holds() {
    let mut asking = Asking::of("server", vec![form("city"), page("login")]);
    asking.answer(0, named("Rom")).unwrap();
    assert_eq!(asking.answer(0, named("Rom")), Err(Rejected::Repeated));
    assert_eq!(asking.answer(0, named("Bonn")), Err(Rejected::Different));
    assert_eq!(
        asking.answer(0, said(Action::Decline, None)),
        Err(Rejected::Different)
    );
    asking.story.take(Arrival::Cancel).unwrap();
    assert_eq!(
        asking.answer(0, named("Rom")),
        Err(Rejected::Repeated),
        "for ever"
    );
    let gone = asking.answer(1, said(Action::Accept, None));
    assert!(
        matches!(
            gone,
            Err(Rejected::Gone {
                code: ErrorCode::Cancelled,
                ..
            })
        ),
        "{gone:?}"
    );
}

#[test]
fn a_question_that_nobody_answers_is_cancelled_and_the_call_goes_on() {
    let mut asking = Asking::of("server", vec![form("city")]);
    asking.story.now = START.after(QUESTION_EXPIRY);
    let told = asking.story.take(Arrival::Tick).unwrap();
    assert!(
        matches!(
            &told[0],
            Event::ToolQuestionResponse(ToolQuestionResponse {
                action: Action::Cancel,
                expired: true,
                ..
            })
        ),
        "{told:?}"
    );
    assert!(asking.is_due());
    assert_eq!(asking.answers()[0].action, Action::Cancel);
    let late = asking.answer(0, named("Rom"));
    assert!(
        matches!(
            late,
            Err(Rejected::Gone {
                code: ErrorCode::Timeout,
                ..
            })
        ),
        "{late:?}"
    );
}

#[test]
fn a_new_message_supersedes_what_is_asked() {
    let mut asking = Asking::of("server", vec![form("city")]);
    asking.story.take(Arrival::Message(message(7))).unwrap();
    let gone = asking.answer(0, named("Rom"));
    assert!(
        matches!(
            gone,
            Err(Rejected::Gone {
                code: ErrorCode::Superseded,
                ..
            })
        ),
        "{gone:?}"
    );
}

#[test]
fn a_crash_after_the_answers_follows_the_tools_retry() {
    for (tool, goes_on) in [("server", false), ("safe", true)] {
        let mut asking = Asking::of(tool, vec![form("city")]);
        asking.answer(0, named("Rom")).unwrap();
        asking.story.take(Arrival::Started { call: asking.call }).unwrap();
        asking.story.take(Arrival::Recovered).unwrap();
        assert_eq!(asking.is_due(), goes_on, "{tool}");
        if !goes_on {
            let CallState::Settled(settled) = asking.state() else {
                panic!("{:?}", asking.state())
            };
            let interrupted = Outcome::error(
                ErrorCode::Interrupted,
                "the gateway stopped while this call ran: outcome unknown",
            );
            assert_eq!(settled.outcome, interrupted);
        } else {
            assert_eq!(asking.answers().len(), 1);
        }
    }
}

#[test]
fn a_call_may_ask_again_and_gets_the_new_answers_alone() {
    let mut asking = Asking::of("server", vec![form("city")]);
    asking.answer(0, named("Rom")).unwrap();
    asking.story.take(Arrival::Started { call: asking.call }).unwrap();
    asking.delegate(vec![form("city")]).unwrap();
    assert_eq!(asking.story.run.status(), Status::WaitingApproval);
    assert_eq!(
        asking.answer(0, named("Ulm")),
        Err(Rejected::Different),
        "another question"
    );
    asking.answer(1, named("Ulm")).unwrap();
    let content = asking.answers()[0].content.clone().unwrap();
    assert_eq!(
        (asking.answers().len(), content.to_value()),
        (1, json!({"name": "Ulm"}))
    );
}

#[test]
fn a_look_at_a_task_that_asks_keeps_its_questions_and_a_stale_one_is_void() {
    let mut asking = Asking::of("server", vec![form("city")]);
    let leg = asking.story.run.call(asking.call).unwrap().leg;
    asking.story.now = START.after(Duration::from_secs(60));
    asking.delegate(vec![form("city"), page("login")]).unwrap();
    assert_eq!(
        asking
            .story
            .run
            .question(asking.id(1))
            .unwrap()
            .question
            .url
            .as_deref(),
        Some("https://example.com/in")
    );
    assert!(
        asking.story.run.question(asking.id(2)).is_none(),
        "one is asked once"
    );
    assert_eq!(asking.delegate_on(leg, Vec::new()), Err(Rejected::OutOfTurn));
    let output = Arrival::Output {
        call: asking.call,
        leg,
        outcome: Outcome::Output(Json::null()),
        log: None,
    };
    assert_eq!(asking.story.take(output), Err(Rejected::OutOfTurn));
    asking.answer(0, named("Rom")).unwrap();
    asking.answer(1, said(Action::Accept, None)).unwrap();
    assert!(asking.is_due());
}

#[test]
fn questions_that_cannot_be_passed_on_are_refused() {
    let many: Vec<Question> = (0..17).map(|number| page(&number.to_string())).collect();
    let run = |url: &str| Question {
        ask: Ask::Url { url: url.into() },
        ..page("a")
    };
    let schema = |schema: Value| Question {
        ask: Ask::Form {
            schema: schema.into(),
        },
        ..page("a")
    };
    let long = Question {
        message: "x".repeat(1 << 16),
        ..page("a")
    };
    let cases = [
        (many, "17 questions"),
        (vec![page("a"), page("a")], "one key"),
        (vec![run("javascript:alert(1)")], "https://"),
        (vec![schema(json!({"type": 1}))], "schema"),
        (vec![long], "65536 bytes"),
    ];
    for (questions, words) in cases {
        let problem = problem_of(&questions).unwrap();
        assert!(problem.contains(words), "{problem}");
    }
    assert_eq!(problem_of(&[form("a"), page("b")]), None);
}

#[test]
fn a_child_run_announces_a_call_above_before_it_asks() {
    let mut asking = Asking::of("server", Vec::new());
    let start = asking.story.log[0].events.iter().find_map(Event::run_start);
    let mut start: RunStart = start.unwrap().clone();
    start.depth = 1;
    // The same run, below another one.
    asking.story.log[0].events[0] = start.into();
    asking.story.run = asking.story.replayed();
    let kinds = |asking: &Asking, events: &[Event]| -> Vec<String> {
        let told = asking.story.run.tell_above(events);
        let kind = |event: &Event| match event {
            Event::ChildCall(e) => e.event.kind().to_owned(),
            other => panic!("{other:?}"),
        };
        told.iter().map(kind).collect()
    };
    let first = asking.delegate(vec![form("city")]).unwrap();
    let told = ["tool-input-available", "tool-executing", "tool-question"];
    assert_eq!(kinds(&asking, &first), told);
    let second = asking.delegate(vec![page("login")]).unwrap();
    assert_eq!(kinds(&asking, &second), told[1..]);
    let answered = asking.answer(0, named("Rom")).unwrap();
    assert_eq!(kinds(&asking, &answered), ["tool-question-response"]);
}
