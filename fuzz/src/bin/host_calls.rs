//! Any frame of a worker is read or refused, and one that is read is written the same; so any host call in it.
#![no_main]

use libfuzzer_sys::fuzz_target;
use toolgate_sandbox::{Said, Wish};

fuzz_target!(|frame: &[u8]| {
    let Ok(said) = Said::parse(frame) else {
        return;
    };
    assert_eq!(said.write(), frame);
    if let Said::Call { operation, body, .. } = said {
        // Whether it can be carried out does not matter here: it ends, and it does not panic.
        let _ = Wish::parse(operation, body);
    }
});
