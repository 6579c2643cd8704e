//! Whether a history of requests is one of a register that is written once.

use std::time::Duration;

use serde_json::Value;

/// A request: when it was sent and answered, and with what.
#[derive(Debug)]
pub struct Told {
    pub invoked: Duration,
    pub answered: Duration,
    /// What it wants to write; none for one that reads.
    pub value: Option<Value>,
    pub written: Written,
}

/// What it was told of the register.
#[derive(Debug, Clone, PartialEq)]
pub enum Written {
    /// Its value is there, at this place.
    Won(u64),
    /// Another value is there, at this place.
    Lost(u64),
    /// Read: this is there, at this place.
    Read(u64, Value),
    /// Read: nothing is there.
    Nothing,
    /// There was no answer, or none that says what happened: it may have taken effect, then or later, or not.
    Unknown,
}

/// Finds a moment at which `winner` can have been written, with all that everybody was told: not before somebody wanted to
/// write it, nor before the last request that found nothing was sent; and before anybody was told of it.
pub fn check(history: &[Told], winner: &Value, place: u64) -> Result<(), String> {
    for told in history {
        let is_right = match &told.written {
            Written::Won(seq) => told.value.as_ref() == Some(winner) && *seq == place,
            Written::Lost(seq) => told.value.as_ref() != Some(winner) && *seq == place,
            Written::Read(seq, value) => value == winner && *seq == place,
            Written::Nothing | Written::Unknown => true,
        };
        if !is_right {
            return Err(format!("told of another winner: {told:?}"));
        }
    }
    let wanted = history.iter().filter(|told| told.value.as_ref() == Some(winner));
    let wanted = wanted.map(|told| told.invoked).min();
    let wanted = wanted.ok_or("nobody has given the winner")?;
    let found_nothing = history.iter().filter(|told| told.written == Written::Nothing);
    let earliest = found_nothing.map(|told| told.invoked).fold(wanted, Duration::max);
    let knows = |told: &&Told| !matches!(told.written, Written::Nothing | Written::Unknown);
    match history.iter().filter(knows).find(|told| told.answered < earliest) {
        Some(told) => Err(format!(
            "knew it before {earliest:?}, when it cannot have been there: {told:?}"
        )),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn told(from: u64, to: u64, value: Option<&str>, written: Written) -> Told {
        Told {
            invoked: Duration::from_millis(from),
            answered: Duration::from_millis(to),
            value: value.map(Value::from),
            written,
        }
    }

    fn won(from: u64, to: u64, value: &str) -> Told {
        told(from, to, Some(value), Written::Won(7))
    }

    fn lost(from: u64, to: u64, value: &str) -> Told {
        told(from, to, Some(value), Written::Lost(7))
    }

    fn unknown(from: u64, to: u64, value: &str) -> Told {
        told(from, to, Some(value), Written::Unknown)
    }

    fn nothing(from: u64, to: u64) -> Told {
        told(from, to, None, Written::Nothing)
    }

    fn read(from: u64, to: u64, value: &str) -> Told {
        told(from, to, None, Written::Read(7, value.into()))
    }

    #[test]
    fn a_register_can_have_answered_so() {
        for history in [
            vec![
                nothing(0, 2),
                won(1, 4, "a"),
                nothing(3, 5),
                lost(2, 6, "b"),
                read(5, 6, "a"),
                won(6, 7, "a"),
            ],
            vec![
                unknown(0, 1, "a"),
                unknown(0, 1, "b"),
                nothing(2, 3),
                lost(2, 4, "b"),
                read(4, 5, "a"),
            ],
            vec![unknown(0, 9, "a"), read(2, 3, "a"), unknown(4, 5, "b")],
        ] {
            check(&history, &json!("a"), 7).expect("this is a register");
        }
    }

    #[test]
    fn a_register_cannot_have_answered_so() {
        for history in [
            // Two have won, or nobody has.
            vec![won(0, 1, "a"), won(0, 1, "b")],
            vec![lost(0, 1, "b")],
            vec![won(0, 1, "a"), lost(0, 1, "a")],
            vec![won(0, 1, "a"), read(2, 3, "b")],
            vec![told(0, 1, Some("a"), Written::Won(8))],
            // It was known too early.
            vec![lost(0, 1, "b"), won(2, 3, "a")],
            vec![read(0, 1, "a"), unknown(2, 3, "a")],
            // It was gone afterwards.
            vec![won(0, 4, "a"), nothing(5, 6)],
            vec![unknown(0, 9, "a"), read(2, 3, "a"), nothing(4, 5)],
        ] {
            check(&history, &json!("a"), 7).expect_err("this is no register");
        }
    }
}
