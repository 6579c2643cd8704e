//! `web_search`: two engines, byte for byte as they answer, and none.

use serde_json::{Value, json};
use toolgate_engine::tools::CallFailure;
use toolgate_kernel::agent::Secret;
use toolgate_kernel::call::ErrorCode;
use toolgate_tools::{Search, World};

use crate::server::{Server, json_answer, run, toolkit_in, typed};

const GEMINI: &str = include_str!("../fixtures/gemini-search.json");
const SEARXNG: &str = include_str!("../fixtures/searxng-search.json");

async fn search(search: Search, input: Value) -> Result<Value, CallFailure> {
    let toolkit = toolkit_in(World {
        search,
        ..World::default()
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

#[tokio::test]
async fn gemini_gives_its_answer_and_the_places_it_rests_on() {
    let server = Server::start(|_, _| typed(200, "application/json; charset=UTF-8", GEMINI)).await;
    let told = search(gemini(&server), json!({"query": "lighthouse"}))
        .await
        .unwrap();
    let expected = json!({
        "query": "lighthouse",
        "results": [
            {
                "title": "lights.example",
                "url": "https://vertexaisearch.cloud.google.com/grounding-api-redirect/AAA",
                "snippet": "The lighthouse was lit in 1811. It stands 35 metres tall and is still in use.",
            },
            {
                "title": "towers.example",
                "url": "https://vertexaisearch.cloud.google.com/grounding-api-redirect/BBB",
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

#[tokio::test]
async fn what_an_engine_says_of_a_failure_stays_with_the_operator() {
    for (status, code) in [(400, ErrorCode::ExecutionFailed), (429, ErrorCode::Unavailable)] {
        let server = Server::start(move |asked, _| {
            json_answer(status, &json!({"key": asked.header("x-goog-api-key")}))
        })
        .await;
        let failed = search(gemini(&server), json!({"query": "x"})).await.unwrap_err();
        assert_eq!(failed.code, code);
        assert!(!failed.message.contains("the-google-key"), "{failed}");
    }
    let empty = Server::with(json!({})).await;
    let told = search(gemini(&empty), json!({"query": "x"})).await.unwrap();
    assert_eq!(told, json!({"query": "x", "results": []}));
}

#[tokio::test]
async fn without_an_engine_the_model_is_told_so() {
    let failed = search(Search::Nobody, json!({"query": "x"})).await.unwrap_err();
    assert_eq!(failed.code, ErrorCode::Unavailable);
    assert!(failed.message.contains("[search]"), "{failed}");
}
