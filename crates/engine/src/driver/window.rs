//! What the model is given: the conversation before the run, as much of it as fits the context window, and the date.
//!
//! The log is read backwards, to the last cut or as far as the window can hold, so a run costs no more in a long space
//! than in one that just fills the window. What no longer fits is cut off with an event ([`ContextCut`]) before the model
//! is asked; the next cut is far away then, and requests in between share their beginning. What was read is kept for the
//! next run of the space ([`Pasts`]), which reads on from there.
//!
//! [`Pasts`]: super::pasts::Pasts

use std::collections::HashSet;
use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use toolgate_kernel::agent::Compact;
use toolgate_kernel::context::{Conversation, Cut, Exchange, Place, ReadBack, tokens_of, tool_tokens};
use toolgate_kernel::event::{ContextCut, Entry, Event, Seq};
use toolgate_kernel::history::{self, Before};
use toolgate_kernel::id::RunId;
use toolgate_kernel::message::Part;
use toolgate_kernel::prompt::Turn;

use super::load::{next, patient};
use super::pasts::KnownPast;
use super::{Adrift, Done, Driver, RequestProgress};
use crate::Inner;
use crate::store::{LogRange, Pages};
use crate::summary;
use crate::today::today;

/// Most entries of a space that a model is given.
const PAST_ENTRIES_MAX: usize = 100_000;
/// Most bytes that are read of calls which no model made: they take no room, but each is read.
const SKIPPED_BYTES_MAX: usize = 64 << 20;
/// Bytes of a space that are read at once: what is read beyond a cut is read for nothing.
const PAST_PAGE_BYTES: usize = 128 << 10;

/// What was said before a run, as its model is given it.
#[derive(Default)]
pub(crate) struct Past {
    exchanges: Vec<Exchange>,
    /// The exchanges, behind the summary of what was left out before.
    pub turns: Arc<[Arc<Turn>]>,
    summary: Option<String>,
    /// There is more in the log than was read.
    truncated: bool,
    /// The run's own last cut when this was read.
    cut: Option<Arc<ContextCut>>,
}

impl Past {
    fn new(exchanges: Vec<Exchange>, last_cut: Option<&ContextCut>) -> Self {
        let summary = last_cut.and_then(|cut| cut.summary.clone());
        let told = summary.as_deref().map(summary_turn);
        let said = exchanges
            .iter()
            .flat_map(|exchange| exchange.turns.iter().cloned());
        Self {
            turns: told.into_iter().chain(said).collect(),
            exchanges,
            summary,
            truncated: false,
            cut: None,
        }
    }
}

fn summary_turn(summary: &str) -> Arc<Turn> {
    let text = format!("Summary of the conversation so far, which is left out here:\n\n{summary}");
    Arc::new(Turn::User(vec![Part::Text { text }]))
}

/// Runs of one call that no model made, in a log that is read backwards. They are no part of what was said, and take no
/// room of it.
#[derive(Default)]
pub(super) struct RequestedCalls {
    calls: HashSet<RunId>,
    /// Runs that are something else.
    others: HashSet<RunId>,
    /// Bytes of the entries that were dropped.
    dropped: usize,
}

impl RequestedCalls {
    /// Notes what the run of an entry is, if the entry says so: the first one of a run does.
    fn note(&mut self, entry: &Entry) {
        let begins = |event: &Event| matches!(event, Event::RunStart(_));
        if let Some(run) = entry.run.filter(|_| entry.events.iter().any(begins)) {
            match entry.begins_requested_call() {
                true => self.calls.insert(run),
                false => self.others.insert(run),
            };
        }
    }

    /// Looks up what the runs are whose beginning was not read yet.
    async fn look_up(&mut self, entries: &[Entry], inner: &Inner) -> Result<(), Adrift> {
        for run in entries.iter().filter_map(|entry| entry.run) {
            if self.calls.contains(&run) || self.others.contains(&run) {
                continue;
            }
            let record = patient(|| inner.store.run(run)).await.map_err(|_| Adrift)?;
            match record.is_some_and(|record| record.tool.is_some()) {
                true => self.calls.insert(run),
                false => self.others.insert(run),
            };
        }
        Ok(())
    }

    /// Whether an entry belongs to such a call.
    fn is_call(&self, entry: &Entry) -> bool {
        entry.run.is_some_and(|run| self.calls.contains(&run))
    }

    /// Removes the entries of such calls, and gives the bytes that they have in the store.
    fn drop_from(&mut self, entries: &mut Vec<Entry>) -> usize {
        let before = self.dropped;
        entries.retain(|entry| {
            let is_call = entry.run.is_some_and(|run| self.calls.contains(&run));
            if is_call {
                let written = serde_json::to_vec(&entry.events).expect("events are JSON");
                self.dropped += written.len();
            }
            !is_call
        });
        self.dropped - before
    }
}

