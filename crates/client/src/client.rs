//! The client: one gateway, one principal, its plugins.

use std::sync::{Arc, OnceLock, PoisonError, RwLock};
use std::time::Duration;

use hyper::Method;
use hyper::header::{HeaderMap, HeaderName};
use serde_json::Value;
use tokio_util::sync::CancellationToken;
use toolgate_protocol::id::{CallId, RunId, SpaceId};
use uuid::Uuid;

use crate::chat::{ChatRequest, ChatStream, Reply};
use crate::error::{Error, PluginError};
use crate::http::{Backoff, Http, RetryPolicy, bearer, sensitive};
use crate::lease::{Lease, LeaseKeeper};
use crate::plugin::{BoxError, Plugin};
use crate::registry::Registry;
use crate::resources::{
    Agents, Approvals, Calls, Consents, Files, Knowledge, Questions, RunRequest, Runs, Spaces, ToolRegistry,
    Tools,
};
use crate::serve::Serve;
use crate::tool::{Definition, Tool, ToolCall, ToolError};

/// Timeout of one question whether the gateway is there.
const READY_TIMEOUT: Duration = Duration::from_secs(10);
/// Prefix of the plugin that [`Client::register_tool`] creates for a single tool.
const LONE_TOOL: &str = "tool:";

/// A gateway as seen by one principal. Cheap to clone; clones share their plugins.
#[derive(Clone, Debug)]
pub struct Client {
    shared: Arc<Shared>,
}

/// A client that is not kept alive: for what a plugin of it holds.
#[cfg(feature = "mcp")]
#[derive(Debug, Clone)]
pub(crate) struct WeakClient(std::sync::Weak<Shared>);

#[cfg(feature = "mcp")]
impl WeakClient {
    /// The client, unless it is gone.
    pub fn upgrade(&self) -> Option<Client> {
        self.0.upgrade().map(|shared| Client { shared })
    }
}

#[derive(Debug)]
struct Shared {
    http: Arc<Http>,
    registry: RwLock<Registry>,
    holder: String,
    /// Started with the first claimed call.
    leases: OnceLock<Arc<LeaseKeeper>>,
}

/// Builder of a [`Client`].
#[derive(Debug, Default)]
pub struct ClientBuilder {
    url: String,
    key: Option<String>,
    user: Option<(String, String)>,
    holder: Option<String>,
    roots: Option<Vec<u8>>,
}

impl ClientBuilder {
    /// Authenticates as a backend with a secret key, `sk_…`.
    pub fn key(mut self, key: impl Into<String>) -> Self {
        self.key = Some(key.into());
        self
    }

    /// Authenticates as a user, with the project's public key, `pk_…`, and the user's JWT.
    pub fn user(mut self, public_key: impl Into<String>, token: impl Into<String>) -> Self {
        self.user = Some((public_key.into(), token.into()));
        self
    }

    /// The name that this client claims calls with; a random one by default. A name that stays the same over
    /// a restart of the program keeps its leases.
    pub fn holder(mut self, holder: impl Into<String>) -> Self {
        self.holder = Some(holder.into());
        self
    }

    /// Certificates that are trusted beside those of the operating system, as PEM text: of a private certificate
    /// authority that has signed the gateway's certificate.
    #[cfg(feature = "tls")]
    pub fn root_certificates(mut self, pem: impl Into<Vec<u8>>) -> Self {
        self.roots = Some(pem.into());
        self
    }

    /// Builds the client. Sends nothing yet; fails if the URL, the keys or the certificates are malformed.
    pub fn build(self) -> Result<Client, Error> {
        let mut headers = HeaderMap::new();
        match (&self.key, &self.user) {
            (Some(_), Some(_)) => {
                return Err(Error::Setup("a client authenticates with a secret key or as a user, not both, call either key or user".into()));
            }
            (Some(key), None) => headers.extend([bearer(key)?]),
            (None, Some((public_key, token))) => {
                let name = HeaderName::from_static("x-public-key");
                headers.extend([(name, sensitive(public_key)?), bearer(token)?]);
            }
            // A gateway started with `--no-auth` needs no key.
            (None, None) => {}
        }
        let shared = Shared {
            http: Arc::new(Http::new(&self.url, headers, self.roots.as_deref())?),
            registry: RwLock::default(),
            holder: self
                .holder
                .unwrap_or_else(|| format!("rust-{}", Uuid::now_v7().simple())),
            leases: OnceLock::new(),
        };
        Ok(Client {
            shared: Arc::new(shared),
        })
    }
}

impl Client {
    /// A builder for a client of the gateway at this URL.
    pub fn builder(url: impl Into<String>) -> ClientBuilder {
        ClientBuilder {
            url: url.into(),
            ..ClientBuilder::default()
        }
    }

