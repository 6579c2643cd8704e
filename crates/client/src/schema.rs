//! JSON Schemas in the form that a gateway accepts from a client: inlined, without references.

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Value, json};
use toolgate_protocol::tidy::tidy;

/// The schema of a type, for deserialization.
pub(crate) fn of<T: JsonSchema>() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    let mut schema = settings.into_generator().into_root_schema_for::<T>().to_value();
    tidy(&mut schema);
    schema
}

/// The schema of a type that holds arguments: always an object, whatever else the type leaves open.
pub(crate) fn of_arguments<T: JsonSchema>() -> Value {
    match of::<T>() {
        Value::Object(mut members) => {
            members.entry("type").or_insert_with(|| "object".into());
            members.into()
        }
        _ => json!({"type": "object"}),
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use toolgate_kernel::tool::{ClientToolLimits, client_tools};

    use super::*;

    #[derive(Deserialize, JsonSchema)]
    #[allow(dead_code, reason = "only its schema is of interest")]
    struct Order {
        /// Who pays.
        customer: Person,
        lines: Vec<Line>,
        delivery: Option<Delivery>,
        title: String,
    }
    #[derive(Deserialize, JsonSchema)]
    #[allow(dead_code)]
    struct Person {
        name: String,
    }
    #[derive(Deserialize, JsonSchema)]
    #[allow(dead_code)]
    struct Line {
        article: String,
        amount: u32,
        buyer: Person,
    }
    #[derive(Deserialize, JsonSchema)]
    #[serde(rename_all = "lowercase")]
    #[allow(dead_code)]
    enum Delivery {
        Post,
        Pickup,
    }

    #[test]
    fn a_derived_schema_is_written_out_and_fits_the_client_profile() {
        let schema = of::<Order>();
        assert_eq!(
            schema["properties"]["customer"]["properties"]["name"]["type"],
            "string"
        );
        assert_eq!(schema["properties"]["customer"]["description"], "Who pays.");
        assert_eq!(
            schema["properties"]["lines"]["items"]["properties"]["amount"]["minimum"],
            0
        );
        assert_eq!(schema["properties"]["title"], json!({"type": "string"}));
        assert!(!schema.to_string().contains("$ref"), "{schema}");
        let tool = json!([{"name": "order", "description": "Orders.", "parameters": schema}]);
        client_tools(&tool, "", &ClientToolLimits::default()).unwrap();
    }
}
