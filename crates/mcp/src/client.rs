//! The client's side of a connection: what a server may tell and ask beyond the responses to requests.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rmcp::ClientHandler;
use rmcp::model::{
    ClientCapabilities, ClientConfig, ElicitRequestParams, ElicitResult, ElicitationAction,
    ElicitationCapability, ErrorData, FormElicitationCapability, Implementation, ProgressNotificationParam,
    ProgressToken, ProtocolVersion, RequestId, TASKS_EXTENSION_ID, UrlElicitationCapability,
};
use rmcp::service::{InboundStreamOrigin, NotificationContext, RequestContext, RoleClient};
use serde_json::{Map, Value, json};
use tokio::sync::{mpsc, oneshot, watch};

/// What waits for the reader of one call. Progress beyond it is dropped: the next says more.
const TOLD_MAX: usize = 32;
/// Progress that is kept for calls whose token is not known yet: a server may be faster than the caller.
const EARLY_MAX: usize = 16;

/// What a client lets a server do besides responding. Nothing by default.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Abilities {
    /// Somebody can be asked: elicitation, as a form and as a link.
    pub elicitation: bool,
    /// A model can be asked on the server's behalf.
    pub sampling: bool,
    /// A call may become a task that is polled.
    pub tasks: bool,
}

/// How far a call is.
#[derive(Debug, Clone, PartialEq)]
pub struct Progress {
    /// Grows with each notification.
    pub progress: f64,
    /// What it grows to, if the server knows.
    pub total: Option<f64>,
    /// In words.
    pub message: Option<String>,
}

/// Something that a server asks in the middle of a call. Dropping it declines.
#[derive(Debug)]
pub struct Asked {
    /// `elicitation/create` or `sampling/createMessage`.
    pub method: &'static str,
    /// As the server wrote them.
    pub params: Value,
    reply: oneshot::Sender<Value>,
}

impl Asked {
    /// Answers with the result of the method. A server that has given up is told nothing.
    pub fn answer(self, result: Value) {
        let _ = self.reply.send(result);
    }
}

/// What a server tells of a call while it runs.
#[derive(Debug)]
pub(crate) enum Told {
    Progress(Progress),
    Asked(Asked),
}

/// Brings what a server tells to the calls that it is about. Shared by the handler and the callers of a connection.
#[derive(Default)]
pub(crate) struct Desk {
    calls: Mutex<Calls>,
    changes: watch::Sender<u64>,
}

#[derive(Default)]
struct Calls {
    open: HashMap<RequestId, mpsc::Sender<Told>>,
    tokens: HashMap<ProgressToken, RequestId>,
    early: VecDeque<(ProgressToken, Progress)>,
}

impl Desk {
    /// Registers a call; gives what the server tells of it.
    pub fn open(&self, id: RequestId, token: ProgressToken) -> mpsc::Receiver<Told> {
        let (sender, receiver) = mpsc::channel(TOLD_MAX);
        let mut calls = self.lock();
        let (own, others) = std::mem::take(&mut calls.early)
            .into_iter()
            .partition(|(early, _)| *early == token);
        calls.early = others;
        let own: VecDeque<(ProgressToken, Progress)> = own;
        for (_, progress) in own {
            // The channel is longer than what is kept.
            let _ = sender.try_send(Told::Progress(progress));
        }
        calls.open.insert(id.clone(), sender);
        calls.tokens.insert(token, id);
        receiver
    }

    /// Forgets a call.
    pub fn close(&self, id: &RequestId, token: &ProgressToken) {
        let mut calls = self.lock();
        calls.open.remove(id);
        calls.tokens.remove(token);
    }

    /// The server's list of tools has changed.
    pub fn tools_changed(&self) {
        self.changes.send_modify(|count| *count += 1);
    }

