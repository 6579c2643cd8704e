//! What texts mean, as vectors of an OpenAI-compatible server.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use http::{HeaderMap, HeaderValue, Method, header};
use serde::Deserialize;
use serde_json::json;
use toolgate_kernel::agent::Secret;
use url::Url;

use crate::guard::AllowList;
use crate::outside::{Ask, Limit, Outside};

/// Texts of one request.
const BATCH: usize = 64;
const DIMENSIONS_MAX: usize = 8192;
const ANSWER_BYTES_MAX: usize = 64 << 20;
const TIMEOUT: Duration = Duration::from_secs(30);

/// Where to ask.
#[derive(Debug, Clone, PartialEq)]
pub struct EmbeddingModel {
    /// Address of the server, up to and with `/v1`. The operator's word: it may be on this machine or its network.
    pub base_url: Url,
    /// What the server calls the model.
    pub name: String,
    /// The server's key.
    pub api_key: Option<Secret>,
}

/// Asks it.
pub(crate) struct Embedder {
    model: EmbeddingModel,
    outside: Outside,
}

#[derive(Deserialize)]
struct Answer {
    data: Vec<Item>,
}

#[derive(Deserialize)]
struct Item {
    index: usize,
    embedding: Vec<f32>,
}

impl Embedder {
    pub fn new(model: EmbeddingModel) -> Self {
        let outside = Outside::new(AllowList::only(&model.base_url));
        Self { model, outside }
    }

    /// A direction for each text; an error is for the log.
    pub async fn embed(&self, texts: &[String]) -> Result<Vec<Direction>, String> {
        let mut directions = Vec::with_capacity(texts.len());
        for batch in texts.chunks(BATCH) {
            directions.extend(self.ask(batch).await?);
        }
        Ok(directions)
    }

    async fn ask(&self, texts: &[String]) -> Result<Vec<Direction>, String> {
        let sent = tokio::time::timeout(TIMEOUT, self.outside.send(self.request(texts)?)).await;
        let answer = sent.map_err(|_| "it gave no answer in time")?;
        let answer = answer.map_err(|missed| missed.to_string())?;
        if !answer.status.is_success() {
            return Err(format!("it answers with {}", answer.status));
        }
        let mut answer: Answer = serde_json::from_slice(&answer.body).map_err(|error| error.to_string())?;
        answer.data.sort_by_key(|item| item.index);
        let whole = answer.data.len() == texts.len()
            && answer
                .data
                .iter()
                .all(|item| (1..=DIMENSIONS_MAX).contains(&item.embedding.len()));
        if !whole {
            return Err("its answer has not one vector for each text".into());
        }
        Ok(answer
            .data
            .iter()
            .map(|item| Direction::of(&item.embedding))
            .collect())
    }
}

impl Embedder {
    fn request(&self, texts: &[String]) -> Result<Ask, String> {
        let mut url = self.model.base_url.clone();
        url.set_path(&format!("{}/embeddings", url.path().trim_end_matches('/')));
        let mut headers = HeaderMap::new();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if let Some(key) = &self.model.api_key {
            let mut value = HeaderValue::from_str(&format!("Bearer {}", key.expose()))
                .map_err(|_| "its key cannot be sent")?;
            value.set_sensitive(true);
            headers.insert(header::AUTHORIZATION, value);
        }
        let body = json!({"model": self.model.name, "input": texts});
        Ok(Ask {
            method: Method::POST,
            url,
            headers,
            body: Some(body.to_string().into()),
            limit: Limit::Whole(ANSWER_BYTES_MAX),
        })
    }
}

/// Where a vector points, a byte per dimension: how long it is says nothing here.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Direction(Vec<i8>);

impl Direction {
    fn of(vector: &[f32]) -> Self {
        let longest = vector.iter().fold(0_f32, |longest, part| longest.max(part.abs()));
        let scale = if longest > 0.0 { 127.0 / longest } else { 0.0 };
        Self(vector.iter().map(|part| (part * scale).round() as i8).collect())
    }
    pub fn to_text(&self) -> String {
        let bytes: Vec<u8> = self.0.iter().map(|part| part.cast_unsigned()).collect();
        BASE64.encode(bytes)
    }
    pub fn from_text(text: &str) -> Option<Self> {
        let bytes = BASE64.decode(text).ok()?;
        Some(Self(bytes.into_iter().map(u8::cast_signed).collect()))
    }
    /// From -1 to 1; 0 for one of another model.
    pub fn likeness(&self, other: &Self) -> f64 {
        if self.0.len() != other.0.len() {
            return 0.0;
        }
        let product = |a: &[i8], b: &[i8]| -> i64 {
            let pairs = a.iter().zip(b);
            pairs.map(|(a, b)| i64::from(*a) * i64::from(*b)).sum()
        };
        let lengths = (product(&self.0, &self.0) as f64 * product(&other.0, &other.0) as f64).sqrt();
        match lengths > 0.0 {
            true => product(&self.0, &other.0) as f64 / lengths,
            false => 0.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directions_that_are_alike_are_close_and_keep_through_text() {
        let direction = |vector: &[f32]| Direction::of(vector);
        let (a, b, c) = (
            direction(&[1.0, 2.0, 0.1]),
            direction(&[10.0, 21.0, 1.0]),
            direction(&[-3.0, 0.1, 9.0]),
        );
        assert!(a.likeness(&b) > 0.99 && a.likeness(&c) < 0.2);
        assert_eq!(Direction::from_text(&a.to_text()), Some(a.clone()));
        assert_eq!(a.likeness(&direction(&[1.0])), 0.0);
        assert_eq!(direction(&[0.0, f32::NAN]).likeness(&direction(&[0.0, 0.0])), 0.0);
    }
}
