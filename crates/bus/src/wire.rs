//! How notices travel between processes: batches of JSON, so that nodes of different versions share a bus.
//!
//! A batch says who sent it and which one it is. A notice that is not known here, or has another form, is skipped: it is
//! a newer version's, and what it would have told is in the store. A form that older versions would misread gets a
//! new name.

use std::borrow::Cow;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use toolgate_engine::bus::Notice;
use toolgate_engine::feed::Live;
use toolgate_engine::revocation::Revoked;
use toolgate_kernel::event::{Event, Seq};
use toolgate_kernel::id::{EntityId, KeyId, NodeId, ProjectId, RunId, SessionId, SpaceId};
use toolgate_kernel::time::Time;

/// Largest notice. Live events beyond it are sent in parts; a single one that is larger is dropped, and the others are
/// told that something was.
pub(crate) const NOTICE_BYTES_MAX: usize = 1 << 20;

/// What one node sends at once.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Batch<'a> {
    /// The sender.
    pub node: NodeId,
    /// The process of the sender: another one after a restart.
    pub life: u64,
    /// Counts the batches of a life, without a gap.
    pub number: u64,
    /// Notices were dropped before this batch.
    #[serde(default)]
    pub lost: bool,
    /// The sender goes: there will be no more.
    #[serde(default)]
    pub leaves: bool,
    /// The notices, each as it was written.
    #[serde(borrow)]
    pub notices: Vec<&'a RawValue>,
}

impl<'a> Batch<'a> {
    /// Reads a batch; the notices are read by [`read`].
    pub fn parse(text: &'a str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(text)
    }
    /// Its text on the wire.
    pub fn write(&self) -> String {
        serde_json::to_string(self).expect("a batch has text keys only")
    }
}

/// A notice as text.
#[derive(Default)]
pub(crate) struct Written {
    /// Several where it has to be sent in parts.
    pub parts: Vec<Box<RawValue>>,
    /// Something of it is too large to be sent.
    pub lost: bool,
}

/// Writes a notice.
pub(crate) fn write(notice: &Notice) -> Written {
    let mut written = Written::default();
    match notice {
        Notice::Live { space, live, again } => written.add_live(*space, live, 0..live.events.len(), *again),
        Notice::Committed {
            space,
            run,
            first,
            last,
            ends_step,
        } => written.add(&Out::Committed {
            space: *space,
            run: *run,
            first: *first,
            last: *last,
            ends_step: *ends_step,
        }),
        Notice::Poke { run, node } => written.add(&Out::Poke {
            run: *run,
            node: *node,
        }),
        Notice::Wanted { space } => written.add(&Out::Wanted { space: *space }),
        Notice::Revoked(revoked) => written.add(&Out::Revoked {
            access: match *revoked {
                Revoked::Key(key) => Access::Key { key },
                Revoked::Member { space, member } => Access::Member { space, member },
                Revoked::Project(project) => Access::Project { project },
                Revoked::Session(session) => Access::Session { session },
                Revoked::Space(space) => Access::Space { space },
                Revoked::Words(space) => Access::Words { space },
                Revoked::Entity(entity) => Access::Entity { entity },
            },
        }),
    }
    written
}

impl Written {
    fn add(&mut self, out: &Out<'_>) {
        let text = serde_json::value::to_raw_value(out).expect("a notice has text keys only");
        match text.get().len() <= NOTICE_BYTES_MAX {
            true => self.parts.push(text),
            false => self.lost = true,
        }
    }

    /// Adds these events of a live notice, in halves as long as they are too large together.
    fn add_live(&mut self, space: SpaceId, live: &Live, events: std::ops::Range<usize>, again: bool) {
        let memory: usize = live.events[events.clone()].iter().map(Event::memory).sum();
        // What takes so much memory may still fit as text, or the other way round: the text decides for a single one.
        if events.len() > 1 && memory > NOTICE_BYTES_MAX / 4 {
            let middle = events.start + events.len() / 2;
            self.add_live(space, live, events.start..middle, again);
            return self.add_live(space, live, middle..events.end, again);
        }
        self.add(&Out::Live {
            space,
            run: live.run,
            first: Seq(live.first.0 + events.start as u64 * Seq::LANES),
            time: live.time.0,
            again,
            events: &live.events[events],
        });
    }
}

