//! Sending, sending again, breaking off, keeping pace. Time is held: no test waits.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Notify, mpsc};
use tokio::time::Instant;
use toolgate_engine::model::Model;
use toolgate_kernel::agent::{Provider, Secret};
use toolgate_models::{ModelSettings, Models};

use crate::asking::{ask, user};
use crate::stand_in::{Act, Answer, STREAM, StandIn, chunk, refusal, stream, write};
use crate::trace::Trace;

const HELLO: &str = "data: {\"choices\":[{\"delta\":{\"content\":\"hello\"}}]}\n\n";
const END: &str = "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
const SAID: &str = "text: hello\nStop, 0 in, 0 out";

fn hello() -> Answer {
    stream([HELLO.as_bytes(), END.as_bytes()])
}

fn models(direct: bool) -> Models {
    Models::new(ModelSettings {
        direct,
        ..ModelSettings::default()
    })
}

/// What a reply looks like that is asked of a server which gives these answers, and how long it took.
async fn check(direct: bool, answers: Vec<Answer>) -> (String, Duration, usize) {
    let server = StandIn::start(answers).await;
    let mut trace = Trace::default();
    let begun = Instant::now();
    let asked = ask(Provider::Openai, "m", &server.url, vec![user("hi")]);
    let ended = models(direct).reply(&asked, &mut trace).await;
    let address = server.url.trim_start_matches("http://");
    let address = address.split('/').next().unwrap();
    let told = trace.end(ended).replace(address, "HOST:PORT");
    (told, begun.elapsed(), server.seen().len())
}

#[tokio::test(start_paused = true)]
async fn a_passing_failure_is_asked_again_after_a_growing_wait() {
    for direct in [true, false] {
        for status in [408, 409, 429, 500, 502, 503, 529] {
            let busy = || refusal(status, "", "{}");
            let (seen, took, asked) = check(direct, vec![busy(), busy(), hello()]).await;
            assert_eq!((seen.as_str(), asked), (SAID, 3), "{status}");
            assert!(
                (Duration::from_millis(750)..Duration::from_millis(1600)).contains(&took),
                "{took:?}"
            );
        }
    }
}

