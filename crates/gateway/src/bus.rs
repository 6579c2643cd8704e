//! The bus that joins the nodes which share a store.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail};
use tokio_util::sync::CancellationToken;
use toolgate_bus::{Dial, InProcessBus, PostgresBus, RedisBus};
use toolgate_engine::bus::{Bus, BusHealth};
use toolgate_http::Shared;
use toolgate_kernel::agent::Secret;

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
    pub async fn join(setting: Option<&Secret>, shared_store: Option<Dial>) -> anyhow::Result<Self> {
        let bus = match (setting.map(Secret::expose), shared_store) {
            (None, None) => return Ok(Self::Alone(Arc::default())),
            (None | Some(POSTGRES), Some(dial)) => Self::Postgres(Arc::new(PostgresBus::join_by(dial).await)),
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

/// Divides the rate limits by the nodes that are there, until `stop` fires.
pub async fn share_rates(shared: Shared, stop: CancellationToken) {
    while stop
        .run_until_cancelled(tokio::time::sleep(COUNT_EVERY))
        .await
        .is_some()
    {
        let nodes = u32::try_from(shared.engine.nodes()).unwrap_or(u32::MAX);
        shared.access.share_rates_among(nodes);
    }
}
