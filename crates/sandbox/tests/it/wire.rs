//! What a worker says is untrusted: any bytes may come, and nothing but the exact form is accepted.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use proptest::prelude::*;
use serde_json::json;
use toolgate_kernel::json::Json;
use toolgate_sandbox::{
    FailureKind, FetchRequest, FetchResponse, Host, LogLevel, Said, Sandbox, SandboxOptions, ScriptFailure,
    StorageOp, Wish,
};
use toolgate_script::{HOST_CALLS_AT_ONCE, HOST_CALLS_MAX, Operation};

use crate::{Notebook, job, program};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_096))]

    #[test]
    fn any_frame_is_read_or_refused_and_what_is_read_is_written_the_same(frame in prop::collection::vec(any::<u8>(), 0..64)) {
        if let Ok(said) = Said::parse(&frame) {
            prop_assert_eq!(said.write(), frame);
        }
    }

    #[test]
    fn any_frame_with_a_known_letter_is_read_or_refused(
        letter in prop::sample::select(b"CLDFT".to_vec()), rest in prop::collection::vec(any::<u8>(), 0..64),
    ) {
        let frame = [&[letter][..], &rest].concat();
        if let Ok(said) = Said::parse(&frame) {
            prop_assert_eq!(said.write(), frame);
        }
    }

    #[test]
    fn any_body_of_a_host_call_is_read_or_refused(body in "\\PC{0,80}", json in any_json()) {
        for body in [body, json] {
            for operation in [Operation::Fetch, Operation::Storage] {
                // Whether it is one does not matter here: it ends, and it does not panic.
                let _ = Wish::parse(operation, &body);
            }
        }
    }
}

/// JSON with the members of real bodies, and others.
fn any_json() -> impl Strategy<Value = String> {
    let names = prop::sample::select(vec![
        "op", "key", "value", "prefix", "method", "url", "headers", "text", "base64", "x",
    ]);
    let values = prop_oneof![
        Just(json!(null)),
        Just(json!("get")),
        Just(json!("set")),
        Just(json!([["a", "b"]])),
        Just(json!({"deep": [1]})),
        any::<i64>().prop_map(|number| json!(number)),
        "\\PC{0,8}".prop_map(|text| json!(text)),
    ];
    prop::collection::btree_map(names, values, 0..6).prop_map(|members| json!(members).to_string())
}

/// A sandbox whose workers say what the code is, and lack this.
fn without(what: &str) -> Sandbox {
    let options = SandboxOptions {
        without: vec![what.into()],
        ..SandboxOptions::default()
    };
    Sandbox::new(program(), options)
}

fn frame(bytes: &[u8]) -> Vec<u8> {
    let length = u32::try_from(bytes.len()).expect("a short frame");
    [&length.to_be_bytes()[..], bytes].concat()
}

async fn says(sandbox: &Sandbox, bytes: &[u8]) -> Result<serde_json::Value, ScriptFailure> {
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let mut job = job(1, &hex, json!({}));
    job.limits.wall = Duration::from_secs(2);
    let host = Arc::new(Notebook::default());
    sandbox.run(job, host).await.map(|output| output.to_value())
}

fn call(id: u32) -> Vec<u8> {
    let body = br#"{"op":"get","key":"a"}"#;
    frame(&[b"C", &id.to_be_bytes()[..], b"s", body].concat())
}

