//! The console's page and the way in to it, through the real binary.

use reqwest::{Method, Response};
use serde_json::{Value, json};

use crate::harness::{Api, Gateway, SECRET_KEY, binary};
use crate::start::Newcomer;

/// The code in what was printed.
fn code_in(printed: &str) -> String {
    let (_, rest) = printed.split_once("/login#code=").expect("a login link");
    rest.split_whitespace().next().expect("a code").to_owned()
}

/// A browser on the machine of the gateway, without a key.
struct Browser {
    api: Api,
    port: u16,
    /// Value of the session's cookie.
    cookie: String,
}

impl Browser {
    /// Signs in with a login code; gives the session too.
    async fn sign_in(port: u16, code: &str) -> (Self, Value) {
        let api = Api::secret(port).with_headers(vec![]);
        let signed_in = api
            .request(Method::POST, "/v1/sessions")
            .header("origin", format!("http://127.0.0.1:{port}"))
            .json(&json!({ "code": code }))
            .send()
            .await
            .expect("an answer");
        assert_eq!(signed_in.status(), 201);
        let set = signed_in.headers()["set-cookie"].to_str().unwrap().to_owned();
        let (named, _) = set.split_once(';').expect("attributes");
        let (name, cookie) = named.split_once('=').expect("a value");
        assert_eq!(name, format!("toolgate-session-{port}"));
        let cookie = cookie.to_owned();
        let session = signed_in.json().await.expect("JSON");
        (Self { api, port, cookie }, session)
    }

    async fn ask(&self, method: Method, path: &str, body: &Value) -> Response {
        let request = self.api.request(method, path).json(body);
        let cookie = format!("toolgate-session-{}={}", self.port, self.cookie);
        let asked = request
            .header("cookie", cookie)
            .header("accept", "application/json, text/event-stream");
        asked.send().await.expect("an answer")
    }

    /// The same browser after the gateway came back on another port.
    fn at(&self, port: u16) -> Self {
        Self {
            api: Api::secret(port).with_headers(vec![]),
            port,
            cookie: self.cookie.clone(),
        }
    }

    async fn is_signed_in(&self) -> bool {
        self.ask(Method::GET, "/v1/session", &json!({})).await.status() == 200
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_printed_link_signs_in_once_and_the_session_survives_a_kill() {
    let directory = tempfile::tempdir().unwrap();
    let (data, out) = (directory.path().join("data"), directory.path().join("out"));
    let mut first = Newcomer::start(&data, &out, &[]);
    first.ready().await;
    let printed = std::fs::read_to_string(&out).unwrap();
    if !toolgate_console::HAS_CONSOLE {
        assert!(printed.contains("built without the console"), "{printed}");
        assert!(
            !printed.contains("login#code"),
            "there is no page to sign in on: {printed}"
        );
        return;
    }
    assert!(
        printed.contains(&format!("http://127.0.0.1:{}/login#code=", first.port)),
        "{printed}"
    );
    let (browser, session) = Browser::sign_in(first.port, &code_in(&printed)).await;
    assert_eq!(session["project"]["name"], "default");
    assert!(browser.is_signed_in().await);
    drop(first);

    let mut second = Newcomer::start(&data, &out, &[]);
    second.ready().await;
    assert!(browser.at(second.port).is_signed_in().await);
    let fresh = code_in(&std::fs::read_to_string(&out).unwrap());
    assert_ne!(fresh, code_in(&printed), "every start makes a link of its own");
    Browser::sign_in(second.port, &fresh).await;
    // Programs have keys: their protocols never look at a cookie.
    let message = json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" });
    let asked = browser.at(second.port).ask(Method::POST, "/mcp", &message).await;
    assert_eq!(asked.status(), 401);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn toolgate_login_prints_a_link_that_works() {
    let gateway = Gateway::start(&[]).await;
    let url = format!("http://127.0.0.1:{}", gateway.address().port());
    let login = |key: &str| {
        let mut command = binary();
        command
            .args(["login", "--url", &url])
            .env("TOOLGATE_SECRET_KEY", key);
        command.output().expect("the binary starts")
    };
    let output = tokio::task::block_in_place(|| login(SECRET_KEY));
    assert!(output.status.success(), "{output:?}");
    let printed = String::from_utf8(output.stdout).unwrap();
    assert!(printed.starts_with(&format!("{url}/login#code=")), "{printed}");
    let (browser, _) = Browser::sign_in(gateway.address().port(), &code_in(&printed)).await;
    assert!(browser.is_signed_in().await);
    let refused = tokio::task::block_in_place(|| login("sk_wrong0123456789"));
    assert!(
        !refused.status.success() && refused.stdout.is_empty(),
        "{refused:?}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_page_is_served_with_a_strict_policy_and_never_instead_of_an_error_of_the_api() {
    let gateway = Gateway::start(&[]).await;
    let browser = Api::secret(gateway.address().port()).with_headers(vec![("accept", "text/html".into())]);
    let get = async |path: &str| {
        browser
            .request(Method::GET, path)
            .send()
            .await
            .expect("an answer")
    };
    for path in ["/", "/login", "/runs/anything"] {
        let page = get(path).await;
        assert_eq!(page.status(), 200, "{path}");
        let policy = page.headers()["content-security-policy"].to_str().unwrap();
        assert!(
            policy.contains("default-src 'none'") && !policy.contains("unsafe"),
            "{policy}"
        );
        assert!(page.headers().contains_key("x-request-id"));
        assert!(page.text().await.unwrap().contains("<html"));
    }
    for path in ["/v1/nothing", "/api/nothing", "/assets/gone.js"] {
        let missing = get(path).await;
        assert_eq!(missing.status(), 404, "{path}");
        assert_eq!(missing.headers()["content-type"], "application/problem+json");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_gateway_without_a_console_serves_no_page_and_prints_no_link() {
    let directory = tempfile::tempdir().unwrap();
    let (data, out) = (directory.path().join("data"), directory.path().join("out"));
    let settings = directory.path().join("toolgate.toml");
    std::fs::write(&settings, "[console]\nenabled = false\n").unwrap();
    let mut gateway = Newcomer::start(&data, &out, &["--config", settings.to_str().unwrap()]);
    let api = gateway.ready().await;
    assert_eq!(api.get("/").await.status, 404);
    let printed = std::fs::read_to_string(&out).unwrap();
    assert!(!printed.contains("login#code"), "{printed}");
}
