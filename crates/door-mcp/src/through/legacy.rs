//! Clients of the older era: they shake hands, and then all they send belongs to a session.

use std::sync::Arc;

use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse as _, Response};
use serde_json::value::RawValue;
use toolgate_http::problem::Refusal;
use toolgate_http::stream::OpenStream;
use toolgate_mcp::link::message::{Message, Outcome, Request};

use super::calls::unreachable;
use super::downwards::Crossed;
use super::era::INVALID_REQUEST;
use super::headers;
use super::reply::{Era, refuse, refuse_with, respond};
use super::routes::{Visit, gone};
use super::sessions::{Session, Side, TooMany};
use super::straight::Straight;

/// Shakes hands: opens a session, with the server or in its place.
pub(super) async fn open(visit: Visit, request: Request) -> Result<Response, Refusal> {
    let sessions = &visit.through.0.sessions;
    let too_many = |TooMany| {
        let detail = "as many sessions of this user, its project or all projects are open as may be; end one, or wait \
                      until one is idle";
        Refusal::new(StatusCode::TOO_MANY_REQUESTS, "TOO_MANY_SESSIONS", detail)
    };
    // Before the server is asked: a handshake may start a program.
    let place = sessions.place(visit.owner).map_err(too_many)?;
    let id = request.id.clone();
    let (side, result) = match begin(&visit, request).await {
        Ok(begun) => begun,
        Err(outcome) => return Ok(refuse(Era::Legacy, Some(id), outcome)),
    };
    let session = sessions
        .open(visit.owner, &visit.upstream.name, side, place)
        .map_err(too_many)?;
    let result = visit.upstream.hidden(Outcome::Result(result));
    let mut response = refuse(Era::Legacy, Some(id), result);
    let header = HeaderValue::try_from(&session.id).expect("a handle is ASCII");
    response.headers_mut().insert(headers::SESSION, header);
    Ok(response)
}

async fn begin(visit: &Visit, request: Request) -> Result<(Side, Box<RawValue>), Outcome> {
    let failed = |error| unreachable(&visit.upstream, &error);
    let eras = visit.upstream.eras().await.map_err(failed)?;
    if eras.legacy {
        let straight = Straight::open(visit.upstream.clone(), visit.owner, request.params)
            .await
            .map_err(failed)?;
        let result = straight.initialized();
        return Ok((Side::Straight(straight), result));
    }
    let (crossed, result) = Crossed::open(visit.upstream.clone(), request.params).await?;
    Ok((Side::Crossed(Arc::new(crossed)), result))
}

/// A message in a session.
pub(super) async fn post(visit: Visit, session: &str, message: Message) -> Result<Response, Refusal> {
    let Some(session) = find(&visit, session) else {
        return Ok(gone(Some(&message)));
    };
    let request = match message {
        Message::Request(request) => request,
        message => {
            let told = match &session.side {
                Side::Straight(straight) => straight.tell(message).await,
                Side::Crossed(crossed) => crossed.tell(message).await,
            };
            return Ok(match told {
                Ok(()) => StatusCode::ACCEPTED.into_response(),
                Err(error) => refuse_with(
                    StatusCode::BAD_GATEWAY,
                    None,
                    unreachable(&visit.upstream, &error),
                ),
            });
        }
    };
    if request.method == "initialize" {
        let outcome = Outcome::error(INVALID_REQUEST, "the session is open already");
        return Ok(refuse_with(StatusCode::BAD_REQUEST, Some(request.id), outcome));
    }
    let open = OpenStream::reserve(&visit.shared, &visit.who)?;
    let (owner, from) = (visit.owner, visit);
    let drive = move |reply| async move {
        let _busy = session.busy();
        // A client that is gone needs no response.
        let _ = match &session.side {
            Side::Straight(straight) => straight.forward(request, reply).await,
            Side::Crossed(crossed) => crossed.forward(request, reply, owner).await,
        };
    };
    Ok(respond(&from, Era::Legacy, open, drive).await)
}

/// The stream of what belongs to no request.
pub(super) fn listen(visit: Visit, session: &str) -> Result<Response, Refusal> {
    let Some(session) = find(&visit, session) else {
        return Ok(gone(None));
    };
    let open = OpenStream::reserve(&visit.shared, &visit.who)?;
    let Some(mut notices) = notices(&session) else {
        return Ok(StatusCode::CONFLICT.into_response());
    };
    let drive = move |reply: super::reply::Reply| async move {
        let _busy = session.busy();
        while let Some(message) = notices.recv().await {
            if let (Side::Straight(straight), Message::Request(question)) = (&session.side, &message)
                && !straight.asks(question).await
            {
                continue;
            }
            if reply.send(message).await.is_err() {
                return;
            }
        }
    };
    Ok(super::reply::stream(&visit, open, drive))
}

/// A session of the caller with the server as it is configured now. One that began before that was changed has the server's
/// old tools and secrets, and ends.
fn find(visit: &Visit, id: &str) -> Option<Arc<Session>> {
    let sessions = &visit.through.0.sessions;
    let session = sessions.get(visit.owner, &visit.upstream.name, id)?;
    let upstream = match &session.side {
        Side::Straight(straight) => &straight.upstream,
        Side::Crossed(crossed) => &crossed.upstream,
    };
    if Arc::ptr_eq(upstream, &visit.upstream) {
        return Some(session);
    }
    sessions.close(id);
    None
}

type Notices = tokio::sync::OwnedMutexGuard<toolgate_mcp::link::Receiver>;

/// What comes for no request, for one reader at a time.
fn notices(session: &Session) -> Option<Notices> {
    let notices = match &session.side {
        Side::Straight(straight) => &straight.notices,
        Side::Crossed(crossed) => &crossed.notices,
    };
    notices.clone().try_lock_owned().ok()
}

/// Ends a session.
pub(super) async fn leave(visit: Visit, session: &str) -> Result<Response, Refusal> {
    let sessions = &visit.through.0.sessions;
    if sessions.get(visit.owner, &visit.upstream.name, session).is_none() {
        return Ok(gone(None));
    }
    if let Some(session) = sessions.close(session)
        && let Side::Straight(straight) = &session.side
    {
        straight.end().await;
    }
    Ok(StatusCode::NO_CONTENT.into_response())
}
