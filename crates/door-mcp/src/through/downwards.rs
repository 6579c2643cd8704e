//! A session of a client of the older era with a server of the newer one, which knows no sessions. What the client would
//! tell a server once goes with each request; `input_required` becomes requests to the client and then the request again;
//! a task is polled until it has ended.

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};
use tokio::sync::Mutex as AsyncMutex;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;
use tokio_util::task::{AbortOnDropHandle, TaskTracker};
use toolgate_mcp::link::message::{Id, Members, Message, Outcome, Request};
use toolgate_mcp::link::{LinkError, Receiver, Sender, mailbox};

use super::calls::{self, Checked, Counted, unreachable};
use super::era::{self, INTERNAL, INVALID_PARAMS, LOG_LEVEL_KEY, META, METHOD_NOT_FOUND, TASKS};
use super::headers;
use super::modern_link::ModernLink;
use super::owner::Owner;
use super::reply::{Closed, Era, Reply};
use super::subscriptions::RESOURCES_MAX;
use super::tasks_of_others::{Polled, poll};
use super::turn::Turn;
use super::upstream::{Lister, Upstream, discover};

/// Most times that a request is sent again because its server asks for something.
const ROUNDS_MAX: u32 = 32;
/// Between two attempts at a request whose server only says "later".
const LATER: Duration = Duration::from_secs(1);
/// Most questions of a server at once.
pub(super) const QUESTIONS_MAX: usize = 64;

/// A session.
pub(super) struct Crossed {
    pub(super) upstream: Arc<Upstream>,
    /// What the client can, and the gateway for it.
    pub(super) capabilities: Box<RawValue>,
    server_capabilities: Value,
    log_level: Mutex<Option<String>>,
    watched: Mutex<BTreeSet<String>>,
    tell: Sender,
    /// What belongs to no request.
    pub(super) notices: Arc<AsyncMutex<Receiver>>,
    /// Hears of changes.
    listener: Mutex<Option<AbortOnDropHandle<()>>>,
    /// Requests of the client that are under way.
    open: Mutex<HashMap<Id, CancellationToken>>,
    /// Questions to the client.
    asked: Mutex<HashMap<Id, oneshot::Sender<Outcome>>>,
    count: AtomicU64,
    /// Cancellations of tasks whose calls were dropped.
    pub(super) errands: TaskTracker,
}

impl Crossed {
    /// A session with what the server says of itself, and the server's part of the handshake.
    pub(super) async fn open(
        upstream: Arc<Upstream>,
        params: Option<Members>,
    ) -> Result<(Self, Box<RawValue>), Outcome> {
        let params = params.unwrap_or_default();
        let capabilities = capabilities(&params);
        let failed = |error: LinkError| unreachable(&upstream, &error);
        let link = upstream.modern_link().await.map_err(failed)?;
        let found =
            tokio::time::timeout(upstream.limits.handshake, discover(&link, capabilities.get())).await;
        let late = |_| {
            Err(LinkError::Unreachable(
                "it does not say what it is in time".into(),
            ))
        };
        let Outcome::Result(found) = found.unwrap_or_else(late).map_err(failed)? else {
            return Err(Outcome::error(INTERNAL, "the MCP server does not say what it is"));
        };
        let found = Members::of(&found).unwrap_or_default();
        let mut server_capabilities: Value = found.read("capabilities").unwrap_or_else(|| json!({}));
        if let Some(capabilities) = server_capabilities.as_object_mut() {
            // Extensions are agreed on with each request, by clients of the newer era.
            capabilities.remove("extensions");
        }
        let wanted: Option<String> = params.read("protocolVersion");
        let meta = found.object(META);
        let server = meta.as_ref().and_then(|meta| meta.get(era::SERVER_KEY));
        let server = server.map_or_else(
            || json!({"name": upstream.name, "version": "unknown"}),
            |server| json!(server),
        );
        let mut result = Members::default();
        result.set("protocolVersion", era::negotiated(wanted.as_deref()));
        result.set("capabilities", &server_capabilities);
        result.set("serverInfo", server);
        if let Some(instructions) = found.get("instructions") {
            result.set("instructions", instructions);
        }
        let (tell, notices) = mailbox();
        let session = Self {
            upstream,
            capabilities,
            server_capabilities,
            log_level: Mutex::default(),
            watched: Mutex::default(),
            tell,
            notices: Arc::new(AsyncMutex::new(notices)),
            listener: Mutex::default(),
            open: Mutex::default(),
            asked: Mutex::default(),
            count: AtomicU64::new(0),
            errands: TaskTracker::new(),
        };
        Ok((session, result.raw()))
    }

