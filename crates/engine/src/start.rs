//! The writing of a new run: its first events, its row, and the task that drives it when there is room.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use toolgate_kernel::event::{Budget, CallRequest, Entry, RunStart, Seq};
use toolgate_kernel::history::Earlier;
use toolgate_kernel::id::{CallId, EntityId, ProjectId, RunId, SpaceId};
use toolgate_kernel::message::{Message, Part};
use toolgate_kernel::name::ToolName;
use toolgate_kernel::run::{Arrival, Run};
use toolgate_kernel::tool::{ClientTool, ResultSchema};

use crate::Inner;
use crate::agents::{Compiled, Kit};
use crate::consumption;
use crate::driver::{Begun, Driver, Seat, patient};
use crate::intake::RequestedCall;
use crate::shares::share_of;
use crate::store::{
    Append, IdempotencyRecord, RunRecord, RunWrite, SpaceRecord, StoreError, TITLE_CHARS_MAX, Wake,
};

/// How often a write that nobody answered is tried.
const WRITE_ATTEMPTS: u32 = 5;

/// Everything a new run begins with.
pub(crate) struct NewRun {
    pub id: RunId,
    pub project: ProjectId,
    pub space: SpaceId,
    pub agent: Compiled,
    pub message: Message,
    /// The agent's own tools, or these and the caller's.
    pub kit: Arc<Kit>,
    pub client_tools: Vec<ClientTool>,
    pub categories: Option<Vec<String>>,
    pub history: Vec<Earlier>,
    /// The space's row, when that is new too.
    pub new_space: Option<SpaceRecord>,
    /// Its place among its kin, when another run starts it.
    pub kinship: Option<Kinship>,
    pub idempotency: Vec<IdempotencyRecord>,
    /// The call that the run is, instead of an answer to the message.
    pub call: Option<RequestedCall>,
}

/// Where a run stands that another one starts.
#[derive(Clone)]
pub(crate) struct Kinship {
    /// The run at the top.
    pub root: RunId,
    /// Its space.
    pub home: SpaceId,
    /// The call that it executes.
    pub parent: CallId,
    pub depth: u32,
    /// The tool of the agent that it answers.
    pub behind: Option<ToolName>,
    /// What all of them may use up together.
    pub budget: Budget,
    /// Whether somebody wrote to the runs above whom the gateway does not know.
    pub unknown_requester: bool,
    /// The only member of the space that may execute its client calls.
    pub offered_to: Option<EntityId>,
    /// What its answer must be.
    pub result: Option<ResultSchema>,
}

impl NewRun {
    /// A run of an agent with its own tools, at the top, in a space that is there.
    pub fn new(id: RunId, project: ProjectId, space: SpaceId, agent: Compiled, message: Message) -> Self {
        Self {
            id,
            project,
            space,
            kit: agent.tools.clone(),
            agent,
            message,
            client_tools: Vec::new(),
            categories: None,
            history: Vec::new(),
            new_space: None,
            kinship: None,
            idempotency: Vec::new(),
            call: None,
        }
    }
}

