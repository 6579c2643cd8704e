//! Sessions of the console, and what attackers try with them.

use std::time::Duration;

use axum::body::Body;
use http::Method;
use serde_json::{Value, json};
use toolgate_access::{Auth, Maker, SessionLimits};
use toolgate_engine::revocation::Revoked;
use toolgate_testkit_http::client::{Client, Stream, Told};
use toolgate_testkit_http::world::OPERATOR;

use crate::world::{World, project};

const HOST: &str = "127.0.0.1:8787";
const ORIGIN: &str = "http://127.0.0.1:8787";

/// A page of the gateway in a browser without a cookie.
fn page(world: &World) -> Client<'_> {
    world.nobody().with("host", HOST).with("origin", ORIGIN)
}

/// A login code that was made with the test project's secret key.
async fn code(world: &World) -> String {
    let backend = world.backend().with("host", HOST);
    let made = backend.post("/v1/login-codes", json!({})).await.expect(201);
    let code = made["code"].as_str().unwrap().to_owned();
    assert_eq!(made["url"], format!("{ORIGIN}/login#code={code}"));
    code
}

/// A browser that has signed in: its cookie, its token, its session.
struct Browser<'w> {
    world: &'w World,
    cookie: String,
    csrf: String,
    id: String,
}

async fn sign_in(world: &World) -> Browser<'_> {
    sign_in_with(world, &code(world).await).await
}

async fn sign_in_with<'w>(world: &'w World, code: &str) -> Browser<'w> {
    let told = page(world).post("/v1/sessions", json!({ "code": code })).await;
    let cookie = told.header("set-cookie").split(';').next().unwrap().to_owned();
    let set = told.header("set-cookie").to_owned();
    assert!(
        set.contains("HttpOnly") && set.contains("SameSite=Strict"),
        "{set}"
    );
    let session = told.expect(201);
    let member = |name: &str| session[name].as_str().unwrap().to_owned();
    Browser {
        world,
        cookie,
        csrf: member("csrfToken"),
        id: member("id"),
    }
}

impl<'w> Browser<'w> {
    /// A request of one of the gateway's pages.
    fn own(&self) -> Client<'w> {
        self.bare()
            .with("origin", ORIGIN)
            .with("x-toolgate-csrf", &self.csrf)
    }
    /// A request with the cookie and nothing else.
    fn bare(&self) -> Client<'w> {
        self.world
            .nobody()
            .with("host", HOST)
            .with("cookie", &self.cookie)
    }
    async fn is_signed_in(&self) -> bool {
        let told = self.bare().get("/v1/session").await;
        match told.status.as_u16() {
            200 => true,
            401 => false,
            other => panic!("{other}: {}", told.body),
        }
    }
}

/// Lets this much time pass.
fn wait(world: &World, span: Duration) {
    world.clock.jump(span.as_millis() as i64);
}

/// The stream says that access has ended, and ends.
async fn assert_access_ends(mut stream: Stream) {
    let mut last = String::new();
    while let Some(block) = stream.block().await {
        last = block;
    }
    assert!(last.contains("ACCESS_ENDED"), "{last}");
}

fn ids(list: &Value) -> Vec<String> {
    let sessions = list["sessions"].as_array().unwrap().iter();
    sessions
        .map(|session| session["id"].as_str().unwrap().to_owned())
        .collect()
}

#[tokio::test]
async fn a_login_code_becomes_a_session_that_acts_as_the_projects_backend() {
    let world = World::new().await;
    assert_eq!(page(&world).get("/v1/session").await.code(401), "UNAUTHENTICATED");
    let browser = sign_in(&world).await;
    let own = browser.bare().get("/v1/session").await.expect(200);
    assert_eq!(own["kind"], "session");
    assert_eq!(own["project"], json!({ "id": project(1), "name": "test" }));
    assert_eq!(own["operator"], false);
    assert_eq!(
        own["csrfToken"], browser.csrf,
        "a page that was loaded again learns it here"
    );
    browser
        .own()
        .put("/v1/agents/other", crate::world::agent())
        .await
        .expect(201);
    browser.bare().get("/v1/agents/other").await.expect(200);
    assert_eq!(browser.own().get("/v1/projects").await.code(403), "FORBIDDEN");
    let key = world.backend().get("/v1/session").await.expect(200);
    assert_eq!((&key["kind"], &key["csrfToken"]), (&json!("key"), &Value::Null));
    assert_eq!(world.user("ada").get("/v1/session").await.code(403), "FORBIDDEN");
}

