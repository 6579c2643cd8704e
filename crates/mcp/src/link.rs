//! Connections on which messages travel as they are, for whoever passes them on instead of using them.
//!
//! A [`Link`] sends requests and gives what comes back on each as an [`Exchange`]. It knows transports and nothing of
//! eras: handshakes, headers and ids are its user's.

mod http;
mod mailbox;
pub mod message;
mod pipe;
mod sse;

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use reqwest::header::{HeaderMap, HeaderValue};
use tokio::sync::oneshot;
use tokio_util::task::AbortOnDropHandle;

use crate::server::{Reach, Server};
pub use mailbox::{NotTaken, Receiver, Sender, mailbox};

use http::Endpoint;
use message::{BadMessage, Message, Request};
use pipe::Pipe;

/// Most bytes of one message of a server.
pub const MESSAGE_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Messages that may wait for one reader.
const WAITING_MAX: usize = 64;
/// Longest time that a server may take to accept a notification or a response.
const TELL_TIMEOUT: Duration = Duration::from_secs(30);
/// How long the stream of what belongs to no request is waited for. Some servers open it with their first message.
const FOLLOW_WAIT: Duration = Duration::from_secs(2);

/// Why a message could not be sent, or its response not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LinkError {
    /// The server cannot be reached, or the connection broke.
    #[error("the MCP server cannot be reached: {0}")]
    Unreachable(String),
    /// The server does not accept the gateway's credentials.
    #[error("the MCP server refused the gateway's credentials with status {0}")]
    Refused(u16),
    /// The server said something that is no message.
    #[error("the MCP server answered with status {0} and no message")]
    Status(u16),
    /// The server said something that is no message.
    #[error("the MCP server sent {0}")]
    Bad(#[from] BadMessage),
    /// A message has more bytes than this.
    #[error("the MCP server sent a message of more than {0} bytes")]
    TooLarge(usize),
    /// The child has ended.
    #[error("the MCP server is gone")]
    Gone,
    /// The gateway runs as many programs as it may, and this server is one more.
    #[error("the gateway runs as many programs of MCP servers as it may, see mcp.processes_max")]
    NoRoom,
    /// A request with this id is open.
    #[error("a request with the same id is open already")]
    Repeated,
}

/// One connection to a server.
pub struct Link {
    transport: Transport,
    unrelated: Sender,
    received: Mutex<Option<Receiver>>,
    /// Reads what belongs to no request.
    follower: Mutex<Option<AbortOnDropHandle<()>>>,
}

enum Transport {
    Http(Endpoint),
    Pipe(Box<Pipe>),
}

impl Server {
    /// Opens a connection without speaking on it: a child is started, an address is not called yet.
    pub fn link(&self) -> Result<Link, LinkError> {
        let (unrelated, received) = mailbox();
        let transport = match self.reach() {
            Reach::Command(launch) => Transport::Pipe(Box::new(Pipe::start(launch, unrelated.clone())?)),
            Reach::Http {
                url,
                headers,
                client,
                authorizer,
            } => Transport::Http(Endpoint {
                url: url.clone(),
                headers: headers.clone(),
                client: client.clone().unwrap_or_default(),
                authorizer: authorizer.clone(),
            }),
        };
        Ok(Link {
            transport,
            unrelated,
            received: Mutex::new(Some(received)),
            follower: Mutex::default(),
        })
    }
}

impl Link {
    /// Whether each message has headers, and a request can be ended by closing its response.
    pub fn is_http(&self) -> bool {
        matches!(self.transport, Transport::Http(_))
    }

    /// Sends a request. `headers` go with it where there are headers. Ids of open requests must differ.
    pub async fn request(&self, request: Request, headers: HeaderMap) -> Result<Exchange, LinkError> {
        match &self.transport {
            Transport::Http(endpoint) => {
                let answer = endpoint.post(&Message::Request(request), headers).await?;
                Ok(Exchange {
                    session: answer.session,
                    replies: Replies::Http(answer.messages),
                })
            }
            Transport::Pipe(pipe) => {
                let expected = pipe.expect(request.id.clone(), request.params.as_ref())?;
                pipe.send(&Message::Request(request)).await?;
                Ok(Exchange {
                    session: None,
                    replies: Replies::Pipe(expected),
                })
            }
        }
    }

    /// Sends a notification or a response.
    pub async fn tell(&self, message: &Message, headers: HeaderMap) -> Result<(), LinkError> {
        let told = async {
            match &self.transport {
                Transport::Http(endpoint) => endpoint.post(message, headers).await.map(drop),
                Transport::Pipe(pipe) => pipe.send(message).await,
            }
        };
        let late = |_| LinkError::Unreachable("it does not accept a message in time".into());
        tokio::time::timeout(TELL_TIMEOUT, told).await.map_err(late)?
    }

    /// What belongs to no request, in order; given once.
    pub fn unrelated(&self) -> Option<Receiver> {
        self.received
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take()
    }

    /// Opens the stream of a session that carries what belongs to no request, if the server has one.
    pub async fn follow(&self, headers: HeaderMap) {
        let Transport::Http(endpoint) = &self.transport else {
            return;
        };
        let (endpoint, unrelated) = (endpoint.clone(), self.unrelated.clone());
        let (opened, is_open) = oneshot::channel();
        let follower = AbortOnDropHandle::new(tokio::spawn(async move {
            let messages = endpoint.get(headers).await;
            // Whoever waited may have gone on.
            let _ = opened.send(());
            let Some(mut messages) = messages else { return };
            while let Ok(Some(message)) = messages.next().await {
                let bytes = message.write().len();
                if unrelated.send(message, bytes).await.is_err() {
                    return;
                }
            }
        }));
        // What the server tells from now on must not be missed.
        let _ = tokio::time::timeout(FOLLOW_WAIT, is_open).await;
        *self.follower.lock().unwrap_or_else(PoisonError::into_inner) = Some(follower);
    }

    /// Ends a session of the older protocol.
    pub async fn end_session(&self, headers: HeaderMap) {
        if let Transport::Http(endpoint) = &self.transport {
            endpoint.delete(headers).await;
        }
    }
}

/// A request under way. Dropping it closes its response, or tells a child to stop.
pub struct Exchange {
    /// The session that the server opened with the response.
    pub session: Option<HeaderValue>,
    replies: Replies,
}

enum Replies {
    Http(http::Messages),
    Pipe(pipe::Expected),
}

impl Exchange {
    /// The next message that belongs to the request: notifications and requests of the server, and its response last.
    /// None after that. Nothing is lost when the future is dropped.
    pub async fn next(&mut self) -> Result<Option<Message>, LinkError> {
        match &mut self.replies {
            Replies::Http(messages) => messages.next().await,
            Replies::Pipe(expected) => expected.next().await,
        }
    }

    /// Nothing more is wanted, and the server has been told.
    pub fn forget(mut self) {
        if let Replies::Pipe(expected) = &mut self.replies {
            expected.forget();
        }
    }
}
