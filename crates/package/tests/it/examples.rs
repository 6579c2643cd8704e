//! The packages in `examples/plugins`.

use std::path::{Path, PathBuf};

use serde_json::json;
use toolgate_kernel::time::Time;
use toolgate_package::{CuratorKeys, Package, Verification, audit, verify};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/plugins")
}

#[test]
fn every_example_is_signed_by_the_example_curator_and_clean() {
    let pem = std::fs::read_to_string(folder().join("curator.pub.pem")).expect("the key");
    let keys = CuratorKeys::read(&json!({ "toolgate-examples": pem }), "").expect("a key");
    for name in [
        "calculator",
        "csv-summary",
        "json-diff",
        "text-statistics",
        "time",
    ] {
        let bytes = std::fs::read(folder().join(name).join(format!("{name}.json"))).expect("the package");
        let package = Package::parse(&bytes).unwrap_or_else(|problems| panic!("{name}: {problems:?}"));
        assert_eq!(package.id().as_str(), name);
        let verification = verify(&package, &keys, Time(1_800_000_000_000));
        assert!(
            matches!(verification, Verification::Verified { .. }),
            "{name}: {verification:?}"
        );
        assert!(package.permissions().is_empty(), "{name} asks for nothing");
        assert_eq!(audit(&package).warnings, Vec::<String>::new(), "{name}");
    }
}
