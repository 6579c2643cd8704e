//! Failures inside a transaction, and the error that the caller gets.

use rusqlite::{Error, ErrorCode};
use toolgate_engine::store::StoreError;

/// Why a write or a read failed.
#[derive(Debug)]
pub(crate) enum Fault {
    /// The store rejects the request; the database works.
    Refused(StoreError),
    /// A statement failed.
    Sql(Error),
}

impl Fault {
    /// The caller's error, for a write of which nothing is stored.
    pub(crate) fn into_store_error(self) -> StoreError {
        match self {
            Self::Refused(why) => why,
            Self::Sql(error) if is_corruption(&error) => StoreError::Corrupt(error.to_string()),
            Self::Sql(error) => StoreError::Unavailable(error.to_string()),
        }
    }
}

impl Fault {
    /// Whether the file itself is damaged, not only a value in it.
    pub(crate) fn is_damage(&self) -> bool {
        matches!(self, Self::Sql(error) if is_damaged_file(error))
    }
}

impl From<StoreError> for Fault {
    fn from(why: StoreError) -> Self {
        Self::Refused(why)
    }
}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        match error.sqlite_error_code() {
            Some(ErrorCode::ConstraintViolation) => Self::Refused(StoreError::Exists),
            _ => Self::Sql(error),
        }
    }
}

fn is_damaged_file(error: &Error) -> bool {
    matches!(
        error.sqlite_error_code(),
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase)
    )
}

fn is_corruption(error: &Error) -> bool {
    let unreadable_value = matches!(
        error,
        Error::FromSqlConversionFailure(..)
            | Error::IntegralValueOutOfRange(..)
            | Error::InvalidColumnType(..)
    );
    is_damaged_file(error) || unreadable_value
}