    /// Counts the changes of the list of tools.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    fn progress(&self, token: ProgressToken, progress: Progress) {
        let mut calls = self.lock();
        let open = calls.tokens.get(&token).and_then(|id| calls.open.get(id));
        if let Some(sender) = open {
            let _ = sender.try_send(Told::Progress(progress));
            return;
        }
        if calls.early.len() >= EARLY_MAX {
            calls.early.pop_front();
        }
        calls.early.push_back((token, progress));
    }

    /// The call that a question belongs to: the one whose stream it came on. A transport with one stream for all cannot
    /// say, so there has to be only one call: the question might be meant for somebody else's.
    fn asked_of(&self, origin: Option<&InboundStreamOrigin>) -> Option<mpsc::Sender<Told>> {
        let calls = self.lock();
        match origin {
            Some(InboundStreamOrigin::OutboundRequest(id)) => calls.open.get(id).cloned(),
            Some(InboundStreamOrigin::Unassociated) | None => {
                let mut open = calls.open.values();
                let first = open.next()?;
                open.next().is_none().then(|| first.clone())
            }
        }
    }

    /// Asks whoever made the call. None when nobody can be asked.
    async fn ask(
        &self,
        method: &'static str,
        params: Value,
        context: &RequestContext<RoleClient>,
    ) -> Option<Value> {
        let call = self.asked_of(context.extensions.get::<InboundStreamOrigin>())?;
        let (reply, answer) = oneshot::channel();
        let asked = Asked {
            method,
            params,
            reply,
        };
        call.send(Told::Asked(asked)).await.ok()?;
        tokio::select! {
            answer = answer => answer.ok(),
            () = context.ct.cancelled() => None,
        }
    }

    fn lock(&self) -> MutexGuard<'_, Calls> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Handles what a server sends by itself.
pub(crate) struct Handler {
    pub desk: Arc<Desk>,
    pub abilities: Abilities,
    /// Name and version that the client gives of itself.
    pub identity: (String, String),
}

impl ClientHandler for Handler {
    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        if !self.abilities.elicitation {
            return Ok(ElicitResult::new(ElicitationAction::Decline));
        }
        let params = serde_json::to_value(request).unwrap_or_default();
        let answer = self.desk.ask("elicitation/create", params, &context).await;
        let answer = answer.unwrap_or_else(|| json!({ "action": "cancel" }));
        serde_json::from_value(answer).map_err(|error| ErrorData::internal_error(error.to_string(), None))
    }

    #[expect(deprecated, reason = "servers of the older protocol use it")]
    async fn create_message(
        &self,
        request: rmcp::model::CreateMessageRequestParams,
        context: RequestContext<RoleClient>,
    ) -> Result<rmcp::model::CreateMessageResult, ErrorData> {
        let refused = || ErrorData::invalid_request("this client asks no model for a server", None);
        if !self.abilities.sampling {
            return Err(refused());
        }
        let params = serde_json::to_value(request).unwrap_or_default();
        let answer = self.desk.ask("sampling/createMessage", params, &context).await;
        let answer = answer.ok_or_else(refused)?;
        serde_json::from_value(answer).map_err(|error| ErrorData::internal_error(error.to_string(), None))
    }

    async fn on_progress(&self, params: ProgressNotificationParam, _: NotificationContext<RoleClient>) {
        let progress = Progress {
            progress: params.progress,
            total: params.total,
            message: params.message,
        };
        self.desk.progress(params.progress_token, progress);
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.desk.tools_changed();
    }

    fn get_info(&self) -> ClientConfig {
        let mut capabilities = ClientCapabilities::default();
        if self.abilities.elicitation {
            let form = ElicitationCapability::new().with_form(FormElicitationCapability::new());
            capabilities.elicitation = Some(form.with_url(UrlElicitationCapability::new()));
        }
        if self.abilities.sampling {
            capabilities.sampling = Some(Default::default());
        }
        if self.abilities.tasks {
            let tasks = (TASKS_EXTENSION_ID.to_owned(), Map::new());
            capabilities.extensions = Some([tasks].into());
        }
        let (name, version) = self.identity.clone();
        ClientConfig::new(capabilities, Implementation::new(name, version))
            .with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE)
    }
}
