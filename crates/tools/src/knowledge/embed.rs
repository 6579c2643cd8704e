//! Embeddings from an OpenAI-compatible server.

use std::time::Duration;

use aws_lc_rs::digest::{SHA256, digest};
use http::{HeaderMap, HeaderValue, Method, header};
use serde::Deserialize;
use serde_json::json;
use toolgate_egress::{BodyLimit, Client, Egress, Policy, Request};
use toolgate_kernel::agent::Secret;
use url::Url;

/// Most texts of one request.
pub(crate) const BATCH: usize = 64;
const DIMENSIONS_MAX: usize = 8192;
const ANSWER_BYTES_MAX: usize = 64 << 20;
const TIMEOUT: Duration = Duration::from_secs(30);

/// Settings of the embedding server.
#[derive(Debug, Clone, PartialEq)]
pub struct EmbeddingModel {
    /// Base address, up to `/v1`. The operator sets it, so it may be on this machine or in a private network.
    pub base_url: Url,
    /// Name of the model.
    pub name: String,
    /// API key.
    pub api_key: Option<Secret>,
}

/// Client of the embedding server.
pub(crate) struct Embedder {
    model: EmbeddingModel,
    mark: Mark,
    client: Client,
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
    pub fn new(model: EmbeddingModel, egress: &Egress) -> Self {
        let client = egress.client(Policy::server(&model.base_url).within(TIMEOUT));
        let hash = digest(&SHA256, model.name.as_bytes());
        let mark = hash.as_ref()[..MARK_BYTES].try_into().expect("a hash is longer");
        Self { model, mark, client }
    }

    /// Name of the model in stored documents.
    pub fn mark(&self) -> String {
        self.mark.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// An embedding for each text; the error is for the log only.
    pub async fn embed(&self, texts: &[String]) -> Result<Vec<Direction>, String> {
        let mut directions = Vec::with_capacity(texts.len());
        for batch in texts.chunks(BATCH) {
            directions.extend(self.ask(batch).await?);
        }
        Ok(directions)
    }

    async fn ask(&self, texts: &[String]) -> Result<Vec<Direction>, String> {
        let sent = self.client.send(self.request(texts)?).await;
        let answer = sent.map_err(|error| error.to_string())?;
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
            .map(|item| Direction::of(self.mark, &item.embedding))
            .collect())
    }
}

impl Embedder {
    fn request(&self, texts: &[String]) -> Result<Request, String> {
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
        Ok(Request {
            method: Method::POST,
            url,
            headers,
            body: Some(body.to_string().into()),
            limit: BodyLimit::Whole(ANSWER_BYTES_MAX),
        })
    }
}

/// Bytes of the hash that identifies the model.
const MARK_BYTES: usize = 8;
type Mark = [u8; MARK_BYTES];

/// An embedding, scaled and quantised to a byte per dimension. Embeddings of different models cannot be compared.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Direction {
    model: Mark,
    parts: Vec<i8>,
}

impl Direction {
    fn of(model: Mark, vector: &[f32]) -> Self {
        let longest = vector.iter().fold(0_f32, |longest, part| longest.max(part.abs()));
        let scale = if longest > 0.0 { 127.0 / longest } else { 0.0 };
        let parts = vector.iter().map(|part| (part * scale).round() as i8).collect();
        Self { model, parts }
    }

    /// Bytes of its stored form.
    pub fn stored_bytes(&self) -> usize {
        MARK_BYTES + self.parts.len()
    }

    /// Its stored form.
    pub fn to_bytes(&self) -> Vec<u8> {
        let parts = self.parts.iter().map(|part| part.cast_unsigned());
        self.model.iter().copied().chain(parts).collect()
    }

    /// Cosine similarity to a stored embedding, from -1 to 1; none if that is of another model.
    pub fn likeness(&self, kept: &[u8]) -> Option<f64> {
        let parts = kept.strip_prefix(&self.model)?;
        if parts.len() != self.parts.len() {
            return None;
        }
        let (mut product, mut own, mut other) = (0_i64, 0_i64, 0_i64);
        for (a, b) in self.parts.iter().zip(parts) {
            let (a, b) = (i64::from(*a), i64::from(b.cast_signed()));
            product += a * b;
            own += a * a;
            other += b * b;
        }
        let lengths = (own as f64 * other as f64).sqrt();
        Some(if lengths > 0.0 {
            product as f64 / lengths
        } else {
            0.0
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directions_that_are_alike_are_close_and_other_models_are_left_out() {
        let direction = |vector: &[f32]| Direction::of([1; MARK_BYTES], vector);
        let likeness = |a: &Direction, b: &Direction| a.likeness(&b.to_bytes());
        let (a, b, c) = (
            direction(&[1.0, 2.0, 0.1]),
            direction(&[10.0, 21.0, 1.0]),
            direction(&[-3.0, 0.1, 9.0]),
        );
        assert!(likeness(&a, &b) > Some(0.99) && likeness(&a, &c) < Some(0.2));
        assert_eq!(likeness(&a, &direction(&[1.0])), None);
        assert_eq!(
            likeness(&a, &Direction::of([2; MARK_BYTES], &[1.0, 2.0, 0.1])),
            None
        );
        assert_eq!(
            likeness(&direction(&[0.0, f32::NAN]), &direction(&[0.0, 0.0])),
            Some(0.0)
        );
    }
}
