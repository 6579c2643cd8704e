//! Projects are apart: nothing of one reaches another, over every route there is; and each has its own settings.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::http::HeaderMap;
use reqwest::Method;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_util::task::AbortOnDropHandle;
use toolgate_testkit::model_server::ModelServer;

use crate::harness::{Answer, Api, Gateway, api_answer, put_agent, soon, tool};
use crate::plugins::{CURATOR, Curator, document as plugin_document, hash};

const OPERATOR: &str = "operator-key-of-the-tests-0123456789";
/// Stands in everything that belongs to the first project, and must stay there.
const MARK: &str = "MARKED";

async fn two_projects(models: &ModelServer) -> (Gateway, Api, Api) {
    let gateway = Gateway::start(&[
        ("TOOLGATE_OPERATOR_KEY", OPERATOR),
        ("TOOLGATE_MODEL_BASE_URL", models.base_url()),
    ])
    .await;
    let operator = gateway.api().with_key(OPERATOR);
    let made = operator.post("/v1/projects", &json!({"name": "other"})).await;
    assert_eq!(made.status, 201, "{made:?}");
    let backend = gateway.api().with_key(&made.text("secretKey"));
    let user = gateway
        .api()
        .as_user_of(&made.text("publicKey"), &made.text("jwtSecret"), "ada");
    (gateway, backend, user)
}

/// What belongs to the first project, by the names that routes have for their parameters.
struct Belongings {
    parameters: BTreeMap<&'static str, Vec<String>>,
    /// What shows that nothing of it was changed.
    views: Vec<String>,
}

impl Belongings {
    async fn make(api: &Api, models: &ModelServer) -> Self {
        let (mut parameters, mut views) = (BTreeMap::<_, Vec<String>>::new(), Vec::new());
        let mut have = |name, value: String| parameters.entry(name).or_default().push(value);
        let waits = json!({"executionType": "waiting", "execution": {"signal": true}});
        let keeper = json!({
            "instructions": format!("{MARK} script: {{script}}"),
            "model": {"provider": "openai", "name": "script", "baseUrl": models.base_url(), "apiKey": MARK},
            "tools": [
                tool("ask", Value::Null, json!({})),
                tool("risky", json!({"mode": "pass-through"}), json!({"approval": "always"})),
                tool("wait", Value::Null, waits),
                tool("remembered", json!({"mode": "pass-through"}), json!({"approval": "until-revoked"})),
            ],
        });
        for (agent, script) in [
            ("keeper", "call:ask"),
            ("asker", "call:risky"),
            ("waiter", "call:wait"),
        ] {
            let text = keeper
                .to_string()
                .replace("{script}", &format!("{script} text:2"));
            put_agent(api, agent, &serde_json::from_str(&text).expect("JSON")).await;
            let message = json!({"agent": agent, "message": MARK});
            let started = api.post("/v1/runs", &message).await;
            assert!(started.is_success(), "{started:?}");
            let (run, space) = (started.text("runId"), started.text("spaceId"));
            let waiting = waiting(api, &run).await;
            for (list, member, parameter) in [
                ("calls", "toolCallId", "call"),
                ("pauses", "toolCallId", "call"),
                ("approvals", "approvalId", "approval"),
            ] {
                for one in waiting.body["pending"][list].as_array().into_iter().flatten() {
                    have(parameter, one[member].as_str().expect("an id").to_owned());
                }
            }
            views.extend([
                format!("/v1/runs/{run}"),
                format!("/v1/runs/{run}/events"),
                format!("/v1/spaces/{space}"),
                format!("/v1/spaces/{space}/events"),
                format!("/v1/spaces/{space}/files"),
                format!("/v1/agents/{agent}"),
            ]);
            have("chat", space.clone());
            have("run", run);
            have("space", space);
            have("agent", agent.into());
            have("name", agent.into());
        }
        let space = parameters["space"][0].clone();
        let consent = consent(api, &space).await;
        views.push(format!("/v1/spaces/{space}/consents"));
        let file = format!("/v1/spaces/{space}/files/{MARK}.txt");
        let written = put_text(api, &file).await;
        assert!(written.is_success(), "{written:?}");
        let document = format!("/v1/knowledge/documents/{MARK}");
        let kept = put_text(api, &document).await;
        assert!(kept.is_success(), "{kept:?}");
        let person = json!({"name": MARK, "metadata": {"mark": MARK}});
        let entity = api.put("/v1/entities/ada", &person).await;
        assert!(entity.is_success(), "{entity:?}");
        let key = api
            .post("/v1/keys", &json!({"kind": "secret", "name": MARK}))
            .await;
        assert!(key.is_success(), "{key:?}");
        let code = api.post("/v1/login-codes", &json!({})).await.text("code");
        let sign_in = api.request(Method::POST, "/v1/sessions");
        let sign_in = sign_in
            .header("sec-fetch-site", "same-origin")
            .header("user-agent", MARK);
        let session = api_answer(sign_in.json(&json!({ "code": code })))
            .await
            .expect("an answer");
        assert!(session.is_success(), "{session:?}");
        let shared = json!({"description": MARK, "executionType": "basic", "execution": {"static": MARK}});
        let shared = api.put("/v1/shared-tools/theirs", &shared).await;
        assert!(shared.is_success(), "{shared:?}");
        let settings = api
            .put("/v1/settings", &json!({"secrets": {"TOKEN": MARK}}))
            .await;
        assert!(settings.is_success(), "{settings:?}");
        // Its view changes by itself while it is tried again, so it is not among those that are compared.
        let server = json!({"command": "/no/such/program", "args": [MARK]});
        let server = api.put("/v1/mcp/servers/marked", &server).await;
        assert!(server.is_success(), "{server:?}");
        let package = marked_plugin(api).await;
        let address = format!("/v1/plugins/{package}");
        views.extend([file, document, address, format!("/v1/curators/{CURATOR}")]);
        let lists = [
            "agents",
            "spaces",
            "runs",
            "keys",
            "knowledge/documents",
            "knowledge/search?query=marked",
            "entities/ada",
            "settings",
            "tools",
            "plugins",
            "curators",
            "shared-tools",
            "sessions",
        ];
        views.extend(lists.map(|list| format!("/v1/{list}")));
        let mut have = |name, value: &str| parameters.entry(name).or_default().push(value.to_owned());
        have("path", &format!("{MARK}.txt"));
        // Not one of the first project's: a link is for whoever has it.
        have("link", "AgAAAAAA");
        have("consent", &consent);
        have("document", MARK);
        for kept in ["goal", "memory", "plan"] {
            have(kept, MARK);
        }
        have("tool", "theirs");
        have("server", "marked");
        have("question", "qst_00000000000000000000000000_0_0");
        have("subject", "ada");
        have("entity", &entity.text("id"));
        have("key", &key.text("id"));
        have("session", &session.text("id"));
        have("revision", "1");
        have("delivery", "dlv_00000000000000000000000000");
        have("project", "default");
        have("plugin", "marked");
        have("plugin", &package);
        have("curator", CURATOR);
        Self { parameters, views }
    }

