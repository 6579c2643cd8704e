//! Security schemes of a card, and which of them a caller needs.

use serde_json::{Map, Value, json};

use crate::json::{Members, Object, Violations};

/// A way to say who one is.
#[derive(Clone, PartialEq, Debug)]
pub enum SecurityScheme {
    /// `Authorization` with a scheme of HTTP.
    Http {
        /// The scheme, like `Bearer`.
        scheme: String,
        /// What the token is, like `JWT`.
        bearer_format: Option<String>,
        /// How to get one.
        description: Option<String>,
    },
    /// A key in a header, a cookie or the query.
    ApiKey {
        /// `header`, `cookie` or `query`.
        location: String,
        /// Name of the header, cookie or parameter.
        name: String,
        /// How to get one.
        description: Option<String>,
    },
    /// Another kind, as the card has it.
    Other(Map<String, Value>),
}

impl SecurityScheme {
    pub(super) fn to_json(&self) -> Value {
        match self {
            Self::Http {
                scheme,
                bearer_format,
                description,
            } => json!({"httpAuthSecurityScheme": Members::new()
                .with_some("description", description.as_deref())
                .with("scheme", scheme.as_str())
                .with_some("bearerFormat", bearer_format.as_deref())
                .value()}),
            Self::ApiKey {
                location,
                name,
                description,
            } => json!({"apiKeySecurityScheme": Members::new()
                .with_some("description", description.as_deref())
                .with("location", location.as_str())
                .with("name", name.as_str())
                .value()}),
            Self::Other(members) => Value::Object(members.clone()),
        }
    }

    /// The form of 1.0 with the members of 0.3 beside it.
    pub(super) fn to_hybrid_json(&self) -> Value {
        let mut both = self.to_json();
        let Some(members) = both.as_object_mut() else {
            return both;
        };
        let mut add = |name: &str, value: Option<&str>| {
            if let Some(value) = value {
                members.insert(name.into(), value.into());
            }
        };
        match self {
            Self::Http {
                scheme,
                bearer_format,
                description,
            } => {
                add("type", Some("http"));
                add("scheme", Some(scheme));
                add("bearerFormat", bearer_format.as_deref());
                add("description", description.as_deref());
            }
            Self::ApiKey {
                location,
                name,
                description,
            } => {
                add("type", Some("apiKey"));
                add("in", Some(location));
                add("name", Some(name));
                add("description", description.as_deref());
            }
            Self::Other(_) => {}
        }
        both
    }

    /// Schemes of an unknown kind, and malformed ones, are kept as they are: they are of no use, and no reason to
    /// refuse the card.
    pub(super) fn of(value: Value) -> Self {
        let text = |value: &Value, name: &str| value.get(name).and_then(Value::as_str).map(str::to_owned);
        let http = value.get("httpAuthSecurityScheme").unwrap_or(&value);
        let is_http = value.get("httpAuthSecurityScheme").is_some() || value["type"] == "http";
        if is_http && let Some(scheme) = text(http, "scheme") {
            return Self::Http {
                scheme,
                bearer_format: text(http, "bearerFormat"),
                description: text(http, "description"),
            };
        }
        let key = value.get("apiKeySecurityScheme").unwrap_or(&value);
        let is_key = value.get("apiKeySecurityScheme").is_some() || value["type"] == "apiKey";
        let location = text(key, "location").or_else(|| text(key, "in"));
        if is_key && let (Some(location), Some(name)) = (location, text(key, "name")) {
            return Self::ApiKey {
                location,
                name,
                description: text(key, "description"),
            };
        }
        match value {
            Value::Object(members) => Self::Other(members),
            _ => Self::Other(Map::new()),
        }
    }
}

/// Schemes that are needed together, each with its scopes, in the form of 1.0.
pub(super) fn requirement(set: &[(String, Vec<String>)]) -> Value {
    let schemes = set.iter();
    let schemes: Map<_, _> = schemes
        .map(|(name, scopes)| (name.clone(), json!({"list": scopes})))
        .collect();
    json!({"schemes": schemes})
}

/// `{"schemes": {"key": {"list": []}}}` of 1.0 and `{"key": []}` of 0.3.
pub(super) fn read_requirement(
    value: Value,
    at: String,
    bad: &Violations,
) -> Option<Vec<(String, Vec<String>)>> {
    let mut object = Object::new(value, at, bad);
    let schemes = object.metadata("schemes").unwrap_or_else(|| object.rest());
    let texts = |value: &Value| -> Vec<String> {
        let items = value.get("list").unwrap_or(value).as_array();
        let items = items.into_iter().flatten().filter_map(Value::as_str);
        items.map(str::to_owned).collect()
    };
    Some(
        schemes
            .iter()
            .map(|(name, scopes)| (name.clone(), texts(scopes)))
            .collect(),
    )
}
