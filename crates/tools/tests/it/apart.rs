//! Entities never see each other's goals, memories, plans or files, whatever they do in whatever order: two in one
//! project, and one of the same name in another.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use serde_json::{Value, json};

use crate::world::{AGENTS, World, other_project};

/// The two agents of a project, and the first one's namesake in another.
const ENTITIES: usize = 3;

/// What an agent does; the number makes what it writes its own.
#[derive(Debug, Clone)]
enum Deed {
    SetGoal(u8),
    ClearGoals,
    Remember(u8, u8),
    Forget(u8),
    Plan(u8),
    /// Cancels all its plans.
    Cancel,
    Write(u8, u8),
    Delete(u8),
    /// Names goals, memories and plans of the others.
    Steal,
}

fn deeds() -> impl Strategy<Value = Vec<(usize, Deed)>> {
    let number = || 0..4u8;
    let deed = prop_oneof![
        number().prop_map(Deed::SetGoal),
        Just(Deed::ClearGoals),
        (number(), number()).prop_map(|(topic, n)| Deed::Remember(topic, n)),
        number().prop_map(Deed::Forget),
        number().prop_map(Deed::Plan),
        Just(Deed::Cancel),
        (number(), number()).prop_map(|(name, n)| Deed::Write(name, n)),
        number().prop_map(Deed::Delete),
        Just(Deed::Steal),
    ];
    prop::collection::vec((0..ENTITIES, deed), 1..20)
}

/// What one agent should have.
#[derive(Default)]
struct Own {
    goals: Vec<String>,
    memories: Vec<(u8, String)>,
    plans: Vec<(String, String)>,
    files: BTreeMap<u8, String>,
    /// Calls by which somebody would take what it was told of.
    thefts: Vec<(&'static str, Value)>,
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
    let spaces = [
        world.space().await,
        world.space().await,
        world.space_of(other_project()).await,
    ];
    let mut own: [Own; ENTITIES] = Default::default();
    let call = async |who: usize, tool: &str, input: Value| {
        world
            .call_in(spaces[who], AGENTS[who % AGENTS.len()], tool, input)
            .await
    };
    for (who, deed) in deeds {
        let words = |n: u8| format!("entity{who} wrote {n}");
        match deed {
            Deed::SetGoal(n) => {
                let set = json!({"goals": [{"description": words(n)}]});
                let told = call(who, "setGoals", set).await.unwrap();
                let id = told["goalsModified"][0]["id"].as_str().unwrap().to_owned();
                own[who]
                    .thefts
                    .push(("setGoals", json!({"goals": [{"id": id, "description": "mine"}]})));
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
                own[who].thefts.push((
                    "setMemory",
                    json!({"topic": format!("t{topic}"), "id": told["id"], "content": "mine"}),
                ));
                own[who].memories.push((topic, words(n)));
            }
            Deed::Forget(topic) => {
                call(who, "setMemory", json!({"topic": format!("t{topic}")}))
                    .await
                    .unwrap();
                own[who].memories.retain(|(other, _)| *other != topic);
            }
            Deed::Plan(n) => {
                let plan = json!({"message": words(n), "everySeconds": 3600});
                let told = call(who, "createPlan", plan).await.unwrap();
                let id = told["id"].as_str().unwrap().to_owned();
                own[who].thefts.push(("cancelPlan", json!({ "id": id })));
                own[who].thefts.push(("getPlan", json!({ "id": id })));
                own[who].plans.push((id, words(n)));
            }
            Deed::Cancel => {
                for (id, _) in std::mem::take(&mut own[who].plans) {
                    call(who, "cancelPlan", json!({ "id": id })).await.unwrap();
                }
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
                for (other, own) in own.iter().enumerate().filter(|(other, _)| *other != who) {
                    for (tool, input) in &own.thefts {
                        let theft = call(who, tool, input.clone()).await;
                        assert!(theft.is_err(), "{who} took {input} from {other}");
                    }
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
        let found = call(
            who,
            "getMemory",
            json!({"query": "wrote entity0 entity1 entity2", "limit": 100}),
        )
        .await
        .unwrap();
        assert_eq!(texts(&found, "memories", "content"), kept);
        let plans = call(who, "getPlan", json!({})).await.unwrap();
        let active = plans["plans"].as_array().unwrap().iter();
        let active: BTreeSet<(&str, &str)> = active
            .filter(|plan| plan["status"] == "active")
            .map(|plan| (plan["id"].as_str().unwrap(), plan["message"].as_str().unwrap()))
            .collect();
        let planned = own.plans.iter().map(|(id, words)| (id.as_str(), words.as_str()));
        assert_eq!(active, planned.collect());
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
