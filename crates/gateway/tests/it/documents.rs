//! Documents of strangers, read by the real binary in processes of their own.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use axum::Router;
use axum::routing::get;
use reqwest::Method;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_util::task::AbortOnDropHandle;
use toolgate_testkit::model_server::ModelServer;

use crate::harness::{Gateway, api_answer, binary, put_agent};

fn pdf(name: &str) -> Vec<u8> {
    let folder: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tools/tests/fixtures/pdf");
    std::fs::read(folder.join(format!("{name}.pdf"))).expect("a fixture")
}

/// What a process that was started to read this says; nothing when the system had to end it.
fn read(kind: &str, data: &[u8]) -> Option<Value> {
    let mut process = binary()
        .arg("read-document")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("the binary starts");
    let head = json!({"kind": kind, "url": null, "wanted": "Everything", "cut": false});
    let mut to = process.stdin.take().expect("it is piped");
    let request = [head.to_string().as_bytes(), b"\n", data].concat();
    let length = u32::try_from(request.len()).expect("a short document");
    // One that was ended takes no more.
    let _ = to
        .write_all(&length.to_be_bytes())
        .and_then(|()| to.write_all(&request));
    drop(to);
    let ended = process.wait_with_output().expect("it ends");
    let response = ended.stdout.get(4..).unwrap_or_default();
    serde_json::from_slice(response).ok()
}

#[test]
fn a_process_reads_one_document() {
    let told = read("application/pdf", &pdf("compressed")).expect("an answer");
    assert!(
        told["Ok"]["text"].as_str().unwrap().starts_with("The lighthouse"),
        "{told}"
    );
    let told = read("text/html", b"<title>T</title><p>Words.").expect("an answer");
    assert_eq!(
        told["Ok"],
        json!({"title": "T", "text": "Words.", "cut": false, "damaged": false})
    );
}

#[test]
fn a_document_that_wants_all_memory_ends_its_own_reader_only() {
    assert_eq!(read("application/pdf", &pdf("hoard")), None);
    let told = read("application/pdf", &pdf("bomb")).expect("an answer");
    assert!(told["Err"]["Unfit"].is_string(), "{told}");
}

#[tokio::test]
async fn the_gateway_outlives_what_it_reads_and_finds_what_it_read() {
    let models = ModelServer::start().await;
    let gateway = Gateway::start(&[]).await;
    let api = gateway.api();
    let put = async |id: &str, data: Vec<u8>| {
        let request = api.request(Method::PUT, &format!("/v1/knowledge/documents/{id}"));
        let request = request.header("content-type", "application/pdf").body(data);
        api_answer(request).await.expect("the gateway answers")
    };
    let kept = put("light", pdf("compressed")).await;
    assert!(kept.is_success(), "{kept:?}");
    assert_eq!(kept.text("title"), "Licht 💡");
    for (hostile, why) in [
        ("hoard", "MiB of memory"),
        ("bomb", "more than can be read"),
        ("locked", "password"),
        ("picture", "pictures"),
    ] {
        let refused = put("other", pdf(hostile)).await;
        assert_eq!(refused.status, 422, "{hostile}: {refused:?}");
        assert!(refused.body.to_string().contains(why), "{hostile}: {refused:?}");
    }
    let agent = json!({
        "instructions": "script: call:searchKnowledge input:{\"query\":\"lighthouse\"} text:1",
        "model": {"provider": "openai", "name": "script", "baseUrl": models.base_url(), "apiKey": "none"},
        "tools": [{"name": "searchKnowledge", "executionType": "prebuilt", "execution": {"action": "searchKnowledge"}}],
    });
    put_agent(&api, "reader", &agent).await;
    let started = api
        .post("/v1/runs", &json!({"agent": "reader", "message": "go"}))
        .await;
    let events = format!("{:?}", api.finished(&started.text("runId")).await);
    assert!(events.contains("It was lit in 1811."), "{events}");
}

#[tokio::test]
async fn many_documents_are_stored_at_once_and_found_in_their_languages() {
    let gateway = Gateway::start(&[]).await;
    let api = gateway.api();
    let body = json!({"documents": [
        {"id": "haus", "text": "Häuser am See\n\nSie dürfen nicht umgebaut werden."},
        {"id": "cipan", "text": "磁盘空间\n\n空间不足时请删除旧文件。"},
        {"id": "bad id", "text": "x"},
    ]});
    let stored = api.post("/v1/knowledge/documents", &body).await;
    assert!(stored.is_success(), "{stored:?}");
    let documents = &stored.body["documents"];
    assert_eq!(documents[0]["document"]["title"], "Häuser am See");
    assert_eq!(documents[2]["error"]["code"], "VALIDATION_FAILED");
    for (query, id) in [
        ("Darf%20das%20Haus%20umgebaut%20werden%3F", "haus"),
        ("%E7%A3%81%E7%9B%98", "cipan"),
    ] {
        let found = api.get(&format!("/v1/knowledge/search?query={query}")).await;
        assert_eq!(found.body["results"][0]["documentId"], id, "{found:?}");
    }
}

#[tokio::test]
async fn an_agent_reads_a_pdf_of_the_web() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("an address").to_string();
    let app = Router::new().route(
        "/paper",
        get(|| async { ([("content-type", "application/pdf")], pdf("printed")) }),
    );
    let _site = AbortOnDropHandle::new(tokio::spawn(async move {
        axum::serve(listener, app).await.expect("a server");
    }));
    let models = ModelServer::start().await;
    let gateway = Gateway::start(&[("TOOLGATE_OUTSIDE_ALLOW", &address)]).await;
    let api = gateway.api();
    let agent = json!({
        "instructions": format!("script: call:web_fetch input:{{\"url\":\"http://{address}/paper\"}} text:1"),
        "model": {"provider": "openai", "name": "script", "baseUrl": models.base_url(), "apiKey": "none"},
        "tools": [{"name": "web_fetch", "executionType": "prebuilt", "execution": {"action": "web_fetch"}}],
    });
    put_agent(&api, "reader", &agent).await;
    let started = api
        .post("/v1/runs", &json!({"agent": "reader", "message": "go"}))
        .await;
    let events = format!("{:?}", api.finished(&started.text("runId")).await);
    assert!(
        events.contains("Tea & time") && events.contains("Second paragraph."),
        "{events}"
    );
}
