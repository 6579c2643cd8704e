//! A model that follows the script by which the conformance kits of A2A choose what a server does: the last message is
//! the name of a scenario. It makes real runs, so that the kits test the real door.

use std::time::Duration;

use toolgate_engine::model::{Ask, Delta, Ending, ReplySink};
use toolgate_kernel::event::{FinishReason, Usage};
use toolgate_kernel::prompt::Turn;

/// Name of the model, of the provider `demo`.
pub(super) const MODEL: &str = "a2a-conformance";
/// Tool of a client that nobody executes: a call of it makes the task wait for input.
const ASK: &str = "ask";
/// How long the task of a kit stays under way that comes back to its stream.
const HOLD: Duration = Duration::from_secs(4);
/// A part as JSON: the door of A2A makes an artifact of it.
const FILE: &str = r#"{"raw":"dGNr","filename":"output.txt","mediaType":"text/plain"}"#;
const FILE_URL: &str =
    r#"{"url":"https://example.com/output.txt","filename":"output.txt","mediaType":"text/plain"}"#;
const DATA: &str = r#"{"data":{"key":"value","count":42},"mediaType":"application/json"}"#;

/// What a scenario does.
#[derive(Clone, Copy)]
enum Scenario {
    /// Says these pieces of one text.
    Says(&'static [&'static str]),
    /// Waits for input.
    Asks,
    /// Says something after a while.
    Holds,
    /// Refuses.
    Refuses,
}

/// Scenarios by how their names begin; of two that fit the first counts.
const SCENARIOS: [(&str, Scenario); 13] = [
    (
        "tck-stream-artifact-chunked",
        Scenario::Says(&["chunk-1 ", "chunk-2"]),
    ),
    (
        "tck-stream-artifact-text",
        Scenario::Says(&["Streamed text content"]),
    ),
    ("tck-stream-artifact-file", Scenario::Says(&[FILE])),
    ("tck-stream-ordering-001", Scenario::Says(&["Ordered output"])),
    ("tck-stream-001", Scenario::Says(&["Stream hello from TCK"])),
    ("tck-stream-003", Scenario::Says(&["Stream task lifecycle"])),
    ("tck-artifact-text", Scenario::Says(&["Generated text content"])),
    ("tck-artifact-file-url", Scenario::Says(&[FILE_URL])),
    ("tck-artifact-file", Scenario::Says(&[FILE])),
    ("tck-artifact-data", Scenario::Says(&[DATA])),
    ("tck-input-required", Scenario::Asks),
    ("tck-reject-task", Scenario::Refuses),
    ("test-resubscribe-message-id", Scenario::Holds),
];
/// What every other message is answered with.
const OTHERWISE: Scenario = Scenario::Says(&["Hello from TCK"]);

/// Replies to the last message.
pub(super) async fn reply(ask: &Ask, asked: &str, sink: &mut dyn ReplySink) -> Ending {
    let known = SCENARIOS.iter().find(|(name, _)| asked.starts_with(name));
    let ends = |reason| Ending {
        reason,
        usage: Usage {
            input_tokens: 1,
            output_tokens: 1,
            ..Usage::default()
        },
    };
    let is_answered = matches!(ask.turns.last().map(|turn| &**turn), Some(Turn::Results(_)));
    let pieces = match known.map_or(OTHERWISE, |(_, scenario)| *scenario) {
        Scenario::Asks if !is_answered => {
            sink.delta(Delta::CallStart { slot: 0, name: ASK });
            sink.delta(Delta::CallInput { slot: 0, text: "{}" });
            sink.flush();
            return ends(FinishReason::ToolCalls);
        }
        Scenario::Refuses => return ends(FinishReason::ContentFilter),
        Scenario::Asks => &["Thank you."],
        Scenario::Holds => {
            tokio::time::sleep(HOLD).await;
            &["Done."]
        }
        Scenario::Says(pieces) => pieces,
    };
    for piece in pieces {
        sink.delta(Delta::Text(piece));
        sink.flush();
        tokio::task::yield_now().await;
    }
    ends(FinishReason::Stop)
}
