//! Through a pipe: the answer, or every event; an exit code that tells.

use std::io::{BufRead as _, Write as _};
use std::process::{Command, Output, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use toolgate_testkit::model_script;
use toolgate_testkit::model_server::ModelServer;

use super::chat;
use crate::harness::{LOOK, binary, gateway, soon};

/// Runs it with this on standard input.
async fn with_input(mut command: Command, input: &str) -> Output {
    let input = input.to_owned();
    tokio::task::spawn_blocking(move || {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary starts");
        let mut stdin = child.stdin.take().expect("a pipe");
        stdin.write_all(input.as_bytes()).expect("it reads");
        drop(stdin);
        child.wait_with_output().expect("it ends")
    })
    .await
    .expect("no panic")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("text")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_the_answer_is_printed() {
    let models = ModelServer::start().await;
    let gateway = gateway(&models).await;
    let output = with_input(chat(&gateway), "call:clock text:3\n").await;
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!(text(&output.stdout), format!("{}\n", model_script::text(3)));
    assert_eq!(text(&output.stderr), "");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_event_is_a_line_of_json_when_asked_for() {
    let models = ModelServer::start().await;
    let gateway = gateway(&models).await;
    let mut command = chat(&gateway);
    command.arg("--json");
    let output = with_input(command, "text:2").await;
    assert!(output.status.success(), "{}", text(&output.stderr));
    let events: Vec<Value> = text(&output.stdout)
        .lines()
        .map(|line| serde_json::from_str(line).expect("a line is JSON"))
        .collect();
    let kinds: Vec<&str> = events
        .iter()
        .map(|event| event["type"].as_str().unwrap())
        .collect();
    assert_eq!(
        kinds.first().zip(kinds.last()),
        Some((&"run-start", &"run-finish")),
        "{kinds:?}"
    );
    // Not `text-delta`: a run this short may have ended before it is followed, and deltas are not stored.
    assert!(kinds.contains(&"text-end"), "{kinds:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reader_that_has_seen_enough_is_no_error() {
    let models = ModelServer::start().await;
    let gateway = gateway(&models).await;
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut command = chat(&gateway);
    command.arg("--json");
    let output = tokio::task::spawn_blocking(move || {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(writer)
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary starts");
        let mut stdin = child.stdin.take().expect("a pipe");
        stdin.write_all(b"text:2").expect("it reads");
        drop(stdin);
        child.wait_with_output().expect("it ends")
    })
    .await
    .expect("no panic");
    assert_eq!(
        (output.status.code(), text(&output.stderr)),
        (Some(0), String::new())
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_that_fails_or_waits_is_exit_code_one() {
    let models = ModelServer::start().await;
    let gateway = gateway(&models).await;
    for (script, words) in [
        ("fail:401", "the run failed"),
        ("call:risky", "approval"),
        ("call:ask", "a client that has the tool"),
        (" ", "no message"),
    ] {
        let output = with_input(chat(&gateway), script).await;
        assert_eq!(output.status.code(), Some(1), "{script}");
        assert!(
            text(&output.stderr).contains(words),
            "{script}: {}",
            text(&output.stderr)
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tools_run_here_only_when_that_was_allowed() {
    let models = ModelServer::start().await;
    let gateway = gateway(&models).await;
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("a.txt"), "alpha").unwrap();
    let script = "call:read_file input:{\"path\":\"a.txt\"} text:1";
    for (flag, seen) in [(None, "not allowed"), (Some("--yes"), "alpha")] {
        let mut command = chat(&gateway);
        command
            .arg("--plugin")
            .arg(format!("fs-read:{}", directory.path().display()))
            .args(flag);
        let output = with_input(command, script).await;
        assert!(output.status.success(), "{}", text(&output.stderr));
        let conversations = models.conversations();
        let result = conversations
            .last()
            .unwrap()
            .iter()
            .find(|message| message["role"] == "tool")
            .unwrap();
        assert!(result.to_string().contains(seen), "{flag:?}: {result}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tools_of_an_mcp_server_come_along() {
    let Some(server) = std::env::var_os("TOOLGATE_TEST_MCP_SERVER_TIME") else {
        eprintln!("not tested: `make tests` names an MCP server in TOOLGATE_TEST_MCP_SERVER_TIME");
        return;
    };
    let models = ModelServer::start().await;
    let gateway = gateway(&models).await;
    let mut command = chat(&gateway);
    let server = format!("'{}' --local-timezone UTC", server.display());
    command.args(["--mcp", &server, "--tools", "mcp_time_convert_time", "--yes"]);
    let input = r#"{"source_timezone":"UTC","time":"12:00","target_timezone":"Asia/Tokyo"}"#;
    let output = with_input(
        command,
        &format!("call:mcp_time_convert_time input:{input} text:1"),
    )
    .await;
    assert!(output.status.success(), "{}", text(&output.stderr));
    let conversations = models.conversations();
    let result = conversations
        .last()
        .unwrap()
        .iter()
        .find(|message| message["role"] == "tool")
        .unwrap();
    assert!(result.to_string().contains("21:00"), "{result}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_comes_without_a_key_or_a_gateway_is_told_what_to_do() {
    let models = ModelServer::start().await;
    let gateway = gateway(&models).await;
    let mut keyless = chat(&gateway);
    keyless.env_remove("TOOLGATE_SECRET_KEY");
    let output = with_input(keyless, "hello").await;
    assert_eq!(output.status.code(), Some(1));
    assert!(
        text(&output.stderr).contains("TOOLGATE_SECRET_KEY"),
        "{}",
        text(&output.stderr)
    );
    let mut lost = binary();
    lost.args(["chat", "--url", "http://127.0.0.1:9"]);
    let output = with_input(lost, "hello").await;
    assert!(
        text(&output.stderr).contains("toolgate serve"),
        "{}",
        text(&output.stderr)
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_it_waits_for_is_said_on_standard_error() {
    let models = ModelServer::start().await;
    let gateway = gateway(&models).await;
    for (script, words) in [
        ("call:risky", "waiting for an approval of risky"),
        ("call:ask", "waiting for a client that has the tool ask"),
    ] {
        let mut command = chat(&gateway);
        command.arg("--wait");
        let said = tokio::task::spawn_blocking(move || {
            let mut child = command
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .expect("the binary starts");
            let mut stdin = child.stdin.take().expect("a pipe");
            stdin.write_all(script.as_bytes()).expect("it reads");
            drop(stdin);
            let mut line = String::new();
            let stderr = child.stderr.take().expect("a pipe");
            std::io::BufReader::new(stderr)
                .read_line(&mut line)
                .expect("text");
            child.kill().expect("it runs");
            child.wait().expect("it ends");
            line
        });
        assert_eq!(said.await.unwrap().trim(), words);
    }
}

/// Whether a process has asked to be told of Ctrl-C.
fn hears_ctrl_c(pid: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("it runs");
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
    let caught = u64::from_str_radix(caught.expect("Linux").trim(), 16).expect("a mask");
    (caught >> (Signal::INT.as_raw() - 1)) & 1 == 1
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ctrl_c_before_the_gateway_has_answered_cancels_the_run_that_it_starts() {
    let models = ModelServer::start().await;
    let gateway = gateway(&models).await;
    let mut child = tokio::process::Command::from(chat(&gateway))
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .expect("the binary starts");
    gateway.signal(Signal::STOP);
    let mut stdin = child.stdin.take().expect("a pipe");
    stdin.write_all(b"text:9 hold:4").await.expect("it reads");
    drop(stdin);
    let pid = child.id().expect("it runs");
    soon("a listener", async {
        while !hears_ctrl_c(pid) {
            tokio::time::sleep(LOOK).await;
        }
    })
    .await;
    let to = Pid::from_raw(pid.cast_signed()).expect("a process id");
    kill_process(to, Signal::INT).expect("it runs");
    let mut lines = BufReader::new(child.stderr.take().expect("a pipe")).lines();
    let line = soon("a line on standard error", lines.next_line()).await;
    assert!(line.unwrap().unwrap().starts_with("stopping"));
    gateway.signal(Signal::CONT);
    assert_eq!(soon("its end", child.wait()).await.unwrap().code(), Some(1));
    let runs = gateway.api().get("/v1/runs").await;
    let run = runs.body["runs"][0]["id"].as_str().expect("a run").to_owned();
    soon("the end of the run", gateway.api().finished(&run)).await;
    let ended = gateway.api().get(&format!("/v1/runs/{run}")).await;
    assert_eq!(ended.text("status"), "cancelled");
}
