//! `web_fetch`: pages as a model reads them.

use axum::response::Response;
use serde_json::{Value, json};
use toolgate_engine::tools::CallFailure;
use toolgate_kernel::call::ErrorCode;
use toolgate_tools::{Manners, OutboundSettings};

use crate::server::{Asked, Server, redirect, run, toolkit, toolkit_in, typed, world};

async fn fetch(server: &Server, input: Value) -> Result<Value, CallFailure> {
    run(
        &toolkit(&[server]),
        "prebuilt",
        json!({"action": "web_fetch"}),
        input,
    )
    .await
}

/// A server with a `robots.txt` that forbids `/private`, and these pages.
async fn site(pages: impl Fn(&str) -> Response + Send + Sync + 'static) -> Server {
    Server::start(move |asked, _| match asked.target.as_str() {
        "/robots.txt" => typed(200, "text/plain", "User-agent: *\nDisallow: /private\n"),
        target => pages(target),
    })
    .await
}

fn article() -> String {
    let paragraph = "<p>The tide comes in twice a day, and with it come the birds that feed on the flats, as <a href='/birds'>many</a> have seen.</p>";
    format!(
        "<html><head><title>Tides</title><script>track()</script></head><body><nav><a href='/'>Home</a></nav>\
         <article><h1>Tides</h1>{}<ul><li>ebb</li><li>flow</li></ul></article><footer>Imprint</footer></body></html>",
        paragraph.repeat(6)
    )
}

#[tokio::test]
async fn an_article_becomes_markdown_without_what_is_around_it() {
    let server = site(|target| match target {
        "/old" => redirect(301, "/tides"),
        _ => typed(200, "text/html; charset=utf-8", article()),
    })
    .await;
    let told = fetch(&server, json!({"url": server.url("/old")})).await.unwrap();
    assert_eq!(told["url"], server.url("/tides"));
    assert_eq!(told["title"], "Tides");
    assert_eq!(told["truncated"], false);
    let content = told["content"].as_str().unwrap();
    assert!(
        content.contains(&format!("[many]({})", server.url("/birds"))),
        "{content}"
    );
    for unwanted in ["track()", "<p>", "Imprint"] {
        assert!(!content.contains(unwanted), "{content}");
    }
}

#[tokio::test]
async fn a_long_page_is_cut_where_the_model_wants() {
    let server = site(|_| typed(200, "text/plain", "é".repeat(60_000))).await;
    let length = |told: Value| {
        (
            told["content"].as_str().unwrap().chars().count(),
            told["truncated"].clone(),
        )
    };
    let told = fetch(&server, json!({"url": server.url("/")})).await.unwrap();
    assert_eq!(length(told), (50_000, json!(true)));
    let told = fetch(&server, json!({"url": server.url("/"), "maxLength": 7}))
        .await
        .unwrap();
    assert_eq!(length(told), (7, json!(true)));
    let told = fetch(&server, json!({"url": server.url("/"), "maxLength": 60_000}))
        .await
        .unwrap();
    assert_eq!(length(told), (60_000, json!(false)));
}

#[tokio::test]
async fn a_page_that_is_built_to_exhaust_a_reader_gives_its_words() {
    let server = site(|target| {
        let open = if target == "/deep" { "<div>" } else { "<div></b>" };
        typed(
            200,
            "text/html",
            format!("{}words at the bottom", open.repeat(100_000)),
        )
    })
    .await;
    for path in ["/deep", "/crooked"] {
        let told = fetch(&server, json!({"url": server.url(path)})).await.unwrap();
        assert_eq!(told["content"], "words at the bottom", "{path}");
    }
}

#[tokio::test]
async fn markdown_stays_and_other_letters_are_read() {
    let server = site(|target| match target {
        "/md" => typed(200, "text/markdown", "# Title\n\n* one <b>\n"),
        "/latin" => typed(200, "text/plain; charset=iso-8859-1", &b"\xe9tage"[..]),
        _ => typed(200, "image/png", "png"),
    })
    .await;
    let told = fetch(&server, json!({"url": server.url("/md")})).await.unwrap();
    assert_eq!(
        (&told["title"], &told["content"]),
        (&json!("Title"), &json!("# Title\n\n* one <b>\n"))
    );
    let told = fetch(&server, json!({"url": server.url("/latin")}))
        .await
        .unwrap();
    assert_eq!(told["content"], "étage");
    let failed = fetch(&server, json!({"url": server.url("/image")}))
        .await
        .unwrap_err();
    assert_eq!(failed.message, "the page is image/png, which has no text to read");
}

