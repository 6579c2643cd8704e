//! Telling clients of changes: of files and of tasks. The store tells nobody when a file changes, so the files that
//! somebody watches are looked at every few seconds; a run that is a task is followed.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use rmcp::model::{
    ResourceUpdatedNotificationParam, ServerNotification, SubscriptionFilter, TaskStatusNotificationParams,
};
use rmcp::service::SubscriptionContext;
use rmcp::{ErrorData, Peer, RoleServer};
use tokio_util::task::AbortOnDropHandle;
use toolgate_access::Principal;
use toolgate_http::problem::Refusal;
use toolgate_http::stream::OpenStream;
use toolgate_kernel::id::RunId;

use crate::following::Following;
use crate::resources::{FileUri, stat};
use crate::visitor::{Abilities, Visitor};
use crate::{Mcp, problem, tasks};

/// How often watched files are looked at.
const LOOK_EVERY: Duration = Duration::from_secs(2);
/// Most files that one client watches.
const FILES_MAX: usize = 64;

/// The part of a `subscriptions/listen` that is served: lists of tools and prompts, and files by their addresses.
pub(crate) fn accepted(requested: &SubscriptionFilter) -> SubscriptionFilter {
    let mut accepted = SubscriptionFilter::new();
    accepted.tools_list_changed = requested.tools_list_changed;
    accepted.prompts_list_changed = requested.prompts_list_changed;
    let wanted = requested.resource_subscriptions.as_ref();
    accepted.resource_subscriptions = wanted.map(|uris| {
        let known = uris.iter().filter(|uri| uri.parse::<FileUri>().is_ok());
        known.take(FILES_MAX).cloned().collect()
    });
    accepted
}

/// Serves a `subscriptions/listen` until the client closes it, its access ends or the gateway goes down.
pub(crate) async fn listen(mcp: &Arc<Mcp>, context: SubscriptionContext) -> Result<(), ErrorData> {
    let request = context.request_context();
    let visitor = Visitor::of(&request.extensions)?.clone();
    let door = &mcp.shared;
    let _open = OpenStream::reserve(door, &visitor.who).map_err(problem::error)?;
    let uris = context
        .accepted()
        .resource_subscriptions
        .clone()
        .unwrap_or_default();
    let mut files = Watched::default();
    for uri in uris {
        // One that is not there yet, or not for this caller, is watched all the same: nothing is told of it.
        files.add(mcp, &visitor.who, uri).await;
    }
    let mut followed = Vec::new();
    for run in &visitor.tasks {
        followed.push(follow_task(mcp.clone(), &visitor, *run, &context));
    }
    let lists = async {
        let Some(mut changes) = visitor.changes.clone() else {
            return std::future::pending().await;
        };
        loop {
            changes.next().await;
            if !tell_lists(&context).await {
                return;
            }
        }
    };
    let stop = door.settings.stop.clone();
    let ended = door.access.until_ended(&visitor.who, door.settings.heartbeat);
    tokio::select! {
        () = context.cancelled() => {}
        () = stop.cancelled() => {}
        () = ended => {}
        () = lists => {}
        () = async {
            loop {
                tokio::time::sleep(LOOK_EVERY).await;
                for uri in files.changed(mcp, &visitor.who).await {
                    if context.sink().notify_resource_updated(uri).await.is_err() {
                        return;
                    }
                }
            }
        } => {}
    }
    Ok(())
}

/// Tells a client that the lists of its project have changed; false when it does not hear any longer.
async fn tell_lists(context: &SubscriptionContext) -> bool {
    let (accepted, sink) = (context.accepted(), context.sink());
    if accepted.tools_list_changed == Some(true) && sink.notify_tool_list_changed().await.is_err() {
        return false;
    }
    accepted.prompts_list_changed != Some(true) || sink.notify_prompt_list_changed().await.is_ok()
}

/// Tells a legacy session of changed lists for as long as the handle is held.
pub(crate) fn follow_lists(mcp: Arc<Mcp>, who: Principal, peer: Peer<RoleServer>) -> AbortOnDropHandle<()> {
    AbortOnDropHandle::new(tokio::spawn(async move {
        let door = &mcp.shared;
        let Ok(mut changes) = mcp.lists.follow(door, who.project).await else {
            return;
        };
        let telling = async {
            loop {
                changes.next().await;
                let tools = peer.notify_tool_list_changed().await;
                if tools.is_err() || peer.notify_prompt_list_changed().await.is_err() {
                    return;
                }
            }
        };
        tokio::select! {
            () = telling => {}
            () = door.access.until_ended(&who, door.settings.heartbeat) => {}
            () = door.settings.stop.cancelled() => {}
        }
    }))
}