#[tokio::test]
async fn a_code_is_good_once() {
    let world = World::new().await;
    let code = code(&world).await;
    let first = sign_in_with(&world, &code).await;
    let again = page(&world).post("/v1/sessions", json!({ "code": code })).await;
    assert_eq!(again.header("set-cookie"), "");
    assert_eq!(again.code(401), "LOGIN_CODE_INVALID");
    assert!(first.is_signed_in().await);
}

#[tokio::test]
async fn a_code_that_two_show_at_once_signs_one_of_them_in() {
    let world = World::new().await;
    let code = code(&world).await;
    let body = json!({ "code": code });
    let (here, there) = (page(&world), page(&world));
    let both = tokio::join!(
        here.post("/v1/sessions", body.clone()),
        there.post("/v1/sessions", body)
    );
    let mut told = [both.0.status.as_u16(), both.1.status.as_u16()];
    told.sort_unstable();
    assert_eq!(told, [201, 401]);
}

#[tokio::test]
async fn a_code_expires_and_what_is_no_code_is_none() {
    let world = World::new().await;
    let code = code(&world).await;
    wait(&world, Duration::from_secs(15 * 60));
    let late = page(&world).post("/v1/sessions", json!({ "code": code })).await;
    assert_eq!(late.code(401), "LOGIN_CODE_INVALID");
    let browser = sign_in(&world).await;
    let (_, cookie) = browser.cookie.split_once('=').unwrap();
    for odd in ["x", cookie, &format!("{code}A"), &code[1..]] {
        let told = page(&world).post("/v1/sessions", json!({ "code": odd })).await;
        assert_eq!(told.code(401), "LOGIN_CODE_INVALID", "{odd}");
    }
    page(&world)
        .post("/v1/sessions", json!({ "code": "" }))
        .await
        .expect(422);
}

#[tokio::test]
async fn whoever_guesses_a_codes_secret_is_slowed_down_and_nobody_else_is() {
    let world = World::new().await;
    let mut guess = code(&world).await;
    // Both end a code without stray bits: one that cannot be decoded is refused before it is counted.
    let last = if guess.pop() == Some('A') { 'E' } else { 'A' };
    guess.push(last);
    let mut told = Vec::new();
    for _ in 0..20 {
        told.push(
            page(&world)
                .post("/v1/sessions", json!({ "code": guess }))
                .await
                .status
                .as_u16(),
        );
    }
    assert_eq!(told[0], 401);
    assert!(told.contains(&429), "{told:?}");
    sign_in(&world).await;
}

