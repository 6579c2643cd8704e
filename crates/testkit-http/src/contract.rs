//! Every answer that a test sees is held against the OpenAPI document: the status must be described there, and the
//! body must match its schema.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use http::{Method, StatusCode};
use jsonschema::Validator;
use serde_json::{Value, json};

/// Refusals that any address gives and no operation tells.
const UNTOLD: [StatusCode; 2] = [StatusCode::METHOD_NOT_ALLOWED, StatusCode::NOT_FOUND];

/// A document, and the schemas of it that were compiled so far.
pub struct Contract {
    document: Value,
    known: Mutex<HashMap<String, Arc<Validator>>>,
}

impl Contract {
    /// Holds answers against this document.
    pub fn new(document: &str) -> Self {
        Self {
            document: serde_json::from_str(document).unwrap(),
            known: Mutex::default(),
        }
    }

    /// The answer fits what the document says of the operation.
    pub fn check(&self, method: &Method, path: &str, status: StatusCode, kind: &str, body: &Value) {
        let Some(operation) = self.operation(method, path) else {
            assert!(
                UNTOLD.contains(&status),
                "{method} {path} is not in the document and gave {status}"
            );
            return self.fits(&json!({ "$ref": "#/components/schemas/Problem" }), body);
        };
        let response = &operation["responses"][status.as_str()];
        let response = match response["$ref"].as_str() {
            Some(reference) => self.document.pointer(&reference[1..]).unwrap(),
            None => response,
        };
        assert!(
            !response.is_null(),
            "{method} {path} does not tell {status}: {body}"
        );
        let Some(content) = response["content"].as_object() else {
            assert_eq!(body, "", "{method} {path} {status} tells no body");
            return;
        };
        let media = kind.split(';').next().unwrap();
        let told = content.get(media).or_else(|| content.get("*/*"));
        let told = told.unwrap_or_else(|| panic!("{method} {path} {status} does not tell {media}"));
        if media == "text/event-stream" && told["schema"]["type"] != "string" {
            // A stream is described by what each of its events holds.
            for event in body.as_str().unwrap().split_terminator("\n\n") {
                let fields = event.lines().filter_map(|line| line.split_once(": "));
                let fields = fields.map(|(name, value)| (name.to_owned(), value.into()));
                self.fits(&told["schema"], &Value::Object(fields.collect()));
            }
            return;
        }
        if media != "application/problem+json" && content.contains_key("*/*") {
            return;
        }
        self.fits(&told["schema"], body);
    }

    /// An event fits its description, and has no member that the description does not tell.
    pub fn check_event(&self, data: &Value) {
        self.fits(&json!({ "$ref": "#/components/schemas/Event" }), data);
        let kind = data["type"].as_str().unwrap();
        let schemas = self.document["components"]["schemas"].as_object().unwrap();
        let told = schemas
            .values()
            .find(|schema| schema["properties"]["type"]["enum"] == json!([kind]));
        let told = &told.unwrap_or_else(|| panic!("{kind} is not told"))["properties"];
        for member in data.as_object().unwrap().keys() {
            assert!(told.get(member).is_some(), "{member} of {kind} is not told");
        }
    }

    /// Whether a request body fits what the document says of the operation.
    pub fn takes(&self, method: &Method, path: &str, body: &Value) -> bool {
        let operation = self.operation(method, path).unwrap();
        self.validator(&operation["requestBody"]["content"]["application/json"]["schema"])
            .is_valid(body)
    }

    fn operation(&self, method: &Method, path: &str) -> Option<&Value> {
        let path = path.split('?').next().unwrap();
        let same = |template: &str| {
            // The name of a file goes on to the end of the address.
            if let Some(files) = template.strip_suffix("{path}")
                && path.splitn(6, '/').count() == 6
            {
                let same = path.split('/').zip(files.trim_end_matches('/').split('/'));
                return same.fold(true, |same, (given, told)| {
                    same && (given == told || told.starts_with('{'))
                });
            }
            let (mut given, mut told) = (path.split('/'), template.split('/'));
            let all = given
                .by_ref()
                .zip(told.by_ref())
                .all(|(given, told)| given == told || told.starts_with('{'));
            all && given.next().is_none()
                && told.next().is_none()
                && path.matches('/').count() == template.matches('/').count()
        };
        let paths = self.document["paths"].as_object().unwrap();
        let exact = paths.get(path);
        let item = exact.or_else(|| {
            paths
                .iter()
                .find(|(template, _)| same(template))
                .map(|(_, item)| item)
        })?;
        item.get(method.as_str().to_lowercase())
    }

    fn fits(&self, schema: &Value, body: &Value) {
        let errors: Vec<String> = self
            .validator(schema)
            .iter_errors(body)
            .map(|e| format!("{} {e}", e.instance_path()))
            .collect();
        assert!(errors.is_empty(), "{body} does not fit {schema}: {errors:?}");
    }

    fn validator(&self, schema: &Value) -> Arc<Validator> {
        let mut known = self.known.lock().unwrap();
        let compile = || {
            let mut whole = schema.clone();
            whole["components"] = self.document["components"].clone();
            Arc::new(jsonschema::draft202012::new(&whole).unwrap())
        };
        known.entry(schema.to_string()).or_insert_with(compile).clone()
    }
}
