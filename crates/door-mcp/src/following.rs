//! Following a run on behalf of an MCP request, as its caller may see it.

use std::time::Duration;

use tokio::time::Instant;
use toolgate_access::{Pass, Principal, Standing};
use toolgate_engine::feed::{Batch, End, Scope, Subscription};
use toolgate_engine::store::RunRecord;
use toolgate_http::Shared;
use toolgate_http::problem::Refusal;
use toolgate_http::run_state::CountedState;
use toolgate_http::stream::OpenStream;
use toolgate_kernel::event::Event;
use toolgate_kernel::id::{RunId, SpaceId};
use toolgate_kernel::json::Json;
use toolgate_kernel::tool::Decider;
use toolgate_kernel::view::view;

/// Pause before a run is followed again whose reader was cut.
const CUT_PAUSE: Duration = Duration::from_millis(200);

/// What has happened to a run.
#[derive(Debug, Default)]
pub(crate) struct News {
    /// The last thing that a tool said of how far it is.
    pub progress: Option<Json>,
    /// The run may stand elsewhere: look at it.
    pub moved: bool,
    /// It has ended, and nothing more will happen to it.
    pub ended: bool,
}

/// A run as it stands.
pub(crate) struct Look {
    pub record: RunRecord,
    pub state: CountedState,
    pub reader: Decider,
}

/// A run that somebody waits for. Counted among the caller's streams, and ends with its access.
pub(crate) struct Following {
    door: Shared,
    who: Principal,
    run: RunId,
    space: SpaceId,
    pass: Pass,
    events: Subscription,
    /// When access is checked again without a reason.
    beat: Instant,
    _open: OpenStream,
}

impl Following {
    /// Follows the run by these events, or from now on.
    pub async fn begin(
        door: &Shared,
        who: &Principal,
        (run, space): (RunId, SpaceId),
        events: Option<Subscription>,
        open: OpenStream,
    ) -> Result<Self, Refusal> {
        let events = match events {
            Some(events) => events,
            None => {
                let record = door.access.run(who, run).await?;
                door.engine.subscribe(Scope::Run(run), record.version).await?
            }
        };
        Ok(Self {
            door: door.clone(),
            who: who.clone(),
            run,
            space,
            pass: door.access.admit(who, space).await?,
            events,
            beat: Instant::now() + door.settings.heartbeat,
            _open: open,
        })
    }

    /// The run as it stands now. What it says happened before the next [`Following::next`] is in it, or will be told.
    pub async fn look(&self) -> Result<Look, Refusal> {
        look(&self.door, &self.who, self.run).await
    }

    /// Waits for what happens next.
    pub async fn next(&mut self) -> Result<News, Refusal> {
        loop {
            tokio::select! {
                biased;
                () = self.pass.doubt() => self.renew(Standing::Unknown).await?,
                () = tokio::time::sleep_until(self.beat) => {
                    self.renew(Standing::Holds).await?;
                    self.beat = Instant::now() + self.door.settings.heartbeat;
                }
                batch = self.events.next() => match batch {
                    Ok(batch) => {
                        if let Some(news) = self.read(&batch) {
                            return Ok(news);
                        }
                    }
                    Err(End::Finished) => return Ok(News { moved: true, ended: true, progress: None }),
                    Err(End::Cut) => {
                        tokio::time::sleep(CUT_PAUSE).await;
                        let after = self.events.cursor();
                        self.events = self.door.engine.subscribe(Scope::Run(self.run), after).await?;
                    }
                },
            }
        }
    }

    /// Checks that the caller may still see the run. `unknown` is what counts when the store does not answer.
    async fn renew(&mut self, unknown: Standing) -> Result<(), Refusal> {
        let standing = self.door.access.standing(&self.pass).await.unwrap_or(unknown);
        if standing != Standing::Holds {
            self.pass = self.door.access.admit(&self.who, self.space).await?;
        }
        Ok(())
    }

    fn read(&self, batch: &Batch) -> Option<News> {
        let mut news = News::default();
        for (_, event) in batch.placed() {
            match event {
                Event::RunFinish(_) => (news.moved, news.ended) = (true, true),
                Event::RunStatus(_) | Event::ChildCall(_) => news.moved = true,
                Event::ToolApprovalRequest(_)
                | Event::ToolApprovalResponse(_)
                | Event::ToolQuestion(_)
                | Event::ToolQuestionResponse(_) => news.moved = true,
                Event::ToolProgress(_) => {
                    if let Some(Event::ToolProgress(seen)) = view(event, self.pass.reader()).as_deref() {
                        news.progress = seen.progress.clone().or(news.progress);
                    }
                }
                _ => {}
            }
        }
        (news.moved || news.progress.is_some()).then_some(news)
    }
}

/// A run as it stands, if the caller may reach it.
pub(crate) async fn look(door: &Shared, who: &Principal, run: RunId) -> Result<Look, Refusal> {
    // The row is read before the log: what it says has happened is in the state.
    let record = door.access.run(who, run).await?;
    let pass = door.access.admit(who, record.space).await?;
    let reader = pass.reader().clone();
    let state = CountedState::read(door, who, run, &reader).await?;
    Ok(Look {
        record,
        state,
        reader,
    })
}
