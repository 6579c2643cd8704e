//! A tool: what the model is told of it, and what executes it.

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
use toolgate_kernel::id::{CallId, RunId};
use toolgate_kernel::tool::CLIENT_DEADLINE;

use crate::client::Client;
use crate::error::Error;
use crate::schema;

/// How long an execution may take when its tool says nothing.
const TIMEOUT_DEFAULT: Duration = Duration::from_secs(60);

/// What the model is told of a tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Definition {
    /// `[A-Za-z_][A-Za-z0-9_-]{0,63}`.
    pub name: String,
    /// What it does and when to use it: up to 1,024 characters.
    pub description: String,
    /// JSON Schema of the input, of type object.
    pub parameters: Value,
    /// JSON Schema of the output; the gateway checks it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Value>,
    /// How long the gateway waits for a result, such as `"90s"`; ten minutes unless said otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<String>,
}

impl Definition {
    /// A tool without arguments; give it some with [`Definition::parameters`].
    pub fn new(name: impl Into<String>, description: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            description: description.into(),
            parameters: json!({"type": "object", "properties": {}}),
            output_schema: None,
            timeout: None,
        }
    }

    /// Sets the schema of the input.
    pub fn parameters(mut self, schema: Value) -> Self {
        self.parameters = schema;
        self
    }
}

pub(crate) type Executor =
    Arc<dyn Fn(ToolCall) -> BoxFuture<'static, Result<Value, ToolError>> + Send + Sync>;

/// A definition, and what executes it on this side.
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

    /// The same, for a function that also wants the call: to tell how far it is, or to hear of a cancel.
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

    /// A definition alone: an executor is given to the plugin, or a hook takes the calls.
    pub fn without_executor(definition: Definition) -> Self {
        Self {
            definition,
            executor: None,
            timeout: TIMEOUT_DEFAULT,
        }
    }

    /// How long one execution may take; a minute unless said otherwise. The gateway waits that long on top of
    /// the time it gives a client to begin.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self.definition.timeout = Some(format!("{}ms", (timeout + CLIENT_DEADLINE).as_millis()));
        self
    }

    /// Sets the schema of the output, which the gateway then checks.
    pub fn output<T: JsonSchema>(mut self) -> Self {
        self.definition.output_schema = Some(schema::of::<T>());
        self
    }

    /// What the model is told.
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

/// One use of a tool by the model, to be executed here.
#[derive(Clone)]
pub struct ToolCall {
    /// Which call: the same one always has the same id, so it is good as an idempotency key.
    pub id: CallId,
    /// The tool.
    pub name: String,
    /// What to run it with; the gateway has checked it against the schema.
    pub input: Value,
    /// The run that asks.
    pub run: RunId,
    /// Fires when nobody waits for the result any more: the run was cancelled, or somebody else answered.
    pub cancelled: CancellationToken,
    pub(crate) client: Client,
}

impl ToolCall {
    /// The input as a type.
    pub fn arguments<A: DeserializeOwned>(&self) -> Result<A, ToolError> {
        A::deserialize(&self.input)
            .map_err(|error| ToolError::new(format_args!("the arguments do not fit: {error}")))
    }

    /// Executes it with this client's tools, within their time: what happens when nobody overrides it.
    pub async fn execute(self) -> Result<Value, ToolError> {
        self.client.clone().execute(self).await
    }

    /// Tells whoever watches how far the call is: any JSON.
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

/// Why a tool gave no output, in words that the model can act on. Every error becomes one with `?`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolError(String);

impl ToolError {
    /// From words.
    pub fn new(message: impl fmt::Display) -> Self {
        Self(message.to_string())
    }
    /// The words.
    pub fn message(&self) -> &str {
        &self.0
    }
}

impl<E: std::error::Error> From<E> for ToolError {
    fn from(error: E) -> Self {
        let causes = std::iter::successors(error.source(), |cause| cause.source());
        Self(causes.fold(error.to_string(), |words, cause| format!("{words}: {cause}")))
    }
}

/// What became of a call that was executed here.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolResult {
    /// Which call.
    pub call: CallId,
    /// The tool.
    pub name: String,
    /// What the model is told.
    pub outcome: Result<Value, ToolError>,
    /// How long the execution took.
    pub elapsed: Duration,
}
