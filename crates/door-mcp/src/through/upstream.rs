//! A server as the proxy knows it: the eras it speaks, its tools, and the connections that are open to it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde_json::Value;
use serde_json::value::RawValue;
use tokio::sync::Mutex as AsyncMutex;
use toolgate_engine::shares::share_of;
use toolgate_fair::{Permit, Queue};
use toolgate_kernel::id::EntityId;
use toolgate_kernel::id::ProjectId;
use toolgate_mcp::Server;
use toolgate_mcp::link::LinkError;
use toolgate_mcp::link::message::{Id, Members, Message, Outcome, Request};

use super::era::{self, META, MODERN, UNSUPPORTED_VERSION};
use super::headers;
use super::legacy_link::LegacyLink;
use super::limits::Limits;
use super::modern_link::ModernLink;
use super::owner::Owner;
use super::task_owners::TaskOwners;
use super::tools::{Listed, Tool, Tools};
use super::upstreams::{Exposed, Hide, Review};

/// Servers that are remembered. One more, and the one that was unused for longest is forgotten.
const KNOWN_MAX: usize = 4_096;
/// Most pages of tools that are asked for.
const PAGES_MAX: usize = 50;
/// Most bytes of all pages of tools together.
const LISTING_BYTES_MAX: usize = 4 << 20;
/// How many times longer than its tools the eras of a server are remembered: they change with its version.
const ERAS_KNOWN_FACTOR: u32 = 10;

/// The servers that are remembered.
pub(super) struct Known {
    limits: Limits,
    servers: Mutex<HashMap<Key, Arc<Upstream>>>,
}

/// Project, name, revision.
type Key = (ProjectId, String, String);

impl Known {
    pub(super) fn new(limits: Limits) -> Self {
        Self {
            limits,
            servers: Mutex::default(),
        }
    }

    pub(super) fn get(&self, project: ProjectId, name: &str, exposed: Exposed) -> Arc<Upstream> {
        let key = (project, name.to_owned(), exposed.revision.clone());
        let mut servers = lock(&self.servers);
        if let Some(known) = servers.get(&key) {
            *lock(&known.used) = Instant::now();
            known.review(exposed);
            return known.clone();
        }
        if servers.len() >= KNOWN_MAX {
            let oldest = servers.iter().min_by_key(|(_, server)| *lock(&server.used));
            if let Some(oldest) = oldest.map(|(key, _)| key.clone()) {
                servers.remove(&oldest);
            }
        }
        let fresh = Arc::new(Upstream::new(project, name, exposed, self.limits.clone()));
        servers.insert(key, fresh.clone());
        fresh
    }

    /// Closes connections that nobody uses, and forgets servers that nobody asks for.
    pub(super) fn sweep(&self) {
        let mut servers = lock(&self.servers);
        servers.retain(|_, server| {
            server.close_idle();
            let is_used = Arc::strong_count(server) > 1;
            is_used || lock(&server.used).elapsed() < self.limits.connection_idle
        });
    }
}

/// A server.
pub(super) struct Upstream {
    pub(super) project: ProjectId,
    pub(super) name: String,
    /// How it is reached, as it was found last.
    server: Mutex<Server>,
    /// Differs for another configuration.
    pub(super) revision: String,
    /// Decides on its tools, and what its decisions are known by.
    pub(super) hide: Mutex<Hide>,
    review: Mutex<(String, Arc<dyn Review>)>,
    /// Where its calls take turns, and how long one may take.
    pace: Mutex<(Arc<Queue>, Duration)>,
    /// Where programs take turns; none for a server at an address.
    processes: Option<Arc<Queue>>,
    pub(super) tools: Tools,
    /// Held while tools are listed, so that many calls of an unknown tool are one listing.
    listing: AsyncMutex<()>,
    pub(super) tasks: TaskOwners,
    pub(super) limits: Limits,
    eras: AsyncMutex<Option<(Instant, Eras)>>,
    /// The connection of the newer era, which all clients share: no request depends on another.
    shared: AsyncMutex<Option<Arc<ModernLink>>>,
    /// Connections of the older era that wait for their next request.
    idle: Mutex<Vec<Idle>>,
    leased: Mutex<HashMap<Owner, usize>>,
    used: Mutex<Instant>,
}

/// Eras that a server speaks; one at least.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Eras {
    pub(super) modern: bool,
    pub(super) legacy: bool,
}

struct Idle {
    owner: Owner,
    capabilities: String,
    link: Arc<LegacyLink>,
    since: Instant,
}

