//! Failures of statements and transactions, and the error that the caller gets.

use tokio_postgres::Error;
use tokio_postgres::error::SqlState;
use toolgate_engine::store::StoreError;

/// Why a write or a read failed.
#[derive(Debug)]
pub(crate) enum Fault {
    /// The store rejects the request; the database works.
    Refused(StoreError),
    /// Nothing is stored, and another attempt may succeed: a deadlock, a lost connection, a server that starts.
    Again(String),
    /// As [`Fault::Again`], and all connections lead to a server that takes no writes.
    ReadOnly,
    /// Nothing is stored, and another attempt would most likely fail as well.
    Failed(String),
    /// The connection was lost while the server may have committed.
    Unknown,
}

impl Fault {
    /// The caller's error.
    pub(crate) fn into_store_error(self) -> StoreError {
        match self {
            Self::Refused(why) => why,
            Self::Again(why) | Self::Failed(why) => StoreError::Unavailable(why),
            Self::ReadOnly => StoreError::Unavailable("the PostgreSQL server takes no writes".into()),
            Self::Unknown => StoreError::Timeout,
        }
    }

    /// The failure of a statement that commits by itself: a connection that is lost leaves its outcome open.
    pub(crate) fn of_lone_write(error: Error) -> Self {
        match is_lost(&error) {
            true => Self::Unknown,
            false => error.into(),
        }
    }

    /// Whether another attempt may succeed.
    pub(crate) fn is_passing(&self) -> bool {
        matches!(self, Self::Again(_) | Self::ReadOnly)
    }
}

impl From<StoreError> for Fault {
    fn from(why: StoreError) -> Self {
        Self::Refused(why)
    }
}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        let Some(code) = error.code() else {
            return match is_lost(&error) {
                true => Self::Again(message(&error)),
                false if is_of_column(&error) => Self::Refused(StoreError::Corrupt(message(&error))),
                // TLS that was refused, a password that is missing.
                false => Self::Failed(message(&error)),
            };
        };
        match *code {
            SqlState::UNIQUE_VIOLATION => Self::Refused(StoreError::Exists),
            SqlState::READ_ONLY_SQL_TRANSACTION => Self::ReadOnly,
            SqlState::DATA_CORRUPTED | SqlState::INDEX_CORRUPTED => {
                Self::Refused(StoreError::Corrupt(message(&error)))
            }
            SqlState::T_R_SERIALIZATION_FAILURE
            | SqlState::T_R_DEADLOCK_DETECTED
            | SqlState::LOCK_NOT_AVAILABLE
            | SqlState::TOO_MANY_CONNECTIONS => Self::Again(message(&error)),
            _ if is_lost(&error) => Self::Again(message(&error)),
            _ => Self::Failed(message(&error)),
        }
    }
}

/// Whether the connection is gone, or never was there.
pub(crate) fn is_lost(error: &Error) -> bool {
    match error.code() {
        Some(code) => {
            // Class 08: connection exceptions; 57P: the server stops, crashes or starts, or ended an idle transaction.
            code.code().starts_with("08")
                || matches!(
                    *code,
                    SqlState::ADMIN_SHUTDOWN
                        | SqlState::CRASH_SHUTDOWN
                        | SqlState::CANNOT_CONNECT_NOW
                        | SqlState::IDLE_IN_TRANSACTION_SESSION_TIMEOUT
                )
                || code.code() == "57P05"
        }
        None => error.is_closed() || is_of_network(error),
    }
}

/// Whether a column is missing or does not hold what it should. The driver tells its kinds of errors apart by words only.
fn is_of_column(error: &Error) -> bool {
    let text = error.to_string();
    text.starts_with("error deserializing column") || text.starts_with("invalid column")
}

fn is_of_network(error: &Error) -> bool {
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        if cause.is::<std::io::Error>() || cause.is::<tokio::time::error::Elapsed>() {
            return true;
        }
        source = cause.source();
    }
    let text = error.to_string();
    text.starts_with("error connecting")
        || text.starts_with("error communicating")
        || text.contains("timeout")
}

/// What the server or the network said. Neither knows the password, and values of columns are left out.
pub(crate) fn message(error: &Error) -> String {
    match error.as_db_error() {
        Some(told) => format!("PostgreSQL: {} ({})", told.message(), told.code().code()),
        None => {
            let mut text = format!("PostgreSQL: {error}");
            let mut source = std::error::Error::source(error);
            while let Some(cause) = source {
                let words = cause.to_string();
                if !text.contains(&words) {
                    text = format!("{text}: {words}");
                }
                source = cause.source();
            }
            text
        }
    }
}
