//! Outputs of earlier runs, for prerequisites that count in the space: in a chat every turn is a run of its own.

use std::collections::HashMap;

use toolgate_kernel::event::Event;
use toolgate_kernel::id::RunId;
use toolgate_kernel::run::{EarlierOutput, ReplyPart};
use toolgate_kernel::time::Time;
use toolgate_kernel::tool::{Placement, Scope};

use super::effects::Person;
use super::patient;
use crate::Inner;
use crate::store::{LogRange, Pages, StoreError};

/// Newest log entries of a space in which outputs are looked for; what is older counts as never given.
const ENTRIES_MAX: usize = 2_000;

/// Tools that are looked for, by name: where they run, and since when an output counts.
type Wanted = HashMap<String, (Placement, Time)>;

/// These outputs are found.
fn count(outputs: Vec<EarlierOutput>, wanted: &mut Wanted, found: &mut Vec<EarlierOutput>) {
    for output in outputs {
        wanted.remove(output.tool.as_str());
        found.push(output);
    }
}

impl Person {
    /// The newest output of each tool that the reply's calls wait for. Only runs of the same agent count, and only what
    /// was done for the same person: another member's identity check is not this one's. An output counts only if it came
    /// from where the tool runs now, and not from a tool that a request brought under its name.
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
        // Outputs of client tools, until the beginning of their run says whether the tool was brought with the request.
        let mut of_client: HashMap<RunId, Vec<EarlierOutput>> = HashMap::new();
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
                            let tool = wanted.get(e.tool_name.as_ref());
                            if tool.is_some_and(|(placement, since)| {
                                e.placement == *placement && entry.time >= *since
                            }) {
                                let tool = e
                                    .tool_name
                                    .parse()
                                    .expect("a tool that gave an output has a name");
                                let output = EarlierOutput {
                                    tool,
                                    placement: e.placement,
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
                                let (client, own) = outputs
                                    .into_iter()
                                    .partition(|output| output.placement == Placement::Client);
                                of_client.entry(run).or_default().extend::<Vec<_>>(client);
                                count(own, &mut wanted, &mut found);
                            }
                        }
                        Event::RunStart(e) => {
                            let mut outputs = of_client.remove(&run).unwrap_or_default();
                            outputs.retain(|output| {
                                !e.client_tools.iter().any(|brought| brought.name == output.tool)
                            });
                            count(outputs, &mut wanted, &mut found);
                        }
                        _ => {}
                    }
                }
            }
            let oldest = page.entries.last().map(|entry| entry.time);
            // Older entries are too old for all that is still looked for.
            let since = wanted.values().map(|(_, since)| *since).min();
            let mut pending = of_step.values().chain(open.values()).chain(of_client.values());
            if let (Some(oldest), Some(since)) = (oldest, since)
                && oldest < since
                && pending.all(Vec::is_empty)
            {
                break;
            }
        }
        Ok(found)
    }

    /// Tools whose outputs count in the space, each with where it runs and the earliest time that counts.
    fn wanted(&self, parts: &[ReplyPart], now: Time) -> Wanted {
        let mut wanted = Wanted::new();
        for part in parts {
            let ReplyPart::Call { name, .. } = part else {
                continue;
            };
            let tool = self.toolbox.get(name.as_ref());
            for needed in tool.iter().flat_map(|tool| &tool.prerequisites) {
                let Scope::Space { within } = needed.scope else {
                    continue;
                };
                // A tool that is not there any more meets nothing.
                let Some(tool) = self.toolbox.get(needed.tool.as_str()) else {
                    continue;
                };
                let since = within.map_or(Time(i64::MIN), |span| {
                    Time(now.0.saturating_sub(span.as_millis() as i64))
                });
                let new = (tool.placement(), since);
                let (_, known) = wanted.entry(needed.tool.to_string()).or_insert(new);
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
