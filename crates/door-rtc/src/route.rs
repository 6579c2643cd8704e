//! Where a browser brings its offer.

use std::sync::Arc;

use axum::extract::State;
use http::StatusCode;
use serde::Serialize;
use serde_json::json;
use toolgate_engine::CursorPlace;
use toolgate_http::answer::{Answer, ok};
use toolgate_http::body::Body;
use toolgate_http::caller::Caller;
use toolgate_http::describe::{BadBody, Expired, Missing, Refused};
use toolgate_http::problem::Refusal;
use toolgate_http::query::{At, SEQ_MAX};
use toolgate_http::wire::{Text, Whole, wire, words};
use toolgate_http::{Shared, schema};
use toolgate_kernel::event::Seq;
use toolgate_kernel::id::SpaceId;
use utoipa::ToSchema;

use crate::port::{RtcDoor, Visitor};

/// Longest offer. A browser's has about 500 characters, and 100 more for each address of its machine.
const SDP_CHARS_MAX: usize = 32 * 1024;

words! {
    /// The kind of a session description.
    OfferWord {
        /// An offer.
        Offer = "offer",
    }
}
wire! {
    /// An offer of one data channel.
    RtcOffer {
        /// The session description: that of `RTCPeerConnection.createOffer` with one data channel labelled `tools`.
        sdp "sdp": Text<1, SDP_CHARS_MAX>,
        /// Its kind, as browsers write it.
        kind "type": Option<OfferWord>,
        /// The `seq` of the last message that was read; everything when it is left out.
        after "after": Option<Whole<0, SEQ_MAX>>,
    }
}

/// The answer to an offer.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RtcAnswer {
    /// Always `answer`.
    #[serde(rename = "type")]
    #[schema(value_type = String, pattern = "^answer$")]
    kind: &'static str,
    /// The session description, with the addresses of the gateway: for `RTCPeerConnection.setRemoteDescription`.
    sdp: String,
    /// Bytes of one message.
    message_bytes_max: usize,
}

/// Opens a data channel for the tool events of a space.
///
/// The channel carries what `GET /v1/spaces/{space}/events` tells of tools, after the same redaction, and takes decisions,
/// claims, progress and results. It ends when the access of whoever opened it ends.
#[utoipa::path(
    post, path = "/v1/spaces/{space}/rtc", operation_id = "connect_rtc", tag = "events",
    params(("space" = inline(schema::SpaceId), Path)),
    request_body = RtcOffer,
    responses(
        (status = 200, description = "The answer.", body = RtcAnswer),
        BadBody, Missing, Expired, Refused,
    ),
)]
pub(crate) async fn connect(
    State(door): State<Shared>,
    State(rtc): State<Arc<Option<RtcDoor>>>,
    Caller(who): Caller,
    At(space): At<SpaceId>,
    body: Body<RtcOffer>,
) -> Result<Answer<RtcAnswer>, Refusal> {
    let pass = door.access.admit(&who, space).await?;
    let rtc = rtc.as_ref().as_ref().ok_or_else(off)?;
    let after = Seq(body.value.after.map_or(0, |after| after.0));
    check_cursor(&door, space, after).await?;
    let share = rtc.reserve(&who)?;
    let visitor = Visitor {
        who,
        pass,
        space,
        after,
    };
    let (sdp, message_bytes_max) = rtc.answer(&body.value.sdp.0, visitor, share).await?;
    Ok(ok(RtcAnswer {
        kind: "answer",
        sdp,
        message_bytes_max,
    }))
}

/// Refuses a cursor that has missed events which were deleted, or that is ahead of the log: what is missing would be missed
/// without a word.
async fn check_cursor(door: &Shared, space: SpaceId, after: Seq) -> Result<(), Refusal> {
    let (floor, code, seen) = match door.engine.cursor_place(space, after).await? {
        CursorPlace::Kept => return Ok(()),
        CursorPlace::Deleted { floor } => {
            let seen = format!("events after {} were deleted", after.0);
            (floor, "PAST_RETENTION", seen)
        }
        CursorPlace::Ahead { floor } => {
            let seen = format!(
                "{} is ahead of the log, which may be that of a restored backup",
                after.0
            );
            (floor, "AHEAD_OF_LOG", seen)
        }
    };
    let seq = door.engine.space_tail(space).await?;
    let words =
        format!("{seen}, come without a cursor for what is kept, or with `snapshot.seq` for what follows");
    let snapshot = json!({"seq": seq, "deletedUpTo": floor});
    Err(Refusal::new(StatusCode::GONE, code, words).snapshot(snapshot))
}

fn off() -> Refusal {
    let detail = "this gateway opens no data channels: the setting rtc.listen names no address";
    Refusal::new(StatusCode::NOT_FOUND, "RTC_OFF", detail)
}
