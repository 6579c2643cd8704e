//! Quotas of users with a public key: what each may store and have under way. A backend has none.

use http::StatusCode;
use toolgate_access::Principal;
use toolgate_engine::store::{Holdings, RunFilter};
use toolgate_kernel::id::SpaceId;

use crate::Shared;
use crate::problem::Refusal;

/// Newest runs of a space that are looked at for an open one.
const RUNS_LOOKED_AT: usize = 16;

/// What one user may have in the spaces that it made.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct QuotaLimits {
    /// Spaces.
    pub spaces: u64,
    /// Bytes of their logs and files.
    pub stored_bytes: u64,
    /// Runs in them that have not ended.
    pub open_runs: u64,
}

/// What a request is about to add.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Adds {
    /// A space.
    Space,
    /// Something to a space that is there.
    Content,
    /// A message that an agent answers, in this space or in a new one.
    Run(Option<SpaceId>),
}

/// Refuses a request that would go beyond the quotas of whoever asks, before it changes anything.
pub async fn check(door: &Shared, who: &Principal, adds: Adds) -> Result<(), Refusal> {
    let Some(user) = who.entity() else {
        return Ok(());
    };
    let limits = door.settings.quotas;
    let has = door.engine.holdings(who.project, user).await?;
    if has.bytes >= limits.stored_bytes {
        return Err(exceeded("bytes stored", has.bytes, "quotas.stored_bytes"));
    }
    match adds {
        Adds::Content => Ok(()),
        Adds::Space => check_spaces(&has, &limits),
        Adds::Run(space) => {
            let known = match space {
                // Only asked where it matters: most users are far from their quotas.
                Some(space) if has.spaces >= limits.spaces => door.engine.space(space).await?.is_some(),
                space => space.is_some(),
            };
            if !known {
                check_spaces(&has, &limits)?;
            }
            if has.open_runs >= limits.open_runs && !joins_a_run(door, who, space).await? {
                return Err(exceeded("open runs", has.open_runs, "quotas.open_runs"));
            }
            Ok(())
        }
    }
}

fn check_spaces(has: &Holdings, limits: &QuotaLimits) -> Result<(), Refusal> {
    match has.spaces < limits.spaces {
        true => Ok(()),
        false => Err(exceeded("spaces", has.spaces, "quotas.spaces")),
    }
}

/// Whether a run is open in the space, which the message joins or ends.
async fn joins_a_run(door: &Shared, who: &Principal, space: Option<SpaceId>) -> Result<bool, Refusal> {
    let Some(space) = space else {
        return Ok(false);
    };
    let filter = RunFilter {
        space: Some(space),
        limit: RUNS_LOOKED_AT,
        ..RunFilter::default()
    };
    let runs = door.engine.runs(who.project, filter).await?;
    Ok(runs.iter().any(|run| !run.status.is_final()))
}

fn exceeded(what: &str, has: u64, setting: &str) -> Refusal {
    let detail = format!("you have {has} {what}, which is as much as one user may have; see {setting}");
    Refusal::new(StatusCode::TOO_MANY_REQUESTS, "QUOTA_EXCEEDED", detail)
}
