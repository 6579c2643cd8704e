//! What tools may reach over the network, as their project's settings say, and what a call fails with.

use std::sync::Arc;

use async_trait::async_trait;
use toolgate_egress::{AllowList, Client, Egress, EgressError, Policy, Secrets};
use toolgate_engine::store::StoreError;
use toolgate_engine::tools::{CallContext, CallFailure};
use toolgate_kernel::id::ProjectId;

use crate::image::Images;
use crate::search::Search;
use crate::web::Manners;

/// What the tools of a project may reach over the network, and with which secrets.
#[derive(Debug, Clone, Default)]
pub struct OutboundSettings {
    /// Addresses that may be reached besides the public internet.
    pub allow: AllowList,
    /// Values that `request` tools may send by name.
    pub secrets: Secrets,
    /// Origins that `request` tools may pass the token of the user on to.
    pub user_token: Vec<url::Origin>,
    /// Whether `robots.txt` is obeyed.
    pub manners: Manners,
    /// The web search provider.
    pub search: Search,
    /// The image provider.
    pub images: Images,
}

/// Resolves what the tools of a project may reach. Asked for every call, so an implementation remembers.
#[async_trait]
pub trait OutboundResolver: Send + Sync {
    /// As the project's settings are now.
    async fn outbound_settings(&self, project: ProjectId) -> Result<Arc<OutboundSettings>, StoreError>;
}

/// The same for every project.
#[async_trait]
impl OutboundResolver for OutboundSettings {
    async fn outbound_settings(&self, _: ProjectId) -> Result<Arc<OutboundSettings>, StoreError> {
        Ok(Arc::new(self.clone()))
    }
}

/// The way out for tools of all projects.
#[derive(Clone)]
pub(crate) struct Outbound {
    /// For requests in a share only: see `within`.
    egress: Egress,
    resolver: Arc<dyn OutboundResolver>,
}

impl Outbound {
    pub fn new(egress: Egress, resolver: Arc<dyn OutboundResolver>) -> Self {
        Self { egress, resolver }
    }

    /// What a call may reach, and the client that holds it to that.
    pub async fn of(&self, context: &CallContext) -> Result<(Arc<OutboundSettings>, Client), CallFailure> {
        let world = self.resolver.outbound_settings(context.project).await?;
        let client = self.within(context).client(Policy::public(world.allow.clone()));
        Ok((world, client))
    }

    /// Connections for a call: its requests wait for their turn, in the share of the user whom it is for.
    pub fn within(&self, context: &CallContext) -> Egress {
        self.egress.within(context.share())
    }
}

pub(crate) fn failed(error: EgressError) -> CallFailure {
    CallFailure::new(error.code(), error.to_string())
}
