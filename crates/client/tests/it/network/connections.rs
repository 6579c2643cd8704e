//! Connections that are kept for the next request, answers that break off, streams that nobody reads.

use futures_util::StreamExt as _;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpListener;
use tokio::time::timeout;
use toolgate_client::events::Seq;
use toolgate_client::{Client, NewSpace, RunFilter, Time};

use super::server::{Answer, Asked, EVENTS, RUN, Server, answer, read_head};
use super::{SOON, ask_and_follow};

const NO_RUNS: &str = r#"{"runs":[],"nextCursor":null}"#;

fn client(server: &Server) -> Client {
    let url = format!("http://{}/base", server.address);
    Client::builder(url).key("sk_none").build().expect("a client")
}

#[tokio::test]
async fn one_connection_serves_many_requests_below_the_base_path() {
    let server = Server::start(|_| Answer::Keep(answer("200 OK", NO_RUNS))).await;
    let client = client(&server);
    for _ in 0..3 {
        client.runs().list(&RunFilter::default()).await.unwrap();
    }
    let asked = server.asked();
    assert_eq!(asked.len(), 3);
    for asked in asked {
        assert_eq!(asked.line(), "get /base/v1/runs http/1.1");
        assert_eq!(asked.connection, 0, "{asked:?}");
        assert!(asked.head.contains("accept-encoding: identity"), "{asked:?}");
    }
}

#[tokio::test]
async fn a_stream_in_small_chunks_with_a_trailer_is_read() {
    let server = Server::gateway().await;
    assert_eq!(ask_and_follow(&client(&server)).await.unwrap(), EVENTS);
}

#[tokio::test]
async fn filters_of_runs_are_sent_escaped() {
    let server = Server::start(|_| Answer::Keep(answer("200 OK", NO_RUNS))).await;
    let filter = RunFilter {
        agent: Some("desk".into()),
        user: Some("ada@example.com".into()),
        text: Some("a & b".into()),
        since: Some(Time(0)),
        until: Some(Time(1)),
        ..RunFilter::default()
    };
    client(&server).runs().list(&filter).await.unwrap();
    assert_eq!(
        server.asked()[0].line(),
        "get /base/v1/runs?agent=desk&user=ada%40example.com&text=a%20%26%20b\
         &since=1970-01-01t00%3a00%3a00.000z&until=1970-01-01t00%3a00%3a00.001z http/1.1"
    );
}

#[tokio::test]
async fn a_kept_connection_that_the_server_has_closed_is_replaced() {
    // Says nothing of the end, as a server that is stopped does.
    let server = Server::start(|_| Answer::Close(answer("200 OK", NO_RUNS))).await;
    let client = client(&server);
    for _ in 0..5 {
        client.runs().list(&RunFilter::default()).await.unwrap();
    }
    let connections: Vec<usize> = server.asked().iter().map(|asked| asked.connection).collect();
    assert_eq!(connections, [0, 1, 2, 3, 4], "each request was sent once");
}

#[tokio::test]
async fn an_answer_that_breaks_off_is_asked_for_again() {
    let server = Server::start(|asked| match asked.len() {
        1 => Answer::Close(format!(
            "HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{{\"ru",
            NO_RUNS.len()
        )),
        _ => Answer::Keep(answer("200 OK", NO_RUNS)),
    })
    .await;
    let page = client(&server).runs().list(&RunFilter::default()).await.unwrap();
    assert_eq!(page.runs, []);
    assert_eq!(server.asked().len(), 2);
}

#[tokio::test]
async fn a_request_that_may_have_been_done_is_not_sent_twice() {
    fn nothing(_: &[Asked]) -> Answer {
        Answer::Close(String::new())
    }
    let server = Server::start(nothing).await;
    let made = client(&server).spaces().create(&NewSpace::default()).await;
    assert_eq!(made.unwrap_err().code(), "UNREACHABLE");
    assert_eq!(server.asked().len(), 1);
}

