//! The OpenAPI document: put together from what each door says of itself.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use utoipa::openapi::response::Response;
use utoipa::openapi::{OpenApi, Ref, RefOr};
use utoipa::{IntoResponses, ToSchema};

use crate::problem::{ExceededBudget, FaultBody, ProblemBody};
use crate::schema::{Any, Time};

/// What one door says of itself.
pub struct Api {
    /// Its routes and the components that they name.
    pub routes: OpenApi,
    /// Components that no handler describes, or describes otherwise.
    pub schemas: Map<String, Value>,
}

/// The document of these doors together, as JSON text.
pub fn document(doors: impl IntoIterator<Item = Api>) -> String {
    let (mut routes, mut more) = (OpenApi::default(), Map::new());
    for door in doors {
        routes.merge(door.routes);
        more.extend(door.schemas);
    }
    let mut document = serde_json::to_value(routes).expect("the description has text keys");
    document["info"] = json!({
        "title": "Toolgate",
        "version": env!("CARGO_PKG_VERSION"),
        "description": "The gateway between agents and their tools.",
        "license": { "name": "Apache-2.0", "identifier": "Apache-2.0" },
    });
    document["security"] = json!([{ "secretKey": [] }, { "publicKey": [], "userToken": [] }]);
    document["components"]["securitySchemes"] = json!({
        "secretKey": {
            "type": "http", "scheme": "bearer", "bearerFormat": "sk_…",
            "description": "A project's secret key: its backend, which sees everything.",
        },
        "publicKey": {
            "type": "apiKey", "in": "header", "name": "x-public-key",
            "description": "A project's public key (pk_…), always with a user's token. On event streams both may \
                            stand in the address as `key` and `token`, for browsers that cannot send headers.",
        },
        "userToken": {
            "type": "http", "scheme": "bearer", "bearerFormat": "JWT",
            "description": "A user's token: HS256 with the project's secret, or RS256, ES256, EdDSA by its published \
                            keys. `sub` is the user, `exp` is required.",
        },
    });
    document["components"]["responses"] = REFUSALS.iter().map(refusal).collect();
    if let Value::Object(schemas) = &mut document["components"]["schemas"] {
        schemas.extend(more);
        schemas.insert("NewClientTool".into(), crate::client_tools::described());
        schemas.insert("Problem".into(), schema_of::<ProblemBody>());
        schemas.insert("Fault".into(), schema_of::<FaultBody>());
        schemas.insert("ExceededBudget".into(), schema_of::<ExceededBudget>());
        // Named by `Problem` and `ExceededBudget`, whether or not a door names them too.
        schemas.insert("Any".into(), schema_of::<Any>());
        schemas.insert("Time".into(), schema_of::<Time>());
    }
    // What axum reads to the end of an address is a parameter like any other to everybody else.
    if let Value::Object(paths) = document["paths"].take() {
        let named = paths
            .into_iter()
            .map(|(path, item)| (path.replace("{*", "{"), item));
        document["paths"] = Value::Object(named.collect());
    }
    for operation in document["paths"]
        .as_object_mut()
        .into_iter()
        .flatten()
        .flat_map(|(_, item)| operations(item))
    {
        let parameters = operation
            .get_mut("parameters")
            .and_then(Value::as_array_mut)
            .into_iter()
            .flatten();
        parameters.for_each(|parameter| leave_out_null(&mut parameter["schema"]));
        // Every route refuses query parameters that it does not know.
        if let Some(responses) = operation["responses"].as_object_mut() {
            let refusal = json!({ "$ref": "#/components/responses/Refused400" });
            responses.entry("400").or_insert(refusal);
        }
        if let Some(body) = operation.pointer_mut("/requestBody/content/application~1json/schema") {
            leave_out_null(body);
        }
    }
    let items = document["paths"].as_object_mut().into_iter().flatten();
    items.for_each(|(_, item)| tell_of_forgeries(item));
    let mut text = serde_json::to_string_pretty(&document).expect("a value is JSON");
    text.push('\n');
    text
}