    /// Waits until the gateway answers, however long that takes. `waiting` is called with the reason of every attempt
    /// that fails, a few seconds apart: to say that the program waits.
    pub async fn ready(&self, mut waiting: impl FnMut(&Error)) -> Result<(), Error> {
        let mut backoff = Backoff::default();
        loop {
            let request = self.http().request(Method::GET, "readyz").timeout(READY_TIMEOUT);
            match self.http().send_request(request, RetryPolicy::Once).await {
                Ok(_) => return Ok(()),
                Err(error) if error.is_passing() => waiting(&error),
                Err(error) => return Err(error),
            }
            tokio::time::sleep(backoff.step()).await;
        }
    }

    /// Registers a plugin: its tools are sent with every message from now on. Fails, with nothing changed, if
    /// the plugin is malformed, a name is already registered, or its `on_register` fails.
    pub async fn use_plugin(&self, plugin: Plugin) -> Result<&Self, Error> {
        let plugin = self.write(|registry| registry.insert(plugin))?;
        if let Some(hooks) = &plugin.hooks
            && let Err(cause) = hooks.on_register(self).await
        {
            // An error means that another caller has removed it meanwhile, which is what we want.
            let _ = self.write(|registry| registry.remove(&plugin.name));
            return Err(hook_failed("on_register", &plugin, cause).into());
        }
        tracing::debug!(
            plugin = plugin.name,
            tools = plugin.tools.len(),
            "plugin registered"
        );
        Ok(self)
    }

    /// Removes a plugin and its tools, and waits for its `on_unregister`.
    pub async fn unuse(&self, name: &str) -> Result<(), Error> {
        let plugin = self.write(|registry| registry.remove(name))?;
        if let Some(hooks) = &plugin.hooks {
            let tidied = hooks.on_unregister().await;
            tidied.map_err(|cause| hook_failed("on_unregister", &plugin, cause))?;
        }
        tracing::debug!(plugin = name, "plugin removed");
        Ok(())
    }

    #[cfg(feature = "mcp")]
    pub(crate) fn downgrade(&self) -> WeakClient {
        WeakClient(Arc::downgrade(&self.shared))
    }

    /// Replaces the tools of a registered plugin. Fails, with nothing changed, if they are malformed or a name is taken.
    #[cfg(feature = "mcp")]
    pub(crate) fn replace_tools(&self, plugin: &str, tools: Vec<Tool>) -> Result<(), PluginError> {
        self.write(|registry| registry.replace_tools(plugin, tools))
    }

    /// Registers one tool as a plugin of its own, named `tool:<name>`.
    pub async fn register_tool(&self, tool: Tool) -> Result<&Self, Error> {
        let name = format!("{LONE_TOOL}{}", tool.definition.name);
        self.use_plugin(Plugin::new(name, "1.0.0").tool(tool)).await
    }

    /// Whether a plugin of this name is registered.
    pub fn has_plugin(&self, name: &str) -> bool {
        self.registry(|registry| registry.get(name).is_some())
    }

    /// The names of all plugins, in order of registration.
    pub fn plugin_names(&self) -> Vec<String> {
        self.registry(|registry| {
            registry
                .plugins()
                .iter()
                .map(|plugin| plugin.name.clone())
                .collect()
        })
    }

    /// The definitions of this client's tools, as they are sent to the gateway.
    pub fn client_tool_definitions(&self) -> Vec<Definition> {
        self.registry(Registry::definitions)
    }

    /// Whether a tool of this name is registered.
    pub fn has_tool(&self, name: &str) -> bool {
        self.registry(|registry| registry.tool(name).is_some())
    }

    /// Executes one of this client's tools as a call of the model would, without a gateway: for tests and for
    /// trying out.
    pub async fn try_tool(&self, name: &str, input: Value) -> Result<Value, ToolError> {
        let run = RunId::new(Uuid::now_v7());
        let call = ToolCall {
            id: CallId { run, number: 0 },
            name: name.to_owned(),
            input,
            run,
            cancelled: CancellationToken::new(),
            client: self.clone(),
        };
        self.execute(call).await
    }

    /// Sends a message and follows the run that answers it. Calls of this client's tools are executed on the
    /// way.
    pub fn chat_stream(&self, request: impl Into<ChatRequest>) -> ChatStream {
        ChatStream::open(self.clone(), request.into())
    }

    /// Like [`Client::chat_stream`], read to its end.
    pub async fn chat(&self, request: impl Into<ChatRequest>) -> Result<Reply, Error> {
        self.chat_stream(request).finish().await
    }

    /// Serves this client's tools to every run of a space, whoever started it.
    pub fn serve(&self, space: SpaceId) -> Serve {
        Serve::new(self.clone(), space)
    }

