//! An MCP server for tests, which misbehaves as its directory says: JSON-RPC by hand, so that it can be wrong.
//!
//! `fixture <legacy|modern> <directory>`. `tools.json` in the directory is what it lists, read for each listing; the file
//! `changed` makes it tell that the list has changed, as often as it says; with the file `broken` it does not start, with `stubborn` it goes on when its input has ended. Calls do what the name of the tool says. As `keep-server …` it is
//! the keeper of a program, as the gateway's own binary is.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{BufRead as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use toolgate_worker::{KEEP_SERVER, KeptLimits, keep};

const MODERN: &str = "2026-07-28";
const LEGACY: &str = "2025-11-25";
const LOOK: Duration = Duration::from_millis(20);
/// Tools of one page of a listing.
const PAGE: usize = 100;

fn main() -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    if arguments.first().is_some_and(|first| first == KEEP_SERVER) {
        let program = arguments
            .iter()
            .position(|argument| argument == "--")
            .expect("a program");
        let program = &arguments[program + 1..];
        return keep(&program[0], &program[1..], KeptLimits::default()).unwrap_or_else(|error| {
            eprintln!("error: {} does not start: {error}", program[0].display());
            ExitCode::FAILURE
        });
    }
    let [era, directory] = arguments.try_into().expect("an era and a directory");
    let server = Arc::new(Server {
        is_modern: era == "modern",
        directory: directory.into(),
        waiting: Mutex::default(),
        questions: AtomicUsize::new(1),
        listings: AtomicUsize::new(0),
    });
    eprintln!("fixture {} starts with {}", std::process::id(), server.secret());
    if server.has("broken") {
        eprintln!("fixture is broken");
        return ExitCode::FAILURE;
    }
    server.note("started", &std::process::id().to_string());
    let watcher = server.clone();
    std::thread::spawn(move || watcher.watch());
    for line in std::io::stdin().lock().lines() {
        let message: Value = serde_json::from_str(&line.expect("text")).expect("JSON");
        let server = server.clone();
        match message["method"].as_str() {
            Some("notifications/cancelled") => server.note("cancelled", &message.to_string()),
            Some(_) if message["id"].is_null() => {}
            Some(_) => drop(std::thread::spawn(move || server.handle(message))),
            None => server.answered(message),
        }
    }
    server.note("ended", "");
    while server.has("stubborn") {
        std::thread::sleep(LOOK);
    }
    ExitCode::SUCCESS
}

struct Server {
    is_modern: bool,
    directory: PathBuf,
    /// Answers to what it asked, by id.
    waiting: Mutex<BTreeMap<String, std::sync::mpsc::Sender<Value>>>,
    questions: AtomicUsize,
    listings: AtomicUsize,
}

impl Server {
    fn handle(&self, request: Value) {
        let result = match request["method"].as_str().unwrap_or_default() {
            "server/discover" if self.is_modern => Ok(json!({
                "resultType": "complete", "supportedVersions": [MODERN], "ttlMs": 0, "cacheScope": "private",
                "capabilities": {"tools": {"listChanged": true}, "extensions": {"io.modelcontextprotocol/tasks": {}}},
                "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "fixture", "version": "1"}},
            })),
            "initialize" if !self.is_modern => Ok(json!({
                "protocolVersion": LEGACY, "capabilities": {"tools": {"listChanged": true}},
                "serverInfo": {"name": "fixture", "version": "1"}, "instructions": "Handle with care.",
            })),
            "subscriptions/listen" => return self.listens(&request),
            "tools/list" => Ok(self.list(&request["params"]["cursor"])),
            "tools/call" => return self.call(request),
            "tasks/get" if self.has("task-lost") => Err("no such task".into()),
            "tasks/get" => Ok(self.task(request["params"]["taskId"].as_str().unwrap_or_default())),
            "tasks/update" => {
                self.note("task-answer", &request["params"]["inputResponses"].to_string());
                Ok(json!({"resultType": "complete"}))
            }
            "tasks/cancel" => {
                self.note("task-cancelled", "");
                Ok(json!({"resultType": "complete"}))
            }
            other => Err(format!("no method {other}")),
        };
        self.respond(&request, result);
    }

    /// A page of at most [`PAGE`] tools; counts the listings in the file `listings`.
    fn list(&self, cursor: &Value) -> Value {
        let tools = std::fs::read_to_string(self.directory.join("tools.json"));
        let tools: Vec<Value> = serde_json::from_str(&tools.unwrap_or_else(|_| "[]".into())).expect("JSON");
        if cursor.is_null() {
            let listings = self.listings.fetch_add(1, Ordering::Relaxed) + 1;
            self.note("listings", &listings.to_string());
        }
        let from: usize = cursor
            .as_str()
            .and_then(|cursor| cursor.parse().ok())
            .unwrap_or(0);
        let page: Vec<Value> = tools.iter().skip(from).take(PAGE).cloned().collect();
        let mut listed =
            json!({ "resultType": "complete", "tools": page, "ttlMs": 0, "cacheScope": "private" });
        if from + PAGE < tools.len() {
            listed["nextCursor"] = (from + PAGE).to_string().into();
        }
        listed
    }

