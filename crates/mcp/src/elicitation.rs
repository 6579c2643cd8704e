//! What a server asks of a person while it works on a call.

use async_trait::async_trait;
use serde_json::{Map, Value, json};

/// Answers what a server asks. A connection must have the ability ([`crate::Abilities`]), or nothing is asked.
#[async_trait]
pub trait Elicit: Send + Sync {
    /// Asks a person. Dropped when the server no longer wants to know.
    async fn elicit(&self, elicitation: Elicitation) -> ElicitationAnswer;
}

/// A server's question. Its words are the server's, and not to be trusted.
#[derive(Debug, Clone, PartialEq)]
pub enum Elicitation {
    /// Asks for values.
    Form {
        /// What is wanted, and why.
        message: String,
        /// JSON Schema of the values: an object of texts, numbers, truth values and choices.
        schema: Value,
    },
    /// Asks for a visit to an address, for what must not pass through the client.
    Url {
        /// What is wanted, and why.
        message: String,
        /// The address.
        url: String,
    },
}

/// What the person says.
#[derive(Debug, Clone, PartialEq)]
pub enum ElicitationAnswer {
    /// Here are the values, or: the address was visited. Values that have a default may be left out.
    Accept(Option<Map<String, Value>>),
    /// The person refuses to answer.
    Decline,
    /// Not now: the window was closed.
    Cancel,
}

/// Lets a person answer a request `elicitation/create`, and gives its result.
pub(crate) async fn answer(host: &dyn Elicit, params: &Value) -> Value {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let message = text(&params["message"]);
    let schema = &params["requestedSchema"];
    let is_form = params["mode"] != "url";
    let elicitation = match is_form {
        true => Elicitation::Form {
            message,
            schema: schema.clone(),
        },
        false => Elicitation::Url {
            message,
            url: text(&params["url"]),
        },
    };
    match host.elicit(elicitation).await {
        ElicitationAnswer::Accept(values) if is_form => {
            json!({"action": "accept", "content": with_defaults(values.unwrap_or_default(), schema)})
        }
        ElicitationAnswer::Accept(_) => json!({"action": "accept"}),
        ElicitationAnswer::Decline => json!({"action": "decline"}),
        ElicitationAnswer::Cancel => json!({"action": "cancel"}),
    }
}

/// The values, and the schema's default for each that was left out.
fn with_defaults(mut values: Map<String, Value>, schema: &Value) -> Value {
    let properties = schema["properties"].as_object().into_iter().flatten();
    for (name, property) in properties {
        if let Some(default) = property.get("default").filter(|default| !default.is_null()) {
            values.entry(name.clone()).or_insert_with(|| default.clone());
        }
    }
    Value::Object(values)
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Says(ElicitationAnswer);

    #[async_trait]
    impl Elicit for Says {
        async fn elicit(&self, _elicitation: Elicitation) -> ElicitationAnswer {
            self.0.clone()
        }
    }

    #[tokio::test]
    async fn values_that_were_left_out_have_their_defaults() {
        let asked = json!({"message": "Who?", "requestedSchema": {"type": "object", "properties": {
            "name": {"type": "string", "default": "nobody"},
            "age": {"type": "integer", "default": 30},
            "email": {"type": "string"},
        }}});
        let values = json!({"name": "Ada"}).as_object().cloned();
        let answer = answer(&Says(ElicitationAnswer::Accept(values)), &asked).await;
        assert_eq!(
            answer,
            json!({"action": "accept", "content": {"name": "Ada", "age": 30}})
        );
    }

    #[tokio::test]
    async fn a_visit_has_no_values() {
        let asked = json!({"mode": "url", "message": "Pay", "url": "https://pay.example"});
        let accepted = answer(&Says(ElicitationAnswer::Accept(None)), &asked).await;
        assert_eq!(accepted, json!({"action": "accept"}));
        let declined = answer(&Says(ElicitationAnswer::Decline), &asked).await;
        assert_eq!(declined, json!({"action": "decline"}));
    }
}
