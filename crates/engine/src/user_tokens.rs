//! Tokens of users whose requests are live, for tools that may pass them on. They are in memory only, and only in the
//! process that took the request: a run that goes on elsewhere, after a restart, or without a new message has none. They
//! are kept only for runs that have such a tool, and until the run ends.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use toolgate_kernel::agent::Secret;
use toolgate_kernel::id::{EntityId, ProjectId, RunId};
use toolgate_kernel::name::AgentName;
use toolgate_kernel::time::Time;
use toolgate_kernel::tool::{Execution, Toolbox};

use crate::Inner;
use crate::agents::Kit;
use crate::store::StoreError;

/// Longest time that a token is kept, whatever it says of itself.
const KEPT_MAX: Duration = Duration::from_secs(3600);
/// Bytes of all tokens that are kept at once.
const BYTES_MAX: usize = 32 << 20;
/// Bytes of the tokens of one user that are kept at once.
const BYTES_OF_USER_MAX: usize = 256 << 10;
/// About what a token takes besides its text.
const OVERHEAD_BYTES: usize = 256;
/// Longest token that is kept.
const TOKEN_BYTES_MAX: usize = 16 * 1024;
/// Runs whose token was dropped that are remembered; the first to expire goes first.
const DROPPED_MAX: usize = 4_096;
/// How often expired tokens are taken out of memory, while others come.
const SWEPT_EVERY: Duration = Duration::from_secs(60);
/// Agents that are looked at for tools that pass a token on; one with more below it is taken to have such a tool.
const AGENTS_MAX: usize = 64;

/// The token that a user showed with a request.
#[derive(Debug, Clone)]
pub struct UserToken {
    /// The user.
    pub entity: EntityId,
    /// The token as it was sent.
    pub token: Secret,
    /// When it expires.
    pub expires: Time,
}

/// Why a call has no token of the user, in words that the model can act on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NoToken {
    /// None was shown, or it has expired.
    #[error(
        "the user's token is needed for this call, and there is none: the run does not work for a signed-in user, goes on \
         without a request of theirs, or the token has expired. Ask the user to sign in again and to send a message, then \
         call the tool again."
    )]
    Absent,
    /// It was dropped before it expired.
    #[error(
        "the user's token is needed for this call, and the gateway has dropped it, because more tokens were in use at once \
         than it keeps. Ask the user to sign in again and to send a message, then call the tool again."
    )]
    Dropped,
    /// Its user was removed from the space.
    #[error(
        "the user's token is needed for this call, and is no longer used: the user was removed from the space. Go on \
         without this tool."
    )]
    Removed,
    /// Somebody else changed the input when they approved the call.
    #[error(
        "the user's token is needed for this call, and is not sent with an input that another person changed. Ask the user \
         to send a message with the changed input, then call the tool again."
    )]
    Edited,
}

/// A token that was lent to a root run.
struct Lent {
    since: Time,
    entity: EntityId,
    expires: Time,
    token: Secret,
}

impl Lent {
    fn bytes(&self) -> usize {
        OVERHEAD_BYTES + self.token.expose().len()
    }
}

/// The tokens that were lent.
#[derive(Default)]
pub(crate) struct UserTokens(Mutex<Shelf>);

#[derive(Default)]
struct Shelf {
    by_run: HashMap<RunId, Lent>,
    /// Bytes of each user's tokens.
    of_user: HashMap<EntityId, usize>,
    /// Bytes of all tokens.
    bytes: usize,
    /// Runs whose token was dropped for want of room, until it would have expired: their calls are told so.
    dropped: HashMap<RunId, (EntityId, Time)>,
    /// When expired ones were last taken out.
    swept: Time,
}

