//! Conformance suite of the store seam, which every store passes.

mod concurrency;
mod consumption;
mod leases;
mod log;
mod records;
mod retention;
mod run_lists;
mod run_trees;
mod runs;
pub mod samples;
mod usage;

use std::pin::Pin;
use std::sync::Arc;

use toolgate_engine::store::{Store, StoreError};

/// Runs every check, each on a fresh store from `make`. Panics at the first check that fails; the
/// name of the check is the last line printed.
pub async fn all(make: impl AsyncFn() -> Arc<dyn Store>) {
    for (name, check) in [
        log::CHECKS,
        runs::CHECKS,
        run_lists::CHECKS,
        run_trees::CHECKS,
        leases::CHECKS,
        records::CHECKS,
        usage::CHECKS,
        consumption::CHECKS,
        retention::CHECKS,
        concurrency::CHECKS,
    ]
    .concat()
    {
        eprintln!("store conformance: {name}");
        let store = make().await;
        check(store.clone()).await;
        store.close().await;
    }
}

/// A check, named as a sentence.
type Check = (
    &'static str,
    fn(Arc<dyn Store>) -> Pin<Box<dyn Future<Output = ()> + Send>>,
);

/// A table of checks from their functions.
macro_rules! checks {
    ($($name:ident),* $(,)?) => {
        pub(super) const CHECKS: &[super::Check] =
            &[$((stringify!($name), |store| Box::pin($name(store)))),*];
    };
}
use checks;

/// Asserts that a store returned this kind of error.
macro_rules! refused {
    ($outcome:expr, $error:pat $(if $also:expr)?) => {{
        let outcome = $outcome;
        assert!(
            matches!(outcome, Err($error) $(if $also)?),
            "expected {}, got {outcome:?}",
            stringify!($error $(if $also)?)
        );
    }};
}
use refused;

/// Unwraps a call that must succeed.
trait Stored<T> {
    fn stored(self) -> T;
}

impl<T> Stored<T> for Result<T, StoreError> {
    #[track_caller]
    fn stored(self) -> T {
        self.expect("the store does what it is asked")
    }
}