impl Driver {
    /// What was said before this run.
    pub(super) async fn past(&mut self) -> Result<Arc<Past>, Adrift> {
        let cut = self.run.cut().cloned();
        if let Some(past) = self.past.as_ref().filter(|past| past.cut == cut) {
            return Ok(past.clone());
        }
        let mut past = match self.run.told_before() {
            Some(told) => {
                let mut exchanges = history::told_exchanges(self.first, told, cut.as_deref());
                if let Some(cut) = &cut {
                    history::shorten_results(&mut exchanges, cut);
                }
                Past::new(exchanges, cut.as_deref())
            }
            None => self.read_past(cut.as_deref()).await?,
        };
        past.cut = cut;
        let past = Arc::new(past);
        self.past = Some(past.clone());
        Ok(past)
    }

    /// What was said before the run, less what `own`, the run's cut, leaves out: what is known of the space and what is new
    /// in its log, or all of it when nothing is known.
    async fn read_past(&mut self, own: Option<&ContextCut>) -> Result<Past, Adrift> {
        let agent = self.run.agent().name.clone();
        // The first entry of a space has nothing before it.
        if self.first <= Seq::durable(1) {
            return Ok(Past::new(Vec::new(), own));
        }
        let key = (self.space, agent);
        let rewrites = self.rewrites().await?;
        if own.is_none()
            && let Some(mut known) = self.inner.pasts.take(&key, rewrites)
            && self.read_on(&mut known).await?
        {
            let past = Past::new(known.before.exchanges(), known.cut.as_ref());
            self.inner.pasts.put(key, known);
            return Ok(past);
        }
        let (known, truncated) = self.read_back(own, rewrites).await?;
        let past = Past {
            truncated,
            ..Past::new(known.before.exchanges(), known.cut.as_ref())
        };
        // What a cut is about to change is not worth keeping.
        if own.is_none() && !truncated {
            self.inner.pasts.put(key, known);
        }
        Ok(past)
    }

    /// Adds what was stored in the space since, up to the run. False when all of it must be read: there is a new cut, or
    /// more than the model may be given.
    async fn read_on(&mut self, known: &mut KnownPast) -> Result<bool, Adrift> {
        if known.upto > self.first {
            return Ok(false);
        }
        let range = LogRange {
            before: Some(self.first),
            ..LogRange::after(Seq(known.upto.0.saturating_sub(1)))
        };
        let mut pages = Pages::of_space(self.space, range);
        while known.upto < self.first
            && let Some(page) = next(&mut pages, &self.inner).await.map_err(|_| Adrift)?
        {
            known.bytes += page.bytes;
            if known.bytes >= self.inner.settings.history_bytes_max {
                return Ok(false);
            }
            for entry in &page.entries {
                if entry.cut_of(&self.run.agent().name).is_some() {
                    return Ok(false);
                }
                known.calls.note(entry);
                if !known.calls.is_call(entry) {
                    known.before.add(entry);
                }
            }
        }
        known.upto = self.first;
        Ok(true)
    }

