//! Outputs of earlier runs, for prerequisites that count in the space: in a chat every turn is a run of its own.

use std::collections::HashMap;

use toolgate_kernel::event::Event;
use toolgate_kernel::id::RunId;
use toolgate_kernel::run::{EarlierOutput, ReplyPart};
use toolgate_kernel::time::Time;
use toolgate_kernel::tool::Scope;

use super::effects::Person;
use super::patient;
use crate::Inner;
use crate::store::{LogRange, Pages, StoreError};

/// Newest log entries of a space in which outputs are looked for; what is older counts as never given.
const ENTRIES_MAX: usize = 2_000;

impl Person {
    /// The newest output of each tool that the reply's calls wait for. Only runs of the same agent count, and only what
    /// was done for the same person: another member's identity check is not this one's.
    pub(super) async fn earlier_outputs(
        &self,
        inner: &Inner,
        parts: &[ReplyPart],
        now: Time,
    ) -> Result<Vec<EarlierOutput>, StoreError> {
        let mut wanted = self.wanted(parts, now);
        let mut found = Vec::new();
        if self.speaker.is_none() {
            // What was done for nobody who is known was not done for whoever asks now.
            return Ok(Vec::new());
        }
        // Outputs whose step, and then whose speaker is not read yet: the message that a step answers stands before it,
        // and another one may stand between the step and the output.
        let mut of_step: HashMap<RunId, Vec<EarlierOutput>> = HashMap::new();
        let mut open: HashMap<RunId, Vec<EarlierOutput>> = HashMap::new();
        let mut pages = Pages::of_space(self.space, LogRange::newest());
        let mut read = 0;
        while !wanted.is_empty() && read < ENTRIES_MAX {
            let Some(page) = pages.next(&*inner.store).await? else {
                break;
            };
            read += page.entries.len();
            for entry in &page.entries {
                let Some(run) = entry.run.filter(|run| *run != self.run) else {
                    continue;
                };
                for event in entry.events.iter().rev() {
                    match event {
                        Event::ToolOutputAvailable(e) => {
                            let since = wanted.get(e.tool_name.as_ref());
                            if since.is_some_and(|since| entry.time >= *since) {
                                let tool = e
                                    .tool_name
                                    .parse()
                                    .expect("a tool that gave an output has a name");
                                let output = EarlierOutput {
                                    tool,
                                    time: entry.time,
                                };
                                of_step.entry(run).or_default().push(output);
                            }
                        }
                        Event::StepStart(_) => {
                            let outputs = of_step.remove(&run).unwrap_or_default();
                            open.entry(run).or_default().extend(outputs);
                        }
                        Event::Said(_) | Event::CallRequest(_) => {
                            let from = match event {
                                Event::Said(e) => e.message.from,
                                Event::CallRequest(e) => e.from,
                                _ => None,
                            };
                            let outputs = open.remove(&run).unwrap_or_default();
                            if !outputs.is_empty()
                                && from == self.speaker
                                && self.is_same_agent(inner, run).await?
                            {
                                for output in outputs {
                                    wanted.remove(output.tool.as_str());
                                    found.push(output);
                                }
                            }
                        }
                        _ => {}
                    }
                }
            }
            let oldest = page.entries.last().map(|entry| entry.time);
            // Older entries are too old for all that is still looked for.
            if let (Some(oldest), Some(since)) = (oldest, wanted.values().min())
                && oldest < *since
                && of_step.values().chain(open.values()).all(Vec::is_empty)
            {
                break;
            }
        }
        Ok(found)
    }

    /// Tools whose outputs count in the space, each with the earliest time that counts.
    fn wanted(&self, parts: &[ReplyPart], now: Time) -> HashMap<String, Time> {
        let mut wanted: HashMap<String, Time> = HashMap::new();
        for part in parts {
            let ReplyPart::Call { name, .. } = part else {
                continue;
            };
            let tool = self.toolbox.get(name.as_ref());
            for needed in tool.iter().flat_map(|tool| &tool.prerequisites) {
                let Scope::Space { within } = needed.scope else {
                    continue;
                };
                let since = within.map_or(Time(i64::MIN), |span| {
                    Time(now.0.saturating_sub(span.as_millis() as i64))
                });
                let known = wanted.entry(needed.tool.to_string()).or_insert(since);
                *known = since.min(*known);
            }
        }
        wanted
    }

    async fn is_same_agent(&self, inner: &Inner, run: RunId) -> Result<bool, StoreError> {
        let record = patient(|| inner.store.run(run)).await?;
        Ok(record.is_some_and(|record| record.agent == self.agent))
    }
}
