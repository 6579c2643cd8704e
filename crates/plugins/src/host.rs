//! What the code of a plugin can reach in one call: the hosts and the storage that its package asks for, and the log.

use async_trait::async_trait;
use toolgate_egress::Policy;
use toolgate_engine::call_log::CallLog;
use toolgate_engine::store::StoreError;
use toolgate_engine::tools::{CallContext, CallFailure};
use toolgate_kernel::id::{CallId, ProjectId, RunId};
use toolgate_kernel::json::Json;
use toolgate_kernel::time::Time;
use toolgate_package::Package;
use toolgate_sandbox::{
    FetchRequest, FetchResponse, GuardedFetch, Host, LogLevel, NoHost, StorageOp, one_line,
};

use crate::index::record_set;
use crate::plugins::Plugins;
use crate::source::PinnedTool;
use crate::storage::Storage;

/// The host of one call.
pub(crate) struct CallHost {
    fetch: GuardedFetch,
    storage: StorageAccess,
    origin: Origin,
    log: CallLog,
    now: Time,
}

/// Whether the package may keep values.
enum StorageAccess {
    /// It does not ask for it.
    NotAsked,
    /// The run has pinned no storage.
    Removed,
    /// It may.
    Granted(Storage),
}

impl StorageAccess {
    /// The storage that a run has pinned, not what the plugin of this id has now: that may be another curator's.
    async fn pinned(plugins: &Plugins, pinned: &PinnedTool, project: ProjectId) -> Result<Self, StoreError> {
        let Some(data) = &pinned.data else {
            return Ok(Self::Removed);
        };
        Ok(Self::Granted(Storage {
            updater: plugins.updater().clone(),
            set: record_set(project),
            record: data.clone(),
            bytes_max: plugins.settings(project).await?.limits.storage_bytes,
        }))
    }
}

/// Who wrote a line of the log.
struct Origin {
    project: ProjectId,
    run: RunId,
    call: CallId,
    plugin: String,
    version: String,
}

impl CallHost {
    /// The host of a call of a tool of this package.
    pub async fn new(
        plugins: &Plugins,
        package: &Package,
        pinned: &PinnedTool,
        context: &CallContext,
    ) -> Result<Self, CallFailure> {
        let settings = plugins.settings(context.project).await?;
        let client = plugins.egress().within(context.share());
        let client = client.client(Policy::public(settings.allow.clone()));
        let permissions = package.permissions();
        let storage = match permissions.storage {
            true => StorageAccess::pinned(plugins, pinned, context.project).await?,
            false => StorageAccess::NotAsked,
        };
        Ok(Self {
            fetch: GuardedFetch::new(client, permissions.fetch.clone()),
            storage,
            origin: Origin {
                project: context.project,
                run: context.run,
                call: context.call,
                plugin: pinned.plugin.clone(),
                version: pinned.version.clone(),
            },
            log: context.log.clone(),
            now: context.now,
        })
    }
}

#[async_trait]
impl Host for CallHost {
    async fn fetch(&self, request: FetchRequest) -> Result<FetchResponse, String> {
        self.fetch.fetch(request).await
    }

    async fn storage(&self, operation: StorageOp) -> Result<Option<Json>, String> {
        let storage = match &self.storage {
            StorageAccess::NotAsked => return NoHost.storage(operation).await,
            StorageAccess::Removed => return Err("the plugin was removed, and its storage with it".into()),
            StorageAccess::Granted(storage) => storage,
        };
        let done = match operation {
            StorageOp::Get { key } => storage.get(&key).await,
            StorageOp::List { prefix } => storage.keys(&prefix).await.map(|keys| {
                let keys = serde_json::to_value(keys).expect("texts are JSON");
                Some(keys.into())
            }),
            StorageOp::Set { key, value } => storage.set(&key, Some(value), self.now).await.map(|()| None),
            StorageOp::Delete { key } => storage.set(&key, None, self.now).await.map(|()| None),
        };
        done.map_err(|error| error.to_string())
    }

