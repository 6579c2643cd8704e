//! Agents as files: checked by a command, and kept as a folder says.

use std::path::Path;

use serde_json::{Value, json};
use tempfile::TempDir;
use toolgate_testkit::model_server::ModelServer;

use crate::harness::{Api, Gateway, LOOK, SECRET_KEY, binary, soon, worker};

const RESEARCH: &str = "---
name: research-agent
description: Reads and sums up.
model: gpt-small
tools:
  - getGoals
  - spawn_agent
  - name: summarize
    description: Summarize a document into key points
    model: gpt-tiny
    parameters:
      text:
        type: string
        description: The text to summarize
        required: true
      style:
        type: string
    result_schema:
      type: object
      properties:
        bullets: { type: array, items: { type: string } }
    prompt: \"Summarize: {{text}}\"
---

# You are a researcher

Say no more than you know.
";

fn folder(files: &[(&str, &str)]) -> TempDir {
    let directory = tempfile::tempdir().expect("a directory");
    for (name, text) in files {
        write(directory.path(), name, text);
    }
    directory
}

/// Written aside and moved there: nobody reads half a file.
fn write(folder: &Path, name: &str, text: &str) {
    let aside = folder.join(format!(".{name}"));
    std::fs::write(&aside, text).expect("written");
    std::fs::rename(aside, folder.join(name)).expect("moved");
}

fn check(folder: &Path, arguments: &[&str]) -> (i32, String) {
    let checked = binary()
        .args(["agent", "check"])
        .args(arguments)
        .current_dir(folder)
        .output()
        .expect("the binary starts");
    let told = String::from_utf8(checked.stdout).expect("text");
    (checked.status.code().expect("a code"), told)
}

#[test]
fn sound_agents_in_both_forms_pass() {
    let guide = json!({"agent": {"name": "guide", "system": "Help."}}).to_string();
    let files = folder(&[
        ("research.md", RESEARCH),
        ("guide.json", &guide),
        ("plain.json", "{}"),
    ]);
    let (code, told) = check(files.path(), &["research.md", "guide.json", "plain.json"]);
    assert_eq!(
        told,
        "research.md: the agent research-agent with 3 tools is valid\n\
         guide.json: the agent guide with 0 tools is valid\n\
         plain.json: the agent plain with 0 tools is valid\n"
    );
    assert_eq!(code, 0);
}

#[test]
fn tools_of_servers_and_plugins_are_checked_as_far_as_they_are_known_here() {
    let clock = json!({
        "mcp": ["time", "far"],
        "mcpServers": {"own": {"url": "https://mcp.example.com"}},
        "tools": [
            {"name": "now", "executionType": "mcp", "execution": {"server": "time", "tool": "get_current_time"}},
            {"name": "sum", "executionType": "plugin", "execution": {"tool": "sum"}},
        ],
    });
    let wrong = json!({
        "mcpServers": {"own": {"url": "nowhere", "sandbox": {}}},
        "tools": [{"name": "now", "executionType": "mcp", "execution": {"server": "time"}}],
    });
    let files = folder(&[
        ("clock.json", &clock.to_string()),
        ("wrong.json", &wrong.to_string()),
        (
            "toolgate.toml",
            "[mcp.servers.time]\ncommand = \"no-such-program\"\n",
        ),
    ]);
    let (code, told) = check(files.path(), &["--config", "toolgate.toml", "clock.json"]);
    assert_eq!(code, 0, "{told}");
    let mut warnings: Vec<&str> = told.lines().filter(|line| line.contains("warning")).collect();
    warnings.sort_unstable();
    let expected = [
        "/mcp/1: the settings have no MCP server \"far\"",
        "/tools/0/execution: the settings have the MCP server \"time\"",
        "/tools/1/execution: whether a plugin of the project has this tool is not known here",
    ];
    assert_eq!(warnings.len(), expected.len(), "{told}");
    for (line, words) in warnings.iter().zip(expected) {
        assert!(line.contains(words), "no {words:?} in {line}");
    }
    assert!(told.contains("with 2 tools is valid"), "{told}");
    let (code, told) = check(files.path(), &["wrong.json"]);
    assert_eq!(code, 1);
    for words in [
        "/mcpServers/own/url",
        "/mcpServers/own/sandbox: only",
        "/tools/0/execution",
    ] {
        assert!(told.contains(words), "no {words:?} in {told}");
    }
}

