//! What a call that needed the network fails with.

use toolgate_egress::EgressError;
use toolgate_engine::tools::CallFailure;

pub(crate) fn failed(error: EgressError) -> CallFailure {
    CallFailure::new(error.code(), error.to_string())
}
