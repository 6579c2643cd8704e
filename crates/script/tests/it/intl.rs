//! Dates and numbers are written as Node writes them. `tests/fixtures/intl.json` is what Node made of `intl.txt`.

use crate::run;

#[test]
fn dates_and_numbers_are_written_as_node_writes_them() {
    let cases: Vec<(String, String)> =
        serde_json::from_str(include_str!("../fixtures/intl.json")).expect("pairs of code and text");
    let mut wrong = Vec::new();
    for (code, expected) in &cases {
        let guarded = format!(
            "try {{ return {code} }} catch (error) {{ return `${{error.name}}: ${{error.message}}` }}"
        );
        let got = run(&guarded).expect("it runs");
        let got: String = serde_json::from_str(&got).expect("a text");
        if got != *expected {
            wrong.push(format!("{code}\n  Node {expected:?}\n  here {got:?}"));
        }
    }
    assert!(
        wrong.is_empty(),
        "{} of {}:\n{}",
        wrong.len(),
        cases.len(),
        wrong.join("\n")
    );
}

#[test]
fn a_locale_that_is_not_known_is_written_as_en_us_and_the_log_says_so_once() {
    let mut host = crate::Echo::default();
    let code = "return [(1234.5).toLocaleString('de-DE'), new Date(0).toLocaleDateString('fr')]";
    let got = crate::run_with(code, "{}", crate::LIMITS, &mut host);
    assert_eq!(got.as_deref(), Ok(r#"["1,234.5","1/1/1970"]"#));
    assert_eq!(
        host.log,
        ["Warn the locale de-DE is not known here; numbers and dates are written as in en-US"]
    );
}
