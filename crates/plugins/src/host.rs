//! What the code of a plugin can reach in one call: the hosts and the storage that its package asks for, and the log.

use async_trait::async_trait;
use toolgate_egress::Policy;
use toolgate_engine::tools::{CallContext, CallFailure};
use toolgate_kernel::id::{CallId, ProjectId, RunId};
use toolgate_kernel::json::Json;
use toolgate_kernel::time::Time;
use toolgate_package::Package;
use toolgate_sandbox::{FetchRequest, FetchResponse, GuardedFetch, Host, LogLevel, NoHost, StorageOp};

use crate::index::record_set;
use crate::plugins::Plugins;
use crate::source::PinnedTool;
use crate::storage::Storage;

/// The host of one call.
pub(crate) struct CallHost {
    fetch: GuardedFetch,
    storage: StorageAccess,
    origin: Origin,
    now: Time,
}

/// Whether the package may keep values.
enum StorageAccess {
    /// It does not ask for it.
    NotAsked,
    /// The plugin was removed while the run went on, and its storage with it.
    Removed,
    /// It may.
    Granted(Storage),
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
        let snapshot = plugins.snapshot(context.project).await?;
        let installed = snapshot.read.index.plugins.get(&pinned.plugin);
        let storage = match (permissions.storage, installed) {
            (false, _) => StorageAccess::NotAsked,
            (true, None) => StorageAccess::Removed,
            (true, Some(installed)) => StorageAccess::Granted(Storage {
                updater: plugins.updater().clone(),
                set: record_set(context.project),
                record: installed.data.clone(),
                bytes_max: settings.limits.storage_bytes,
            }),
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

    /// For the operator's log only: what a plugin writes may hold what its users have said.
    fn log(&self, level: LogLevel, text: &str) {
        let Origin {
            project,
            run,
            call,
            plugin,
            version,
        } = &self.origin;
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
