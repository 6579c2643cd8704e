//! Documents that agents search.

use std::sync::Arc;

use serde_json::{Value, json};
use toolgate_engine::knowledge::{Collection, Knowledge, NewDocument};
use toolgate_kernel::time::Time;
use toolgate_store::MemoryStore;
use toolgate_tools::knowledge::{EmbeddingModel, Library};

use crate::meaning::MeaningServer;
use crate::world::{on_every_store, project};

fn document(id: &str, text: &str) -> NewDocument {
    NewDocument {
        id: id.into(),
        title: None,
        source: Some(format!("https://example.com/{id}")),
        mime: "text/plain".parse().unwrap(),
        data: text.into(),
    }
}

fn of(agent: Option<&str>) -> Collection {
    Collection {
        project: project(),
        agent: agent.map(|agent| agent.parse().unwrap()),
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
        let library = Library::new(world.records.clone(), None);
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
}

#[tokio::test]
async fn with_a_model_of_meaning_other_words_find_it_too() {
    let server = MeaningServer::start().await;
    let model = EmbeddingModel {
        base_url: server.base_url(),
        name: "meaning".into(),
        api_key: None,
    };
    let library = Library::new(Arc::new(MemoryStore::new()), Some(model));
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