#[tokio::test]
async fn what_changes_something_needs_the_token_and_an_own_page() {
    let world = World::new().await;
    let browser = sign_in(&world).await;
    let other = sign_in(&world).await;
    let put = async |client: Client<'_>| client.put("/v1/agents/other", crate::world::agent()).await;
    let from = |origin: &str| {
        browser
            .bare()
            .with("origin", origin)
            .with("x-toolgate-csrf", &browser.csrf)
    };
    let refused: [(&str, Client<'_>); 6] = [
        ("the cookie alone", browser.bare()),
        ("no token", browser.bare().with("origin", ORIGIN)),
        ("no origin", browser.bare().with("x-toolgate-csrf", &browser.csrf)),
        (
            "the token of another session",
            browser
                .bare()
                .with("origin", ORIGIN)
                .with("x-toolgate-csrf", &other.csrf),
        ),
        (
            "a part of the token",
            browser
                .bare()
                .with("origin", ORIGIN)
                .with("x-toolgate-csrf", &browser.csrf[1..]),
        ),
        (
            "an empty token",
            browser.bare().with("origin", ORIGIN).with("x-toolgate-csrf", ""),
        ),
    ];
    for (what, client) in refused {
        assert_eq!(put(client).await.code(403), "CSRF", "{what}");
    }
    // From elsewhere the cookie is as good as none.
    for origin in [
        "https://evil.example",
        "http://127.0.0.1:3000",
        "http://localhost:8787",
        "null",
    ] {
        assert_eq!(put(from(origin)).await.code(401), "UNAUTHENTICATED", "{origin}");
    }
    for site in ["cross-site", "same-site"] {
        let client = browser.own().with("sec-fetch-site", site);
        assert_eq!(put(client).await.code(401), "UNAUTHENTICATED", "{site}");
    }
    put(browser.own()).await.expect(201);
}

#[tokio::test]
async fn a_form_of_another_page_does_nothing() {
    let world = World::new().await;
    let browser = sign_in(&world).await;
    for kind in [
        "application/x-www-form-urlencoded",
        "text/plain",
        "multipart/form-data",
    ] {
        let form = browser
            .bare()
            .with("origin", "https://evil.example")
            .with("content-type", kind);
        let told = form
            .send(Method::POST, "/v1/runs", Body::from("text=hello"))
            .await;
        assert_eq!(told.code(401), "UNAUTHENTICATED", "{kind}");
        let told = browser.bare().with("content-type", kind);
        let told = told
            .send(Method::POST, "/v1/runs", Body::from("text=hello"))
            .await;
        assert_eq!(told.code(403), "CSRF", "{kind}");
    }
    let runs = world.backend().get("/v1/runs").await.expect(200);
    assert_eq!(runs["runs"], json!([]));
}

#[tokio::test]
async fn another_page_cannot_sign_a_browser_in() {
    let world = World::new().await;
    let code = code(&world).await;
    let from = |origin: &str| world.nobody().with("host", HOST).with("origin", origin);
    for client in [
        from("https://evil.example"),
        from("http://127.0.0.1:3000"),
        world.nobody(),
    ] {
        let told = client.post("/v1/sessions", json!({ "code": code })).await;
        assert_eq!(told.code(403), "CSRF");
    }
    sign_in_with(&world, &code).await;
}

#[tokio::test]
async fn a_cookie_that_somebody_else_chose_is_never_taken_over() {
    let world = World::new().await;
    let attacker = sign_in(&world).await;
    // The victim's browser was given the attacker's cookie; signing in replaces it and ends that session.
    let told = attacker.bare().with("origin", ORIGIN);
    let told = told
        .post("/v1/sessions", json!({ "code": code(&world).await }))
        .await;
    let cookie = told.header("set-cookie").split(';').next().unwrap().to_owned();
    let session = told.expect(201);
    assert_ne!(cookie, attacker.cookie);
    assert_ne!(session["id"], attacker.id);
    assert!(!attacker.is_signed_in().await);
    for made_up in [
        "toolgate-session-8787=",
        "toolgate-session-8787=AAAA",
        "toolgate-session=x",
    ] {
        let client = world.nobody().with("host", HOST).with("cookie", made_up);
        assert_eq!(
            client.get("/v1/runs").await.code(401),
            "UNAUTHENTICATED",
            "{made_up}"
        );
    }
}

#[tokio::test]
async fn a_stolen_cookie_is_worth_nothing_after_signing_out() {
    let world = World::new().await;
    let browser = sign_in(&world).await;
    let out: Told = browser.own().delete("/v1/session").await;
    assert!(
        out.header("set-cookie").contains("=; Path=/; Max-Age=0;"),
        "{}",
        out.header("set-cookie")
    );
    out.expect(204);
    assert_eq!(browser.bare().get("/v1/runs").await.code(401), "UNAUTHENTICATED");
    assert_eq!(
        browser.own().delete("/v1/session").await.code(401),
        "UNAUTHENTICATED"
    );
}

#[tokio::test]
async fn sessions_are_listed_and_ended_one_by_one_or_all_at_once() {
    let world = World::new().await;
    let (first, second) = (sign_in(&world).await, sign_in(&world).await);
    wait(&world, Duration::from_secs(1));
    let third = sign_in(&world).await;
    let list = first.bare().get("/v1/sessions").await.expect(200);
    assert_eq!(ids(&list)[0], third.id, "the one that was used last comes first");
    assert_eq!(ids(&list).len(), 3);
    let current: Vec<_> = list["sessions"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|s| s["current"] == true)
        .collect();
    assert_eq!(current.len(), 1);
    assert_eq!(current[0]["id"], first.id);
    let path = format!("/v1/sessions/{}", second.id);
    first.own().delete(&path).await.expect(204);
    first.own().delete(&path).await.expect(404);
    assert!(!second.is_signed_in().await && first.is_signed_in().await);
    world.backend().delete("/v1/sessions").await.expect(204);
    assert!(!first.is_signed_in().await && !third.is_signed_in().await);
    assert_eq!(
        ids(&world.backend().get("/v1/sessions").await.expect(200)).len(),
        0
    );
}

#[tokio::test]
async fn a_session_reaches_nothing_of_another_project() {
    let world = World::new().await;
    let browser = sign_in(&world).await;
    let theirs = world.stranger().post("/v1/spaces", json!({})).await.expect(201);
    let space = theirs["id"].as_str().unwrap();
    browser
        .own()
        .get(&format!("/v1/spaces/{space}"))
        .await
        .expect(404);
    assert_eq!(
        ids(&world.stranger().get("/v1/sessions").await.expect(200)).len(),
        0
    );
    let path = format!("/v1/sessions/{}", browser.id);
    world.stranger().delete(&path).await.expect(404);
    world.stranger().delete("/v1/sessions").await.expect(204);
    assert!(browser.is_signed_in().await);
}

#[tokio::test]
async fn a_session_ends_when_it_is_idle_and_after_its_lifetime_however_much_it_is_used() {
    let hour = Duration::from_secs(3600);
    let limits = SessionLimits {
        idle: 2 * hour,
        lifetime: 5 * hour,
        per_project: 100,
    };
    let world = World::with(|settings| settings.sessions = limits).await;
    let (idle, used) = (sign_in(&world).await, sign_in(&world).await);
    for at in 1..5 {
        wait(&world, hour);
        assert!(used.is_signed_in().await, "after {at} hours");
    }
    assert!(!idle.is_signed_in().await);
    wait(&world, hour);
    assert!(!used.is_signed_in().await, "its lifetime is over");
    assert_eq!(
        ids(&world.backend().get("/v1/sessions").await.expect(200)).len(),
        0
    );
}

#[tokio::test]
async fn a_project_has_so_many_sessions_and_the_least_recently_used_ends() {
    let limits = SessionLimits {
        per_project: 2,
        ..SessionLimits::default()
    };
    let world = World::with(|settings| settings.sessions = limits).await;
    let first = sign_in(&world).await;
    wait(&world, Duration::from_secs(1));
    let second = sign_in(&world).await;
    wait(&world, Duration::from_secs(1));
    let third = sign_in(&world).await;
    assert!(!first.is_signed_in().await);
    assert!(second.is_signed_in().await && third.is_signed_in().await);
}

#[tokio::test]
async fn a_removed_key_ends_the_sessions_that_were_made_with_it_and_their_streams() {
    let world = World::new().await;
    let made = world
        .backend()
        .post("/v1/keys", json!({ "kind": "secret" }))
        .await
        .expect(201);
    let bearer = format!("Bearer {}", made["key"].as_str().unwrap());
    let with_key = world.nobody().with("host", HOST).with("authorization", &bearer);
    let code = with_key.post("/v1/login-codes", json!({})).await.expect(201);
    let waiting = with_key.post("/v1/login-codes", json!({})).await.expect(201);
    let by_key = sign_in_with(&world, code["code"].as_str().unwrap()).await;
    let other = sign_in(&world).await;
    let space = world.backend().post("/v1/spaces", json!({})).await.expect(201);
    let path = format!("/v1/spaces/{}/events", space["id"].as_str().unwrap());
    let stream = by_key.bare().follow(&path).await;
    let key = format!("/v1/keys/{}", made["id"].as_str().unwrap());
    world.backend().delete(&key).await.expect(204);
    assert!(!by_key.is_signed_in().await && other.is_signed_in().await);
    assert_access_ends(stream).await;
    let late = page(&world)
        .post("/v1/sessions", json!({ "code": waiting["code"] }))
        .await;
    assert_eq!(late.code(401), "LOGIN_CODE_INVALID");
}

#[tokio::test]
async fn ending_a_session_ends_its_streams_at_once_and_no_others() {
    let world = World::new().await;
    let (ended, other) = (sign_in(&world).await, sign_in(&world).await);
    let space = world.backend().post("/v1/spaces", json!({})).await.expect(201);
    let path = format!("/v1/spaces/{}/events", space["id"].as_str().unwrap());
    let (stream, mut others) = (ended.bare().follow(&path).await, other.bare().follow(&path).await);
    other
        .own()
        .delete(&format!("/v1/sessions/{}", ended.id))
        .await
        .expect(204);
    assert_access_ends(stream).await;
    let message = format!("/v1/spaces/{}/messages", space["id"].as_str().unwrap());
    other.own().post(&message, json!({ "text": "still there" })).await;
    others.until("message").await;
}

#[tokio::test]
async fn a_header_wins_over_a_cookie() {
    let world = World::new().await;
    let browser = sign_in(&world).await;
    let both = world
        .stranger()
        .with("host", HOST)
        .with("cookie", &browser.cookie);
    let told = both.get("/v1/session").await.expect(200);
    assert_eq!(
        (&told["kind"], &told["project"]["name"]),
        (&json!("key"), &json!("other"))
    );
    // And needs no token.
    both.post("/v1/spaces", json!({})).await.expect(201);
    let wrong = browser.own().with("authorization", "Bearer sk_wrong0123456789");
    assert_eq!(wrong.get("/v1/session").await.code(401), "UNAUTHENTICATED");
}

#[tokio::test]
async fn only_a_key_makes_login_codes() {
    let world = World::new().await;
    let browser = sign_in(&world).await;
    let told = browser.own().post("/v1/login-codes", json!({})).await;
    assert_eq!(told.code(403), "FORBIDDEN");
    assert_eq!(
        world
            .user("ada")
            .post("/v1/login-codes", json!({}))
            .await
            .code(403),
        "FORBIDDEN"
    );
    assert_eq!(
        world.nobody().post("/v1/login-codes", json!({})).await.code(401),
        "UNAUTHENTICATED"
    );
    let named = world
        .backend()
        .post("/v1/login-codes", json!({ "project": "other" }))
        .await;
    assert_eq!(named.code(403), "FORBIDDEN");
}

#[tokio::test]
async fn the_operators_link_opens_a_named_project_and_manages_all() {
    let world = World::new().await;
    let operator = world
        .nobody()
        .with("authorization", &format!("Bearer {OPERATOR}"));
    let unknown = operator
        .post("/v1/login-codes", json!({ "project": "none" }))
        .await;
    unknown.expect(404);
    let made = operator
        .post("/v1/login-codes", json!({ "project": "other" }))
        .await
        .expect(201);
    let browser = sign_in_with(&world, made["code"].as_str().unwrap()).await;
    let own = browser.bare().get("/v1/session").await.expect(200);
    assert_eq!(
        (&own["project"]["name"], &own["operator"]),
        (&json!("other"), &json!(true))
    );
    browser.own().get("/v1/projects").await.expect(200);
    let without_token = browser.bare().with("origin", ORIGIN);
    let made = without_token.post("/v1/projects", json!({ "name": "new" })).await;
    assert_eq!(made.code(403), "CSRF");
    browser
        .own()
        .post("/v1/projects", json!({ "name": "new" }))
        .await
        .expect(201);
}

#[tokio::test]
async fn where_nobody_needs_a_key_nobody_needs_a_session() {
    let world = World::with(|settings| settings.auth = Auth::Open(project(1))).await;
    let own = page(&world).get("/v1/session").await.expect(200);
    assert_eq!(
        (&own["kind"], &own["id"], &own["csrfToken"]),
        (&json!("open"), &Value::Null, &Value::Null)
    );
    let told = page(&world).post("/v1/sessions", json!({ "code": "x" })).await;
    assert_eq!(told.code(409), "NO_AUTH");
}

#[tokio::test]
async fn the_link_of_a_start_opens_a_session_that_hangs_on_no_key() {
    let world = World::new().await;
    let made = world
        .shared
        .access
        .make_login_code(project(1), Maker::Start)
        .await
        .unwrap();
    let browser = sign_in_with(&world, &made.code).await;
    let keys = world.backend().get("/v1/keys").await.expect(200);
    for key in keys["keys"].as_array().unwrap() {
        browser
            .own()
            .delete(&format!("/v1/keys/{}", key["id"].as_str().unwrap()))
            .await
            .expect(204);
    }
    assert!(browser.is_signed_in().await);
}

#[tokio::test]
async fn a_store_that_does_not_answer_cuts_a_doubtful_stream_and_ends_no_access() {
    let world = World::new().await;
    let space = world.backend().post("/v1/spaces", json!({})).await.expect(201);
    let id = space["id"].as_str().unwrap();
    let mut stream = world.backend().follow(&format!("/v1/spaces/{id}/events")).await;
    world.faults.refuse(Some("space"));
    let revoked = Revoked::Space(id.parse().unwrap());
    world.engine.revocations().publish(revoked);
    let mut told = String::new();
    while let Some(block) = stream.block().await {
        told.push_str(&block);
    }
    // Whoever is told that access has ended does not come back.
    assert!(!told.contains("ACCESS_ENDED"), "{told}");
    assert!(told.contains("the store does not answer"), "{told}");
}