    fn call(&self, request: Value) {
        let params = &request["params"];
        let text =
            |text: String| json!({"resultType": "complete", "content": [{"type": "text", "text": text}]});
        let name = params["name"].as_str().unwrap_or_default();
        self.note(&format!("called-{name}"), &params.to_string());
        let result = match name {
            "echo" => Ok(text(
                params["arguments"]["text"].as_str().unwrap_or_default().into(),
            )),
            "secret" => Ok(text(self.secret())),
            "secret_error" => Err(format!("no access with {}", self.secret())),
            "secret_fail" => Ok(json!({"resultType": "complete", "isError": true,
                "content": [{"type": "text", "text": format!("{} is wrong", self.secret())}]})),
            "later" => Ok(self.later(params)),
            "roots" => Ok(match params["inputResponses"]["roots"].as_object() {
                Some(roots) => text(json!(roots).to_string()),
                None => json!({"resultType": "input_required", "requestState": "s",
                    "inputRequests": {"roots": {"method": "roots/list"}}}),
            }),
            "fail" => Ok(
                json!({"resultType": "complete", "isError": true, "content": [{"type": "text", "text": "it broke"}]}),
            ),
            "refuse" => Err("refused by the server".into()),
            "slow" => return,
            "die" => std::process::exit(3),
            "spawn" => Ok(text(self.spawn())),
            "image" => Ok(json!({"resultType": "complete", "content": [
                {"type": "text", "text": "look"},
                {"type": "image", "data": "aGVsbG8=", "mimeType": "image/png"},
                {"type": "resource", "resource": {"uri": "file:///a.bin", "blob": "AAEC", "mimeType": "application/octet-stream"}},
                {"type": "resource_link", "uri": "https://a.test/x", "name": "x"},
            ]})),
            "numbers" => Ok(
                json!({"resultType": "complete", "content": [{"type": "text", "text": "{}"}],
                "structuredContent": params["arguments"]}),
            ),
            "progress" => {
                for step in 1..=3 {
                    let params = json!({"progressToken": params["_meta"]["progressToken"], "progress": step, "total": 3,
                        "message": format!("step {step}{}", self.secret())});
                    self.send(
                        &json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": params}),
                    );
                }
                Ok(text("done".into()))
            }
            "progress_flood" => {
                let token = &params["_meta"]["progressToken"];
                for step in 1..=5_000 {
                    let params = json!({"progressToken": token, "progress": step});
                    self.send(
                        &json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": params}),
                    );
                }
                Ok(text("done".into()))
            }
            "ask" => Ok(self.ask(params)),
            "ask_forever" => loop {
                self.ask(params);
            },
            "task" | "asking_task" | "roots_task" => {
                Ok(json!({"resultType": "task", "taskId": name, "status": "working",
                "createdAt": "2026-11-18T00:00:00Z", "lastUpdatedAt": "2026-11-18T00:00:00Z", "ttlMs": null,
                "pollIntervalMs": 10}))
            }
            other => Err(format!("no tool {other}")),
        };
        self.respond(&request, result);
    }

