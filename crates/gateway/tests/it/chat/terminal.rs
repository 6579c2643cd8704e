//! At a terminal: a person types, is asked, interrupts, leaves.

use std::os::unix::fs::PermissionsExt as _;

use rustix::process::Signal;
use toolgate_testkit::model_server::ModelServer;

use super::chat;
use super::pty::{CTRL_C, Pty};
use crate::harness::{Gateway, gateway};

const PROMPT: &str = "› ";

/// A chat at its prompt, with nothing of this machine's history.
fn at_prompt(gateway: &Gateway, home: &std::path::Path, flags: &[&str]) -> Pty {
    let mut command = chat(gateway);
    command
        .args(flags)
        .env("HOME", home)
        .env("EDITOR", home.join("editor"));
    let mut pty = Pty::start(&command);
    pty.see(PROMPT);
    pty
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ctrl_c_stops_the_agent_and_not_the_program() {
    let models = ModelServer::start().await;
    let gateway = gateway(&models).await;
    let home = tempfile::tempdir().unwrap();
    let mut pty = at_prompt(&gateway, home.path(), &[]);
    pty.enter("text:9 hold:4");
    pty.see("w2 ");
    pty.press(CTRL_C);
    pty.see("stopping");
    pty.see("cancelled");
    pty.see(PROMPT);
    pty.enter("call:clock text:2");
    pty.see("clock");
    pty.see("{\"time\":\"noon\"}");
    pty.see("w0 w1 ");
    pty.see(PROMPT);
    pty.press(CTRL_C);
    pty.see("Ctrl-C again to leave");
    pty.see(PROMPT);
    pty.press(CTRL_C);
    pty.see("continue with: toolgate chat --space space_");
    pty.see(&format!(" --url {}", gateway.url()));
    assert!(pty.ended().success());
    let history = std::fs::read_to_string(home.path().join(".local/state/toolgate/chat-history")).unwrap();
    assert!(history.contains("call:clock text:2"), "{history}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ctrl_c_before_the_gateway_has_answered_stops_the_agent_too() {
    let models = ModelServer::start().await;
    let gateway = gateway(&models).await;
    let home = tempfile::tempdir().unwrap();
    let mut pty = at_prompt(&gateway, home.path(), &[]);
    gateway.signal(Signal::STOP);
    pty.enter("text:9 hold:4");
    pty.see("waiting for the model …");
    pty.press(CTRL_C);
    pty.see("stopping");
    gateway.signal(Signal::CONT);
    pty.see("cancelled");
    pty.see(PROMPT);
    pty.enter("/quit");
    assert!(pty.ended().success());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tool_runs_here_when_the_person_says_so() {
    let models = ModelServer::start().await;
    let gateway = gateway(&models).await;
    let home = tempfile::tempdir().unwrap();
    let mut pty = at_prompt(&gateway, home.path(), &["--plugin", "time"]);
    let script =
        "call:convert_time input:{\"time\":\"2026-07-01T20:00:00Z\",\"timezone\":\"Asia/Tokyo\"} text:1";
    pty.enter(script);
    pty.see("[a]lways: ");
    pty.enter("n");
    pty.see("does not want this tool");
    pty.see(PROMPT);
    pty.enter(script);
    pty.see("[a]lways: ");
    pty.enter("a");
    pty.see("Thursday");
    pty.see(PROMPT);
    pty.enter(script);
    let between = pty.see("Thursday");
    assert!(
        !between.contains("[a]lways"),
        "asked though always was said: {between}"
    );
    pty.see(PROMPT);
    pty.press("\x04");
    assert!(pty.ended().success());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_approval_is_given_refused_or_edited() {
    let models = ModelServer::start().await;
    let gateway = gateway(&models).await;
    let home = tempfile::tempdir().unwrap();
    let editor = home.path().join("editor");
    std::fs::write(&editor, "#!/bin/sh\nsed -i 's/draft/final/' \"$1\"\n").unwrap();
    std::fs::set_permissions(&editor, std::fs::Permissions::from_mode(0o755)).unwrap();
    let mut pty = at_prompt(&gateway, home.path(), &[]);
    let script = "call:risky input:{\"state\":\"draft\"} text:1";
    for (answer, seen) in [
        ("y", "risky {\"state\":\"draft\"}"),
        ("e", "risky {\"state\":\"final\"}"),
    ] {
        pty.enter(script);
        pty.see("Approve risky? [y]es, [n]o, [e]dit: ");
        pty.enter(answer);
        pty.see("✓");
        pty.see(seen);
        pty.see(PROMPT);
    }
    pty.enter(script);
    pty.see("[e]dit: ");
    pty.enter("n");
    pty.see("Why not?");
    pty.enter("not on a Sunday");
    pty.see("✗");
    pty.see("not on a Sunday");
    pty.see(PROMPT);
    pty.enter("/quit");
    assert!(pty.ended().success());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_chat_says_what_it_waits_for_also_while_the_gateway_is_away() {
    let models = ModelServer::start().await;
    let mut gateway = gateway(&models).await;
    let home = tempfile::tempdir().unwrap();
    let mut pty = at_prompt(&gateway, home.path(), &[]);
    pty.enter("call:ask text:1");
    pty.see("waiting for the model …");
    pty.see("waiting for a client that runs ask … 2 s");
    gateway.kill();
    pty.see("cannot be reached");
    pty.see("waiting for the gateway …");
    gateway.spawn();
    gateway.ready().await;
    pty.see("the gateway answers again");
    pty.see("waiting for a client that runs ask");
    pty.press(CTRL_C);
    pty.see("cancelled");
    // The line is taken away before the prompt: what is typed must not stand behind it.
    let between = pty.see(PROMPT);
    assert!(!between.contains("waiting"), "{between}");
    pty.enter("/quit");
    assert!(pty.ended().success());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn text_that_comes_again_after_a_crash_is_marked() {
    let models = ModelServer::start().await;
    let mut gateway = gateway(&models).await;
    let home = tempfile::tempdir().unwrap();
    let mut pty = at_prompt(&gateway, home.path(), &[]);
    pty.enter("text:6 hold:4");
    pty.see("w0 w1 w2 ");
    gateway.crash().await;
    models.release(2);
    let between = pty.see("w0 w1 w2 w3 w4 w5 ");
    assert!(
        between.contains("the gateway was restarted, the reply begins again:"),
        "{between}"
    );
    pty.see(PROMPT);
    pty.enter("/quit");
    assert!(pty.ended().success());
}
