//! Waiting for a run within one request: `Prefer: wait=30` (RFC 7240) or `?wait=30s`. A wait counts as an open stream of
//! its user, ends with the client's connection, the user's access and the gateway, and never lasts longer than
//! [`HttpSettings::wait_max`](crate::HttpSettings::wait_max).

use std::pin::pin;
use std::time::Duration;

use axum::extract::{FromRef, FromRequestParts};
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue};
use tokio::time::Instant;
use toolgate_access::{Pass, Principal, Standing};
use toolgate_engine::feed::{Batch, End, Subscription};
use toolgate_engine::store::RunRecord;
use toolgate_kernel::event::{Event, Seq, Status};
use toolgate_kernel::id::{RunId, SpaceId};
use toolgate_kernel::tool::Decider;

use crate::Shared;
use crate::in_flight::InFlight;
use crate::problem::Refusal;
use crate::query::Query;
use crate::run_state::CountedState;
use crate::stream::OpenStream;

/// What a client prefers of how its request is answered.
const PREFER: HeaderName = HeaderName::from_static("prefer");
/// Which of its preferences were followed.
pub const PREFERENCE_APPLIED: HeaderName = HeaderName::from_static("preference-applied");

/// How long the caller wants to wait for the run, if at all.
pub struct Wait {
    asked: Option<Asked>,
    in_flight: InFlight,
}

#[derive(Clone, Copy)]
struct Asked {
    until: Instant,
    /// The wait in seconds, when it was asked for by a header, which is told what was made of it.
    preferred: Option<u64>,
}

impl<S: Send + Sync> FromRequestParts<S> for Wait
where
    Shared: FromRef<S>,
{
    type Rejection = Refusal;
    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Refusal> {
        let max = Shared::from_ref(state).settings.wait_max;
        let in_query = match Query::of(&parts.uri)?.text("wait") {
            Some(text) => Some(span(text).ok_or_else(|| {
                let seen: String = text.chars().take(32).collect();
                Refusal::malformed(format!(
                    "query wait: {seen:?} is no time; send one like 30s, 500ms or 1m"
                ))
            })?),
            None => None,
        };
        let preferred = preferred_wait(&parts.headers).map(|wait| wait.min(max));
        let wait = in_query.map(|wait| wait.min(max)).or(preferred);
        Ok(Self {
            asked: wait.map(|wait| Asked {
                until: Instant::now() + wait,
                preferred: preferred
                    .filter(|_| in_query.is_none())
                    .map(|wait| wait.as_secs()),
            }),
            in_flight: parts.extensions.get::<InFlight>().cloned().unwrap_or_default(),
        })
    }
}

impl Wait {
    /// The same, with a wait of `default` for a caller that said nothing.
    pub fn or(mut self, door: &Shared, default: Duration) -> Self {
        self.asked = self.asked.or_else(|| {
            Some(Asked {
                until: Instant::now() + default.min(door.settings.wait_max),
                preferred: None,
            })
        });
        self
    }

    /// The wait that the caller asked for, counted among its streams; refused before it changes anything.
    pub fn reserve(self, door: &Shared, who: &Principal) -> Result<Option<OpenWait>, Refusal> {
        let Some(asked) = self.asked else {
            return Ok(None);
        };
        Ok(Some(OpenWait {
            asked,
            in_flight: self.in_flight,
            _open: OpenStream::reserve(door, who)?,
        }))
    }
}

/// The right to wait for one run.
pub struct OpenWait {
    asked: Asked,
    in_flight: InFlight,
    _open: OpenStream,
}

/// Which run is waited for, by whom.
pub struct Awaited {
    /// Principal that waits.
    pub who: Principal,
    /// The run.
    pub run: RunId,
    /// Its space.
    pub space: SpaceId,
    /// Since when what it says of itself counts.
    pub since: Since,
    /// Whether there is nothing more to wait for in this status.
    pub is_rest: fn(Status) -> bool,
}

/// Since when the status of an awaited run counts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Since {
    /// It counts as it stands.
    Now,
    /// It counts from the first one after this place. A run whose child was answered tells one, and its row may say
    /// until then that it waits.
    StatusAfter(Seq),
}

/// A run that has come to rest.
pub struct Rested {
    /// Its row.
    pub record: RunRecord,
    /// Its state as the reader sees it.
    pub state: CountedState,
    /// The caller as a reader.
    pub reader: Decider,
}

/// Whether a run has ended, or goes on only when a person, a client or a clock says so.
pub fn ended_or_waits(status: Status) -> bool {
    match status {
        Status::WaitingTool | Status::WaitingApproval | Status::WaitingTime => true,
        Status::Completed | Status::Failed | Status::Cancelled => true,
        Status::Queued | Status::Running => false,
    }
}

impl OpenWait {
    /// The header that tells what was made of the caller's preference.
    pub fn applied(&self) -> HeaderMap {
        let told = self.asked.preferred.map(|seconds| {
            let words = HeaderValue::try_from(format!("wait={seconds}"));
            (PREFERENCE_APPLIED, words.expect("digits are ASCII"))
        });
        told.into_iter().collect()
    }

