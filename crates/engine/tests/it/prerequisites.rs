//! Prerequisites that are met by an earlier message of the space.

use std::time::Duration;

use serde_json::json;
use toolgate_kernel::id::{EntityId, SpaceId};
use uuid::Uuid;

use crate::world::{Setup, World, agent};

/// A world whose agent may transfer once a person was verified in the last ten minutes.
async fn bank() -> World {
    let mut config = agent();
    let tool = |name: &str, prerequisites| {
        json!({"name": name, "description": "d", "executionType": "basic", "execution": {"mode": "pass-through"},
               "prerequisites": prerequisites})
    };
    let tools = config["tools"].as_array_mut().unwrap();
    tools.push(tool("verify", json!([])));
    tools.push(tool(
        "transfer",
        json!([{"tool": "verify", "scope": "space", "within": "10m"}]),
    ));
    tools.push(tool("peek", json!([{"tool": "verify", "scope": "space"}])));
    tools.push(tool("strict", json!(["verify"])));
    World::with(Setup {
        agent: config,
        ..Setup::default()
    })
    .await
}

/// What comes of a message of this person.
async fn say(world: &World, space: Option<SpaceId>, person: Option<u128>, words: &str) -> (SpaceId, String) {
    let mut post = world.post_to(space, words);
    post.message.from = person.map(|id| EntityId::new(Uuid::from_u128(id)));
    let posted = world.engine.post(post).await.unwrap();
    (posted.space_id, world.answer(posted.run_id.unwrap()).await)
}

const REFUSED: &str = "needs a successful call of verify";

#[tokio::test(start_paused = true)]
async fn an_earlier_message_of_the_space_meets_a_prerequisite_for_a_time() {
    let world = bank().await;
    let (space, told) = say(&world, None, Some(1), "call:transfer").await;
    assert!(told.contains("verify within the last 600s"), "{told}");
    say(&world, Some(space), Some(1), "call:verify").await;
    say(&world, Some(space), Some(1), "hello").await;
    let (_, told) = say(&world, Some(space), Some(1), r#"call:transfer={"to":"bob"}"#).await;
    assert_eq!(told, r#"got {"to":"bob"}"#);
    // A name alone counts in its run.
    let (_, told) = say(&world, Some(space), Some(1), "call:strict").await;
    assert!(told.contains(REFUSED), "{told}");

    tokio::time::advance(Duration::from_secs(601)).await;
    let (_, told) = say(&world, Some(space), Some(1), "call:transfer call:peek").await;
    assert!(
        told.contains("verify within the last 600s") && told.ends_with("and {}"),
        "{told}"
    );
}

#[tokio::test(start_paused = true)]
async fn what_was_done_for_another_person_or_elsewhere_meets_nothing() {
    let world = bank().await;
    let (space, _) = say(&world, None, Some(1), "call:verify").await;
    for (space, person) in [(Some(space), Some(2)), (Some(space), None), (None, Some(1))] {
        let (_, told) = say(&world, space, person, "call:transfer").await;
        assert!(told.contains(REFUSED), "{person:?}: {told}");
    }
    let (_, told) = say(&world, Some(space), Some(1), "call:transfer").await;
    assert_eq!(told, "got {}");
    // A call that failed meets nothing.
    let (other, told) = say(&world, None, Some(1), "call:strict").await;
    assert!(told.contains(REFUSED), "{told}");
    let (_, told) = say(&world, Some(other), Some(1), "call:peek").await;
    assert!(told.contains(REFUSED), "{told}");
}
