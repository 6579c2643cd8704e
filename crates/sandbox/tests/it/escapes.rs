//! Hostile code, each in a real worker: it is contained, reported with its kind, and somebody else's call succeeds
//! meanwhile.

use std::sync::Arc;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open};
use serde_json::{Value, json};
use toolgate_egress::{AllowList, Egress, Policy};
use toolgate_sandbox::{FailureKind as Kind, GuardedFetch, Host, NoHost, Sandbox, SandboxOptions};

use crate::{Notebook, job, program, sandbox};

/// What must come of it.
enum Comes {
    /// A failure of this kind.
    Fails(Kind),
    /// A failure with these words.
    Says(&'static str),
    /// This result, which shows that it got nothing.
    Gives(Value),
    /// Any of these failures: which limit is met first depends on the machine.
    Either(&'static [Kind]),
}

use Comes::{Either, Fails, Gives, Says};

const TIME: &[Kind] = &[Kind::Timeout];
const TIME_OR_MEMORY: &[Kind] = &[Kind::Timeout, Kind::Memory, Kind::Crashed, Kind::Threw];

/// Name, code, what must come of it.
fn hostile() -> Vec<(&'static str, &'static str, Comes)> {
    vec![
        // Time.
        ("endless loop", "while (true) {}", Either(TIME)),
        (
            "endless loop that catches",
            "for (;;) { try { for (;;) {} } catch {} finally { continue } }",
            Either(TIME),
        ),
        (
            "endless recursion by promise",
            "const f = () => Promise.resolve().then(f); await f()",
            Either(TIME_OR_MEMORY),
        ),
        ("endless await", "while (true) await null", Either(TIME)),
        (
            "endless microtasks",
            "const f = () => queueMicrotask(f); f(); await new Promise(() => {})",
            Either(TIME_OR_MEMORY),
        ),
        (
            "endless timers",
            "const f = () => setTimeout(f, 0); f(); await new Promise(() => {})",
            Either(TIME),
        ),
        (
            "endless generator",
            "function* g() { while (true) yield 1 } for (const x of g()) {}",
            Either(TIME),
        ),
        (
            "endless getter in the result",
            "return {get a() { while (true) {} }}",
            Either(TIME),
        ),
        (
            "endless toJSON",
            "return {toJSON() { while (true) {} }}",
            Either(TIME),
        ),
        (
            "endless thenable",
            "return {then() { while (true) {} }}",
            Either(TIME),
        ),
        (
            "endless proxy",
            "return new Proxy({}, {ownKeys() { while (true) {} }})",
            Either(TIME),
        ),
        (
            "endless error message",
            "throw {get message() { while (true) {} }}",
            Either(TIME),
        ),
        (
            "endless sort",
            "[3, 1, 2].sort(() => { while (true) {} })",
            Either(TIME),
        ),
        (
            "endless replacement",
            "'a'.replace(/a/, () => { while (true) {} })",
            Either(TIME),
        ),
        ("endless eval", "eval('while (true) {}')", Either(TIME)),
        (
            "endless constructor",
            "new Function('while (true) {}')()",
            Either(TIME),
        ),
        (
            "regex bomb",
            "/^(a+)+$/.test('a'.repeat(60) + 'b')",
            Either(TIME_OR_MEMORY),
        ),
        (
            "regex bomb with captures",
            "/(x+x+)+y/.exec('x'.repeat(80))",
            Either(TIME_OR_MEMORY),
        ),
        (
            "never settles",
            "await new Promise(() => {})",
            Says("nothing will settle"),
        ),
        // Native functions that never look at the clock: the kernel ends the process.
        (
            "lastIndexOf bomb",
            "const a = []; a.length = 4294967295; a.lastIndexOf(1)",
            Either(TIME_OR_MEMORY),
        ),
        (
            "join of a huge array",
            "return String(new Array(5e7)).length",
            Either(TIME_OR_MEMORY),
        ),
        (
            "huge power",
            "return String(3n ** 3000000n).length",
            Either(TIME_OR_MEMORY),
        ),
        (
            "huge multiplication",
            "let n = 7n ** 200000n; for (;;) n = n * n",
            Either(TIME_OR_MEMORY),
        ),
        (
            "replaceAll bomb",
            "return 'a'.repeat(3e6).replaceAll('a', 'aaaaaaaaaa').length",
            Either(TIME_OR_MEMORY),
        ),
        (
            "fill of a huge buffer",
            "for (;;) new Uint8Array(2e7).fill(1).indexOf(2)",
            Either(TIME_OR_MEMORY),
        ),
        (
            "blocks the thread",
            "Atomics.wait(new Int32Array(new SharedArrayBuffer(8)), 0, 0)",
            Either(&[Kind::Threw, Kind::Timeout]),
        ),
        // Memory.
        (
            "memory bomb of arrays",
            "const all = []; for (;;) all.push(new Array(1000).fill(all))",
            Fails(Kind::Memory),
        ),
        (
            "memory bomb of text",
            "let s = 'x'; for (;;) s += s",
            Either(TIME_OR_MEMORY),
        ),
        (
            "memory bomb of buffers",
            "const all = []; for (;;) all.push(new ArrayBuffer(1 << 20))",
            Either(TIME_OR_MEMORY),
        ),
        (
            "memory bomb that catches",
            "const all = []; for (;;) { try { for (;;) all.push(new Array(1000).fill(1)) } catch {} }",
            Either(TIME_OR_MEMORY),
        ),
        (
            "one huge buffer",
            "return new ArrayBuffer(1e12)",
            Either(TIME_OR_MEMORY),
        ),
        (
            "huge typed array",
            "return new Float64Array(5e8).length",
            Either(TIME_OR_MEMORY),
        ),
        (
            "map without end",
            "const m = new Map(); for (let n = 0;; n++) m.set(n, {n})",
            Either(TIME_OR_MEMORY),
        ),
        (
            "symbols without end",
            "for (let n = 0;; n++) Symbol.for('s' + n)",
            Either(TIME_OR_MEMORY),
        ),
        (
            "promise flood",
            "const all = []; for (;;) all.push(new Promise(() => {}))",
            Either(TIME_OR_MEMORY),
        ),
        (
            "timer flood",
            "for (;;) setTimeout(() => {}, 1000)",
            Says("1000 timers wait already"),
        ),
        (
            "deep recursion",
            "const f = () => f() + 1; return f()",
            Says("RangeError"),
        ),
        (
            "deep recursion by getter",
            "const o = {get x() { return this.x }}; return o.x",
            Says("RangeError"),
        ),
        (
            "deep JSON",
            "let a = []; for (let n = 0; n < 1e5; n++) a = [a]; return a",
            Either(&[Kind::Threw, Kind::OutputTooLarge]),
        ),
        (
            "deep JSON text",
            "return JSON.parse('['.repeat(1e5) + ']'.repeat(1e5))",
            Either(&[Kind::Threw, Kind::OutputTooLarge]),
        ),
        (
            "deep parser",
            "return eval('('.repeat(1e5))",
            Either(&[Kind::Threw, Kind::Syntax]),
        ),
        (
            "cycle in the result",
            "const a = {}; a.a = a; return a",
            Fails(Kind::Threw),
        ),
        // Output and log.
        (
            "giant output",
            "return 'x'.repeat(1e6)",
            Fails(Kind::OutputTooLarge),
        ),
        (
            "giant output of many",
            "return Array.from({length: 1e5}, (_, n) => n)",
            Fails(Kind::OutputTooLarge),
        ),
        (
            "giant error",
            "throw new Error('x'.repeat(1e6))",
            Fails(Kind::Threw),
        ),
        (
            "log flood",
            "for (let n = 0; n < 500; n++) console.log('x'.repeat(1000)); return 'quiet'",
            Gives(json!("quiet")),
        ),
        (
            "half a character in the result",
            "return '\\ud800'",
            Either(&[Kind::OutputTooLarge, Kind::Threw]),
        ),
        (
            "number that JSON lacks",
            "return [NaN, Infinity, -0]",
            Gives(json!([null, null, 0])),
        ),
        // Ways out of the realm.
        (
            "Function constructor",
            "return new Function('return typeof process + typeof require')()",
            Gives(json!("undefinedundefined")),
        ),
        (
            "constructor climbing",
            "return (() => {}).constructor.constructor('return typeof process')()",
            Gives(json!("undefined")),
        ),
        (
            "constructor climbing by args",
            "return args.constructor.constructor('return typeof globalThis.native')()",
            Gives(json!("undefined")),
        ),
        (
            "async constructor",
            "return new (async () => {}).constructor('return typeof require')()",
            Gives(json!("undefined")),
        ),
        (
            "indirect eval",
            "return (0, eval)('typeof process + typeof Deno')",
            Gives(json!("undefinedundefined")),
        ),
        ("import of os", "await import('os')", Says("could not load")),
        (
            "import of a file",
            "await import('/etc/passwd')",
            Says("could not load"),
        ),
        (
            "import by address",
            "await import('data:text/javascript,export default 1')",
            Says("could not load"),
        ),
        (
            "reading the environment",
            "return typeof process === 'undefined' ? 'none' : process.env",
            Gives(json!("none")),
        ),
        (
            "opening a file",
            "return ['open', 'read', 'loadFile', 'std', 'os', 'fs', 'Deno', 'Bun'].filter((n) => n in globalThis)",
            Gives(json!([])),
        ),
        (
            "opening a socket",
            "return ['WebSocket', 'XMLHttpRequest', 'EventSource', 'Worker', 'net'].filter((n) => n in globalThis)",
            Gives(json!([])),
        ),
        (
            "starting a process",
            "return ['spawn', 'exec', 'fork', 'child_process', 'system'].filter((n) => n in globalThis)",
            Gives(json!([])),
        ),
        (
            "leaving the function",
            "})(), globalThis.out = 1, (async () => {",
            Gives(json!(null)),
        ),
        (
            "leaving the function for a loop",
            "})()}), (function(){ while (true) {} })(), (function(){ (() => {",
            Either(&[Kind::Syntax, Kind::Timeout]),
        ),
        (
            "frames of the caller",
            "return typeof (function f() { return f.caller })()",
            Gives(json!("undefined")),
        ),
        (
            "prototype of everything",
            "Object.prototype.then = function (done) { done('taken') }; return {}",
            Gives(json!("taken")),
        ),
        (
            "patched promises",
            "Promise.prototype.then = () => { throw 1 }; return 2",
            Gives(json!(2)),
        ),
        (
            "patched JSON",
            "JSON.stringify = () => 'forged'; JSON.parse = () => 'forged'; return {a: 1}",
            Gives(json!({"a": 1})),
        ),
        (
            "patched maps break the own call only",
            "Map.prototype.get = () => undefined; await storage.get('a')",
            Fails(Kind::Threw),
        ),
        (
            "frozen globals",
            "Object.freeze(globalThis); return typeof URL",
            Either(&[Kind::Threw]),
        ),
        (
            "stack with inner names",
            "try { null.x } catch (error) { return /toolgate|\\.rs|\\/root|\\/home/.test(error.stack) }",
            Gives(json!(false)),
        ),
        (
            "prepared stack",
            "Error.prepareStackTrace = () => { while (true) {} }; null.x",
            Either(&[Kind::Timeout, Kind::Threw]),
        ),
        (
            "shared memory",
            "return typeof SharedArrayBuffer === 'undefined' || new SharedArrayBuffer(8).byteLength",
            Gives(json!(8)),
        ),
        (
            "random without end",
            "for (;;) crypto.getRandomValues(new Uint8Array(65536))",
            Either(TIME),
        ),
        // Host calls.
        (
            "fetch without permission",
            "await fetch('https://example.com')",
            Says("fetch:HOST"),
        ),
        (
            "storage without permission",
            "await storage.set('a', 1)",
            Says("\"storage\""),
        ),
        (
            "fetch without end",
            "for (;;) await fetch('https://example.com').catch(() => {})",
            Either(&[Kind::Timeout, Kind::Threw]),
        ),
        (
            "fetches at once",
            "await Promise.all(Array.from({length: 1000}, () => fetch('https://example.com')))",
            Fails(Kind::Threw),
        ),
        (
            "huge request",
            "await fetch('https://example.com', {method: 'POST', body: 'x'.repeat(2e6)})",
            Says("1048576 bytes"),
        ),
        (
            "fetch of a file",
            "await fetch('file:///etc/passwd')",
            Says("not permitted"),
        ),
    ]
}

/// Runs hostile code, and looks after a neighbour meanwhile.
async fn contained(
    sandbox: &Sandbox,
    name: &str,
    code: &str,
    comes: &Comes,
    host: Arc<dyn Host>,
) -> Result<(), String> {
    let attack = sandbox.run(job(1, code, json!({})), host);
    let neighbour = sandbox.run(job(2, "return args.n + 1", json!({"n": 1})), Arc::new(NoHost));
    let (attack, neighbour) = tokio::join!(attack, neighbour);
    if neighbour.as_ref().map(|output| output.to_value()) != Ok(json!(2)) {
        return Err(format!("{name}: the neighbour got {neighbour:?}"));
    }
    let fits = match (&attack, comes) {
        (Err(failure), Fails(kind)) => failure.kind == *kind,
        (Err(failure), Says(words)) => failure.message.contains(words),
        (Err(failure), Either(kinds)) => kinds.contains(&failure.kind),
        (Ok(output), Gives(value)) => output.to_value() == *value,
        _ => false,
    };
    fits.then_some(()).ok_or_else(|| format!("{name}: {attack:?}"))
}

#[tokio::test(flavor = "multi_thread")]
async fn hostile_code_is_contained_and_others_do_not_notice() {
    let sandbox = sandbox();
    let hostile = hostile();
    assert!(hostile.len() >= 60, "{}", hostile.len());
    let mut escaped = Vec::new();
    for (name, code, comes) in &hostile {
        escaped.extend(
            contained(&sandbox, name, code, comes, Arc::new(NoHost))
                .await
                .err(),
        );
    }
    assert!(
        escaped.is_empty(),
        "{} of {}: {escaped:#?}",
        escaped.len(),
        hostile.len()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn no_spelling_of_an_inner_address_is_fetched() {
    let sandbox = sandbox();
    // Each is named by a permission where a permission can: what holds is the SSRF guard.
    let addresses = [
        "http://127.0.0.1/",
        "http://localhost/",
        "http://2130706433/",
        "http://0x7f.1/",
        "http://[::1]/",
        "http://[::ffff:127.0.0.1]/",
        "http://169.254.169.254/latest/meta-data/",
        "http://10.0.0.1/",
        "http://192.168.1.1/",
        "http://metadata.google.internal/",
        "http://0.0.0.0/",
    ];
    let client = Egress::new().client(Policy::public(AllowList::default()));
    for address in addresses {
        let host = url::Url::parse(address)
            .expect("an address")
            .host_str()
            .expect("a host")
            .to_owned();
        let pattern = host.parse().into_iter().collect();
        let guarded = Arc::new(GuardedFetch::new(client.clone(), pattern));
        let code = format!("return (await fetch('{address}')).status");
        let failed = sandbox
            .run(job(1, &code, json!({})), guarded)
            .await
            .expect_err(address);
        assert_eq!(failed.kind, Kind::Threw, "{address}: {failed}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn storage_that_refuses_is_an_error_of_the_code() {
    struct Full;
    #[async_trait::async_trait]
    impl Host for Full {
        async fn fetch(
            &self,
            _: toolgate_sandbox::FetchRequest,
        ) -> Result<toolgate_sandbox::FetchResponse, String> {
            std::future::pending().await
        }
        async fn storage(
            &self,
            _: toolgate_sandbox::StorageOp,
        ) -> Result<Option<toolgate_kernel::json::Json>, String> {
            Err("the storage of this plugin is full".into())
        }
        fn log(&self, _: toolgate_sandbox::LogLevel, _: &str) {}
    }
    let sandbox = sandbox();
    let fill = "for (let n = 0;; n++) await storage.set('k' + n, 'x'.repeat(1000))";
    contained(
        &sandbox,
        "filling storage",
        fill,
        &Says("storage of this plugin is full"),
        Arc::new(Full),
    )
    .await
    .unwrap();
    // A host call that never ends is ended with its call.
    let mut hangs = job(1, "await fetch('https://example.com')", json!({}));
    hangs.limits.wall = Duration::from_millis(200);
    let failed = sandbox.run(hangs, Arc::new(Full)).await.expect_err("it hangs");
    assert_eq!(failed.kind, Kind::Timeout);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_worker_of_a_call_may_be_killed_and_only_that_call_fails() {
    // Tells its workers apart from those of other tests.
    let marker = format!("nothing-{}", std::process::id());
    let options = SandboxOptions {
        without: vec![marker.clone()],
        ..SandboxOptions::default()
    };
    let sandbox = Sandbox::new(program(), options);
    let notebook = Arc::new(Notebook::default());
    // It is known to run once it has logged.
    let code = "console.log('here'); await new Promise((done) => setTimeout(done, 20000))";
    let waits = tokio::spawn({
        let (sandbox, notebook) = (sandbox.clone(), notebook.clone());
        async move { sandbox.run(job(1, code, json!({})), notebook).await }
    });
    while notebook.log.lock().unwrap().is_empty() {
        tokio::task::yield_now().await;
    }
    for worker in workers(&marker) {
        let process = pidfd_open(worker, PidfdFlags::empty()).expect("it is there");
        kill_process(worker, Signal::KILL).expect("it is there");
        // Until it has ended: one that is dying still looks alive.
        poll(&mut [PollFd::new(&process, PollFlags::IN)], None).expect("it can be waited for");
    }
    let failed = waits.await.expect("no panic").expect_err("its worker was killed");
    assert_eq!(failed.kind, Kind::Crashed);
    let next = sandbox.run(job(1, "return 1", json!({})), Arc::new(NoHost)).await;
    assert_eq!(next.map(|output| output.to_value()), Ok(json!(1)));
}

/// The workers that were started with this word.
fn workers(marker: &str) -> Vec<Pid> {
    let processes = std::fs::read_dir("/proc").expect("processes").flatten();
    let ids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let marked = |id: &i32| {
        let line = std::fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line)
            .split('\0')
            .any(|argument| argument == marker)
    };
    ids.filter(marked).filter_map(Pid::from_raw).collect()
}
