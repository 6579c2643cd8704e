//! `web_search`: two engines, byte for byte as they answer, and none.

use serde_json::{Value, json};
use toolgate_engine::tools::CallFailure;
use toolgate_kernel::agent::Secret;
use toolgate_kernel::call::ErrorCode;
use toolgate_tools::{OutboundSettings, Search};

use crate::server::{Server, json_answer, redirect, run, toolkit_in, typed};

const GEMINI: &str = include_str!("../fixtures/gemini-search.json");
const SEARXNG: &str = include_str!("../fixtures/searxng-search.json");

async fn search(search: Search, input: Value) -> Result<Value, CallFailure> {
    let toolkit = toolkit_in(OutboundSettings {
        search,
        ..OutboundSettings::default()
    });
    run(&toolkit, "prebuilt", json!({"action": "web_search"}), input).await
}

fn gemini(server: &Server) -> Search {
    Search::Gemini {
        key: Secret::new("the-google-key"),
        model: "gemini-3.5-flash".into(),
        base_url: Some(server.url("/v1beta/").parse().unwrap()),
    }
}

/// Answers as the vendor documents it, but that its links lead to itself: one of them further, the other nowhere.
async fn google() -> Server {
    Server::start(|asked, _| match asked.target.rsplit('/').next() {
        Some("AAA") => redirect(302, "https://lights.example/1811"),
        Some("BBB") => typed(404, "text/html", ""),
        _ => {
            let links = format!("http://{}", asked.header("host"));
            let answer = GEMINI.replace("https://vertexaisearch.cloud.google.com", &links);
            typed(200, "application/json; charset=UTF-8", answer)
        }
    })
    .await
}

#[tokio::test]
async fn gemini_gives_its_answer_and_the_places_it_rests_on() {
    let server = google().await;
    let told = search(gemini(&server), json!({"query": "lighthouse"}))
        .await
        .unwrap();
    let expected = json!({
        "query": "lighthouse",
        "results": [
            {
                "title": "lights.example",
                "url": "https://lights.example/1811",
                "snippet": "The lighthouse was lit in 1811. It stands 35 metres tall and is still in use.",
            },
            {
                "title": "towers.example",
                "url": server.url("/grounding-api-redirect/BBB"),
                "snippet": "It stands 35 metres tall and is still in use.",
            },
        ],
        "answer": "The lighthouse was lit in 1811. It stands 35 metres tall and is still in use.",
    });
    assert_eq!(told, expected);
    let asked = &server.asked()[0];
    assert_eq!(
        (asked.method.as_str(), asked.target.as_str()),
        ("POST", "/v1beta/models/gemini-3.5-flash:generateContent")
    );
    assert_eq!(asked.header("x-goog-api-key"), "the-google-key");
    let body = json!({"contents": [{"role": "user", "parts": [{"text": "lighthouse"}]}], "tools": [{"google_search": {}}]});
    assert_eq!(serde_json::from_str::<Value>(&asked.body).unwrap(), body);
}

#[tokio::test]
async fn searxng_gives_titles_addresses_and_snippets() {
    let server = Server::start(|_, _| typed(200, "application/json", SEARXNG)).await;
    let engine = || Search::Searxng {
        base_url: server.url("/find/").parse().unwrap(),
    };
    let told = search(engine(), json!({"query": "light & house"})).await.unwrap();
    let expected = json!([
        {"title": "Lights", "url": "https://lights.example/1", "snippet": "Lit in 1811."},
        {"title": "Towers", "url": "https://towers.example/2", "snippet": ""},
    ]);
    assert_eq!(told["results"], expected);
    assert_eq!(
        server.asked()[0].target,
        "/find/search?q=light+%26+house&format=json"
    );
    let told = search(engine(), json!({"query": "x", "maxResults": 1}))
        .await
        .unwrap();
    assert_eq!(told["results"].as_array().unwrap().len(), 1);
}

/// What the model is told when the vendor answers so.
async fn refused(status: u16, answer: Value) -> CallFailure {
    let server = Server::start(move |_, _| json_answer(status, &answer)).await;
    search(gemini(&server), json!({"query": "x"})).await.unwrap_err()
}

#[tokio::test]
async fn a_vendors_failure_says_who_can_do_something_about_it() {
    let error = |code: u16, status: &str, reason: &str| {
        json!({"error": {
            "code": code, "status": status, "message": "the-google-key is no key",
            "details": [{"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": reason}],
        }})
    };
    for (status, answer, words) in [
        (400, error(400, "INVALID_ARGUMENT", "API_KEY_INVALID"), "operator"),
        (401, error(401, "UNAUTHENTICATED", ""), "operator"),
        (403, error(403, "PERMISSION_DENIED", ""), "operator"),
        (404, error(404, "NOT_FOUND", ""), "[search]"),
        (429, error(429, "RESOURCE_EXHAUSTED", ""), "later"),
        (503, error(503, "UNAVAILABLE", ""), "later"),
    ] {
        let failed = refused(status, answer).await;
        assert_eq!(failed.code, ErrorCode::Unavailable, "{status}");
        assert!(failed.message.contains(words), "{status}: {failed}");
        assert!(!failed.message.contains("the-google-key"), "{failed}");
    }
    let failed = refused(400, error(400, "INVALID_ARGUMENT", "")).await;
    assert_eq!(failed.message, "the search engine answered 400 Bad Request");
}

#[tokio::test]
async fn what_was_not_searched_is_no_result() {
    for (answer, words) in [
        (
            json!({"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}}),
            "(PROHIBITED_CONTENT)",
        ),
        (
            json!({"candidates": [{"finishReason": "SAFETY", "index": 0}]}),
            "(SAFETY)",
        ),
        (json!({}), "other words"),
        (
            json!({"candidates": [{"content": {"parts": [{"text": "In 1811, I think."}]}}]}),
            "from memory",
        ),
    ] {
        let failed = refused(200, answer).await;
        assert_eq!(failed.code, ErrorCode::ExecutionFailed);
        assert!(failed.message.contains(words), "{failed}");
    }
}

#[tokio::test]
async fn without_an_engine_the_model_is_told_so() {
    let failed = search(Search::Nobody, json!({"query": "x"})).await.unwrap_err();
    assert_eq!(failed.code, ErrorCode::Unavailable);
    assert!(failed.message.contains("[search]"), "{failed}");
}
