//! Our types against the official ones of the A2A project: what one writes, the other reads as the same.

use proptest::prelude::*;
use toolgate_a2a::Dialect;
use toolgate_a2a::stream::StreamResponse;

use crate::values;

proptest! {
    #[test]
    fn the_official_types_read_what_ours_write(event in values::event(Dialect::V1)) {
        let ours = event.to_json(Dialect::V1);
        let official: a2a::StreamResponse = serde_json::from_value(ours.clone()).expect("the official types read it");
        let back = serde_json::to_value(&official).expect("the official types write it");
        let read = StreamResponse::from_json(back.clone(), Dialect::V1).expect("ours read it back");
        prop_assert_eq!(read.to_json(Dialect::V1), ours);
    }
}