    /// The runs API.
    pub fn runs(&self) -> Runs<'_> {
        Runs { client: self }
    }
    /// The spaces API.
    pub fn spaces(&self) -> Spaces<'_> {
        Spaces { client: self }
    }
    /// The API for calls of client tools: results, claims, progress.
    pub fn tools(&self) -> Tools<'_> {
        Tools { client: self }
    }
    /// The API for calls that wait for a signal.
    pub fn calls(&self) -> Calls<'_> {
        Calls { client: self }
    }
    /// The workspace files of a space.
    pub fn files(&self, space: SpaceId) -> Files<'_> {
        Files { client: self, space }
    }
    /// The project's documents, which agents search.
    pub fn knowledge(&self) -> Knowledge<'_> {
        Knowledge {
            client: self,
            agent: None,
        }
    }
    /// The API for remembered decisions.
    pub fn consents(&self) -> Consents<'_> {
        Consents { client: self }
    }
    /// The registry of the tools that the agents of a project share; needs a secret key.
    pub fn tool_registry(&self) -> ToolRegistry<'_> {
        ToolRegistry { client: self }
    }
    /// The approvals API.
    pub fn approvals(&self) -> Approvals<'_> {
        Approvals { client: self }
    }
    /// The API for questions that tools ask in the middle of a call.
    pub fn questions(&self) -> Questions<'_> {
        Questions { client: self }
    }
    /// The agents API.
    pub fn agents(&self) -> Agents<'_> {
        Agents { client: self }
    }

    /// The name that this client claims calls with.
    pub fn holder(&self) -> &str {
        &self.shared.holder
    }

    /// The lease of a call that is about to be claimed; within a runtime.
    pub(crate) fn lease(&self, call: CallId) -> Lease {
        let shared = &self.shared;
        let keeper = shared
            .leases
            .get_or_init(|| Arc::new(LeaseKeeper::start(&shared.http, &shared.holder)));
        keeper.lease(call)
    }

    pub(crate) fn http(&self) -> &Arc<Http> {
        &self.shared.http
    }

    /// Passes the request through the plugins' `before_request` hooks, in order.
    pub(crate) async fn before_request(&self, mut request: RunRequest) -> Result<RunRequest, Error> {
        for plugin in self.plugins() {
            if let Some(hooks) = &plugin.hooks {
                let changed = hooks.before_request(request).await;
                request = changed.map_err(|cause| hook_failed("before_request", &plugin, cause))?;
            }
        }
        Ok(request)
    }

    pub(crate) async fn after_response(&self, reply: &Reply) {
        for plugin in self.plugins() {
            if let Some(hooks) = &plugin.hooks {
                hooks.after_response(reply).await;
            }
        }
    }

    /// Executes a call of a registered tool, within its timeout. Every failure becomes an error for the
    /// model.
    pub(crate) async fn execute(&self, call: ToolCall) -> Result<Value, ToolError> {
        let found = self.registry(|registry| {
            let (plugin, tool) = registry.tool(&call.name)?;
            Some((plugin.clone(), tool.clone()))
        });
        let Some((plugin, tool)) = found else {
            return Err(ToolError::new(format_args!(
                "there is no tool named {:?} on this client",
                call.name
            )));
        };
        let (name, cancelled) = (call.name.clone(), call.cancelled.clone());
        let execution = async {
            match (&tool.executor, &plugin.hooks) {
                (Some(run), _) => Some(run(call).await),
                (None, Some(hooks)) => hooks.on_tool_call(&call).await,
                (None, None) => None,
            }
        };
        match tokio::time::timeout(tool.timeout, execution).await {
            Ok(Some(outcome)) => outcome,
            Ok(None) => Err(ToolError::new(format_args!(
                "{name:?} has no executor on this client"
            ))),
            Err(_) => {
                cancelled.cancel();
                Err(ToolError::new(format_args!(
                    "{name} gave no result within {:?}",
                    tool.timeout
                )))
            }
        }
    }

    fn plugins(&self) -> Vec<Arc<Plugin>> {
        self.registry(|registry| registry.plugins().to_vec())
    }

    fn registry<T>(&self, read: impl FnOnce(&Registry) -> T) -> T {
        read(
            &self
                .shared
                .registry
                .read()
                .unwrap_or_else(PoisonError::into_inner),
        )
    }

    fn write<T>(&self, change: impl FnOnce(&mut Registry) -> T) -> T {
        change(
            &mut self
                .shared
                .registry
                .write()
                .unwrap_or_else(PoisonError::into_inner),
        )
    }
}

fn hook_failed(hook: &'static str, plugin: &Plugin, cause: BoxError) -> PluginError {
    PluginError::Hook {
        hook,
        plugin: plugin.name.clone(),
        cause,
    }
}
