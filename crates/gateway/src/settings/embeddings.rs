//! The model that tells what documents mean, so that they are found by more than their words.

use serde::Deserialize;
use toolgate_kernel::agent::Secret;
use toolgate_tools::knowledge::EmbeddingModel;

use super::text;

/// An OpenAI-compatible server of embeddings; documents are found by their words alone when none is set.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Embeddings {
    /// The server, up to and with `/v1`.
    #[serde(deserialize_with = "text::optional")]
    pub base_url: Option<String>,
    /// What the server calls the model.
    #[serde(deserialize_with = "text::optional")]
    pub name: Option<String>,
    /// The server's key.
    #[serde(deserialize_with = "text::secret")]
    pub api_key: Option<Secret>,
}

impl Embeddings {
    /// The model, when a server is set.
    pub fn model(&self) -> anyhow::Result<Option<EmbeddingModel>> {
        const NAME_WITHOUT_ONE: &str = "default";
        let base_url = text::address("embeddings.base_url", &self.base_url)?;
        Ok(base_url.map(|base_url| EmbeddingModel {
            base_url,
            name: self.name.clone().unwrap_or_else(|| NAME_WITHOUT_ONE.into()),
            api_key: self.api_key.clone(),
        }))
    }
}
