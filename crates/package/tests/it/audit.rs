use serde_json::json;
use toolgate_package::audit::Construct;
use toolgate_package::{Audit, audit};

use crate::sample::{changed, document, package, with};

fn of_code(code: &str) -> Audit {
    audit(&package(&with("/tools/0/executorCode", json!(code))))
}

fn warned(audit: &Audit, words: &str) -> bool {
    audit.warnings.iter().any(|warning| warning.contains(words))
}

#[test]
fn a_report_says_what_a_package_is_and_asks_for() {
    let report = audit(&package(&document()));
    assert_eq!((report.id.as_str(), report.version.as_str()), ("time", "1.2.0"));
    assert_eq!(
        report.permissions,
        ["fetch:api.example.com", "fetch:*.example.org", "storage"]
    );
    assert_eq!(report.tools[0].name, "get_time");
    assert_eq!(report.tools[0].code_lines, 1);
    assert!(report.bytes > 300);
    assert_eq!(report.package_hash, package(&document()).hash());
}

#[test]
fn constructs_are_found_with_their_lines() {
    let report = of_code("let x = 1;\n// eval is not used\nreturn eval('x') + new Function('return 1')();");
    let [eval, function] = &report.tools[0].constructs[..] else {
        panic!("{:?}", report.tools[0].constructs);
    };
    assert_eq!((eval.name, eval.line, eval.count), ("eval", 2, 2));
    assert_eq!((function.name, function.line, function.count), ("Function", 3, 1));
    assert!(warned(&report, "`eval`: runs a text as code"));
}

#[test]
fn a_part_of_a_word_is_no_construct() {
    let named = |construct: &Construct| construct.name;
    let report = of_code("const evaluation = medieval; prefetch(); return $eval;");
    assert_eq!(
        report.tools[0].constructs.iter().map(named).collect::<Vec<_>>(),
        Vec::<&str>::new()
    );
}

#[test]
fn hosts_that_are_named_and_not_asked_for_are_told() {
    let report =
        of_code("await fetch('https://API.example.com/x'); await fetch(`http://evil.example.net:8080/`);");
    assert_eq!(report.hosts, ["api.example.com", "evil.example.net"]);
    assert!(warned(
        &report,
        "names the host evil.example.net, which it does not ask for"
    ));
    assert!(!warned(&report, "api.example.com, which"));
}

#[test]
fn permissions_that_are_unused_or_missing_are_told() {
    let report = of_code("return 1;");
    assert!(warned(&report, "no code mentions fetch"));
    assert!(warned(&report, "no code mentions it"));
    assert!(warned(
        &report,
        "fetch:*.example.org asks for every host below a domain"
    ));
    let silent = changed(document(), "/permissions", json!([]));
    let silent = changed(
        silent,
        "/tools/0/executorCode",
        json!("await storage.get('x'); await fetch(args.url);"),
    );
    let report = audit(&package(&silent));
    assert!(warned(&report, "asks for no host: every request will be refused"));
    assert!(warned(&report, "does not ask for it"));
}

#[test]
fn what_cannot_be_read_is_told() {
    assert!(warned(
        &of_code(&format!("return '{}';", "x".repeat(600))),
        "minified"
    ));
    assert!(warned(
        &of_code("return 1;\nreturn '\u{202e}';"),
        "line 2 of the code has invisible"
    ));
    let poisoned = with("/tools/0/description", json!("The time.\u{e0041}"));
    assert!(warned(
        &audit(&package(&poisoned)),
        "which a model reads and people do not"
    ));
}
