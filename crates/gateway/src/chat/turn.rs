//! One message, and everything until the agent has answered.

use std::collections::BTreeSet;

use futures_util::StreamExt as _;
use serde_json::Value;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{mpsc, oneshot};
use toolgate_client::events::{Event as Body, ToolApprovalRequest};
use toolgate_client::{
    ChatRequest, ChatStream, Chunk, Client, Decision, Error, Pause, RunId, SpaceId, ToolCall, ToolError,
};
use toolgate_kernel::json::Json;

use super::screen::{Screen, clean, is_seen, is_short, short};
use super::terminal::{Terminal, Typed, edit};

/// The agent's own tool for asking the person: whoever sits at the terminal is that person.
const ASK_USER: &str = "ask_user";

/// Which tools may run here without a question.
#[derive(Debug)]
pub struct Asking {
    all: bool,
    always: BTreeSet<String>,
}

impl Asking {
    /// About every tool, or about none.
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

/// A call that waits for the person's word.
struct Question {
    call: ToolCall,
    answer: oneshot::Sender<Answer>,
}

enum Answer {
    Run,
    Instead(Result<Value, ToolError>),
}

/// Says it and follows until the run has ended; gives the space of the conversation.
pub async fn turn(
    client: &Client,
    request: ChatRequest,
    terminal: &mut Terminal,
    screen: &mut Screen,
    asking: &mut Asking,
) -> Result<Option<SpaceId>, Error> {
    let (ask, questions) = mpsc::channel(1);
    let here: Vec<String> = client
        .client_tool_definitions()
        .into_iter()
        .map(|tool| tool.name)
        .collect();
    // A call that nothing here executes is left to other clients.
    let taken = here.iter().map(String::as_str).chain([ASK_USER]);
    let chat = client.chat_stream(request.until_end().only(taken).on_tool_call(asked_first(ask)));
    let turn = Turn {
        client,
        terminal,
        screen,
        asking,
        here,
        run: None,
        space: None,
        stopping: false,
    };
    turn.follow(chat, questions).await
}

/// Before a call runs here, the person is asked.
fn asked_first(
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
    asking: &'a mut Asking,
    here: Vec<String>,
    run: Option<RunId>,
    space: Option<SpaceId>,
    stopping: bool,
}

impl Turn<'_> {
    async fn follow(
        mut self,
        mut chat: ChatStream,
        mut questions: mpsc::Receiver<Question>,
    ) -> Result<Option<SpaceId>, Error> {
        // One listener for the whole turn: none of the person's is lost between two chunks.
        let mut interrupts =
            signal(SignalKind::interrupt()).map_err(|error| Error::Setup(error.to_string()))?;
        loop {
            tokio::select! {
                biased;
                _ = interrupts.recv() => {
                    if self.stopping {
                        self.screen.note("left to itself");
                        return Ok(self.space);
                    }
                    self.stop().await;
                }
                Some(question) = questions.recv() => {
                    let answer = self.ask(&question.call).await;
                    // A call that was settled meanwhile has nobody who waits.
                    let _ = question.answer.send(answer);
                }
                chunk = chat.next() => match chunk {
                    Some(Ok(Chunk::Finished(reply))) => {
                        self.screen.fresh_line();
                        if reply.pause == Some(Pause::ToolRounds) {
                            self.screen.note("stopped: tools ran in as many steps as --max-tool-rounds allows");
                        }
                        return Ok(self.space);
                    }
                    Some(chunk) => self.take(chunk?).await,
                    None => return Ok(self.space),
                },
            }
        }
    }

    async fn take(&mut self, chunk: Chunk) {
        match chunk {
            Chunk::Started { run, space } => (self.run, self.space) = (Some(run), Some(space)),
            Chunk::Text(words) => self.screen.say(&words),
            Chunk::Event(event) => {
                self.screen.show(&event, &self.here);
                if let Some(Body::ToolApprovalRequest(asked)) = &event.body {
                    self.decide(asked).await;
                }
            }
            _ => {}
        }
    }

    /// Asks the gateway to stop the run; its end arrives as an event.
    async fn stop(&mut self) {
        self.stopping = true;
        self.screen.note("stopping");
        if let Some(run) = self.run
            && let Err(error) = self.client.runs().cancel(run).await
        {
            self.screen.error(error);
        }
    }

    /// Whether a call may run here; or its result, for a question to the person.
    async fn ask(&mut self, call: &ToolCall) -> Answer {
        if call.name == ASK_USER && !self.here.contains(&call.name) {
            return Answer::Instead(self.ask_user(&call.input).await);
        }
        if !self.asking.is_needed(&call.name) {
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
                    self.asking.always.insert(call.name.clone());
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
                self.stop().await;
                Err(ToolError::new("the user did not answer"))
            }
        }
    }

    /// A tool needs a person's yes: asks until there is a decision that the gateway takes.
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
                    // Decided by somebody else, or too late: there is nothing left to ask.
                    if matches!(error.status(), Some(404 | 409 | 410)) {
                        return;
                    }
                }
            }
        }
    }

    /// One of the letters; none when the person interrupts, which stops the run.
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
                    self.stop().await;
                    return None;
                }
            }
        }
    }
}

/// A value with everything in it: what has no shape of its own is written as an escape.
fn all_of(value: &Value) -> String {
    let pretty = serde_json::to_string_pretty(value).unwrap_or_default();
    let seen = |c: char| match is_seen(c) {
        true => c.to_string(),
        false => c.escape_unicode().to_string(),
    };
    pretty.chars().map(seen).collect()
}
