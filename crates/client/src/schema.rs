//! JSON Schemas in the form that a gateway accepts from a client: inlined, without references.

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

/// Keywords that name or describe a schema and do not constrain the value. They cost bytes and help no model.
const NAMES: [&str; 3] = ["$schema", "$id", "title"];

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

/// Removes naming keywords, and formats that only Rust has (`uint32`), whose bounds remain.
pub(crate) fn tidy(schema: &mut Value) {
    let Value::Object(members) = schema else { return };
    // A property may be named `title`: only keywords are removed.
    NAMES.iter().for_each(|name| drop(members.remove(*name)));
    if let Some(Value::String(format)) = members.get("format")
        && ["uint", "int", "float", "double"]
            .iter()
            .any(|own| format.starts_with(own))
    {
        members.remove("format");
    }
    subschemas(members).for_each(tidy);
}

/// The direct subschemas of a schema.
pub(crate) fn subschemas(members: &mut Map<String, Value>) -> impl Iterator<Item = &mut Value> {
    members
        .iter_mut()
        .flat_map(|(keyword, value)| -> Vec<&mut Value> {
            match (keyword.as_str(), value) {
                (
                    "properties" | "patternProperties" | "$defs" | "definitions" | "dependentSchemas",
                    Value::Object(of),
                ) => of.values_mut().collect(),
                ("anyOf" | "oneOf" | "allOf" | "prefixItems", Value::Array(of)) => of.iter_mut().collect(),
                (
                    "items"
                    | "additionalProperties"
                    | "contains"
                    | "not"
                    | "if"
                    | "then"
                    | "else"
                    | "propertyNames",
                    schema @ Value::Object(_),
                ) => vec![schema],
                _ => Vec::new(),
            }
        })
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
