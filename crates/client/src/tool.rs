//! A tool: its definition, and the function that executes it.

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use toolgate_protocol::id::{CallId, RunId};
use toolgate_protocol::tool::CLIENT_DEADLINE;

use crate::client::Client;
use crate::error::Error;
use crate::plugin::BoxError;
use crate::schema;

/// Default of [`Tool::timeout`].
const TIMEOUT_DEFAULT: Duration = Duration::from_secs(60);

/// A tool's definition, as the gateway and the model see it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Definition {
    /// Name: `[A-Za-z_][A-Za-z0-9_-]{0,63}`.
    pub name: String,
    /// What it does and when to use it: 1 to 1,024 characters.
    pub description: String,
    /// JSON Schema of the input, of type object.
    pub parameters: Value,
    /// JSON Schema of the output; the gateway validates results against it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Value>,
    /// How long the gateway waits for a result, the time until a client claims the call included; ten minutes by
    /// default. Written as `"90000ms"`.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "written_timeout")]
    pub timeout: Option<Duration>,
    /// Version of the tool, for people and logs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Set when the tool should not be used any more. A warning travels with its results.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deprecated: Option<Deprecated>,
}

/// Whether a tool should not be used any more.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Deprecated {
    /// `true` if so.
    Flag(bool),
    /// What to use instead, or why.
    Reason(String),
}

impl From<bool> for Deprecated {
    fn from(deprecated: bool) -> Self {
        Self::Flag(deprecated)
    }
}

impl From<&str> for Deprecated {
    fn from(reason: &str) -> Self {
        Self::Reason(reason.to_owned())
    }
}

/// A time-out as definitions have it: a text with a unit; a number of seconds is read, too.
mod written_timeout {
    use std::time::Duration;

    use serde::de::Error as _;
    use serde::{Deserialize as _, Deserializer, Serialize as _, Serializer};
    use serde_json::Value;
    use toolgate_protocol::definition::duration;

    pub fn serialize<S: Serializer>(timeout: &Option<Duration>, out: S) -> Result<S::Ok, S::Error> {
        let written = timeout.map(|timeout| format!("{}ms", timeout.as_millis()));
        written.serialize(out)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(input: D) -> Result<Option<Duration>, D::Error> {
        let Some(value) = Option::<Value>::deserialize(input)? else {
            return Ok(None);
        };
        let read = duration(&value).map(Some);
        read.ok_or_else(|| {
            let words = "expected a number of seconds or a text such as \"30s\", \"10m\" or \"500ms\"";
            D::Error::custom(format_args!("{words}, got {value}"))
        })
    }
}

impl Definition {
    /// A tool without arguments; add some with [`Definition::parameters`].
    pub fn new(name: impl Into<String>, description: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            description: description.into(),
            parameters: json!({"type": "object", "properties": {}}),
            output_schema: None,
            timeout: None,
            version: None,
            deprecated: None,
        }
    }

    /// Sets the schema of the input.
    pub fn parameters(mut self, schema: Value) -> Self {
        self.parameters = schema;
        self
    }

    /// Sets the version.
    pub fn version(mut self, version: impl Into<String>) -> Self {
        self.version = Some(version.into());
        self
    }

    /// Says that the tool should not be used any more: `true`, or what to use instead.
    pub fn deprecated(mut self, deprecated: impl Into<Deprecated>) -> Self {
        self.deprecated = Some(deprecated.into());
        self
    }
}

pub(crate) type Executor =
    Arc<dyn Fn(ToolCall) -> BoxFuture<'static, Result<Value, ToolError>> + Send + Sync>;

/// A definition, and the function that executes it.
#[derive(Clone)]
pub struct Tool {
    pub(crate) definition: Definition,
    pub(crate) executor: Option<Executor>,
    pub(crate) timeout: Duration,
}

