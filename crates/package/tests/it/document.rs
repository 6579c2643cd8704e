use serde_json::{Value, json};
use toolgate_package::Package;

use crate::sample::{document, package, parse, with, without};

/// The document is refused, with a problem at `pointer` whose message has these words.
fn refused(document: &Value, pointer: &str, words: &str) {
    refused_text(&document.to_string(), pointer, words);
}

fn refused_text(text: &str, pointer: &str, words: &str) {
    let problems = Package::parse(text.as_bytes()).expect_err("it must be refused");
    let told = |problem: &toolgate_kernel::problem::Problem| {
        problem.pointer == pointer && problem.message.contains(words)
    };
    assert!(
        problems.iter().any(told),
        "{pointer} {words:?} is not in {problems:?}"
    );
}

#[test]
fn a_valid_document_is_read_whole() {
    let read = package(&document());
    assert_eq!(read.id().as_str(), "time");
    assert_eq!(read.version().to_string(), "1.2.0");
    assert_eq!(read.tools()[0].name.as_str(), "get_time");
    assert!(read.tools()[0].executor_code.starts_with("return"));
    assert!(read.tools()[0].definition.get("executorCode").is_none());
    assert_eq!(
        read.permissions().written(),
        ["fetch:api.example.com", "fetch:*.example.org", "storage"]
    );
    assert!(read.dependencies()["units"].matches(&"1.4.0".parse().unwrap()));
    assert!(read.engine().unwrap().matches(&"0.1.0".parse().unwrap()));
    assert_eq!(read.document(), &document());
}

#[test]
fn what_a_store_noted_is_dropped() {
    let stored = with("/installedAt", json!("2026-11-17T09:00:00Z"));
    let read = package(&stored);
    assert_eq!(read.document(), &document());
    assert_eq!(read.hash(), package(&document()).hash());
}

#[test]
fn all_problems_are_told_at_once() {
    let broken = json!({
        "id": "Time", "version": "1.0", "engine": "newest", "extra": 1,
        "tools": [{ "name": "1st", "description": "", "parameters": { "type": "string" } }, 7],
        "permissions": ["root", "fetch:*"], "dependencies": { "Units": "x" },
    });
    let problems = parse(&broken).unwrap_err();
    let pointers: Vec<&str> = problems.iter().map(|problem| problem.pointer.as_str()).collect();
    for pointer in [
        "",
        "/id",
        "/version",
        "/engine",
        "/extra",
        "/tools/0",
        "/tools/0/name",
        "/tools/0/description",
        "/tools/0/parameters",
        "/tools/1",
        "/permissions/0",
        "/permissions/1",
        "/dependencies/Units",
    ] {
        assert!(pointers.contains(&pointer), "{pointer} is not in {pointers:?}");
    }
    assert_eq!(
        pointers.iter().filter(|pointer| **pointer == "/tools/1").count(),
        1,
        "one word is enough"
    );
}

#[test]
fn each_member_has_its_rule() {
    for id in ["", "-x", "Time", "a_b", "ü", &"a".repeat(65)] {
        refused(&with("/id", json!(id)), "/id", "");
    }
    refused(&with("/name", json!(" ")), "/name", "blank");
    refused(
        &with("/version", json!("1.2")),
        "/version",
        "expected one like \"1.2.0\"",
    );
    refused(&with("/tools", json!([])), "/tools", "at least one tool");
    refused(&with("/tools", json!({})), "/tools", "expected an array");
    refused(&without("/tools"), "", "\"tools\"");
    refused(&with("/engine", json!(null)), "/engine", "leave it out");
    refused(
        &with("/dependencies/time", json!("*")),
        "/dependencies/time",
        "itself",
    );
    refused(
        &with("/dependencies/units", json!("latest")),
        "/dependencies/units",
        "no version range",
    );
    refused(
        &with("/sourceUrl", json!("ftp://x")),
        "/sourceUrl",
        "expected an address",
    );
    refused(
        &with("/sourceUrl", json!("https://me:secret@x/")),
        "/sourceUrl",
        "without credentials",
    );
    refused(
        &with("/$schema", json!("urn:other")),
        "/$schema",
        "urn:toolgate:schema:plugin:1",
    );
    refused(&with("/contentHash", json!("ABC")), "/contentHash", "lower case");
    refused(&with("/author", json!("me")), "/author", "unknown member");
}

