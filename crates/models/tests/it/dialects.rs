//! What servers do to the protocols they say they speak.

use toolgate_kernel::agent::Provider;

use crate::trace::replay;

/// An OpenAI stream of these choices, read event by event; `[DONE]` and whole chunks stand for themselves.
fn openai(chunks: &[&str]) -> String {
    let events = chunks.iter().map(|chunk| match *chunk {
        "[DONE]" => "data: [DONE]\n\n".to_owned(),
        whole if whole.starts_with("{\"choices") || whole.starts_with("{\"error") => {
            format!("data: {whole}\n\n")
        }
        choice => format!("data: {{\"choices\":[{{\"index\":0,{choice}}}]}}\n\n"),
    });
    check(Provider::Openai, events.collect())
}

fn anthropic(events: &[&str]) -> String {
    check(
        Provider::Anthropic,
        events
            .iter()
            .map(|data| format!("event: x\ndata: {data}\n\n"))
            .collect(),
    )
}

fn google(events: &[&str]) -> String {
    check(
        Provider::Google,
        events
            .iter()
            .map(|data| format!("data: {data}\r\n\r\n"))
            .collect(),
    )
}

/// In one read or in many, the story is the same.
fn check(provider: Provider, events: Vec<String>) -> String {
    let by_event = replay(provider, events.iter().map(String::as_bytes));
    assert_eq!(by_event, replay(provider, [events.concat().as_bytes()]));
    by_event
}

const CALLS_DONE: &str = r#""delta":{},"finish_reason":"tool_calls""#;

#[test]
fn interleaved_parallel_calls_keep_apart() {
    let seen = openai(&[
        r#""delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"one","arguments":""}},{"index":1,"id":"b","function":{"name":"two","arguments":""}}]}"#,
        r#""delta":{"tool_calls":[{"index":1,"function":{"arguments":"{\"b\":"}}]}"#,
        r#""delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"a\":"}}]}"#,
        r#""delta":{"tool_calls":[{"index":1,"function":{"arguments":"2}"}},{"index":0,"function":{"arguments":"1}"}}]}"#,
        CALLS_DONE,
        "[DONE]",
    ]);
    assert_eq!(
        seen,
        "call 0: one\ncall 1: two\ninput 1: {\"b\":\ninput 0: {\"a\":\ninput 1: 2}\ninput 0: 1}\nToolCalls, 0 in, 0 out"
    );
}

#[test]
fn calls_without_an_index_go_by_id_then_by_place() {
    let seen = openai(&[
        r#""delta":{"tool_calls":[{"id":"a","function":{"name":"one","arguments":"{}"}},{"id":"b","function":{"name":"two","arguments":"{\"x\""}}]}"#,
        r#""delta":{"tool_calls":[{"id":"b","function":{"arguments":":1}"}}]}"#,
        CALLS_DONE,
        "[DONE]",
    ]);
    assert_eq!(
        seen,
        "call 0: one\ninput 0: {}\ncall 1: two\ninput 1: {\"x\":1}\nToolCalls, 0 in, 0 out"
    );

    let seen = openai(&[
        r#""delta":{"tool_calls":[{"function":{"name":"one","arguments":"{\"a\":"}}]}"#,
        r#""delta":{"tool_calls":[{"function":{"arguments":"1}"}}]}"#,
        r#""delta":{"tool_calls":[{"function":{"name":"two","arguments":"{}"}}]}"#,
        CALLS_DONE,
        "[DONE]",
    ]);
    assert_eq!(
        seen,
        "call 0: one\ninput 0: {\"a\":1}\ncall 1: two\ninput 1: {}\nToolCalls, 0 in, 0 out"
    );

    let seen = openai(&[
        r#""delta":{"tool_calls":[{"function":{"name":"one"}},{"function":{"name":"two"}}]}"#,
        r#""delta":{"tool_calls":[{"function":{"arguments":"{\"a\":1}"}},{"function":{"arguments":"{\"b\":2}"}}]}"#,
        CALLS_DONE,
        "[DONE]",
    ]);
    assert_eq!(
        seen,
        "call 0: one\ncall 1: two\ninput 0: {\"a\":1}\ninput 1: {\"b\":2}\nToolCalls, 0 in, 0 out"
    );
}

