//! The bus that joins the nodes which share a store.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail};
use futures_util::FutureExt as _;
use tokio_util::sync::CancellationToken;
use toolgate_bus::{Dial, Dialed, InProcessBus, PostgresBus, RedisBus};
use toolgate_engine::bus::{Bus, BusHealth};
use toolgate_http::Shared;
use toolgate_kernel::agent::Secret;
use toolgate_store::PostgresAddress;

use crate::settings::Settings;
use crate::storage;

/// The setting for notifications of the PostgreSQL store.
const POSTGRES: &str = "postgres";

/// How often the nodes that share the rate limits are counted.
const COUNT_EVERY: Duration = Duration::from_secs(1);

/// A bus that was joined.
pub enum NodeBus {
    /// There is one node.
    Alone(Arc<InProcessBus>),
    /// Over Redis.
    Redis(Arc<RedisBus>),
    /// Over the store.
    Postgres(Arc<PostgresBus>),
}

impl NodeBus {
    /// Joins the bus that the setting `bus` names; without one, the notifications of a store that nodes can share. A bus that
    /// is away now is joined when it comes.
    pub async fn join(settings: &Settings) -> anyhow::Result<Self> {
        let shared_store = settings.store.as_ref().map(storage::address).transpose()?;
        let bus = match (settings.bus.as_ref().map(Secret::expose), shared_store) {
            (None, None) => return Ok(Self::Alone(Arc::default())),
            (None | Some(POSTGRES), Some(store)) => {
                Self::Postgres(Arc::new(PostgresBus::join_by(dial(store)).await))
            }
            (Some(POSTGRES), None) => {
                bail!(
                    "the setting `bus` (TOOLGATE_BUS) is \"postgres\", which needs a PostgreSQL store; set `store` too"
                )
            }
            (Some(address), _) => {
                let joined = RedisBus::join_at(address).await;
                let joined = joined.context("the setting `bus` (TOOLGATE_BUS) cannot be used")?;
                Self::Redis(Arc::new(joined))
            }
        };
        if bus.get().health() == BusHealth::Away {
            tracing::warn!(
                "the bus cannot be reached yet; what other nodes do is read from the store until it can"
            );
        }
        Ok(bus)
    }

    /// The bus.
    pub fn get(&self) -> Arc<dyn Bus> {
        match self {
            Self::Alone(bus) => bus.clone(),
            Self::Redis(bus) => bus.clone(),
            Self::Postgres(bus) => bus.clone(),
        }
    }

    /// Tells the other nodes that this one goes.
    pub async fn leave(&self) {
        match self {
            Self::Alone(_) => {}
            Self::Redis(bus) => bus.leave().await,
            Self::Postgres(bus) => bus.leave().await,
        }
    }
}

/// Connects to the store for its notifications.
fn dial(store: PostgresAddress) -> Dial {
    Arc::new(move || {
        let store = store.clone();
        async move {
            let (client, messages) = store.connect_to_listen().await?;
            Ok(Dialed { client, messages })
        }
        .boxed()
    })
}

/// Divides the rate limits by the nodes that are there, until `stop` fires. While neither bus nor store tell, by as many as before.
pub async fn share_rates(shared: Shared, stop: CancellationToken) {
    // A store that does not answer holds up no stop.
    let counted = async || {
        tokio::time::sleep(COUNT_EVERY).await;
        shared.engine.nodes().await
    };
    while let Some(counted) = stop.run_until_cancelled(counted()).await {
        match counted {
            Ok(nodes) => shared
                .access
                .share_rates_among(u32::try_from(nodes).unwrap_or(u32::MAX)),
            Err(error) => tracing::debug!(%error, "the store does not tell how many nodes there are"),
        }
    }
}