#[test]
fn a_tool_is_checked_by_the_rules_for_trusted_authors() {
    let remote = json!({ "type": "object", "properties": { "x": { "$ref": "https://example.com/s" } } });
    refused(
        &with("/tools/0/parameters", remote),
        "/tools/0/parameters/properties/x/$ref",
        "",
    );
    refused(
        &with("/tools/0/timeout", json!("long")),
        "/tools/0/timeout",
        "expected a number of seconds",
    );
    refused(
        &with("/tools/0/extra", json!(1)),
        "/tools/0/extra",
        "unknown member",
    );
    refused(
        &with("/tools/0/prerequisites", json!(["other"])),
        "/tools/0/prerequisites/0",
        "",
    );
    let twice = json!([document()["tools"][0], document()["tools"][0]]);
    refused(&with("/tools", twice), "/tools/1/name", "two tools are named");
    let mut case = document()["tools"][0].clone();
    case["name"] = json!("Get_Time");
    refused(
        &with("/tools", json!([document()["tools"][0], case])),
        "/tools/1/name",
        "only in case",
    );
}

#[test]
fn only_its_code_runs_a_tool() {
    refused(
        &with("/tools/0/executionType", json!("request")),
        "/tools/0/executionType",
        "leave this out",
    );
    refused(
        &with("/tools/0/execution", json!({ "static": 1 })),
        "/tools/0/execution",
        "leave this out",
    );
    refused(&without("/tools/0/executorCode"), "/tools/0", "executorCode");
    refused(
        &with("/tools/0/executorCode", json!(" \n")),
        "/tools/0/executorCode",
        "blank",
    );
    refused(
        &with("/tools/0/executorCode", json!(7)),
        "/tools/0/executorCode",
        "as a text",
    );
    let long = "x".repeat((256 << 10) + 1);
    refused(
        &with("/tools/0/executorCode", json!(long)),
        "/tools/0/executorCode",
        "at most 262144",
    );
}

#[test]
fn a_member_that_occurs_twice_is_refused() {
    let text = document().to_string();
    let id_twice = text.replacen('{', "{\"id\":\"other\",", 1);
    refused_text(&id_twice, "/id", "occurs twice");
    let deep = text.replace("\"zone\":{", "\"zone\":{\"type\":\"number\",");
    refused_text(&deep, "/tools/0/parameters/properties/zone/type", "occurs twice");
}

#[test]
fn a_number_that_others_read_differently_is_refused() {
    let at = "/tools/0/parameters/properties/zone/maxLength";
    for number in [
        "9007199254740992",
        "-9007199254740993",
        "18446744073709551616",
        "1e300",
    ] {
        let text = document()
            .to_string()
            .replace("\"zone\":{", &format!("\"zone\":{{\"maxLength\":{number},"));
        refused_text(&text, at, "2^53");
    }
}

#[test]
fn what_is_no_json_is_refused() {
    for text in [
        "",
        "{",
        "[]",
        "null",
        "\"x\"",
        "{} {}",
        "{\"id\": 1e999}",
        "{\"id\": \"\\ud800\"}",
    ] {
        let problems = Package::parse(text.as_bytes()).unwrap_err();
        assert!(!problems.is_empty(), "{text}");
    }
    let deep = format!("{}{}", "[".repeat(5_000), "]".repeat(5_000));
    assert!(
        Package::parse(deep.as_bytes()).unwrap_err()[0]
            .message
            .contains("recursion limit")
    );
}

