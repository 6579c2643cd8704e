//! A keep-alive HTTP/1.1 client that costs next to nothing and hands over each `data:` line as it arrives.

use std::net::SocketAddr;

use anyhow::{Context, bail, ensure};
use memchr::{memchr, memmem};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

const READ_BYTES: usize = 64 * 1024;
/// How much of an error's body is worth showing.
const ERROR_BYTES_MAX: usize = 400;

pub struct Connection {
    server: SocketAddr,
    /// Lines of the request's head besides the usual ones, each ending in CRLF.
    headers: String,
    stream: Option<BufReader<TcpStream>>,
}

struct Head {
    status: u16,
    /// None when the body is chunked.
    length: Option<usize>,
}

impl Connection {
    pub fn new(server: SocketAddr, headers: &str) -> Self {
        Self {
            server,
            headers: headers.into(),
            stream: None,
        }
    }

    /// Posts a JSON body, calls `on_data` for every event of the answer, and returns when it is whole.
    pub async fn events(&mut self, path: &str, body: &str, on_data: impl FnMut(&[u8])) -> anyhow::Result<()> {
        self.events_of("POST", path, body, on_data).await
    }

    /// The same with another method.
    pub async fn events_of(
        &mut self,
        method: &str,
        path: &str,
        body: &str,
        mut on_data: impl FnMut(&[u8]),
    ) -> anyhow::Result<()> {
        let mut lines = Lines::default();
        self.exchange(method, path, body, |piece| lines.feed(piece, &mut on_data))
            .await
    }

    /// Sends a JSON body and reads a JSON answer.
    pub async fn json(&mut self, method: &str, path: &str, body: &str) -> anyhow::Result<Value> {
        let mut answer = Vec::new();
        self.exchange(method, path, body, |piece| answer.extend_from_slice(piece))
            .await?;
        serde_json::from_slice(&answer).with_context(|| format!("the answer to {method} {path}"))
    }

    /// Sends a JSON body and hands over the answer piece by piece; anything but a 2xx is an error.
    pub async fn exchange(
        &mut self,
        method: &str,
        path: &str,
        body: &str,
        mut take: impl FnMut(&[u8]),
    ) -> anyhow::Result<()> {
        // Taken, and given back at the end: a connection that failed within an answer is not used again.
        let mut stream = match self.stream.take() {
            Some(stream) => stream,
            None => {
                let stream = TcpStream::connect(self.server).await.context("connect")?;
                stream.set_nodelay(true)?;
                BufReader::with_capacity(READ_BYTES, stream)
            }
        };
        let request = format!(
            "{method} {path} HTTP/1.1\r\nhost: {}\r\ncontent-type: application/json\r\n{}content-length: {}\r\n\r\n{body}",
            self.server,
            self.headers,
            body.len()
        );
        stream.write_all(request.as_bytes()).await.context("write")?;
        let head = read_head(&mut stream).await?;
        if head.status >= 300 {
            let mut refusal = Vec::new();
            read_body(&mut stream, &head, &mut |piece| refusal.extend_from_slice(piece)).await?;
            refusal.truncate(ERROR_BYTES_MAX);
            bail!(
                "{method} {path}: {} {}",
                head.status,
                String::from_utf8_lossy(&refusal)
            );
        }
        read_body(&mut stream, &head, &mut take).await?;
        self.stream = Some(stream);
        Ok(())
    }
}

async fn read_head(stream: &mut BufReader<TcpStream>) -> anyhow::Result<Head> {
    let first = read_line(stream).await?;
    let status = first.split(' ').nth(1).and_then(|text| text.parse().ok());
    let mut head = Head {
        status: status.context("status line")?,
        length: Some(0),
    };
    loop {
        let line = read_line(stream).await?.to_ascii_lowercase();
        match line.trim_end().split_once(": ") {
            Some(("content-length", length)) => head.length = Some(length.parse()?),
            Some(("transfer-encoding", _)) => head.length = None,
            Some(_) => {}
            None => return Ok(head),
        }
    }
}

async fn read_line(stream: &mut BufReader<TcpStream>) -> anyhow::Result<String> {
    let mut line = String::new();
    ensure!(
        stream.read_line(&mut line).await.context("read")? > 0,
        "the server closed the connection"
    );
    Ok(line)
}

async fn read_body(
    stream: &mut BufReader<TcpStream>,
    head: &Head,
    take: &mut impl FnMut(&[u8]),
) -> anyhow::Result<()> {
    if let Some(length) = head.length {
        return read_exactly(stream, length, take).await;
    }
    loop {
        let size = usize::from_str_radix(read_line(stream).await?.trim(), 16).context("size of a chunk")?;
        read_exactly(stream, size, take).await?;
        read_line(stream).await?;
        if size == 0 {
            return Ok(());
        }
    }
}

async fn read_exactly(
    stream: &mut BufReader<TcpStream>,
    mut left: usize,
    take: &mut impl FnMut(&[u8]),
) -> anyhow::Result<()> {
    while left > 0 {
        let piece = stream.fill_buf().await.context("read")?;
        if piece.is_empty() {
            bail!("the server closed the connection within an answer");
        }
        let n = left.min(piece.len());
        take(&piece[..n]);
        stream.consume(n);
        left -= n;
    }
    Ok(())
}

/// Cuts a stream into lines; a line within one piece is not copied.
#[derive(Default)]
struct Lines {
    rest: Vec<u8>,
}

impl Lines {
    fn feed(&mut self, mut piece: &[u8], on_data: &mut impl FnMut(&[u8])) {
        while let Some(end) = memchr(b'\n', piece) {
            if self.rest.is_empty() {
                give(&piece[..end], on_data);
            } else {
                self.rest.extend_from_slice(&piece[..end]);
                give(&self.rest, on_data);
                self.rest.clear();
            }
            piece = &piece[end + 1..];
        }
        self.rest.extend_from_slice(piece);
    }
}

fn give(line: &[u8], on_data: &mut impl FnMut(&[u8])) {
    if let Some(data) = line.strip_prefix(b"data:") {
        on_data(data.trim_ascii());
    }
}

/// The text behind `key` up to the next quote, as it is written; the rest of the object is not read.
/// `key` is a member's name with its punctuation: `"type":"`.
pub fn member<'a>(object: &'a [u8], key: &str) -> Option<&'a [u8]> {
    let start = memmem::find(object, key.as_bytes())? + key.len();
    let mut end = start;
    while *object.get(end)? != b'"' {
        end += if object[end] == b'\\' { 2 } else { 1 };
    }
    Some(&object[start..end])
}
