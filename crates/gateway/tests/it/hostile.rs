//! Requests that nobody should send: each gets its error and changes nothing.

use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};
use tempfile::TempDir;
use toolgate_access::keys;
use toolgate_engine::store::{Directory, KeyKind, ProjectRecord, Store};
use toolgate_kernel::id::ProjectId;
use toolgate_kernel::time::Time;
use toolgate_store::{SqliteOptions, SqliteStore};
use toolgate_testkit::model_server::ModelServer;

use crate::harness::{Api, Gateway, api_answer, put_worker};

/// The secret key of another project in the same gateway.
const OTHER_KEY: &str = "sk_other_0123456789abcdef";
const HUGE_BYTES: usize = 100 << 20;
const DEEP_LEVELS: usize = 100_000;

/// A run that waits for a client, and everything that its project knows.
struct Victim {
    api: Api,
    run: String,
    space: String,
    call: String,
    approval: String,
}

impl Victim {
    async fn make(api: Api) -> Self {
        let started = api.start("call:ask call:risky text:1").await;
        let run = started["runId"].as_str().unwrap().to_owned();
        let mut stream = api.follow(&run, 0).await;
        let (mut call, mut approval) = (None, None);
        while call.is_none() || approval.is_none() {
            let event = stream.next().await.expect("the run waits, so does its stream");
            if event.is_offer() {
                call = Some(event.call().to_owned());
            }
            if event.kind == "tool-approval-request" {
                approval = Some(event.text("approvalId").to_owned());
            }
        }
        let (call, approval) = (call.unwrap(), approval.unwrap());
        let space = started["spaceId"].as_str().unwrap().into();
        Self {
            api,
            run,
            space,
            call,
            approval,
        }
    }

    /// Everything that a request could have changed.
    async fn state(&self) -> Value {
        let path = |rest: &str| format!("/v1/runs/{}{rest}", self.run);
        let events = self.api.list(&format!("/v1/spaces/{}/events", self.space)).await;
        json!({
            "runs": self.api.runs().await,
            "run": self.api.get(&path("")).await.body,
            "events": events.into_iter().map(|event| event.data).collect::<Vec<_>>(),
            "agents": self.api.get("/v1/agents").await.body,
        })
    }

    /// What clients write to, with a body that would be right.
    fn writes(&self) -> Vec<(Method, String, Value)> {
        let Self {
            run,
            space,
            call,
            approval,
            ..
        } = self;
        vec![
            (
                Method::POST,
                "/v1/runs".into(),
                json!({"agent": "worker", "message": "text:1", "spaceId": space}),
            ),
            (
                Method::POST,
                format!("/v1/spaces/{space}/messages"),
                json!({"content": "text:1"}),
            ),
            (
                Method::POST,
                format!("/v1/runs/{run}/tool-results"),
                json!({"toolCallId": call, "result": 1}),
            ),
            (
                Method::POST,
                format!("/v1/spaces/{space}/tool-results"),
                json!({"toolCallId": call, "result": 1}),
            ),
            (
                Method::POST,
                format!("/v1/approvals/{approval}"),
                json!({"approved": true}),
            ),
            (Method::POST, format!("/v1/runs/{run}/cancel"), json!({})),
        ]
    }
}