/// Whatever changes something is refused to a session whose request may come from another page.
fn tell_of_forgeries(item: &mut Value) {
    for method in ["post", "put", "patch", "delete"] {
        let responses = item.pointer_mut(&format!("/{method}/responses"));
        if let Some(responses) = responses.and_then(Value::as_object_mut)
            && responses.contains_key("401")
        {
            let refusal = json!({ "$ref": "#/components/responses/Refused403" });
            responses.entry("403").or_insert(refusal);
        }
    }
}

fn operations(item: &mut Value) -> impl Iterator<Item = &mut Value> {
    item.as_object_mut()
        .into_iter()
        .flatten()
        .map(|(_, operation)| operation)
}

/// A parameter or a body may be left out; it is never the word `null`.
fn leave_out_null(schema: &mut Value) {
    if let Some([some, null]) = schema["oneOf"].as_array().map(Vec::as_slice)
        && *null == json!({ "type": "null" })
    {
        *schema = some.clone();
    }
}

fn schema_of<T: ToSchema>() -> Value {
    serde_json::to_value(T::schema()).expect("a description has text keys")
}

/// Every refusal: its status and its words. The components are named after them.
const REFUSALS: &[(&str, &str)] = &[
    (
        "400",
        "Malformed: no sound JSON, a query or header that cannot be read, or a query parameter that is not known.",
    ),
    ("401", "Nobody knows who asks."),
    (
        "403",
        "This needs a secret key or the operator's key, or is for somebody else; `code` is `CSRF` when a session's request \
         brings no `x-toolgate-csrf` or comes from another page.",
    ),
    ("404", "There is none, or it is not for you."),
    ("408", "The body took too long to arrive."),
    (
        "409",
        "It was settled otherwise before, or somebody else holds it; `winner` or `claim` tells who.",
    ),
    ("410", "It was given up before this came; `code` tells why."),
    ("412", "It is not, or no longer, as the headers say it must be."),
    ("413", "The body is too large."),
    ("415", "The body is not JSON."),
    (
        "422",
        "It can be read, but is wrong; `errors` tells everything that is.",
    ),
    ("429", "Too many requests; see `retry-after`."),
    ("507", "There is no room for it."),
    ("503", "Not now; nothing was done. See `retry-after`."),
];

/// Refusals that several routes share.
macro_rules! refusals {
    ($($(#[$doc:meta])* $name:ident = [$($status:literal),*];)*) => {$(
        $(#[$doc])*
        pub struct $name;

        impl IntoResponses for $name {
            fn responses() -> BTreeMap<String, RefOr<Response>> {
                let named = |status: &str| Ref::from_response_name(format!("Refused{status}")).into();
                [$($status),*].into_iter().map(|status| (status.into(), named(status))).collect()
            }
        }
    )*};
}

refusals! {
    /// Whoever asks.
    Refused = ["401", "429", "503"];
    /// A body that is not right.
    BadBody = ["400", "408", "413", "415", "422"];
    /// A query that is not right.
    BadQuery = ["400"];
    /// A cursor that no longer says where to go on.
    Expired = ["410"];
    /// Something that is not there, or not for whoever asks.
    Missing = ["404"];
    /// Not for users.
    BackendOnly = ["403"];
    /// Somebody else's, which is no secret.
    Others = ["403"];
    /// Errors of a call or approval that has ended.
    Settled = ["409", "410"];
    /// A file that is not right.
    BadFile = ["400", "408", "413", "415", "507"];
    /// A document that is not right.
    BadDocument = ["400", "408", "413", "415", "422", "507"];
    /// What others change at the same time.
    Contended = ["409"];
    /// The precondition failed.
    Changed = ["412"];
    /// As much as there may be.
    NoRoom = ["507"];
    /// Not now.
    Busy = ["503"];
    /// Whoever asks, where no key is needed.
    Limited = ["429", "503"];
}

fn refusal((status, words): &(&str, &str)) -> (String, Value) {
    let schema = json!({ "$ref": "#/components/schemas/Problem" });
    let response =
        json!({ "description": words, "content": { "application/problem+json": { "schema": schema } } });
    (format!("Refused{status}"), response)
}