#[tokio::test]
async fn a_worker_that_lies_fails_its_own_call() {
    let sandbox = without("honesty");
    assert_eq!(
        says(&sandbox, &frame(b"D\x00[1]")).await,
        Ok(json!([1])),
        "one that tells the truth is believed"
    );
    let answered = [call(0), call(1), frame(b"D\x00null")].concat();
    assert_eq!(says(&sandbox, &answered).await, Ok(json!(null)));
    let many_logs = frame(&[b"Li", "x".repeat(4000).as_bytes()].concat()).repeat(20);
    let lies: Vec<(&str, Vec<u8>, FailureKind)> = vec![
        ("an empty frame", frame(b""), FailureKind::Forbidden),
        ("an unknown letter", frame(b"Xhello"), FailureKind::Forbidden),
        ("a length without end", vec![0xff; 8], FailureKind::Crashed),
        (
            "a result that is no JSON",
            frame(b"D\x00{"),
            FailureKind::OutputTooLarge,
        ),
        (
            "a result that is not Unicode",
            frame(b"D\x00\"\xff\""),
            FailureKind::Forbidden,
        ),
        (
            "a result that nests too deep",
            frame(&[b"D\x00", "[".repeat(999).as_bytes(), "]".repeat(999).as_bytes()].concat()),
            FailureKind::OutputTooLarge,
        ),
        (
            "a result that is too long",
            frame(&[b"D\x00\"", "x".repeat(100_000).as_bytes(), b"\""].concat()),
            FailureKind::OutputTooLarge,
        ),
        ("a flag that is none", frame(b"D\x07null"), FailureKind::Forbidden),
        ("a call with another's id", call(7), FailureKind::Forbidden),
        (
            "a call twice",
            [call(0), call(0)].concat(),
            FailureKind::Forbidden,
        ),
        (
            "calls at once without end",
            (0..300).flat_map(call).collect(),
            FailureKind::Forbidden,
        ),
        ("a log without end", many_logs, FailureKind::Forbidden),
        (
            "an answer to what nobody asked",
            frame(b"Tso"),
            FailureKind::Forbidden,
        ),
        (
            "an unknown failure",
            frame(b"F\x00zwords"),
            FailureKind::Forbidden,
        ),
        ("silence", vec![], FailureKind::Timeout),
        ("half a frame", vec![0, 0, 0, 9, b'D'], FailureKind::Timeout),
    ];
    for (name, bytes, kind) in lies {
        let failed = says(&sandbox, &bytes).await.expect_err(name);
        assert_eq!(failed.kind, kind, "{name}: {failed}");
    }
}

/// Answers every request at once with as much as a response may have, and counts them.
#[derive(Default)]
struct Generous {
    fetched: AtomicUsize,
}

#[async_trait]
impl Host for Generous {
    async fn fetch(&self, request: FetchRequest) -> Result<FetchResponse, String> {
        self.fetched.fetch_add(1, Ordering::Relaxed);
        Ok(FetchResponse {
            status: 200,
            url: request.url,
            headers: Vec::new(),
            body: vec![b'x'; 2 << 20],
        })
    }
    async fn storage(&self, _: StorageOp) -> Result<Option<Json>, String> {
        Ok(None)
    }
    fn log(&self, _: LogLevel, _: &str) {}
}

#[tokio::test]
async fn a_worker_that_reads_no_answer_makes_the_gateway_keep_few_of_them() {
    let body = br#"{"method":"GET","url":"https://example.com/","headers":[]}"#;
    let calls: Vec<u8> = (0..HOST_CALLS_MAX)
        .flat_map(|id| frame(&[b"C", &id.to_be_bytes()[..], b"f", body].concat()))
        .collect();
    let hex: String = calls.iter().map(|byte| format!("{byte:02x}")).collect();
    let host = Arc::new(Generous::default());
    let ran = without("ears").run(job(1, &hex, json!({})), host.clone()).await;
    assert_eq!(ran.expect_err("it is ended").kind, FailureKind::Forbidden);
    // One answer waits, and those under way may have been asked for.
    let fetched = host.fetched.load(Ordering::Relaxed);
    assert!(fetched <= HOST_CALLS_AT_ONCE + 1, "{fetched} answers");
}

#[tokio::test]
async fn large_answers_reach_code_that_asks_for_many_at_once() {
    let code = "
        const sizes = [];
        for (let round = 0; round < 2; round++) {
            const answers = await Promise.all([1, 2, 3, 4, 5, 6].map((n) => fetch(`https://example.com/${n}`)));
            for (let spin = 0; spin < 50; spin++) console.log('x'.repeat(100));
            for (const answer of answers) sizes.push((await answer.text()).length);
        }
        return sizes.every((size) => size === 2 << 20) && sizes.length";
    let mut job = job(1, code, json!({}));
    job.limits.memory_bytes = 128 << 20;
    job.limits.cpu = Duration::from_secs(20);
    job.limits.wall = Duration::from_secs(600);
    let sandbox = Sandbox::new(program(), SandboxOptions::default());
    let ran = sandbox.run(job, Arc::new(Generous::default())).await;
    assert_eq!(ran.map(|output| output.to_value()), Ok(json!(12)));
}
