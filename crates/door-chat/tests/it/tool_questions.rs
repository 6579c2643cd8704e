//! What tools ask in the middle of a call: a part of the message that every client keeps.

use serde_json::json;
use toolgate_kernel::question::{Action, Response};
use toolgate_kernel::tool::Decider;
use toolgate_testkit_http::world::agent_with_tasks;

use crate::talk::{chunks, configure, find, types};
use crate::world::world;

#[tokio::test]
async fn a_question_is_a_data_part_in_every_dialect_and_the_answer_goes_on_after_it() {
    for dialect in ["v5", "v6", "v7"] {
        let world = world().await;
        configure(&world, agent_with_tasks()).await;
        let client = world.backend();
        let words = format!("call:work={}", json!({ "plan": ["ask", "end"] }));
        let body = json!({"id": "c", "dialect": dialect, "message": words});
        let told = chunks(&client.post("/api/chat", body).await.expect(200));
        let asked = find(&told, "data-question");
        assert_eq!(asked["data"]["status"], "open");
        assert_eq!(asked["data"]["message"], "Which seat?");
        assert_eq!(asked["data"]["schema"]["type"], "object");
        assert_eq!(asked["id"], asked["data"]["questionId"]);
        let finish = find(&told, "finish");
        assert!(
            dialect == "v5" || finish["finishReason"] == "tool-calls",
            "{finish}"
        );
        assert!(!types(&told).contains(&"tool-output-available"));
        let question = asked["id"].as_str().unwrap().parse().unwrap();
        let response = Response {
            action: Action::Accept,
            content: Some(json!({ "seat": "12A" }).into()),
        };
        let backend = Decider::Backend;
        world.engine.respond(question, response, backend).await.unwrap();
        let told = client.get("/api/chat/c/stream?startIndex=0").await.expect(200);
        assert!(told.to_string().contains("12A"), "{told}");
    }
}
