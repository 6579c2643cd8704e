//! How a list of runs is read: along one index, in its order, looking at a bounded number of rows. What the index does not tell
//! is looked at row by row, so a list of few among millions gives short pages, and each of them as quickly as any.

use toolgate_engine::store::RunFilter;
use toolgate_kernel::event::Status;
use toolgate_kernel::id::RunId;
use toolgate_kernel::time::Time;

/// The rows that a list walks over, in the order of how few they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Walk {
    /// Below a run.
    Tree,
    /// The children of a run.
    Children,
    /// Those of a space that have not ended.
    OpenOfSpace,
    /// Those of a space.
    Space,
    /// Those that a user has started.
    User,
    /// Those that were created in a time, in the order of their creation.
    Time,
    /// Those that are one call of a tool.
    Tool,
    /// Those that ended in one way that is not completion.
    Failure,
    /// Those that have not ended.
    Open,
    /// Those of an agent.
    Agent,
    /// All of the project.
    Project,
}

impl Walk {
    pub(crate) fn of(filter: &RunFilter) -> Self {
        let is_open = !filter.statuses.is_empty() && filter.statuses.iter().all(|status| !status.is_final());
        let is_failure = matches!(filter.statuses[..], [Status::Failed | Status::Cancelled]);
        match filter {
            RunFilter { root: Some(_), .. } => Self::Tree,
            RunFilter { parent: Some(_), .. } => Self::Children,
            RunFilter { space: Some(_), .. } if is_open => Self::OpenOfSpace,
            RunFilter { space: Some(_), .. } => Self::Space,
            RunFilter { user: Some(_), .. } => Self::User,
            RunFilter { tool: Some(_), .. } => Self::Tool,
            _ if is_open => Self::Open,
            _ if filter.since.is_some() || filter.until.is_some() => Self::Time,
            _ if is_failure => Self::Failure,
            RunFilter { agent: Some(_), .. } => Self::Agent,
            _ => Self::Project,
        }
    }
}

/// Whether only runs that failed or were cancelled have one of these statuses.
pub(crate) fn are_failures(statuses: &[Status]) -> bool {
    let is_failure = |status: &Status| matches!(status, Status::Failed | Status::Cancelled);
    !statuses.is_empty() && statuses.iter().all(is_failure)
}

/// Whether runs in these statuses are to be looked for among those that are open (`true`), and among those that ended.
pub(crate) fn sides(statuses: &[Status]) -> impl Iterator<Item = bool> {
    let has = move |is_open: bool| {
        statuses.is_empty() || statuses.iter().any(|status| status.is_final() != is_open)
    };
    [true, false].into_iter().filter(move |is_open| has(*is_open))
}

/// When the run with this id was created, if its row is gone: an id begins with its milliseconds.
pub(crate) fn time_of(run: RunId) -> Time {
    let [a, b, c, d, e, f, ..] = run.to_bytes();
    Time(i64::from_be_bytes([0, 0, a, b, c, d, e, f]))
}