impl Tool {
    /// A tool from an async function of its typed arguments. The schema is the type's: doc comments become
    /// descriptions. Arguments that do not fit are an error that the model reads.
    ///
    /// ```
    /// use toolgate_client::{JsonSchema, Tool, ToolError};
    ///
    /// #[derive(serde::Deserialize, JsonSchema)]
    /// struct Area {
    ///     /// In metres.
    ///     width: f64,
    ///     /// In metres.
    ///     height: f64,
    /// }
    ///
    /// let tool = Tool::typed("area", "Computes an area.", |room: Area| async move {
    ///     Ok::<_, ToolError>(room.width * room.height)
    /// });
    /// assert_eq!(tool.definition().parameters["required"][0], "width");
    /// ```
    pub fn typed<A, F, R, T, E>(name: impl Into<String>, description: impl Into<String>, run: F) -> Self
    where
        A: DeserializeOwned + JsonSchema,
        F: Fn(A) -> R + Send + Sync + 'static,
        R: Future<Output = Result<T, E>> + Send + 'static,
        T: Serialize,
        E: Into<ToolError>,
    {
        Self::typed_with_call(name, description, move |arguments, _| run(arguments))
    }

    /// Like [`Tool::typed`], for a function that also gets the call: to report progress, or to observe
    /// cancellation.
    pub fn typed_with_call<A, F, R, T, E>(
        name: impl Into<String>,
        description: impl Into<String>,
        run: F,
    ) -> Self
    where
        A: DeserializeOwned + JsonSchema,
        F: Fn(A, ToolCall) -> R + Send + Sync + 'static,
        R: Future<Output = Result<T, E>> + Send + 'static,
        T: Serialize,
        E: Into<ToolError>,
    {
        let definition = Definition::new(name, description).parameters(schema::of_arguments::<A>());
        let run = Arc::new(run);
        Self::new(definition, move |call: ToolCall| {
            let run = run.clone();
            async move {
                let arguments: A = call.arguments()?;
                let output = run(arguments, call).await.map_err(Into::into)?;
                serde_json::to_value(output).map_err(ToolError::from)
            }
        })
    }

    /// A tool from a function that blocks its thread: that reads files, computes for long, or waits for a library
    /// that is not async. It runs on a thread of its own, so that other tools and the conversation go on.
    ///
    /// ```
    /// use toolgate_client::{JsonSchema, Tool};
    ///
    /// #[derive(serde::Deserialize, JsonSchema)]
    /// struct Count {
    ///     path: String,
    /// }
    ///
    /// Tool::blocking("count_lines", "Counts the lines of a file.", |count: Count| {
    ///     let text = std::fs::read_to_string(count.path)?;
    ///     std::io::Result::Ok(text.lines().count())
    /// });
    /// ```
    pub fn blocking<A, F, T, E>(name: impl Into<String>, description: impl Into<String>, run: F) -> Self
    where
        A: DeserializeOwned + JsonSchema + Send + 'static,
        F: Fn(A) -> Result<T, E> + Send + Sync + 'static,
        T: Serialize,
        E: Into<ToolError>,
    {
        Self::blocking_with_call(name, description, move |arguments, _: &ToolCall| run(arguments))
    }

    /// Like [`Tool::blocking`], for a function that also gets the call. A thread cannot be stopped from outside:
    /// one that works for long looks at [`ToolCall::cancelled`], which also fires when the tool's time is over.
    pub fn blocking_with_call<A, F, T, E>(
        name: impl Into<String>,
        description: impl Into<String>,
        run: F,
    ) -> Self
    where
        A: DeserializeOwned + JsonSchema + Send + 'static,
        F: Fn(A, &ToolCall) -> Result<T, E> + Send + Sync + 'static,
        T: Serialize,
        E: Into<ToolError>,
    {
        let definition = Definition::new(name, description).parameters(schema::of_arguments::<A>());
        let run = Arc::new(run);
        Self::new(definition, move |call: ToolCall| {
            let run = run.clone();
            async move {
                let arguments: A = call.arguments()?;
                let work = move || {
                    let output = run(arguments, &call).map_err(Into::into)?;
                    serde_json::to_value(output).map_err(ToolError::from)
                };
                match tokio::task::spawn_blocking(work).await {
                    Ok(outcome) => outcome,
                    Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
                    Err(_) => Err(ToolError::new("the program is shutting down")),
                }
            }
        })
    }

