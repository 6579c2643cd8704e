//! A model that thinks for no time at all: OpenAI chat completions, streamed, one socket write per token.
//!
//! The last user message is the script: `tools:3 call:echo text:20` asks for three calls of `echo`, one per
//! request, and then for twenty tokens.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::fmt::Write;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::http::header::CONTENT_TYPE;
use axum::http::{Response, StatusCode};
use axum::routing::{get, post};
use http_body::Frame;
use serde::Deserialize;
use serde_json::value::RawValue;

/// Every token is this one, so that a reader can tell by the length whether it got all of them.
pub const TOKEN: &str = "word ";
/// What the model calls `echo` with.
pub const ECHO_INPUT: &str = r#"{"text":"hello from the model","count":3,"tags":["alpha","beta"],"options":{"upper":false,"lang":"en"}}"#;
/// What the model calls `ask_user` with.
const ASK_INPUT: &str = r#"{"question":"Which colour do you want?","choices":["red","green","blue"]}"#;
/// A call's input arrives in pieces of this size.
const FRAGMENT_BYTES: usize = 12;

pub async fn serve(listen: SocketAddr) -> anyhow::Result<()> {
    let router = Router::new()
        .route("/healthz", get(|| async { "ok" }))
        .route("/v1/chat/completions", post(complete));
    crate::serve(listen, router).await
}

#[derive(Deserialize)]
struct Request<'a> {
    #[serde(borrow)]
    messages: Vec<Message<'a>>,
}

#[derive(Deserialize)]
struct Message<'a> {
    role: &'a str,
    #[serde(borrow, default)]
    content: Option<&'a RawValue>,
}

async fn complete(body: Bytes) -> Response<Body> {
    let (status, kind, body) = match serde_json::from_slice::<Request>(&body) {
        Ok(request) => (
            StatusCode::OK,
            "text/event-stream",
            Body::new(answer(&request.messages)),
        ),
        Err(fault) => (
            StatusCode::BAD_REQUEST,
            "text/plain",
            Body::from(fault.to_string()),
        ),
    };
    Response::builder()
        .status(status)
        .header(CONTENT_TYPE, kind)
        .body(body)
        .expect("the head is valid")
}

fn answer(messages: &[Message<'_>]) -> Answer {
    let user = messages.iter().rposition(|message| message.role == "user");
    let after = user.map_or(0, |at| at + 1);
    let script = user
        .and_then(|at| messages[at].content)
        .map_or("", |content| content.get());
    let results = messages[after..]
        .iter()
        .filter(|message| message.role == "tool")
        .count();
    let number = |key| word(script, key).and_then(|text| text.parse::<usize>().ok());
    if results < number("tools:").unwrap_or(0) {
        call(word(script, "call:").unwrap_or("echo"), messages.len())
    } else {
        text(number("text:").unwrap_or(20), messages.len())
    }
}

/// The word behind `key` in the script.
fn word<'a>(script: &'a str, key: &str) -> Option<&'a str> {
    let rest = &script[script.find(key)? + key.len()..];
    let end = rest
        .find(|c: char| !c.is_ascii_alphanumeric() && c != '_')
        .unwrap_or(rest.len());
    Some(&rest[..end])
}

fn text(tokens: usize, turns: usize) -> Answer {
    let mut answer = Answer::default();
    answer
        .head
        .push_back(chunk(r#"{"role":"assistant","content":""}"#, "null"));
    answer.token = chunk(&format!(r#"{{"content":"{TOKEN}"}}"#), "null");
    answer.tokens = tokens;
    answer.tail = [chunk("{}", r#""stop""#), end(turns, tokens)].into();
    answer
}

fn call(tool: &str, turns: usize) -> Answer {
    let input = if tool == "echo" { ECHO_INPUT } else { ASK_INPUT };
    let mut answer = Answer::default();
    answer.head.push_back(chunk(
        &format!(
            r#"{{"role":"assistant","content":null,"tool_calls":[{{"index":0,"id":"call_{turns}","type":"function","function":{{"name":"{tool}","arguments":""}}}}]}}"#
        ),
        "null",
    ));
    for piece in input.as_bytes().chunks(FRAGMENT_BYTES) {
        let piece = serde_json::Value::from(std::str::from_utf8(piece).expect("the input is ASCII"));
        let delta = format!(r#"{{"tool_calls":[{{"index":0,"function":{{"arguments":{piece}}}}}]}}"#);
        answer.head.push_back(chunk(&delta, "null"));
    }
    answer.tail = [chunk("{}", r#""tool_calls""#), end(turns, 10)].into();
    answer
}

const CHUNK: &str =
    r#"data: {"id":"chatcmpl-stub","object":"chat.completion.chunk","created":1700000000,"model":"stub""#;

fn chunk(delta: &str, finish: &str) -> Bytes {
    format!("{CHUNK},\"choices\":[{{\"index\":0,\"delta\":{delta},\"finish_reason\":{finish}}}]}}\n\n").into()
}

fn end(turns: usize, written: usize) -> Bytes {
    let read = turns * 10;
    let mut out = String::from(CHUNK);
    write!(
        out,
        ",\"choices\":[],\"usage\":{{\"prompt_tokens\":{read},\"completion_tokens\":{written},\"total_tokens\":{}}}}}\n\ndata: [DONE]\n\n",
        read + written
    )
    .expect("a string takes everything");
    out.into()
}

/// The server-sent events of one answer.
#[derive(Default)]
struct Answer {
    head: VecDeque<Bytes>,
    token: Bytes,
    tokens: usize,
    tail: VecDeque<Bytes>,
    /// The event before has been written.
    flushed: bool,
}

impl Answer {
    fn next(&mut self) -> Option<Bytes> {
        self.head.pop_front().or_else(|| {
            if self.tokens == 0 {
                return self.tail.pop_front();
            }
            self.tokens -= 1;
            Some(self.token.clone())
        })
    }
}

impl http_body::Body for Answer {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        // Pausing once between two events makes the server write each by itself, as a model does.
        self.flushed = !self.flushed;
        if self.flushed {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        Poll::Ready(self.next().map(|event| Ok(Frame::data(event))))
    }
}