#[test]
fn sizes_have_limits() {
    let big = with("/description", json!("x".repeat(1 << 20)));
    refused(&big, "", "at most 1048576");
    let tools: Vec<Value> = (0..65)
        .map(|index| {
            let mut tool = document()["tools"][0].clone();
            tool["name"] = json!(format!("tool_{index}"));
            tool
        })
        .collect();
    refused(&with("/tools", json!(tools)), "/tools", "at most 64");
    let needs: serde_json::Map<String, Value> =
        (0..33).map(|index| (format!("p{index}"), json!("*"))).collect();
    refused(
        &with("/dependencies", json!(needs)),
        "/dependencies",
        "at most 32",
    );
}

#[test]
fn many_problems_at_deep_pointers_take_no_time() {
    // A pointer made at every value would be 100 KB for each of 100,000 numbers.
    let open = format!("{{\"{}\":", "k".repeat(1_000)).repeat(100);
    let numbers = vec!["1e300"; 100_000].join(",");
    let text = format!("{open}[{numbers}]{}", "}".repeat(100));
    let problems = Package::parse(text.as_bytes()).unwrap_err();
    assert_eq!(problems.len(), 101, "a hundred, and that there are more");
}

#[test]
fn permissions_name_hosts_as_requests_have_them() {
    for (written, words) in [
        ("fetch:*", "no host"),
        ("fetch:*.com", "too wide"),
        ("fetch:https://example.com", "no host"),
        ("fetch:example.com/x", "no host"),
        ("fetch:example.com:80", "no host"),
        ("fetch:Example.com", "another way to write \"example.com\""),
        ("fetch:münchen.de", "xn--mnchen-3ya.de"),
        ("fetch:0x7f.1", "127.0.0.1"),
        ("fetch:a..b", "no host"),
        ("fetch:example.com.", "no host"),
        ("fetch:*.127.0.0.1", "no host"),
        ("fetch:", "no host"),
        ("Storage", "there is no permission"),
        ("", "there is no permission"),
    ] {
        refused(&with("/permissions", json!([written])), "/permissions/0", words);
    }
    refused(
        &with("/permissions", json!(["storage", "storage"])),
        "/permissions/1",
        "twice",
    );
    refused(
        &with("/permissions", json!([7])),
        "/permissions/0",
        "expected a permission",
    );
}

#[test]
fn a_pattern_matches_its_hosts_and_no_others() {
    let asked = package(&with(
        "/permissions",
        json!(["fetch:api.example.com", "fetch:*.example.org", "fetch:[::1]"]),
    ));
    let allows = |url: &str| asked.permissions().allows_fetch(&url.parse().unwrap());
    for url in [
        "https://api.example.com/x",
        "http://API.example.com:8080/",
        "https://api.example.com./",
        "https://a.example.org/",
        "https://a.b.example.org/",
        "http://[::1]:9/",
    ] {
        assert!(allows(url), "{url}");
    }
    for url in [
        "https://example.com/",
        "https://x.api.example.com/",
        "https://example.org/",
        "https://badexample.org/",
        "https://api.example.com.evil.net/",
        "https://.example.org/",
        "http://[::2]/",
        "http://127.0.0.1/",
        "https://api.example.com@evil.net/",
        "data:text/plain,x",
    ] {
        assert!(
            !url.parse()
                .is_ok_and(|url| asked.permissions().allows_fetch(&url)),
            "{url}"
        );
    }
}

#[test]
fn signed_members_come_together() {
    let hash = "0".repeat(64);
    let signed = with("/signature", json!("AAAA"));
    refused(&signed, "/signature", "\"contentHash\", \"curatorId\"");
    let half = crate::sample::changed(signed, "/contentHash", json!(hash));
    let half = crate::sample::changed(half, "/curatorId", json!("acme"));
    package(&half);
    let whole = crate::sample::changed(half, "/packageSignature", json!("AAAA"));
    refused(&whole, "/packageSignature", "\"packageHash\"");
    refused(&with("/signature", json!("A")), "/signature", "base64");
}
