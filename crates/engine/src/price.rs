//! What models cost. A price is per million tokens in units of a currency, so it is also micro-units per token; costs are
//! counted in whole micro-units.

use std::collections::BTreeMap;

use toolgate_kernel::agent::ModelName;
use toolgate_kernel::event::Usage;

/// Millionths of a micro-unit: what prices are kept in, so that sums are exact.
const FRACTION: f64 = 1_000_000.0;
/// Highest price of a million tokens, in units of the currency.
const PRICE_MAX: f64 = 1_000_000.0;
/// Most micro-units that one request costs, so that sums do not overflow whatever a vendor reports.
const COST_MICROS_MAX: u128 = 1 << 40;

/// Prices of models in one currency.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Prices {
    /// Currency of the prices, such as `USD`.
    pub currency: String,
    /// By model, as `provider:name` or by name alone.
    pub models: BTreeMap<String, Price>,
}

impl Prices {
    /// The price of a model: by vendor and name, or else by its name alone.
    pub fn of(&self, model: &ModelName) -> Option<Price> {
        let exact = self.models.get(&model.to_string());
        exact.or_else(|| self.models.get(&model.name)).copied()
    }
}

/// The price of one model, in millionths of a micro-unit per token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Price {
    input: u64,
    output: u64,
    cached_input: u64,
}

impl Price {
    /// A price per million tokens, read, written, and read from the vendor's cache; the last is that of `input` if there is
    /// none. None for one below zero, above a million, or that is no number.
    pub fn per_million(input: f64, output: f64, cached_input: Option<f64>) -> Option<Self> {
        let fraction = |price: f64| {
            let is_price = (0.0..=PRICE_MAX).contains(&price);
            is_price.then(|| (price * FRACTION).round() as u64)
        };
        Some(Self {
            input: fraction(input)?,
            output: fraction(output)?,
            cached_input: fraction(cached_input.unwrap_or(input))?,
        })
    }

    /// What a request costs, in micro-units, rounded up.
    pub fn cost_micros(self, usage: Usage) -> u64 {
        let cached = usage.cached_tokens.min(usage.input_tokens);
        let parts = [
            (usage.input_tokens - cached, self.input),
            (cached, self.cached_input),
            (usage.output_tokens, self.output),
        ];
        let cost: u128 = parts
            .into_iter()
            .map(|(tokens, price)| u128::from(tokens) * u128::from(price))
            .sum();
        cost.div_ceil(FRACTION as u128).min(COST_MICROS_MAX) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_costs_what_its_tokens_do() {
        let price = Price::per_million(3.0, 15.0, Some(0.3)).expect("a price");
        let usage = Usage {
            input_tokens: 1_000,
            output_tokens: 100,
            cached_tokens: 400,
            ..Usage::default()
        };
        assert_eq!(price.cost_micros(usage), 600 * 3 + 120 + 1_500);
        let without_cache = Price::per_million(3.0, 15.0, None).expect("a price");
        assert_eq!(without_cache.cost_micros(usage), 3_000 + 1_500);
    }

    #[test]
    fn a_part_of_a_micro_unit_is_a_whole_one_and_a_flood_of_tokens_is_bounded() {
        let price = Price::per_million(0.02, 0.0, None).expect("a price");
        let read = |input_tokens| Usage {
            input_tokens,
            ..Usage::default()
        };
        assert_eq!(price.cost_micros(read(1)), 1);
        assert_eq!(price.cost_micros(read(50)), 1);
        assert_eq!(price.cost_micros(read(51)), 2);
        assert_eq!(price.cost_micros(read(0)), 0);
        let dear = Price::per_million(PRICE_MAX, 0.0, None).expect("a price");
        assert_eq!(dear.cost_micros(read(u64::MAX)), 1 << 40);
    }

    #[test]
    fn what_is_no_price_is_refused() {
        for wrong in [-1.0, f64::NAN, f64::INFINITY, 1_000_001.0] {
            assert_eq!(Price::per_million(wrong, 1.0, None), None, "{wrong}");
            assert_eq!(Price::per_million(1.0, 1.0, Some(wrong)), None, "{wrong}");
        }
    }
}
