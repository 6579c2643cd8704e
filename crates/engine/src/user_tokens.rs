//! Tokens of users whose requests are live, for tools that may pass them on. They are in memory only, and only in the
//! process that took the request: a run that goes on elsewhere, after a restart, or without a new message has none.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use toolgate_kernel::agent::Secret;
use toolgate_kernel::id::{EntityId, MessageId, RunId};
use toolgate_kernel::time::Time;

use crate::Engine;

/// Longest time that a token is kept, whatever it says of itself.
const KEPT_MAX: Duration = Duration::from_secs(3600);
/// Tokens that are kept at once; the oldest goes first.
const TOKENS_MAX: usize = 2_000;
/// Tokens of one user that are kept at once.
const TOKENS_OF_USER_MAX: usize = 16;
/// Longest token that is kept.
const TOKEN_BYTES_MAX: usize = 16 * 1024;

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

/// What a token was lent for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum For {
    /// A message that is about to be posted.
    Message(MessageId, EntityId),
    /// The root run that answers it.
    Run(RunId),
}

/// The tokens that were lent.
#[derive(Default)]
pub(crate) struct UserTokens(Mutex<HashMap<For, (Time, UserToken)>>);

impl UserTokens {
    fn lock(&self) -> MutexGuard<'_, HashMap<For, (Time, UserToken)>> {
        self.0.lock().expect("no panic holds the tokens")
    }

    fn keep(&self, what: For, token: UserToken, now: Time) {
        if token.token.expose().len() > TOKEN_BYTES_MAX {
            return;
        }
        let token = UserToken {
            expires: token.expires.min(now.after(KEPT_MAX)),
            ..token
        };
        let mut kept = self.lock();
        kept.retain(|_, (_, token)| token.expires > now);
        let of_user = |(_, other): &&(Time, UserToken)| other.entity == token.entity;
        let is_share_full = kept.values().filter(of_user).count() >= TOKENS_OF_USER_MAX;
        if is_share_full || kept.len() >= TOKENS_MAX {
            let rivals = kept
                .iter()
                .filter(|(_, (_, other))| !is_share_full || other.entity == token.entity);
            let oldest = rivals.min_by_key(|(_, (since, _))| *since).map(|(what, _)| *what);
            oldest.map(|oldest| kept.remove(&oldest));
        }
        kept.insert(what, (now, token));
    }

    /// Gives the token of a message to the run that is to answer it, in place of the one that the run had. The message
    /// keeps it until its [`UserTokens::end`]: it may have to be posted to another run.
    pub fn bind(&self, message: MessageId, from: Option<EntityId>, run: RunId, now: Time) {
        let Some(from) = from else { return };
        let lent = self.lock().get(&For::Message(message, from)).cloned();
        if let Some((_, token)) = lent {
            self.keep(For::Run(run), token, now);
        }
    }

    /// Forgets what was lent for a message: it was posted, or refused.
    pub fn end(&self, message: MessageId, from: Option<EntityId>) {
        if let Some(from) = from {
            self.lock().remove(&For::Message(message, from));
        }
    }

    /// The token of this person that the run was begun or continued with, unless it has expired.
    pub fn of(&self, root: RunId, person: EntityId, now: Time) -> Option<Secret> {
        let kept = self.lock();
        let (_, lent) = kept.get(&For::Run(root))?;
        (lent.entity == person && lent.expires > now).then(|| lent.token.clone())
    }
}

impl Engine {
    /// Lends the token of a user to the run that will answer this message of the user, for tools that may pass it on.
    /// Call it before the message is posted. Nothing of it is stored.
    pub fn lend_token(&self, message: MessageId, token: UserToken) {
        let what = For::Message(message, token.entity);
        self.inner.user_tokens.keep(what, token, self.inner.clock.now());
    }
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

    fn run(number: u8) -> RunId {
        RunId::from_bytes([number; 16])
    }

    fn seen(tokens: &UserTokens, number: u8, person: u8, now: i64) -> Option<String> {
        let found = tokens.of(run(number), EntityId::from_bytes([person; 16]), Time(now));
        found.map(|token| token.expose().to_owned())
    }

    /// Lends a token and binds it to a run.
    fn begin(tokens: &UserTokens, number: u8, lent: UserToken, now: i64) {
        let (message, from) = (MessageId::from_bytes([number; 16]), lent.entity);
        tokens.keep(For::Message(message, from), lent, Time(now));
        tokens.bind(message, Some(from), run(number), Time(now));
        tokens.end(message, Some(from));
    }

    #[test]
    fn a_run_has_the_token_of_the_person_who_wrote_to_it_until_it_expires() {
        let tokens = UserTokens::default();
        begin(&tokens, 1, token(1, "first", 1_000), 0);
        assert_eq!(seen(&tokens, 1, 1, 999).as_deref(), Some("first"));
        assert_eq!(seen(&tokens, 1, 1, 1_000), None);
        assert_eq!(seen(&tokens, 1, 2, 0), None, "another person's");
        assert_eq!(seen(&tokens, 2, 1, 0), None, "another run's");
        begin(&tokens, 1, token(1, "second", 2_000), 500);
        assert_eq!(seen(&tokens, 1, 1, 999).as_deref(), Some("second"));
        // A message under the id of another person's brings nothing to the run.
        let message = MessageId::from_bytes([7; 16]);
        let thief = token(9, "thief", 9_000);
        tokens.keep(For::Message(message, thief.entity), thief, Time(0));
        tokens.bind(message, Some(EntityId::from_bytes([1; 16])), run(7), Time(0));
        assert_eq!(seen(&tokens, 7, 9, 0), None);
    }

    #[test]
    fn nobody_can_push_out_the_tokens_of_others() {
        let tokens = UserTokens::default();
        begin(&tokens, 1, token(1, "mine", i64::MAX), 0);
        for number in 10..100 {
            begin(&tokens, number, token(2, "flood", i64::MAX), i64::from(number));
        }
        assert!(tokens.lock().len() <= TOKENS_OF_USER_MAX + 1);
        assert_eq!(seen(&tokens, 1, 1, 1).as_deref(), Some("mine"));
        assert_eq!(seen(&tokens, 99, 2, 100).as_deref(), Some("flood"));
        // However long a token says that it holds, it is not kept for longer than an hour.
        assert_eq!(seen(&tokens, 1, 1, 3_600_000), None);
        begin(
            &tokens,
            3,
            token(3, &"x".repeat(TOKEN_BYTES_MAX + 1), i64::MAX),
            0,
        );
        assert_eq!(seen(&tokens, 3, 3, 1), None);
    }
}