impl Inner {
    /// Stores a new run and, if there is room, drives it.
    pub(crate) async fn start(self: &Arc<Self>, new: NewRun) -> Result<Arc<Entry>, StoreError> {
        let NewRun {
            id,
            project,
            space,
            agent,
            message,
            kit,
            client_tools,
            categories,
            history,
            new_space,
            kinship,
            idempotency,
            call,
        } = new;
        let settings = self.project_settings(project).await?;
        let result = kinship.as_ref().and_then(|kin| kin.result.clone());
        let agent = agent.with_result(result);
        let now = self.clock.now();
        let root = kinship.as_ref().map_or(id, |kin| kin.root);
        let home = kinship.as_ref().map_or(space, |kin| kin.home);
        let parent = kinship.as_ref().map(|kin| kin.parent);
        // The parent's log counts the start of this run as a reason to look: that is done with.
        let started = parent.map(|call| Wake {
            run: call.run,
            change: -1,
        });
        let descendants_max = kinship.as_ref().map(|kin| kin.budget.descendants);
        let definitions = kit.unstored(&client_tools);
        let start = RunStart {
            agent: agent.agent.name.clone(),
            revision: agent.revision,
            model: agent.agent.model.name.clone(),
            entity: Some(agent.agent.entity(project)),
            parent,
            depth: kinship.as_ref().map_or(0, |kin| kin.depth),
            budget: kinship.as_ref().map(|kin| kin.budget),
            unknown_requester: kinship.as_ref().is_some_and(|kin| kin.unknown_requester),
            // What one member asks for is executed by that member's own clients, never by another's.
            offered_to: match &kinship {
                Some(kin) => kin.offered_to,
                None => message.from.filter(|_| call.is_some()),
            },
            result_schema: kinship
                .as_ref()
                .and_then(|kin| Some(kin.result.as_ref()?.schema.clone())),
            behind: kinship.and_then(|kin| kin.behind),
            client_tools,
            categories,
            history,
            tools: kit.pins.clone(),
            tool_versions: kit.versions.clone(),
        };
        let share = share_of(project, message.from);
        let user = message.from.filter(|_| parent.is_none());
        let title = title_of(&message);
        let mut run = Run::new(id, agent.agent.clone(), kit.toolbox.clone());
        let tool = call.as_ref().map(|call| call.tool.clone());
        let mut events = match call {
            None => run.start(start, message, now),
            Some(RequestedCall { tool, input }) => {
                let request = CallRequest {
                    tool_name: tool,
                    input: Some(input),
                    from: message.from,
                    sender: message.sender,
                };
                run.start_call(start, request, now)
            }
        };
        // A child never waits for room that its own parent takes.
        let permit = match parent {
            Some(_) => Some(self.seats.take(share)),
            None => self.seats.try_take(share),
        };
        let room = permit.is_some();
        if room {
            events.extend(run.take(Arrival::Begin, now).expect("a new run can begin"));
        }
        let record = RunRecord {
            id,
            project,
            space,
            agent: agent.agent.name.clone(),
            revision: agent.revision,
            parent,
            user,
            title,
            tokens: 0,
            tool,
            root,
            status: run.status(),
            created: now,
            updated: now,
            version: Seq(0),
            wake_at: None,
            node: room.then_some(self.settings.node),
            epoch: room.into(),
            lane: 0,
            wakes: 0,
        };
        // Whoever follows the space sees the run from its first event.
        let mut driving = self.feed.drive(space, 0);
        // Given up when this future is: what the store does all the same is found later.
        let mut place = permit.map(|permit| {
            let seat = Seat::new(self.clone(), id, Some(permit));
            (self.active.admit(id), seat)
        });
        let is_new_space = new_space.is_some();
        // A new space has no past, unless a client told one, which the run knows.
        let past = (is_new_space && run.told_before().is_none()).then(Arc::default);
        let write = RunWrite::Create {
            record: Box::new(record),
            space: new_space.map(Box::new),
            descendants_max,
            definitions,
        };
        let consumption = consumption::of(&run, project, run.works_for(), &events, None, &settings.prices);
        let append = Append {
            space,
            run: write,
            consumption: consumption.clone(),
            events,
            usage: Vec::new(),
            above: None,
            wakes: started.into_iter().collect(),
            time: now,
            idempotency,
        };
        let created = self.create(append, id).await;
        if let (Some((_, seat)), Err(error)) = (&mut place, &created)
            && is_refusal(error)
        {
            // Refused: there is no run to look after.
            seat.release();
        }
        let entry = created?;
        consumption.iter().for_each(|added| self.budgets.add(added));
        kit.stored.store(true, Ordering::Relaxed);
        self.figures.count(project, &run, &entry, None);
        let Some((letters, seat)) = place else {
            self.wait_for_seat(id, share);
            return Ok(entry);
        };
        if !is_new_space {
            // Other runs may be open in a space that was there before: the store has chosen a lane beside theirs.
            let Ok(Some(record)) = patient(|| self.store.run(id)).await else {
                // Stored, and so acknowledged. Its seat is given up here: it is taken up again from the log.
                return Ok(entry);
            };
            driving.lane = record.lane;
        }
        let (first, version) = (entry.first, entry.last());
        let begun = Begun {
            project,
            space,
            home,
            root,
            parent,
            run,
            kit,
            first,
            version,
            letters,
            driving,
            past,
            seat,
        };
        self.tasks.spawn(Driver::begin(self.clone(), begun));
        Ok(entry)
    }

    /// Creates a run; when nobody knows whether it worked, looks, and tries again.
    async fn create(&self, append: Append, id: RunId) -> Result<Arc<Entry>, StoreError> {
        let mut attempt = 1;
        loop {
            match self.store.append(append.clone()).await {
                Err(StoreError::Timeout) if attempt < WRITE_ATTEMPTS => attempt += 1,
                // Ours, from an attempt that was thought lost: it may also have taken the last place, or have ended
                // since and left the space to another, or to nobody when its agent was removed.
                Err(error) if attempt > 1 && is_refusal(&error) => {
                    return self.store.run_start(id).await?.map(Arc::new).ok_or(error);
                }
                other => return other,
            }
        }
    }
}

/// Whether the store has decided against the run.
fn is_refusal(error: &StoreError) -> bool {
    match error {
        StoreError::OpenRun(_)
        | StoreError::Exists
        | StoreError::Full
        | StoreError::AgentRemoved
        | StoreError::SpaceDeleted
        | StoreError::EntityDeleted => true,
        StoreError::Unavailable(_)
        | StoreError::Timeout
        | StoreError::Conflict
        | StoreError::Newer { .. }
        | StoreError::Corrupt(_) => false,
    }
}

/// How a message begins, in one line.
fn title_of(message: &Message) -> Option<Arc<str>> {
    let text = message.parts.iter().find_map(|part| match part {
        Part::Text { text } => Some(text.trim()).filter(|text| !text.is_empty()),
        Part::Image { .. } => None,
    })?;
    let line = text.chars().map(|c| if c.is_control() { ' ' } else { c });
    Some(line.take(TITLE_CHARS_MAX).collect::<String>().into())
}
