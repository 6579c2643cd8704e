//! What a database holds of runs and their logs, read without anything of the product: the rows by SQL, their events as plain
//! JSON. What must hold for the log of any load is checked here; what clients were told, in `ledger.rs`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use rusqlite::{Connection, OpenFlags};
use serde_json::Value;
use toolgate_testkit::postgres_server::PostgresServer;

use super::Event;

/// Distance between two places of a log.
const STRIDE: u64 = 1_000_000;
/// Digits of an id.
const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
/// Digits of 128 bits.
const ID_DIGITS: u32 = 26;

/// Rows as JSON arrays: the same columns from either database, ids as 32 hexadecimal digits.
const POSTGRES_RUNS: &str = "SELECT json_build_array(replace(id::text, '-', ''), replace(space::text, '-', ''),
    status, version, replace(root::text, '-', ''), replace(parent_run::text, '-', ''), parent_call) FROM runs";
const POSTGRES_LOG: &str = "SELECT json_build_array(replace(space::text, '-', ''), first, last,
    replace(run::text, '-', ''), to_char(to_timestamp(time / 1000.0) AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.MS\"Z\"'),
    events) FROM log ORDER BY space, first";
const SQLITE_RUNS: &str = "SELECT json_array(hex(id), hex(space), status, version, hex(root),
    nullif(hex(parent_run), ''), parent_call) FROM runs";
const SQLITE_LOG: &str = "SELECT json_array(hex(space), first, last, nullif(hex(run), ''),
    strftime('%Y-%m-%dT%H:%M:%fZ', time / 1000.0, 'unixepoch'), events) FROM log ORDER BY space, first";

/// Everything that a database has of runs.
#[derive(Default)]
pub struct Stored {
    pub runs: BTreeMap<String, StoredRun>,
    /// In the order of their spaces and places.
    pub events: Vec<StoredEvent>,
    /// Where the events of each run are in `events`.
    logs: BTreeMap<String, Vec<usize>>,
    /// The runs that each call has started.
    children: BTreeMap<String, Vec<String>>,
}

/// The row of a run.
pub struct StoredRun {
    pub space: String,
    pub status: String,
    /// Place of its last event.
    version: u64,
    root: String,
    /// The call that started it.
    pub parent: Option<String>,
}

/// An event where it is stored.
pub struct StoredEvent {
    pub space: String,
    pub run: Option<String>,
    time: String,
    pub event: Event,
}

impl Stored {
    /// What a database of a PostgreSQL server has.
    pub fn in_postgres(server: &PostgresServer, database: &str) -> Self {
        let rows = |sql| server.execute(database, sql);
        Self::parse(rows(POSTGRES_RUNS).lines(), rows(POSTGRES_LOG).lines())
    }

    /// What an SQLite database has, also while a gateway uses it.
    pub fn in_sqlite(database: &Path) -> Self {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY;
        let connection = Connection::open_with_flags(database, flags).expect("a database");
        let rows = |sql| -> rusqlite::Result<Vec<String>> {
            let mut statement = connection.prepare(sql)?;
            statement.query_map([], |row| row.get(0))?.collect()
        };
        let [runs, log] = [SQLITE_RUNS, SQLITE_LOG].map(|sql| rows(sql).expect("rows"));
        Self::parse(runs.iter().map(String::as_str), log.iter().map(String::as_str))
    }

