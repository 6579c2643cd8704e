//! The canonical text of any JSON is JSON of the same meaning, and its own canonical text.
#![no_main]

use libfuzzer_sys::fuzz_target;
use serde_json::Value;
use toolgate_package::canonical::canonical;

fuzz_target!(|bytes: &[u8]| {
    let Ok(value) = serde_json::from_slice::<Value>(bytes) else {
        return;
    };
    let Ok(text) = canonical(&value) else {
        return;
    };
    let again: Value = serde_json::from_str(&text).expect("a canonical text is JSON");
    assert_eq!(canonical(&again).expect("it has one already"), text);
});
