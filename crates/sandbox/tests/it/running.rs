//! What runs, and what a worker is used for.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde_json::json;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use toolgate_kernel::json::Json;
use toolgate_sandbox::{
    FailureKind, FetchRequest, FetchResponse, Host, LogLevel, NoHost, Sandbox, Seal, StorageOp,
};

use crate::{Notebook, job, kind, run, sandbox};

#[tokio::test]
async fn code_runs_with_its_arguments_and_gives_its_result() {
    let sandbox = sandbox();
    let ran = sandbox
        .run(
            job(1, "return {sum: args.a + args.b}", json!({"a": 1, "b": 2})),
            Arc::new(NoHost),
        )
        .await;
    assert_eq!(ran.map(|sum| sum.to_value()), Ok(json!({"sum": 3})));
    assert_eq!(run(&sandbox, "").await, Ok(json!(null)));
    let failed = run(&sandbox, "const a = 1;\nreturn a.b.c")
        .await
        .expect_err("it throws");
    assert_eq!(failed.kind, FailureKind::Threw);
    assert_eq!(
        failed.message,
        "TypeError: cannot read property 'c' of undefined (line 2, column 8)"
    );
    assert_eq!(kind(run(&sandbox, "return +;").await), FailureKind::Syntax);
}

#[tokio::test]
async fn host_calls_reach_the_host_and_their_answers_come_back() {
    let host = Arc::new(Notebook::default());
    let code = "
        await storage.set('a/1', {n: 1}); await storage.set('a/2', 2); await storage.set('b', 3); await storage.delete('b');
        const answers = await Promise.all([1, 2, 3].map((n) => fetch(`https://api.example.com/${n}`)));
        console.log('read', answers.length); console.error('done');
        return [await storage.get('a/1'), await storage.list('a/'), await storage.get('b') ?? 'none', await Promise.all(answers.map((answer) => answer.text()))]";
    let ran = sandbox().run(job(1, code, json!({})), host.clone()).await;
    let urls = [
        "https://api.example.com/1",
        "https://api.example.com/2",
        "https://api.example.com/3",
    ];
    assert_eq!(
        ran.map(|output| output.to_value()),
        Ok(json!([{"n": 1}, ["a/1", "a/2"], "none", urls]))
    );
    assert_eq!(*host.log.lock().unwrap(), ["Info read 3", "Error done"]);
}

#[tokio::test]
async fn storage_keeps_null_as_a_value() {
    let host = Arc::new(Notebook::default());
    let code = "
        await storage.set('none', null);
        const kept = [await storage.get('none'), await storage.list(), typeof await storage.get('other')];
        await storage.delete('none');
        return [...kept, typeof await storage.get('none')]";
    let ran = sandbox().run(job(1, code, json!({})), host).await;
    assert_eq!(
        ran.map(|output| output.to_value()),
        Ok(json!([null, ["none"], "undefined", "undefined"]))
    );
}

#[tokio::test]
async fn code_without_permissions_is_told_which_one_it_lacks() {
    let failed = run(&sandbox(), "await fetch('https://example.com')")
        .await
        .expect_err("no permission");
    assert!(failed.message.contains("fetch:HOST"), "{failed}");
    let failed = run(&sandbox(), "await storage.get('a')")
        .await
        .expect_err("no permission");
    assert!(failed.message.contains("\"storage\""), "{failed}");
}

/// What a call can see of the process that runs it.
async fn process_of(sandbox: &Sandbox, owner: u8, code: &str) -> String {
    let host = Arc::new(Notebook::default());
    let seen = sandbox
        .run(job(owner, code, json!({})), host)
        .await
        .expect("it runs");
    seen.to_value().to_string()
}

#[tokio::test]
async fn nothing_is_left_for_the_next_call_of_the_same_owner() {
    let sandbox = sandbox();
    let leave = "globalThis.left = 'secret'; Array.prototype.left = 1; return typeof left";
    assert_eq!(process_of(&sandbox, 1, leave).await, "\"string\"");
    let look = "return [typeof left, typeof [].left]";
    assert_eq!(
        process_of(&sandbox, 1, look).await,
        r#"["undefined","undefined"]"#
    );
}

#[tokio::test]
async fn a_call_that_leaves_requests_open_leaves_nothing_for_the_next_one() {
    let sandbox = sandbox();
    for n in 0..20 {
        let code = format!("fetch('https://api.example.com/{n}'); storage.set('a', {n}); return {n}");
        assert_eq!(process_of(&sandbox, 1, &code).await, n.to_string());
    }
}

#[tokio::test]
async fn a_call_that_nobody_waits_for_ends_its_worker_and_the_next_one_runs() {
    let sandbox = sandbox();
    let mut endless = job(
        1,
        "await new Promise((done) => setTimeout(done, 60000))",
        json!({}),
    );
    endless.limits.wall = Duration::from_secs(60);
    let waited =
        tokio::time::timeout(Duration::from_millis(50), sandbox.run(endless, Arc::new(NoHost))).await;
    assert!(waited.is_err(), "it does not end by itself");
    assert_eq!(run(&sandbox, "return 1").await, Ok(json!(1)));
}

#[tokio::test]
async fn the_worker_says_what_protects_the_machine() {
    let protection = sandbox().protection().await.expect("a worker answers");
    assert_eq!(protection.no_new_privileges, Seal::InForce);
    assert_eq!(protection.seccomp, Seal::InForce, "Linux has had it since 3.17");
}

/// Tells of every line that is logged.
struct Told(mpsc::UnboundedSender<()>);

#[async_trait]
impl Host for Told {
    async fn fetch(&self, request: FetchRequest) -> Result<FetchResponse, String> {
        NoHost.fetch(request).await
    }
    async fn storage(&self, operation: StorageOp) -> Result<Option<Json>, String> {
        NoHost.storage(operation).await
    }
    fn log(&self, _: LogLevel, _: &str) {
        self.0.send(()).expect("the test listens");
    }
}

#[tokio::test]
async fn calls_of_two_projects_that_only_wait_keep_no_third_one_waiting() {
    let sandbox = sandbox();
    let (told, mut begun) = mpsc::unbounded_channel();
    let host = Arc::new(Told(told));
    let mut asleep = JoinSet::new();
    // More than all processes: 14 of one project and 6 of another, of several users each.
    let shares = (0..14)
        .map(|call| (1, call / 4))
        .chain((0..6).map(|call| (2, call / 4)));
    for (tenant, user) in shares {
        let code = "console.log('asleep'); await new Promise((done) => setTimeout(done, 600000))";
        let mut job = job(tenant, code, json!({}));
        job.share.user = Some(user);
        job.limits.wall = Duration::from_secs(600);
        let (sandbox, host) = (sandbox.clone(), host.clone());
        asleep.spawn(async move { sandbox.run(job, host).await });
    }
    for _ in 0..16 {
        begun.recv().await.expect("they begin");
    }
    let third = sandbox.run(job(3, "return 1", json!({})), Arc::new(NoHost)).await;
    assert_eq!(third.map(|output| output.to_value()), Ok(json!(1)));
    let mut another_user = job(1, "return 2", json!({}));
    another_user.share.user = Some(99);
    let another_user = sandbox.run(another_user, Arc::new(NoHost)).await;
    assert_eq!(another_user.map(|output| output.to_value()), Ok(json!(2)));
    assert!(asleep.try_join_next().is_none(), "the others sleep on");
}
