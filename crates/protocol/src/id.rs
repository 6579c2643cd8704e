//! Ids: one type each, printed with its prefix, so that one pasted into the wrong field is rejected
//! rather than looked up.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use uuid::Uuid;

/// A text that is no id of the expected kind.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{seen:?} is not an id of the form {expected}")]
pub struct BadId {
    /// The text that was given, shortened.
    pub seen: String,
    /// Example of a valid id.
    pub expected: &'static str,
}

const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
/// Characters of 128 bits in base 32.
const BODY_CHARS: usize = 26;

fn encode(value: u128) -> [u8; BODY_CHARS] {
    let mut out = [b'0'; BODY_CHARS];
    let mut rest = value;
    for slot in out.iter_mut().rev() {
        *slot = ALPHABET[(rest & 31) as usize];
        rest >>= 5;
    }
    out
}

fn decode(body: &str) -> Option<u128> {
    if body.len() != BODY_CHARS || body.as_bytes()[0] > b'7' {
        return None;
    }
    body.bytes().try_fold(0u128, |value, byte| {
        let digit = ALPHABET.iter().position(|&a| a == byte)?;
        Some(value << 5 | digit as u128)
    })
}

fn write_body(out: &mut fmt::Formatter<'_>, value: u128) -> fmt::Result {
    let body = encode(value);
    out.write_str(std::str::from_utf8(&body).expect("the alphabet is ASCII"))
}

macro_rules! serde_by_text {
    ($name:ident) => {
        impl fmt::Debug for $name {
            fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, out)
            }
        }
        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
                out.collect_str(self)
            }
        }
        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                let text = std::borrow::Cow::<str>::deserialize(from)?;
                text.parse().map_err(de::Error::custom)
            }
        }
    };
}

macro_rules! id {
    ($(#[$doc:meta])* $name:ident, $prefix:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(u128);

        impl $name {
            /// Makes an id of 128 bits; for a new id pass a UUID of version 7, which sorts by time.
            pub fn new(id: Uuid) -> Self {
                Self(id.as_u128())
            }
            /// The 128 bits, in their stored form.
            pub fn to_bytes(self) -> [u8; 16] {
                self.0.to_be_bytes()
            }
            /// Reads the stored form.
            pub fn from_bytes(bytes: [u8; 16]) -> Self {
                Self(u128::from_be_bytes(bytes))
            }
        }
        impl fmt::Display for $name {
            fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str($prefix)?;
                write_body(out, self.0)
            }
        }
        impl FromStr for $name {
            type Err = BadId;
            fn from_str(text: &str) -> Result<Self, BadId> {
                text.strip_prefix($prefix)
                    .and_then(decode)
                    .map(Self)
                    .ok_or_else(|| BadId { seen: shorten(text), expected: concat!($prefix, "<26 characters>") })
            }
        }
        serde_by_text!($name);
    };
}

id!(
    /// A tenant.
    ProjectId, "proj_"
);
id!(
    /// A user or agent, in all its spaces.
    EntityId, "ent_"
);
id!(
    /// A conversation between users and agents.
    SpaceId, "space_"
);
id!(
    /// One activation of an agent.
    RunId, "run_"
);
id!(
    /// One message in a space.
    MessageId, "msg_"
);
id!(
    /// The public part of an API key.
    KeyId, "key_"
);
id!(
    /// A browser that has signed in to the console.
    SessionId, "sess_"
);
id!(
    /// A process that drives runs.
    NodeId, "node_"
);

macro_rules! numbered {
    ($(#[$doc:meta])* $name:ident, $prefix:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name {
            /// The run it belongs to, which is part of the id: no lookup is needed.
            pub run: RunId,
            /// Its number in the run, counted from 0.
            pub number: u32,
        }
        impl fmt::Display for $name {
            fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str($prefix)?;
                write_body(out, self.run.0)?;
                write!(out, "_{}", self.number)
            }
        }
        impl FromStr for $name {
            type Err = BadId;
            fn from_str(text: &str) -> Result<Self, BadId> {
                let parse = || {
                    let (body, number) = text.strip_prefix($prefix)?.split_once('_')?;
                    Some(Self { run: RunId(decode(body)?), number: canonical(number)? })
                };
                parse().ok_or_else(|| BadId {
                    seen: shorten(text),
                    expected: concat!($prefix, "<26 characters>_<number>"),
                })
            }
        }
        serde_by_text!($name);
    };
}