/// Sends a request that must be refused with one of `statuses`, as `problem+json`.
async fn refused(what: &str, request: RequestBuilder, statuses: &[u16]) {
    let answer = api_answer(request)
        .await
        .unwrap_or_else(|error| panic!("{what} was not answered: {error:?}"));
    assert!(
        statuses.contains(&answer.status),
        "{what}: expected {statuses:?}, got {answer:?}"
    );
    assert!(
        answer.body["code"].is_string() && answer.body["detail"].is_string(),
        "{what}: {answer:?}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hostile_body_gets_its_error_and_changes_nothing() {
    let models = ModelServer::start().await;
    let gateway = crate::harness::gateway(&models).await;
    let victim = Victim::make(gateway.api()).await;
    let before = victim.state().await;
    let deep = format!("{}{}", "[".repeat(DEEP_LEVELS), "]".repeat(DEEP_LEVELS));
    let inside = |value: &str| format!("{{\"toolCallId\": \"{}\", \"result\": {value}}}", victim.call);
    let bodies: &[(&str, Vec<u8>, &[u16])] = &[
        ("half a body", b"{\"message\": \"x".to_vec(), &[400]),
        ("no JSON", b"message=hello".to_vec(), &[400]),
        ("two values", b"{} {}".to_vec(), &[400]),
        ("not UTF-8", b"{\"message\": \"\xff\xfe\"}".to_vec(), &[400]),
        (
            "half a surrogate pair",
            b"{\"message\": \"\\ud800\"}".to_vec(),
            &[400, 422],
        ),
        ("deep", deep.clone().into_bytes(), &[400]),
        ("deep inside", inside(&deep).into_bytes(), &[400]),
        ("a number beyond all", inside("1e999999").into_bytes(), &[400]),
        ("the wrong kind", b"[1, 2, 3]".to_vec(), &[422]),
        ("unknown members", b"{\"no_such_member\": 1}".to_vec(), &[422]),
        ("huge", vec![b' '; HUGE_BYTES], &[413]),
    ];
    // What takes no members is right about an unknown one and ends the run: it is not for this test.
    for (method, path, _) in victim
        .writes()
        .into_iter()
        .filter(|(_, path, _)| !path.ends_with("/cancel"))
    {
        for (what, body, statuses) in bodies {
            let request = victim
                .api
                .request(method.clone(), &path)
                .header("content-type", "application/json");
            refused(&format!("{what} to {path}"), request.body(body.clone()), statuses).await;
        }
        let request = victim
            .api
            .request(method, &path)
            .header("content-type", "text/plain")
            .body("{}");
        refused(&format!("text to {path}"), request, &[415]).await;
    }
    assert_eq!(victim.state().await, before);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unknown_id_is_not_found_and_changes_nothing() {
    let models = ModelServer::start().await;
    let gateway = crate::harness::gateway(&models).await;
    let victim = Victim::make(gateway.api()).await;
    let before = victim.state().await;
    let body = |id: &str| format!("{id:0>26}");
    let ids = |prefix: &str| {
        [
            format!("{prefix}{}", body("1")),
            "nonsense".into(),
            "%00".into(),
            format!("{prefix}{}", "z".repeat(2000)),
        ]
    };
    for run in ids("run_").iter().chain([&victim.space]) {
        let call = format!("call_{}_0", body("1"));
        for (method, path, sent) in [
            (Method::GET, format!("/v1/runs/{run}"), None),
            (Method::GET, format!("/v1/runs/{run}/events"), None),
            (Method::POST, format!("/v1/runs/{run}/cancel"), Some(json!({}))),
            (
                Method::POST,
                format!("/v1/runs/{run}/tool-results"),
                Some(json!({"toolCallId": call, "result": 1})),
            ),
        ] {
            let mut request = victim
                .api
                .request(method, &path)
                .header("accept", "application/json");
            if let Some(sent) = sent {
                request = request
                    .header("content-type", "application/json")
                    .body(sent.to_string());
            }
            refused(&path, request, &[404]).await;
        }
    }
    for space in ids("space_").iter().chain([&victim.run]) {
        let path = format!("/v1/spaces/{space}/messages");
        let request = victim
            .api
            .request(Method::POST, &path)
            .header("content-type", "application/json");
        refused(&path, request.body("{\"content\": \"text:1\"}"), &[404]).await;
        let path = format!("/v1/spaces/{space}/events");
        refused(
            &path,
            victim
                .api
                .request(Method::GET, &path)
                .header("accept", "application/json"),
            &[404],
        )
        .await;
    }
    // A call that the run does not have, and one of the gateway's own.
    for number in [1, 7] {
        let call = format!("call_{}_{number}", victim.run.strip_prefix("run_").unwrap());
        let answer = victim.api.result(&victim.run, &call, &json!(1)).await;
        assert!([404, 409].contains(&answer.status), "{answer:?}");
    }
    assert_eq!(victim.state().await, before);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_project_finds_nothing_and_changes_nothing() {
    let models = ModelServer::start().await;
    let directory = tempfile::tempdir().unwrap();
    put_other_project(&directory).await;
    let gateway = Gateway::start_in(directory, &[]).await;
    put_worker(&gateway.api(), &models).await;
    let victim = Victim::make(gateway.api()).await;
    let before = victim.state().await;
    let stranger = gateway.api().with_key(OTHER_KEY);
    put_worker(&stranger, &models).await;

    for (method, path, body) in victim.writes() {
        let request = stranger
            .request(method, &path)
            .header("content-type", "application/json");
        refused(&path, request.body(body.to_string()), &[404]).await;
    }
    let Victim { run, space, .. } = &victim;
    for path in [
        format!("/v1/runs/{run}"),
        format!("/v1/runs/{run}/events"),
        format!("/v1/spaces/{space}"),
        format!("/v1/spaces/{space}/events"),
    ] {
        refused(
            &path,
            stranger
                .request(Method::GET, &path)
                .header("accept", "application/json"),
            &[404],
        )
        .await;
    }
    // A user of the same project who is no member of the space is a stranger too.
    let user = victim.api.as_user("mallory");
    refused(
        "a user",
        user.request(Method::GET, &format!("/v1/runs/{run}")),
        &[404],
    )
    .await;
    for key in ["sk_unknown_0123456789abcdef", ""] {
        let nobody = victim.api.with_key(key);
        refused(
            "nobody",
            nobody.request(Method::GET, &format!("/v1/runs/{run}")),
            &[401],
        )
        .await;
    }
    assert!(stranger.runs().await.is_empty());
    assert_eq!(victim.state().await, before);
}

/// Puts a second project with a key of its own into a data directory that no gateway uses yet.
async fn put_other_project(directory: &TempDir) {
    let data = Gateway::data(directory.path());
    let store = SqliteStore::open(&data.join("toolgate.db"), SqliteOptions::default()).unwrap();
    let project = ProjectId::new(uuid::Uuid::now_v7());
    let created = Time(0);
    let record = ProjectRecord {
        id: project,
        name: "other".into(),
        jwt_secret: None,
        identity_provider: None,
        settings: None,
        created,
    };
    store.put_project(record).await.unwrap();
    store
        .put_key(keys::record(OTHER_KEY, project, KeyKind::Secret, created).unwrap())
        .await
        .unwrap();
    store.close().await;
}
