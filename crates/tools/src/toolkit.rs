//! The registry of the gateway's own tools: the source of `prebuilt` tools.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Value, json};
use toolgate_egress::Egress;
use toolgate_engine::knowledge::Knowledge;
use toolgate_engine::record_updater::RecordUpdater;
use toolgate_engine::records::Records;
use toolgate_engine::sources::Sources;
use toolgate_engine::store::Store;
use toolgate_engine::tools::{BUILT_IN, CallContext, CallFailure, Called, ToolSource};
use toolgate_engine::workspace::Workspace;
use toolgate_kernel::agent::Action;
use toolgate_kernel::call::ErrorCode;
use toolgate_kernel::id::ProjectId;
use toolgate_kernel::json::Json;
use toolgate_kernel::members::Members;
use toolgate_kernel::problem::Problems;
use toolgate_kernel::schema::{Profile, Validator};
use toolgate_kernel::tool::{Binding, Listed, SourceTool, ToolList};

use crate::image::ImageSource;
use crate::notify::{Deliveries, SendNotification};
use crate::outbound::{Outbound, OutboundResolver};
use crate::plans::PlanLimits;
use crate::readable::Reader;
use crate::request::Requests;
use crate::search::WebSearch;
use crate::web::WebFetch;
use crate::{goals, knowledge, memory, plans, signal_parent, space, vfs};

/// A tool that the gateway runs itself.
///
/// One is one type in one file, and one line where it is registered:
///
/// ```
/// use std::time::Duration;
///
/// use async_trait::async_trait;
/// use serde_json::{Value, json};
/// use toolgate_engine::tools::{CallContext, CallFailure};
/// use toolgate_kernel::agent::Action;
/// use toolgate_kernel::tool::Retry;
/// use toolgate_tools::{ServerTool, Toolkit};
///
/// /// Counts words.
/// struct CountWords;
///
/// #[async_trait]
/// impl ServerTool for CountWords {
///     fn name(&self) -> &'static str {
///         "countWords"
///     }
///     fn action(&self) -> Action {
///         Action {
///             description: "Count the words of a text.".into(),
///             parameters: json!({
///                 "type": "object",
///                 "properties": {"text": {"type": "string", "description": "What to count."}},
///                 "required": ["text"],
///             }),
///             timeout: Duration::from_secs(5),
///             // Counting again harms nobody, so a crash in the middle is not the end of the call.
///             retry: Retry::Safe,
///         }
///     }
///     async fn call(&self, input: Value, context: &CallContext) -> Result<Value, CallFailure> {
///         let text = input["text"].as_str().expect("the input fits the schema");
///         (context.progress)(json!({"reading": text.len()}).into());
///         Ok(json!({"words": text.split_whitespace().count()}))
///     }
/// }
///
/// // From here on every agent may have it: {"executionType": "prebuilt", "execution": {"action": "countWords"}}.
/// fn with_mine(mut toolkit: Toolkit) -> Toolkit {
///     toolkit.register(CountWords);
///     toolkit
/// }
/// assert_eq!(CountWords.action().parameters["required"], json!(["text"]));
/// ```
#[async_trait]
pub trait ServerTool: Send + Sync {
    /// What a `prebuilt` tool calls it by.
    fn name(&self) -> &'static str;
    /// What there is to say of it: for the model, and for the author of an agent who says nothing.
    fn action(&self) -> Action;
    /// Runs it. The input fits the schema. Dropping the future stops it.
    async fn call(&self, input: Value, context: &CallContext) -> Result<Value, CallFailure>;
}

/// What the standard tools work with.
pub struct Parts {
    /// What keeps runs and spaces.
    pub store: Arc<dyn Store>,
    /// Store of the tools' records.
    pub records: Arc<dyn Records>,
    /// What keeps the files of spaces.
    pub workspace: Workspace,
    /// Store of documents.
    pub knowledge: Arc<dyn Knowledge>,
    /// Queue of notifications to webhooks and by mail.
    pub deliveries: Arc<Deliveries>,
    /// What makes text of pages.
    pub reader: Arc<Reader>,
    /// Limits on plans.
    pub plans: PlanLimits,
    /// Connections to servers of others.
    pub egress: Egress,
    /// What tools may reach, and with which secrets, by project.
    pub outbound: Arc<dyn OutboundResolver>,
}

/// The gateway's own tools, by name: the source of `prebuilt` tools.
pub struct Toolkit {
    tools: BTreeMap<&'static str, Registered>,
    list: Arc<ToolList>,
    records: Arc<dyn Records>,
    workspace: Workspace,
    requests: Arc<Requests>,
    images: Arc<ImageSource>,
}

/// A tool, and what its own schema says of an input.
struct Registered {
    tool: Arc<dyn ServerTool>,
    input: Validator,
}

