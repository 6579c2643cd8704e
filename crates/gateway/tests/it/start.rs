//! Starting: what is printed, what is refused, and what each refusal says to do.

use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Output, Stdio};
use std::time::Instant;

use serde_json::{Value, json};

use crate::harness::{Api, Gateway, LOOK, SOON, binary, free_port};

/// Runs the binary to its end.
fn run(arguments: &[&str], env: &[(&str, &str)]) -> Output {
    binary()
        .args(arguments)
        .envs(env.iter().copied())
        .output()
        .expect("the binary starts")
}

/// Runs `toolgate serve`, which must refuse to start, and gives what it says.
fn refused(arguments: &[&str], env: &[(&str, &str)]) -> String {
    let output = run(&[&["serve"], arguments].concat(), env);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(
        output.stdout.is_empty(),
        "nothing is made before the start is sure: {output:?}"
    );
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(told.lines().last().is_some_and(|line| !line.is_empty()), "{told}");
    told
}

#[test]
fn a_start_that_cannot_be_says_what_to_do() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("data");
    let data = data.to_str().unwrap();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = taken.local_addr().unwrap().to_string();

    let told = refused(&["--listen", &taken, "--data", data], &[]);
    assert!(told.contains(&taken) && told.contains("--listen"), "{told}");

    let told = refused(&["--listen", "nonsense", "--data", data], &[]);
    assert!(
        told.contains("nonsense") && told.contains("127.0.0.1:8787"),
        "{told}"
    );

    let told = refused(&["--listen", "0.0.0.0:0", "--data", data, "--no-auth"], &[]);
    assert!(told.contains("--no-auth") && told.contains("loopback"), "{told}");

    let told = refused(&["--listen", "127.0.0.1:0", "--data", "/dev/null/data"], &[]);
    assert!(
        told.contains("/dev/null/data") && told.contains("--data"),
        "{told}"
    );

    let told = refused(
        &["--listen", "127.0.0.1:0", "--data", data],
        &[("TOOLGATE_HTTP_HEARTBEAT", "soon")],
    );
    assert!(
        told.contains("TOOLGATE_HTTP_HEARTBEAT") && told.contains("15s"),
        "{told}"
    );

    let told = refused(
        &["--listen", "127.0.0.1:0", "--data", data],
        &[("TOOLGATE_MODEL_BASEURL", "http://127.0.0.1:1/v1")],
    );
    assert!(told.contains("did you mean TOOLGATE_MODEL_BASE_URL?"), "{told}");
    let told = refused(
        &["--listen", "127.0.0.1:0", "--data", data],
        &[("TOOLGATE_MODEL_BASE_URL", "localhost:8080")],
    );
    assert!(told.contains("`model.base_url`"), "{told}");
    let told = refused(
        &[
            "--listen",
            "127.0.0.1:0",
            "--data",
            data,
            "--agents",
            "/no/such/folder",
        ],
        &[],
    );
    assert!(
        told.contains("/no/such/folder") && told.contains("--agents"),
        "{told}"
    );

    let told = refused(
        &["--listen", "127.0.0.1:0", "--data", data],
        &[("TOOLGATE_PORT", "9000")],
    );
    assert!(told.contains("did you mean TOOLGATE_LISTEN?"), "{told}");
    let told = refused(
        &["--listen", "127.0.0.1:0", "--data", data],
        &[("TOOLGATE_SECRET_KYE", "sk_x")],
    );
    assert!(
        told.contains("looks like a misspelt TOOLGATE_SECRET_KEY,") && told.contains("[secrets]"),
        "{told}"
    );
    for (variable, text, words) in [
        ("TOOLGATE_SECRET_KEY", "sk_x", "has 4 characters"),
        ("TOOLGATE_PUBLIC_KEY", "sk_0123456789abcdef", "expected \"pk_\""),
        ("TOOLGATE_OPERATOR_KEY", "short", "has 5 characters"),
        (
            "TOOLGATE_HTTP_ORIGINS",
            "http://localhost:3000/",
            "leave out the \"/\"",
        ),
    ] {
        let told = refused(&["--listen", "127.0.0.1:0", "--data", data], &[(variable, text)]);
        assert!(told.contains(variable) && told.contains(words), "{told}");
    }
    let page = directory.path().join("a.md");
    std::fs::write(&page, "Help.").unwrap();
    let page = page.to_str().unwrap();
    let told = refused(
        &["--listen", "127.0.0.1:0", "--data", data, "--agents", page],
        &[],
    );
    assert!(
        told.contains("a.md is a file") && told.contains(directory.path().to_str().unwrap()),
        "{told}"
    );

    let file = directory.path().join("toolgate.toml");
    std::fs::write(&file, "listen = \"127.0.0.1:0\"\nlissten = 1\n").unwrap();
    let told = refused(&["--config", file.to_str().unwrap()], &[]);
    assert!(
        told.contains("toolgate.toml") && told.contains("line 2") && told.contains("`listen`"),
        "{told}"
    );

    let told = refused(&["--config", "/no/such/file.toml"], &[]);
    assert!(told.contains("/no/such/file.toml"), "{told}");
    assert!(!Path::new(data).exists(), "a refused start leaves nothing behind");
}

