//! A server that answers byte for byte as it is told, and remembers what it was asked.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, mpsc};
use tokio::task::JoinSet;

/// One thing that the server does, in order.
pub enum Act {
    /// Writes these bytes.
    Write(Vec<u8>),
    /// Waits until the test says so.
    Await(mpsc::UnboundedReceiver<()>),
    /// Waits this long, by the held clock.
    Wait(std::time::Duration),
    /// Closes the connection.
    Close,
    /// Waits until the client closes, and tells.
    AwaitClosed(Arc<Notify>),
}

/// How to answer one request.
pub type Answer = Vec<Act>;

/// A head for a stream of events, in chunks.
pub const STREAM: &str =
    "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";

pub fn write(text: impl AsRef<[u8]>) -> Act {
    Act::Write(text.as_ref().to_vec())
}

/// One chunk of a chunked body.
pub fn chunk(bytes: &[u8]) -> Act {
    let mut chunk = format!("{:x}\r\n", bytes.len()).into_bytes();
    chunk.extend_from_slice(bytes);
    chunk.extend_from_slice(b"\r\n");
    Act::Write(chunk)
}

/// A whole stream: each piece of the body as a chunk and a write of its own.
pub fn stream<'b>(pieces: impl IntoIterator<Item = &'b [u8]>) -> Answer {
    let chunks = pieces.into_iter().filter(|piece| !piece.is_empty()).map(chunk);
    std::iter::once(write(STREAM))
        .chain(chunks)
        .chain([write("0\r\n\r\n")])
        .collect()
}

/// An answer that is no stream.
pub fn refusal(status: u16, headers: &str, body: &str) -> Answer {
    let length = body.len();
    vec![write(format!(
        "HTTP/1.1 {status} X\r\ncontent-type: application/json\r\n{headers}content-length: {length}\r\n\r\n{body}"
    ))]
}

/// The server. Stops when dropped.
pub struct StandIn {
    pub url: String,
    seen: Arc<Mutex<Vec<String>>>,
    connections: Arc<Mutex<usize>>,
    _task: JoinSet<()>,
}

impl StandIn {
    /// Answers each request with the next of `answers`.
    pub async fn start(answers: impl IntoIterator<Item = Answer>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/v1", listener.local_addr().unwrap());
        let answers = Arc::new(Mutex::new(answers.into_iter().collect::<VecDeque<_>>()));
        let seen = Arc::new(Mutex::new(Vec::new()));
        let connections = Arc::new(Mutex::new(0));
        let mut task = JoinSet::new();
        let (asked, counted) = (seen.clone(), connections.clone());
        task.spawn(async move {
            let mut open = JoinSet::new();
            while let Ok((socket, _)) = listener.accept().await {
                *counted.lock().unwrap() += 1;
                open.spawn(serve(socket, answers.clone(), asked.clone()));
            }
        });
        Self {
            url,
            seen,
            connections,
            _task: task,
        }
    }

    /// The requests so far, head and body.
    pub fn seen(&self) -> Vec<String> {
        self.seen.lock().unwrap().clone()
    }

    /// How many connections were opened.
    pub fn connections(&self) -> usize {
        *self.connections.lock().unwrap()
    }
}

async fn serve(mut socket: TcpStream, answers: Arc<Mutex<VecDeque<Answer>>>, seen: Arc<Mutex<Vec<String>>>) {
    socket.set_nodelay(true).unwrap();
    while let Some(request) = read_request(&mut socket).await {
        seen.lock().unwrap().push(request);
        let Some(answer) = answers.lock().unwrap().pop_front() else {
            return;
        };
        for act in answer {
            match act {
                // A client that went away is what some tests are about.
                Act::Write(bytes) => drop(socket.write_all(&bytes).await),
                Act::Await(mut signal) => drop(signal.recv().await),
                Act::Wait(time) => tokio::time::sleep(time).await,
                Act::Close => return,
                Act::AwaitClosed(closed) => {
                    while socket.read(&mut [0; 64]).await.is_ok_and(|read| read > 0) {}
                    closed.notify_one();
                    return;
                }
            }
            // Each write is seen by itself.
            tokio::task::yield_now().await;
        }
    }
}

async fn read_request(socket: &mut TcpStream) -> Option<String> {
    let mut bytes = Vec::new();
    loop {
        if socket.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
        let text = String::from_utf8_lossy(&bytes);
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head
                .lines()
                .find_map(|line| line.strip_prefix("content-length: "));
            if body.len() >= length.map_or(0, |length| length.parse().unwrap()) {
                return Some(text.into_owned());
            }
        }
    }
}
