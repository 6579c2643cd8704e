//! Requests of a server that wait for a response, within limits. The SDK starts a task for each of them and keeps its
//! parameters until there is a response, so a server that asks without end, or that reads no responses, would take all the
//! memory there is.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rmcp::RoleClient;
use rmcp::model::{JsonRpcMessage, RequestId, ServerNotification};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;

/// Most requests of one server that wait for a response. With 64 calls at the same time, the most that there are, each may
/// ask two things.
const REQUESTS_MAX: usize = 128;
/// Most bytes of these requests together.
const REQUESTS_BYTES_MAX: usize = 8 << 20;

/// Ends the connection when more requests of the server wait than may: the transport looks closed.
pub(crate) struct BoundedRequests<T> {
    inner: T,
    waiting: Arc<Mutex<Waiting>>,
    is_over: bool,
}

/// Requests that wait for a response, and the bytes of each.
#[derive(Default)]
struct Waiting {
    requests: HashMap<RequestId, usize>,
    bytes: usize,
}

impl<T> BoundedRequests<T> {
    pub fn new(inner: T) -> Self {
        Self {
            inner,
            waiting: Arc::default(),
            is_over: false,
        }
    }

    /// Whether a message may be passed on.
    fn admits(&self, message: &RxJsonRpcMessage<RoleClient>) -> bool {
        match message {
            JsonRpcMessage::Request(request) => {
                let mut bytes = Counted(0);
                // Counting does not fail.
                let _ = serde_json::to_writer(&mut bytes, request);
                lock(&self.waiting).add(request.id.clone(), bytes.0)
            }
            JsonRpcMessage::Notification(notice) => {
                // A request that was cancelled gets no response.
                if let ServerNotification::CancelledNotification(cancelled) = &notice.notification
                    && let Some(id) = &cancelled.params.request_id
                {
                    lock(&self.waiting).remove(id);
                }
                true
            }
            JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_) => true,
        }
    }
}

impl<T: Transport<RoleClient>> Transport<RoleClient> for BoundedRequests<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        let responds_to = match &message {
            JsonRpcMessage::Response(response) => Some(response.id.clone()),
            JsonRpcMessage::Error(error) => error.id.clone(),
            JsonRpcMessage::Request(_) | JsonRpcMessage::Notification(_) => None,
        };
        let waiting = self.waiting.clone();
        let sent = self.inner.send(message);
        async move {
            let sent = sent.await;
            // Not before: a server that does not read its responses has them wait in memory.
            if let Some(id) = responds_to {
                lock(&waiting).remove(&id);
            }
            sent
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        if self.is_over {
            return None;
        }
        let message = self.inner.receive().await?;
        if self.admits(&message) {
            return Some(message);
        }
        tracing::warn!(
            requests = REQUESTS_MAX,
            bytes = REQUESTS_BYTES_MAX,
            "an MCP server asks more than may wait for a response, and is disconnected"
        );
        self.is_over = true;
        None
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.inner.close().await
    }
}

impl Waiting {
    /// False for a request too many, and for an id that waits already: two responses could not be told apart.
    fn add(&mut self, id: RequestId, bytes: usize) -> bool {
        let fits = self.requests.len() < REQUESTS_MAX && self.bytes + bytes <= REQUESTS_BYTES_MAX;
        if !fits || self.requests.contains_key(&id) {
            return false;
        }
        self.bytes += bytes;
        self.requests.insert(id, bytes);
        true
    }

    fn remove(&mut self, id: &RequestId) {
        self.bytes -= self.requests.remove(id).unwrap_or(0);
    }
}

/// Counts what is written.
struct Counted(usize);

impl io::Write for Counted {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn lock(waiting: &Mutex<Waiting>) -> MutexGuard<'_, Waiting> {
    waiting.lock().unwrap_or_else(PoisonError::into_inner)
}
