//! Talks to language models. One adapter per vendor, one [`Models`] in front of them.

use std::time::Duration;

use async_trait::async_trait;
use toolgate_engine::model::{Ask, Ending, Model, ModelError, ReplySink};
use toolgate_kernel::agent::Secret;

/// What may be set.
#[derive(Debug, Clone)]
pub struct ModelSettings {
    /// Key for OpenAI, when an agent brings none and asks at the vendor's own address.
    pub openai_key: Option<Secret>,
    /// Key for Anthropic.
    pub anthropic_key: Option<Secret>,
    /// Key for Gemini.
    pub google_key: Option<Secret>,
    /// Longest wait for a connection.
    pub connect_timeout: Duration,
    /// Longest silence in the middle of a reply.
    pub idle_timeout: Duration,
    /// How often a request is tried before the first byte of a reply.
    pub attempts: u32,
}

/// All vendors behind one.
pub struct Models {}

impl Models {
    /// With these settings.
    pub fn new(_settings: ModelSettings) -> Self {
        todo!()
    }
}

#[async_trait]
impl Model for Models {
    async fn reply(&self, _ask: &Ask, _sink: &mut dyn ReplySink) -> Result<Ending, ModelError> {
        todo!()
    }
}
