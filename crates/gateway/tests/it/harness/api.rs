//! A client of the HTTP door.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use reqwest::{Client, ClientBuilder, Method, RequestBuilder};
use serde_json::{Value, json};

use super::{Event, EventStream, JWT_SECRET, LOOK, PUBLIC_KEY, SECRET_KEY, soon};

/// Most events of one page.
const PAGE: usize = 500;

/// An HTTP client of one gateway, for one principal. Cheap to clone.
#[derive(Clone)]
pub struct Api {
    http: Client,
    base: String,
    headers: Vec<(&'static str, String)>,
    sent_again: Arc<AtomicU64>,
}

/// What a request was answered.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    pub status: u16,
    /// JSON, or a text when it is none.
    pub body: Value,
}

impl Answer {
    pub fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }
    /// A text member of the body.
    pub fn text(&self, member: &str) -> String {
        self.body[member]
            .as_str()
            .unwrap_or_else(|| panic!("no {member} in {self:?}"))
            .into()
    }
}

impl Api {
    /// With the secret key.
    pub fn secret(port: u16) -> Self {
        Self::at(SocketAddr::from(([127, 0, 0, 1], port)))
    }

    /// The same, of a gateway anywhere.
    pub fn at(gateway: SocketAddr) -> Self {
        Self::over(Client::builder(), gateway)
    }

    /// The same with a connection for every request, so that a balancer gives each to another node.
    pub fn unpooled(port: u16) -> Self {
        let gateway = SocketAddr::from(([127, 0, 0, 1], port));
        Self::over(Client::builder().pool_max_idle_per_host(0), gateway)
    }

    /// The same, and it gives up a connection on which nothing has come for so long: the other end may be gone without a word.
    pub fn impatient(port: u16, silence: Duration) -> Self {
        let gateway = SocketAddr::from(([127, 0, 0, 1], port));
        let client = Client::builder().pool_max_idle_per_host(0);
        Self::over(client.read_timeout(silence), gateway)
    }

    fn over(client: ClientBuilder, gateway: SocketAddr) -> Self {
        let http = client.no_proxy().build().expect("a client");
        Self {
            http,
            base: format!("http://{gateway}"),
            headers: vec![("authorization", format!("Bearer {SECRET_KEY}"))],
            sent_again: Arc::default(),
        }
    }

    /// The same gateway, with another secret key.
    pub fn with_key(&self, key: &str) -> Self {
        let headers = vec![("authorization", format!("Bearer {key}"))];
        Self {
            headers,
            ..self.clone()
        }
    }

