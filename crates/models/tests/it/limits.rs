//! Nothing that a model sends makes us keep more than we said we would.

use toolgate_kernel::agent::Provider;
use toolgate_models::{CALLS_MAX, INPUT_BYTES_MAX, REPLY_BYTES_MAX};

use crate::trace::replay;

fn chunk(delta: &str) -> String {
    format!("data: {{\"choices\":[{{\"delta\":{delta}}}]}}\n\n")
}

fn call(number: usize) -> String {
    chunk(&format!(
        r#"{{"tool_calls":[{{"index":{number},"id":"c{number}","function":{{"name":"t","arguments":"{{}}"}}}}]}}"#
    ))
}

fn last_line(reads: &[String]) -> String {
    let seen = replay(Provider::Openai, reads.iter().map(String::as_bytes));
    seen.lines().last().unwrap().to_owned()
}

#[test]
fn a_reply_may_have_so_many_calls_and_no_more() {
    let end = "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"tool_calls\"}]}\n\ndata: [DONE]\n\n"
        .to_owned();
    let mut calls: Vec<String> = (0..CALLS_MAX).map(call).chain([end]).collect();
    assert_eq!(last_line(&calls), "ToolCalls, 0 in, 0 out");
    calls.insert(CALLS_MAX, call(CALLS_MAX));
    assert_eq!(last_line(&calls), "Final: the model's reply has too many calls");
}

#[test]
fn the_input_of_a_call_may_be_so_long_and_no_longer() {
    let piece = chunk(&format!(
        r#"{{"tool_calls":[{{"index":0,"function":{{"arguments":"{}"}}}}]}}"#,
        "x".repeat(INPUT_BYTES_MAX / 8)
    ));
    let mut reads = vec![call(0)];
    reads.extend(std::iter::repeat_n(piece, 8));
    assert_eq!(
        last_line(&reads),
        "Final: the model's reply has too many bytes in the input of a call"
    );
}

#[test]
fn a_reply_may_be_so_long_and_no_longer() {
    let piece = chunk(&format!(r#"{{"content":"{}"}}"#, "x".repeat(REPLY_BYTES_MAX / 8)));
    let reads = vec![piece; 9];
    assert_eq!(last_line(&reads), "Final: the model's reply has too many bytes");
}

#[test]
fn an_event_may_be_so_long_and_no_longer() {
    let reads = ["data: ".to_owned(), "x".repeat(5 << 20)];
    assert_eq!(
        last_line(&reads),
        "Final: the model sent an event longer than 4 MiB"
    );
}
