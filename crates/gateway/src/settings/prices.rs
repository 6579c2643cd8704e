//! What models cost: `[prices]`. Shown beside runs, counted with them, and what budgets of cost go by.

use std::collections::BTreeMap;

use anyhow::Context;
use serde::Deserialize;
use toolgate_engine::price;

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
    /// The prices as the engine counts with them. An error names the price that is none.
    pub fn table(&self) -> anyhow::Result<price::Prices> {
        let price = |(model, of): (&String, &ModelPrice)| {
            let price = price::Price::per_million(of.input, of.output, of.cached_input);
            let price = price.with_context(|| {
                format!("the prices of `prices.models.{model}` are no numbers from 0 to 1000000")
            })?;
            Ok((model.clone(), price))
        };
        Ok(price::Prices {
            currency: self.currency.clone(),
            models: self.models.iter().map(price).collect::<anyhow::Result<_>>()?,
        })
    }

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