#[test]
fn a_new_id_is_a_new_call_whatever_its_index() {
    let seen = openai(&[
        r#""delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"one","arguments":"{\"a\":1}"}}]}"#,
        r#""delta":{"tool_calls":[{"index":0,"id":"b","function":{"name":"two","arguments":"{\"b\":"}}]}"#,
        r#""delta":{"tool_calls":[{"index":0,"function":{"arguments":"2}"}}]}"#,
        CALLS_DONE,
        "[DONE]",
    ]);
    assert_eq!(
        seen,
        "call 0: one\ninput 0: {\"a\":1}\ncall 1: two\ninput 1: {\"b\":2}\nToolCalls, 0 in, 0 out"
    );
}

#[test]
fn a_call_waits_for_its_name() {
    let seen = openai(&[
        r#""delta":{"tool_calls":[{"index":0,"id":"a","function":{"arguments":"{\"a\""}}]}"#,
        r#""delta":{"tool_calls":[{"index":0,"function":{"name":"one","arguments":":1}"}}]}"#,
        CALLS_DONE,
        "[DONE]",
    ]);
    assert_eq!(seen, "call 0: one\ninput 0: {\"a\":1}\nToolCalls, 0 in, 0 out");
}

#[test]
fn a_call_that_never_gets_a_name_still_reaches_the_pipeline() {
    let seen = openai(&[
        r#""delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":null,"arguments":"{}"}}]}"#,
        CALLS_DONE,
        "[DONE]",
    ]);
    assert_eq!(seen, "call 0: unnamed\ninput 0: {}\nToolCalls, 0 in, 0 out");
}

#[test]
fn a_name_and_an_id_may_be_repeated() {
    let seen = openai(&[
        r#""delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"one","arguments":"{\"a\""}}]}"#,
        r#""delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"one","arguments":":1}"}}]}"#,
        CALLS_DONE,
        "[DONE]",
    ]);
    assert_eq!(seen, "call 0: one\ninput 0: {\"a\":1}\nToolCalls, 0 in, 0 out");
}

#[test]
fn arguments_may_be_an_object() {
    let seen = openai(&[
        r#""delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"one","arguments":{"a": [1]}}}]}"#,
        CALLS_DONE,
        "[DONE]",
    ]);
    assert_eq!(seen, "call 0: one\ninput 0: {\"a\": [1]}\nToolCalls, 0 in, 0 out");
}

#[test]
fn arguments_that_are_not_json_are_passed_on_as_text() {
    let seen = openai(&[
        r#""delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"one","arguments":"{\"a\": oops"}}]}"#,
        CALLS_DONE,
        "[DONE]",
    ]);
    assert_eq!(seen, "call 0: one\ninput 0: {\"a\": oops\nToolCalls, 0 in, 0 out");
}

#[test]
fn a_call_without_arguments_has_the_empty_object() {
    for arguments in [r#","arguments":"""#, r#","arguments":null"#, ""] {
        let call = format!(
            r#""delta":{{"tool_calls":[{{"index":0,"id":"a","function":{{"name":"one"{arguments}}}}}]}}"#
        );
        assert_eq!(
            openai(&[&call, CALLS_DONE, "[DONE]"]),
            "call 0: one\ninput 0: {}\nToolCalls, 0 in, 0 out"
        );
    }
}

#[test]
fn an_absurd_index_is_a_name_like_any_other() {
    let seen = openai(&[
        r#""delta":{"tool_calls":[{"index":50000000,"id":"a","function":{"name":"one","arguments":"{\"a\""}}]}"#,
        r#""delta":{"tool_calls":[{"index":50000000,"function":{"arguments":":1}"}}]}"#,
        r#""delta":{"tool_calls":[{"index":-1,"id":"b","function":{"name":"two","arguments":"{}"}}]}"#,
        CALLS_DONE,
        "[DONE]",
    ]);
    assert_eq!(
        seen,
        "call 0: one\ninput 0: {\"a\":1}\ncall 1: two\ninput 1: {}\nToolCalls, 0 in, 0 out"
    );
}

#[test]
fn reasoning_comes_under_either_name_and_once() {
    let seen = openai(&[
        r#""delta":{"reasoning":"I think","content":""}"#,
        r#""delta":{"reasoning":", so","reasoning_content":", so"}"#,
        r#""delta":{"content":"I am."}"#,
        r#""delta":{},"finish_reason":"stop""#,
        "[DONE]",
    ]);
    assert_eq!(
        seen,
        "reasoning: I think, so\nsignature: openai:reasoning\ntext: I am.\nStop, 0 in, 0 out"
    );
}

