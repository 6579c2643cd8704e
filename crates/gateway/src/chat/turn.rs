//! One message, until its run has ended or waits.

mod tool_question;
mod waits;

use std::collections::BTreeSet;
use std::time::Duration;

use futures_util::StreamExt as _;
use serde_json::Value;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{mpsc, oneshot};
use tokio::time::MissedTickBehavior;
use toolgate_client::events::{Event as Body, ToolApprovalRequest};
use toolgate_client::{
    ChatRequest, ChatStream, Chunk, Client, Connection, Decision, Error, Pause, RunId, SpaceId, ToolCall,
    ToolError,
};
use toolgate_kernel::json::Json;

use super::screen::{Screen, clean, is_seen, is_short, short};
use super::terminal::{Terminal, Typed, edit};
use waits::Waits;

/// How often the line that says what the chat waits for is written again.
const TICK: Duration = Duration::from_secs(1);
/// The client tool with which an agent asks the person: at a terminal, that is whoever types.
const ASK_USER: &str = "ask_user";

/// The local tools that run without confirmation.
#[derive(Debug)]
pub struct Confirmation {
    all: bool,
    always: BTreeSet<String>,
}

impl Confirmation {
    /// Asks before every tool, or before none.
    pub fn new(yes: bool) -> Self {
        Self {
            all: yes,
            always: BTreeSet::new(),
        }
    }
    fn is_needed(&self, tool: &str) -> bool {
        !self.all && !self.always.contains(tool)
    }
}

/// A call that waits for the person's confirmation.
struct Question {
    call: ToolCall,
    answer: oneshot::Sender<Answer>,
}

enum Answer {
    Run,
    Instead(Result<Value, ToolError>),
}

/// Sends a message and follows its run; returns the space of the conversation.
pub async fn turn(
    client: &Client,
    request: ChatRequest,
    terminal: &mut Terminal,
    screen: &mut Screen,
    confirmation: &mut Confirmation,
) -> Result<Option<SpaceId>, Error> {
    let (ask, questions) = mpsc::channel(1);
    let here: Vec<String> = client
        .client_tool_definitions()
        .into_iter()
        .map(|tool| tool.name)
        .collect();
    // Calls that nothing on this client executes are left to other clients.
    let claimed = here.iter().map(String::as_str).chain([ASK_USER]);
    let chat = client.chat_stream(request.until_end().only(claimed).on_tool_call(confirm_first(ask)));
    let turn = Turn {
        client,
        terminal,
        screen,
        confirmation,
        here,
        run: None,
        space: None,
        stopping: false,
        waits: Waits::default(),
    };
    turn.follow(chat, questions).await
}

/// Asks the person before a local tool runs.
fn confirm_first(
    ask: mpsc::Sender<Question>,
) -> impl Fn(ToolCall) -> futures_util::future::BoxFuture<'static, Option<Result<Value, ToolError>>>
+ Send
+ Sync
+ 'static {
    move |call| {
        let ask = ask.clone();
        Box::pin(async move {
            let (answer, answered) = oneshot::channel();
            let question = Question {
                call: call.clone(),
                answer,
            };
            let gone = || Some(Err(ToolError::new("the user has left")));
            if ask.send(question).await.is_err() {
                return gone();
            }
            match answered.await {
                Ok(Answer::Run) => Some(call.execute().await),
                Ok(Answer::Instead(outcome)) => Some(outcome),
                Err(_) => gone(),
            }
        })
    }
}

struct Turn<'a> {
    client: &'a Client,
    terminal: &'a mut Terminal,
    screen: &'a mut Screen,
    confirmation: &'a mut Confirmation,
    here: Vec<String>,
    run: Option<RunId>,
    space: Option<SpaceId>,
    stopping: bool,
    waits: Waits,
}