#[test]
fn variables_that_are_empty_count_as_not_set() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("data");
    // What is wrong is told only once the variables are read.
    let told = refused(
        &["--listen", "nonsense", "--data", data.to_str().unwrap()],
        &[
            ("TOOLGATE_NO_AUTH", ""),
            ("TOOLGATE_CONFIG", ""),
            ("TOOLGATE_AGENTS", ""),
            ("TOOLGATE_MODEL_NAME", ""),
        ],
    );
    assert!(told.contains("cannot listen on nonsense"), "{told}");
    let told = run(
        &["login"],
        &[("TOOLGATE_SECRET_KEY", ""), ("TOOLGATE_OPERATOR_KEY", "")],
    );
    let told = String::from_utf8_lossy(&told.stderr).into_owned();
    assert!(told.contains("no key; set TOOLGATE_SECRET_KEY"), "{told}");
}

#[test]
fn every_command_that_reads_the_environment_refuses_variables_that_are_none() {
    let directory = tempfile::tempdir().unwrap();
    let page = directory.path().join("a.md");
    std::fs::write(&page, "Help.").unwrap();
    let page = page.to_str().unwrap();
    for arguments in [
        &["agent", "check", page][..],
        &["tool", "check", page],
        &["store", "check", "--data", directory.path().to_str().unwrap()],
        &["chat"],
        &["health"],
        &["login"],
        &["mcp"],
        &["mcp", "servers", "list"],
        &["plugin", "list"],
        &["project", "list"],
        &["agent", "purge", "helper"],
    ] {
        let output = run(arguments, &[("TOOLGATE_MODEL_NAM", "small")]);
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success(), "{output:?}");
        assert!(
            told.contains("did you mean TOOLGATE_MODEL_NAME?"),
            "{arguments:?}: {told}"
        );
    }
    // The message names this command.
    assert!(run(&["settings"], &[("TOOLGATE_NONSENSE", "1")]).status.success());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn agents_with_errors_are_told_before_the_keys_and_the_others_are_served() {
    let directory = tempfile::tempdir().unwrap();
    let (data, out) = (directory.path().join("data"), directory.path().join("out"));
    let agents = directory.path().join("agents");
    std::fs::create_dir(&agents).unwrap();
    let start = async || {
        let mut gateway = Newcomer::start(&data, &out, &["--agents", agents.to_str().unwrap()]);
        gateway.ready().await;
        std::fs::read_to_string(&out).unwrap()
    };
    let printed = start().await;
    assert!(printed.starts_with("The agents folder "), "{printed}");
    assert!(printed.contains("has no agent yet"), "{printed}");

    std::fs::write(agents.join("good.md"), "---\nname: good\n---\nHelp.").unwrap();
    std::fs::write(agents.join("broken.md"), "---\ntools: [\n---\nHelp.").unwrap();
    std::fs::write(agents.join("wrong.json"), "{\n  \"instrutions\": \"Help.\"\n}").unwrap();
    std::fs::remove_dir_all(&data).unwrap();
    let printed = start().await;
    let (before, after) = printed.split_once("Toolgate ").expect("a greeting");
    assert!(after.contains("secret key"), "{printed}");
    for words in [
        "broken.md:",
        "wrong.json:2: error",
        "are not served until they are mended",
    ] {
        assert!(before.contains(words), "no {words:?} in {printed}");
    }
    assert!(!before.contains("good.md"), "{printed}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_gateway_whose_output_nobody_reads_any_more_serves() {
    let directory = tempfile::tempdir().unwrap();
    let port = free_port();
    let mut child = binary()
        .args(["serve", "--listen", &format!("127.0.0.1:{port}"), "--data"])
        .arg(directory.path().join("data"))
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("the binary starts");
    // As `head` does, before anything is printed.
    drop(child.stdout.take());
    let mut gateway = Newcomer { child, port };
    gateway.ready().await;
}

#[test]
fn commands_that_print_print() {
    let printed = |arguments: &[&str]| {
        let output = run(arguments, &[]);
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    assert_eq!(
        printed(&["--version"]).trim(),
        concat!("toolgate ", env!("CARGO_PKG_VERSION"))
    );
    let openapi: Value = serde_json::from_str(&printed(&["openapi"])).expect("JSON");
    assert!(openapi["paths"]["/v1/runs"].is_object());
    assert!(printed(&["settings"]).contains("listen = \"127.0.0.1:8787\""));
}

/// A gateway without keys in its settings, as a newcomer starts it.
pub struct Newcomer {
    child: Child,
    pub port: u16,
}

impl Newcomer {
    pub fn start(data: &Path, out: &Path, more: &[&str]) -> Self {
        let port = free_port();
        let out = std::fs::File::create(out).unwrap();
        let child = binary()
            .args(["serve", "--listen", &format!("127.0.0.1:{port}"), "--data"])
            .arg(data)
            .args(more)
            .stdout(out)
            .stderr(Stdio::null())
            .spawn()
            .expect("the binary starts");
        Self { child, port }
    }

    pub async fn ready(&mut self) -> Api {
        let api = Api::secret(self.port);
        let began = Instant::now();
        while !api
            .try_get("/readyz")
            .await
            .is_ok_and(|answer| answer.status == 200)
        {
            assert!(began.elapsed() < SOON && self.child.try_wait().unwrap().is_none());
            tokio::time::sleep(LOOK).await;
        }
        api
    }
}

impl Drop for Newcomer {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_first_start_prints_working_keys_and_the_second_prints_none() {
    let directory = tempfile::tempdir().unwrap();
    let (data, out) = (directory.path().join("data"), directory.path().join("out"));
    let mut first = Newcomer::start(&data, &out, &[]);
    let api = first.ready().await;
    let printed = std::fs::read_to_string(&out).unwrap();
    let word = |prefix: &str| {
        printed
            .split_whitespace()
            .find(|word| word.starts_with(prefix))
            .expect("a key")
            .to_owned()
    };
    assert!(printed.contains("Model: the built-in demo"), "{printed}");
    let key = word("sk_");
    assert!(!printed.contains(&format!("#key={key}")), "{printed}");
    assert!(
        printed.contains("curl") && printed.contains("JWT secret"),
        "{printed}"
    );
    word("pk_");

    // What it tells the newcomer to send works, and shows a tool at work.
    let api = api.with_key(&key);
    let (_, sent) = printed.split_once("-d '").expect("a message");
    let (sent, _) = sent.split_once('\'').expect("its end");
    let started = api.post("/v1/runs", &serde_json::from_str(sent).unwrap()).await;
    assert!(started.is_success(), "{started:?}");
    let log = api.finished(&started.text("runId")).await;
    assert!(
        log.iter().any(|event| event.kind == "tool-output-available"),
        "{log:#?}"
    );
    assert!(
        log.iter()
            .any(|event| event.kind == "text-end" && event.text("text").contains("demo")),
        "{log:#?}"
    );
    assert_eq!(log.last().unwrap().data["status"], "completed");
    drop(first);

    let mut second = Newcomer::start(&data, &out, &[]);
    let api = second.ready().await.with_key(&key);
    assert_eq!(api.get("/v1/runs").await.status, 200);
    let printed = std::fs::read_to_string(&out).unwrap();
    assert!(
        printed.contains("listens on") && !printed.contains("sk_") && !printed.contains("pk_"),
        "{printed}"
    );

    // One gateway at a time.
    let told = refused_data(&data);
    let pid = std::fs::read_to_string(data.join("pid")).unwrap();
    assert_eq!(pid.trim(), second.child.id().to_string());
    assert!(
        told.contains("--data") && told.contains(&format!("process {}", pid.trim())),
        "{told}"
    );
}

fn refused_data(data: &Path) -> String {
    refused(
        &["--listen", "127.0.0.1:0", "--data", data.to_str().unwrap()],
        &[],
    )
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_newcomer_without_a_key_meets_a_client_tool_and_an_approval() {
    let gateway = Gateway::start(&[]).await;
    let api = gateway.api();
    let say = async |words: &str| {
        let started = api.post("/v1/runs", &json!({"message": words})).await;
        assert!(started.is_success(), "{started:?}");
        started.text("runId")
    };
    let run = say("use ask_user to ask me for my favourite colour").await;
    let offer = api.follow(&run, 0).await.offer().await;
    assert_eq!(api.result(&run, offer.call(), &json!("blue")).await.status, 200);
    let log = api.finished(&run).await;
    assert!(
        log.iter()
            .any(|event| event.kind == "text-end" && event.text("text").contains("blue")),
        "{log:#?}"
    );

    let run = say("use send_email").await;
    let mut stream = api.follow(&run, 0).await;
    let asked = stream
        .until("a question", |event| event.kind == "tool-approval-request")
        .await;
    let path = format!("/v1/approvals/{}", asked.text("approvalId"));
    assert_eq!(api.post(&path, &json!({"approved": true})).await.status, 200);
    let log = api.finished(&run).await;
    assert!(
        log.iter().any(|event| event.kind == "tool-output-available"),
        "{log:#?}"
    );
    assert_eq!(log.last().unwrap().data["status"], "completed");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_auth_everybody_on_this_machine_is_let_in() {
    let directory = tempfile::tempdir().unwrap();
    let mut open = Newcomer::start(
        &directory.path().join("data"),
        &directory.path().join("out"),
        &["--no-auth"],
    );
    let api = open.ready().await.with_key("sk_nobody_has_this_key");
    assert_eq!(api.get("/v1/runs").await.status, 200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_in_the_settings_ends_when_the_setting_changes() {
    let directory = tempfile::tempdir().unwrap();
    let (data, out) = (directory.path().join("data"), directory.path().join("out"));
    let file = directory.path().join("toolgate.toml");
    let start = async |key: &str| {
        std::fs::write(&file, format!("secret_key = \"{key}\"\n")).unwrap();
        let mut started = Newcomer::start(&data, &out, &["--config", file.to_str().unwrap()]);
        let api = started.ready().await;
        (started, api)
    };
    let (old, new) = ("sk_the_old_key_0123", "sk_the_new_key_0123");
    let (gateway, api) = start(old).await;
    assert_eq!(api.with_key(old).get("/v1/runs").await.status, 200);
    drop(gateway);
    let (_gateway, api) = start(new).await;
    assert_eq!(api.with_key(new).get("/v1/runs").await.status, 200);
    assert_eq!(api.with_key(old).get("/v1/runs").await.status, 401);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_model_of_the_settings_is_the_default_agents() {
    let models = toolgate_testkit::model_server::ModelServer::start().await;
    let gateway = Gateway::start(&[
        ("TOOLGATE_MODEL_BASE_URL", models.base_url()),
        ("TOOLGATE_MODEL_NAME", "script"),
        ("TOOLGATE_MODEL_API_KEY", "none"),
    ])
    .await;
    let api = gateway.api();
    let started = api.post("/v1/runs", &json!({"message": "text:2"})).await;
    assert!(started.is_success(), "{started:?}");
    let log = api.finished(&started.text("runId")).await;
    assert!(
        log.iter()
            .any(|event| event.kind == "text-end" && event.text("text") == "w0 w1 "),
        "{log:#?}"
    );
    // The tools that a newcomer meets are all there.
    let started = api
        .post(
            "/v1/runs",
            &json!({"message": "call:lookup_order input:{\"orderNumber\":\"A-1042\"} text:1"}),
        )
        .await;
    let log = api.finished(&started.text("runId")).await;
    let output = log
        .iter()
        .find(|event| event.kind == "tool-output-available")
        .expect("an output");
    assert_eq!(output.data["output"]["status"], "shipped");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn toolgate_health_tells_by_its_exit_code_whether_a_gateway_is_ready() {
    let mut gateway = Gateway::start(&[]).await;
    let url = gateway.url();
    let health = || tokio::task::block_in_place(|| run(&["health"], &[("TOOLGATE_URL", &url)]));
    let ready = health();
    assert!(ready.status.success(), "{ready:?}");
    assert_eq!(String::from_utf8(ready.stdout).unwrap(), "ready\n");

    gateway.kill();
    let gone = health();
    assert_eq!(gone.status.code(), Some(1), "{gone:?}");
    let told = String::from_utf8(gone.stderr).unwrap();
    assert!(told.contains(&format!("no gateway answers at {url}")), "{told}");
}