#[test]
fn an_unknown_finish_reason_and_an_empty_usage_do_no_harm() {
    let seen = openai(&[
        r#"{"choices":[{"delta":{"content":"hi"},"finish_reason":"eos_token"}],"usage":{}}"#,
        r#"{"choices":null,"usage":{"prompt_tokens":"many"}}"#,
        r#"{"choices":[],"usage":null,"x_extra":{"a":[1]}}"#,
        "[DONE]",
    ]);
    assert_eq!(seen, "text: hi\nOther, 0 in, 0 out");
}

#[test]
fn stop_after_calls_means_tool_calls() {
    let call = r#""delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"one","arguments":"{}"}}]}"#;
    let seen = openai(&[call, r#""delta":{},"finish_reason":"stop""#, "[DONE]"]);
    assert_eq!(seen, "call 0: one\ninput 0: {}\nToolCalls, 0 in, 0 out");
    let seen = openai(&[call, r#""delta":{},"finish_reason":"length""#, "[DONE]"]);
    assert_eq!(seen, "call 0: one\ninput 0: {}\nLength, 0 in, 0 out");
}

#[test]
fn every_openai_finish_reason_has_its_place() {
    for (theirs, ours) in [
        ("stop", "Stop"),
        ("length", "Length"),
        ("tool_calls", "ToolCalls"),
        ("function_call", "ToolCalls"),
        ("content_filter", "ContentFilter"),
    ] {
        let end = format!(r#""delta":{{}},"finish_reason":"{theirs}""#);
        assert_eq!(openai(&[&end, "[DONE]"]), format!("{ours}, 0 in, 0 out"));
    }
}

#[test]
fn a_server_may_leave_out_the_last_word_after_the_finish() {
    let seen = openai(&[r#""delta":{"content":"hi"},"finish_reason":"stop""#]);
    assert_eq!(seen, "text: hi\nStop, 0 in, 0 out");
}

#[test]
fn a_stream_cut_before_its_end_can_be_asked_for_again() {
    let seen = openai(&[r#""delta":{"content":"hi"}"#]);
    assert_eq!(
        seen,
        "text: hi\nRetryable: the model's stream was cut before its end"
    );
}

#[test]
fn content_may_be_a_list_and_a_refusal_is_text() {
    let seen = openai(&[
        r#""delta":{"content":[{"type":"thinking","thinking":[{"text":"hm"}]},{"type":"text","text":"a"},{"type":"text","text":"b"}]}"#,
        r#""delta":{"refusal":" no"},"finish_reason":"stop""#,
    ]);
    assert_eq!(seen, "text: ab no\nStop, 0 in, 0 out");
}

#[test]
fn what_a_compatible_server_attaches_to_a_call_is_kept() {
    let seen = openai(&[
        r#""delta":{"tool_calls":[{"index":0,"id":"a","extra_content":{"google":{"thought_signature":"sig"}},"function":{"name":"one","arguments":"{}"}}]}"#,
        CALLS_DONE,
        "[DONE]",
    ]);
    assert_eq!(
        seen,
        "call 0: one\ninput 0: {}\nsignature 0: openai:{\"google\":{\"thought_signature\":\"sig\"}}\nToolCalls, 0 in, 0 out"
    );
}

#[test]
fn an_error_in_mid_stream_says_whether_to_ask_again() {
    for (error, expected) in [
        (
            r#"{"message":"overloaded","type":"server_error"}"#,
            "Retryable: the model stopped with an error: overloaded (server_error)",
        ),
        (
            r#"{"message":"slow down","code":429}"#,
            "Retryable: the model stopped with an error: slow down (429)",
        ),
        (
            r#"{"message":"too long","code":"context_length_exceeded"}"#,
            "TooLong: the model stopped with an error: too long (context_length_exceeded)",
        ),
        (
            r#"{"message":"bad","type":"invalid_request_error","code":null}"#,
            "Final: the model stopped with an error: bad (invalid_request_error)",
        ),
        (
            r#""just words""#,
            "Retryable: the model stopped with an error: just words",
        ),
        (
            r#"{}"#,
            "Retryable: the model stopped with an error: no reason given",
        ),
    ] {
        let seen = openai(&[r#""delta":{"content":"hi"}"#, &format!("{{\"error\":{error}}}")]);
        assert!(seen.ends_with(expected), "{seen}");
    }
    let seen = anthropic(&[r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#]);
    assert_eq!(
        seen,
        "Retryable: the model stopped with an error: Overloaded (overloaded_error)"
    );
    let seen = google(&[r#"{"error":{"code":400,"message":"Bad.","status":"INVALID_ARGUMENT"}}"#]);
    assert_eq!(
        seen,
        "Final: the model stopped with an error: Bad. (INVALID_ARGUMENT)"
    );
    let seen = google(&[r#"{"error":{"code":503,"message":"Busy.","status":"UNAVAILABLE"}}"#]);
    assert_eq!(
        seen,
        "Retryable: the model stopped with an error: Busy. (UNAVAILABLE)"
    );
}

#[test]
fn an_event_that_is_not_json_can_be_asked_for_again() {
    for provider in [Provider::Openai, Provider::Anthropic, Provider::Google] {
        let seen = replay(provider, [&b"data: {\"choices\":[\xff]}\n\n"[..]]);
        assert!(seen.starts_with("Retryable: the model sent an event"), "{seen}");
    }
}

#[test]
fn anthropic_events_of_tomorrow_are_skipped() {
    let seen = anthropic(&[
        r#"{"type":"message_start","message":{"usage":{"input_tokens":3}}}"#,
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"server_tool_use","id":"x","name":"web_search","input":{}}}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{}"}}"#,
        r#"{"type":"content_block_delta","index":1,"delta":{"type":"hologram_delta","rays":[1]}}"#,
        r#"{"type":"weather_report","sun":true}"#,
        r#"{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"ok"}}"#,
        r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{}}"#,
        r#"{"type":"message_stop"}"#,
    ]);
    assert_eq!(seen, "text: ok\nStop, 3 in, 0 out");
}

#[test]
fn an_anthropic_call_may_come_whole_with_its_start() {
    let seen = anthropic(&[
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"x","name":"one","input":{"a":1}}}"#,
        r#"{"type":"content_block_stop","index":0}"#,
        r#"{"type":"message_delta","delta":{"stop_reason":"tool_use"}}"#,
        r#"{"type":"message_stop"}"#,
    ]);
    assert_eq!(seen, "call 0: one\ninput 0: {\"a\":1}\nToolCalls, 0 in, 0 out");
}

#[test]
fn anthropic_thinking_that_is_not_shown_keeps_its_signature() {
    let seen = anthropic(&[
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"abc"}}"#,
        r#"{"type":"content_block_stop","index":0}"#,
        r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"}}"#,
        r#"{"type":"message_stop"}"#,
    ]);
    assert_eq!(seen, "signature: anthropic:abc\nStop, 0 in, 0 out");
}

#[test]
fn every_anthropic_stop_reason_has_its_place() {
    for (theirs, ours) in [
        ("end_turn", "Stop"),
        ("stop_sequence", "Stop"),
        ("max_tokens", "Length"),
        ("model_context_window_exceeded", "Length"),
        ("tool_use", "ToolCalls"),
        ("refusal", "ContentFilter"),
        ("pause_turn", "Other"),
        ("bored", "Other"),
    ] {
        let end = format!(r#"{{"type":"message_delta","delta":{{"stop_reason":"{theirs}"}}}}"#);
        assert_eq!(
            anthropic(&[&end, r#"{"type":"message_stop"}"#]),
            format!("{ours}, 0 in, 0 out")
        );
    }
}

#[test]
fn every_google_finish_reason_has_its_place() {
    for (theirs, ours) in [
        ("STOP", "Stop, 0 in, 0 out"),
        ("MAX_TOKENS", "Length, 0 in, 0 out"),
        ("SAFETY", "ContentFilter, 0 in, 0 out"),
        ("RECITATION", "ContentFilter, 0 in, 0 out"),
        ("PROHIBITED_CONTENT", "ContentFilter, 0 in, 0 out"),
        ("OTHER", "Other, 0 in, 0 out"),
        ("NEW_AND_STRANGE", "Other, 0 in, 0 out"),
        (
            "MALFORMED_FUNCTION_CALL",
            "Retryable: the model stopped with MALFORMED_FUNCTION_CALL",
        ),
    ] {
        assert_eq!(
            google(&[&format!(r#"{{"candidates":[{{"finishReason":"{theirs}"}}]}}"#)]),
            ours
        );
    }
    let blocked =
        google(&[r#"{"promptFeedback":{"blockReason":"SAFETY"},"usageMetadata":{"promptTokenCount":4}}"#]);
    assert_eq!(blocked, "ContentFilter, 4 in, 0 out");
}
