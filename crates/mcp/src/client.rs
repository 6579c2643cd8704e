//! The client's side of a connection: what a server may tell and ask beyond the responses to requests.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rmcp::ClientHandler;
use rmcp::model::{
    ClientCapabilities, ClientConfig, ElicitRequestParams, ElicitResult, ElicitationAction,
    ElicitationCapability, ErrorData, FormElicitationCapability, Implementation, NumberOrString,
    ProgressNotificationParam, ProgressToken, ProtocolVersion, RequestId, TASKS_EXTENSION_ID,
    UrlElicitationCapability,
};
use rmcp::service::{InboundStreamOrigin, NotificationContext, RequestContext, RoleClient};
use serde_json::{Map, Value, json};
use tokio::sync::{mpsc, oneshot, watch};

/// What waits for the reader of one call. Progress beyond it is dropped: the next says more.
const TOLD_MAX: usize = 32;
/// Progress that is kept for calls whose token is not known yet: a server may be faster than the caller.
const EARLY_MAX: usize = 16;
/// Longest token of a call that is kept for that.
const EARLY_TOKEN_BYTES_MAX: usize = 256;
/// Most bytes of the words that come with progress. The rest is left out.
const PROGRESS_BYTES_MAX: usize = 4 << 10;

/// The method by which a server has a model asked.
const SAMPLING: &str = "sampling/createMessage";

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
    reply: oneshot::Sender<Result<Value, String>>,
}

impl Asked {
    /// Answers with the result of the method. A server that has given up is told nothing.
    pub fn answer(self, result: Value) {
        self.respond(Ok(result));
    }

    /// Answers with the result of the method, or with the reason why there is none.
    pub fn respond(self, result: Result<Value, String>) {
        let _ = self.reply.send(result);
    }

    /// Whether a model is asked, not a person.
    pub fn is_sampling(&self) -> bool {
        self.method == SAMPLING
    }
}

/// What a server tells of a call while it runs.
#[derive(Debug)]
pub(crate) enum Told {
    Progress(Progress),
    Asked(Asked),
    /// The server asked something of which nobody knows whether it is for this call.
    Unasked,
}

/// Brings what a server tells to the calls that it is about. Shared by the handler and the callers of a connection.
#[derive(Default)]
pub(crate) struct Desk {
    calls: Mutex<Calls>,
    changes: watch::Sender<u64>,
}

#[derive(Default)]
struct Calls {
    open: HashMap<RequestId, Open>,
    tokens: HashMap<ProgressToken, RequestId>,
    early: VecDeque<(ProgressToken, Progress)>,
}

/// A call under way.
struct Open {
    told: mpsc::Sender<Told>,
    /// Whose call it is; see [`crate::CallRequest::owner`].
    owner: Option<u128>,
    /// Questions of the server that wait for an answer.
    waiting: usize,
}

impl Calls {
    /// The call that a question belongs to which did not come on the stream of one. The server may name it by its progress
    /// token. Otherwise it is the only call, or, where all of them are of one owner, the only one that does not wait for an
    /// answer already. Anything else might show somebody what is meant for somebody else.
    fn guessed(&self, token: Option<&ProgressToken>) -> Option<&RequestId> {
        if let Some(named) = token.and_then(|token| self.tokens.get(token)) {
            return Some(named);
        }
        if let Some(only) = only(self.open.keys()) {
            return Some(only);
        }
        let owner = self.open.values().next()?.owner?;
        let is_one_owners = self.open.values().all(|call| call.owner == Some(owner));
        let free = self.open.iter().filter(|(_, call)| call.waiting == 0);
        only(free.map(|(id, _)| id)).filter(|_| is_one_owners)
    }
}

/// The one that there is, if there is one alone.
fn only<T>(mut all: impl Iterator<Item = T>) -> Option<T> {
    let first = all.next()?;
    all.next().is_none().then_some(first)
}

impl Desk {
    /// Registers a call; gives what the server tells of it.
    pub fn open(&self, id: RequestId, token: ProgressToken, owner: Option<u128>) -> mpsc::Receiver<Told> {
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
        let open = Open {
            told: sender,
            owner,
            waiting: 0,
        };
        calls.open.insert(id.clone(), open);
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
            let _ = sender.told.try_send(Told::Progress(progress));
            return;
        }
        // Tokens are ours, so a longer one is of no call.
        let is_long = matches!(&token.0, NumberOrString::String(text) if text.len() > EARLY_TOKEN_BYTES_MAX);
        if is_long {
            return;
        }
        if calls.early.len() >= EARLY_MAX {
            calls.early.pop_front();
        }
        calls.early.push_back((token, progress));
    }

    /// Asks whoever made the call that a question belongs to: the one whose stream it came on, where there is one.
    /// None when nobody can be asked; calls that it might have been meant for are told.
    async fn ask(
        &self,
        method: &'static str,
        params: Value,
        context: &RequestContext<RoleClient>,
    ) -> Option<Result<Value, String>> {
        let token = context.meta.get_progress_token();
        let (id, call) = self.asked_of(context.extensions.get::<InboundStreamOrigin>(), token.as_ref())?;
        let _waiting = Waiting { desk: self, id };
        let (reply, answer) = oneshot::channel();
        let asked = Asked {
            method,
            params,
            reply,
        };
        let answered = async {
            call.send(Told::Asked(asked)).await.ok()?;
            answer.await.ok()
        };
        tokio::select! {
            answer = answered => answer,
            () = context.ct.cancelled() => None,
        }
    }

    /// The call that a question belongs to, which from now on waits for an answer.
    fn asked_of(
        &self,
        origin: Option<&InboundStreamOrigin>,
        token: Option<&ProgressToken>,
    ) -> Option<(RequestId, mpsc::Sender<Told>)> {
        let mut calls = self.lock();
        let id = match origin {
            Some(InboundStreamOrigin::OutboundRequest(id)) => Some(id.clone()),
            Some(InboundStreamOrigin::Unassociated) | None => calls.guessed(token).cloned(),
        };
        let Some(id) = id else {
            for call in calls.open.values() {
                // One whose reader is behind has much to read already.
                let _ = call.told.try_send(Told::Unasked);
            }
            return None;
        };
        let call = calls.open.get_mut(&id)?;
        call.waiting += 1;
        Some((id, call.told.clone()))
    }

    fn lock(&self) -> MutexGuard<'_, Calls> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A question that waits for its answer. Dropping it ends the wait.
struct Waiting<'a> {
    desk: &'a Desk,
    id: RequestId,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        if let Some(call) = self.desk.lock().open.get_mut(&self.id) {
            call.waiting -= 1;
        }
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
        let answer = answer.and_then(Result::ok);
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
        let answer = self.desk.ask(SAMPLING, params, &context).await;
        let answer = answer.ok_or_else(refused)?;
        let answer = answer.map_err(|words| ErrorData::invalid_request(words, None))?;
        serde_json::from_value(answer).map_err(|error| ErrorData::internal_error(error.to_string(), None))
    }

    async fn on_progress(&self, params: ProgressNotificationParam, _: NotificationContext<RoleClient>) {
        let message = params.message.map(|mut words| {
            words.truncate(words.floor_char_boundary(PROGRESS_BYTES_MAX));
            words.shrink_to_fit();
            words
        });
        let progress = Progress {
            progress: params.progress,
            total: params.total,
            message,
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
