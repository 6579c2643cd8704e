//! Each vendor's documented stream, whole and split at every byte.

use toolgate_engine::model::Model;
use toolgate_kernel::agent::Provider;
use toolgate_models::{ModelSettings, Models};

use crate::asking::{ask, user};
use crate::stand_in::{StandIn, stream};
use crate::trace::{Trace, replay};

macro_rules! recordings {
    ($($name:ident: $provider:ident, $file:literal => $expected:literal;)*) => {
        $( #[test] fn $name() { check(Provider::$provider, include_bytes!(concat!("../fixtures/", $file)), $expected); } )*
        /// All of them.
        const ALL: &[(Provider, &[u8], &str)] =
            &[$( (Provider::$provider, include_bytes!(concat!("../fixtures/", $file)), $expected), )*];
    };
}

recordings! {
    openai_text_reads_the_same_in_any_split: Openai, "openai-text.sse" => "\
text: Hello there, \"friend\"
 – grüße 🎈!
Stop, 82 in, 17 out, 5 thought, 64 cached";

    openai_calls_read_the_same_in_any_split: Openai, "openai-calls.sse" => "\
call 0: get_weather
input 0: {\"location\":\"Paris, France\"}
call 1: get_time
input 1: {\"zone\":\"CET\"}
ToolCalls, 82 in, 17 out, 5 thought, 64 cached";

    reasoning_of_a_compatible_server_reads_the_same_in_any_split: Openai, "openai-reasoning.sse" => "\
reasoning: The user wants weather.
signature: openai:reasoning_content
text: One moment.
call 0: get_weather
input 0: {}
ToolCalls, 9 in, 12 out, 8 thought, 0 cached";

    anthropic_text_reads_the_same_in_any_split: Anthropic, "anthropic-text.sse" => "\
text: Hello, \"world\" 🎈!
Stop, 25 in, 15 out";

    anthropic_calls_read_the_same_in_any_split: Anthropic, "anthropic-calls.sse" => "\
text: Okay, let me check.
call 0: get_weather
input 0: {\"location\": \"San Francisco, CA\"}
call 1: get_time
input 1: {}
ToolCalls, 602 in, 89 out, 0 thought, 30 cached";

    anthropic_thinking_reads_the_same_in_any_split: Anthropic, "anthropic-thinking.sse" => "\
reasoning: Let me solve this.

1. 27 * 453
signature: anthropic:EqQBCgIYAhIM1gbcDa9GJwZA2b3hGgxBdjrkzLoky3dl1pkiMOYds
signature: anthropic-redacted:EmwKAhgBEgy3va3pzix/LafPsn4a
text: 27 * 453 = 12,231
Stop, 40 in, 61 out";

    google_text_reads_the_same_in_any_split: Google, "google-text.sse" => "\
reasoning: **Considering**

text: AI learns from \"data\" 🎈.
signature: google:CiEB0e2Kb3lv
Stop, 11 in, 27 out, 20 thought, 4 cached";

    google_calls_read_the_same_in_any_split: Google, "google-calls.sse" => "\
call 0: get_weather
input 0: {\"location\": \"Paris\", \"days\": [1, 2]}
signature 0: google:EpYHCpMHAXLI2n
call 1: get_time
input 1: {}
call 2: ping
input 2: {}
ToolCalls, 96 in, 130 out, 100 thought, 0 cached";
}

fn check(provider: Provider, bytes: &[u8], expected: &str) {
    assert_eq!(replay(provider, [bytes]), expected, "whole");
    assert_eq!(replay(provider, bytes.chunks(1)), expected, "byte by byte");
    for split in 0..=bytes.len() {
        let (head, tail) = bytes.split_at(split);
        assert_eq!(replay(provider, [head, tail]), expected, "split at {split}");
    }
}

#[test]
fn a_stream_cut_anywhere_is_never_taken_for_a_whole_reply() {
    for (provider, bytes, whole) in ALL {
        for cut in 0..bytes.len() {
            let seen = replay(*provider, [&bytes[..cut]]);
            let truncated = seen.ends_with("Retryable: the model's stream was cut before its end");
            // The last words of a stream repeat that it is over: without them nothing is missing but figures.
            let said_all = seen.lines().rev().skip(1).eq(whole.lines().rev().skip(1));
            assert!(truncated || said_all, "cut at {cut}: {seen}");
        }
    }
}

#[tokio::test]
async fn every_recording_reads_the_same_over_a_socket() {
    for direct in [true, false] {
        for (provider, bytes, expected) in ALL {
            for size in [7, 100, bytes.len()] {
                let server = StandIn::start([stream(bytes.chunks(size))]).await;
                let models = Models::new(ModelSettings {
                    direct,
                    ..ModelSettings::default()
                });
                let mut trace = Trace::default();
                let ended = models
                    .reply(&ask(*provider, "m", &server.url, vec![user("hi")]), &mut trace)
                    .await;
                assert_eq!(trace.end(ended), *expected, "direct {direct}, chunks of {size}");
            }
        }
    }
}