    /// Everything as its owner sees it.
    async fn seen_by(&self, api: &Api) -> Vec<Answer> {
        let mut seen = Vec::new();
        for view in &self.views {
            seen.push(api.get(view).await);
        }
        seen
    }

    /// The path with the first project's things in it: one path for each that fits.
    fn paths(&self, path: &str) -> Vec<String> {
        let Some((before, rest)) = path.split_once('{') else {
            return vec![path.to_owned()];
        };
        let (name, after) = rest.split_once('}').expect("a parameter ends");
        let values = self.parameters.get(name);
        let values = values.unwrap_or_else(|| panic!("no sample for the parameter {name} of {path}"));
        let paths = values
            .iter()
            .flat_map(|value| self.paths(&format!("{before}{value}{after}")));
        paths.collect()
    }
}

/// Has a decision remembered in the space, and gives the id of the consent.
async fn consent(api: &Api, space: &str) -> String {
    let call = json!({"arguments": {"mark": MARK}, "agent": "keeper", "spaceId": space});
    let asked = api.post("/v1/tools/remembered/call", &call).await;
    let approval = &asked.body["pending"]["approvals"][0]["approvalId"];
    let path = format!("/v1/approvals/{}", approval.as_str().expect("it asks"));
    let decided = api.post(&path, &json!({"approved": true})).await;
    assert_eq!(decided.body["remembered"], true, "{decided:?}");
    let known = api.get(&format!("/v1/spaces/{space}/consents")).await;
    known.body["consents"][0]["id"]
        .as_str()
        .expect("one is listed")
        .to_owned()
}

/// Installs a plugin with the mark in it, and gives its hash.
async fn marked_plugin(api: &Api) -> String {
    let curator = Curator::new();
    curator.trusted(api).await;
    let mut document = plugin_document("marked", "1.0.0", &[("marked_tool", "return 'MARKED';")]);
    document["name"] = json!(MARK);
    let signed = curator.signed(document);
    let installed = api.post("/v1/plugins", &signed).await;
    assert_eq!(installed.status, 201, "{installed:?}");
    hash(&signed)
}