    /// Reads the log before the run backwards: to the last cut, or until it holds more than the model can be given. Says
    /// whether there is more.
    async fn read_back(
        &mut self,
        own: Option<&ContextCut>,
        rewrites: u64,
    ) -> Result<(KnownPast, bool), Adrift> {
        let agent = self.run.agent().clone();
        let bytes_max = self.inner.settings.history_bytes_max;
        let tokens_max = agent.context.max_tokens.unwrap_or(u64::MAX);
        let (mut entries, mut bytes) = (Vec::new(), 0);
        let mut calls = RequestedCalls::default();
        let mut read = 0;
        let mut read_back = ReadBack::new(&agent.name);
        let mut found = None;
        let mut from = own.map(|cut| cut.from);
        let mut truncated = false;
        let range = LogRange {
            after: Seq(from.map_or(0, |from| from.0.saturating_sub(1))),
            before: Some(self.first),
            bytes: bytes_max.min(PAST_PAGE_BYTES),
            ..LogRange::newest()
        };
        let mut pages = Pages::of_space(self.space, range);
        'read: while let Some(page) = next(&mut pages, &self.inner).await.map_err(|_| Adrift)? {
            bytes += page.bytes;
            let has_more = page.more;
            for entry in page.entries {
                if from.is_some_and(|from| entry.first < from) {
                    break 'read;
                }
                if from.is_none()
                    && let Some(cut) = entry.cut_of(&agent.name)
                {
                    from = Some(cut.from);
                    found = Some(cut.clone());
                }
                let tokens = read_back.add(&entry);
                calls.note(&entry);
                entries.push(entry);
                read += 1;
                if tokens > tokens_max || read >= PAST_ENTRIES_MAX {
                    truncated = true;
                    break 'read;
                }
            }
            if bytes >= bytes_max {
                calls.look_up(&entries, &self.inner).await?;
            }
            bytes = bytes.saturating_sub(calls.drop_from(&mut entries));
            if bytes >= bytes_max || calls.dropped >= SKIPPED_BYTES_MAX {
                truncated = has_more;
                break;
            }
        }
        calls.drop_from(&mut entries);
        let cut = own.cloned().or(found);
        let mut before = Before::new(agent.name.clone(), cut.clone());
        entries.iter().rev().for_each(|entry| before.add(entry));
        let known = KnownPast {
            before,
            calls,
            upto: self.first,
            rewrites,
            cut,
            bytes,
        };
        Ok((known, truncated))
    }

    /// Most tokens of a request: as the agent says, and as a vendor has shown.
    fn tokens_max(&self) -> Option<u64> {
        match (self.run.agent().context.max_tokens, self.window) {
            (Some(max), Some(window)) => Some(max.min(window)),
            (max, window) => max.or(window),
        }
    }

    /// What must be left out before the model can be asked, if the request would be too long.
    pub(super) fn overflow(&self, past: &Past) -> Option<Cut> {
        let context = &self.run.agent().context;
        let window = self.tokens_max();
        if window.is_none() && !past.truncated {
            return None;
        }
        let conversation = self.conversation(past);
        let max = match past.truncated {
            // More was said than was read: cut to half of that, so that the next runs read the same.
            true => window.unwrap_or(u64::MAX).min(conversation.tokens() - 1),
            false => window.unwrap_or(u64::MAX),
        };
        conversation.cut(max, context.keep)
    }

    /// The vendor refused the last request because of its length: the next one has half of it. False if nothing can be
    /// left out.
    pub(super) fn halve_window(&mut self) -> bool {
        let Some(past) = self.past.clone() else {
            return false;
        };
        let conversation = self.conversation(&past);
        let half = conversation.tokens() / 2;
        let helps = conversation.cut(half, self.run.agent().context.keep).is_some();
        self.window = Some(half);
        helps
    }

    fn conversation<'a>(&'a self, past: &'a Past) -> Conversation<'a> {
        let agent = self.run.agent();
        let summary = past.summary.as_ref().map_or(0, String::len);
        let told = self.run.told_before().map_or(0, |told| told.len() as u32);
        Conversation {
            fixed: tokens_of(agent.instructions.len() + summary) + tool_tokens(&self.kit.offered),
            past: &past.exchanges,
            own: self.run.turns(),
            run: Place {
                from: self.first,
                told,
            },
        }
    }

    /// Makes the event of a cut; has the model sum up what is left out, if the agent wants that.
    pub(super) fn cut(
        &self,
        cut: Cut,
        past: &Past,
        progress: Arc<RequestProgress>,
    ) -> BoxFuture<'static, Done> {
        let agent = self.run.agent();
        let mut event = Box::new(ContextCut {
            agent: agent.name.clone(),
            from: cut.place.from,
            told: cut.place.told,
            result_bytes: Some(cut.result_bytes),
            summary: past.summary.clone(),
            usage: None,
        });
        if agent.context.compact == Compact::Drop || cut.left_out == 0 {
            return std::future::ready(Done::Cut(event)).boxed();
        }
        let max = self.tokens_max().unwrap_or(u64::MAX);
        let left_out = &past.exchanges[..cut.left_out];
        let ask = summary::ask(agent, past.summary.as_deref(), left_out, max);
        let (inner, share) = (self.inner.clone(), self.share());
        async move {
            let turn = inner.model_calls.turn(share, 0).await;
            let _turn = turn.expect("as many may wait as there are runs in memory");
            progress.begin(&ask);
            match summary::write(&*inner.model, &ask).await {
                Ok((summary, usage)) => {
                    // A reply without words sums up nothing.
                    if !summary.is_empty() {
                        event.summary = Some(summary);
                    }
                    event.usage = Some(usage);
                }
                // The conversation goes on without it: the last summary, if there is one, stays.
                Err(error) => {
                    tracing::warn!(%error, "what a model is no longer given could not be summed up")
                }
            }
            Done::Cut(event)
        }
        .boxed()
    }

    /// The date of the step, for the model: it changes once a day, so requests of a day share their beginning.
    pub(super) fn today(&self) -> Arc<str> {
        let state = self.run.state();
        let zone = state.time_zone();
        let zone = zone.or(self.run.agent().context.time_zone.as_deref());
        today(state.step_began(), zone).into()
    }
}