    fn parse<'r>(runs: impl Iterator<Item = &'r str>, log: impl Iterator<Item = &'r str>) -> Self {
        let row = |line| serde_json::from_str::<Vec<Value>>(line).expect("a row");
        let mut stored = Self {
            runs: runs.map(row).map(|row| run(&row)).collect(),
            ..Self::default()
        };
        for row in log.map(row) {
            stored.take_entry(&row);
        }
        for (id, run) in &stored.runs {
            if let Some(call) = &run.parent {
                stored.children.entry(call.clone()).or_default().push(id.clone());
            }
        }
        stored.check();
        stored
    }

    /// Events that were stored together.
    fn take_entry(&mut self, row: &[Value]) {
        let (space, [first, last]) = (id("space_", &row[0]), [1, 2].map(|at| number(&row[at])));
        let events: Vec<Value> = serde_json::from_str(text(&row[5])).expect("events");
        let before = self.events.last().filter(|before| before.space == space);
        let before = before.map_or(0, |before| before.event.seq);
        let places = [before + STRIDE, before + events.len() as u64 * STRIDE];
        assert_eq!(
            [first, last],
            places,
            "places of {space} are missing, or used twice"
        );
        for (place, data) in (first..).step_by(STRIDE as usize).zip(events) {
            let kind = text(&data["type"]).to_owned();
            let run = (!row[3].is_null()).then(|| id("run_", &row[3]));
            if let Some(run) = &run {
                self.logs.entry(run.clone()).or_default().push(self.events.len());
            }
            self.events.push(StoredEvent {
                space: space.clone(),
                run,
                time: text(&row[4]).to_owned(),
                event: Event {
                    seq: place,
                    kind,
                    data,
                },
            });
        }
    }

    /// The log of a run.
    pub fn log(&self, run: &str) -> Vec<&StoredEvent> {
        let places = self.logs.get(run).into_iter().flatten();
        places.map(|place| &self.events[*place]).collect()
    }

    /// All events of a kind, wherever they are.
    pub fn of_kind(&self, kind: &str) -> impl Iterator<Item = &StoredEvent> {
        self.events.iter().filter(move |stored| stored.event.kind == kind)
    }

    /// Runs that a call has started.
    pub fn started_by(&self, call: &str) -> &[String] {
        self.children.get(call).map_or(&[], Vec::as_slice)
    }

    /// What holds for every log, whatever was asked for.
    fn check(&self) {
        assert!(
            self.logs.keys().eq(self.runs.keys()),
            "runs that have a log, and those that have a row"
        );
        for (name, run) in &self.runs {
            check_run(name, run, &self.log(name));
        }
        let mut due = BTreeSet::new();
        for stored in self.of_kind("message") {
            let origin = &stored.event.data["message"]["origin"];
            let moment = (origin["planId"].to_string(), origin["dueAt"].to_string());
            let is_new = origin.is_null() || due.insert(moment);
            assert!(is_new, "a plan was started twice for one moment: {origin}");
        }
        for (call, children) in &self.children {
            let [child] = children.as_slice() else {
                panic!("{call} has started two runs: {children:?}");
            };
            self.check_child(child, call);
        }
    }

    /// What a call came to is how the run ended that it has started.
    fn check_child(&self, child: &str, call: &str) {
        let parent = call.replacen("call_", "run_", 1);
        let parent = self.log(parent.rsplit_once('_').expect("a call has a number").0);
        let of_call: Vec<&Event> = parent
            .iter()
            .map(|stored| &stored.event)
            .filter(|event| event.kind != "child-call" && event.data["toolCallId"] == call)
            .collect();
        let named: BTreeSet<&str> = of_call
            .iter()
            .filter_map(|event| event.data["child"].as_str())
            .collect();
        assert!(
            named.iter().eq([&child]),
            "{call} has started {child}, its log says {named:?}"
        );
        let own = self.log(child);
        let status = &own.last().expect("not empty").event.data["status"];
        let output = of_call.iter().find(|event| event.kind == "tool-output-available");
        let output = output.map(|event| &event.data["output"]);
        let is_known = of_call.iter().any(|event| event.kind.starts_with("tool-output"));
        match status.as_str() {
            Some("completed") if is_known => {
                assert_eq!(
                    output,
                    Some(&answer(&own).into()),
                    "{call}, and how {child} ended"
                )
            }
            _ => assert_eq!(
                output, None,
                "{call} has an output, and {child} has not completed"
            ),
        }
    }
}

