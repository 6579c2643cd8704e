//! The space that a run stands in.

use serde_json::json;
use toolgate_engine::store::EntityRecord;
use toolgate_kernel::id::EntityId;
use toolgate_kernel::time::Time;
use uuid::Uuid;

use crate::world::{on_every_store, project};

on_every_store! {
    async fn an_agent_reads_where_it_is_and_what_was_said(world) {
        let space = world.space().await;
        let eve = EntityRecord {
            id: EntityId::new(Uuid::now_v7()), project: project(), subject: "eve".into(), kind: "person".into(),
            name: Some("Eve".into()), metadata: None, grants: Vec::new(), created: Time(0),
        };
        let eve = world.store.put_entity(eve).await.unwrap();
        world.store.add_member(space, eve.id).await.unwrap();
        world.call_in(space, "bob", "getGoals", json!({})).await.unwrap();
        let told = world.call_in(space, "ada", "getSpaceContext", json!({"messages": 2})).await.unwrap();
        assert_eq!((told["spaceId"].clone(), told["title"].clone()), (json!(space), json!("Kitchen")));
        assert_eq!(told["members"], json!([{"id": eve.id, "subject": "eve", "kind": "person", "name": "Eve"}]));
        let said = told["recentMessages"].as_array().unwrap();
        assert_eq!((said.len(), &said[0]["from"], &said[0]["text"]), (2, &json!({"agent": "bob"}), &json!("done")));
        assert!(said[1]["text"].as_str().unwrap().contains("getSpaceContext"), "{said:?}");
    }

    async fn metadata_is_merged_and_nulls_take_away(world) {
        let space = world.space().await;
        let update = async |patch| world.call_in(space, "ada", "updateSpaceMetadata", patch).await;
        update(json!({"metadata": {"stage": "draft", "score": {"a": 1, "b": 2}}})).await.unwrap();
        let told = update(json!({"metadata": {"stage": null, "score": {"b": 3}}, "title": "Pantry"})).await.unwrap();
        assert_eq!(told["metadata"], json!({"score": {"a": 1, "b": 3}}));
        let stored = world.store.space(space).await.unwrap().unwrap();
        assert_eq!((stored.title.as_deref(), stored.metadata.unwrap().to_value()), (Some("Pantry"), told["metadata"].clone()));
        let refused = update(json!({"metadata": {"big": "x".repeat(40_000)}})).await.unwrap_err();
        assert!(refused.contains("LimitExceeded"), "{refused}");
    }

    async fn changes_at_once_are_all_kept(world) {
        let space = world.space().await;
        let calls = ["a", "b", "c", "d"].map(|name| ("updateSpaceMetadata", json!({"metadata": {name: 1}})));
        assert!(world.calls_in(space, "ada", &calls).await.iter().all(Result::is_ok));
        let stored = world.store.space(space).await.unwrap().unwrap().metadata.unwrap().to_value();
        assert_eq!(stored.as_object().unwrap().len(), 4);
    }
}