numbered!(
    /// One use of a tool by the model. At most 40 characters, which is what every model vendor accepts back.
    CallId, "call_"
);
numbered!(
    /// A request for a person's approval of a call. Carries the number of its call.
    ApprovalId, "appr_"
);

impl CallId {
    /// What the ids of a run's calls begin with, and no other ids.
    pub fn prefix_of(run: RunId) -> String {
        let first = Self { run, number: 0 }.to_string();
        let prefix = first.strip_suffix('0');
        prefix.expect("an id ends with its number").to_owned()
    }

    /// The approval request of this call.
    pub fn approval(self) -> ApprovalId {
        let Self { run, number } = self;
        ApprovalId { run, number }
    }
}
impl ApprovalId {
    /// The call that the approval is for.
    pub fn call(self) -> CallId {
        let Self { run, number } = self;
        CallId { run, number }
    }
}

/// A question that a tool asks people in the middle of a call.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct QuestionId {
    /// The call that asks, which is part of the id: no lookup is needed.
    pub call: CallId,
    /// Its number among the questions of the call, counted from 0.
    pub number: u32,
}

impl fmt::Display for QuestionId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("qst_")?;
        write_body(out, self.call.run.0)?;
        write!(out, "_{}_{}", self.call.number, self.number)
    }
}

impl FromStr for QuestionId {
    type Err = BadId;
    fn from_str(text: &str) -> Result<Self, BadId> {
        let parse = || {
            let mut parts = text.strip_prefix("qst_")?.split('_');
            let run = RunId(decode(parts.next()?)?);
            let (number, own) = (canonical(parts.next()?)?, canonical(parts.next()?)?);
            let call = CallId { run, number };
            parts.next().is_none().then_some(Self { call, number: own })
        };
        parse().ok_or_else(|| BadId {
            seen: shorten(text),
            expected: "qst_<26 characters>_<number>_<number>",
        })
    }
}
serde_by_text!(QuestionId);

/// A number that is written in one way only.
fn canonical(number: &str) -> Option<u32> {
    let canonical = number == "0" || !number.starts_with(['0', '+']);
    number.parse().ok().filter(|_| canonical)
}

/// Shortens a client's text for use in an error message.
fn shorten(text: &str) -> String {
    const QUOTED_CHARS_MAX: usize = 64;
    text.chars().take(QUOTED_CHARS_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_reads_back_and_a_foreign_prefix_is_refused() {
        let run = RunId::new(Uuid::from_u128(0x0192_aaaa_bbbb_cccc_dddd_eeee_ffff_0001));
        let text = run.to_string();
        assert_eq!(text.parse::<RunId>().unwrap(), run);
        assert!(text.parse::<SpaceId>().is_err());
        let call = CallId { run, number: 17 };
        assert_eq!(call.to_string().parse::<CallId>().unwrap(), call);
        assert!(call.to_string().len() <= 40);
        assert!(format!("call_{}_+1", &text[4..]).parse::<CallId>().is_err());
        let question = QuestionId { call, number: 3 };
        assert_eq!(question.to_string().parse::<QuestionId>().unwrap(), question);
        assert!(format!("qst_{}_17", &text[4..]).parse::<QuestionId>().is_err());
        assert!(
            format!("qst_{}_17_3_1", &text[4..])
                .parse::<QuestionId>()
                .is_err()
        );
    }

    #[test]
    fn the_ids_of_a_runs_calls_begin_alike_and_those_of_others_do_not() {
        // The first ends with zeros, as its calls may do.
        let [run, other] = [0x0192_u128 << 112, 1].map(|number| RunId::new(Uuid::from_u128(number)));
        let prefix = CallId::prefix_of(run);
        for number in [0, 1, 10, 100, u32::MAX] {
            assert!(CallId { run, number }.to_string().starts_with(&prefix));
            let others = CallId { run: other, number };
            assert!(!others.to_string().starts_with(&prefix));
        }
        assert_eq!(prefix, format!("call_{}_", &run.to_string()["run_".len()..]));
    }

    #[test]
    fn the_largest_value_fits_and_an_overflow_does_not() {
        let max = RunId(u128::MAX);
        assert_eq!(max.to_string().parse::<RunId>().unwrap(), max);
        assert!("run_8zzzzzzzzzzzzzzzzzzzzzzzzz".parse::<RunId>().is_err());
    }
}
