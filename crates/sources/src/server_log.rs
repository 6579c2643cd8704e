//! What the programs of servers wrote to their standard error last, kept in memory, also while a program is started again.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use toolgate_engine::clock::Clock;
use toolgate_kernel::id::ProjectId;
use toolgate_kernel::time::Time;
use toolgate_mcp::Log;

/// Most lines of one server that are kept. One more, and the oldest is forgotten.
const LINES_MAX: usize = 200;
/// Most bytes of the lines of one server.
const SERVER_BYTES_MAX: usize = 64 << 10;
/// Most bytes of the lines of all servers on one node. Beyond it the log of the server that was silent for longest is
/// emptied, so a project has at most [`SERVER_BYTES_MAX`] for each server that it may have.
const ALL_BYTES_MAX: usize = 32 << 20;
/// What a line takes besides its text.
const LINE_BYTES: usize = size_of::<LogLine>();

/// A line that the program of a server wrote to its standard error. Secrets are hidden in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogLine {
    /// When it was read.
    pub at: Time,
    /// The line without its end.
    pub text: String,
}

/// The logs of all servers, by project and server.
#[derive(Default)]
pub(crate) struct ServerLogs(Mutex<Kept>);

#[derive(Default)]
struct Kept {
    servers: HashMap<(ProjectId, String), Lines>,
    /// Of all lines together.
    bytes: usize,
}

#[derive(Default)]
struct Lines {
    lines: VecDeque<LogLine>,
    bytes: usize,
}

impl ServerLogs {
    /// Takes the lines of a program of this server, until the server is removed. Lines of earlier programs stay.
    pub fn writer(self: &Arc<Self>, clock: Arc<dyn Clock>, project: ProjectId, key: &str) -> Log {
        let place = (project, key.to_owned());
        self.lock().servers.entry(place.clone()).or_default();
        // Weak: a program that outlives the servers keeps nothing.
        let logs = Arc::downgrade(self);
        Arc::new(move |text: &str| {
            if let Some(logs) = logs.upgrade() {
                let line = LogLine {
                    at: clock.now(),
                    text: text.to_owned(),
                };
                logs.lock().push(&place, line, ALL_BYTES_MAX);
            }
        })
    }

    /// The last lines of a server, oldest first.
    pub fn lines(&self, project: ProjectId, key: &str) -> Vec<LogLine> {
        let kept = self.lock();
        let known = kept.servers.get(&(project, key.to_owned()));
        known
            .map(|known| known.lines.iter().cloned().collect())
            .unwrap_or_default()
    }

    /// Forgets servers that the project has no longer.
    pub fn retain(&self, project: ProjectId, has: impl Fn(&str) -> bool) {
        let mut kept = self.lock();
        kept.servers.retain(|(of, key), _| *of != project || has(key));
        kept.bytes = kept.servers.values().map(|known| known.bytes).sum();
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Kept {
    /// A line of a server that was removed meanwhile is dropped.
    fn push(&mut self, place: &(ProjectId, String), line: LogLine, bytes_max: usize) {
        let Some(known) = self.servers.get_mut(place) else {
            return;
        };
        self.bytes -= known.bytes;
        known.push(line);
        self.bytes += known.bytes;
        while self.bytes > bytes_max {
            let spoke = |known: &Lines| known.lines.back().map(|line| line.at);
            let others = self.servers.iter_mut().filter(|(other, _)| *other != place);
            let others = others.filter(|(_, known)| known.bytes > 0);
            let Some((_, silent)) = others.min_by_key(|(_, known)| spoke(known)) else {
                return;
            };
            self.bytes -= silent.bytes;
            *silent = Lines::default();
        }
    }
}

impl Lines {
    fn push(&mut self, line: LogLine) {
        self.bytes += LINE_BYTES + line.text.len();
        self.lines.push_back(line);
        while self.lines.len() > LINES_MAX || self.bytes > SERVER_BYTES_MAX {
            let Some(oldest) = self.lines.pop_front() else {
                return;
            };
            self.bytes -= LINE_BYTES + oldest.text.len();
        }
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    fn project(number: u128) -> ProjectId {
        ProjectId::new(Uuid::from_u128(number))
    }

    fn place(number: u128) -> (ProjectId, String) {
        (project(number), "fix".to_owned())
    }

    fn line(at: i64, text: &str) -> LogLine {
        LogLine {
            at: Time(at),
            text: text.to_owned(),
        }
    }

    fn kept(projects: u128) -> Kept {
        Kept {
            servers: (0..projects)
                .map(|number| (place(number), Lines::default()))
                .collect(),
            bytes: 0,
        }
    }

    #[test]
    fn the_last_lines_of_a_server_are_kept_within_their_number_and_bytes() {
        let mut lines = Lines::default();
        for at in 0..500 {
            lines.push(line(at, "short"));
        }
        assert_eq!(lines.lines.len(), LINES_MAX);
        assert_eq!(lines.lines.front(), Some(&line(300, "short")));
        for at in 500..600 {
            lines.push(line(at, &"x".repeat(1_000)));
        }
        assert!(lines.bytes <= SERVER_BYTES_MAX && lines.lines.len() > 50);
        assert_eq!(lines.lines.back().map(|line| line.at), Some(Time(599)));
        lines.push(line(600, &"x".repeat(SERVER_BYTES_MAX)));
        assert!(lines.lines.is_empty() && lines.bytes == 0);
    }

    #[test]
    fn when_all_logs_are_full_the_one_silent_for_longest_is_emptied() {
        let mut kept = kept(3);
        let full = 2 * LINE_BYTES + 20;
        for at in 0..2_u8 {
            kept.push(&place(at.into()), line(at.into(), "0123456789"), full);
        }
        kept.push(&place(2), line(2, "0123456789"), full);
        let sizes = [0, 1, 2].map(|number| kept.servers[&place(number)].lines.len());
        assert_eq!(sizes, [0, 1, 1]);
        assert_eq!(kept.bytes, full);
    }

    #[test]
    fn lines_of_a_server_that_was_removed_are_dropped() {
        let logs = ServerLogs(Mutex::new(kept(2)));
        for number in 0..2 {
            logs.lock().push(&place(number), line(0, "before"), ALL_BYTES_MAX);
        }
        logs.retain(project(0), |_| false);
        logs.lock().push(&place(0), line(1, "after"), ALL_BYTES_MAX);
        assert_eq!(logs.lines(project(0), "fix"), []);
        assert_eq!(logs.lines(project(1), "fix"), [line(0, "before")]);
        assert_eq!(logs.lock().bytes, LINE_BYTES + "before".len());
    }
}