#[tokio::test(start_paused = true)]
async fn the_wait_is_the_one_the_vendor_asks_for() {
    let (seen, took, _) = check(true, vec![refusal(429, "retry-after: 7\r\n", "{}"), hello()]).await;
    assert_eq!(seen, SAID);
    assert!(
        (Duration::from_secs(7)..Duration::from_millis(7100)).contains(&took),
        "{took:?}"
    );
    let (seen, took, _) = check(
        true,
        vec![refusal(429, "retry-after-ms: 1500\r\n", "{}"), hello()],
    )
    .await;
    assert_eq!(seen, SAID);
    assert!(
        (Duration::from_millis(1500)..Duration::from_millis(1600)).contains(&took),
        "{took:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_long_wait_is_left_to_the_engine() {
    let slow = r#"{"error":{"message":"Slow down.","type":"rate_limit_error"}}"#;
    let (seen, took, asked) = check(true, vec![refusal(429, "retry-after: 90\r\n", slow), hello()]).await;
    assert_eq!(
        seen,
        "Retryable: HOST:PORT answered 429: Slow down. (rate_limit_error), after 90s"
    );
    assert!(took < Duration::from_secs(1) && asked == 1);
    let (seen, ..) = check(true, vec![refusal(503, "retry-after: 1e18\r\n", "{}")]).await;
    assert_eq!(seen, "Retryable: HOST:PORT answered 503: {}, after 3600s");
}

#[tokio::test(start_paused = true)]
async fn tries_are_counted() {
    let (seen, _, asked) = check(true, (0..4).map(|_| refusal(500, "", "oops")).collect()).await;
    assert_eq!(
        (seen.as_str(), asked),
        ("Retryable: HOST:PORT answered 500: oops", 3)
    );
}

#[tokio::test(start_paused = true)]
async fn a_lasting_failure_is_not_asked_again() {
    for direct in [true, false] {
        for status in [301, 400, 401, 403, 404, 413, 422] {
            let body = r#"{"error":{"message":"No.","code":"nope"}}"#;
            let (seen, _, asked) =
                check(direct, vec![refusal(status, "location: /\r\n", body), hello()]).await;
            // One that is too large is asked again by the engine, with less in it.
            let kind = if status == 413 { "TooLong: " } else { "Final: " };
            assert!(seen.starts_with(kind) && asked == 1, "{status}: {seen}");
        }
    }
    let quota = r#"{"error":{"message":"You exceeded your quota.","code":"insufficient_quota"}}"#;
    let (seen, _, asked) = check(true, vec![refusal(429, "retry-after: 1\r\n", quota), hello()]).await;
    assert_eq!(
        seen,
        "Final: HOST:PORT answered 429: You exceeded your quota. (insufficient_quota)"
    );
    assert_eq!(asked, 1);
}

#[tokio::test(start_paused = true)]
async fn an_error_with_status_200_is_an_error() {
    let (seen, ..) = check(
        true,
        vec![refusal(200, "", r#"{"error":{"message":"No.","code":404}}"#)],
    )
    .await;
    assert_eq!(seen, "Final: the model stopped with an error: No. (404)");
    let (seen, ..) = check(true, vec![refusal(200, "", r#"{"choices":[]}"#)]).await;
    assert_eq!(
        seen,
        "Final: HOST:PORT answered with application/json, expected an event stream, check the path of baseUrl: \
         {\"choices\":[]}"
    );
    let (seen, ..) = check(
        true,
        vec![refusal(
            400,
            "",
            r#"[{"error":{"message":"Bad.","status":"INVALID_ARGUMENT"}}]"#,
        )],
    )
    .await;
    assert_eq!(seen, "Final: HOST:PORT answered 400: Bad. (INVALID_ARGUMENT)");
}

#[tokio::test(start_paused = true)]
async fn a_page_in_place_of_a_stream_is_shown_with_its_server() {
    let page = "<html>\n  <h1>It works!</h1>\n</html>";
    let answer = |kind: &str| {
        let length = page.len();
        vec![write(format!(
            "HTTP/1.1 200 OK\r\n{kind}content-length: {length}\r\n\r\n{page}"
        ))]
    };
    for direct in [true, false] {
        for (header, told) in [
            ("content-type: text/html; charset=utf-8\r\n", "with text/html"),
            // What may be a stream by its type is read to its end.
            ("content-type: text/plain\r\n", "with text/plain"),
            ("", "without a content type"),
        ] {
            let (seen, _, asked) = check(direct, vec![answer(header), hello()]).await;
            assert_eq!(
                seen,
                format!(
                    "Final: HOST:PORT answered {told}, expected an event stream, check the path of baseUrl: <html> \
                     <h1>It works!</h1> </html>"
                )
            );
            assert_eq!(asked, 1, "the same comes again");
        }
    }
    // A stream of another type, and one that was cut before its first event.
    let plain =
        format!("HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\nconnection: close\r\n\r\n{HELLO}{END}");
    assert_eq!(check(true, vec![vec![write(plain), Act::Close]]).await.0, SAID);
    let cut = vec![write(STREAM), chunk(b": still thinking\n\n"), Act::Close];
    let (seen, ..) = check(true, vec![cut]).await;
    assert_eq!(
        seen,
        "Retryable: the model's stream from HOST:PORT was cut before its end"
    );
}

#[tokio::test(start_paused = true)]
async fn a_server_that_wants_a_key_is_told_apart_from_one_that_rejects_it() {
    let answers = [
        refusal(401, "", "The key has expired."),
        refusal(401, "", r#"{"error":{"message":"No key.","code":"no_key"}}"#),
    ];
    let server = StandIn::start(answers).await;
    let mut asked = ask(Provider::Openai, "m", &server.url, vec![user("hi")]);
    asked.model.api_key = Some(Secret::new("sk-secret"));
    let error = models(true)
        .reply(&asked, &mut Trace::default())
        .await
        .unwrap_err();
    assert!(
        error
            .message
            .ends_with(" rejected the API key (401): The key has expired."),
        "{error}"
    );
    assert_eq!(error.status, Some(401));
    asked.model.api_key = None;
    let error = models(true)
        .reply(&asked, &mut Trace::default())
        .await
        .unwrap_err();
    assert!(
        error.message.contains("none is set")
            && error.message.contains("TOOLGATE_MODEL_API_KEY")
            && error.message.ends_with(": No key. (no_key)"),
        "{error}"
    );
}

#[tokio::test(start_paused = true)]
async fn no_error_tells_the_key() {
    let quoting =
        r#"{"error":{"message":"Incorrect API key provided: sk-secret.","code":"invalid_api_key"}}"#;
    for status in [400, 401, 403] {
        let (seen, ..) = check(true, vec![refusal(status, "", quoting)]).await;
        let words = "Incorrect API key provided: ***. (invalid_api_key)";
        assert!(seen.contains(words) && !seen.contains("sk-secret"), "{seen}");
        // A page that is quoted to the middle of the key.
        for letters in 5..9 {
            let page = "-".repeat(200 - letters) + "sk-secret";
            let (seen, ..) = check(true, vec![refusal(status, "", &page)]).await;
            assert!(seen.ends_with("-***") && !seen.contains("sk-se"), "{seen}");
        }
        // Vendors quote a few letters.
        let (seen, ..) = check(true, vec![refusal(status, "", "no such key: sk-s***ret")]).await;
        assert!(seen.ends_with("no such key: sk-s***ret"), "{seen}");
    }
    let server = StandIn::start([refusal(401, "", r#"{"detail":"no such key: a\/secret"}"#)]).await;
    let mut asked = ask(Provider::Openai, "m", &server.url, vec![user("hi")]);
    asked.model.api_key = Some(Secret::new("a/secret"));
    let error = models(true)
        .reply(&asked, &mut Trace::default())
        .await
        .unwrap_err();
    assert!(
        error.message.ends_with(r#"{"detail":"no such key: ***"}"#),
        "{error}"
    );
    let mut late = stream([HELLO.as_bytes(), format!("data: {quoting}\n\n").as_bytes()]);
    late.push(Act::Close);
    let (seen, ..) = check(true, vec![late]).await;
    assert!(
        seen.contains("key provided: ***") && !seen.contains("sk-secret"),
        "{seen}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_long_message_is_cut() {
    let long = format!(r#"{{"error":{{"message":"{}"}}}}"#, "ö".repeat(3000));
    let (seen, ..) = check(true, vec![refusal(400, "", &long)]).await;
    assert!(seen.chars().count() < 420 && seen.ends_with('…'), "{seen}");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_is_not_there_is_tried_again() {
    let gone = StandIn::start([]).await.url.clone();
    for (direct, url) in [
        (true, gone.clone()),
        (false, gone.clone()),
        (true, gone.replace("http:", "https:")),
    ] {
        let begun = Instant::now();
        let asked = ask(Provider::Openai, "m", &url, vec![user("hi")]);
        let error = models(direct)
            .reply(&asked, &mut Trace::default())
            .await
            .unwrap_err();
        assert!(error.message.starts_with("cannot reach 127.0.0.1:"), "{error}");
        assert!(begun.elapsed() >= Duration::from_millis(750));
    }
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_breaks_midway_can_be_asked_for_again() {
    for direct in [true, false] {
        let broken = || vec![write(STREAM), chunk(HELLO.as_bytes()), Act::Close];
        let (seen, _, asked) = check(direct, vec![broken(), hello()]).await;
        assert_eq!(
            seen,
            "text: hello\nRetryable: the model's stream from HOST:PORT was cut before its end"
        );
        assert_eq!(asked, 1, "what was shown is not asked for again here");
    }
}

#[tokio::test(start_paused = true)]
async fn a_whole_reply_is_whole_even_when_the_connection_breaks_after_it() {
    for direct in [true, false] {
        let answer = vec![write(STREAM), chunk([HELLO, END].concat().as_bytes()), Act::Close];
        assert_eq!(check(direct, vec![answer]).await.0, SAID);
    }
}

#[tokio::test(start_paused = true)]
async fn a_body_may_come_with_a_length_or_end_with_the_connection() {
    for direct in [true, false] {
        let body = [HELLO, END].concat();
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n";
        let sized = vec![write(format!(
            "{head}content-length: {}\r\n\r\n{body}",
            body.len()
        ))];
        assert_eq!(check(direct, vec![sized]).await.0, SAID);
        let open = vec![
            write(format!("{head}connection: close\r\n\r\n{body}")),
            Act::Close,
        ];
        assert_eq!(check(direct, vec![open]).await.0, SAID);
    }
}

#[tokio::test(start_paused = true)]
async fn silence_ends_a_reply() {
    for direct in [true, false] {
        let (_never, signal) = mpsc::unbounded_channel();
        let mute = vec![write(STREAM), chunk(HELLO.as_bytes()), Act::Await(signal)];
        let (seen, took, _) = check(direct, vec![mute]).await;
        assert_eq!(
            seen,
            "text: hello\nRetryable: HOST:PORT sent nothing for 300s in the middle of its reply, vendors.idle_timeout sets the limit"
        );
        assert!(
            (Duration::from_secs(300)..Duration::from_secs(301)).contains(&took),
            "{took:?}"
        );

        let (_never, signal) = mpsc::unbounded_channel();
        let (seen, _, asked) = check(direct, vec![vec![Act::Await(signal)]]).await;
        assert_eq!(
            (seen.as_str(), asked),
            (
                "Retryable: HOST:PORT did not answer within 300s, vendors.idle_timeout sets the limit",
                1
            )
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_slow_reply_may_take_longer_than_the_longest_silence() {
    let pause = || Act::Wait(Duration::from_secs(200));
    let slow = vec![
        write(STREAM),
        pause(),
        chunk(HELLO.as_bytes()),
        pause(),
        chunk(END.as_bytes()),
        write("0\r\n\r\n"),
    ];
    let (seen, took, _) = check(true, vec![slow]).await;
    assert_eq!(seen, SAID);
    assert!(took >= Duration::from_secs(400));
}

#[tokio::test(start_paused = true)]
async fn dropping_a_reply_closes_its_connection() {
    for direct in [true, false] {
        let closed = Arc::new(Notify::new());
        let answer = vec![
            write(STREAM),
            chunk(HELLO.as_bytes()),
            Act::AwaitClosed(closed.clone()),
        ];
        let server = StandIn::start([answer]).await;
        let (shown, mut seen) = mpsc::unbounded_channel();
        let asked = ask(Provider::Openai, "m", &server.url, vec![user("hi")]);
        let models = models(direct);
        let mut trace = Trace::telling(shown);
        tokio::select! {
            ended = models.reply(&asked, &mut trace) => panic!("{ended:?}"),
            _ = seen.recv() => {}
        }
        closed.notified().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_connection_serves_many_replies() {
    for direct in [true, false] {
        let server = StandIn::start((0..5).map(|_| hello())).await;
        let models = models(direct);
        for _ in 0..5 {
            let mut trace = Trace::default();
            let asked = ask(Provider::Openai, "m", &server.url, vec![user("hi")]);
            let ended = models.reply(&asked, &mut trace).await;
            assert_eq!(trace.end(ended), SAID);
        }
        assert_eq!(server.connections(), 1, "direct {direct}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_the_server_closed_meanwhile_is_replaced_without_a_word() {
    for direct in [true, false] {
        let closing = || hello().into_iter().chain([Act::Close]).collect::<Answer>();
        let server = StandIn::start((0..3).map(|_| closing())).await;
        let models = models(direct);
        let begun = Instant::now();
        for _ in 0..3 {
            let mut trace = Trace::default();
            let asked = ask(Provider::Openai, "m", &server.url, vec![user("hi")]);
            let ended = models.reply(&asked, &mut trace).await;
            assert_eq!(trace.end(ended), SAID);
        }
        assert!(
            begun.elapsed() < Duration::from_millis(400),
            "no wait between tries"
        );
        assert_eq!(server.connections(), 3);
    }
}

#[tokio::test(start_paused = true)]
async fn a_fast_model_is_read_in_few_large_reads_after_its_first_word() {
    let (shown, seen) = mpsc::unbounded_channel();
    let mut answer = vec![write(STREAM), chunk(HELLO.as_bytes()), Act::Await(seen)];
    // No more than TCP sends without hearing from the reader.
    answer.extend((0..6).map(|_| chunk(HELLO.as_bytes())));
    answer.extend([chunk(END.as_bytes()), write("0\r\n\r\n")]);
    let server = StandIn::start([answer]).await;
    let models = Models::new(ModelSettings {
        pace: Duration::from_secs(60),
        ..ModelSettings::default()
    });
    let begun = Instant::now();
    let mut trace = Trace::telling(shown);
    let asked = ask(Provider::Openai, "m", &server.url, vec![user("hi")]);
    let ended = models.reply(&asked, &mut trace).await;
    let rest = "hello".repeat(6);
    assert_eq!(
        trace.end(ended),
        format!("text: hello\nflush\ntext: {rest}\nflush\nStop, 0 in, 0 out")
    );
    assert!((Duration::from_secs(60)..Duration::from_secs(61)).contains(&begun.elapsed()));
}

#[tokio::test(start_paused = true)]
async fn a_slow_model_is_read_word_by_word() {
    let mut answer = vec![write(STREAM)];
    for _ in 0..3 {
        answer.extend([Act::Wait(Duration::from_millis(20)), chunk(HELLO.as_bytes())]);
    }
    answer.extend([
        Act::Wait(Duration::from_millis(20)),
        chunk(END.as_bytes()),
        write("0\r\n\r\n"),
    ]);
    let server = StandIn::start([answer]).await;
    let models = Models::new(ModelSettings {
        pace: Duration::from_secs(60),
        ..ModelSettings::default()
    });
    let begun = Instant::now();
    let mut trace = Trace::with_flushes();
    let asked = ask(Provider::Openai, "m", &server.url, vec![user("hi")]);
    let ended = models.reply(&asked, &mut trace).await;
    assert_eq!(
        trace.end(ended),
        format!("{}Stop, 0 in, 0 out", "text: hello\nflush\n".repeat(3))
    );
    assert!(begun.elapsed() < Duration::from_secs(1));
}

#[tokio::test(start_paused = true)]
async fn words_that_come_together_are_given_as_one() {
    let server = StandIn::start([stream([[HELLO, HELLO, HELLO, END].concat().as_bytes()])]).await;
    let mut trace = Trace::with_flushes();
    let asked = ask(Provider::Openai, "m", &server.url, vec![user("hi")]);
    let ended = models(true).reply(&asked, &mut trace).await;
    assert_eq!(
        trace.end(ended),
        "text: hellohellohello\nflush\nStop, 0 in, 0 out"
    );
}

#[tokio::test(start_paused = true)]
async fn the_gateways_key_goes_to_no_other_server() {
    let server = StandIn::start([hello(), hello()]).await;
    let models = Models::new(ModelSettings {
        openai_key: Some(Secret::new("sk-gateway")),
        ..ModelSettings::default()
    });
    let mut asked = ask(Provider::Openai, "m", &server.url, vec![user("hi")]);
    models.reply(&asked, &mut Trace::default()).await.unwrap();
    asked.model.api_key = None;
    models.reply(&asked, &mut Trace::default()).await.unwrap();
    let seen = server.seen();
    assert!(seen[0].contains("authorization: Bearer sk-secret\r\n"));
    assert!(!seen[1].contains("authorization"));
}

#[tokio::test(start_paused = true)]
async fn a_vendor_without_a_key_is_not_asked() {
    for (provider, name, setting) in [
        (Provider::Openai, "OpenAI", "openai_key"),
        (Provider::Anthropic, "Anthropic", "anthropic_key"),
        (Provider::Google, "Google", "google_key"),
    ] {
        let mut asked = ask(provider, "m", "", vec![user("hi")]);
        asked.model.base_url = None;
        asked.model.api_key = None;
        let error = models(true)
            .reply(&asked, &mut Trace::default())
            .await
            .unwrap_err();
        assert_eq!(
            error.message,
            format!(
                "there is no API key for {name}, set apiKey in the agent's model or vendors.{setting} in the settings"
            )
        );
    }
}

#[tokio::test(start_paused = true)]
async fn an_address_that_is_none_is_told() {
    for address in ["", "ftp://x/v1", "not a url", "http://", "/v1"] {
        let asked = ask(Provider::Openai, "m", address, vec![user("hi")]);
        let error = models(true)
            .reply(&asked, &mut Trace::default())
            .await
            .unwrap_err();
        assert!(error.message.contains("is not a URL"), "{address}: {error}");
    }
}
