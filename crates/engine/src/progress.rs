//! Progress of client calls. A client may tell it many times a second, so the run is not rebuilt from its log
//! each time: what was found out about an open call holds until the run moves.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use toolgate_kernel::call::{CallState, ErrorCode};
use toolgate_kernel::event::{ChildCall, Event, Seq, ToolProgress, ToolRef};
use toolgate_kernel::id::{CallId, EntityId};
use toolgate_kernel::json::Json;
use toolgate_kernel::run::{Arrival, Run};
use toolgate_kernel::time::Time;
use toolgate_kernel::tool::Placement;

use crate::Inner;
use crate::feed::Lane;
use crate::intake::IntakeError;

/// Open calls that are remembered; beyond it they are forgotten and looked up again.
const OPEN_CALLS_MAX: usize = 10_000;

/// Client calls that were open when their run was last read.
#[derive(Default)]
pub(crate) struct OpenCalls(Mutex<HashMap<CallId, OpenCall>>);

#[derive(Clone)]
struct OpenCall {
    tool: ToolRef,
    deadline: Time,
    /// The run's version then: the call is as it was for as long as the run is.
    version: Seq,
}

impl OpenCalls {
    fn get(&self, call: CallId, version: Seq, now: Time) -> Option<ToolRef> {
        let calls = self.0.lock().expect("no panic holds the open calls");
        let open = calls.get(&call)?;
        (open.version == version && now < open.deadline).then(|| open.tool.clone())
    }
    fn remember(&self, call: CallId, open: OpenCall) {
        let mut calls = self.0.lock().expect("no panic holds the open calls");
        if calls.len() >= OPEN_CALLS_MAX {
            calls.clear();
        }
        calls.insert(call, open);
    }
}

impl Inner {
    /// Shows how far a client call is.
    pub(crate) async fn tell_progress(
        self: &Arc<Self>,
        call: CallId,
        progress: Json,
        by: Option<EntityId>,
    ) -> Result<(), IntakeError> {
        let record = self.store.run(call.run).await?;
        let record = record.ok_or(IntakeError::Unknown("call"))?;
        let now = self.clock.now();
        let tool = match self.open_calls.get(call, record.version, now) {
            Some(tool) => tool,
            None => self.look_up_open(call, record.version).await?,
        };
        if !tool.is_offered_to(by) {
            return Err(IntakeError::NotOffered);
        }
        let event: Event = ToolProgress::of(&tool, Some(progress)).into();
        // A child run's call is seen where it is answered: in the run at the top.
        let (top, event) = match record.root == record.id {
            true => (record, event),
            false => {
                let child = ChildCall {
                    ignorable: true,
                    agent: record.agent,
                    child_run_id: record.id,
                    event: Box::new(event),
                };
                let top = self.store.run(record.root).await?;
                (top.ok_or(IntakeError::Unknown("call"))?, child.into())
            }
        };
        let known = match self.feed.knows_place(top.space) {
            true => top.version,
            false => self.store.space_tail(top.space).await?,
        };
        let lane = Lane {
            space: top.space,
            lane: top.lane,
        };
        self.feed.publish(lane, top.id, known, now, vec![event]);
        Ok(())
    }

    /// Reads a call off its run, and remembers it. `version` was read before the run: if that has moved since,
    /// the call is looked up once more than needed.
    async fn look_up_open(self: &Arc<Self>, call: CallId, version: Seq) -> Result<ToolRef, IntakeError> {
        let (tool, deadline) = self
            .deliver(call.run, Arrival::Tick, move |run| Some(open_tool(run, call)))
            .await??;
        let open = OpenCall {
            tool: tool.clone(),
            deadline,
            version,
        };
        self.open_calls.remember(call, open);
        Ok(tool)
    }
}

/// The tool of a client call that is open, and until when it is.
fn open_tool(run: &Run, id: CallId) -> Result<(ToolRef, Time), IntakeError> {
    let call = run.call(id).ok_or(IntakeError::Unknown("call"))?;
    match (&call.state, call.tool.placement) {
        (CallState::Open { deadline, .. }, Placement::Client) => Ok((call.tool.clone(), *deadline)),
        (CallState::AwaitsApproval { .. }, Placement::Client) => Err(IntakeError::NotApproved),
        (CallState::Settled(_), Placement::Client) => Err(IntakeError::Gone {
            code: ErrorCode::Unavailable,
            message: "the call has ended".into(),
        }),
        // Of a child run people learn what it asks, not which other calls it makes.
        (_, Placement::Server | Placement::Plugin | Placement::Mcp) if run.depth() > 0 => {
            Err(IntakeError::Unknown("call"))
        }
        _ => Err(IntakeError::NotAClientCall),
    }
}