#[test]
fn everything_wrong_is_told_with_its_line() {
    let page = RESEARCH
        .replace("  - getGoals", "  - getGaols")
        .replace(
            "        type: string\n        description",
            "        type: text\n        description",
        )
        .replace("model: gpt-small", "motor: gpt-small");
    let config = "{\n  \"instructions\": \"Help.\",\n  \"tools\": [\n    {\n      \"name\": \"1st\",\n      \"description\": \"x\"\n    }\n  ]\n}";
    let broken = "---\nname: a\nname: b\n---\n";
    let files = folder(&[
        ("page.md", &page),
        ("config.json", config),
        ("broken.md", broken),
        ("bare.md", "Hello"),
        ("half.json", "{\n  \"a\": ,\n}"),
    ]);
    let (code, told) = check(
        files.path(),
        &["page.md", "config.json", "broken.md", "bare.md", "half.json"],
    );
    let lines: Vec<&str> = told.lines().collect();
    for start in [
        "page.md:4: error: /motor: ",
        "page.md:6: error: /tools/0: there is no tool named \"getGaols\"; did you mean \"getGoals\"?",
        "page.md:13: error: /tools/2/parameters/text/type: ",
        "page.md: 3 problems",
        "config.json:5: error: /tools/0/name: \"1st\" is not a name",
        "broken.md:3: error: has the key \"name\" twice",
        "bare.md:1: error: expected front matter",
        "half.json:2: error: is not JSON: ",
    ] {
        assert!(
            lines.iter().any(|line| line.starts_with(start)),
            "no {start:?} in:\n{told}"
        );
    }
    assert_eq!(code, 1);
}

#[test]
fn the_report_as_json_has_every_line_too() {
    let files = folder(&[("page.md", &RESEARCH.replace("getGoals", "getGaols"))]);
    let (_, told) = check(files.path(), &["--json", "page.md"]);
    let told: Value = serde_json::from_str(&told).expect("JSON");
    assert_eq!(told[0]["valid"], json!(false));
    assert_eq!(told[0]["agent"], json!("research-agent"));
    assert_eq!(told[0]["errors"][0]["line"], json!(6));
    assert_eq!(told[0]["errors"][0]["pointer"], json!("/tools/0"));
}

#[test]
fn front_matter_cannot_grow_or_say_no_by_accident() {
    let bomb = "---\na: &a [x, x]\nb: *a\n---\n";
    let norway = "---\ndescription: no\n---\nHello";
    let files = folder(&[("bomb.md", bomb), ("norway.md", norway)]);
    let (code, told) = check(files.path(), &["bomb.md"]);
    assert!(
        code == 1 && told.contains("bomb.md:2: error: uses anchors"),
        "{told}"
    );
    let (code, told) = check(files.path(), &["norway.md"]);
    assert_eq!(code, 0, "{told}");
    let twice = folder(&[("twice.md", "---\ndescription: a\ndescription: b\n---\n")]);
    let (_, told) = check(twice.path(), &["twice.md"]);
    let line = "twice.md:3: error: has the key \"description\" twice\n";
    assert!(told.starts_with(line), "{told}");
}

async fn agent(api: &Api, name: &str) -> Option<Value> {
    let answer = api.get(&format!("/v1/agents/{name}")).await;
    (answer.status == 200).then_some(answer.body)
}

/// Looks until the agent is as wanted.
async fn until(api: &Api, name: &str, wanted: impl Fn(Option<&Value>) -> bool) -> Option<Value> {
    soon(&format!("the change of {name}"), async {
        loop {
            let found = agent(api, name).await;
            if wanted(found.as_ref()) {
                return found;
            }
            tokio::time::sleep(LOOK).await;
        }
    })
    .await
}