    /// For the operator's log, and for backends with the outcome of the call: what a plugin writes may hold what its users
    /// have said.
    fn log(&self, level: LogLevel, text: &str) {
        let Origin {
            project,
            run,
            call,
            plugin,
            version,
        } = &self.origin;
        let text = one_line(text);
        self.log.write(level.name(), &text);
        match level {
            LogLevel::Debug => {
                tracing::debug!(target: "toolgate::plugin", %project, %run, %call, plugin, version, "{text}")
            }
            LogLevel::Info => {
                tracing::info!(target: "toolgate::plugin", %project, %run, %call, plugin, version, "{text}")
            }
            LogLevel::Warn | LogLevel::Error => {
                tracing::warn!(target: "toolgate::plugin", %project, %run, %call, plugin, version, "{text}")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;
    use toolgate_egress::Egress;
    use toolgate_engine::sources::Sources;
    use toolgate_engine::workspace::{Workspace, WorkspaceLimits};
    use toolgate_kernel::id::ProjectId;
    use toolgate_kernel::time::Time;
    use toolgate_store::MemoryStore;
    use toolgate_testkit::held_clock::HeldClock;
    use uuid::Uuid;

    use super::StorageAccess;
    use crate::plugins::{Candidate, Install, Plugins, PluginsParts};
    use crate::settings::{Mode, PluginSettings};
    use crate::source::PinnedTool;
    use crate::storage::Storage;

    fn project() -> ProjectId {
        ProjectId::new(Uuid::from_u128(7))
    }

    fn plugins(store: &Arc<MemoryStore>) -> Plugins {
        Plugins::new(PluginsParts {
            records: store.clone(),
            clock: Arc::new(HeldClock::new()),
            resolver: Arc::new(PluginSettings {
                mode: Mode::Development,
                ..PluginSettings::default()
            }),
            egress: Egress::new(),
            engine: "0.1.0".parse().unwrap(),
        })
    }

    async fn install(plugins: &Plugins, store: &Arc<MemoryStore>) -> PinnedTool {
        let tool = json!({"name": "count", "description": "Counts.", "parameters": {"type": "object"},
                          "executorCode": "return 1;"});
        let document = json!({"id": "counter", "name": "Counter", "version": "1.0.0", "permissions": ["storage"],
                              "tools": [tool]});
        let install = Install {
            candidate: Candidate::parse(document.to_string().as_bytes()).unwrap(),
            source_url: None,
            replace_curator: false,
        };
        let workspace = Workspace::new(store.clone(), WorkspaceLimits::default());
        let sources = Sources::new(store.clone(), workspace);
        plugins.install(project(), install, &sources).await.unwrap();
        let list = plugins.snapshot(project()).await.unwrap().list.clone();
        list["count"].config().unwrap().read().unwrap()
    }

    async fn storage(plugins: &Plugins, pinned: &PinnedTool) -> Storage {
        match StorageAccess::pinned(plugins, pinned, project()).await.unwrap() {
            StorageAccess::Granted(storage) => storage,
            StorageAccess::NotAsked | StorageAccess::Removed => panic!("the installation has storage"),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_sees_the_storage_that_its_run_has_pinned_or_none() {
        let store = Arc::new(MemoryStore::new());
        let plugins = plugins(&store);
        let old = install(&plugins, &store).await;
        let now = Time(1_800_000_000_000);
        let kept = storage(&plugins, &old).await;
        kept.set("n", Some(json!(1).into()), now).await.unwrap();
        plugins.remove(project(), "counter", false).await.unwrap();
        let new = install(&plugins, &store).await;
        let fresh = storage(&plugins, &new).await;
        fresh.set("n", Some(json!(2).into()), now).await.unwrap();

        let gone = storage(&plugins, &old).await;
        let words = "the plugin was removed, and its storage with it";
        assert_eq!(gone.get("n").await.unwrap_err().to_string(), words);
        let set = gone.set("n", Some(json!(3).into()), now).await;
        assert_eq!(set.unwrap_err().to_string(), words);
        assert_eq!(fresh.get("n").await.unwrap(), Some(json!(2).into()));
        let unpinned = PinnedTool { data: None, ..new };
        let access = StorageAccess::pinned(&plugins, &unpinned, project())
            .await
            .unwrap();
        assert!(matches!(access, StorageAccess::Removed));
    }
}