impl Toolkit {
    /// Every tool that comes with the gateway.
    pub fn standard(parts: Parts) -> Self {
        let Parts {
            store,
            records,
            workspace,
            knowledge,
            deliveries,
            reader,
            plans: limits,
            egress,
            outbound,
        } = parts;
        let outbound = Outbound::new(egress, outbound);
        let updater = RecordUpdater::new(records.clone());
        let mut toolkit = Self {
            tools: BTreeMap::new(),
            list: Arc::default(),
            records,
            workspace: workspace.clone(),
            requests: Arc::new(Requests(outbound.clone())),
            images: Arc::new(ImageSource {
                outbound: outbound.clone(),
                workspace: workspace.clone(),
            }),
        };
        toolkit.register(WebFetch::new(outbound.clone(), reader));
        toolkit.register(WebSearch(outbound));
        toolkit.register(goals::SetGoals(updater.clone()));
        toolkit.register(goals::GetGoals(updater.clone()));
        toolkit.register(memory::SetMemory {
            updater: updater.clone(),
            store: store.clone(),
        });
        toolkit.register(memory::GetMemory {
            updater: updater.clone(),
            store: store.clone(),
        });
        toolkit.register(space::GetSpaceContext(store.clone()));
        toolkit.register(space::UpdateSpaceMetadata {
            store: store.clone(),
            updater: updater.clone(),
        });
        toolkit.register(vfs::Read(workspace.clone()));
        toolkit.register(vfs::Write(workspace.clone()));
        toolkit.register(vfs::List(workspace.clone()));
        toolkit.register(vfs::Delete(workspace));
        toolkit.register(knowledge::SearchKnowledge(knowledge));
        toolkit.register(SendNotification {
            store,
            records: toolkit.records.clone(),
            deliveries,
        });
        toolkit.register(plans::CreatePlan {
            updater: updater.clone(),
            limits,
        });
        toolkit.register(plans::GetPlan(updater.clone()));
        toolkit.register(plans::CancelPlan(updater));
        toolkit.register(signal_parent::SignalParent);
        toolkit
    }
    /// The tool sources that come with the gateway: these tools, `request` and `image-generator`.
    pub fn sources(self) -> Sources {
        let (requests, images) = (self.requests.clone(), self.images.clone());
        Sources::new(self.records.clone(), self.workspace.clone())
            .with(Arc::new(self))
            .with(requests)
            .with(images)
    }
    /// Adds one, in place of the one with its name. Panics when its schema is none.
    pub fn register(&mut self, tool: impl ServerTool + 'static) {
        let action = tool.action();
        let schema = Json::from(&action.parameters);
        let input = Validator::compile(&schema, Profile::Trusted, "/parameters");
        Arc::make_mut(&mut self.list).insert(tool.name().into(), action.into());
        let registered = Registered {
            input: input.expect("the schema of a tool of our own is one"),
            tool: Arc::new(tool),
        };
        self.tools.insert(registered.tool.name(), registered);
    }
    /// Takes one away; false when there is none.
    pub fn unregister(&mut self, name: &str) -> bool {
        Arc::make_mut(&mut self.list).remove(name);
        self.tools.remove(name).is_some()
    }
    /// Takes all away.
    pub fn clear(&mut self) {
        self.list = Arc::default();
        self.tools.clear();
    }
    /// Whether there is one of this name.
    pub fn has(&self, name: &str) -> bool {
        self.tools.contains_key(name)
    }
    /// One by name.
    pub fn get(&self, name: &str) -> Option<&Arc<dyn ServerTool>> {
        self.tools.get(name).map(|registered| &registered.tool)
    }
    /// All of them, by name.
    pub fn all(&self) -> impl Iterator<Item = &Arc<dyn ServerTool>> {
        self.tools.values().map(|registered| &registered.tool)
    }
}

#[async_trait]
impl ToolSource for Toolkit {
    fn name(&self) -> &'static str {
        BUILT_IN
    }
    fn execution_types(&self) -> &'static [&'static str] {
        &["prebuilt"]
    }
    fn read(&self, tool: &Members<'_>, list: &ToolList) -> Option<Binding> {
        let unknown = "the gateway has no action named";
        let binding = Binding::named_with(tool, "action", &["scope"], list, unknown)?;
        let execution = tool.get("execution")?;
        match execution.get("scope").filter(|scope| !scope.is_null()) {
            None => Some(binding),
            Some(scope) => {
                memory::check_scope(tool, execution, scope);
                Some(binding.with_config(json!({ "scope": scope }).into()))
            }
        }
    }
    fn written_out(&self, name: &str, _: &Listed) -> Option<Value> {
        Some(json!({ "executionType": "prebuilt", "execution": { "action": name } }))
    }
    async fn list(&self, _: ProjectId) -> Result<Arc<ToolList>, CallFailure> {
        Ok(self.list.clone())
    }
    async fn call(
        &self,
        tool: &SourceTool,
        input: &Json,
        context: &CallContext,
    ) -> Result<Called, CallFailure> {
        let missing = || CallFailure::new(ErrorCode::NotFound, format!("there is no action {:?}", tool.tool));
        let config = tool.config.clone();
        let Registered { tool, input: schema } = self.tools.get(tool.tool.as_str()).ok_or_else(missing)?;
        let mut input = input.to_value();
        // Whose memories a tool is about is for the author of the agent to say, not for the model.
        if let Some(members) = input.as_object_mut().filter(|_| tool.name().ends_with("Memory")) {
            members.shift_remove("scope");
            members.extend(
                config
                    .as_ref()
                    .and_then(|config| config.to_value().as_object().cloned())
                    .unwrap_or_default(),
            );
        }
        // The author of an agent may have written another schema, which the engine went by.
        let problems = schema.check(&input);
        if !problems.is_empty() {
            let words: Vec<String> = problems.into_iter().map(|problem| problem.message).collect();
            return Err(CallFailure::new(ErrorCode::ValidationFailed, words.join("; ")));
        }
        Ok(Json::from(tool.call(input, context).await?).into())
    }
}

/// The configuration of a tool, read again by whoever read it when the agent was stored.
pub(crate) fn configured<T>(
    tool: &SourceTool,
    read: impl Fn(&Members<'_>) -> Option<T>,
) -> Result<T, CallFailure> {
    let problems = Problems::default();
    let written = json!({ "execution": tool.config });
    let members = Members::open(&written, "", &["execution"], &problems);
    let config = members.and_then(|members| read(&members));
    problems.or(config).map_err(|problems| {
        tracing::warn!(
            tool = tool.tool,
            ?problems,
            "a stored configuration cannot be read"
        );
        CallFailure::unavailable("the configuration of this tool cannot be read any more; go on without it")
    })
}