#[tokio::test]
async fn a_folder_says_what_agents_there_are() {
    let files = folder(&[
        ("research.md", RESEARCH),
        ("guide.json", "{\"instructions\": \"Help.\"}"),
    ]);
    let path = files.path().to_str().expect("text").to_owned();
    let mut gateway = Gateway::start(&[("TOOLGATE_AGENTS", &path)]).await;
    let api = gateway.api();
    let research = agent(&api, "research-agent")
        .await
        .expect("it was read before the start");
    let config = &research["config"];
    assert_eq!(
        config["instructions"],
        json!("# You are a researcher\n\nSay no more than you know.")
    );
    assert_eq!(
        config["tools"][0],
        json!({"name": "getGoals", "executionType": "prebuilt", "execution": {"action": "getGoals"}})
    );
    assert_eq!(config["tools"][2]["executionType"], json!("prompt"));
    assert_eq!(config["tools"][2]["parameters"]["required"], json!(["text"]));
    assert_eq!(config["tools"][2]["execution"]["model"], json!("gpt-tiny"));
    let first = research["revision"].as_u64().expect("a revision");

    // A change is a new revision; a restart is none.
    write(
        files.path(),
        "research.md",
        &RESEARCH.replace("no more", "a little more"),
    );
    let changed = until(&api, "research-agent", |found| {
        found.is_some_and(|found| found["revision"].as_u64() > Some(first))
    });
    let changed = changed.await.expect("it is there");
    gateway.crash().await;
    assert_eq!(agent(&api, "research-agent").await, Some(changed.clone()));

    // What is wrong changes nothing, and is told with its line.
    write(
        files.path(),
        "research.md",
        &RESEARCH.replace("getGoals", "getGaols"),
    );
    soon("the report", async {
        while !gateway.log().contains("getGaols") {
            tokio::time::sleep(LOOK).await;
        }
    })
    .await;
    let report = gateway
        .log()
        .lines()
        .find(|line| line.contains("getGaols"))
        .map(str::to_owned);
    assert!(
        report.is_some_and(|line| line.contains("research.md") && line.contains("\"line\":6")),
        "{}",
        gateway.log()
    );
    assert_eq!(agent(&api, "research-agent").await, Some(changed));

    // A file that goes takes its agent with it, also while nobody looks.
    std::fs::remove_file(files.path().join("guide.json")).expect("removed");
    until(&api, "guide", |found| found.is_none()).await;
    gateway.kill();
    std::fs::remove_file(files.path().join("research.md")).expect("removed");
    gateway.spawn();
    gateway.ready().await;
    assert_eq!(agent(&api, "research-agent").await, None);
    assert!(
        agent(&api, "default").await.is_some(),
        "what came in no file stays"
    );
}

/// What the agent remembers, as it reads it itself.
async fn remembered(api: &Api, models: &ModelServer) -> String {
    let run = api.start("call:getMemory text:1").await["runId"]
        .as_str()
        .expect("an id")
        .to_owned();
    api.finished(&run).await;
    let asked = models.conversations();
    let last = asked.last().expect("asked");
    let result = last.iter().rfind(|message| message["role"] == "tool");
    result.expect("a result").to_string()
}

#[tokio::test]
async fn an_agent_whose_file_is_gone_keeps_its_state_until_it_is_purged() {
    let models = ModelServer::start().await;
    let mut config = worker(&models);
    for action in ["setMemory", "getMemory"] {
        let tool = json!({"name": action, "executionType": "prebuilt", "execution": {"action": action}});
        config["tools"].as_array_mut().expect("tools").push(tool);
    }
    let files = folder(&[("worker.json", &config.to_string())]);
    let path = files.path().to_str().expect("text").to_owned();
    let mut gateway = Gateway::start(&[("TOOLGATE_AGENTS", &path)]).await;
    let api = gateway.api();
    let input = json!({"topic": "color", "content": "Zq7-blue"});
    let run = api.start(&format!("call:setMemory input:{input} text:1")).await;
    api.finished(run["runId"].as_str().expect("an id")).await;

    // Gone while the gateway looks, and gone at a start.
    std::fs::remove_file(files.path().join("worker.json")).expect("removed");
    until(&api, "worker", |found| found.is_none()).await;
    gateway.crash().await;
    write(files.path(), "worker.json", &config.to_string());
    until(&api, "worker", |found| found.is_some()).await;
    assert!(remembered(&api, &models).await.contains("Zq7-blue"));

    let url = gateway.url();
    let purge = |more: &[&str]| {
        let mut command = binary();
        command
            .args(["agent", "purge", "worker", "--url", &url])
            .args(more);
        let ended = command
            .env("TOOLGATE_SECRET_KEY", SECRET_KEY)
            .output()
            .expect("it runs");
        let told = [ended.stdout, ended.stderr].concat();
        (ended.status.code(), String::from_utf8(told).expect("text"))
    };
    let (code, told) = purge(&[]);
    assert!(code == Some(1) && told.contains("say --yes"), "{told}");
    assert!(remembered(&api, &models).await.contains("Zq7-blue"));
    let told = "purged worker: deleted 0 goals, 1 memories, 0 plans and 0 parts of documents\n";
    assert_eq!(purge(&["--yes"]), (Some(0), told.into()));
    let (code, told) = purge(&["--yes"]);
    assert!(code == Some(1) && told.contains("no such agent"), "{told}");
    config["instructions"] = "Follow the script again.".into();
    write(files.path(), "worker.json", &config.to_string());
    until(&api, "worker", |found| found.is_some()).await;
    assert!(!remembered(&api, &models).await.contains("Zq7-blue"));
}

