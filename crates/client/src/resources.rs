//! The gateway's resources, one type per kind.

mod agents;
mod approvals;
mod calls;
mod files;
mod knowledge;
mod questions;
mod runs;
mod spaces;
mod tools;

pub use agents::Agents;
pub use approvals::{Approvals, Decided, Decision};
pub use calls::Calls;
pub use files::{File, FileContent, FilePage, Files, Only};
pub use knowledge::{Document, DocumentPage, Knowledge, NewDocument};
pub use questions::{AnsweredQuestion, OpenQuestion, QuestionAnswer, QuestionPage, Questions};
pub use runs::{
    Asked, OpenCall, Pending, Posted, Run, RunFilter, RunPage, RunRequest, RunSummary, Runs, Usage,
};
pub use spaces::{EventPage, NewSpace, Space, Spaces};
pub use tools::{Claimed, Receipt, Tools};
pub(crate) use tools::{claim_call, release_call};
