//! Pooled connections to plain `http://` servers: a model on this machine or in this network.
//!
//! Such a model streams tokens faster than readers consume them. The task that reads a reply also drives its
//! connection, so that no second task has to hand over every token, and the socket can be left unread for a
//! moment to accumulate bytes.

use std::collections::HashMap;
use std::future::{Future, poll_fn};
use std::io;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout};

/// Most idle connections kept per server.
const IDLE_MAX: usize = 64;
/// How long an idle connection is kept.
const IDLE_TIME_MAX: Duration = Duration::from_secs(30);

/// Idle connections, by server.
#[derive(Default)]
pub(crate) struct Pool {
    idle: Mutex<HashMap<String, Vec<(Connection, Instant)>>>,
}

impl Pool {
    /// Sends `request` over an idle or a new connection and returns the head of the response.
    pub(crate) async fn send(
        &self,
        request: Request<Full<Bytes>>,
        connect_timeout: Duration,
    ) -> io::Result<(Response<Incoming>, Connection)> {
        let server = request.uri().host().ok_or(io::ErrorKind::InvalidInput)?;
        let server = format!("{server}:{}", request.uri().port_u16().unwrap_or(80));
        if let Some(mut connection) = self.take(&server)
            && let Ok(answer) = connection.send(request.clone()).await
        {
            return Ok((answer, connection));
        }
        // No idle connection, or the server had closed it: open a new one instead of failing.
        let mut connection = timeout(connect_timeout, Connection::open(server)).await??;
        let answer = connection.send(request).await.map_err(io::Error::other)?;
        Ok((answer, connection))
    }

    /// Returns a connection to the pool after its response was read to the end.
    pub(crate) fn put(&self, mut connection: Connection) {
        if !connection.is_free() {
            return;
        }
        let now = Instant::now();
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = idle.entry(connection.server.clone()).or_default();
        kept.retain(|(_, since)| now - *since < IDLE_TIME_MAX);
        if kept.len() < IDLE_MAX {
            kept.push((connection, now));
        }
    }

    fn take(&self, server: &str) -> Option<Connection> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = idle.get_mut(server)?;
        while let Some((mut connection, since)) = kept.pop() {
            if since.elapsed() < IDLE_TIME_MAX && connection.is_free() {
                return Some(connection);
            }
        }
        None
    }
}

/// One connection. It makes progress only while its owner polls it, and closes when dropped.
pub(crate) struct Connection {
    server: String,
    socket: Socket,
    requests: SendRequest<Full<Bytes>>,
    driver: http1::Connection<TokioIo<Socket>, Full<Bytes>>,
    ended: bool,
}

impl Connection {
    async fn open(server: String) -> io::Result<Self> {
        let stream = TcpStream::connect(&server).await?;
        stream.set_nodelay(true)?;
        let socket = Socket(Arc::new(Mutex::new(Some(stream))));
        let (requests, driver) = http1::handshake(TokioIo::new(socket.clone()))
            .await
            .map_err(io::Error::other)?;
        Ok(Self {
            server,
            socket,
            requests,
            driver,
            ended: false,
        })
    }

    async fn send(&mut self, mut request: Request<Full<Bytes>>) -> hyper::Result<Response<Incoming>> {
        let path = request.uri().path_and_query().cloned();
        *request.uri_mut() = path.map(http::Uri::from).unwrap_or_default();
        let mut answer = pin!(self.requests.send_request(request));
        let (driver, ended) = (&mut self.driver, &mut self.ended);
        poll_fn(|context| match answer.as_mut().poll(context) {
            Poll::Pending => {
                drive(driver, ended, context);
                answer.as_mut().poll(context)
            }
            ready => ready,
        })
        .await
    }

    /// Moves bytes between the socket and the response body.
    pub(crate) fn drive(&mut self, context: &mut Context<'_>) {
        drive(&mut self.driver, &mut self.ended, context);
    }

    /// Leaves the socket unread for `time`. The socket is deregistered from the runtime meanwhile: otherwise
    /// every token that arrives would wake a thread for nothing.
    pub(crate) async fn pause(&mut self, time: Duration) -> io::Result<()> {
        let stream = self
            .socket
            .lock()
            .take()
            .ok_or(io::ErrorKind::NotConnected)?
            .into_std()?;
        tokio::time::sleep(time).await;
        *self.socket.lock() = Some(TcpStream::from_std(stream)?);
        Ok(())
    }

    fn is_free(&mut self) -> bool {
        self.drive(&mut Context::from_waker(std::task::Waker::noop()));
        !self.ended && self.requests.is_ready()
    }
}

fn drive(
    driver: &mut http1::Connection<TokioIo<Socket>, Full<Bytes>>,
    ended: &mut bool,
    context: &mut Context<'_>,
) {
    // How the connection ended is reported by the response or its body.
    *ended = *ended || Pin::new(driver).poll(context).is_ready();
}

/// The socket, shared with the connection's driver so that it can be removed for a pause; no bytes move while
/// it is removed.
#[derive(Clone)]
struct Socket(Arc<Mutex<Option<TcpStream>>>);

impl Socket {
    fn lock(&self) -> std::sync::MutexGuard<'_, Option<TcpStream>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
    fn poll<T>(&self, poll: impl FnOnce(Pin<&mut TcpStream>) -> Poll<T>) -> Poll<T> {
        self.lock()
            .as_mut()
            .map_or(Poll::Pending, |stream| poll(Pin::new(stream)))
    }
}

impl AsyncRead for Socket {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        self.poll(|stream| stream.poll_read(cx, into))
    }
}

impl AsyncWrite for Socket {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.poll(|stream| stream.poll_write(cx, bytes))
    }
    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll(|stream| stream.poll_flush(cx))
    }
    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll(|stream| stream.poll_shutdown(cx))
    }
    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.poll(|stream| stream.poll_write_vectored(cx, pieces))
    }
    fn is_write_vectored(&self) -> bool {
        true
    }
}