    /// A tool from a definition and an async function of the call.
    pub fn new<F, R>(definition: Definition, run: F) -> Self
    where
        F: Fn(ToolCall) -> R + Send + Sync + 'static,
        R: Future<Output = Result<Value, ToolError>> + Send + 'static,
    {
        Self {
            definition,
            executor: Some(executor(run)),
            timeout: TIMEOUT_DEFAULT,
        }
    }

    /// A definition alone: its executor is given to the plugin, or a hook executes its calls. A plugin that has neither is
    /// rejected at registration.
    pub fn without_executor(definition: Definition) -> Self {
        Self {
            definition,
            executor: None,
            timeout: TIMEOUT_DEFAULT,
        }
    }

    /// Timeout of one execution; one minute by default. The gateway waits this long in addition to the time
    /// that a client has to claim the call.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self.definition.timeout = Some(timeout + CLIENT_DEADLINE);
        self
    }

    /// Sets the schema of the output, which the gateway then validates results against.
    pub fn output<T: JsonSchema>(mut self) -> Self {
        self.definition.output_schema = Some(schema::of::<T>());
        self
    }

    /// The tool's definition.
    pub fn definition(&self) -> &Definition {
        &self.definition
    }
}

impl fmt::Debug for Tool {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Tool")
            .field("definition", &self.definition)
            .field("timeout", &self.timeout)
            .finish_non_exhaustive()
    }
}

pub(crate) fn executor<F, R>(run: F) -> Executor
where
    F: Fn(ToolCall) -> R + Send + Sync + 'static,
    R: Future<Output = Result<Value, ToolError>> + Send + 'static,
{
    Arc::new(move |call| Box::pin(run(call)))
}

/// A call of a tool by the model, to be executed on this client.
#[derive(Clone)]
pub struct ToolCall {
    /// The call's id. The same call always has the same id, so it serves as an idempotency key.
    pub id: CallId,
    /// The tool's name.
    pub name: String,
    /// The call's input, which the gateway has validated against the schema.
    pub input: Value,
    /// The run that made the call.
    pub run: RunId,
    /// Fires when the result is no longer wanted: the run was cancelled, the call or the tool has timed out, or
    /// another result won.
    pub cancelled: CancellationToken,
    pub(crate) client: Client,
}

impl ToolCall {
    /// Deserializes the input.
    pub fn arguments<A: DeserializeOwned>(&self) -> Result<A, ToolError> {
        A::deserialize(&self.input)
            .map_err(|error| ToolError::new(format_args!("the arguments do not match the schema: {error}")))
    }

    /// Executes the call with this client's tools, within their timeout: what happens without an override.
    pub async fn execute(self) -> Result<Value, ToolError> {
        self.client.clone().execute(self).await
    }

    /// Reports progress, as any JSON, to everyone who watches the run.
    pub async fn progress(&self, progress: impl Serialize) -> Result<(), Error> {
        self.client.tools().progress(self.id, progress).await
    }
}

impl fmt::Debug for ToolCall {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("ToolCall")
            .field("id", &self.id)
            .field("name", &self.name)
            .field("input", &self.input)
            .finish_non_exhaustive()
    }
}

/// Why a tool failed, in a message that the model can act on. With `?` every error becomes one that can be sent
/// between threads, such as those of `std`, `anyhow::Error` and a plain text; the message names its causes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolError(String);

impl ToolError {
    /// An error with this message.
    pub fn new(message: impl fmt::Display) -> Self {
        Self(message.to_string())
    }
    /// The message.
    pub fn message(&self) -> &str {
        &self.0
    }
}

impl<E: Into<BoxError>> From<E> for ToolError {
    fn from(error: E) -> Self {
        let error = error.into();
        let causes = std::iter::successors(error.source(), |cause| cause.source());
        Self(causes.fold(error.to_string(), |words, cause| format!("{words}: {cause}")))
    }
}

/// The outcome of a call that was executed on this client.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolResult {
    /// The call's id.
    pub call: CallId,
    /// The tool's name.
    pub name: String,
    /// The output or the error, as the model reads it.
    pub outcome: Result<Value, ToolError>,
    /// How long the execution took.
    pub elapsed: Duration,
}