/// Waits until a run waits for somebody, and gives it as it stands then.
async fn waiting(api: &Api, run: &str) -> Answer {
    soon("a pause", async {
        let mut events = api.follow(run, 0).await;
        while let Some(event) = events.next().await {
            if event.data["status"]
                .as_str()
                .is_some_and(|status| status.starts_with("waiting"))
            {
                return;
            }
        }
    })
    .await;
    api.get(&format!("/v1/runs/{run}")).await
}

async fn put_text(api: &Api, path: &str) -> Answer {
    let request = api
        .request(Method::PUT, path)
        .header("content-type", "text/plain");
    api_answer(request.body(MARK)).await.expect("the gateway answers")
}

/// A body that the route takes, so that a request fails for whose it is and not for what it says.
fn body(path: &str) -> Value {
    match path.rsplit('/').next().unwrap_or_default() {
        "messages" | "runs" => json!({"message": "hello"}),
        "chat" => json!({"message": "hello"}),
        "tool-results" => json!({"results": []}),
        "claim" | "release" => json!({"holder": "stranger"}),
        "progress" => json!({"progress": 1}),
        "signal" => json!({"value": 1}),
        "call" => json!({"arguments": {"mine": 1}}),
        "documents" => json!({"documents": [{"id": "theirs", "text": "mine"}]}),
        "validate" => json!({"tools": []}),
        "keys" => json!({"kind": "public"}),
        "spaces" => json!({}),
        "file-links" => json!({"path": format!("{MARK}.txt")}),
        "rtc" => json!({"sdp": "v=0\r\n"}),
        "settings" => json!({}),
        "projects" => json!({"name": "third"}),
        "plugins" | "sign" => plugin_document("stranger", "1.0.0", &[("strange", "return 1;")]),
        "revoke" => json!({"plugin": "marked"}),
        _ if path.contains("/curators/") => json!({"name": "stranger"}),
        _ if path.contains("/approvals/") => json!({"approved": true}),
        _ if path.contains("/shared-tools/") => json!({"description": "mine"}),
        _ if path.contains("/agents/") => json!({"instructions": "mine"}),
        _ => json!({}),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_crosses_projects_over_any_route() {
    let models = ModelServer::start().await;
    let (gateway, backend, user) = two_projects(&models).await;
    let owner = gateway.api();
    let belongings = Belongings::make(&owner, &models).await;
    let before = belongings.seen_by(&owner).await;
    assert!(before.iter().all(Answer::is_success), "{before:?}");
    let document = owner.get("/openapi.json").await.body;
    let mut requests = 0;
    for (route, methods) in document["paths"].as_object().expect("paths") {
        for method in methods.as_object().expect("methods").keys() {
            let method: Method = method.to_uppercase().parse().expect("a method");
            for path in belongings.paths(route) {
                for stranger in [&backend, &user] {
                    let answer = stranger.send(method.clone(), &path, &body(&path)).await;
                    let told = answer.body.to_string();
                    assert!(answer.status < 500, "{method} {path}: {answer:?}");
                    // The figures of the process name no project's things.
                    assert!(
                        !told.replace(&path, "").contains(MARK),
                        "{method} {path} tells {answer:?}"
                    );
                    requests += 1;
                }
            }
        }
    }
    assert!(requests > 100, "only {requests} requests were made");
    assert_eq!(
        belongings.seen_by(&owner).await,
        before,
        "a stranger changed something"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_the_operator_manages_projects_and_sees_nothing_inside_them() {
    let models = ModelServer::start().await;
    let (gateway, backend, user) = two_projects(&models).await;
    let operator = gateway.api().with_key(OPERATOR);
    for stranger in [&gateway.api(), &backend, &user] {
        for path in ["/v1/projects", "/v1/projects/other", "/v1/projects/other/keys"] {
            let answer = stranger.get(path).await;
            assert!([401, 403].contains(&answer.status), "{path}: {answer:?}");
        }
    }
    for path in ["/v1/agents", "/v1/runs", "/v1/spaces", "/v1/keys", "/v1/settings"] {
        let answer = operator.get(path).await;
        assert!([401, 403].contains(&answer.status), "{path}: {answer:?}");
    }
    let again = operator.post("/v1/projects", &json!({"name": "other"})).await;
    assert_eq!(again.status, 409, "{again:?}");
    let bad =
        json!({"name": "Not a name", "settings": {"colour": {}, "search": {"engine": "none", "speed": 1}}});
    let bad = operator.post("/v1/projects", &bad).await;
    assert_eq!(bad.status, 422, "{bad:?}");
    let pointers: Vec<&str> = bad.body["errors"]
        .as_array()
        .expect("problems")
        .iter()
        .filter_map(|problem| problem["pointer"].as_str())
        .collect();
    assert_eq!(
        pointers,
        ["/name", "/settings/colour", "/settings/search"],
        "{bad:?}"
    );

    let large = json!({"secrets": {"TOKEN": "x".repeat(64 * 1024)}});
    assert_eq!(backend.put("/v1/settings", &large).await.status, 422);
    assert_eq!(backend.get("/v1/settings").await.body["settings"], json!({}));

    let kept = operator
        .send(Method::DELETE, "/v1/projects/default", &json!({}))
        .await;
    assert_eq!(kept.status, 409, "{kept:?}");
    let removed = operator
        .send(Method::DELETE, "/v1/projects/other", &json!({}))
        .await;
    assert_eq!(removed.status, 204, "{removed:?}");
    assert_eq!(
        backend.get("/v1/agents").await.status,
        401,
        "its keys open nothing any more"
    );
    assert_eq!(operator.get("/v1/projects/other").await.status, 404);
}

/// A server that notes which token it was sent.
async fn token_server() -> (String, Arc<Mutex<Vec<String>>>, AbortOnDropHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("an address").to_string();
    let tokens: Arc<Mutex<Vec<String>>> = Arc::default();
    let noted = tokens.clone();
    let app = Router::new().fallback(move |headers: HeaderMap| async move {
        let token = headers.get("x-token").map_or("", |token| token.to_str().unwrap());
        noted.lock().unwrap().push(token.into());
        "noted"
    });
    let task = tokio::spawn(async move { axum::serve(listener, app).await.expect("a server") });
    (address, tokens, AbortOnDropHandle::new(task))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_project_has_its_own_secrets_and_allow_list() {
    let (models, (address, tokens, _server)) = (ModelServer::start().await, token_server().await);
    let gateway = Gateway::start(&[
        ("TOOLGATE_OPERATOR_KEY", OPERATOR),
        ("TOOLGATE_OUTSIDE_ALLOW", &address),
        ("TOOLGATE_SECRET_TOKEN", "of-default"),
    ])
    .await;
    let (default, operator) = (gateway.api(), gateway.api().with_key(OPERATOR));
    let made = operator.post("/v1/projects", &json!({"name": "other"})).await;
    let other = gateway.api().with_key(&made.text("secretKey"));
    let agent = json!({
        "instructions": "script: call:ask_api text:2",
        "model": {"provider": "openai", "name": "script", "baseUrl": models.base_url(), "apiKey": "none"},
        "tools": [{
            "name": "ask_api", "description": "Asks.", "executionType": "request",
            "execution": {"url": format!("http://{address}/"), "headers": {"X-Token": "${secret.TOKEN}"}},
        }],
    });
    let run = async |api: &Api| {
        put_agent(api, "caller", &agent).await;
        let started = api
            .post("/v1/runs", &json!({"agent": "caller", "message": "go"}))
            .await;
        let events = api.finished(&started.text("runId")).await;
        let failed = events
            .iter()
            .find(|event| event.data["type"] == "tool-output-error");
        failed.map(|event| event.data["errorText"].as_str().unwrap_or_default().to_owned())
    };

    assert_eq!(run(&default).await, None);
    let refused = run(&other)
        .await
        .expect("it has neither the secret nor the address");
    assert!(refused.contains("TOKEN"), "{refused}");
    let own = json!({"secrets": {"TOKEN": "of-other"}});
    assert!(other.put("/v1/settings", &own).await.is_success());
    let refused = run(&other).await.expect("it may not reach the address");
    assert!(!refused.contains("TOKEN"), "{refused}");
    let allow = json!({"outside": {"allow": [address]}});
    let denied = other.put("/v1/settings", &allow).await;
    assert_eq!(
        (denied.status, denied.body["errors"][0]["pointer"].as_str()),
        (422, Some("/outside"))
    );

    // Masked as it was read, a secret that is written back stays what it was.
    let mut all = operator.get("/v1/projects/other").await.body["settings"].clone();
    assert_eq!(all, json!({"secrets": {"TOKEN": "***"}}));
    all["outside"] = allow["outside"].clone();
    assert!(
        operator
            .put("/v1/projects/other/settings", &all)
            .await
            .is_success()
    );
    assert_eq!(run(&other).await, None);
    assert_eq!(run(&default).await, None);
    assert_eq!(*tokens.lock().unwrap(), ["of-default", "of-other", "of-default"]);
}
