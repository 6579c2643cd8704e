//! The model that a run asks, as its events name it.

use std::fmt;

use serde::{Deserialize, Serialize};

macro_rules! providers {
    ($($(#[$about:meta])* $variant:ident = $name:literal,)*) => {
        /// Vendor of a model. A new one is a line here and an adapter in the crate `models`.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
        pub enum Provider {
            $($(#[$about])* #[serde(rename = $name)] $variant,)*
        }

        impl Provider {
            /// All of them, as configurations name them.
            pub const ALL: &[(&'static str, Self)] = &[$(($name, Self::$variant),)*];
            /// Its name in configurations and events.
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }
        }
    };
}
providers! {
    /// Chat completions: OpenAI and every compatible server.
    Openai = "openai",
    /// Messages.
    Anthropic = "anthropic",
    /// Gemini.
    Google = "google",
    /// The built-in rule-based stand-in.
    Demo = "demo",
}

/// Which model, as the events tell it: no address, no key.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ModelName {
    /// Vendor of the model.
    pub provider: Provider,
    /// The vendor's name for the model.
    pub name: String,
}

/// As `provider:name`.
impl fmt::Display for ModelName {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}:{}", self.provider.as_str(), self.name)
    }
}
