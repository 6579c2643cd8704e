//! Somebody who asks the door, and what they are told.

use axum::Router;
use axum::body::Body;
use http::{HeaderMap, Method, Request, StatusCode};
use http_body_util::BodyExt;
use serde_json::{Value, json};
use tower::ServiceExt;

use crate::contract::Contract;

/// Somebody who asks.
#[derive(Clone)]
pub struct Client<'w> {
    /// The gateway's router.
    pub router: &'w Router,
    /// What every answer is held against.
    pub contract: &'static Contract,
    /// Sent with every request.
    pub headers: Vec<(String, String)>,
}

/// A response.
pub struct Told {
    /// The status.
    pub status: StatusCode,
    /// The headers.
    pub headers: HeaderMap,
    /// The body; text that is no JSON is a string.
    pub body: Value,
}

impl Told {
    /// The body of an answer with this status.
    pub fn expect(self, status: u16) -> Value {
        assert_eq!(self.status.as_u16(), status, "{}", self.body);
        self.body
    }
    /// The code of a refusal with this status.
    pub fn code(self, status: u16) -> String {
        self.expect(status)["code"].as_str().unwrap().to_owned()
    }
    /// A header; empty when there is none.
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }
}

impl Client<'_> {
    /// Sends this header too.
    pub fn with(&self, name: &str, value: &str) -> Self {
        let mut client = self.clone();
        client.headers.push((name.into(), value.into()));
        client
    }
    /// GET.
    pub async fn get(&self, path: &str) -> Told {
        self.send(Method::GET, path, Body::empty()).await
    }
    /// DELETE.
    pub async fn delete(&self, path: &str) -> Told {
        self.send(Method::DELETE, path, Body::empty()).await
    }
    /// POST with a JSON body.
    pub async fn post(&self, path: &str, body: Value) -> Told {
        self.json(Method::POST, path, body).await
    }
    /// PUT with a JSON body.
    pub async fn put(&self, path: &str, body: Value) -> Told {
        self.json(Method::PUT, path, body).await
    }
    async fn json(&self, method: Method, path: &str, body: Value) -> Told {
        self.with("content-type", "application/json")
            .send(method, path, Body::from(body.to_string()))
            .await
    }
    /// Asks, and holds the answer against the OpenAPI document.
    pub async fn send(&self, method: Method, path: &str, body: Body) -> Told {
        let response = self.raw(method.clone(), path, body).await;
        let (parts, body) = response.into_parts();
        let bytes = body.collect().await.unwrap().to_bytes();
        let kind = parts
            .headers
            .get("content-type")
            .map_or("", |value| value.to_str().unwrap())
            .to_owned();
        let body = match kind.ends_with("json") {
            true => serde_json::from_slice(&bytes).unwrap(),
            false => String::from_utf8(bytes.to_vec()).unwrap().into(),
        };
        self.contract.check(&method, path, parts.status, &kind, &body);
        Told {
            status: parts.status,
            headers: parts.headers,
            body,
        }
    }
    /// Asks, and gives the response as it is.
    pub async fn raw(&self, method: Method, path: &str, body: Body) -> http::Response<Body> {
        let mut request = Request::builder().method(method).uri(path);
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
        self.router
            .clone()
            .oneshot(request.body(body).unwrap())
            .await
            .unwrap()
    }
    /// Asks for a stream.
    pub async fn follow(&self, path: &str) -> Stream {
        let client = self.with("accept", "text/event-stream");
        Stream::of(client.raw(Method::GET, path, Body::empty()).await, self.contract)
    }
    /// Says something and follows what comes of it.
    pub async fn say(&self, path: &str, body: Value) -> Stream {
        let client = self
            .with("accept", "text/event-stream")
            .with("content-type", "application/json");
        let response = client.raw(Method::POST, path, Body::from(body.to_string())).await;
        Stream::of(response, self.contract)
    }
    /// Starts a run and waits until it ends or waits; gives its events.
    pub async fn run(&self, words: &str) -> Vec<Sent> {
        self.say("/v1/runs", json!({ "text": words })).await.rest().await
    }
}

/// An event stream.
pub struct Stream {
    /// The status.
    pub status: StatusCode,
    /// The headers.
    pub headers: HeaderMap,
    body: Body,
    text: String,
    contract: &'static Contract,
}

/// One event as it was sent.
#[derive(Debug, Clone, PartialEq)]
pub struct Sent {
    /// `id:`.
    pub id: u64,
    /// `event:`.
    pub kind: String,
    /// `data:`.
    pub data: Value,
}

impl Stream {
    fn of(response: http::Response<Body>, contract: &'static Contract) -> Self {
        let (parts, body) = response.into_parts();
        Self {
            status: parts.status,
            headers: parts.headers,
            body,
            text: String::new(),
            contract,
        }
    }
    /// The next block of lines: an event, or a comment.
    pub async fn block(&mut self) -> Option<String> {
        loop {
            if let Some((block, rest)) = self.text.split_once("\n\n") {
                let block = block.to_owned();
                self.text = rest.to_owned();
                return Some(block);
            }
            let frame = self.body.frame().await?.unwrap().into_data().unwrap();
            self.text.push_str(std::str::from_utf8(&frame).unwrap());
        }
    }
    /// The next event.
    pub async fn event(&mut self) -> Option<Sent> {
        loop {
            let block = self.block().await?;
            if let Some(sent) = self.parse(&block) {
                return Some(sent);
            }
        }
    }
    /// Events up to one of this kind.
    pub async fn until(&mut self, kind: &str) -> Vec<Sent> {
        let mut events = Vec::new();
        while let Some(event) = self.event().await {
            events.push(event);
            if events.last().is_some_and(|event| event.kind == kind) {
                return events;
            }
        }
        panic!("the stream ended before {kind}: {events:#?}")
    }
    /// The event of a block, held against the document; none for a comment.
    pub fn parse(&self, block: &str) -> Option<Sent> {
        let field = |name: &str| block.lines().find_map(|line| line.strip_prefix(name));
        let data: Value = serde_json::from_str(field("data: ")?).unwrap();
        self.contract.check_event(&data);
        Some(Sent {
            id: field("id: ")?.parse().unwrap(),
            kind: field("event: ")?.into(),
            data,
        })
    }
    /// Everything up to the end.
    pub async fn rest(mut self) -> Vec<Sent> {
        assert_eq!(self.status, StatusCode::OK);
        let mut events = Vec::new();
        while let Some(event) = self.event().await {
            events.push(event);
        }
        events
    }
}

/// The kinds of events, in order.
pub fn kinds(events: &[Sent]) -> Vec<&str> {
    events.iter().map(|event| event.kind.as_str()).collect()
}

/// The value of a member in the first event of a kind.
pub fn of(events: &[Sent], kind: &str, member: &str) -> String {
    let event = events.iter().find(|event| event.kind == kind);
    let event = event.unwrap_or_else(|| panic!("no {kind} in {:?}", kinds(events)));
    event.data[member].as_str().unwrap().to_owned()
}

/// The call or question of another number in the same run.
pub fn numbered(id: &str, number: u32) -> String {
    let (run, _) = id.rsplit_once('_').unwrap();
    format!("{run}_{number}")
}