/// Reads a notice. Several where a live one holds events that this version does not know: these are left out, and the
/// others keep their places. None when the notice itself is not known here.
pub(crate) fn read(raw: &RawValue) -> Vec<Notice> {
    let read = |raw: &RawValue| -> Result<Vec<Notice>, serde_json::Error> {
        let Tag { kind } = serde_json::from_str(raw.get())?;
        match kind.as_ref() {
            "live" => serde_json::from_str::<LiveIn>(raw.get()).map(LiveIn::notices),
            "committed" | "poke" | "wanted" | "revoked" => {
                serde_json::from_str::<In>(raw.get()).map(|notice| vec![notice.into()])
            }
            _ => Ok(Vec::new()),
        }
    };
    // One of the same name in another form is a newer version's too.
    read(raw).unwrap_or_default()
}

#[derive(Deserialize)]
struct Tag<'a> {
    #[serde(rename = "type", borrow)]
    kind: Cow<'a, str>,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
enum Out<'a> {
    Live {
        space: SpaceId,
        run: RunId,
        first: Seq,
        /// Milliseconds since 1970.
        time: i64,
        again: bool,
        events: &'a [Event],
    },
    Committed {
        space: SpaceId,
        run: Option<RunId>,
        first: Seq,
        last: Seq,
        ends_step: bool,
    },
    Poke {
        run: RunId,
        node: Option<NodeId>,
    },
    Wanted {
        space: SpaceId,
    },
    Revoked {
        access: Access,
    },
}

/// What [`Out`] is when it is read, without live events: raw JSON cannot pass through serde's tagged enums.
#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "lowercase")]
enum In {
    Committed {
        space: SpaceId,
        run: Option<RunId>,
        first: Seq,
        last: Seq,
        ends_step: bool,
    },
    Poke {
        run: RunId,
        node: Option<NodeId>,
    },
    Wanted {
        space: SpaceId,
    },
    Revoked {
        access: Access,
    },
}

#[derive(Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "lowercase")]
enum Access {
    Key { key: KeyId },
    Member { space: SpaceId, member: EntityId },
    Project { project: ProjectId },
    Session { session: SessionId },
    Space { space: SpaceId },
    Words { space: SpaceId },
    Entity { entity: EntityId },
}

impl From<In> for Notice {
    fn from(notice: In) -> Self {
        match notice {
            In::Committed {
                space,
                run,
                first,
                last,
                ends_step,
            } => Self::Committed {
                space,
                run,
                first,
                last,
                ends_step,
            },
            In::Poke { run, node } => Self::Poke { run, node },
            In::Wanted { space } => Self::Wanted { space },
            In::Revoked { access } => Self::Revoked(match access {
                Access::Key { key } => Revoked::Key(key),
                Access::Member { space, member } => Revoked::Member { space, member },
                Access::Project { project } => Revoked::Project(project),
                Access::Session { session } => Revoked::Session(session),
                Access::Space { space } => Revoked::Space(space),
                Access::Words { space } => Revoked::Words(space),
                Access::Entity { entity } => Revoked::Entity(entity),
            }),
        }
    }
}

#[derive(Deserialize)]
struct LiveIn {
    space: SpaceId,
    run: RunId,
    first: Seq,
    time: i64,
    again: bool,
    events: Vec<Box<RawValue>>,
}

impl LiveIn {
    fn notices(self) -> Vec<Notice> {
        let mut stretches: Vec<(usize, Vec<Event>)> = Vec::new();
        for (place, raw) in self.events.iter().enumerate() {
            let event = Event::read(raw).ok().filter(|event| !event.is_durable());
            let Some(event) = event else { continue };
            match stretches.last_mut() {
                Some((first, events)) if *first + events.len() == place => events.push(event),
                _ => stretches.push((place, vec![event])),
            }
        }
        let notice = |(place, events)| Notice::Live {
            space: self.space,
            live: Arc::new(Live {
                run: self.run,
                first: Seq(self.first.0 + place as u64 * Seq::LANES),
                time: Time(self.time),
                events,
            }),
            again: self.again,
        };
        stretches.into_iter().map(notice).collect()
    }
}

#[cfg(test)]
mod tests;