fn check_run(name: &str, run: &StoredRun, log: &[&StoredEvent]) {
    let count = |kind: &str| log.iter().filter(|stored| stored.event.kind == kind).count();
    let ended = ["completed", "failed", "cancelled"].contains(&run.status.as_str());
    assert_eq!(
        (count("run-start"), count("run-finish")),
        (1, usize::from(ended)),
        "{name} must begin and end once"
    );
    let last = &log.last().expect("not empty").event;
    assert_eq!(run.version, last.seq, "the row of {name} and its log");
    assert!(
        log.iter().all(|stored| stored.space == run.space),
        "{name} is in two spaces"
    );
    if ended {
        assert_eq!(last.kind, "run-finish", "{name} goes on after its end");
        assert_eq!(last.text("status"), run.status, "the row of {name} and its log");
    }
    let calls_of = |kind: &str| {
        let of_kind = log.iter().filter(|stored| stored.event.kind == kind);
        of_kind.map(|stored| stored.event.call()).collect::<Vec<_>>()
    };
    let announced = calls_of("tool-input-available");
    let kinds = ["tool-output-available", "tool-output-error", "tool-output-denied"];
    let settled = kinds.map(calls_of).concat();
    for calls in [&announced, &settled] {
        let distinct: BTreeSet<&&str> = calls.iter().collect();
        assert_eq!(
            distinct.len(),
            calls.len(),
            "{name} called or settled twice: {calls:?}"
        );
    }
    for call in &announced {
        let is_open = !settled.contains(call);
        assert!(
            !(ended && is_open),
            "{call} never settled, though {name} has ended"
        );
    }
    assert!(
        settled.iter().all(|call| announced.contains(call)),
        "{name} settled what nobody called: {settled:?}"
    );
}

/// What a run said in its last step.
fn answer(log: &[&StoredEvent]) -> String {
    let step = log.iter().rposition(|stored| stored.event.kind == "step-start");
    let said = log[step.expect("a step")..].iter().map(|stored| &stored.event);
    let said = said.filter(|event| event.kind == "text-end");
    said.map(|event| event.text("text")).collect()
}

impl StoredEvent {
    /// The event as a client with the secret key reads it.
    pub fn shown(&self) -> Value {
        let mut shown = self.event.data.clone();
        if self.event.kind == "child-call" {
            // It reads as a call of the run at the top, with two members more.
            let (agent, child) = (shown["agent"].take(), shown["childRunId"].take());
            shown = shown["event"].take();
            shown["agent"] = agent;
            shown["childRunId"] = child;
        }
        shown["seq"] = self.event.seq.into();
        shown["spaceId"] = self.space.as_str().into();
        shown["time"] = self.time.as_str().into();
        if let Some(run) = &self.run {
            shown["runId"] = run.as_str().into();
        }
        shown
    }
}

fn run(row: &[Value]) -> (String, StoredRun) {
    let parent = (!row[5].is_null()).then(|| format!("{}_{}", id("call_", &row[5]), number(&row[6])));
    let run = StoredRun {
        space: id("space_", &row[1]),
        status: text(&row[2]).to_owned(),
        version: number(&row[3]),
        root: id("run_", &row[4]),
        parent,
    };
    let id = id("run_", &row[0]);
    assert!(
        run.parent.is_some() || run.root == id,
        "{id} has no parent and is not the root"
    );
    (id, run)
}

