//! Plugins through the real binary: installed, run, upgraded, revoked, refused.

mod curator;
mod kill;

use axum::Router;
use reqwest::Method;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_util::task::AbortOnDropHandle;
use toolgate_package::{Algorithm, SigningKey};
use toolgate_testkit::model_server::ModelServer;

pub use curator::{CURATOR, Curator, document, hash};

use crate::harness::{Answer, Api, Event, Gateway, Outside, put_agent, soon};

/// Stands in the code of every plugin, which neither models nor users may see.
const CODE_MARK: &str = "CODE_MARK";

/// An agent with these tools, which does what the script says.
fn agent(models: &ModelServer, script: &str, tools: Value) -> Value {
    json!({
        "access": "public",
        "instructions": format!("script: {script}"),
        "model": {"provider": "openai", "name": "script", "baseUrl": models.base_url(), "apiKey": "none"},
        "tools": tools,
    })
}

fn plugin_tool(name: &str) -> Value {
    json!({"name": name, "executionType": "plugin", "execution": {"tool": name}})
}

async fn run(api: &Api, agent: &str) -> (String, Vec<Event>) {
    let started = api
        .post("/v1/runs", &json!({"agent": agent, "message": "go"}))
        .await;
    assert!(started.is_success(), "{started:?}");
    let run = started.text("runId");
    let events = api.finished(&run).await;
    (run, events)
}

/// The output of the one call of a run.
fn output(events: &[Event]) -> &Value {
    let done = events.iter().find(|event| event.kind == "tool-output-available");
    &done.unwrap_or_else(|| panic!("no output in {events:#?}")).data["output"]
}