impl Upstream {
    fn new(project: ProjectId, name: &str, exposed: Exposed, limits: Limits) -> Self {
        Self {
            project,
            name: name.to_owned(),
            server: Mutex::new(exposed.server),
            revision: exposed.revision,
            hide: Mutex::new(exposed.hide),
            review: Mutex::new((exposed.reviewed, exposed.review)),
            pace: Mutex::new((exposed.turns, exposed.timeout)),
            processes: exposed.processes,
            tools: Tools::default(),
            listing: AsyncMutex::default(),
            tasks: TaskOwners::default(),
            limits,
            eras: AsyncMutex::default(),
            shared: AsyncMutex::default(),
            idle: Mutex::default(),
            leased: Mutex::default(),
            used: Mutex::new(Instant::now()),
        }
    }

    /// The eras that the server speaks, asked for once.
    pub(super) async fn eras(&self) -> Result<Eras, LinkError> {
        let mut known = self.eras.lock().await;
        if let Some((asked, eras)) = *known
            && asked.elapsed() < self.limits.known_for * ERAS_KNOWN_FACTOR
        {
            return Ok(eras);
        }
        let eras = self.probe().await?;
        *known = Some((Instant::now(), eras));
        Ok(eras)
    }

    /// Asks in the words of the newer era. A server that does not understand them speaks the older one.
    async fn probe(&self) -> Result<Eras, LinkError> {
        const LEGACY_ONLY: Eras = Eras {
            modern: false,
            legacy: true,
        };
        let link = self.modern_link().await?;
        let response = tokio::time::timeout(self.limits.handshake, discover(&link, "{}")).await;
        let eras = match response {
            Ok(Ok(outcome)) => eras_of(&outcome),
            Ok(Err(LinkError::Status(_) | LinkError::Bad(_) | LinkError::Gone)) | Err(_) => LEGACY_ONLY,
            Ok(Err(error)) => return Err(error),
        };
        if !eras.modern {
            *self.shared.lock().await = None;
        }
        Ok(eras)
    }

    /// The connection of the newer era.
    pub(super) async fn modern_link(&self) -> Result<Arc<ModernLink>, LinkError> {
        let mut shared = self.shared.lock().await;
        if let Some(link) = &*shared
            && !link.is_gone()
        {
            return Ok(link.clone());
        }
        // Clients share it, so it counts for none of them.
        let process = self.process(None)?;
        let server = lock(&self.server).clone();
        let link = Arc::new(ModernLink::new(server.link()?, process));
        *shared = Some(link.clone());
        Ok(link)
    }

    /// The right to run one more program for this user of the project. Connections that nobody uses give way.
    pub(super) fn process(&self, user: Option<EntityId>) -> Result<Option<Permit>, LinkError> {
        let Some(processes) = &self.processes else {
            return Ok(None);
        };
        let share = share_of(self.project, user);
        let permit = processes.try_turn(share).or_else(|| {
            let unused = std::mem::take(&mut *lock(&self.idle));
            drop(unused);
            processes.try_turn(share)
        });
        permit.map(Some).ok_or(LinkError::NoRoom)
    }

    /// Where calls take turns, and how long one may take.
    pub(super) fn pace(&self) -> (Arc<Queue>, Duration) {
        lock(&self.pace).clone()
    }

    /// A connection of the older era for one request at a time, on which the server knows a client with these
    /// capabilities.
    pub(super) async fn lease(
        self: &Arc<Self>,
        owner: Owner,
        capabilities: &RawValue,
    ) -> Result<Lease, LeaseError> {
        let place = self.place(owner)?;
        let capabilities = &*era::legacy_capabilities(capabilities);
        let text = capabilities.get();
        let found = {
            let mut idle = lock(&self.idle);
            let at = idle
                .iter()
                .rposition(|idle| idle.owner == owner && idle.capabilities == text);
            at.map(|at| idle.remove(at).link)
        };
        let link = match found {
            Some(link) if !link.is_gone() => link,
            _ => Arc::new(self.open(owner, capabilities).await?),
        };
        Ok(Lease {
            link,
            capabilities: text.to_owned(),
            is_sound: true,
            upstream: self.clone(),
            owner,
            place: Some(place),
        })
    }

    /// A new connection of the older era, in the gateway's name.
    async fn open(&self, owner: Owner, capabilities: &RawValue) -> Result<LegacyLink, LinkError> {
        let mut params = Members::default();
        params.set("protocolVersion", era::LEGACY);
        params.set("capabilities", capabilities);
        params.set("clientInfo", era::gateway());
        let link = self.shake_hands(owner, params).await?;
        link.start().await?;
        Ok(link)
    }