/// An id as clients know it.
fn id(prefix: &str, hexadecimal: &Value) -> String {
    let bits = u128::from_str_radix(text(hexadecimal), 16).expect("an id");
    let digits = (0..ID_DIGITS)
        .rev()
        .map(|digit| bits.unbounded_shr(digit * 5) as usize & 31);
    let digits: String = digits.map(|digit| char::from(ALPHABET[digit])).collect();
    format!("{prefix}{digits}")
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("no text: {value}"))
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("no number: {value}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// A run that has asked another one, which a plan has started; each in a space of its own.
    fn healthy() -> Vec<(u32, Vec<Value>)> {
        let call = format!("call_{}1_0", "0".repeat(25));
        let child = format!("run_{}2", "0".repeat(25));
        let origin = json!({"type": "plan", "planId": "p", "dueAt": "noon"});
        vec![
            (
                1,
                vec![
                    json!({"type": "run-start"}),
                    json!({"type": "message", "message": {"origin": origin}}),
                ],
            ),
            (
                1,
                vec![json!({"type": "tool-input-available", "toolCallId": call})],
            ),
            (
                1,
                vec![json!({"type": "tool-executing", "toolCallId": call, "child": child})],
            ),
            (
                1,
                vec![json!({"type": "tool-output-available", "toolCallId": call, "output": "yes"})],
            ),
            (1, vec![json!({"type": "run-finish", "status": "completed"})]),
            (
                2,
                vec![
                    json!({"type": "run-start"}),
                    json!({"type": "message", "message": {}}),
                ],
            ),
            (
                2,
                vec![
                    json!({"type": "step-start"}),
                    json!({"type": "text-end", "text": "yes"}),
                ],
            ),
            (2, vec![json!({"type": "run-finish", "status": "completed"})]),
        ]
    }

    /// Reads these entries, with so many runs that the call has started.
    fn read(entries: &[(u32, Vec<Value>)], children: u32) -> Stored {
        let mut ends = BTreeMap::new();
        let log: Vec<String> = entries
            .iter()
            .map(|(run, events)| {
                let id = format!("{run:032x}");
                let last = ends.entry(*run).or_insert(0);
                let first = *last + STRIDE;
                *last += events.len() as u64 * STRIDE;
                json!([id, first, last, id, "now", json!(events).to_string()]).to_string()
            })
            .collect();
        let runs: Vec<String> = (1..=1 + children)
            .map(|run| {
                let (id, root) = (format!("{run:032x}"), format!("{:032x}", 1));
                let end = ends.get(&run).copied().unwrap_or_default();
                let parent = (run > 1).then(|| (root.clone(), 0)).unzip();
                json!([id, id, "completed", end, root, parent.0, parent.1]).to_string()
            })
            .collect();
        Stored::parse(runs.iter().map(String::as_str), log.iter().map(String::as_str))
    }

    /// Whether a log is refused that differs from a healthy one in this.
    fn is_refused(change: impl Fn(&mut Vec<(u32, Vec<Value>)>)) -> bool {
        let mut entries = healthy();
        change(&mut entries);
        std::panic::catch_unwind(|| read(&entries, 1)).is_err()
    }

    #[test]
    fn a_healthy_log_is_read() {
        let stored = read(&healthy(), 1);
        assert_eq!(stored.runs.len(), 2);
        assert_eq!(
            stored.started_by("call_00000000000000000000000001_0"),
            ["run_00000000000000000000000002"]
        );
    }

    #[test]
    fn what_happened_twice_or_not_at_all_is_refused() {
        let twice = |at: usize| {
            move |entries: &mut Vec<(u32, Vec<Value>)>| {
                let again = entries[at].clone();
                entries.insert(at, again);
            }
        };
        // A start with its message, an announcement, an outcome, an end.
        for at in [0, 1, 3, 4] {
            assert!(is_refused(twice(at)), "{at} twice");
        }
        for at in [1, 2, 3, 4, 7] {
            assert!(is_refused(|entries| drop(entries.remove(at))), "{at} is missing");
        }
        assert!(
            is_refused(|entries| entries[3].1[0]["output"] = "no".into()),
            "another answer"
        );
        assert!(
            is_refused(|entries| entries[2].1[0]["child"] = "run_3".into()),
            "another child run"
        );
        assert!(
            is_refused(|entries| entries[4].1[0]["status"] = "failed".into()),
            "another end"
        );
        let planned_again = |entries: &mut Vec<(u32, Vec<Value>)>| entries[5].1[1] = entries[0].1[1].clone();
        assert!(is_refused(planned_again), "a plan has started two runs at once");
        let mut born_twice = healthy();
        let again = born_twice
            .iter()
            .filter(|(run, _)| *run == 2)
            .cloned()
            .collect::<Vec<_>>();
        born_twice.extend(again.into_iter().map(|(_, events)| (3, events)));
        assert!(
            std::panic::catch_unwind(|| read(&born_twice, 2)).is_err(),
            "two child runs"
        );
    }
}
