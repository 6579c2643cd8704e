//! Changes that the fixture tells of: to the peers of the older protocol, and to subscriptions of the newer one.

use std::sync::{Arc, Mutex, PoisonError};

use rmcp::RoleServer;
use rmcp::service::{Peer, SubscriptionContext};
use serde_json::json;
use tokio::sync::broadcast;

use crate::made;

/// Changes that a subscription may miss before it ends.
const BACKLOG: usize = 64;

/// Resource that can be changed by a tool.
pub(crate) const WATCHED: &str = "test://watched-resource";

#[derive(Debug, Clone, Copy)]
pub(crate) enum Change {
    Tools,
    Prompts,
    Watched,
}

/// Everybody who wants to hear of changes.
pub(crate) struct Changes {
    listeners: broadcast::Sender<Change>,
    peers: Mutex<Vec<Peer<RoleServer>>>,
}

impl Changes {
    pub(crate) fn new() -> Arc<Self> {
        let (listeners, _) = broadcast::channel(BACKLOG);
        Arc::new(Self {
            listeners,
            peers: Mutex::default(),
        })
    }

    /// Remembers a peer that has shaken hands.
    pub(crate) fn remember(&self, peer: Peer<RoleServer>) {
        let mut peers = self.peers.lock().unwrap_or_else(PoisonError::into_inner);
        peers.retain(|peer| !peer.is_transport_closed());
        peers.push(peer);
    }

    pub(crate) async fn announce(&self, change: Change) {
        // Nobody may be listening.
        let _ = self.listeners.send(change);
        let peers = self.peers.lock().unwrap_or_else(PoisonError::into_inner).clone();
        for peer in peers {
            // A peer that is gone hears nothing.
            let _ = match change {
                Change::Tools => peer.notify_tool_list_changed().await,
                Change::Prompts => peer.notify_prompt_list_changed().await,
                Change::Watched => peer.notify_resource_updated(made(json!({"uri": WATCHED}))).await,
            };
        }
    }

    /// Tells a subscription of what it asked for until it ends.
    pub(crate) async fn follow(&self, subscription: &SubscriptionContext) {
        let mut changes = self.listeners.subscribe();
        let accepted = subscription.accepted().clone();
        loop {
            let change = tokio::select! {
                () = subscription.cancelled() => return,
                change = changes.recv() => match change {
                    Ok(change) => change,
                    Err(_) => return,
                },
            };
            let sink = subscription.sink();
            let sent = match change {
                Change::Tools if accepted.tools_list_changed == Some(true) => {
                    sink.notify_tool_list_changed().await
                }
                Change::Prompts if accepted.prompts_list_changed == Some(true) => {
                    sink.notify_prompt_list_changed().await
                }
                Change::Watched
                    if accepted
                        .resource_subscriptions
                        .as_ref()
                        .is_some_and(|uris| uris.iter().any(|uri| uri == WATCHED)) =>
                {
                    sink.notify_resource_updated(WATCHED).await
                }
                _ => Ok(()),
            };
            if sent.is_err() {
                return;
            }
        }
    }
}
