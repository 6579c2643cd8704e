//! What models cost: `[prices]`. Shown beside runs; nothing is limited by it.

use std::collections::BTreeMap;

use serde::Deserialize;

/// Prices of models.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Prices {
    /// Currency of the prices.
    pub currency: String,
    /// By model, as `provider:name` or by name alone.
    pub models: BTreeMap<String, ModelPrice>,
}

/// What a model costs per million tokens.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelPrice {
    /// Tokens read.
    pub input: f64,
    /// Tokens written.
    pub output: f64,
    /// Tokens read from the vendor's cache; as `input` if missing.
    pub cached_input: Option<f64>,
}

impl Default for Prices {
    fn default() -> Self {
        Self {
            currency: "USD".into(),
            models: BTreeMap::new(),
        }
    }
}

impl Prices {
    /// The prices as the HTTP door tells them.
    pub fn told(&self) -> toolgate_door_http::Prices {
        let price = |price: &ModelPrice| toolgate_door_http::ModelPrice {
            input: price.input,
            output: price.output,
            cached_input: price.cached_input,
        };
        toolgate_door_http::Prices {
            currency: self.currency.clone(),
            models: self
                .models
                .iter()
                .map(|(name, of)| (name.clone(), price(of)))
                .collect(),
        }
    }
}