#[tokio::test]
async fn a_long_description_of_an_error_is_not_kept() {
    let server = Server::start(|_| Answer::Close(answer("500 Broken", &"x".repeat(2 << 20)))).await;
    let error = client(&server)
        .runs()
        .list(&RunFilter::default())
        .await
        .unwrap_err();
    assert_eq!((error.code(), error.status()), ("UNEXPECTED", Some(500)));
}

#[tokio::test]
async fn a_stream_that_is_dropped_closes_its_connection() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let client = Client::builder(url).key("sk_none").build().unwrap();
    let mut events = client.runs().subscribe(RUN.parse().unwrap(), Seq::default());
    let server = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        read_head(&mut stream).await.unwrap();
        let head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n: beat\n\n";
        stream.write_all(head).await.unwrap();
        stream
    };
    let mut stream = tokio::select! {
        stream = server => stream,
        event = events.next() => panic!("{event:?}"),
    };
    drop(events);
    let end = timeout(SOON, stream.read_u8()).await.expect("it is closed");
    assert!(end.is_err(), "{end:?}");
}

#[tokio::test]
async fn the_figures_of_a_tool_are_read() {
    const FIGURES: &str = r#"{"name":"lamp","since":"2026-11-01T00:00:00.000Z","calls":3,"failed":1,
        "failures":{"TIMED_OUT":1},"latencyMs":{"p50":10,"p90":20,"p99":30}}"#;
    let server = Server::start(|_| Answer::Keep(answer("200 OK", FIGURES))).await;
    let usage = client(&server)
        .tools()
        .usage("lamp", Some(Time(0)))
        .await
        .unwrap();
    assert_eq!((usage.calls, usage.failures["TIMED_OUT"]), (3, 1));
    assert_eq!(usage.latency_ms.map(|latency| latency.p90), Some(20));
    assert_eq!(
        server.asked()[0].line(),
        "get /base/v1/tools/lamp/usage?since=1970-01-01t00%3a00%3a00.000z http/1.1"
    );
}

fn at(address: &str) -> Client {
    let url = format!("http://{address}");
    Client::builder(url).key("sk_none").build().expect("a client")
}

/// The address of a server that is gone.
async fn gone() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    listener.local_addr().unwrap().to_string()
}

#[tokio::test]
async fn a_gateway_that_is_not_there_is_named_once_without_words_of_the_http_client() {
    let address = gone().await;
    let client = at(&address);
    let error = client
        .tools()
        .progress("call_01m7gt19xqea6ttx35a6gd182x_0".parse().unwrap(), 1)
        .await
        .unwrap_err();
    let cause = std::error::Error::source(&error).expect("a cause").to_string();
    let words = format!("{error}: {cause}");
    assert_eq!(error.code(), "UNREACHABLE");
    assert_eq!(words.matches(&address).count(), 1, "{words}");
    assert!(words.contains("refused"), "{words}");
    for layer in ["client error", "tcp connect", "Connect)"] {
        assert!(!words.contains(layer), "{words}");
    }
}

#[test]
#[ignore = "a program of its own, started by the test below"]
fn worker() {
    let address = std::env::var("GATEWAY").expect("the test sets it");
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let client = at(&address);
        let space = "space_01m7gt19xqea6ttx35a6gd182x".parse().unwrap();
        let _server = client.serve(space).start();
        std::future::pending::<()>().await;
    });
}

#[tokio::test]
async fn a_worker_that_waits_says_so_on_the_terminal() {
    let address = gone().await;
    let mut worker = tokio::process::Command::new(std::env::current_exe().unwrap())
        .args([
            "network::connections::worker",
            "--exact",
            "--ignored",
            "--nocapture",
        ])
        .env("GATEWAY", &address)
        .stderr(std::process::Stdio::piped())
        .stdout(std::process::Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(worker.stderr.take().unwrap()).lines();
    let line = timeout(SOON, lines.next_line())
        .await
        .expect("a line")
        .unwrap()
        .unwrap();
    assert!(
        line.starts_with("toolgate: the worker waits: ") && line.contains(&address),
        "{line}"
    );
}