#[tokio::test]
async fn what_the_owner_forbids_is_left_alone_unless_the_operator_says_otherwise() {
    let server = site(|_| typed(200, "text/plain", "inside")).await;
    let page = json!({"url": server.url("/private/x")});
    let failed = fetch(&server, page.clone()).await.unwrap_err();
    assert_eq!(failed.code, ErrorCode::PermissionDenied);
    assert!(failed.message.contains("robots.txt"));
    assert_eq!(server.asked().len(), 1);
    let blunt = toolkit_in(OutboundSettings {
        manners: Manners::Blunt,
        ..world(&[&server])
    });
    let told = run(&blunt, "prebuilt", json!({"action": "web_fetch"}), page)
        .await
        .unwrap();
    assert_eq!(told["content"], "inside");
}

#[tokio::test]
async fn every_owner_on_the_way_is_asked() {
    let end = site(|_| typed(200, "text/plain", "inside")).await;
    let (forbidden, open) = (end.url("/private/x"), end.url("/page"));
    let start = site(move |target| match target {
        "/to-forbidden" => redirect(302, &forbidden),
        _ => redirect(302, &open),
    })
    .await;
    let follow = async |path: &str| {
        let toolkit = toolkit(&[&start, &end]);
        let input = json!({"url": start.url(path)});
        run(&toolkit, "prebuilt", json!({"action": "web_fetch"}), input).await
    };
    let failed = follow("/to-forbidden").await.unwrap_err();
    assert_eq!(failed.code, ErrorCode::PermissionDenied);
    assert!(failed.message.contains("robots.txt"));
    let targets = |asked: Vec<Asked>| asked.into_iter().map(|asked| asked.target).collect::<Vec<_>>();
    assert_eq!(targets(end.asked()), ["/robots.txt"]);
    assert_eq!(follow("/to-open").await.unwrap()["content"], "inside");
    assert_eq!(targets(end.asked())[1..], ["/robots.txt", "/page"]);
}

#[tokio::test]
async fn a_pdf_is_read_by_what_it_is_or_what_it_says_it_is() {
    const PDF: &[u8] = include_bytes!("../fixtures/pdf/compressed.pdf");
    let server = site(|target| match target {
        "/named" => typed(200, "application/pdf", PDF),
        "/unnamed" => typed(200, "application/octet-stream", PDF),
        "/long" => typed(200, "application/pdf", [PDF, &[b' '; 8 << 20]].concat()),
        _ => typed(200, "application/pdf", &PDF[..300]),
    })
    .await;
    for path in ["/named", "/unnamed"] {
        let told = fetch(&server, json!({"url": server.url(path), "maxLength": 14}))
            .await
            .unwrap();
        let expected = json!({"url": server.url(path), "title": "Licht 💡", "content": "The lighthouse", "truncated": true});
        assert_eq!(told, expected);
    }
    for (path, words) in [
        ("/broken", "the PDF"),
        ("/long", "the PDF is longer than 8388608 bytes"),
    ] {
        let failed = fetch(&server, json!({"url": server.url(path)}))
            .await
            .unwrap_err();
        assert_eq!(failed.code, ErrorCode::ExecutionFailed);
        assert!(failed.message.contains(words), "{failed}");
    }
}

#[tokio::test]
async fn inner_addresses_and_what_is_no_address_are_refused() {
    let server = site(|target| match target {
        "/away" => redirect(302, "http://169.254.169.254/latest/meta-data/"),
        _ => typed(404, "text/plain", "no"),
    })
    .await;
    for (url, code) in [
        ("http://2130706433/", ErrorCode::PermissionDenied),
        ("http://[::1]/", ErrorCode::PermissionDenied),
        ("file:///etc/passwd", ErrorCode::PermissionDenied),
        ("data:text/plain,x", ErrorCode::PermissionDenied),
        ("mailto:a@example.com", ErrorCode::PermissionDenied),
        (&server.url("/away"), ErrorCode::PermissionDenied),
        (&server.url("/none"), ErrorCode::ExecutionFailed),
        ("example.com", ErrorCode::ValidationFailed),
    ] {
        let failed = fetch(&server, json!({ "url": url })).await.unwrap_err();
        assert_eq!(failed.code, code, "{url}: {failed}");
    }
}