    /// Takes a notification, or the answer to a question.
    pub(super) async fn tell(&self, message: Message) -> Result<(), LinkError> {
        match message {
            Message::Response(response) => {
                let asked = response.id.and_then(|id| lock(&self.asked).remove(&id));
                if let Some(asked) = asked {
                    // Whoever asked may have given up.
                    let _ = asked.send(response.outcome);
                }
            }
            Message::Notification(notice) => match notice.method.as_str() {
                "notifications/initialized" => self.listen().await,
                "notifications/cancelled" => {
                    let id = notice.params.as_ref().and_then(|params| params.get("requestId"));
                    let open = id
                        .and_then(Id::read)
                        .and_then(|id| lock(&self.open).get(&id).cloned());
                    if let Some(open) = open {
                        open.cancel();
                    }
                }
                // The newer era has no others: roots are asked for when they are needed.
                _ => {}
            },
            Message::Request(_) => {}
        }
        Ok(())
    }

    pub(super) async fn forward(&self, request: Request, reply: Reply, owner: Owner) -> Result<(), Closed> {
        let id = request.id.clone();
        let token = CancellationToken::new();
        if lock(&self.open).contains_key(&id) {
            return reply
                .end(&id, unreachable(&self.upstream, &LinkError::Repeated))
                .await;
        }
        lock(&self.open).insert(id.clone(), token.clone());
        let _open = Remove {
            id: id.clone(),
            of: self,
        };
        let turn = tokio::select! {
            turn = Turn::begin(&self.upstream, owner, &request) => turn,
            () = token.cancelled() => return Ok(()),
        };
        let turn = match turn {
            Ok(turn) => turn,
            Err(outcome) => return reply.end(&id, outcome).await,
        };
        let counted = Counted::begin(&self.upstream, &request);
        let outcome = tokio::select! {
            outcome = self.outcome(request, &reply, owner, &turn) => outcome?,
            () = turn.expired() => turn.late(Era::Legacy),
            // Nobody waits for a response. What was under way at the server ends with its stream.
            () = token.cancelled() => return Ok(()),
        };
        counted.end(&outcome);
        reply.end(&id, outcome).await
    }

    async fn outcome(
        &self,
        request: Request,
        reply: &Reply,
        owner: Owner,
        turn: &Turn,
    ) -> Result<Outcome, Closed> {
        Ok(match request.method.as_str() {
            "ping" => Outcome::result(json!({})),
            "logging/setLevel" => {
                *lock(&self.log_level) = request.param("level");
                Outcome::result(json!({}))
            }
            "resources/subscribe" | "resources/unsubscribe" => self.watch(&request).await,
            // Tasks of the older era are not those of the newer one: here calls are waited for.
            method if method.starts_with("tasks/") => {
                Outcome::error(METHOD_NOT_FOUND, "this server has no tasks")
            }
            _ => self.cross(request, reply, owner, turn).await?,
        })
    }

    async fn cross(
        &self,
        request: Request,
        reply: &Reply,
        owner: Owner,
        turn: &Turn,
    ) -> Result<Outcome, Closed> {
        let link = match self.upstream.modern_link().await {
            Ok(link) => link,
            Err(error) => return Ok(unreachable(&self.upstream, &error)),
        };
        let lister = Lister::Modern(&link);
        let checked = match calls::check(&self.upstream, &request, lister, None, Era::Legacy).await {
            Ok(checked) => checked,
            Err(outcome) => return Ok(outcome),
        };
        let method = request.method.clone();
        let mut request = self.with_meta(request);
        for _ in 0..ROUNDS_MAX {
            let outcome = self.exchange(&link, request.clone(), &checked, reply).await?;
            let Outcome::Result(result) = &outcome else {
                return Ok(outcome);
            };
            let Some(members) = Members::of(result) else {
                return Ok(outcome);
            };
            match members.read::<String>("resultType").as_deref() {
                Some("input_required") => {
                    turn.pause();
                    let answered = self.answered(&members, reply).await?;
                    turn.resume();
                    match answered {
                        Ok(answers) => retry(&mut request, answers, &members),
                        Err(outcome) => return Ok(outcome),
                    }
                }
                Some("task") => {
                    if let Some(task) = members.read::<String>("taskId") {
                        self.upstream.tasks.remember(&task, owner);
                    }
                    turn.rest();
                    return Ok(match poll(self, &link, &members, reply).await? {
                        Polled::Ended(outcome) => era::lowered(&method, outcome),
                        Polled::Failed(outcome) => outcome,
                    });
                }
                _ if method == "tools/list" => {
                    let outcome = self.upstream.passed_list(outcome);
                    return Ok(era::lowered(&method, outcome));
                }
                _ => return Ok(era::lowered(&method, outcome)),
            }
        }
        Ok(Outcome::error(
            INTERNAL,
            format!("the MCP server asked more than {ROUNDS_MAX} times"),
        ))
    }

