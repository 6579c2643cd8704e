//! The chat loop.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

use futures_util::StreamExt as _;
use serde_json::json;
use toolgate_client::events::{Event as Body, Status};
use toolgate_client::{Chunk, Client, Decision, Definition, Pause, Tool};
use toolgate_testkit::model_script;

use super::{World, all, double, failing};
use crate::harness::soon;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tool_is_executed_and_the_conversation_goes_on() {
    let world = World::new().await;
    let (tool, ran) = double();
    world.client.register_tool(tool).await.unwrap();
    let chunks = all(world
        .client
        .chat_stream(world.say("call:double input:{\"n\":21} text:3")))
    .await;
    let Some(Chunk::Finished(reply)) = chunks.last() else {
        panic!("{chunks:?}");
    };
    assert_eq!(
        (reply.status, reply.text.as_str()),
        (Status::Completed, model_script::text(3).as_str())
    );
    assert_eq!(world.results(), ["42"]);
    assert_eq!(ran.load(Ordering::SeqCst), 1);
    let told: Vec<&str> = chunks
        .iter()
        .filter_map(|chunk| match chunk {
            Chunk::Started { .. } => Some("started"),
            Chunk::ToolStart(call) => Some(call.name.as_str()),
            Chunk::ToolResult(result) => result.outcome.as_ref().ok().map(|_| "result"),
            Chunk::ToolEnd { stored: true, .. } => Some("stored"),
            Chunk::Finished(_) => Some("finished"),
            _ => None,
        })
        .collect();
    assert_eq!(told, ["started", "double", "result", "stored", "finished"]);
    let words: String = chunks
        .iter()
        .filter_map(|chunk| match chunk {
            Chunk::Text(words) => Some(words.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(words, reply.text);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_conversation_goes_on_in_its_space() {
    let world = World::new().await;
    let first = world.client.chat(world.say("text:1")).await.unwrap();
    let second = world
        .client
        .chat(world.say("text:2").space(first.space))
        .await
        .unwrap();
    assert_eq!(second.space, first.space);
    let asked = world
        .models
        .conversations()
        .last()
        .unwrap()
        .iter()
        .filter(|said| said["role"] == "user")
        .count();
    assert_eq!(asked, 2, "the model sees what was said before");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tool_that_fails_reaches_the_model_as_an_error() {
    let world = World::new().await;
    world.client.register_tool(failing("print")).await.unwrap();
    let panics = Tool::new(Definition::new("panics", "Panics."), |_| async {
        panic!("a bug")
    });
    world.client.register_tool(panics).await.unwrap();
    let reply = world
        .client
        .chat(world.say("call:print call:panics"))
        .await
        .unwrap();
    assert_eq!(reply.status, Status::Completed);
    let [print, panics] = &world.results()[..] else {
        panic!("two results");
    };
    assert!(print.contains("the printer is on fire"), "{print}");
    assert!(panics.contains("panics panicked"), "{panics}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_output_that_does_not_fit_its_schema_is_told_to_the_model() {
    #[derive(toolgate_client::JsonSchema)]
    #[schemars(crate = "toolgate_client::schemars")]
    struct Number {
        #[allow(dead_code, reason = "only its schema is of interest")]
        value: i64,
    }
    let world = World::new().await;
    let wrong = Tool::new(Definition::new("wrong", "Answers wrongly."), |_| async {
        Ok(json!("none"))
    });
    world
        .client
        .register_tool(wrong.output::<Number>())
        .await
        .unwrap();
    let reply = world.client.chat(world.say("call:wrong")).await.unwrap();
    assert_eq!(reply.status, Status::Completed);
    assert!(
        world.results()[0].contains("the output was rejected"),
        "{:?}",
        world.results()
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_override_is_asked_first_and_may_leave_the_call_to_the_tools() {
    let world = World::new().await;
    let (tool, ran) = double();
    world.client.register_tool(tool).await.unwrap();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let log = seen.clone();
    let request = world
        .say("call:double input:{\"n\":1} call:ask call:double input:{\"n\":2}")
        .on_tool_call(move |call| {
            log.lock().unwrap().push(call.name.clone());
            async move {
                match call.input["n"].as_i64() {
                    Some(1) => Some(Ok(json!("mine"))),
                    Some(_) => None,
                    // A tool of the agent's own, which no plugin has.
                    None => Some(Ok(json!("asked"))),
                }
            }
        });
    let reply = world.client.chat(request).await.unwrap();
    assert_eq!(reply.status, Status::Completed);
    assert_eq!(world.results(), ["mine", "asked", "4"]);
    assert_eq!((seen.lock().unwrap().len(), ran.load(Ordering::SeqCst)), (3, 1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tools_are_executed_in_so_many_rounds_and_no_more() {
    let world = World::new().await;
    let (tool, ran) = double();
    world.client.register_tool(tool).await.unwrap();
    let script = "call:double input:{\"n\":1} tools:7";
    let reply = world
        .client
        .chat(world.say(script).max_tool_rounds(2))
        .await
        .unwrap();
    assert_eq!(
        (reply.pause, ran.swap(0, Ordering::SeqCst)),
        (Some(Pause::ToolRounds), 2)
    );
    let run = world.client.runs().get(reply.run).await.unwrap();
    assert_eq!(run.pending.calls.len(), 1, "the call stays open");
    let reply = world.client.chat(world.say(script)).await.unwrap();
    assert_eq!(
        (reply.pause, ran.swap(0, Ordering::SeqCst)),
        (Some(Pause::ToolRounds), 5)
    );
    let reply = world
        .client
        .chat(world.say(script).max_tool_rounds(0))
        .await
        .unwrap();
    assert_eq!((reply.status, ran.load(Ordering::SeqCst)), (Status::Completed, 7));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_chat_pauses_where_somebody_else_has_to_act() {
    let world = World::new().await;
    let waiting = world.client.chat(world.say("call:ask")).await.unwrap();
    assert_eq!(
        (waiting.pause, waiting.status),
        (Some(Pause::Waiting), Status::WaitingTool)
    );
    let asking = world.client.chat(world.say("call:risky")).await.unwrap();
    assert_eq!(
        (asking.pause, asking.status),
        (Some(Pause::Waiting), Status::WaitingApproval)
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_that_is_left_to_others_is_not_even_claimed() {
    let world = World::new().await;
    let request = world.say("call:ask").only(["double"]);
    let chunks = all(world.client.chat_stream(request.on_tool_call(|_| async { None }))).await;
    let touched = chunks
        .iter()
        .find(|chunk| matches!(chunk, Chunk::ToolStart(_) | Chunk::ToolEnd { .. }));
    assert!(touched.is_none(), "{touched:?}");
    assert!(matches!(chunks.last(), Some(Chunk::Finished(reply)) if reply.pause == Some(Pause::Waiting)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_approval_is_decided_while_the_chat_is_followed() {
    let world = World::new().await;
    let mut chat = world
        .client
        .chat_stream(world.say("call:risky input:{\"n\":1}").until_end());
    let reply = soon("the end", async {
        while let Some(chunk) = chat.next().await {
            match chunk.unwrap() {
                Chunk::Event(event) => {
                    if let Some(Body::ToolApprovalRequest(asked)) = event.body {
                        let decision = Decision::yes_with(json!({"n": 2}));
                        let decided = world
                            .client
                            .approvals()
                            .decide(asked.approval_id, &decision)
                            .await;
                        assert!(decided.unwrap().approved);
                    }
                }
                Chunk::Finished(reply) => return reply,
                _ => {}
            }
        }
        panic!("no end");
    })
    .await;
    assert_eq!(reply.status, Status::Completed);
    assert_eq!(world.results(), ["{\"n\":2}"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_chat_goes_on_over_a_crash_of_the_gateway() {
    let mut world = World::new().await;
    let (tool, ran) = double();
    world.client.register_tool(tool).await.unwrap();
    let script = "call:double input:{\"n\":3} text:4 hold:3";
    let chat = tokio::spawn(all(world.client.chat_stream(world.say(script))));
    // Before the call, and then in the middle of the answer.
    world.models.held(1).await;
    world.gateway.crash().await;
    world.models.release(2);
    world.models.held(3).await;
    world.gateway.crash().await;
    world.models.release(2);
    let chunks = chat.await.unwrap();
    let Some(Chunk::Finished(reply)) = chunks.last() else {
        panic!("{chunks:?}");
    };
    assert_eq!(
        (reply.status, reply.text.as_str()),
        (Status::Completed, model_script::text(4).as_str())
    );
    assert_eq!(
        (world.results(), ran.load(Ordering::SeqCst)),
        (vec!["6".to_owned()], 1)
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tool_hears_when_its_run_is_cancelled() {
    let world = World::new().await;
    let (heard, hears) = tokio::sync::oneshot::channel();
    let heard = Arc::new(Mutex::new(Some(heard)));
    let patient = Tool::new(Definition::new("patient", "Waits."), move |call| {
        let heard = heard.clone();
        tokio::spawn(async move {
            call.cancelled.cancelled().await;
            let _ = heard.lock().unwrap().take().unwrap().send(());
        });
        std::future::pending()
    });
    world.client.register_tool(patient).await.unwrap();
    let mut chat = world.client.chat_stream(world.say("call:patient"));
    let reply = soon("the end", async {
        while let Some(chunk) = chat.next().await {
            match chunk.unwrap() {
                Chunk::ToolStart(call) => world.client.runs().cancel(call.run).await.unwrap(),
                Chunk::Finished(reply) => return reply,
                _ => {}
            }
        }
        panic!("no end");
    })
    .await;
    assert_eq!(reply.status, Status::Cancelled);
    soon("the word to the tool", hears).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_the_gateway_refuses_has_its_code_and_its_places() {
    let world = World::new().await;
    let error = world
        .client
        .chat(world.say("text:1").agent("nobody"))
        .await
        .unwrap_err();
    assert!(matches!(error.status(), Some(404 | 422)), "{error}");
    let stranger = Client::builder(world.gateway.url())
        .key("sk_wrong")
        .build()
        .unwrap();
    let error = stranger.chat("hello").await.unwrap_err();
    assert_eq!((error.status(), error.code()), (Some(401), "UNAUTHENTICATED"));
    let bad = Definition::new("1st", "Begins with a digit.");
    let faults = world.client.tools().validate(&[bad]).await.unwrap();
    assert_eq!(faults[0].pointer, "/tools/0/name");
}

#[tokio::test]
async fn a_gateway_that_is_not_there_is_said_so() {
    let client = Client::builder("http://127.0.0.1:9").build().unwrap();
    let error = soon("an answer", client.chat("hello")).await.unwrap_err();
    assert_eq!(error.code(), "UNREACHABLE");
}
