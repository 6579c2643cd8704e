//! A scripted gateway, for tests.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::client::Client;

/// The response to one request, whatever it is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reply {
    status: u16,
    kind: &'static str,
    body: &'static str,
}

impl Reply {
    pub fn json(status: u16, body: &'static str) -> Self {
        let kind = "application/json";
        Self { status, kind, body }
    }

    /// A stream that is disconnected after `body`.
    pub fn events(body: &'static str) -> Self {
        let (status, kind) = (200, "text/event-stream");
        Self { status, kind, body }
    }
}

/// The gateway. It stops after the last response.
pub(crate) struct Scripted {
    url: String,
    asked: Arc<AtomicUsize>,
}

impl Scripted {
    pub fn start<const N: usize>(replies: [Reply; N]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let asked = Arc::new(AtomicUsize::new(0));
        let count = asked.clone();
        std::thread::spawn(move || {
            for Reply { status, kind, body } in replies {
                let (mut stream, _) = listener.accept().unwrap();
                // Requests are small: each arrives in one read.
                let _ = stream.read(&mut [0; 16 * 1024]).unwrap();
                count.fetch_add(1, Ordering::SeqCst);
                let answer = format!(
                    "HTTP/1.1 {status} OK\r\nconnection: close\r\ncontent-type: {kind}\r\n\r\n{body}"
                );
                stream.write_all(answer.as_bytes()).unwrap();
                stream.shutdown(Shutdown::Write).unwrap();
                // Reads the rest first: closing a socket with unread bytes would drop the response.
                let _ = stream.read_to_end(&mut Vec::new());
            }
        });
        Self { url, asked }
    }

    pub fn client(&self) -> Client {
        Client::builder(&self.url).key("sk_none").build().unwrap()
    }

    /// Number of requests so far.
    pub fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }
}