    /// Sends a request once, and passes on what comes with its response.
    async fn exchange(
        &self,
        link: &Arc<ModernLink>,
        request: Request,
        checked: &Checked,
        reply: &Reply,
    ) -> Result<Outcome, Closed> {
        let made = headers::made(&request, &checked.header_params, &checked.arguments);
        let mut exchange = match link.request(request, made).await {
            Ok(exchange) => exchange,
            Err(error) => return Ok(unreachable(&self.upstream, &error)),
        };
        loop {
            match exchange.next().await {
                Ok(Some(Message::Response(response))) => return Ok(response.outcome),
                Ok(Some(Message::Notification(notice))) => reply.send(Message::Notification(notice)).await?,
                Ok(Some(Message::Request(_))) => {}
                Ok(None) => return Ok(unreachable(&self.upstream, &LinkError::Gone)),
                Err(error) => return Ok(unreachable(&self.upstream, &error)),
            }
        }
    }

    /// What the client said once, with a request.
    pub(super) fn with_meta(&self, mut request: Request) -> Request {
        let mut params = request.params.take().unwrap_or_default();
        let mut meta = era::modern_meta(params.object(META), &self.capabilities);
        if let Some(level) = &*lock(&self.log_level) {
            meta.set(LOG_LEVEL_KEY, level);
        }
        params.set(META, meta);
        request.params = Some(params);
        request
    }

    /// Asks the client what a server wants to know: answers by the names of the questions. An error of the client ends the
    /// call, but for one that a person was to answer: then nobody has.
    pub(super) async fn answered(
        &self,
        asked: &Members,
        reply: &Reply,
    ) -> Result<Result<Members, Outcome>, Closed> {
        let questions = asked.object("inputRequests").unwrap_or_default();
        let count = questions.iter().count();
        if count > QUESTIONS_MAX {
            let words = format!(
                "the MCP server asks {count} questions at once, at most {QUESTIONS_MAX} are passed on"
            );
            return Ok(Err(Outcome::error(INTERNAL, words)));
        }
        if questions.is_empty() {
            tokio::time::sleep(LATER).await;
        }
        let mut waiting = Vec::new();
        for (name, question) in questions.iter() {
            let Some(question) = Members::of(question) else {
                continue;
            };
            let method: String = question.read("method").unwrap_or_default();
            let id = Id::text(&format!(
                "toolgate-{}",
                self.count.fetch_add(1, Ordering::Relaxed)
            ));
            let (answer, answered) = oneshot::channel();
            lock(&self.asked).insert(id.clone(), answer);
            let forget = Forget {
                id: id.clone(),
                of: self,
            };
            waiting.push((name.to_owned(), method.clone(), answered, forget));
            let params = question.object("params");
            reply
                .send(Message::Request(Request { id, method, params }))
                .await?;
        }
        let mut answers = Members::default();
        for (name, method, answered, _forget) in waiting {
            let outcome = tokio::time::timeout(self.upstream.limits.answer_wait, answered).await;
            match outcome {
                Ok(Ok(Outcome::Result(answer))) => answers.set(&name, answer),
                Ok(Ok(Outcome::Error(_))) if method == "elicitation/create" => {
                    answers.set(&name, json!({"action": "cancel"}));
                }
                Ok(Ok(error)) => return Ok(Err(error)),
                Ok(Err(_)) | Err(_) => {
                    let words = "the client did not answer what the server asked";
                    return Ok(Err(Outcome::error(INTERNAL, words)));
                }
            }
        }
        Ok(Ok(answers))
    }

    async fn watch(&self, request: &Request) -> Outcome {
        let Some(uri) = request.param::<String>("uri") else {
            return Outcome::error(INVALID_PARAMS, "params.uri must be the address of a resource");
        };
        {
            let mut watched = lock(&self.watched);
            let is_changed = match request.method.as_str() {
                "resources/subscribe" if watched.len() >= RESOURCES_MAX => {
                    let words =
                        format!("{RESOURCES_MAX} resources are subscribed to already, which is the most");
                    return Outcome::error(INTERNAL, words);
                }
                "resources/subscribe" => watched.insert(uri),
                _ => watched.remove(&uri),
            };
            if !is_changed {
                return Outcome::result(json!({}));
            }
        }
        self.listen().await;
        Outcome::result(json!({}))
    }

