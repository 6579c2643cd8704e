//! The gateway goes away while calls are open: what it means for chats and workers.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use futures_util::StreamExt as _;
use serde_json::json;
use tokio::sync::mpsc;
use toolgate_client::events::Status;
use toolgate_client::{Chunk, Connection, Definition, NewSpace, SpaceId, Tool};
use toolgate_testkit::model_script;

use super::{World, all, client, double};
use crate::harness::soon;

/// Longer than a single request is retried.
const OUTAGE: Duration = Duration::from_secs(8);

impl World {
    async fn space(&self) -> SpaceId {
        let created = self.client.spaces().create(&NewSpace::default()).await;
        created.unwrap().id
    }
}

/// A tool that says when it begins, counts, and ends when it is told to.
fn gated(
    name: &str,
    ran: &Arc<AtomicUsize>,
) -> (Tool, mpsc::UnboundedReceiver<()>, Arc<tokio::sync::Semaphore>) {
    let (begin, began) = mpsc::unbounded_channel();
    let gate = Arc::new(tokio::sync::Semaphore::new(0));
    let (ran, end) = (ran.clone(), gate.clone());
    let tool = Tool::new(Definition::new(name, "Waits."), move |_| {
        ran.fetch_add(1, Ordering::SeqCst);
        let _ = begin.send(());
        let end = end.clone();
        async move {
            end.acquire().await.unwrap().forget();
            Ok(json!("blue"))
        }
    });
    (tool, began, gate)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_chat_claims_a_call_when_the_gateway_is_back_however_long_that_takes() {
    let mut world = World::new().await;
    let (tool, ran) = double();
    world.client.register_tool(tool).await.unwrap();
    let mut chat = world
        .client
        .chat_stream(world.say("call:double input:{\"n\":21} text:3"));
    // Killed in the instant in which the call is announced: the claim finds nobody.
    soon("the offer", async {
        while let Some(chunk) = chat.next().await {
            if let Chunk::Event(event) = chunk.unwrap()
                && event.json.as_str().contains("\"tool-input-available\"")
            {
                return;
            }
        }
        panic!("no offer");
    })
    .await;
    world.gateway.kill();
    let rest = tokio::spawn(all(chat));
    tokio::time::sleep(OUTAGE).await;
    world.gateway.spawn();
    world.gateway.ready().await;
    let chunks = rest.await.unwrap();
    let Some(Chunk::Finished(reply)) = chunks.last() else {
        panic!("{chunks:?}");
    };
    assert_eq!(reply.status, Status::Completed);
    assert_eq!(
        (world.results(), ran.load(Ordering::SeqCst)),
        (vec!["42".to_owned()], 1)
    );
    let connections: Vec<&Connection> = chunks
        .iter()
        .filter_map(|chunk| match chunk {
            Chunk::Connection(connection) => Some(connection),
            _ => None,
        })
        .collect();
    assert!(
        matches!(connections[..], [Connection::Lost { .. }, Connection::Up]),
        "{connections:?}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_claims_and_answers_when_the_gateway_is_back() {
    let mut world = World::new().await;
    let space = world.space().await;
    let ran = Arc::new(AtomicUsize::new(0));
    let (tool, mut began, gate) = gated("ask", &ran);
    let worker = client(&world.gateway);
    worker.register_tool(tool).await.unwrap();
    let server = worker.serve(space).start();
    let run = world.client.chat(world.say("call:ask").space(space)).await;
    let run = run.unwrap().run;
    soon("the call to begin", began.recv()).await.unwrap();
    world.gateway.kill();
    // The result is ready while nobody takes it.
    gate.add_permits(1);
    tokio::time::sleep(OUTAGE).await;
    world.gateway.spawn();
    world.gateway.ready().await;
    assert_eq!(world.ended(run).await, Status::Completed);
    assert_eq!(ran.load(Ordering::SeqCst), 1, "it is not executed again");
    server.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_that_starts_before_the_gateway_waits_for_it_and_says_so() {
    let mut world = World::new().await;
    let space = world.space().await;
    let waiting = world.client.chat(world.say("call:ask").space(space)).await;
    let run = waiting.unwrap().run;
    world.gateway.kill();
    let ran = Arc::new(AtomicUsize::new(0));
    let (tool, _began, gate) = gated("ask", &ran);
    gate.add_permits(1);
    let worker = client(&world.gateway);
    worker.register_tool(tool).await.unwrap();
    let (said, mut says) = mpsc::unbounded_channel();
    let server = worker
        .serve(space)
        .on_connection(move |connection| drop(said.send(connection.clone())))
        .start();
    let lost = soon("the word that it waits", says.recv()).await.unwrap();
    let Connection::Lost { reason } = &lost else {
        panic!("{lost:?}");
    };
    assert!(reason.contains("cannot be reached"), "{reason}");
    let mut attempts = 0;
    let ready = {
        let worker = worker.clone();
        tokio::spawn(async move {
            worker.ready(|_| attempts += 1).await.unwrap();
            attempts
        })
    };
    tokio::time::sleep(Duration::from_secs(1)).await;
    world.gateway.spawn();
    world.gateway.ready().await;
    assert!(soon("readiness", ready).await.unwrap() > 0);
    assert_eq!(
        soon("the word that it serves", says.recv()).await.unwrap(),
        Connection::Up
    );
    assert_eq!(world.ended(run).await, Status::Completed);
    assert_eq!(ran.load(Ordering::SeqCst), 1);
    server.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_that_waits_for_the_gateway_can_be_closed() {
    let mut world = World::new().await;
    let space = world.space().await;
    world.gateway.kill();
    let (said, mut says) = mpsc::unbounded_channel();
    let server = client(&world.gateway)
        .serve(space)
        .on_connection(move |connection| drop(said.send(connection.clone())))
        .start();
    soon("the word that it waits", says.recv()).await.unwrap();
    let began = Instant::now();
    soon("the end", server.close()).await.unwrap();
    assert!(began.elapsed() < Duration::from_secs(5));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_chat_that_is_dropped_releases_its_calls() {
    let world = World::new().await;
    let space = world.space().await;
    let first = Arc::new(AtomicUsize::new(0));
    let (tool, mut began, _gate) = gated("patient", &first);
    let chatting = client(&world.gateway);
    chatting.register_tool(tool).await.unwrap();
    let mut chat = chatting.chat_stream(world.say("call:patient").space(space));
    let run = match soon("the start", chat.next()).await.unwrap().unwrap() {
        Chunk::Started { run, .. } => run,
        other => panic!("{other:?}"),
    };
    let reading = tokio::spawn(async move { while chat.next().await.is_some() {} });
    soon("the call to begin", began.recv()).await.unwrap();
    let dropped = Instant::now();
    reading.abort();
    let second = Arc::new(AtomicUsize::new(0));
    let (tool, _began, gate) = gated("patient", &second);
    gate.add_permits(1);
    let worker = client(&world.gateway);
    worker.register_tool(tool).await.unwrap();
    let server = worker.serve(space).start();
    assert_eq!(world.ended(run).await, Status::Completed);
    assert!(
        dropped.elapsed() < Duration::from_secs(20),
        "before the lease has expired"
    );
    assert_eq!(second.load(Ordering::SeqCst), 1);
    server.close().await.unwrap();
}

/// Longer than a lease.
const BLOCKED: Duration = Duration::from_secs(40);

/// Serves a tool that blocks its thread, on a runtime of this kind, beside a second worker that would take the call.
fn blocks_and_runs_once(builder: &mut tokio::runtime::Builder) {
    let (send, receive) = std::sync::mpsc::channel();
    let helper = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    let world = helper.block_on(World::new());
    let space = helper.block_on(world.space());
    let ran = Arc::new(AtomicUsize::new(0));
    let (begin, began) = std::sync::mpsc::channel();
    let (count, url) = (ran.clone(), world.gateway.url());
    let runtime = builder.enable_all().build().unwrap();
    let serving = std::thread::spawn(move || {
        let blocking = Tool::new(Definition::new("ask", "Asks."), move |_| {
            count.fetch_add(1, Ordering::SeqCst);
            let _ = begin.send(());
            async {
                std::thread::sleep(BLOCKED);
                Ok(json!("first"))
            }
        });
        runtime.block_on(async {
            let worker = toolgate_client::Client::builder(url)
                .key(crate::harness::SECRET_KEY)
                .build()
                .unwrap();
            worker.register_tool(blocking).await.unwrap();
            let server = worker.serve(space).start();
            let stop: tokio::sync::oneshot::Receiver<()> = receive.recv().unwrap();
            let _ = stop.await;
            server.close().await.unwrap();
        });
    });
    let (stop, stopped) = tokio::sync::oneshot::channel();
    send.send(stopped).unwrap();
    let run = helper
        .block_on(world.client.chat(world.say("call:ask").space(space)))
        .unwrap()
        .run;
    began.recv_timeout(crate::harness::SOON).unwrap();
    // Comes while the first worker blocks, and would take a call whose lease has expired.
    let other = Arc::new(AtomicUsize::new(0));
    let (tool, _began, gate) = gated("ask", &other);
    gate.add_permits(1);
    let status = helper.block_on(async {
        let second = client(&world.gateway);
        second.register_tool(tool).await.unwrap();
        let _server = second.serve(space).start();
        world.ended(run).await
    });
    assert_eq!(status, Status::Completed);
    assert_eq!(world.results(), ["first"]);
    assert_eq!((ran.load(Ordering::SeqCst), other.load(Ordering::SeqCst)), (1, 0));
    stop.send(()).unwrap();
    serving.join().unwrap();
}

#[test]
fn a_tool_that_blocks_the_only_thread_keeps_its_call() {
    blocks_and_runs_once(&mut tokio::runtime::Builder::new_current_thread());
}

#[test]
fn a_tool_that_blocks_a_thread_keeps_its_call() {
    blocks_and_runs_once(tokio::runtime::Builder::new_multi_thread().worker_threads(1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn text_that_starts_over_after_a_crash_is_marked() {
    let mut world = World::new().await;
    let mut chat = world.client.chat_stream(world.say("text:6 hold:4"));
    soon("the first words", async {
        while !matches!(chat.next().await.expect("a chunk").unwrap(), Chunk::Text(_)) {}
    })
    .await;
    let chunks = tokio::spawn(all(chat));
    world.gateway.crash().await;
    world.models.release(2);
    let chunks = chunks.await.unwrap();
    let restarts = chunks
        .iter()
        .filter(|chunk| matches!(chunk, Chunk::TextRestarted))
        .count();
    assert_eq!(restarts, 1, "{chunks:?}");
    let text = chunks.iter().fold(String::new(), |text, chunk| match chunk {
        Chunk::Text(more) => text + more,
        Chunk::TextRestarted => String::new(),
        _ => text,
    });
    assert_eq!(text, model_script::text(6));
}
