//! Two entities never see each other's goals, memories or files, whatever they do in whatever order.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use serde_json::{Value, json};

use crate::world::{AGENTS, World};

/// What an agent does; the number makes what it writes its own.
#[derive(Debug, Clone)]
enum Deed {
    SetGoal(u8),
    ClearGoals,
    Remember(u8, u8),
    Forget(u8),
    Write(u8, u8),
    Delete(u8),
    /// Names a goal and a memory of the other one.
    Steal,
}

fn deeds() -> impl Strategy<Value = Vec<(usize, Deed)>> {
    let number = || 0..4u8;
    let deed = prop_oneof![
        number().prop_map(Deed::SetGoal),
        Just(Deed::ClearGoals),
        (number(), number()).prop_map(|(topic, n)| Deed::Remember(topic, n)),
        number().prop_map(Deed::Forget),
        (number(), number()).prop_map(|(name, n)| Deed::Write(name, n)),
        number().prop_map(Deed::Delete),
        Just(Deed::Steal),
    ];
    prop::collection::vec((0..AGENTS.len(), deed), 1..16)
}

/// What one agent should have.
#[derive(Default)]
struct Own {
    goals: Vec<String>,
    memories: Vec<(u8, String)>,
    files: BTreeMap<u8, String>,
    /// Ids of goals and memories that it was told of.
    ids: Vec<(String, String)>,
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]
    #[test]
    fn nobody_sees_what_others_keep(deeds in deeds()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(check(deeds));
    }
}

async fn check(deeds: Vec<(usize, Deed)>) {
    let world = World::in_memory().await;
    let spaces = [world.space().await, world.space().await];
    let mut own: [Own; 2] = Default::default();
    let call = async |who: usize, tool: &str, input: Value| {
        world.call_in(spaces[who], AGENTS[who], tool, input).await
    };
    for (who, deed) in deeds {
        let words = |n: u8| format!("{} wrote {n}", AGENTS[who]);
        match deed {
            Deed::SetGoal(n) => {
                let set = json!({"goals": [{"description": words(n)}]});
                let told = call(who, "setGoals", set).await.unwrap();
                let id = told["goalsModified"][0]["id"].as_str().unwrap().to_owned();
                own[who].ids.push(("setGoals".into(), id));
                own[who].goals.push(words(n));
            }
            Deed::ClearGoals => {
                call(who, "setGoals", json!({"goals": [], "clearExisting": true}))
                    .await
                    .unwrap();
                own[who].goals.clear();
            }
            Deed::Remember(topic, n) => {
                let set = json!({"topic": format!("t{topic}"), "content": words(n)});
                let told = call(who, "setMemory", set).await.unwrap();
                own[who]
                    .ids
                    .push((format!("t{topic}"), told["id"].as_str().unwrap().to_owned()));
                own[who].memories.push((topic, words(n)));
            }
            Deed::Forget(topic) => {
                call(who, "setMemory", json!({"topic": format!("t{topic}")}))
                    .await
                    .unwrap();
                own[who].memories.retain(|(other, _)| *other != topic);
            }
            Deed::Write(name, n) => {
                let set = json!({"path": format!("f{name}"), "content": words(n)});
                call(who, "vfs_write", set).await.unwrap();
                own[who].files.insert(name, words(n));
            }
            Deed::Delete(name) => {
                call(who, "vfs_delete", json!({"path": format!("f{name}")}))
                    .await
                    .unwrap();
                own[who].files.remove(&name);
            }
            Deed::Steal => {
                for (kind, id) in &own[1 - who].ids {
                    let theft = match kind.as_str() {
                        "setGoals" => {
                            call(
                                who,
                                "setGoals",
                                json!({"goals": [{"id": id, "description": "mine"}]}),
                            )
                            .await
                        }
                        topic => {
                            call(
                                who,
                                "setMemory",
                                json!({"topic": topic, "id": id, "content": "mine"}),
                            )
                            .await
                        }
                    };
                    assert!(theft.is_err(), "{} took {id}", AGENTS[who]);
                }
            }
        }
    }
    for (who, own) in own.iter().enumerate() {
        let texts = |told: &Value, list: &str, member: &str| -> BTreeSet<String> {
            let items = told[list].as_array().unwrap().iter();
            items
                .map(|item| item[member].as_str().unwrap().to_owned())
                .collect()
        };
        let goals = call(who, "getGoals", json!({})).await.unwrap();
        assert_eq!(goals["totalGoals"], own.goals.len());
        assert_eq!(
            texts(&goals, "currentGoals", "description"),
            own.goals.iter().cloned().collect()
        );
        let memories = call(who, "getMemory", json!({"limit": 100})).await.unwrap();
        assert_eq!(memories["totalMemories"], own.memories.len());
        let kept: BTreeSet<String> = own.memories.iter().map(|(_, words)| words.clone()).collect();
        assert_eq!(texts(&memories, "memories", "content"), kept);
        let found = call(who, "getMemory", json!({"query": "wrote ada bob", "limit": 100}))
            .await
            .unwrap();
        assert_eq!(texts(&found, "memories", "content"), kept);
        let files = call(who, "vfs_list", json!({})).await.unwrap();
        assert_eq!(files["totalFiles"], own.files.len());
        for (name, words) in &own.files {
            let read = call(who, "vfs_read", json!({"path": format!("f{name}")}))
                .await
                .unwrap();
            assert_eq!(read["content"], **words);
        }
    }
}
