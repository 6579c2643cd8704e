//! A package that is valid, to be changed by each test.

use serde_json::{Value, json};
use toolgate_kernel::problem::Problem;
use toolgate_package::Package;

/// A valid, unsigned document with every member that an author may write.
pub fn document() -> Value {
    json!({
        "id": "time",
        "name": "Time",
        "version": "1.2.0",
        "description": "Tells the time.",
        "tools": [{
            "name": "get_time",
            "description": "The time in a zone.",
            "parameters": { "type": "object", "properties": { "zone": { "type": "string" } } },
            "outputSchema": { "type": "object" },
            "executorCode": "return { time: new Date().toISOString(), zone: args.zone };",
            "timeout": "2s",
            "retry": "safe"
        }],
        "permissions": ["fetch:api.example.com", "fetch:*.example.org", "storage"],
        "dependencies": { "units": "^1.0" },
        "engine": ">=0.1"
    })
}

/// The document with the value at `pointer` replaced, or added to its object.
pub fn with(pointer: &str, value: Value) -> Value {
    changed(document(), pointer, value)
}

/// The same for any document.
pub fn changed(mut document: Value, pointer: &str, value: Value) -> Value {
    let (parent, name) = pointer.rsplit_once('/').expect("a pointer");
    match document.pointer_mut(parent).expect("there is such an object") {
        Value::Object(members) => {
            members.insert(name.replace("~1", "/"), value);
        }
        Value::Array(items) => items[name.parse::<usize>().expect("an index")] = value,
        other => panic!("{other} has no members"),
    }
    document
}

/// The document without a member.
pub fn without(pointer: &str) -> Value {
    let mut document = document();
    let (parent, name) = pointer.rsplit_once('/').expect("a pointer");
    let members = document.pointer_mut(parent).and_then(Value::as_object_mut);
    members.expect("an object").remove(name).expect("it was there");
    document
}

pub fn parse(document: &Value) -> Result<Package, Vec<Problem>> {
    Package::parse(document.to_string().as_bytes())
}

pub fn package(document: &Value) -> Package {
    parse(document).unwrap_or_else(|problems| panic!("{problems:?}"))
}
