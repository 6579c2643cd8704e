//! A server that answers each request of a connection, and remembers what it was asked.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, JoinSet};

/// The run whose events a server has.
pub const RUN: &str = "run_01m7gt19xqea6ttx35a6gd182x";
/// The events of [`RUN`], as [`super::ask_and_follow`] reads them.
pub const EVENTS: [&str; 3] = ["one ", "two", "the end"];

/// What the server does with a request.
pub enum Answer {
    /// Writes these bytes, and waits for the next request.
    Keep(String),
    /// Writes these bytes, and closes the connection.
    Close(String),
}

/// One request: the line and the headers in lower case.
#[derive(Debug, Clone)]
pub struct Asked {
    /// Number of the connection, from 0.
    pub connection: usize,
    pub head: String,
}

impl Asked {
    pub fn line(&self) -> &str {
        self.head.lines().next().unwrap_or_default()
    }
}

/// The server; it is gone when this is dropped.
pub struct Server {
    pub address: SocketAddr,
    asked: Arc<Mutex<Vec<Asked>>>,
    accepting: JoinHandle<()>,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

type Handler = fn(&[Asked]) -> Answer;

impl Server {
    /// A gateway with the events of [`RUN`].
    pub async fn gateway() -> Self {
        Self::start(gateway_answer).await
    }

    /// A server with answers of the test: given all requests up to now.
    pub async fn start(handler: Handler) -> Self {
        Self::accept(async |stream| Some(stream), handler).await
    }

    /// A gateway behind TLS, with a certificate of `authority.pem` for `gateway.test`, `localhost` and `2001:db8::1`.
    #[cfg(feature = "tls")]
    pub async fn secure_gateway() -> Self {
        let acceptor = super::tls::acceptor();
        // A client that refuses the certificate ends the handshake.
        let secure = move |stream| {
            let accepting = acceptor.accept(stream);
            async move { accepting.await.ok() }
        };
        Self::accept(secure, gateway_answer).await
    }

    async fn accept<F, S>(secure: impl Fn(TcpStream) -> F + Send + 'static, handler: Handler) -> Self
    where
        F: Future<Output = Option<S>> + Send + 'static,
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("its address");
        let asked = Arc::new(Mutex::new(Vec::new()));
        let log = asked.clone();
        let accepting = tokio::spawn(async move {
            let mut connections = JoinSet::new();
            for connection in 0.. {
                let (stream, _) = listener.accept().await.expect("a connection");
                let (stream, log) = (secure(stream), log.clone());
                connections.spawn(async move {
                    if let Some(stream) = stream.await {
                        serve(stream, connection, &log, handler).await;
                    }
                });
            }
        });
        Self {
            address,
            asked,
            accepting,
        }
    }

    /// The requests up to now.
    pub fn asked(&self) -> Vec<Asked> {
        self.asked.lock().expect("no test panics with it").clone()
    }
}

async fn serve(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    connection: usize,
    log: &Mutex<Vec<Asked>>,
    handler: Handler,
) {
    while let Some(head) = read_head(&mut stream).await {
        let asked = {
            let mut log = log.lock().expect("no test panics with it");
            log.push(Asked { connection, head });
            log.clone()
        };
        let (bytes, is_last) = match handler(&asked) {
            Answer::Keep(bytes) => (bytes, false),
            Answer::Close(bytes) => (bytes, true),
        };
        // A client that has gone away needs no answer.
        if stream.write_all(bytes.as_bytes()).await.is_err() || is_last {
            let _ = stream.shutdown().await;
            return;
        }
    }
}

/// The head of the next request, whose body is read as well; none at the end of the connection.
pub async fn read_head(stream: &mut (impl AsyncRead + Unpin)) -> Option<String> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.ok()?);
    }
    let head = String::from_utf8(head).expect("text").to_lowercase();
    let length = head
        .lines()
        .find_map(|line| line.strip_prefix("content-length: "));
    let mut body = vec![0; length.map_or(0, |length| length.parse().expect("a number"))];
    stream.read_exact(&mut body).await.ok()?;
    Some(head)
}

/// An answer with its length.
pub fn answer(status: &str, body: &str) -> String {
    format!(
        "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
}

fn gateway_answer(asked: &[Asked]) -> Answer {
    match asked.last().map(Asked::line) {
        Some(line) if line.contains("/events") => Answer::Keep(events()),
        _ => Answer::Keep(answer("200 OK", "{}")),
    }
}

/// The events of [`RUN`] in chunks of five bytes, and a trailer at their end.
fn events() -> String {
    let place = format!(
        r#""runId":"{RUN}","spaceId":"space_01m7gt19xqea6ttx35a6gd182x","time":"2026-11-16T00:02:44.764Z""#
    );
    let text = |seq, delta| {
        format!(
            "data: {{\"type\":\"text-delta\",\"id\":\"1.0\",\"delta\":{delta:?},\"seq\":{seq},{place}}}\n\n"
        )
    };
    let finish = format!(
        "data: {{\"type\":\"run-finish\",\"status\":\"completed\",\"reason\":\"stop\",\"usage\":{{}},\"seq\":3,{place}}}\n\n"
    );
    let stream = text(1, EVENTS[0]) + ": beat\n\n" + &text(2, EVENTS[1]) + &finish;
    let chunks: String = stream
        .as_bytes()
        .chunks(5)
        .map(|piece| format!("{:x}\r\n{}\r\n", piece.len(), String::from_utf8_lossy(piece)))
        .collect();
    format!(
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\ntrailer: x-sum\r\n\r\n\
         {chunks}0\r\nx-sum: 1\r\n\r\n"
    )
}
