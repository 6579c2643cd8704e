//! Any bytes are a package or refused, and a package that is written again is the same package.
#![no_main]

use libfuzzer_sys::fuzz_target;
use toolgate_package::{Package, audit};

fuzz_target!(|bytes: &[u8]| {
    let Ok(package) = Package::parse(bytes) else {
        return;
    };
    let written = package.document().to_string();
    let again = Package::parse(written.as_bytes()).expect("what was read can be read again");
    assert_eq!(again.hash(), package.hash());
    assert_eq!(again.content_hash(), package.content_hash());
    // It ends, and it does not panic.
    let _ = audit(&package);
});