/// A server that gives this document, whatever it is asked.
async fn server(document: &Value) -> (String, AbortOnDropHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("an address").to_string();
    let text = document.to_string();
    let app = Router::new().fallback(move || async move { text });
    let task = tokio::spawn(async move { axum::serve(listener, app).await.expect("a server") });
    (address, AbortOnDropHandle::new(task))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn plugins_from_a_file_and_from_an_address_serve_an_agent() {
    let (models, curator) = (ModelServer::start().await, Curator::new());
    let code = format!("/* {CODE_MARK} */ return {{said: args.text.toUpperCase()}};");
    let whisper = curator.signed(document(
        "whisper",
        "1.0.0",
        &[("whisper", "return args.text.toLowerCase();")],
    ));
    let (address, _server) = server(&whisper).await;
    let gateway = Gateway::start(&[("TOOLGATE_OUTSIDE_ALLOW", &address)]).await;
    let api = gateway.api();
    curator.trusted(&api).await;

    let shout = curator.signed(document("shout", "1.0.0", &[("shout", &code)]));
    let review = api.post("/v1/plugins?dryRun=true", &shout).await;
    assert_eq!(
        (review.status, review.body["installed"].as_bool()),
        (200, Some(false)),
        "{review:?}"
    );
    assert_eq!(review.body["package"]["verification"]["state"], "verified");
    assert_eq!(
        api.get("/v1/plugins").await.body["plugins"],
        json!([]),
        "a review changes nothing"
    );
    let installed = api.post("/v1/plugins", &shout).await;
    assert_eq!(
        (installed.status, installed.text("action").as_str()),
        (201, "install"),
        "{installed:?}"
    );
    assert_eq!(
        api.post("/v1/plugins", &shout).await.status,
        200,
        "it is there already"
    );

    let other = json!({"sourceUrl": format!("http://{address}/x"), "packageHash": "0".repeat(64)});
    assert_eq!(
        api.post("/v1/plugins", &other).await.text("code"),
        "HASH_MISMATCH"
    );
    let from = json!({"sourceUrl": format!("http://{address}/x"), "packageHash": hash(&whisper)});
    let installed = api.post("/v1/plugins", &from).await;
    assert_eq!(installed.status, 201, "{installed:?}");
    let guarded = json!({"sourceUrl": "http://127.0.0.1:1/x", "packageHash": hash(&whisper)});
    assert_eq!(
        api.post("/v1/plugins", &guarded).await.text("code"),
        "FETCH_FAILED"
    );

    let tools = json!([plugin_tool("shout"), "whisper"]);
    put_agent(
        &api,
        "loud",
        &agent(
            &models,
            r#"call:shout input:{"text":"hey"} text:1"#,
            tools.clone(),
        ),
    )
    .await;
    put_agent(
        &api,
        "quiet",
        &agent(&models, r#"call:whisper input:{"text":"HEY"} text:1"#, tools),
    )
    .await;
    let (loud, events) = run(&api, "loud").await;
    assert_eq!(output(&events), &json!({"said": "HEY"}));
    assert_eq!(output(&run(&api, "quiet").await.1), &json!("hey"));

    let list = api.get("/v1/plugins").await;
    assert!(!list.body.to_string().contains(CODE_MARK), "no code in lists");
    let package = api.get(&format!("/v1/plugins/{}", hash(&shout))).await;
    assert_eq!(package.body, shout, "content-addressed");
    let told = serde_json::to_string(&models.conversations()).expect("JSON");
    assert!(!told.contains(CODE_MARK), "a model was shown code");
    only_names_for_users(&gateway, &loud).await;
}

/// A user learns that a plugin's tool ran, and nothing else of it.
async fn only_names_for_users(gateway: &Gateway, run_of_backend: &str) {
    let user = gateway.api().as_user("ada");
    for (method, path) in [
        (Method::GET, "/v1/plugins"),
        (Method::POST, "/v1/plugins"),
        (Method::POST, "/v1/plugins/sign"),
        (Method::POST, "/v1/plugins/revoke"),
        (Method::DELETE, "/v1/plugins/shout"),
        (Method::GET, "/v1/curators"),
    ] {
        let refused = user.send(method.clone(), path, &json!({})).await;
        assert_eq!(refused.status, 403, "{method} {path}: {refused:?}");
    }
    assert_eq!(user.get(&format!("/v1/runs/{run_of_backend}")).await.status, 404);
    let started = user
        .post("/v1/runs", &json!({"agent": "loud", "message": "go"}))
        .await;
    let events = user.finished(&started.text("runId")).await;
    let call = events
        .iter()
        .find(|event| event.kind == "tool-output-available")
        .expect("it ran");
    assert_eq!(call.data["toolName"], "shout");
    let told = events
        .iter()
        .map(|event| event.data.to_string())
        .collect::<String>();
    for hidden in [CODE_MARK, "HEY", "hey"] {
        assert!(!told.contains(hidden), "{hidden} reached a user: {told}");
    }
    let tools = user.get("/v1/tools").await.body.to_string();
    assert!(!tools.contains("shout"), "{tools}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_code_writes_to_console_stands_with_its_call_for_backends_only() {
    let (models, curator) = (ModelServer::start().await, Curator::new());
    let gateway = Gateway::start(&[]).await;
    let api = gateway.api();
    curator.trusted(&api).await;
    let code = "console.log('LOG_MARK', args.text); console.error('two\\nlines'); return 'OUTPUT_MARK';";
    let noisy = curator.signed(document("noisy", "1.0.0", &[("noisy", code)]));
    assert_eq!(api.post("/v1/plugins", &noisy).await.status, 201);
    let failing = "console.warn('LOG_MARK before'); throw new Error('ERROR_MARK');";
    let tools = json!([
        {"name": "noisy", "executionType": "plugin", "execution": {"tool": "noisy"}, "visibility": "public"},
        {"name": "failing", "description": "Fails.", "executionType": "compute", "execution": {"code": failing},
         "visibility": "public"},
    ]);
    let script = r#"call:noisy input:{"text":"hey"} call:failing input:{} text:1"#;
    put_agent(&api, "loud", &agent(&models, script, tools)).await;

    let user = api.as_user("ada");
    let started = user
        .post("/v1/runs", &json!({"agent": "loud", "message": "go"}))
        .await;
    let run = started.text("runId");
    let seen = user.finished(&run).await;
    let told: String = seen.iter().map(|event| event.data.to_string()).collect();
    assert!(
        told.contains("OUTPUT_MARK") && told.contains("ERROR_MARK"),
        "{told}"
    );
    assert!(!told.contains("LOG_MARK"), "{told}");

    let events = api.finished(&run).await;
    let log = |kind: &str| {
        let event = events.iter().find(|event| event.kind == kind);
        event.unwrap_or_else(|| panic!("no {kind} in {events:#?}")).data["log"].clone()
    };
    assert_eq!(
        log("tool-output-available"),
        "info LOG_MARK hey\nerror two\\nlines"
    );
    assert_eq!(log("tool-output-error"), "warn LOG_MARK before");
    let told = serde_json::to_string(&models.conversations()).expect("JSON");
    assert!(!told.contains("LOG_MARK"), "a model was shown a log");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_waiting_run_keeps_the_version_that_it_pinned() {
    let (models, curator) = (ModelServer::start().await, Curator::new());
    let mut gateway = Gateway::start(&[]).await;
    let api = gateway.api();
    curator.trusted(&api).await;
    let version = |number: &str| {
        curator.signed(document(
            "oracle",
            number,
            &[("ask_oracle", &format!("return {number:?};"))],
        ))
    };
    let post = async |document: &Value| assert_eq!(api.post("/v1/plugins", document).await.status, 201);
    post(&version("1.0.0")).await;
    let mut tool = plugin_tool("ask_oracle");
    tool["approval"] = json!("always");
    put_agent(
        &api,
        "seeker",
        &agent(&models, "call:ask_oracle text:1", json!([tool])),
    )
    .await;

    let waiting = async || {
        let started = api
            .post("/v1/runs", &json!({"agent": "seeker", "message": "go"}))
            .await;
        let run = started.text("runId");
        let mut events = api.follow(&run, 0).await;
        let asked = soon("the question", async {
            loop {
                let event = events.next().await.expect("an event");
                if event.kind == "tool-approval-request" {
                    return event.text("approvalId").to_owned();
                }
            }
        });
        (run, asked.await)
    };
    let answer = async |(run, approval): (String, String)| {
        let decided = api
            .post(&format!("/v1/approvals/{approval}"), &json!({"approved": true}))
            .await;
        assert!(decided.is_success(), "{decided:?}");
        api.finished(&run).await
    };
    let (before, removed, revoked) = (waiting().await, waiting().await, waiting().await);
    post(&version("2.0.0")).await;
    gateway.crash().await;
    assert_eq!(
        output(&answer(before).await),
        "1.0.0",
        "over an upgrade and a crash"
    );
    assert_eq!(
        output(&answer(waiting().await).await),
        "2.0.0",
        "a new run has the new version"
    );

    let gone = api.send(Method::DELETE, "/v1/plugins/oracle", &json!({})).await;
    assert_eq!(gone.status, 204, "{gone:?}");
    assert_eq!(
        output(&answer(removed).await),
        "1.0.0",
        "also when the plugin was removed"
    );
    let revoke = json!({"packageHash": hash(&version("1.0.0")), "reason": "it lies"});
    assert!(api.post("/v1/plugins/revoke", &revoke).await.is_success());
    let events = answer(revoked).await;
    let failed = events
        .iter()
        .find(|event| event.kind == "tool-output-error")
        .expect("it was not made");
    assert_eq!(failed.data["code"], "UNAVAILABLE", "{failed:?}");
    assert!(failed.text("errorText").contains("was revoked"), "{failed:?}");
    assert!(
        !failed.text("errorText").contains("it lies"),
        "the reason is the operator's"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_revoked_plugin_is_stopped_in_the_middle_of_a_call() {
    let (models, curator, outside) = (ModelServer::start().await, Curator::new(), Outside::start().await);
    let gateway = Gateway::start(&[("TOOLGATE_OUTSIDE_ALLOW", &outside.address)]).await;
    let api = gateway.api();
    let code = format!(
        "const answer = await fetch({:?}); return await answer.text();",
        outside.url("/held")
    );
    let mut slow = document("slow", "1.0.0", &[("wait_for_it", &code)]);
    slow["permissions"] = json!(["fetch:127.0.0.1"]);
    let signed = curator.signed(slow);
    let revocations = [
        (
            Method::POST,
            "/v1/plugins/revoke".to_owned(),
            json!({"plugin": "slow"}),
        ),
        (Method::DELETE, format!("/v1/curators/{CURATOR}"), json!({})),
    ];
    for (round, (method, path, body)) in revocations.into_iter().enumerate() {
        // What is revoked stays so: the second round has another version.
        let signed = match round {
            0 => signed.clone(),
            _ => curator.signed({
                let mut next = signed.clone();
                next["version"] = json!("1.1.0");
                next
            }),
        };
        curator.trusted(&api).await;
        let installed = api.post("/v1/plugins", &signed).await;
        assert_eq!(installed.status, 201, "{installed:?}");
        put_agent(
            &api,
            "patient",
            &agent(&models, "call:wait_for_it text:1", json!(["wait_for_it"])),
        )
        .await;
        let started = api
            .post("/v1/runs", &json!({"agent": "patient", "message": "go"}))
            .await;
        outside.held(round + 1).await;
        let revoked = api.send(method, &path, &body).await;
        assert!(revoked.is_success(), "{revoked:?}");
        outside.let_go().await;
        let events = api.finished(&started.text("runId")).await;
        let stopped = events
            .iter()
            .find(|event| event.kind == "tool-output-error")
            .expect("it was stopped");
        assert_eq!(stopped.data["code"], "INTERRUPTED", "{stopped:?}");
        assert!(stopped.text("errorText").contains("was revoked"), "{stopped:?}");
        let list = api.get("/v1/plugins").await;
        assert_eq!(list.body["plugins"][0]["running"], false, "{list:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_refused_changes_nothing() {
    let curator = Curator::new();
    let gateway = Gateway::start(&[]).await;
    let api = gateway.api();
    curator.trusted(&api).await;
    let units = curator.signed(document("units", "1.0.0", &[("convert", "return 1;")]));
    assert_eq!(api.post("/v1/plugins", &units).await.status, 201);
    let shared =
        json!({"description": "Shared.", "executionType": "basic", "execution": {"mode": "pass-through"}});
    let stored = api.put("/v1/shared-tools/of_project", &shared).await;
    assert!(stored.is_success(), "{stored:?}");
    let before = api.get("/v1/plugins").await;

    let unsigned = document("free", "1.0.0", &[("free", "return 1;")]);
    let mut tampered = curator.signed(unsigned.clone());
    tampered["tools"][0]["executorCode"] = json!("return 2;");
    let names = curator.signed(document(
        "thief",
        "1.0.0",
        &[("convert", ""), ("setGoals", ""), ("of_project", "")],
    ));
    let mut needy = document("needy", "1.0.0", &[("need", "return 1;")]);
    needy["dependencies"] = json!({"units": "^2", "nothing": "*"});
    needy["engine"] = json!(">=99");
    let cases = [
        (unsigned, 422, "NOT_VERIFIED", vec!["/packageSignature"]),
        (tampered, 422, "NOT_VERIFIED", vec!["/packageSignature"]),
        (
            names,
            409,
            "NAME_CONFLICT",
            vec!["/tools/0/name", "/tools/1/name", "/tools/2/name"],
        ),
        (
            curator.signed(needy),
            422,
            "PLUGIN_REFUSED",
            vec!["/engine", "/dependencies/nothing", "/dependencies/units"],
        ),
        (json!({"tools": []}), 422, "VALIDATION_FAILED", vec![]),
    ];
    for (document, status, code, pointers) in cases {
        let refused = api.post("/v1/plugins", &document).await;
        assert_eq!(
            (refused.status, refused.text("code").as_str()),
            (status, code),
            "{refused:?}"
        );
        let told: Vec<&str> = pointers_of(&refused);
        assert!(pointers.iter().all(|pointer| told.contains(pointer)), "{told:?}");
        assert_eq!(api.get("/v1/plugins").await, before);
    }
    let unsigned = document("free", "1.0.0", &[("free", "return 1;")]);
    let cannot = api.post("/v1/plugins/sign", &unsigned).await;
    assert_eq!(
        (cannot.status, cannot.text("code").as_str()),
        (403, "CANNOT_SIGN"),
        "{cannot:?}"
    );
    assert!(
        cannot.text("detail").contains("toolgate plugin keygen"),
        "{cannot:?}"
    );
}

fn pointers_of(answer: &Answer) -> Vec<&str> {
    let errors = answer.body["errors"].as_array().expect("errors").iter();
    errors.filter_map(|error| error["pointer"].as_str()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_shared_tool_and_a_plugin_never_have_one_name() {
    let (gateway, curator) = (Gateway::start(&[]).await, Curator::new());
    let api = gateway.api();
    curator.trusted(&api).await;
    let shared = json!({"description": "Fixed.", "execution": {"static": 7}});
    for round in 0..15 {
        let (name, id) = (format!("tool_{round}"), format!("plugin-{round}"));
        let plugin = curator.signed(document(&id, "1.0.0", &[(&name, "")]));
        let path = format!("/v1/shared-tools/{name}");
        let (put, installed) = tokio::join!(api.put(&path, &shared), api.post("/v1/plugins", &plugin));
        assert!(
            put.is_success() != installed.is_success(),
            "one of them has the name: {put:?} {installed:?}"
        );
    }

    // Also a plugin that does not run at the moment keeps its names.
    let plugin = curator.signed(document("stopped", "1.0.0", &[("paused", "")]));
    assert_eq!(api.post("/v1/plugins", &plugin).await.status, 201);
    let revoked = api
        .post("/v1/plugins/revoke", &json!({"plugin": "stopped"}))
        .await;
    assert_eq!(revoked.status, 200, "{revoked:?}");
    let put = api.put("/v1/shared-tools/Paused", &shared).await;
    assert_eq!(put.status, 422, "{put:?}");
    assert_eq!(put.body["errors"][0]["pointer"], "/name");
    let removed = api.send(Method::DELETE, "/v1/plugins/stopped", &json!({})).await;
    assert_eq!(removed.status, 204, "{removed:?}");
    assert_eq!(api.put("/v1/shared-tools/Paused", &shared).await.status, 201);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_plugin_keeps_values_within_its_quota_and_development_marks_what_nobody_signed() {
    let models = ModelServer::start().await;
    let gateway = Gateway::start(&[
        ("TOOLGATE_PLUGINS_MODE", "development"),
        ("TOOLGATE_PLUGINS_STORAGE_BYTES_MAX", "200"),
    ])
    .await;
    let api = gateway.api();
    let count = "const n = ((await storage.get('n')) ?? 0) + 1; await storage.set('n', n); return n;";
    let fill = "try { await storage.set('big', 'x'.repeat(300)); return 'kept'; } catch (error) { return error.message; }";
    let mut counter = document("counter", "1.0.0", &[("count", count), ("fill", fill)]);
    counter["permissions"] = json!(["storage"]);
    let installed = api.post("/v1/plugins", &counter).await;
    assert_eq!(installed.status, 201, "{installed:?}");
    assert_eq!(installed.body["package"]["verification"]["state"], "unsigned");
    put_agent(
        &api,
        "teller",
        &agent(&models, "call:count text:1", json!(["count"])),
    )
    .await;
    put_agent(
        &api,
        "filler",
        &agent(&models, "call:fill text:1", json!(["fill"])),
    )
    .await;
    for expected in 1..=3 {
        assert_eq!(output(&run(&api, "teller").await.1), &json!(expected));
    }
    let full = output(&run(&api, "filler").await.1).to_string();
    assert!(full.contains("at most 200 are allowed"), "{full}");
    let tools = api.get("/v1/tools?agent=teller").await;
    assert_eq!(
        tools.body["tools"][0]["plugin"]["verification"], "unsigned",
        "{tools:?}"
    );

    assert_eq!(
        api.send(Method::DELETE, "/v1/plugins/counter", &json!({}))
            .await
            .status,
        204
    );
    assert_eq!(api.post("/v1/plugins", &counter).await.status, 201);
    assert_eq!(
        output(&run(&api, "teller").await.1),
        &json!(1),
        "a new installation begins anew"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_project_signs_for_the_key_that_it_names_and_goes_back_to_an_earlier_version() {
    let key = SigningKey::generate(Algorithm::Ed25519);
    let operator = "operator-key-of-the-tests-0123456789";
    let gateway = Gateway::start(&[("TOOLGATE_OPERATOR_KEY", operator)]).await;
    let operator = gateway.api().with_key(operator);
    let made = operator.post("/v1/projects", &json!({"name": "signers"})).await;
    let api = gateway.api().with_key(&made.text("secretKey"));
    let signer = api
        .post("/v1/keys", &json!({"kind": "secret", "name": "curator"}))
        .await;
    let settings = json!({
        "plugins": {"signing": {"curator": CURATOR, "secret": "CURATOR_KEY", "keys": [signer.text("id")]}},
        "secrets": {"CURATOR_KEY": key.to_pem().as_str()},
    });
    let own = api.put("/v1/settings", &settings).await;
    assert_eq!(own.status, 422, "what may run is the operator's to say: {own:?}");
    let stored = operator.put("/v1/projects/signers/settings", &settings).await;
    assert!(stored.is_success(), "{stored:?}");
    let public_key = json!({"publicKey": key.public().to_pem()});
    let trusted = api
        .put(&format!("/v1/curators/{CURATOR}"), &json!({"keys": [public_key]}))
        .await;
    assert!(trusted.is_success(), "{trusted:?}");

    let signer = gateway.api().with_key(&signer.text("key"));
    for version in ["1.0.0", "1.1.0"] {
        let unsigned = document("oracle", version, &[("ask_oracle", "return eval('1');")]);
        let other_key = api.post("/v1/plugins/sign", &unsigned).await;
        assert_eq!(
            (other_key.status, other_key.text("code").as_str()),
            (403, "CANNOT_SIGN")
        );
        let signed = signer.post("/v1/plugins/sign", &unsigned).await;
        assert_eq!(signed.status, 200, "{signed:?}");
        assert_eq!(signed.body["audit"]["tools"][0]["constructs"][0]["name"], "eval");
        assert!(!signed.body.to_string().contains("PRIVATE KEY"));
        assert_eq!(
            api.post("/v1/plugins", &signed.body["document"]).await.status,
            201
        );
    }
    let back = api.post("/v1/plugins/oracle/rollback", &json!({})).await;
    assert_eq!(back.body["plugins"][0]["current"]["version"], "1.0.0", "{back:?}");
    assert_eq!(back.body["plugins"][0]["otherVersions"][0]["version"], "1.1.0");
    assert_eq!(
        api.post("/v1/plugins/oracle/rollback", &json!({})).await.status,
        404
    );
    assert_eq!(
        api.post("/v1/plugins/nothing/rollback", &json!({})).await.status,
        404
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_the_operator_adds_curators_where_the_settings_say_so() {
    let operator = "operator-key-of-the-tests-0123456789";
    let settings = [
        ("TOOLGATE_OPERATOR_KEY", operator),
        ("TOOLGATE_PLUGINS_CURATORS", "operator"),
    ];
    let gateway = Gateway::start(&settings).await;
    let (api, operator) = (gateway.api(), gateway.api().with_key(operator));
    let key = SigningKey::generate(Algorithm::Ed25519);
    let curator = |more: Value| {
        let mut key = json!({"publicKey": key.public().to_pem(), "id": "k"});
        key.as_object_mut()
            .expect("an object")
            .extend(more.as_object().expect("an object").clone());
        json!({"keys": [key]})
    };
    let own = format!("/v1/curators/{CURATOR}");
    let refused = api.put(&own, &curator(json!({}))).await;
    assert_eq!(refused.status, 403, "{refused:?}");
    assert!(refused.text("detail").contains("plugins.curators"), "{refused:?}");
    assert_eq!(api.get(&own).await.status, 404);

    let path = format!("/v1/projects/default/curators/{CURATOR}");
    assert_eq!(api.put(&path, &curator(json!({}))).await.status, 403);
    let unknown = format!("/v1/projects/unknown/curators/{CURATOR}");
    assert_eq!(operator.put(&unknown, &curator(json!({}))).await.status, 404);
    let dated = operator
        .put(&path, &curator(json!({"expires": "2099-01-01T00:00:00Z"})))
        .await;
    assert_eq!(dated.status, 200, "{dated:?}");
    let kept = operator.put(&path, &curator(json!({}))).await;
    assert_eq!(kept.body["keys"][0]["expires"], dated.body["keys"][0]["expires"]);
    let cleared = operator.put(&path, &curator(json!({"expires": null}))).await;
    assert!(cleared.body["keys"][0].get("expires").is_none(), "{cleared:?}");

    // To revoke is open to the project.
    let revoked = api
        .send(Method::DELETE, &format!("{own}/keys/k"), &json!({}))
        .await;
    assert_eq!(revoked.status, 204, "{revoked:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_called_immutable_is_the_same_bytes_for_ever() {
    let gateway = Gateway::start(&[]).await;
    let api = gateway.api();
    let shout = document("shout", "1.0.0", &[("shout", "return 1;")]);
    let mut addresses = Vec::new();
    // The same package, signed with one key after the other.
    for curator in [Curator::new(), Curator::new()] {
        let keys = api.get(&format!("/v1/curators/{CURATOR}")).await;
        for key in keys.body["keys"].as_array().into_iter().flatten() {
            let id = key["id"].as_str().expect("an id");
            let path = format!("/v1/curators/{CURATOR}/keys/{id}");
            assert_eq!(api.send(Method::DELETE, &path, &json!({})).await.status, 204);
        }
        curator.trusted(&api).await;
        let signed = curator.signed(shout.clone());
        let package = format!("/v1/plugins/{}", hash(&signed));
        assert_eq!(api.post("/v1/plugins", &signed).await.status, 201);
        let stored = api
            .request(Method::GET, &package)
            .send()
            .await
            .expect("an answer");
        assert_eq!(stored.headers()["cache-control"], "private, no-cache");
        let tag = stored.headers()["etag"].to_str().expect("text").to_owned();
        let address = format!("/v1/plugins/{}", tag.trim_matches('"'));
        let (text, request) = (
            stored.text().await.expect("text"),
            api.request(Method::GET, &address),
        );
        let by_document = request.send().await.expect("an answer");
        assert!(
            by_document.headers()["cache-control"]
                .to_str()
                .expect("text")
                .contains("immutable")
        );
        assert_eq!(by_document.text().await.expect("text"), text);
        let known = api.request(Method::GET, &package).header("if-none-match", tag);
        assert_eq!(known.send().await.expect("an answer").status(), 304);
        addresses.push(address);
    }
    assert_ne!(addresses[0], addresses[1]);
    assert_eq!(
        api.get(&addresses[0]).await.status,
        404,
        "other bytes have another address"
    );
}
