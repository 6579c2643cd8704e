//! A worker that serves tools for a space.

use std::num::NonZero;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::StreamExt as _;
use serde_json::json;
use toolgate_client::events::{Event as Body, Seq, Status};
use toolgate_client::{Definition, NewSpace, Tool};

use super::{World, client, double};
use crate::harness::soon;

/// A tool of the agent's own that runs on the client, served here.
fn ask(ran: &Arc<AtomicUsize>) -> Tool {
    let ran = ran.clone();
    Tool::new(Definition::new("ask", "Asks."), move |_| {
        ran.fetch_add(1, Ordering::SeqCst);
        async { Ok(json!("blue")) }
    })
}

impl World {
    /// Waits until the run has ended, and tells how.
    pub(super) async fn ended(&self, run: toolgate_client::RunId) -> Status {
        let mut events = self.client.runs().subscribe(run, Seq::default());
        soon("the end of the run", async {
            while let Some(event) = events.next().await {
                if let Some(Body::RunFinish(end)) = event.unwrap().body {
                    return end.status;
                }
            }
            panic!("the stream ended before the run");
        })
        .await
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_sent_the_message_executes_its_tools_however_many_others_would() {
    const ROUNDS: usize = 10;
    let world = World::new().await;
    let space = world.client.spaces().create(&NewSpace::default()).await;
    let space = space.unwrap().id;
    let mut others = Vec::new();
    for _ in 0..2 {
        let (worker, (tool, ran)) = (client(&world.gateway), double());
        worker.register_tool(tool).await.unwrap();
        let (listens, mut listening) = tokio::sync::mpsc::channel(1);
        let server = worker.serve(space).on_connection(move |_| {
            // Once is enough.
            let _ = listens.try_send(());
        });
        others.push((server.start(), ran));
        soon("the worker", listening.recv()).await.unwrap();
    }
    let (tool, ran) = double();
    world.client.register_tool(tool).await.unwrap();
    for _ in 0..ROUNDS {
        let request = world.say("call:double input:{\"n\":21} text:1").space(space);
        let reply = world.client.chat(request).await.unwrap();
        assert_eq!(reply.status, Status::Completed);
    }
    assert_eq!(ran.load(Ordering::SeqCst), ROUNDS);
    for (server, ran) in others {
        server.close().await.unwrap();
        assert_eq!(ran.load(Ordering::SeqCst), 0);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_answers_calls_of_others_also_those_from_before_it_came() {
    let mut world = World::new().await;
    let space = world
        .client
        .spaces()
        .create(&NewSpace::default())
        .await
        .unwrap()
        .id;
    let before = world
        .client
        .chat(world.say("call:ask").space(space))
        .await
        .unwrap();
    assert_eq!(before.status, Status::WaitingTool);
    let ran = Arc::new(AtomicUsize::new(0));
    let worker = client(&world.gateway);
    worker.register_tool(ask(&ran)).await.unwrap();
    let mut server = worker.serve(space).start();
    assert_eq!(world.ended(before.run).await, Status::Completed);
    assert_eq!(world.results(), ["blue"]);
    world.gateway.crash().await;
    let later = world
        .client
        .chat(world.say("call:ask call:ask").space(space).until_end())
        .await
        .unwrap();
    assert_eq!(later.status, Status::Completed);
    server.idle().await;
    server.close().await.unwrap();
    assert_eq!(ran.load(Ordering::SeqCst), 3);
    let after = world
        .client
        .chat(world.say("call:ask").space(space))
        .await
        .unwrap();
    assert_eq!(after.status, Status::WaitingTool, "nobody serves any more");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_two_workers_one_executes_each_call() {
    let world = World::new().await;
    let space = world
        .client
        .spaces()
        .create(&NewSpace::default())
        .await
        .unwrap()
        .id;
    let ran = Arc::new(AtomicUsize::new(0));
    let mut servers = Vec::new();
    for _ in 0..2 {
        let worker = client(&world.gateway);
        worker.register_tool(ask(&ran)).await.unwrap();
        servers.push(worker.serve(space).start());
    }
    let reply = world
        .client
        .chat(world.say("call:ask tools:5").space(space).until_end())
        .await
        .unwrap();
    assert_eq!((reply.status, ran.load(Ordering::SeqCst)), (Status::Completed, 5));
    for server in servers {
        server.close().await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_executes_as_many_calls_at_a_time_as_it_is_told_to() {
    let world = World::new().await;
    let space = world
        .client
        .spaces()
        .create(&NewSpace::default())
        .await
        .unwrap()
        .id;
    let (running, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let seen = most.clone();
    let busy = Tool::new(Definition::new("ask", "Asks."), move |_| {
        let (running, most) = (running.clone(), most.clone());
        async move {
            most.fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            tokio::time::sleep(Duration::from_millis(20)).await;
            running.fetch_sub(1, Ordering::SeqCst);
            Ok(json!("blue"))
        }
    });
    let worker = client(&world.gateway);
    worker.register_tool(busy).await.unwrap();
    let limit = NonZero::new(2).unwrap();
    let server = worker.serve(space).concurrency(limit).start();
    let reply = world
        .client
        .chat(world.say("call:ask tools:6").space(space).until_end())
        .await
        .unwrap();
    assert_eq!(reply.status, Status::Completed);
    assert!(seen.load(Ordering::SeqCst) <= limit.get());
    server.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_that_closes_gives_its_calls_back() {
    let world = World::new().await;
    let space = world
        .client
        .spaces()
        .create(&NewSpace::default())
        .await
        .unwrap()
        .id;
    let (began, mut begins) = tokio::sync::mpsc::unbounded_channel();
    let stuck = Tool::new(Definition::new("ask", "Asks."), move |_| {
        let _ = began.send(());
        std::future::pending()
    });
    let first = client(&world.gateway);
    first.register_tool(stuck).await.unwrap();
    let server = first.serve(space).start();
    let reply = world
        .client
        .chat(world.say("call:ask").space(space))
        .await
        .unwrap();
    soon("the call to begin", begins.recv()).await.unwrap();
    server.close().await.unwrap();
    let ran = Arc::new(AtomicUsize::new(0));
    let second = client(&world.gateway);
    second.register_tool(ask(&ran)).await.unwrap();
    let _server = second.serve(space).only(["ask"]).start();
    assert_eq!(world.ended(reply.run).await, Status::Completed);
    assert_eq!(ran.load(Ordering::SeqCst), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_that_is_not_let_in_ends_with_the_reason() {
    let world = World::new().await;
    let space = world
        .client
        .spaces()
        .create(&NewSpace::default())
        .await
        .unwrap()
        .id;
    let stranger = toolgate_client::Client::builder(world.gateway.url())
        .key("sk_wrong")
        .build()
        .unwrap();
    let error = soon("the end", stranger.serve(space).start().ended())
        .await
        .unwrap_err();
    assert_eq!(error.code(), "UNAUTHENTICATED");
}
