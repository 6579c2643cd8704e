//! Places in a Redis stream.

use std::fmt::{Display, Formatter};
use std::str::FromStr;

/// A place in a stream: the milliseconds of the server's clock, and a count within them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(super) struct StreamId {
    pub millis: u64,
    pub count: u64,
}

impl FromStr for StreamId {
    type Err = ();
    fn from_str(text: &str) -> Result<Self, ()> {
        let (millis, count) = text.split_once('-').ok_or(())?;
        Ok(Self {
            millis: millis.parse().map_err(|_| ())?,
            count: count.parse().map_err(|_| ())?,
        })
    }
}

impl Display for StreamId {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}-{}", self.millis, self.count)
    }
}