    /// Subscribes to everything that the client would be told of; anew when that has changed.
    async fn listen(&self) {
        let can = |list: &str| self.server_capabilities[list]["listChanged"] == true;
        let mut filter = json!({});
        for (name, list) in [
            ("toolsListChanged", "tools"),
            ("promptsListChanged", "prompts"),
            ("resourcesListChanged", "resources"),
        ] {
            if can(list) {
                filter[name] = true.into();
            }
        }
        let watched: Vec<String> = lock(&self.watched).iter().cloned().collect();
        if !watched.is_empty() {
            filter["resourceSubscriptions"] = watched.into();
        }
        let mut params = Members::default();
        params.set("notifications", filter);
        let request = self.with_meta(Request {
            id: Id::text("toolgate-listen"),
            method: "subscriptions/listen".to_owned(),
            params: Some(params),
        });
        let (ready, is_ready) = oneshot::channel();
        let task = listen(self.upstream.clone(), request, self.tell.clone(), ready);
        let task = AbortOnDropHandle::new(tokio::spawn(task));
        // The next change must not be missed; a server that does not acknowledge is not waited for long.
        let _ = tokio::time::timeout(LATER, is_ready).await;
        *lock(&self.listener) = Some(task);
    }
}

/// Between two attempts to hear of changes.
const LISTEN_AGAIN: Duration = Duration::from_secs(5);

async fn listen(upstream: Arc<Upstream>, request: Request, tell: Sender, ready: oneshot::Sender<()>) {
    let mut ready = Some(ready);
    loop {
        if let Ok(link) = upstream.modern_link().await
            && let Ok(mut exchange) = link
                .request(request.clone(), headers::made(&request, &[], &Value::Null))
                .await
        {
            while let Ok(Some(message)) = exchange.next().await {
                match message {
                    Message::Notification(notice) if notice.method.ends_with("/acknowledged") => {
                        ready.take().map(|ready| ready.send(()));
                    }
                    Message::Notification(mut notice) => {
                        if notice.method == "notifications/tools/list_changed" {
                            upstream.tools.forget();
                        }
                        if let Some(params) = &mut notice.params {
                            untag(params);
                        }
                        let notice = Message::Notification(notice);
                        let bytes = notice.write().len();
                        // A client that does not listen can ask again.
                        let _ = tell.try_send(notice, bytes);
                    }
                    // It listens to nobody: asking again would not help.
                    Message::Response(response) if response.outcome.code() == Some(METHOD_NOT_FOUND) => {
                        return;
                    }
                    Message::Response(_) | Message::Request(_) => {}
                }
            }
        }
        tokio::time::sleep(LISTEN_AGAIN).await;
    }
}

/// Subscriptions have no names in the older era.
fn untag(params: &mut Members) {
    if let Some(mut meta) = params.object(META) {
        meta.remove(era::SUBSCRIPTION_KEY);
        match meta.is_empty() {
            true => drop(params.remove(META)),
            false => params.set(META, meta),
        }
    }
}

/// Puts the answers into a request that is sent again.
fn retry(request: &mut Request, answers: Members, asked: &Members) {
    let params = request.params.get_or_insert_default();
    params.remove("inputResponses");
    if !answers.is_empty() {
        params.set("inputResponses", answers);
    }
    match asked.get("requestState") {
        Some(state) => params.set("requestState", state),
        None => drop(params.remove("requestState")),
    }
}

/// The client's capabilities, and that the gateway waits for tasks in its place.
fn capabilities(params: &Members) -> Box<RawValue> {
    let mut capabilities = params.object("capabilities").unwrap_or_default();
    // Tasks of the older era.
    capabilities.remove("tasks");
    let mut extensions = capabilities.object("extensions").unwrap_or_default();
    extensions.set(TASKS, json!({}));
    capabilities.set("extensions", extensions);
    to_raw_value(&capabilities).expect("capabilities can be written as JSON")
}

/// Forgets a request that has ended.
struct Remove<'c> {
    id: Id,
    of: &'c Crossed,
}

impl Drop for Remove<'_> {
    fn drop(&mut self) {
        lock(&self.of.open).remove(&self.id);
    }
}

/// Forgets a question that nobody waits for.
struct Forget<'c> {
    id: Id,
    of: &'c Crossed,
}

impl Drop for Forget<'_> {
    fn drop(&mut self) {
        lock(&self.of.asked).remove(&self.id);
    }
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}
