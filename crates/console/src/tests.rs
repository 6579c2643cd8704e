use super::*;

static SITE: &[File] = &[
    file("/index.html", b"<p>page"),
    File {
        brotli: Some(b"br"),
        gzip: Some(b"gz"),
        ..file("/assets/main-Ab3_-x9Z.js", b"console.log(1)")
    },
    file("/favicon.svg", b"<svg>"),
];

const fn file(path: &'static str, identity: &'static [u8]) -> File {
    File {
        path,
        hash: 7,
        identity,
        brotli: None,
        gzip: None,
    }
}

fn ask(path: &str, headers: &[(&'static str, &'static str)]) -> Option<Response<Bytes>> {
    let mut map = HeaderMap::new();
    for (name, value) in headers {
        map.append(*name, HeaderValue::from_static(value));
    }
    answer(SITE, &Method::GET, path, &map)
}

const BROWSER: (&str, &str) = ("accept", "text/html,application/xhtml+xml,*/*;q=0.8");

fn header<'a>(response: &'a Response<Bytes>, name: &str) -> &'a str {
    response
        .headers()
        .get(name)
        .map_or("", |value| value.to_str().unwrap())
}

#[test]
fn a_browser_gets_the_page_at_every_address_that_is_no_protocols() {
    for path in ["/", "/login", "/runs/run_1", "/v1beta"] {
        let page = ask(path, &[BROWSER]).unwrap_or_else(|| panic!("{path}"));
        assert_eq!(page.body(), "<p>page");
        assert_eq!(header(&page, "content-type"), "text/html; charset=utf-8");
        assert_eq!(header(&page, "cache-control"), "no-cache");
    }
    for path in [
        "/v1",
        "/v1/nothing",
        "/api/x",
        "/mcp/x",
        "/a2a",
        "/.well-known/x",
        "/assets/gone-00000000.js",
    ] {
        assert!(ask(path, &[BROWSER]).is_none(), "{path}");
    }
    assert!(ask("/login", &[("accept", "application/json")]).is_none());
    assert!(answer(SITE, &Method::POST, "/", &HeaderMap::new()).is_none());
}

#[test]
fn nothing_but_the_gateways_own_files_may_run_in_the_page() {
    let page = ask("/", &[BROWSER]).unwrap();
    let policy = header(&page, "content-security-policy");
    assert!(
        policy.starts_with("default-src 'none'; script-src 'self';"),
        "{policy}"
    );
    assert!(
        !policy.contains("unsafe") && !policy.contains('*') && !policy.contains("http"),
        "{policy}"
    );
    assert!(policy.contains("frame-ancestors 'none'") && policy.contains("base-uri 'none'"));
    assert_eq!(header(&page, "x-content-type-options"), "nosniff");
    assert_eq!(header(&page, "referrer-policy"), "no-referrer");
    assert_eq!(header(&page, "cross-origin-opener-policy"), "same-origin");
}

#[test]
fn a_file_is_sent_in_the_best_form_that_the_client_takes() {
    let script = "/assets/main-Ab3_-x9Z.js";
    let told = |accepts: &'static str| {
        let sent = ask(script, &[("accept-encoding", accepts)]).unwrap();
        (header(&sent, "content-encoding").to_owned(), sent.body().clone())
    };
    assert_eq!(told("gzip, br"), ("br".into(), Bytes::from_static(b"br")));
    assert_eq!(told("gzip"), ("gzip".into(), Bytes::from_static(b"gz")));
    assert_eq!(
        told("zstd"),
        (String::new(), Bytes::from_static(b"console.log(1)"))
    );
    let sent = ask(script, &[]).unwrap();
    assert_eq!(header(&sent, "vary"), "accept-encoding");
    assert_eq!(header(&sent, "content-length"), "14");
    assert_eq!(
        header(&sent, "cache-control"),
        "public, max-age=31536000, immutable"
    );
    assert_eq!(
        header(&ask("/favicon.svg", &[]).unwrap(), "cache-control"),
        "no-cache"
    );
}

#[test]
fn what_a_browser_has_is_not_sent_again() {
    let etag = "W/\"0000000000000007\"";
    let first = ask("/favicon.svg", &[]).unwrap();
    assert_eq!(header(&first, "etag"), etag);
    for known in [etag, "\"0000000000000007\"", "\"x\", W/\"0000000000000007\"", "*"] {
        let again = ask("/favicon.svg", &[("if-none-match", known)]).unwrap();
        assert_eq!((again.status().as_u16(), again.body().len()), (304, 0), "{known}");
    }
    let other = ask("/favicon.svg", &[("if-none-match", "W/\"0000000000000008\"")]).unwrap();
    assert_eq!(other.status(), 200);
    let head = answer(SITE, &Method::HEAD, "/favicon.svg", &HeaderMap::new()).unwrap();
    assert_eq!((header(&head, "content-length"), head.body().len()), ("5", 0));
}

#[test]
fn the_binary_has_a_page_whether_or_not_the_console_was_built() {
    let page = respond(&Method::GET, "/", &HeaderMap::new()).unwrap();
    let text = std::str::from_utf8(page.body()).unwrap();
    assert!(text.to_lowercase().contains("<!doctype html>"), "{text}");
    assert_eq!(text.contains("make console"), !HAS_CONSOLE);
}
