//! What becomes of stored documents while nobody waits.

use serde_json::json;
use toolgate_egress::Egress;
use toolgate_engine::knowledge::Knowledge;
use toolgate_engine::records::{Change, Listing, NewRecord, Owner, RecordSet, Records, SearchText};
use toolgate_kernel::agent::entity_of;
use toolgate_kernel::time::Time;
use toolgate_tools::knowledge::Library;

use crate::knowledge::{document, knowledge, model, of, reader};
use crate::meaning::MeaningServer;
use crate::world::{on_every_store, project};

/// A document as earlier versions stored it: its text in its own record, and passages that repeat it.
async fn put_as_before(records: &dyn Records, id: &str, text: &str) {
    let set = knowledge();
    let info = json!({"id": id, "title": id, "source": null, "mimeType": "text/plain", "characters": text.len(),
        "passages": 1, "embedded": false, "createdAt": Time(1), "updatedAt": Time(2), "edition": "0123456789abcdef"});
    let document = NewRecord {
        id: format!("d/{id}"),
        body: info.into(),
        text: None,
        data: Some(text.into()),
        due: None,
    };
    let passage = NewRecord {
        id: format!("c/{id}/0123456789abcdef/000000"),
        body: json!({"document": id, "edition": "0123456789abcdef", "title": id, "source": null, "number": 0, "text": text})
            .into(),
        text: Some(SearchText { analysis: 0, terms: vec![] }),
        data: None,
        due: None,
    };
    let changes = vec![Change::Put(document), Change::Put(passage)];
    records
        .change_records(set, vec![], changes, Time(1))
        .await
        .unwrap();
}

async fn ids_found(library: &Library, query: &str) -> Vec<String> {
    let found = library.search(&of(None), query, 9).await.unwrap();
    found.into_iter().map(|hit| hit.document_id).collect()
}

on_every_store! {
    async fn documents_and_memories_of_an_earlier_version_are_found_after_upkeep(world) {
        let library = Library::new(world.records.clone(), reader());
        let long = "The lighthouse keeper counts ships. ".repeat(400);
        put_as_before(&*world.records, "short", "Häuser am Leuchtturm").await;
        put_as_before(&*world.records, "long", &long).await;
        let memory = RecordSet { owner: Owner::Entity(entity_of(project(), &"ada".parse().unwrap())), kind: "memory", ..knowledge() };
        let old = NewRecord { id: "tea.mem_1".into(), body: json!({"topic": "tea", "content": "喜欢绿茶"}).into(),
            text: Some(SearchText { analysis: 0, terms: vec![] }), data: None, due: None };
        world.records.change_records(memory, vec![], vec![Change::Put(old)], Time(1)).await.unwrap();
        assert_eq!(library.get(&of(None), "long").await.unwrap().unwrap().1, long);
        library.upkeep_once(Time(9)).await.unwrap();
        assert_eq!(ids_found(&library, "Haus am Leuchtturm").await, ["short"]);
        assert_eq!(ids_found(&library, "lighthouses").await[0], "long");
        let (info, text) = library.get(&of(None), "long").await.unwrap().unwrap();
        assert_eq!((text, info.created_at, info.updated_at), (long, Time(1), Time(2)));
        assert!(info.passages > 5);
        let told = world.call("ada", "getMemory", json!({"query": "绿茶"})).await.unwrap();
        assert_eq!(told["memories"][0]["id"], "tea.mem_1");
        assert_eq!(told["memories"][0]["updatedAt"], json!(Time(1)));
        for kind in ["knowledge", "memory"] {
            assert_eq!(world.records.stale_records(kind, 9).await.unwrap(), []);
        }
        let listing = Listing { prefix: "c/".into(), after: None, limit: 9 };
        assert_eq!(world.records.list_records(knowledge(), listing).await.unwrap(), []);
    }

    async fn embeddings_that_are_missing_or_of_another_model_are_filled_in(world) {
        let server = MeaningServer::start().await;
        let base_url = server.base_url();
        let library = |name| Library::new(world.records.clone(), reader()).with_embeddings(model(name, base_url.clone()), &Egress::new());
        let plain = Library::new(world.records.clone(), reader());
        let info = plain.put(&of(None), document("cat", "feline"), Time(1)).await.unwrap();
        assert!(!info.embedded);
        // Too long to wait for while it is put.
        let long = "engine and wheels. ".repeat(8000);
        let info = library("one").put(&of(None), document("car", &long), Time(1)).await.unwrap();
        assert!(!info.embedded && info.passages > 64);
        assert_eq!(ids_found(&library("one"), "kitten").await, [""; 0]);
        library("one").upkeep_once(Time(2)).await.unwrap();
        assert_eq!(ids_found(&library("one"), "kitten").await[0], "cat");
        let listed = library("one").list(&of(None), None, 9).await.unwrap();
        assert!(listed.iter().all(|info| info.embedded && info.updated_at == Time(1)));
        // Another model: what the first one said counts for nothing until it is done again.
        assert!(!library("two").list(&of(None), None, 9).await.unwrap()[0].embedded);
        assert_eq!(ids_found(&library("two"), "kitten").await, [""; 0]);
        let size = world.records.records_size(knowledge()).await.unwrap();
        library("two").upkeep_once(Time(3)).await.unwrap();
        assert_eq!(ids_found(&library("two"), "kitten").await[0], "cat");
        assert_eq!(world.records.records_size(knowledge()).await.unwrap(), size);
        server.stop().await;
        assert!(library("three").upkeep_once(Time(4)).await.is_err());
    }

    async fn a_long_document_does_not_hide_the_others(world) {
        let library = Library::new(world.records.clone(), reader());
        let long = "A lighthouse is a tower. Ships see the lighthouse at night.\n\n".repeat(500);
        library.put(&of(None), document("book", &long), Time(1)).await.unwrap();
        library.put(&of(None), document("note", "The lighthouse of our town was painted by the school."), Time(1)).await.unwrap();
        let found = library.search(&of(None), "lighthouse", 3).await.unwrap();
        let ids: Vec<&str> = found.iter().map(|hit| hit.document_id.as_str()).collect();
        assert!(ids.contains(&"note") && ids.iter().filter(|id| **id == "book").count() == 2, "{ids:?}");
    }
}
