//! What doors read of runs and logs. Whether the caller may is the door's question to `toolgate_access`, asked before.

use std::collections::HashSet;

use toolgate_kernel::event::{Entry, Event, Seq, ToolApprovalRequest, ToolQuestion};
use toolgate_kernel::id::{ProjectId, RunId, SpaceId};
use toolgate_kernel::run::RunState;
use toolgate_kernel::time::Time;
use toolgate_kernel::tool::Decider;

use crate::Engine;
use crate::store::{
    AskingFilter, LogPage, LogRange, Pages, RecentFilter, RunFilter, RunPage, RunRecord, RunTree, StoreError,
};

/// What a run asks people.
#[derive(Debug, Default)]
pub struct OpenQuestions {
    /// Approvals that nobody has decided on: when each was asked for, in the order of their calls. As stored: what a
    /// reader may see of one is for `view` to say.
    pub approvals: Vec<(Time, ToolApprovalRequest)>,
    /// What tools ask in the middle of a call and nobody has answered, in the order in which it was asked. As stored.
    pub questions: Vec<(Time, ToolQuestion)>,
    /// Bytes of the log that were read for it.
    pub bytes_read: usize,
}

impl OpenQuestions {
    fn in_order(mut self) -> Self {
        self.approvals.reverse();
        self.questions.reverse();
        self
    }
}

/// Where a reader's cursor stands in a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CursorPlace {
    /// Everything behind it is there. So it is for a reader without a cursor, who is given what is kept.
    Kept,
    /// Something behind it was deleted.
    Deleted {
        /// The last place that was deleted.
        floor: Seq,
    },
    /// The log does not go so far: it is of another log, such as the one that a restored backup has replaced.
    Ahead {
        /// The last place that was deleted.
        floor: Seq,
    },
}

impl Engine {
    /// A run's row.
    pub async fn run(&self, run: RunId) -> Result<Option<RunRecord>, StoreError> {
        self.inner.store.run(run).await
    }
    /// The rows of a project's runs that fit `filter`, newest first.
    pub async fn runs(&self, project: ProjectId, filter: RunFilter) -> Result<RunPage, StoreError> {
        self.inner.store.runs(project, filter).await
    }
    /// The rows of a project's runs that fit `filter`, those that changed last first, and how many there are.
    pub async fn recent_runs(
        &self,
        project: ProjectId,
        filter: RecentFilter,
    ) -> Result<(Vec<RunRecord>, u64), StoreError> {
        self.inner.store.recent_runs(project, filter).await
    }
    /// The entry that a run began with.
    pub async fn run_start(&self, run: RunId) -> Result<Option<Entry>, StoreError> {
        self.inner.store.run_start(run).await
    }
    /// What a root run and all below it come to.
    pub async fn run_tree(&self, root: RunId) -> Result<RunTree, StoreError> {
        self.inner.store.run_tree(root).await
    }
    /// A page of a run's log.
    pub async fn run_log(&self, run: RunId, range: LogRange) -> Result<LogPage, StoreError> {
        self.inner.store.run_log(run, range).await
    }
    /// A page of a space's log.
    pub async fn space_log(&self, space: SpaceId, range: LogRange) -> Result<LogPage, StoreError> {
        self.inner.store.space_log(space, range).await
    }
    /// The last place of a space's log that was deleted; 0 when nothing was.
    pub async fn log_floor(&self, space: SpaceId) -> Result<Seq, StoreError> {
        self.inner.store.log_floor(space).await
    }
    /// Where a reader's cursor stands in the log of a space.
    pub async fn cursor_place(&self, space: SpaceId, after: Seq) -> Result<CursorPlace, StoreError> {
        if after == Seq(0) {
            return Ok(CursorPlace::Kept);
        }
        let floor = self.inner.store.log_floor(space).await?;
        if after < floor {
            return Ok(CursorPlace::Deleted { floor });
        }
        // Transient events stand between the last durable one and the next.
        let tail = self.inner.store.space_tail(space).await?;
        Ok(match after.0 >= tail.max(floor).0 + Seq::STRIDE {
            true => CursorPlace::Ahead { floor },
            false => CursorPlace::Kept,
        })
    }
    /// Place of the last event of a space.
    pub async fn space_tail(&self, space: SpaceId) -> Result<Seq, StoreError> {
        self.inner.store.space_tail(space).await
    }
    /// Whether the store gives what runs need and takes a write; as of a second ago at most.
    pub async fn is_ready(&self) -> bool {
        self.inner.readiness.get(self.inner.store.ready()).await
    }
    /// Rows of a project's runs that may wait for a person, newest first.
    pub async fn asking(&self, project: ProjectId, filter: AskingFilter) -> Result<RunPage, StoreError> {
        self.inner.store.asking(project, filter).await
    }
    /// The questions of a run that nobody has answered. Only the step under way can have any: its part of the log is
    /// read backwards, with no more than a page of it in memory.
    pub async fn open_questions(&self, run: RunId) -> Result<OpenQuestions, StoreError> {
        let mut open = OpenQuestions::default();
        // Read backwards: calls that are settled, approvals that are decided and questions that are answered later on.
        let (mut settled, mut decided, mut answered) = (HashSet::new(), HashSet::new(), HashSet::new());
        let mut pages = Pages::of_run(run, LogRange::newest());
        while let Some(page) = pages.next(&*self.inner.store).await? {
            open.bytes_read += page.bytes;
            for entry in page.entries {
                for event in entry.events.into_iter().rev() {
                    match event {
                        Event::StepStart(_) => return Ok(open.in_order()),
                        Event::ToolApprovalResponse(e) => {
                            decided.insert(e.tool_call_id);
                        }
                        Event::ToolApprovalRequest(e)
                            if !decided.contains(&e.tool_call_id) && !settled.contains(&e.tool_call_id) =>
                        {
                            open.approvals.push((entry.time, e));
                        }
                        Event::ToolQuestionResponse(e) => {
                            answered.insert(e.question_id);
                        }
                        Event::ToolQuestion(e)
                            if !answered.contains(&e.question_id) && !settled.contains(&e.tool_call_id) =>
                        {
                            open.questions.push((entry.time, e));
                        }
                        event => settled.extend(event.settles()),
                    }
                }
            }
        }
        Ok(open.in_order())
    }
    /// A run's log as `reader` may see it, folded into the run's state. Read the run's row before: what the row says
    /// has happened is then in the state. `count` is told the bytes of each page of the log before it is folded, and
    /// may refuse it: a state has at most about as many bytes as its log.
    pub async fn run_state<E: From<StoreError>>(
        &self,
        run: RunId,
        reader: &Decider,
        count: impl FnMut(usize) -> Result<(), E>,
    ) -> Result<RunState, E> {
        let mut state = RunState::default();
        self.each_entry(run, count, |entry| state.extend(entry, reader))
            .await?;
        Ok(state)
    }
    /// Gives each entry of a run's log to `each`, oldest first and as stored. `count` is told the bytes of each page
    /// before, and may refuse it.
    pub async fn each_entry<E: From<StoreError>>(
        &self,
        run: RunId,
        mut count: impl FnMut(usize) -> Result<(), E>,
        mut each: impl FnMut(&Entry),
    ) -> Result<(), E> {
        let mut pages = Pages::of_run(run, LogRange::default());
        while let Some(page) = pages.next(&*self.inner.store).await? {
            count(page.bytes)?;
            page.entries.iter().for_each(&mut each);
        }
        Ok(())
    }
}