    /// A new connection of the older era that begins with these parameters.
    pub(super) async fn shake_hands(&self, owner: Owner, params: Members) -> Result<LegacyLink, LinkError> {
        let process = self.process(owner.user)?;
        let server = lock(&self.server).clone();
        let opening = LegacyLink::open(&server, params, process);
        let opened = tokio::time::timeout(self.limits.handshake, opening).await;
        opened.map_err(|_| LinkError::Unreachable("it does not shake hands in time".into()))?
    }

    fn place(self: &Arc<Self>, owner: Owner) -> Result<Place, LeaseError> {
        let mut leased = lock(&self.leased);
        let taken = leased.entry(owner).or_default();
        if *taken >= self.limits.connections_per_owner {
            return Err(LeaseError::TooMany(self.limits.connections_per_owner));
        }
        *taken += 1;
        Ok(Place {
            upstream: self.clone(),
            owner,
        })
    }

    fn close_idle(&self) {
        let limit = self.limits.connection_idle;
        lock(&self.idle).retain(|idle| idle.since.elapsed() < limit && !idle.link.is_gone());
    }

    /// A tool that may be called. Lists the tools when it is not known, unless the connection has done so a moment ago.
    pub(super) async fn tool(&self, name: &str, lister: &Lister<'_>) -> Result<Option<Arc<Tool>>, LinkError> {
        let known = || self.tools.get(name, self.limits.known_for);
        let is_listed = || lister.listed().is_recent(&self.tools, self.limits.listing_pause);
        if let Some(tool) = known() {
            return Ok(Some(tool));
        }
        if is_listed() {
            return Ok(None);
        }
        let _listing = self.listing.lock().await;
        // Another call may have listed them meanwhile.
        if let Some(tool) = known() {
            return Ok(Some(tool));
        }
        if !is_listed() {
            let forgotten = self.tools.forgotten();
            let listing = tokio::time::timeout(self.limits.handshake, self.list(lister)).await;
            listing.map_err(|_| LinkError::Unreachable("it does not list its tools in time".into()))??;
            lister.listed().note(forgotten);
        }
        Ok(known())
    }

    async fn list(&self, lister: &Lister<'_>) -> Result<(), LinkError> {
        let mut cursor: Option<String> = None;
        let mut bytes = 0;
        for _ in 0..PAGES_MAX {
            let mut params = Members::default();
            if let Some(cursor) = cursor.take() {
                params.set("cursor", cursor);
            }
            let Outcome::Result(page) = lister.list(params).await? else {
                break;
            };
            bytes += page.get().len();
            if bytes > LISTING_BYTES_MAX {
                return Err(LinkError::TooLarge(LISTING_BYTES_MAX));
            }
            cursor = Members::of(&page).and_then(|page| page.read("nextCursor"));
            self.passed_list(Outcome::Result(page));
            if cursor.is_none() {
                break;
            }
        }
        Ok(())
    }

    /// Takes over what holds of the server now, and what is decided about its tools.
    fn review(&self, exposed: Exposed) {
        *lock(&self.pace) = (exposed.turns, exposed.timeout);
        *lock(&self.hide) = exposed.hide;
        // One that was removed and is there again is reached alike, but restarted by somebody else.
        *lock(&self.server) = exposed.server;
        let mut review = lock(&self.review);
        if review.0 != exposed.reviewed {
            *review = (exposed.reviewed, exposed.review);
            self.tools.forget();
        }
    }

    fn reviewer(&self) -> Arc<dyn Review> {
        lock(&self.review).1.clone()
    }

    /// A result of `tools/list` without the tools that are held back.
    pub(super) fn passed_list(&self, outcome: Outcome) -> Outcome {
        self.tools.pass(&*self.reviewer(), outcome)
    }
}