    /// Asks for a name: in the middle of the call, or by wanting the call again.
    fn ask(&self, params: &Value) -> Value {
        let schema =
            json!({"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]});
        let mut question = json!({"mode": "form", "message": format!("Who are you?{}", self.secret()), "requestedSchema": schema});
        if params["arguments"]["named"] == true {
            question["_meta"] = json!({"progressToken": params["_meta"]["progressToken"]});
        }
        let answer = match (self.is_modern, params["inputResponses"]["who"].as_object()) {
            (false, _) => {
                let (sender, answer) = std::sync::mpsc::channel();
                let id = format!("q{}", self.questions.fetch_add(1, Ordering::Relaxed));
                self.waiting.lock().unwrap().insert(id.clone(), sender);
                self.send(
                    &json!({"jsonrpc": "2.0", "id": id, "method": "elicitation/create", "params": question}),
                );
                answer.recv().expect("an answer")["result"].clone()
            }
            (true, None) => {
                let who = json!({"method": "elicitation/create", "params": question});
                return json!({"resultType": "input_required", "inputRequests": {"who": who}, "requestState": "state-1"});
            }
            (true, Some(answer)) => {
                assert_eq!(params["requestState"], "state-1");
                Value::Object(answer.clone())
            }
        };
        let words = match answer["action"].as_str() {
            Some("accept") => format!("hello {}", answer["content"]["name"].as_str().unwrap_or_default()),
            other => format!("nobody: {}", other.unwrap_or_default()),
        };
        json!({"resultType": "complete", "content": [{"type": "text", "text": words}]})
    }

    /// Wants to be asked again until it was four times, each time with the state that it gave last.
    fn later(&self, params: &Value) -> Value {
        let seen: u32 = params["requestState"]
            .as_str()
            .map_or(0, |state| state.parse().expect("a number"));
        self.note("later", &seen.to_string());
        match seen {
            3 => json!({"resultType": "complete", "content": [{"type": "text", "text": "at last"}]}),
            _ => json!({"resultType": "input_required", "requestState": (seen + 1).to_string()}),
        }
    }

    fn secret(&self) -> String {
        std::env::var("FIXTURE_SECRET").unwrap_or_default()
    }

    fn has(&self, name: &str) -> bool {
        self.directory.join(name).exists()
    }

    /// A task is done once the file `task-done` is there, and one that asks once it was answered.
    fn task(&self, id: &str) -> Value {
        let mut task = json!({"resultType": "complete", "taskId": id, "createdAt": "2026-11-18T00:00:00Z",
            "lastUpdatedAt": "2026-11-18T00:00:00Z", "ttlMs": null, "pollIntervalMs": 10});
        let has = |name: &str| self.directory.join(name).exists();
        let result = |text: &str| json!({"content": [{"type": "text", "text": text}]});
        if id == "roots_task" && !has("task-answer") {
            task["status"] = "input_required".into();
            task["inputRequests"] = json!({"folders": {"method": "roots/list"}});
        } else if id == "asking_task" && !has("task-answer") {
            let schema =
                json!({"type": "object", "properties": {"go": {"type": "boolean"}}, "required": ["go"]});
            let params = json!({"mode": "form", "message": "Go on?", "requestedSchema": schema});
            task["status"] = "input_required".into();
            task["inputRequests"] = json!({"go": {"method": "elicitation/create", "params": params}});
        } else if id == "asking_task" || id == "roots_task" {
            let answer = std::fs::read_to_string(self.directory.join("task-answer")).expect("it is there");
            task["status"] = "completed".into();
            task["result"] = result(&answer);
        } else if has("task-done") {
            task["status"] = "completed".into();
            task["result"] = result("worked");
        } else {
            task["status"] = "working".into();
            task["statusMessage"] = "at it".into();
        }
        task
    }

    /// A grandchild that leaves the process group and the session.
    fn spawn(&self) -> String {
        let script = "setsid sh -c 'echo $$; exec sleep 1000' & wait";
        let mut child = Command::new("sh")
            .args(["-c", script])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a shell");
        let mut pid = String::new();
        let mut output = std::io::BufReader::new(child.stdout.take().expect("it is piped"));
        output.read_line(&mut pid).expect("a line");
        std::thread::spawn(move || child.wait());
        pid.trim().to_owned()
    }

    fn listens(&self, request: &Value) {
        let meta = json!({"io.modelcontextprotocol/subscriptionId": request["id"]});
        self.note("listens", &request["id"].to_string());
        let params = json!({"_meta": meta, "notifications": {"toolsListChanged": true}});
        self.send(&json!({"jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged", "params": params}));
    }

    /// Tells that the list has changed when the file `changed` comes.
    fn watch(&self) {
        loop {
            std::thread::sleep(LOOK);
            let path = self.directory.join("changed");
            let Ok(count) = std::fs::read_to_string(&path) else {
                continue;
            };
            std::fs::remove_file(path).expect("it is there");
            let mut notice = json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"});
            if self.is_modern {
                let id = std::fs::read_to_string(self.directory.join("listens")).expect("a subscription");
                let id: Value = serde_json::from_str(&id).expect("an id");
                notice["params"] = json!({"_meta": {"io.modelcontextprotocol/subscriptionId": id}});
            }
            for _ in 0..count.parse().unwrap_or(1) {
                self.send(&notice);
                // So that a gateway that lists for each of them has the time to.
                std::thread::sleep(Duration::from_millis(1));
            }
            self.note("told", &count);
        }
    }

    fn answered(&self, message: Value) {
        let id = message["id"].as_str().unwrap_or_default();
        if let Some(waiting) = self.waiting.lock().unwrap().remove(id) {
            let _ = waiting.send(message);
        }
    }

    fn respond(&self, request: &Value, result: Result<Value, String>) {
        let mut response = json!({"jsonrpc": "2.0", "id": request["id"]});
        match result {
            Ok(mut result) => {
                if !self.is_modern
                    && let Some(members) = result.as_object_mut()
                {
                    for modern in ["resultType", "ttlMs", "cacheScope"] {
                        members.remove(modern);
                    }
                }
                response["result"] = result;
            }
            Err(words) => response["error"] = json!({"code": -32601, "message": words}),
        }
        self.send(&response);
    }

    fn send(&self, message: &Value) {
        let mut out = std::io::stdout().lock();
        // A gateway that is gone reads nothing.
        let _ = writeln!(out, "{message}");
        let _ = out.flush();
    }

    /// Written whole: a test that sees the file reads all of it.
    fn note(&self, name: &str, text: &str) {
        let path: &Path = &self.directory;
        let part = path.join(format!(".{name}"));
        std::fs::write(&part, text).expect("a directory");
        std::fs::rename(part, path.join(name)).expect("a directory");
    }
}
