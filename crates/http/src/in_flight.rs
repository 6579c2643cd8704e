//! Bytes of requests and answers in memory: a total for all callers and a share for each user. What would go beyond
//! is refused with 503 at once, so that clients that send slowly, or do not read, cost a bounded amount.

use std::pin::Pin;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::task::{Context, Poll};

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http_body::{Body as _, Frame, SizeHint};
use toolgate_access::Principal;

use crate::Shared;
use crate::meter::{Metered, Over};
use crate::problem::Refusal;

/// Bodies and answers up to this size are not counted.
pub(crate) const UNCOUNTED_BYTES: usize = 16 * 1024;
/// Part of the total that one user may take.
pub const USER_PART: usize = 4;

/// What is known of a request while it is handled. Stands in its extensions.
#[derive(Clone, Default)]
pub(crate) struct InFlight(Arc<State>);

#[derive(Default)]
struct State {
    who: OnceLock<Principal>,
    /// For its body, until the answer is ready.
    body: Mutex<Option<Metered>>,
}

impl InFlight {
    /// The caller is known.
    pub fn identify(&self, who: &Principal) {
        // Asked twice of one request, it is the same caller.
        let _ = self.0.who.set(who.clone());
    }

    /// Counts `more` bytes of the request's body.
    pub fn add_to_body(&self, door: &Shared, more: usize) -> Result<(), Refusal> {
        let mut body = self.0.body.lock().unwrap_or_else(PoisonError::into_inner);
        let share = body.get_or_insert_with(|| door.in_flight.open(self.0.who.get()));
        share.take(more).map_err(|over| too_much(door, over))
    }

    /// The body has been worked on and is no longer in memory.
    pub fn forget_body(&self) {
        *self.0.body.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Counts an answer until it is sent, or refuses it.
    pub fn count_answer(&self, door: &Shared, answer: Response) -> Response {
        self.forget_body();
        let bytes = answer.body().size_hint().exact().unwrap_or(0) as usize;
        if bytes <= UNCOUNTED_BYTES {
            return answer;
        }
        let mut share = door.in_flight.open(self.0.who.get());
        match share.take(bytes) {
            Ok(()) => answer.map(|body| {
                Body::new(Counted {
                    body,
                    rest: Bytes::new(),
                    _share: share,
                })
            }),
            Err(over) => too_much(door, over).into_response(),
        }
    }
}

/// What a request is told for which too many bytes are in memory.
pub fn too_much(door: &Shared, over: Over) -> Refusal {
    let limits = door.in_flight.limits();
    Refusal::unavailable(match over {
        Over::All => format!(
            "more than {} bytes of requests, answers and run states are in memory; try again, or see http.in_flight_bytes_max",
            limits.all
        ),
        Over::User => format!(
            "more than {} bytes of your requests, answers and run states are in memory; read the answers that are \
             open and try again, read a long run by its events, or see http.in_flight_bytes_max",
            limits.user
        ),
    })
}

/// An answer whose bytes are counted until it is sent. Given to the connection in small pieces: it lets go of a body
/// whose last piece it has taken, sent or not.
struct Counted {
    body: Body,
    rest: Bytes,
    _share: Metered,
}

impl http_body::Body for Counted {
    type Data = Bytes;
    type Error = axum::Error;
    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        if self.rest.is_empty() {
            match Pin::new(&mut self.body).poll_frame(cx) {
                Poll::Ready(Some(Ok(frame))) => match frame.into_data() {
                    Ok(data) => self.rest = data,
                    Err(other) => return Poll::Ready(Some(Ok(other))),
                },
                other => return other,
            }
        }
        let piece = self.rest.len().min(UNCOUNTED_BYTES);
        let piece = self.rest.split_to(piece);
        Poll::Ready(Some(Ok(Frame::data(piece))))
    }
    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.body.is_end_stream()
    }
    fn size_hint(&self) -> SizeHint {
        let left = self.body.size_hint().exact().unwrap_or(0);
        SizeHint::with_exact(left + self.rest.len() as u64)
    }
}