impl Turn<'_> {
    async fn follow(
        mut self,
        mut chat: ChatStream,
        mut questions: mpsc::Receiver<Question>,
    ) -> Result<Option<SpaceId>, Error> {
        // One listener for the whole turn, so that no Ctrl-C is lost between two chunks.
        let mut interrupts =
            signal(SignalKind::interrupt()).map_err(|error| Error::Setup(error.to_string()))?;
        let mut ticks = tokio::time::interval(TICK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                biased;
                _ = interrupts.recv() => {
                    if self.stopping {
                        self.screen.note("left, the run continues at the gateway");
                        return Ok(self.space);
                    }
                    self.cancel().await;
                }
                _ = ticks.tick() => self.screen.wait(&self.waits.words(), self.waits.since.elapsed()),
                Some(question) = questions.recv() => {
                    self.screen.end_wait();
                    let answer = self.ask(&question.call).await;
                    // An error means that the call has ended meanwhile.
                    let _ = question.answer.send(answer);
                }
                chunk = chat.next() => match chunk {
                    Some(Ok(Chunk::Finished(reply))) => {
                        self.screen.fresh_line();
                        if reply.pause == Some(Pause::ToolRounds) {
                            self.screen.note("stopped, local tools ran in as many steps as --max-tool-rounds allows");
                        }
                        return Ok(self.space);
                    }
                    Some(chunk) => self.show_chunk(chunk?).await,
                    None => return Ok(self.space),
                },
            }
        }
    }

    async fn show_chunk(&mut self, chunk: Chunk) {
        self.waits.update(&chunk);
        match chunk {
            Chunk::Connection(Connection::Lost { reason }) => {
                self.screen.note(format_args!(
                    "{}, the run continues when it answers",
                    clean(&reason)
                ));
            }
            Chunk::Connection(Connection::Up) => self.screen.note("the gateway answers again"),
            Chunk::Started { run, space } => {
                (self.run, self.space) = (Some(run), Some(space));
                // Ctrl-C was pressed before the gateway had answered.
                if self.stopping {
                    self.cancel_run().await;
                }
            }
            Chunk::Text(words) => self.screen.say(&words),
            Chunk::Event(event) => {
                self.screen.show(&event, &self.here);
                if let Some(Body::ToolApprovalRequest(asked)) = &event.body {
                    self.decide(asked).await;
                }
                if let Some(Body::ToolQuestion(asked)) = &event.body {
                    self.answer_question(asked).await;
                }
            }
            _ => {}
        }
    }

    /// Requests cancellation of the run, at once or as soon as its id is known; its end arrives as an event.
    async fn cancel(&mut self) {
        self.stopping = true;
        self.screen.note("stopping");
        self.cancel_run().await;
    }

    async fn cancel_run(&mut self) {
        if let Some(run) = self.run
            && let Err(error) = self.client.runs().cancel(run).await
        {
            self.screen.error(error);
        }
    }

    /// Whether a call may run; or its result, for a question to the person.
    async fn ask(&mut self, call: &ToolCall) -> Answer {
        if call.name == ASK_USER && !self.here.contains(&call.name) {
            return Answer::Instead(self.ask_user(&call.input).await);
        }
        if !self.confirmation.is_needed(&call.name) {
            return Answer::Run;
        }
        let json = Json::from(&call.input);
        let (more, letters): (&str, &[&str]) = match is_short(&json) {
            true => ("", &["y", "n", "a"]),
            false => (", [s]how all of it", &["y", "n", "a", "s"]),
        };
        let question = format!(
            "Run {} {} here? [y]es, [n]o, [a]lways{more}: ",
            call.name,
            short(&json)
        );
        loop {
            match self.choose(&question, letters).await.as_deref() {
                Some("y") => return Answer::Run,
                Some("a") => {
                    self.confirmation.always.insert(call.name.clone());
                    return Answer::Run;
                }
                Some("s") => self.screen.line(all_of(&call.input)),
                _ => {
                    let no = ToolError::new("the user does not want this tool to run");
                    return Answer::Instead(Err(no));
                }
            }
        }
    }

    async fn ask_user(&mut self, input: &Value) -> Result<Value, ToolError> {
        let question = clean(input["question"].as_str().unwrap_or("The agent asks:"));
        self.screen.line(question);
        for choice in input["choices"].as_array().into_iter().flatten() {
            self.screen
                .line(format_args!("  - {}", clean(choice.as_str().unwrap_or_default())));
        }
        match self.terminal.answer("? ") {
            Ok(Typed::Line(line)) => Ok(line.trim().into()),
            _ => {
                self.cancel().await;
                Err(ToolError::new("the user did not answer"))
            }
        }
    }

    /// Asks the person until the gateway has accepted a decision.
    async fn decide(&mut self, asked: &ToolApprovalRequest) {
        let input = asked.input.as_ref().map(Json::to_value).unwrap_or_default();
        let pretty = serde_json::to_string_pretty(&input).unwrap_or_default();
        self.screen.line(format_args!(
            "{} wants to run with\n{}",
            asked.tool_name,
            clean(&pretty)
        ));
        while !self.stopping {
            let question = format!("Approve {}? [y]es, [n]o, [e]dit: ", asked.tool_name);
            let decision = match self.choose(&question, &["y", "n", "e"]).await.as_deref() {
                Some("y") => Decision::yes(),
                Some("n") => match self.terminal.answer("Why not? (may be empty) ") {
                    Ok(Typed::Line(reason)) if !reason.trim().is_empty() => {
                        Decision::no_because(reason.trim())
                    }
                    _ => Decision::no(),
                },
                Some(_) => match edit(&input) {
                    Ok(changed) => Decision::yes_with(changed),
                    Err(error) => {
                        self.screen.error(format_args!("{error:#}"));
                        continue;
                    }
                },
                None => return,
            };
            match self.client.approvals().decide(asked.approval_id, &decision).await {
                Ok(_) => return,
                Err(error) => {
                    self.screen.error(&error);
                    // Decided by somebody else, or expired: there is nothing left to decide.
                    if matches!(error.status(), Some(404 | 409 | 410)) {
                        return;
                    }
                }
            }
        }
    }

    /// Asks for one of the letters; `None` if the person presses Ctrl-C, which cancels the run.
    async fn choose(&mut self, question: &str, letters: &[&str]) -> Option<String> {
        self.screen.fresh_line();
        loop {
            match self.terminal.answer(question) {
                Ok(Typed::Line(line)) => {
                    let letter: String = line.trim().to_lowercase().chars().take(1).collect();
                    if letters.contains(&letter.as_str()) {
                        return Some(letter);
                    }
                }
                _ => {
                    self.cancel().await;
                    return None;
                }
            }
        }
    }
}

/// The whole value as text; invisible characters are written as escapes.
fn all_of(value: &Value) -> String {
    let pretty = serde_json::to_string_pretty(value).unwrap_or_default();
    let seen = |c: char| match is_seen(c) {
        true => c.to_string(),
        false => c.escape_unicode().to_string(),
    };
    pretty.chars().map(seen).collect()
}
