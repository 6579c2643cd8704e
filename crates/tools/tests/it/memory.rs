//! Memories.

use serde_json::{Value, json};

use crate::world::on_every_store;

fn contents(told: &Value) -> Vec<&str> {
    let memories = told["memories"].as_array().unwrap();
    memories
        .iter()
        .map(|memory| memory["content"].as_str().unwrap())
        .collect()
}

on_every_store! {
    async fn a_memory_is_found_by_its_topic_however_it_is_spelt(world) {
        for (topic, content) in [("Favourite colour", "green"), ("Allergies", "nuts"), ("favourite  COLOUR!", "red")] {
            world.call("ada", "setMemory", json!({"topic": topic, "content": content})).await.unwrap();
        }
        let told = world.call("ada", "getMemory", json!({"topic": "favourite-colour"})).await.unwrap();
        let mut found = contents(&told);
        found.sort_unstable();
        assert_eq!(found, ["green", "red"]);
        let all = world.call("ada", "getMemory", json!({"limit": 1})).await.unwrap();
        assert_eq!((contents(&all).len(), all["totalMemories"].clone()), (1, json!(3)));
        assert_eq!(all["topics"]["Allergies"], 1);
    }

    async fn a_memory_is_found_by_its_words(world) {
        for (topic, content) in [("home", "the key lies under the Küche mat"), ("work", "the sea is blue")] {
            world.call("ada", "setMemory", json!({"topic": topic, "content": content})).await.unwrap();
        }
        let told = world.call("ada", "getMemory", json!({"query": "KÜCHE mat"})).await.unwrap();
        assert_eq!(contents(&told)[0], "the key lies under the Küche mat");
        let told = world.call("ada", "getMemory", json!({"query": "the", "topic": "work"})).await.unwrap();
        assert_eq!(contents(&told), ["the sea is blue"]);
        assert!(told["memories"][0]["score"].is_number());
    }

    async fn a_memory_is_changed_and_forgotten(world) {
        let made = world.call("ada", "setMemory", json!({"topic": "cat", "content": "Tom"})).await.unwrap();
        let changed = json!({"topic": "cat", "id": made["id"], "content": "Tim"});
        assert_eq!(world.call("ada", "setMemory", changed).await.unwrap()["action"], "updated");
        assert_eq!(contents(&world.call("ada", "getMemory", json!({"query": "tom"})).await.unwrap()), [""; 0]);
        assert_eq!(contents(&world.call("ada", "getMemory", json!({"topic": "cat"})).await.unwrap()), ["Tim"]);
        let gone = world.call("ada", "setMemory", json!({"topic": "Cat"})).await.unwrap();
        assert_eq!((gone["action"].clone(), gone["count"].clone()), (json!("forgotten"), json!(1)));
        assert_eq!(world.call("ada", "getMemory", json!({})).await.unwrap()["totalMemories"], 0);
    }

    async fn what_another_agent_remembers_is_out_of_reach(world) {
        let made = world.call("bob", "setMemory", json!({"topic": "pin", "content": "1234"})).await.unwrap();
        for theft in [json!({"topic": "pin", "id": made["id"]}), json!({"topic": "pin", "id": made["id"], "content": "0"})] {
            let refused = world.call("ada", "setMemory", theft).await.unwrap_err();
            assert!(refused.contains("NotFound"), "{refused}");
        }
        world.call("ada", "setMemory", json!({"topic": "pin"})).await.unwrap();
        assert_eq!(contents(&world.call("ada", "getMemory", json!({"query": "1234 pin"})).await.unwrap()), [""; 0]);
        assert_eq!(contents(&world.call("bob", "getMemory", json!({})).await.unwrap()), ["1234"]);
    }
}
