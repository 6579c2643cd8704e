//! Documents that agents search.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::time::Instant;
use toolgate_egress::Egress;
use toolgate_engine::knowledge::{Collection, Knowledge, NewDocument};
use toolgate_engine::records::{Change, NewRecord, Owner, RecordSet, SearchText};
use toolgate_kernel::time::Time;
use toolgate_store::MemoryStore;
use toolgate_tools::knowledge::{EmbeddingModel, Library};
use toolgate_tools::readable::Reader;

use crate::meaning::MeaningServer;
use crate::world::{on_every_store, project};

pub(crate) fn document(id: &str, text: &str) -> NewDocument {
    NewDocument {
        id: id.into(),
        title: None,
        source: Some(format!("https://example.com/{id}")),
        mime: "text/plain".parse().unwrap(),
        data: text.into(),
    }
}

/// A library that finds documents by meaning too.
fn embedding(records: Arc<MemoryStore>, model: EmbeddingModel) -> Library {
    Library::new(records, reader()).with_embeddings(model, &Egress::new())
}

pub(crate) fn reader() -> Arc<Reader> {
    Arc::new(Reader::here())
}

pub(crate) fn of(agent: Option<&str>) -> Collection {
    Collection {
        project: project(),
        agent: agent.map(|agent| agent.parse().unwrap()),
    }
}

pub(crate) fn knowledge() -> RecordSet {
    RecordSet {
        project: project(),
        owner: Owner::Project,
        kind: "knowledge",
    }
}

fn found(told: &Value) -> Vec<&str> {
    let results = told["results"].as_array().unwrap();
    results
        .iter()
        .map(|result| result["documentId"].as_str().unwrap())
        .collect()
}

on_every_store! {
    async fn an_agent_finds_passages_of_the_projects_documents_and_its_own(world) {
        let library = Library::new(world.records.clone(), reader());
        library.put(&of(None), document("tea", "Green tea is steeped at eighty degrees."), Time(1)).await.unwrap();
        let long = format!("{}\n\nThe lighthouse was painted red.", "Filler words here. ".repeat(200));
        library.put(&of(None), document("coast", &long), Time(1)).await.unwrap();
        library.put(&of(Some("bob")), document("secret", "The lighthouse key is under the mat."), Time(1)).await.unwrap();
        let told = world.call("ada", "searchKnowledge", json!({"query": "Who painted the LIGHTHOUSE?"})).await.unwrap();
        let best = &told["results"][0];
        assert_eq!((found(&told)[0], &best["source"]), ("coast", &json!("https://example.com/coast")));
        assert!(best["snippet"].as_str().unwrap().contains("lighthouse") && best["score"].is_number() && best["passage"].as_u64() > Some(1), "{best}");
        assert!(!found(&told).contains(&"secret"));
        let told = world.call("bob", "searchKnowledge", json!({"query": "lighthouse key"})).await.unwrap();
        assert_eq!(found(&told), ["secret", "coast"]);
        library.put(&of(None), document("coast", "Only sand."), Time(2)).await.unwrap();
        assert!(library.remove(&of(Some("bob")), "secret", Time(2)).await.unwrap());
        let told = world.call("bob", "searchKnowledge", json!({"query": "lighthouse"})).await.unwrap();
        assert_eq!(told, json!({"results": [], "totalResults": 0}));
    }

    async fn passages_are_found_when_their_document_says_so(world) {
        let library = Library::new(world.records.clone(), reader());
        let set = knowledge();
        let left = |document: &str| Change::Put(NewRecord {
            id: format!("p/{document}/0123456789abcdef/000000"),
            body: json!({"document": document, "edition": "0123456789abcdef", "title": "t", "source": null, "first": 0}).into(),
            text: Some(SearchText::new("t", "unfinished lighthouse")),
            data: Some("unfinished lighthouse".into()),
            due: None,
        });
        // A crash in the middle of writing leaves some.
        library.put(&of(None), document("known", "A lighthouse."), Time(1)).await.unwrap();
        world.records.change_records(set, vec![], vec![left("new"), left("known")], Time(1)).await.unwrap();
        let found = library.search(&of(None), "unfinished lighthouse", 9).await.unwrap();
        assert_eq!(found.iter().map(|hit| hit.text.as_str()).collect::<Vec<_>>(), ["A lighthouse."]);
        // Writing it again takes them away. More passages than one write may have are all there.
        let long = "The lighthouse keeper counts ships. ".repeat(4000);
        for id in ["new", "known"] {
            let info = library.put(&of(None), document(id, &long), Time(2)).await.unwrap();
            assert!(info.passages > 100);
        }
        let info = library.get(&of(None), "known").await.unwrap().unwrap().0;
        assert_eq!((info.created_at, info.updated_at), (Time(1), Time(2)));
        let both = world.records.records_size(set).await.unwrap().0;
        assert!(both > 2 * (info.passages / 5) && both.is_multiple_of(2), "{both}");
        library.remove(&of(None), "new", Time(3)).await.unwrap();
        assert_eq!(world.records.records_size(set).await.unwrap().0, both / 2);
        assert_eq!(library.get(&of(None), "known").await.unwrap().unwrap().1, long);
    }
}

