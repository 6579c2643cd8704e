//! Streams: the task first, numbered events, resumed from any number.

use http::Method;
use serde_json::json;

use crate::talk::{Events, brief, message, paused, result_message, state_of, world};

#[tokio::test(start_paused = true)]
async fn a_stream_begins_with_the_task_and_numbers_what_is_stored() {
    let world = world().await;
    let user = world.user("ann");
    let sent = json!({"message": message("hello")});
    let events = Events::rpc(&user, "SendStreamingMessage", sent)
        .await
        .rest()
        .await;
    let told: Vec<String> = events.iter().map(brief).collect();
    let numbered: Vec<&String> = told.iter().filter(|event| !event.starts_with('-')).collect();
    // Whether the run waits to be picked up is the engine's.
    let begins = &["1 task SUBMITTED", "2 WORKING"][..];
    let at_once = &["1 task WORKING"][..];
    let begins = if numbered[0] == at_once[0] {
        at_once
    } else {
        begins
    };
    let answer = begins.len() as u64 + 1;
    let mut expected: Vec<String> = begins.iter().map(ToString::to_string).collect();
    expected.extend([
        format!("{answer} =you said hello"),
        format!("{} COMPLETED", answer + 1),
    ]);
    assert_eq!(numbered, expected.iter().collect::<Vec<_>>(), "{told:?}");
    let pieces: Vec<&String> = told.iter().filter(|event| event.starts_with('-')).collect();
    assert!(pieces.is_empty() || pieces[0] == "- =you said ", "{told:?}");
    let id = &events[0].1["task"]["id"];
    for (_, event) in &events[1..] {
        let update = [&event["statusUpdate"], &event["artifactUpdate"]]
            .into_iter()
            .find(|update| update.is_object());
        assert_eq!(&update.unwrap()["taskId"], id, "{event}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_reader_comes_back_from_every_number_without_gap_or_repeat() {
    let world = world().await;
    let user = world.user("ann");
    let (task, call) = paused(&user).await;
    let answer = json!({"message": result_message(&task, &call, json!({"lat": 1}))});
    Events::rpc(&user, "SendStreamingMessage", answer)
        .await
        .rest()
        .await;
    let read = async |seen: u64| {
        let user = user.with("last-event-id", &seen.to_string());
        Events::rpc(&user, "SubscribeToTask", json!({"id": task["id"]}))
            .await
            .rest()
            .await
    };
    let all = read(0).await;
    let last = all.last().unwrap().0.unwrap();
    let numbers: Vec<u64> = all.iter().filter_map(|(id, _)| *id).collect();
    assert_eq!(numbers, (1..=last).collect::<Vec<_>>());
    for seen in 1..=last {
        let rest = read(seen).await;
        assert_eq!(rest[0].0, Some(seen));
        assert!(rest[0].1["task"].is_object(), "{rest:#?}");
        assert_eq!(rest[1..], all[seen as usize..], "after {seen}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_subscription_stays_open_through_a_pause_and_ends_with_the_task() {
    let world = world().await;
    let user = world.user("ann");
    let (task, call) = paused(&user).await;
    let path = format!("/a2a/default/tasks/{}:subscribe", task["id"].as_str().unwrap());
    let mut by_get = Events::open(&user, Method::GET, &path, None).await;
    let mut by_post = Events::open(&user, Method::POST, &path, None).await;
    for events in [&mut by_get, &mut by_post] {
        let (_, first) = events.next().await.unwrap();
        assert_eq!(first["task"]["status"], task["status"]);
    }
    let answer = json!({"message": result_message(&task, &call, json!(1)), "configuration": {"returnImmediately": true}});
    crate::talk::result(&user, "SendMessage", answer).await;
    let (mut first, mut second) = (by_get.rest().await, by_post.rest().await);
    assert_eq!(state_of(&first.last().unwrap().1), "TASK_STATE_COMPLETED");
    for events in [&mut first, &mut second] {
        events.retain(|(id, _)| id.is_some());
    }
    assert_eq!(first, second);
}

#[tokio::test(start_paused = true)]
async fn a_user_has_so_many_streams_and_no_more() {
    let world = world().await;
    let user = world.user("ann");
    let (task, _) = paused(&user).await;
    let mut open = Vec::new();
    for _ in 0..toolgate_testkit_http::world::STREAMS_MAX {
        open.push(Events::rpc(&user, "SubscribeToTask", json!({"id": task["id"]})).await);
    }
    let told = crate::talk::rpc(&user, "SubscribeToTask", json!({"id": task["id"]})).await;
    assert_eq!(told["error"]["data"][0]["reason"], "TOO_MANY_STREAMS", "{told:#}");
}
