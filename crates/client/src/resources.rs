//! The gateway's resources, one type per kind.

mod agents;
mod approvals;
mod calls;
mod consents;
mod files;
mod knowledge;
mod questions;
mod registry;
mod runs;
mod spaces;
mod tools;
mod voice;

pub use agents::Agents;
pub use approvals::{Approvals, Decided, Decision};
pub use calls::Calls;
pub use consents::{Consent, Consents};
pub use files::{File, FileContent, FilePage, Files, Only};
pub use knowledge::{Document, DocumentPage, Knowledge, NewDocument};
pub use questions::{AnsweredQuestion, OpenQuestion, QuestionAnswer, QuestionPage, Questions};
pub use registry::{SharedTool, ToolRegistry};
pub use runs::{
    Asked, OpenCall, Pending, Posted, Run, RunFilter, RunPage, RunRequest, RunSummary, Runs, Usage,
};
pub use spaces::{EventPage, NewSpace, Space, Spaces};
pub use tools::{Claimed, LatencyMs, Receipt, ToolUsage, Tools};
pub(crate) use tools::{claim_call, release_call};
pub use voice::{MatchedWord, Said, ToolMatch, ToolOwner, Utterance, VoiceKind};