/// A model of this name.
pub(crate) fn model(name: &str, base_url: String) -> EmbeddingModel {
    EmbeddingModel {
        base_url: base_url.parse().unwrap(),
        name: name.into(),
        api_key: None,
    }
}

#[tokio::test]
async fn what_another_model_meant_says_nothing() {
    let server = MeaningServer::start().await;
    let records = Arc::new(MemoryStore::new());
    let library = |name| embedding(records.clone(), model(name, server.base_url()));
    let cat = document("cat", "feline");
    library("one").put(&of(None), cat, Time(1)).await.unwrap();
    assert_eq!(
        library("one").search(&of(None), "kitten", 3).await.unwrap().len(),
        1
    );
    assert_eq!(library("two").search(&of(None), "kitten", 3).await.unwrap(), []);
    assert_eq!(
        library("two").search(&of(None), "feline", 3).await.unwrap().len(),
        1
    );
}

#[tokio::test(start_paused = true)]
async fn words_alone_answer_when_nobody_says_what_they_mean() {
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base_url = format!("http://{}/v1", silent.local_addr().unwrap());
    let records = Arc::new(MemoryStore::new());
    let put = Library::new(records.clone(), reader());
    put.put(&of(None), document("cat", "feline"), Time(1))
        .await
        .unwrap();
    let asked = Instant::now();
    let library = embedding(records, model("silent", base_url));
    assert_eq!(library.search(&of(None), "feline", 3).await.unwrap().len(), 1);
    // By the clock of the test, which stands still but for what is waited for.
    assert!(asked.elapsed() < Duration::from_secs(6), "{:?}", asked.elapsed());
}

#[tokio::test]
async fn with_a_model_of_meaning_other_words_find_it_too() {
    let server = MeaningServer::start().await;
    let model = model("meaning", server.base_url());
    let library = embedding(Arc::new(MemoryStore::new()), model);
    for (id, text) in [
        ("cat", "feline on the sofa"),
        ("car", "engine and wheels"),
        ("both", "feline with engine"),
    ] {
        assert!(
            library
                .put(&of(None), document(id, text), Time(1))
                .await
                .unwrap()
                .embedded
        );
    }
    let found = library.search(&of(None), "kitten", 3).await.unwrap();
    assert_eq!(found[0].document_id, "cat");
    // Found by word and by meaning stands before found by one of them.
    let found = library.search(&of(None), "kitten sofa", 3).await.unwrap();
    assert_eq!(found[0].document_id, "cat");
    // Without the server, words still find.
    server.stop().await;
    let found = library.search(&of(None), "engine", 3).await.unwrap();
    assert_eq!(
        found
            .iter()
            .map(|hit| hit.document_id.as_str())
            .collect::<Vec<_>>(),
        ["both", "car"]
    );
    assert!(
        !library
            .put(&of(None), document("late", "more words"), Time(2))
            .await
            .unwrap()
            .embedded
    );
}

#[tokio::test]
async fn pages_and_pdfs_are_found_by_their_words_and_nothing_of_them_is_lost() {
    let library = Library::new(Arc::new(MemoryStore::new()), reader());
    let put = async |id: &str, mime: &str, data: &[u8]| {
        let mime = mime.parse().unwrap();
        let data = data.to_vec();
        library
            .put(
                &of(None),
                NewDocument {
                    mime,
                    data,
                    ..document(id, "")
                },
                Time(1),
            )
            .await
    };
    let pdf = include_bytes!("../fixtures/pdf/two-pages.pdf");
    let kept = put("notes", "application/pdf", pdf).await.unwrap();
    assert_eq!(kept.title, "Notes on a lighthouse");
    let article =
        "<p>Long enough to be taken for what the page is about, and for nothing else, by any reader.</p>"
            .repeat(9);
    let page = format!("<title>Coast</title><nav>Sandbank index</nav><article>{article}</article>");
    assert_eq!(
        put("coast", "text/html", page.as_bytes()).await.unwrap().title,
        "Coast"
    );
    for (words, id) in [("tower", "notes"), ("sandbank", "coast")] {
        let found = library.search(&of(None), words, 3).await.unwrap();
        assert_eq!(found[0].document_id, id, "{words}");
    }
    for (mime, data, words) in [
        ("text/plain", b"\xe9t\xe9".as_slice(), "UTF-8"),
        ("text/plain", " x".repeat(2 << 20).as_bytes(), "2097152 bytes"),
        ("application/pdf", b"%PDF-1.7", "broken"),
        ("image/png", b"\x89PNG", "application/pdf"),
    ] {
        let refused = put("bad", mime, data).await.unwrap_err().to_string();
        assert!(refused.contains(words), "{refused}");
    }
}

#[tokio::test]
async fn a_plain_text_has_the_title_that_it_begins_with() {
    let library = Library::new(Arc::new(MemoryStore::new()), reader());
    let title = async |text: &str| {
        let put = library.put(&of(None), document("d", text), Time(1)).await;
        put.unwrap().title
    };
    assert_eq!(
        title("LS(1)   User Commands\n\nlists files").await,
        "LS(1) User Commands"
    );
    assert_eq!(title("A sentence is no title.\n\nMore.").await, "d");
    assert_eq!(title("One line\nand another").await, "d");
    assert_eq!(title("# Tea\n\nWater.").await, "Tea");
}
