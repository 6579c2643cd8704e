//! Scripts in a realm: data in, data out.

mod intl;
mod surface;

use std::collections::VecDeque;
use std::time::Duration;

use toolgate_script::{Failure, FailureKind, Host, HostGone, Limits, LogLevel, Operation, Realm, Script};

const LIMITS: Limits = Limits {
    cpu: Duration::from_secs(2),
    memory_bytes: 32 << 20,
    output_bytes: 64 << 10,
};

/// A host that answers fetches with the body it was sent, and storage with `"kept"`.
#[derive(Default)]
struct Echo {
    answers: VecDeque<(u32, Result<String, String>)>,
    begun: Vec<(u32, String)>,
    log: Vec<String>,
    /// Calls that were under way at the same time, at most.
    at_once: usize,
}

impl Host for Echo {
    fn begin(&mut self, id: u32, operation: Operation, body: &str) -> Result<(), HostGone> {
        self.begun.push((id, body.to_owned()));
        let answer = match operation {
            Operation::Fetch if body.contains("refused.example") => {
                Err("no permission names this host".into())
            }
            Operation::Fetch => {
                let answer = serde_json::json!({
                    "url": "https://api.example.com/", "status": 201, "statusText": "Created",
                    "headers": [["Content-Type", "application/json"]], "text": body,
                });
                Ok(answer.to_string())
            }
            Operation::Storage if body.contains("missing") => Ok(String::new()),
            Operation::Storage => Ok(r#""kept""#.into()),
        };
        // The last one that was asked is answered first.
        self.answers.push_front((id, answer));
        self.at_once = self.at_once.max(self.answers.len());
        Ok(())
    }
    fn log(&mut self, level: LogLevel, text: &str) -> Result<(), HostGone> {
        self.log.push(format!("{level:?} {text}"));
        Ok(())
    }
    fn answer(&mut self, wait: Option<Duration>) -> Result<Option<(u32, Result<String, String>)>, HostGone> {
        let answer = self.answers.pop_front();
        if answer.is_none() {
            std::thread::sleep(wait.expect("a timer waits, or nothing does"));
        }
        Ok(answer)
    }
}

fn run_with(code: &str, args: &str, limits: Limits, host: &mut Echo) -> Result<String, Failure> {
    let realm = Realm::new().expect("there is memory");
    realm.run(Script { code, args, limits }, host)
}

fn run(code: &str) -> Result<String, Failure> {
    run_with(code, "{}", LIMITS, &mut Echo::default())
}

/// The code gives this JSON.
#[track_caller]
fn gives(code: &str, expected: &str) {
    assert_eq!(run(code).as_deref(), Ok(expected), "{code}");
}

/// The code fails so, with these words.
#[track_caller]
fn fails(code: &str, kind: FailureKind, words: &str) {
    let failure = run(code).expect_err(code);
    assert_eq!((failure.kind, failure.message.as_str()), (kind, words), "{code}");
}

#[test]
fn a_function_body_gets_its_arguments_and_gives_json() {
    let limits = LIMITS;
    let sum = run_with(
        "return {sum: args.a + args.b}",
        r#"{"a": 1, "b": 2}"#,
        limits,
        &mut Echo::default(),
    );
    assert_eq!(sum.as_deref(), Ok(r#"{"sum":3}"#));
    gives("return await Promise.resolve([1, 'x', null])", r#"[1,"x",null]"#);
    gives("", "null");
    gives("return () => 1", "null");
    gives("return 1 // a comment on the last line", "1");
}

#[test]
fn a_failure_has_the_authors_line() {
    fails(
        "const a = 1;\nnothing.at.all",
        FailureKind::Threw,
        "ReferenceError: nothing is not defined (line 2, column 1)",
    );
    fails(
        "throw new TypeError('no')",
        FailureKind::Threw,
        "TypeError: no (line 1, column 11)",
    );
    fails(
        "return await (async () => {\n\n  null.x\n})()",
        FailureKind::Threw,
        "TypeError: cannot read property 'x' of null (line 3, column 3)",
    );
    fails("throw 'only words'", FailureKind::Threw, "only words");
    fails("throw {code: 7}", FailureKind::Threw, r#"{"code":7}"#);
    fails(
        "return 1n",
        FailureKind::Threw,
        "TypeError: BigInt are forbidden in JSON.stringify",
    );
    let failure = run("let a = ;").expect_err("no JavaScript");
    assert_eq!(failure.kind, FailureKind::Syntax);
    assert!(failure.message.ends_with("(line 1, column 9)"), "{failure}");
}

#[test]
fn what_is_no_javascript_is_found_without_running_any() {
    assert_eq!(Realm::check("const x = args.y;\nreturn await x"), Ok(()));
    assert_eq!(
        Realm::check("})(); while (true) {} (() => {"),
        Ok(()),
        "it is not run"
    );
    let failure = Realm::check("const x = 1;\nreturn x +;").expect_err("no JavaScript");
    assert_eq!(failure.kind, FailureKind::Syntax);
    assert!(failure.message.ends_with("(line 2, column 11)"), "{failure}");
    assert_eq!(
        Realm::check("import fs from 'fs'").map_err(|failure| failure.kind),
        Err(FailureKind::Syntax)
    );
}

#[test]
fn limits_end_a_script_with_the_reason() {
    let tight = Limits {
        cpu: Duration::from_millis(50),
        memory_bytes: 4 << 20,
        output_bytes: 100,
    };
    let kind = |code: &str| run_with(code, "{}", tight, &mut Echo::default()).map_err(|failure| failure.kind);
    assert_eq!(kind("while (true) {}"), Err(FailureKind::Timeout));
    assert_eq!(
        kind("while (true) { try { while (true) {} } catch {} finally { continue } }"),
        Err(FailureKind::Timeout)
    );
    assert_eq!(kind("while (true) await null"), Err(FailureKind::Timeout));
    assert_eq!(
        kind("return {toJSON() { while (true) {} }}"),
        Err(FailureKind::Timeout)
    );
    assert_eq!(
        kind("const all = []; while (true) all.push(new Array(1000).fill(1))"),
        Err(FailureKind::Memory)
    );
    assert_eq!(kind("return 'x'.repeat(101)"), Err(FailureKind::OutputTooLarge));
    assert_eq!(
        kind("return 'x'.repeat(98)"),
        Ok(format!("\"{}\"", "x".repeat(98)))
    );
    fails(
        "await new Promise(() => {})",
        FailureKind::Threw,
        "it waits for a promise that nothing will settle",
    );
}

#[test]
fn no_realm_sees_what_another_left_behind() {
    gives("globalThis.left = 1; Object.prototype.left = 2; return left", "1");
    gives("return [typeof left, ({}).left ?? null]", r#"["undefined",null]"#);
}

#[test]
fn host_calls_run_side_by_side_and_no_more_than_permitted() {
    let mut host = Echo::default();
    let code = "const urls = Array.from({length: 20}, (_, n) => `https://api.example.com/${n}`);
        const all = await Promise.all(urls.map((url) => fetch(url, {method: 'post', body: url})));
        return Promise.all(all.map(async (answer) => (await answer.json()).text))";
    let got = run_with(code, "{}", LIMITS, &mut host).expect("all are answered");
    let expected: Vec<String> = (0..20).map(|n| format!("https://api.example.com/{n}")).collect();
    assert_eq!(got, serde_json::to_string(&expected).expect("JSON"));
    assert_eq!(host.at_once, toolgate_script::HOST_CALLS_AT_ONCE);
    assert_eq!(
        host.begun.iter().map(|(id, _)| *id).collect::<Vec<_>>(),
        (0..20).collect::<Vec<_>>()
    );
    fails(
        "for (let n = 0; n < 1000; n++) await storage.get('missing')",
        FailureKind::Threw,
        "RangeError: one call may fetch and use storage 256 times in all (line 1, column 45)",
    );
    fails(
        "await storage.set('k', 'x'.repeat(1 << 20))",
        FailureKind::Threw,
        "RangeError: one request may carry 1048576 bytes and all of a call 8388608 (line 1, column 39)",
    );
}

#[test]
fn the_log_is_kept_in_order_and_has_an_end() {
    let mut host = Echo::default();
    let code = "console.log('a', {b: 1}, undefined); console.warn(); console.error(new Error('e').message);
        for (let n = 0; n < 1000; n++) console.log('x'.repeat(10000))";
    run_with(code, "{}", LIMITS, &mut host).expect("it runs");
    assert_eq!(host.log[..3], ["Info a {\"b\":1} undefined", "Warn ", "Error e"]);
    let bytes: usize = host.log.iter().map(String::len).sum();
    assert!(bytes < toolgate_script::LOG_BYTES_MAX, "{bytes}");

    let mut host = Echo::default();
    let code = "for (let n = 0; n < 1000; n++) console.log()";
    run_with(code, "{}", LIMITS, &mut host).expect("it runs");
    assert_eq!(host.log.len(), 63, "short lines have an end too");
}
