//! The envelope of JSON-RPC 2.0.

use serde_json::{Value, json};

use crate::Invalid;
use crate::error::{Error, ErrorKind};

/// Most bytes of the id of a request.
const ID_BYTES_MAX: usize = 256;

/// A request. A batch is none of these: A2A does not have them.
#[derive(Clone, PartialEq, Debug)]
pub struct Request {
    /// What the response is told by: a string, a whole number or null.
    pub id: Value,
    /// What is asked for.
    pub method: String,
    /// With what; an empty object where the request has none.
    pub params: Value,
}

/// A body that is not a request.
#[derive(Clone, PartialEq, Debug)]
pub struct Malformed {
    /// The id that the response must carry, null when it cannot be known.
    pub id: Value,
    /// What is wrong.
    pub error: Error,
}

impl Request {
    /// Reads a request.
    pub fn from_json(value: Value) -> Result<Self, Box<Malformed>> {
        let invalid = |id: &Value, why: &str| {
            let error = Error::new(
                ErrorKind::InvalidRequest,
                format!("not a request of JSON-RPC 2.0: {why}"),
            );
            Box::new(Malformed {
                id: id.clone(),
                error,
            })
        };
        let Value::Object(mut members) = value else {
            return Err(invalid(&Value::Null, "the body must be an object"));
        };
        let id = members.remove("id").unwrap_or_default();
        let is_whole = |id: &Value| id.is_i64() || id.is_u64();
        if !(id.is_null() || id.is_string() || is_whole(&id)) {
            return Err(invalid(
                &Value::Null,
                "id must be a string, a whole number or null",
            ));
        }
        // Every event of a stream repeats it.
        if id.as_str().is_some_and(|id| id.len() > ID_BYTES_MAX) {
            let why = format!("id may have {ID_BYTES_MAX} bytes at most");
            return Err(invalid(&Value::Null, &why));
        }
        if members.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
            return Err(invalid(&id, "jsonrpc must be \"2.0\""));
        }
        let Some(Value::String(method)) = members.remove("method") else {
            return Err(invalid(&id, "method must be a string"));
        };
        let params = match members.remove("params") {
            None | Some(Value::Null) => json!({}),
            Some(params @ Value::Object(_)) => params,
            Some(_) => {
                let error = Invalid::one("params", "must be an object").into();
                return Err(Box::new(Malformed { id, error }));
            }
        };
        Ok(Self { id, method, params })
    }

    /// Writes the request.
    pub fn to_json(&self) -> Value {
        json!({"jsonrpc": "2.0", "id": self.id, "method": self.method, "params": self.params})
    }
}

/// A response that carries a result.
pub fn result(id: &Value, result: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "result": result})
}

/// A response that carries an error.
pub fn error(id: &Value, error: &Error) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "error": error.to_rpc()})
}

/// Reads a response: its result, or the error it carries.
pub fn response(mut value: Value) -> Result<Value, Error> {
    if let Some(error) = value.get("error").filter(|error| !error.is_null()) {
        return Err(Error::from_rpc(error));
    }
    let result = value.as_object_mut().and_then(|members| members.remove("result"));
    result.ok_or_else(|| {
        let message = "the response of JSON-RPC has neither a result nor an error";
        Error::new(ErrorKind::InvalidAgentResponse, message)
    })
}