impl UserTokens {
    fn lock(&self) -> MutexGuard<'_, Shelf> {
        self.0.lock().expect("no panic holds the tokens")
    }

    /// Forgets the tokens of a user.
    pub fn forget_user(&self, user: EntityId) {
        let mut shelf = self.lock();
        let lent = shelf.by_run.iter().filter(|(_, lent)| lent.entity == user);
        let runs: Vec<RunId> = lent.map(|(run, _)| *run).collect();
        for run in runs {
            shelf.remove(run);
        }
    }

    /// Keeps the token of a user for a root run, in place of the one that the run had. Makes room by dropping the oldest
    /// of the same user, or of whoever has most.
    pub fn keep(&self, run: RunId, lent: &UserToken, now: Time) {
        let lent = Lent {
            since: now,
            entity: lent.entity,
            expires: lent.expires.min(now.after(KEPT_MAX)),
            token: lent.token.clone(),
        };
        let user = lent.entity;
        let mut shelf = self.lock();
        if now >= shelf.swept.after(SWEPT_EVERY) {
            shelf.sweep(now);
        }
        shelf.remove(run);
        shelf.dropped.remove(&run);
        if lent.token.expose().len() > TOKEN_BYTES_MAX {
            return shelf.note_dropped(run, &lent);
        }
        shelf.insert(run, lent);
        while shelf
            .of_user
            .get(&user)
            .is_some_and(|bytes| *bytes > BYTES_OF_USER_MAX)
        {
            shelf.drop_oldest(user);
        }
        while shelf.bytes > BYTES_MAX {
            let most = shelf.of_user.iter().max_by_key(|(_, bytes)| **bytes);
            let Some(most) = most.map(|(user, _)| *user) else {
                break;
            };
            shelf.drop_oldest(most);
        }
    }

    /// Whether the run was lent a token before.
    fn knows(&self, run: RunId) -> bool {
        let shelf = self.lock();
        shelf.by_run.contains_key(&run) || shelf.dropped.contains_key(&run)
    }

    /// Forgets the token of a run that has ended.
    pub fn forget(&self, run: RunId) {
        let mut shelf = self.lock();
        shelf.remove(run);
        shelf.dropped.remove(&run);
    }

    /// The token of this person that the root run was begun or continued with.
    pub fn of(&self, root: RunId, person: EntityId, now: Time) -> Result<Secret, NoToken> {
        let shelf = self.lock();
        if let Some((entity, expires)) = shelf.dropped.get(&root)
            && *entity == person
            && *expires > now
        {
            return Err(NoToken::Dropped);
        }
        let lent = shelf.by_run.get(&root);
        lent.filter(|lent| lent.entity == person && lent.expires > now)
            .map(|lent| lent.token.clone())
            .ok_or(NoToken::Absent)
    }
}

impl Shelf {
    fn insert(&mut self, run: RunId, lent: Lent) {
        self.bytes += lent.bytes();
        *self.of_user.entry(lent.entity).or_default() += lent.bytes();
        self.by_run.insert(run, lent);
    }

    fn remove(&mut self, run: RunId) -> Option<Lent> {
        let lent = self.by_run.remove(&run)?;
        self.bytes -= lent.bytes();
        if let Some(bytes) = self.of_user.get_mut(&lent.entity) {
            *bytes -= lent.bytes();
            if *bytes == 0 {
                self.of_user.remove(&lent.entity);
            }
        }
        Some(lent)
    }

    fn drop_oldest(&mut self, user: EntityId) {
        let theirs = self.by_run.iter().filter(|(_, lent)| lent.entity == user);
        let oldest = theirs.min_by_key(|(_, lent)| lent.since).map(|(run, _)| *run);
        let run = oldest.expect("whoever has bytes has a token");
        if let Some(lent) = self.remove(run) {
            self.note_dropped(run, &lent);
        }
    }

    fn note_dropped(&mut self, run: RunId, lent: &Lent) {
        if self.dropped.len() >= DROPPED_MAX {
            let first = self.dropped.iter().min_by_key(|(_, (_, expires))| *expires);
            let first = first.map(|(run, _)| *run);
            first.and_then(|first| self.dropped.remove(&first));
        }
        self.dropped.insert(run, (lent.entity, lent.expires));
    }

    fn sweep(&mut self, now: Time) {
        let expired = self.by_run.iter().filter(|(_, lent)| lent.expires <= now);
        let expired: Vec<RunId> = expired.map(|(run, _)| *run).collect();
        for run in expired {
            self.remove(run);
        }
        self.dropped.retain(|_, (_, expires)| *expires > now);
        self.swept = now;
    }
}

impl Inner {
    /// Keeps the token of whoever wrote a message for the root run that answers it, if a tool of that run or of an agent
    /// below may pass it on.
    pub(crate) async fn lend_token(
        &self,
        project: ProjectId,
        run: RunId,
        kit: &Kit,
        token: Option<&UserToken>,
    ) -> Result<(), StoreError> {
        let Some(token) = token else { return Ok(()) };
        // A run under way may have tools that its agent has no longer.
        if self.user_tokens.knows(run) || self.passes_user_token(project, kit).await? {
            self.user_tokens.keep(run, token, self.clock.now());
        }
        Ok(())
    }

    async fn passes_user_token(&self, project: ProjectId, kit: &Kit) -> Result<bool, StoreError> {
        if self.has_token_tool(kit) {
            return Ok(true);
        }
        let (mut seen, mut below) = (BTreeSet::new(), children_of(&kit.toolbox));
        while let Some(child) = below.pop() {
            // Which agent `spawn_agent` starts is not known before.
            let Child::Agent(name) = child else {
                return Ok(true);
            };
            if !seen.insert(name.clone()) {
                continue;
            }
            if seen.len() > AGENTS_MAX {
                return Ok(true);
            }
            if let Some(agent) = self.compiled(project, &name, None).await? {
                if self.has_token_tool(&agent.tools) {
                    return Ok(true);
                }
                below.extend(children_of(&agent.tools.toolbox));
            }
        }
        Ok(false)
    }

    fn has_token_tool(&self, kit: &Kit) -> bool {
        *kit.passes_user_token
            .get_or_init(|| self.tools.pass_user_token(&kit.toolbox))
    }
}

/// A run that a tool may start.
enum Child {
    Agent(AgentName),
    Any,
}

