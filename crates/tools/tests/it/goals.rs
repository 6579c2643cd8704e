//! Goals.

use serde_json::{Value, json};

use crate::world::on_every_store;

fn described(told: &Value) -> Vec<&str> {
    let goals = told["currentGoals"].as_array().unwrap();
    goals
        .iter()
        .map(|goal| goal["description"].as_str().unwrap())
        .collect()
}

on_every_store! {
    async fn goals_are_set_changed_and_told_by_priority_then_age(world) {
        let goals = json!({"goals": [{"description": "first"}, {"description": "urgent", "priority": 5}]});
        let set = world.call("ada", "setGoals", goals).await.unwrap();
        assert_eq!((set["success"].clone(), set["totalGoals"].clone()), (json!(true), json!(2)));
        assert_eq!(described(&set), ["urgent", "first"]);
        let id = &set["goalsModified"][0]["id"];
        let done = json!({"goals": [{"id": id, "description": "first", "isCompleted": true, "priority": 9}]});
        let set = world.call("ada", "setGoals", done).await.unwrap();
        assert_eq!(set["goalsModified"], json!([{"action": "updated", "id": id, "description": "first"}]));
        assert_eq!(described(&set), ["first", "urgent"]);
        let open = world.call("ada", "getGoals", json!({"includeCompleted": false})).await.unwrap();
        assert_eq!(described(&open), ["urgent"]);
    }

    async fn an_id_that_is_not_yours_changes_nothing(world) {
        let theirs = world.call("bob", "setGoals", json!({"goals": [{"description": "his"}]})).await.unwrap();
        let id = &theirs["goalsModified"][0]["id"];
        let mixed = json!({"goals": [{"description": "new"}, {"id": id, "description": "stolen"}], "clearExisting": true});
        let refused = world.call("ada", "setGoals", mixed).await.unwrap_err();
        assert!(refused.contains("NotFound") && refused.contains("nothing was changed"), "{refused}");
        assert_eq!(described(&world.call("ada", "getGoals", json!({})).await.unwrap()), [""; 0]);
        assert_eq!(described(&world.call("bob", "getGoals", json!({})).await.unwrap()), ["his"]);
    }
}
