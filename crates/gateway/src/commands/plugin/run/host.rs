//! What the code of a tried package can reach: the hosts that it names, and a store that ends with the command.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use anyhow::Context as _;
use async_trait::async_trait;
use serde_json::json;
use toolgate_egress::{AllowList, Client, Egress, Policy};
use toolgate_kernel::json::Json;
use toolgate_package::Permissions;
use toolgate_sandbox::{FetchRequest, FetchResponse, GuardedFetch, Host, LogLevel, NoHost, StorageOp};

/// Most bytes of keys and values together.
const STORAGE_BYTES_MAX: usize = 256 << 10;

type Kept = Arc<Mutex<BTreeMap<String, Json>>>;

/// What is the same for every run of one command.
pub struct LocalHost {
    client: Client,
    kept: Kept,
}

impl LocalHost {
    /// With these addresses besides the public internet.
    pub fn new(allow: &[String]) -> anyhow::Result<Self> {
        let allow = AllowList::new(allow).context("--allow names no host")?;
        Ok(Self {
            client: Egress::new().client(Policy::public(allow)),
            kept: Kept::default(),
        })
    }

    /// What a package with these permissions can reach.
    pub fn permit(&self, permissions: &Permissions) -> Permitted {
        let hosts = permissions.fetch.clone();
        Permitted {
            fetch: (!hosts.is_empty()).then(|| GuardedFetch::new(self.client.clone(), hosts)),
            kept: permissions.storage.then(|| self.kept.clone()),
        }
    }
}

/// What one package can reach.
pub struct Permitted {
    fetch: Option<GuardedFetch>,
    kept: Option<Kept>,
}

#[async_trait]
impl Host for Permitted {
    async fn fetch(&self, request: FetchRequest) -> Result<FetchResponse, String> {
        match &self.fetch {
            Some(fetch) => fetch.fetch(request).await,
            None => NoHost.fetch(request).await,
        }
    }

    async fn storage(&self, operation: StorageOp) -> Result<Option<Json>, String> {
        let Some(kept) = &self.kept else {
            return NoHost.storage(operation).await;
        };
        let mut kept = kept.lock().expect("nothing panics while it holds the lock");
        match operation {
            StorageOp::Get { key } => Ok(kept.get(&key).cloned()),
            StorageOp::Set { key, value } => {
                let others = kept.iter().filter(|(other, _)| **other != key);
                let bytes: usize = others.map(|(key, value)| key.len() + value.as_str().len()).sum();
                if bytes + key.len() + value.as_str().len() > STORAGE_BYTES_MAX {
                    return Err(format!("the storage is full: at most {STORAGE_BYTES_MAX} bytes"));
                }
                kept.insert(key, value);
                Ok(None)
            }
            StorageOp::Delete { key } => {
                kept.remove(&key);
                Ok(None)
            }
            StorageOp::List { prefix } => {
                let keys: Vec<&String> = kept.keys().filter(|key| key.starts_with(&prefix)).collect();
                Ok(Some(json!(keys).into()))
            }
        }
    }

    fn log(&self, level: LogLevel, text: &str) {
        let level = match level {
            LogLevel::Debug => "debug",
            LogLevel::Info => "info",
            LogLevel::Warn => "warn",
            LogLevel::Error => "error",
        };
        // Nothing that the code writes may move the cursor or forge a line.
        let shown: String = text
            .chars()
            .map(|c| {
                if c.is_control() && c != '\n' && c != '\t' {
                    '\u{fffd}'
                } else {
                    c
                }
            })
            .collect();
        for line in shown.lines() {
            eprintln!("[{level}] {line}");
        }
    }
}