#[tokio::test]
async fn a_file_that_is_renamed_keeps_its_agent_and_two_files_cannot_share_one() {
    let page = "---\nname: one\n---\nFirst.";
    let files = folder(&[("a.md", page), ("b.md", "---\nname: one\n---\nSecond.")]);
    let path = files.path().to_str().expect("text").to_owned();
    let gateway = Gateway::start(&[("TOOLGATE_AGENTS", &path)]).await;
    let api = gateway.api();
    assert!(
        gateway.log().contains("the agent one is already defined in a.md"),
        "{}",
        gateway.log()
    );
    let instructions = |found: Option<&Value>| found.map(|found| found["config"]["instructions"].clone());
    assert_eq!(
        instructions(agent(&api, "one").await.as_ref()),
        Some(json!("First."))
    );
    // The second file has the name when the first is gone.
    std::fs::remove_file(files.path().join("a.md")).expect("removed");
    until(&api, "one", |found| instructions(found) == Some(json!("Second."))).await;
}

#[test]
fn a_folder_is_checked_whole_with_names_that_repeat_and_placeholders_that_nothing_fills() {
    let page = "---\nname: twin\ntools:\n  - name: sum\n    description: Sums up.\n    parameters:\n      text: {type: \
                string}\n    prompt: Sum up {{txt}} and {{text}}.\n---\nHelp.\n";
    let files = folder(&[
        ("a.md", page),
        ("b.json", r#"{"agent": {"name": "twin", "system": "Help."}}"#),
        ("README.md", "Not an agent."),
        (".hidden.md", "Not an agent."),
        ("notes.txt", "Not an agent."),
    ]);
    let (code, told) = check(files.path(), &["."]);
    assert_eq!(code, 1, "{told}");
    let lines: Vec<&str> = told.lines().collect();
    assert_eq!(lines.len(), 4, "{told}");
    assert!(
        lines[0].contains("a.md:") && lines[0].contains("warning: "),
        "{told}"
    );
    assert!(
        lines[0].contains("no parameter fills {{txt}}; the parameters are: text"),
        "{told}"
    );
    assert!(lines[1].contains("the agent twin with 1 tool is valid"), "{told}");
    assert!(
        lines[2].contains("b.json:1: error: the agent twin is already defined in")
            && lines[2].contains("a.md"),
        "{told}"
    );
}

#[test]
fn a_check_warns_of_misspelt_keywords_and_of_child_runs_that_can_never_start() {
    let tool = |more: &str| format!(r#"{{"name": "ask", "description": "Asks.", {more}}}"#);
    let child = |agent: &str| {
        tool(&format!(
            r#""executionType": "ai-agent", "execution": {{"agent": "{agent}"}}"#
        ))
    };
    let agent = |limits: &str, tool: &str| {
        format!(r#"{{"agent": {{"system": "Help."}}, "limits": {limits}, "tools": [{tool}]}}"#)
    };
    let misspelt = tool(
        r#""parameters": {"type": "object", "requried": ["a"], "x-order": 1, "unit": "m",
            "properties": {"a": {"type": "string", "discription": "x"}}}"#,
    );
    let files = folder(&[
        ("top.json", &agent(r#"{"depth": 1}"#, &child("middle"))),
        ("middle.json", &agent("{}", &child("nobody"))),
        ("typo.json", &agent("{}", &misspelt)),
    ]);
    let (code, told) = check(files.path(), &["."]);
    assert_eq!(code, 0, "{told}");
    let warnings: Vec<&str> = told.lines().filter(|line| line.contains("warning: ")).collect();
    assert_eq!(warnings.len(), 4, "{told}");
    for (warning, [file, pointer, words]) in warnings.iter().zip([
        ["middle.json:", "/tools/0: ", "there is no agent named nobody now"],
        [
            "top.json:",
            "/tools/0: ",
            "ask of middle would start a run 2 deep, and limits.depth of top is 1",
        ],
        [
            "typo.json:1: ",
            "/tools/0/parameters/requried: ",
            "did you mean \"required\"?",
        ],
        [
            "typo.json:2: ",
            "/tools/0/parameters/properties/a/discription: ",
            "did you mean \"description\"?",
        ],
    ]) {
        assert!(
            warning.contains(file) && warning.contains(pointer) && warning.contains(words),
            "{told}"
        );
    }
    // A single file may be one of many.
    let (_, told) = check(files.path(), &["middle.json"]);
    assert!(!told.contains("warning"), "{told}");
}