/// Tells a client whenever a task moves, until it has ended.
fn follow_task(
    mcp: Arc<Mcp>,
    visitor: &Visitor,
    run: RunId,
    context: &SubscriptionContext,
) -> AbortOnDropHandle<()> {
    let request = context.request_context();
    let (visitor, peer, id) = (visitor.clone(), request.peer.clone(), request.id.clone());
    let abilities = Abilities::of(request);
    AbortOnDropHandle::new(tokio::spawn(async move {
        let tell = async |task| {
            let mut notice =
                rmcp::model::TaskStatusNotification::new(TaskStatusNotificationParams::new(task));
            let mut meta = rmcp::model::NotificationMetaObject::new();
            meta.set_subscription_id(id.clone());
            notice.extensions.insert(meta);
            peer.send_notification(ServerNotification::TaskStatusNotification(notice))
                .await
                .is_ok()
        };
        let follow = async {
            let door = &mcp.shared;
            let open = OpenStream::reserve(door, &visitor.who)?;
            let record = door.access.run(&visitor.who, run).await?;
            let place = (run, record.space);
            let mut following = Following::begin(door, &visitor.who, place, None, open).await?;
            let mut last = None;
            loop {
                let task = tasks::detailed(&mcp, &visitor, run, abilities).await?;
                let is_over = task.status().is_terminal();
                if last.as_ref() != Some(&task) {
                    last = Some(task.clone());
                    if !tell(task).await {
                        return Ok(());
                    }
                }
                if is_over {
                    return Ok::<(), Refusal>(());
                }
                while !following.next().await?.moved {}
            }
        };
        if let Err(refusal) = follow.await {
            tracing::debug!(%run, code = %refusal.problem().code, "a task is no longer followed");
        }
    }))
}

/// Files whose changes a client wants to know, with the version that it knows.
#[derive(Default)]
pub(crate) struct Watched {
    versions: HashMap<String, Option<u64>>,
}

impl Watched {
    /// Watches one more file, from its version now; false when these are too many.
    pub async fn add(&mut self, mcp: &Mcp, who: &Principal, uri: String) -> bool {
        if self.versions.len() >= FILES_MAX && !self.versions.contains_key(&uri) {
            return false;
        }
        let version = version(mcp, who, &uri).await.unwrap_or_default();
        self.versions.insert(uri, version);
        true
    }

    /// Watches a file no longer.
    pub fn remove(&mut self, uri: &str) {
        self.versions.remove(uri);
    }

    /// Whether nothing is watched.
    pub fn is_empty(&self) -> bool {
        self.versions.is_empty()
    }

    /// The files that changed since they were last looked at. Access is checked each time.
    pub async fn changed(&mut self, mcp: &Mcp, who: &Principal) -> Vec<String> {
        let mut changed = Vec::new();
        for (uri, known) in &mut self.versions {
            // A store that does not answer now is asked again.
            if let Ok(now) = version(mcp, who, uri).await
                && now != *known
            {
                *known = now;
                changed.push(uri.clone());
            }
        }
        changed.sort();
        changed
    }
}

/// The version of a file; none when there is none that the caller may know of.
async fn version(mcp: &Mcp, who: &Principal, uri: &str) -> Result<Option<u64>, Refusal> {
    let Ok(file) = uri.parse::<FileUri>() else {
        return Ok(None);
    };
    match stat(mcp, who, &file).await {
        Ok(info) => Ok(info.map(|info| info.version)),
        Err(refusal) if refusal.problem().status == 404 => Ok(None),
        Err(refusal) => Err(refusal),
    }
}

/// The files that a legacy session subscribed to, and the task that looks at them while there are any.
#[derive(Default)]
pub(crate) struct SessionFiles {
    watched: Arc<tokio::sync::Mutex<Watched>>,
    looking: std::sync::Mutex<Option<AbortOnDropHandle<()>>>,
}

impl SessionFiles {
    /// `resources/subscribe`.
    pub async fn subscribe(
        &self,
        mcp: &Arc<Mcp>,
        visitor: &Visitor,
        peer: &Peer<RoleServer>,
        uri: String,
    ) -> Result<(), ErrorData> {
        let file: FileUri = uri
            .parse()
            .map_err(|()| ErrorData::resource_not_found(format!("there is no resource {uri}"), None))?;
        let who = &visitor.who;
        mcp.shared
            .access
            .reach_space(who, file.space)
            .await
            .map_err(problem::fault)?;
        if !self.watched.lock().await.add(mcp, who, uri).await {
            let words = format!("{FILES_MAX} resources are watched already; unsubscribe from one first");
            return Err(ErrorData::invalid_params(words, None));
        }
        let mut looking = self.looking.lock().unwrap_or_else(|error| error.into_inner());
        if looking.as_ref().is_none_or(|task| task.is_finished()) {
            let (mcp, who, peer) = (mcp.clone(), who.clone(), peer.clone());
            let watched = self.watched.clone();
            *looking = Some(AbortOnDropHandle::new(tokio::spawn(look(
                mcp, who, peer, watched,
            ))));
        }
        Ok(())
    }

    /// `resources/unsubscribe`.
    pub async fn unsubscribe(&self, uri: &str) {
        self.watched.lock().await.remove(uri);
    }
}

async fn look(
    mcp: Arc<Mcp>,
    who: Principal,
    peer: Peer<RoleServer>,
    watched: Arc<tokio::sync::Mutex<Watched>>,
) {
    let door = &mcp.shared;
    let ended = door.access.until_ended(&who, door.settings.heartbeat);
    let looking = async {
        loop {
            tokio::time::sleep(LOOK_EVERY).await;
            let mut watched = watched.lock().await;
            if watched.is_empty() {
                return;
            }
            for uri in watched.changed(&mcp, &who).await {
                let notice = ResourceUpdatedNotificationParam::new(uri);
                if peer.notify_resource_updated(notice).await.is_err() {
                    return;
                }
            }
        }
    };
    tokio::select! {
        () = looking => {}
        () = ended => {}
        () = door.settings.stop.cancelled() => {}
    }
}