    /// The same gateway, with these headers alone.
    pub fn with_headers(&self, headers: Vec<(&'static str, String)>) -> Self {
        Self {
            headers,
            ..self.clone()
        }
    }

    /// The same gateway, as a user with the public key.
    pub fn as_user(&self, subject: &str) -> Self {
        self.as_user_of(PUBLIC_KEY, JWT_SECRET, subject)
    }

    /// The same gateway, as a user whose token makes these claims, too.
    pub fn as_member_of(&self, subject: &str, claims: &Value) -> Self {
        self.as_user_with(PUBLIC_KEY, JWT_SECRET, subject, claims)
    }

    /// The same gateway, as a user of the project with this public key.
    pub fn as_user_of(&self, public_key: &str, jwt_secret: &str, subject: &str) -> Self {
        self.as_user_with(public_key, jwt_secret, subject, &json!({}))
    }

    fn as_user_with(&self, public_key: &str, jwt_secret: &str, subject: &str, more: &Value) -> Self {
        let mut claims = json!({"sub": subject, "exp": 4_000_000_000_u64});
        let more = more.as_object().expect("claims").clone();
        claims.as_object_mut().expect("claims").extend(more);
        let key = jsonwebtoken::EncodingKey::from_secret(jwt_secret.as_bytes());
        let token = jsonwebtoken::encode(&jsonwebtoken::Header::default(), &claims, &key).expect("a token");
        let headers = vec![
            ("x-public-key", public_key.into()),
            ("authorization", format!("Bearer {token}")),
        ];
        Self {
            headers,
            ..self.clone()
        }
    }

    /// A request that is not sent yet.
    pub fn request(&self, method: Method, path: &str) -> RequestBuilder {
        let request = self.http.request(method, format!("{}{path}", self.base));
        self.headers
            .iter()
            .fold(request, |request, (name, value)| request.header(*name, value))
    }

    /// What tells who asks, as lines of a header.
    pub fn header_lines(&self) -> String {
        let lines = self.headers.iter();
        lines
            .map(|(name, value)| format!("{name}: {value}\r\n"))
            .collect()
    }

    pub async fn try_get(&self, path: &str) -> reqwest::Result<Answer> {
        answer(
            self.request(Method::GET, path)
                .header("accept", "application/json"),
        )
        .await
    }

    pub async fn try_post(&self, path: &str, body: &Value) -> reqwest::Result<Answer> {
        answer(with_json(self.request(Method::POST, path), body)).await
    }

    pub async fn get(&self, path: &str) -> Answer {
        self.try_get(path).await.expect("the gateway answers")
    }

    pub async fn post(&self, path: &str, body: &Value) -> Answer {
        self.try_post(path, body).await.expect("the gateway answers")
    }

    /// The status that a request is answered with; none when the gateway goes away meanwhile.
    pub fn send_or_cut(
        &self,
        method: Method,
        path: &str,
        body: &Value,
    ) -> impl Future<Output = Option<u16>> + Send + use<> {
        let request = with_json(self.request(method, path), body);
        async move { answer(request).await.ok().map(|answer| answer.status) }
    }

    /// Any request with a JSON body, answered with JSON where there is a choice.
    pub async fn send(&self, method: Method, path: &str, body: &Value) -> Answer {
        let request = self.request(method, path).header("accept", "application/json");
        answer(with_json(request, body))
            .await
            .expect("the gateway answers")
    }

    pub async fn put(&self, path: &str, body: &Value) -> Answer {
        answer(with_json(self.request(Method::PUT, path), body))
            .await
            .expect("the gateway answers")
    }

    /// Sends until it is answered by something else than a broken connection or 503, however often the gateway
    /// goes away meanwhile. `key` makes the repetition harmless where the request alone is not.
    pub async fn insist(&self, path: &str, body: &Value, key: Option<&str>) -> Answer {
        let attempt = async || {
            let mut request = with_json(self.request(Method::POST, path), body);
            if let Some(key) = key {
                request = request.header("idempotency-key", key);
            }
            answer(request).await
        };
        let until_answered = async {
            loop {
                match attempt().await {
                    Ok(answer) if answer.status != 503 => return answer,
                    Ok(_) | Err(_) => {
                        self.sent_again.fetch_add(1, Ordering::Relaxed);
                        tokio::time::sleep(LOOK).await;
                    }
                }
            }
        };
        soon(&format!("an answer to POST {path}"), until_answered).await
    }

    /// How many requests were not answered and sent again, by this client and its clones.
    pub fn sent_again(&self) -> u64 {
        self.sent_again.load(Ordering::Relaxed)
    }

    /// Starts a run of the agent `worker` that follows `script`; gives the answer's body.
    pub async fn start(&self, script: &str) -> Value {
        let answer = self
            .post("/v1/runs", &json!({"agent": "worker", "message": script}))
            .await;
        assert!(answer.is_success(), "{answer:?}");
        answer.body
    }

    /// Posts the result of a client call.
    pub async fn result(&self, run: &str, call: &str, result: &Value) -> Answer {
        let body = json!({"toolCallId": call, "result": result});
        self.post(&format!("/v1/runs/{run}/tool-results"), &body).await
    }

    /// Follows a run from after `cursor`.
    pub async fn follow(&self, run: &str, cursor: u64) -> EventStream {
        self.try_follow(run, cursor).await.expect("the gateway streams")
    }

    pub async fn try_follow(&self, run: &str, cursor: u64) -> reqwest::Result<EventStream> {
        self.try_stream(&format!("/v1/runs/{run}/events"), cursor).await
    }

    /// Follows what a path streams from after `cursor`.
    pub async fn try_stream(&self, path: &str, cursor: u64) -> reqwest::Result<EventStream> {
        let request = self
            .request(Method::GET, path)
            .header("accept", "text/event-stream")
            .header("last-event-id", cursor.to_string());
        Ok(EventStream::of(request.send().await?.error_for_status()?))
    }

    /// Waits until the run has ended and gives all its events, read from the list.
    pub async fn finished(&self, run: &str) -> Vec<Event> {
        soon(&format!("the end of {run}"), async {
            let mut stream = self.follow(run, 0).await;
            while stream.next().await.is_some() {}
        })
        .await;
        self.list(&format!("/v1/runs/{run}/events")).await
    }

    /// All events of a list, page by page.
    pub async fn list(&self, path: &str) -> Vec<Event> {
        let mut events = Vec::new();
        let mut cursor = 0;
        loop {
            let page = self.get(&format!("{path}?after={cursor}&limit={PAGE}")).await;
            assert_eq!(page.status, 200, "{page:?}");
            let items = page.body["events"].as_array().expect("events");
            events.extend(items.iter().cloned().map(Event::from_json));
            match page.body["nextCursor"].as_u64() {
                Some(next) if !items.is_empty() => {
                    assert!(next > cursor, "a page that does not go on: {next} after {cursor}");
                    cursor = next;
                }
                _ => return events,
            }
        }
    }

    /// The ids of all runs of the project.
    pub async fn runs(&self) -> BTreeSet<String> {
        let mut runs = BTreeSet::new();
        let mut path = format!("/v1/runs?limit={PAGE}");
        loop {
            let page = self.get(&path).await;
            assert_eq!(page.status, 200, "{page:?}");
            let items = page.body["runs"].as_array().expect("runs");
            for run in items {
                let id = run["id"].as_str().expect("an id").to_owned();
                assert!(runs.insert(id), "{run} is listed twice");
            }
            match page.body["nextCursor"].as_str() {
                Some(next) => path = format!("/v1/runs?limit={PAGE}&before={next}"),
                None => return runs,
            }
        }
    }
}

fn with_json(request: RequestBuilder, body: &Value) -> RequestBuilder {
    request
        .header("content-type", "application/json")
        .body(body.to_string())
}

/// Sends a request and reads what comes back.
pub async fn answer(request: RequestBuilder) -> reqwest::Result<Answer> {
    let response = request.send().await?;
    let status = response.status().as_u16();
    let text = response.text().await?;
    let body = serde_json::from_str(&text).unwrap_or(Value::String(text));
    Ok(Answer { status, body })
}