    /// Waits until the run is at rest. None when the time is up or the gateway goes down: the run goes on. An error
    /// when the caller may no longer see it.
    pub async fn rest(
        &self,
        door: &Shared,
        awaited: &Awaited,
        mut events: Subscription,
    ) -> Result<Option<Rested>, Refusal> {
        self.in_flight.forget_body();
        let mut pass = door.access.admit(&awaited.who, awaited.space).await?;
        let heartbeat = door.settings.heartbeat;
        let mut beat = pin!(tokio::time::sleep(heartbeat));
        let mut time_up = pin!(tokio::time::sleep_until(self.asked.until));
        let mut stopped = pin!(door.settings.stop.cancelled());
        if awaited.since == Since::Now
            && let Some(rested) = awaited.look(door).await?
        {
            return Ok(Some(rested));
        }
        loop {
            let cursor = events.cursor();
            tokio::select! {
                biased;
                () = &mut time_up => return Ok(None),
                () = &mut stopped => return Ok(None),
                () = pass.doubt() => renew(door, awaited, &mut pass, Standing::Unknown).await?,
                () = &mut beat => {
                    renew(door, awaited, &mut pass, Standing::Holds).await?;
                    beat.as_mut().reset(Instant::now() + heartbeat);
                }
                batch = events.next() => {
                    let is_last = match batch {
                        Ok(batch) if awaited.rests_in(&batch, cursor) => false,
                        Ok(_) => continue,
                        Err(End::Finished) => true,
                        Err(End::Cut) => return Ok(None),
                    };
                    let rested = awaited.look(door).await?;
                    if rested.is_some() || is_last {
                        return Ok(rested);
                    }
                }
            }
        }
    }
}

/// Checks that the caller may still see the run; with another role it may go on. `unknown` is what counts when the
/// store does not answer.
async fn renew(door: &Shared, awaited: &Awaited, pass: &mut Pass, unknown: Standing) -> Result<(), Refusal> {
    if door.access.standing(pass).await.unwrap_or(unknown) != Standing::Holds {
        *pass = door.access.admit(&awaited.who, awaited.space).await?;
    }
    Ok(())
}

impl Awaited {
    /// Whether the run says in this batch that it is at rest. It may have gone on since.
    fn rests_in(&self, batch: &Batch, cursor: Seq) -> bool {
        let after = match self.since {
            Since::Now => cursor,
            Since::StatusAfter(place) => cursor.max(place),
        };
        batch.placed().any(|(seq, event)| match event {
            Event::RunStatus(moved) => seq > after && (self.is_rest)(moved.status),
            Event::RunFinish(_) => true,
            _ => false,
        })
    }

    /// The run, if it is at rest now. Access is checked again: it may have ended a moment ago.
    async fn look(&self, door: &Shared) -> Result<Option<Rested>, Refusal> {
        let Some(mut record) = door.engine.run(self.run).await? else {
            return Err(Refusal::not_found("run"));
        };
        if !(self.is_rest)(record.status) {
            return Ok(None);
        }
        let pass = door.access.admit(&self.who, self.space).await?;
        let reader = pass.reader().clone();
        let state = CountedState::read(door, &self.who, self.run, &reader).await?;
        if !(self.is_rest)(state.status()) {
            return Ok(None);
        }
        record.status = state.status();
        Ok(Some(Rested {
            record,
            state,
            reader,
        }))
    }
}

/// The wait that the headers ask for. As RFC 7240 wants it, the first counts and what cannot be read is as if it were
/// not there.
fn preferred_wait(headers: &HeaderMap) -> Option<Duration> {
    let lines = headers.get_all(PREFER).into_iter();
    let preferences = lines
        .filter_map(|line| line.to_str().ok())
        .flat_map(|line| line.split(','));
    let mut waits = preferences.filter_map(|preference| {
        let preference = preference.split(';').next().unwrap_or_default();
        let (name, value) = preference.split_once('=')?;
        name.trim()
            .eq_ignore_ascii_case("wait")
            .then(|| value.trim().trim_matches('"'))
    });
    let seconds = waits.next()?;
    let digits = !seconds.is_empty() && seconds.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| Duration::from_secs(seconds.parse().unwrap_or(u64::MAX)))
}

/// A time such as `30s`; seconds when it has no unit.
fn span(text: &str) -> Option<Duration> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    if number.is_empty() {
        return None;
    }
    // Digits that are no number are too many of them, and every wait is cut to the longest one.
    let number: u64 = number.parse().unwrap_or(u64::MAX);
    match unit {
        "ms" => Some(Duration::from_millis(number)),
        "" | "s" => Some(Duration::from_secs(number)),
        "m" => Some(Duration::from_secs(number.saturating_mul(60))),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_wait_that_is_preferred_counts() {
        let prefers = |lines: &[&'static str]| {
            let lines = lines.iter().map(|line| (PREFER, HeaderValue::from_static(line)));
            preferred_wait(&lines.collect()).map(|wait| wait.as_secs())
        };
        assert_eq!(prefers(&["wait=30"]), Some(30));
        assert_eq!(
            prefers(&["respond-async, Wait = \"5\"; x=1, wait=9", "wait=7"]),
            Some(5)
        );
        assert_eq!(prefers(&["return=minimal"]), None);
        assert_eq!(prefers(&["wait=soon"]), None);
        assert_eq!(prefers(&["wait="]), None);
        assert_eq!(prefers(&["wait=99999999999999999999999"]), Some(u64::MAX));
    }

    #[test]
    fn a_wait_in_an_address_has_a_unit_or_is_in_seconds() {
        assert_eq!(span("30"), Some(Duration::from_secs(30)));
        assert_eq!(span("30s"), Some(Duration::from_secs(30)));
        assert_eq!(span("250ms"), Some(Duration::from_millis(250)));
        assert_eq!(span("2m"), Some(Duration::from_secs(120)));
        assert_eq!(span("99999999999999999999m"), Some(Duration::from_secs(u64::MAX)));
        for wrong in ["", "s", "-1", "1.5s", "3h", "1 s"] {
            assert_eq!(span(wrong), None, "{wrong}");
        }
    }
}