/// A request that lists tools.
pub(super) enum Lister<'l> {
    Modern(&'l Arc<ModernLink>),
    Legacy(&'l Arc<LegacyLink>),
}

impl Lister<'_> {
    /// When the connection has listed everything.
    fn listed(&self) -> &Listed {
        match self {
            Self::Modern(link) => &link.listed,
            Self::Legacy(link) => &link.listed,
        }
    }

    async fn list(&self, mut params: Members) -> Result<Outcome, LinkError> {
        let id = Id::text("toolgate-tools-list");
        let method = "tools/list".to_owned();
        match self {
            Self::Modern(link) => {
                // Everything: some servers list fewer tools to a client that can do less.
                let everything = r#"{"elicitation":{},"sampling":{},"roots":{},"extensions":{"io.modelcontextprotocol/tasks":{}}}"#;
                let everything = RawValue::from_string(everything.into()).expect("it is JSON");
                params.set(META, era::modern_meta(None, &everything));
                let request = Request {
                    id,
                    method,
                    params: Some(params),
                };
                let headers = headers::made(&request, &[], &Value::Null);
                response(link.request(request, headers).await?).await
            }
            Self::Legacy(link) => {
                let id = link.fresh_id();
                let request = Request {
                    id,
                    method,
                    params: Some(params),
                };
                let mut exchange = link.request(request).await?;
                loop {
                    match exchange.next().await? {
                        Some(Message::Response(response)) => return Ok(response.outcome),
                        Some(_) => {}
                        None => return Err(LinkError::Gone),
                    }
                }
            }
        }
    }
}

/// Asks a server of the newer era what it is.
pub(super) async fn discover(link: &Arc<ModernLink>, capabilities: &str) -> Result<Outcome, LinkError> {
    let capabilities = RawValue::from_string(capabilities.to_owned()).map_err(|_| LinkError::Gone)?;
    let mut params = Members::default();
    params.set(META, era::modern_meta(None, &capabilities));
    let request = Request {
        id: Id::text("toolgate-discover"),
        method: "server/discover".to_owned(),
        params: Some(params),
    };
    let headers = headers::made(&request, &[], &Value::Null);
    response(link.request(request, headers).await?).await
}

/// The response of an exchange of which nothing else matters.
pub(super) async fn response(mut exchange: super::modern_link::ModernExchange) -> Result<Outcome, LinkError> {
    loop {
        match exchange.next().await? {
            Some(Message::Response(response)) => return Ok(response.outcome),
            Some(_) => {}
            None => return Err(LinkError::Gone),
        }
    }
}

fn eras_of(outcome: &Outcome) -> Eras {
    let versions: Option<Vec<String>> = match outcome {
        Outcome::Result(result) => Members::of(result).and_then(|result| result.read("supportedVersions")),
        Outcome::Error(error) if outcome.code() == Some(UNSUPPORTED_VERSION) => {
            let data = Members::of(error).and_then(|error| error.object("data"));
            data.and_then(|data| data.read("supported"))
        }
        Outcome::Error(_) => None,
    };
    let Some(versions) = versions else {
        return Eras {
            modern: false,
            legacy: true,
        };
    };
    let modern = versions.iter().any(|version| version == MODERN);
    Eras {
        modern,
        legacy: !modern || versions.iter().any(|version| !era::is_modern(version)),
    }
}

/// Why there is no connection.
#[derive(Debug)]
pub(super) enum LeaseError {
    /// The owner has this many.
    TooMany(usize),
    Link(LinkError),
}

impl From<LinkError> for LeaseError {
    fn from(error: LinkError) -> Self {
        Self::Link(error)
    }
}

/// A connection of the older era, for whoever holds this alone. It goes back when this is dropped.
pub(super) struct Lease {
    pub(super) link: Arc<LegacyLink>,
    capabilities: String,
    /// Whether the next request may use the connection: nothing of an earlier one is under way on it.
    pub(super) is_sound: bool,
    upstream: Arc<Upstream>,
    owner: Owner,
    /// None while a call on the connection waits for its client.
    place: Option<Place>,
}

impl Lease {
    /// Leaves its place to others: a call that waits is counted among those that do.
    pub(super) fn rest(&mut self) {
        self.place = None;
    }

    /// Goes on.
    pub(super) fn wake(&mut self) -> Result<(), LeaseError> {
        self.place = Some(self.upstream.place(self.owner)?);
        Ok(())
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        if self.is_sound && !self.link.is_gone() {
            lock(&self.upstream.idle).push(Idle {
                owner: self.owner,
                capabilities: std::mem::take(&mut self.capabilities),
                link: self.link.clone(),
                since: Instant::now(),
            });
        }
    }
}

/// One of the connections that an owner may have.
struct Place {
    upstream: Arc<Upstream>,
    owner: Owner,
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut leased = lock(&self.upstream.leased);
        if let Some(taken) = leased.get_mut(&self.owner) {
            *taken = taken.saturating_sub(1);
            if *taken == 0 {
                leased.remove(&self.owner);
            }
        }
    }
}

pub(super) fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}