/// The runs that these tools may start. A prompt tool's run has the tools of its agent.
fn children_of(tools: &Toolbox) -> Vec<Child> {
    let children = tools.values().filter_map(|tool| match &tool.execution {
        Execution::Agent { agent, .. } => Some(Child::Agent(agent.clone())),
        Execution::Spawn => Some(Child::Any),
        _ => None,
    });
    children.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(person: u8, text: &str, expires: i64) -> UserToken {
        UserToken {
            entity: EntityId::from_bytes([person; 16]),
            token: Secret::new(text),
            expires: Time(expires),
        }
    }

    fn run(number: u16) -> RunId {
        let mut bytes = [0; 16];
        bytes[..2].copy_from_slice(&number.to_be_bytes());
        RunId::from_bytes(bytes)
    }

    fn seen(tokens: &UserTokens, number: u16, person: u8, now: i64) -> Result<String, NoToken> {
        let found = tokens.of(run(number), EntityId::from_bytes([person; 16]), Time(now));
        found.map(|token| token.expose().to_owned())
    }

    #[test]
    fn a_run_has_the_token_of_the_person_who_wrote_to_it_until_it_expires_or_the_run_ends() {
        let tokens = UserTokens::default();
        tokens.keep(run(1), &token(1, "first", 1_000), Time(0));
        assert_eq!(seen(&tokens, 1, 1, 999).as_deref(), Ok("first"));
        assert_eq!(seen(&tokens, 1, 1, 1_000), Err(NoToken::Absent));
        assert_eq!(seen(&tokens, 1, 2, 0), Err(NoToken::Absent), "another person's");
        assert_eq!(seen(&tokens, 2, 1, 0), Err(NoToken::Absent), "another run's");
        tokens.keep(run(1), &token(1, "second", 2_000), Time(500));
        assert_eq!(seen(&tokens, 1, 1, 999).as_deref(), Ok("second"));
        tokens.forget(run(1));
        assert_eq!(seen(&tokens, 1, 1, 999), Err(NoToken::Absent));
        // However long a token says that it holds, it is not kept for longer than an hour.
        tokens.keep(run(3), &token(3, "long", i64::MAX), Time(0));
        assert_eq!(seen(&tokens, 3, 3, 3_600_000), Err(NoToken::Absent));
    }

    #[test]
    fn nobody_can_push_out_the_tokens_of_others_and_what_is_dropped_is_said() {
        let tokens = UserTokens::default();
        tokens.keep(run(1), &token(1, "mine", i64::MAX), Time(0));
        let long = "x".repeat(TOKEN_BYTES_MAX);
        for number in 10..100 {
            tokens.keep(run(number), &token(2, &long, i64::MAX), Time(number.into()));
        }
        let flood = tokens.lock().of_user[&EntityId::from_bytes([2; 16])];
        assert!(flood <= BYTES_OF_USER_MAX, "{flood}");
        assert_eq!(seen(&tokens, 1, 1, 1).as_deref(), Ok("mine"));
        assert_eq!(seen(&tokens, 99, 2, 100).as_deref(), Ok(long.as_str()));
        assert_eq!(seen(&tokens, 10, 2, 100), Err(NoToken::Dropped));
        assert!(NoToken::Dropped.to_string().contains("sign in again"));
        let too_long = token(3, &"x".repeat(TOKEN_BYTES_MAX + 1), i64::MAX);
        tokens.keep(run(3), &too_long, Time(0));
        assert_eq!(seen(&tokens, 3, 3, 1), Err(NoToken::Dropped));
    }

    #[test]
    fn when_there_is_no_room_for_all_whoever_has_most_loses_its_oldest() {
        let tokens = UserTokens::default();
        let long = "x".repeat(TOKEN_BYTES_MAX);
        let each = BYTES_OF_USER_MAX / (TOKEN_BYTES_MAX + OVERHEAD_BYTES);
        let users = BYTES_MAX / (each * (TOKEN_BYTES_MAX + OVERHEAD_BYTES)) + 1;
        tokens.keep(run(0), &token(250, "mine", i64::MAX), Time(0));
        for number in 1..=(users * each) as u16 {
            let user = (usize::from(number) % users) as u8;
            tokens.keep(run(number), &token(user, &long, i64::MAX), Time(number.into()));
        }
        assert!(tokens.lock().bytes <= BYTES_MAX);
        assert_eq!(seen(&tokens, 0, 250, 9_999).as_deref(), Ok("mine"));
        assert!(!tokens.lock().dropped.is_empty());
    }

    #[test]
    fn short_tokens_of_many_runs_stay_within_their_bytes_too() {
        let tokens = UserTokens::default();
        for number in 0..3_000 {
            tokens.keep(run(number), &token(2, "short", i64::MAX), Time(number.into()));
        }
        assert!(tokens.lock().bytes <= BYTES_OF_USER_MAX);
        assert!(tokens.lock().dropped.len() <= DROPPED_MAX);
        assert_eq!(seen(&tokens, 2_999, 2, 3_000).as_deref(), Ok("short"));
    }
}
