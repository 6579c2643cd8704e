//! What reads cost as a database grows: each is done on two sizes of one sample and may cost no more on the larger. PostgreSQL
//! tells the pages that a statement touches, SQLite the steps of its machine; neither depends on how fast a computer is.
//! `postgres::scale` and `sqlite::scale` have the reads.
//!
//! `cargo test --locked --workspace --lib ten_million -- --ignored --nocapture` measures on ten million events, with times.

use toolgate_engine::store::{AskingFilter, LookedAtMax, RecentFilter, RunFilter};
use toolgate_kernel::event::Status;
use toolgate_kernel::id::{EntityId, ProjectId, RunId, SpaceId};
use toolgate_kernel::time::Time;

/// Runs of sixteen events each that come at a constant rate, so what is larger is older and not busier. Three projects have 70, 25
/// and 5 % of the spaces; each user has five spaces, each space ten runs, and one of them one run in fifty. One run in 700 waits, one
/// in a hundred failed, one in twenty is a child. One run in seven is of the agent `agent_6` and one call of the tool `errand`, all of
/// its runs but twenty. There are twenty runs of the agent `rare` and five whose text has `needle`, however many there are of others.
pub(crate) struct Sample {
    pub(crate) runs: i64,
}

/// When the first run was created.
const BEGIN: i64 = 1_775_000_000_000;
/// Time between two runs.
const STEP: i64 = 25_000;

/// Small enough for every test run. A walk over what grows costs ten times as much on the larger one.
pub(crate) const SIZES: [Sample; 2] = [Sample { runs: 3_000 }, Sample { runs: 30_000 }];
/// 100,000 and 10,000,000 events.
pub(crate) const LARGE_SIZES: [Sample; 2] = [Sample { runs: 6_250 }, Sample { runs: 625_000 }];

impl Sample {
    /// The statements that fill an empty database.
    pub(crate) fn filled_in(&self, sql: &str) -> String {
        sql.replace("{runs}", &self.runs.to_string())
            .replace("{spaces}", &(self.runs / 10).to_string())
            .replace("{users}", &(self.runs / 50).to_string())
            .replace("{begin}", &BEGIN.to_string())
            .replace("{span}", &(self.runs * STEP).to_string())
    }

    pub(crate) fn now(&self) -> Time {
        Time(BEGIN + self.runs * STEP)
    }

    /// Some time in the first half.
    pub(crate) fn long_ago(&self) -> Time {
        Time(BEGIN + self.runs * STEP / 3)
    }

    pub(crate) fn run(&self, number: i64) -> RunId {
        RunId::from_bytes(id(3, BEGIN + number * STEP, number))
    }

    pub(crate) fn space(&self, number: i64) -> SpaceId {
        SpaceId::from_bytes(id(2, BEGIN + number * STEP * 10, number))
    }
}

/// An id as the statements make it.
fn id(kind: u8, at: i64, number: i64) -> [u8; 16] {
    let (at, number) = (at as u128, number as u128);
    ((at << 80) | (7 << 76) | (u128::from(kind) << 64) | (8 << 60) | number).to_be_bytes()
}

/// The large project.
pub(crate) fn project() -> ProjectId {
    ProjectId::from_bytes(id(1, 1, 1))
}

pub(crate) fn user(number: i64) -> EntityId {
    EntityId::from_bytes(id(4, BEGIN, number))
}

/// Every list of runs that the API offers, and how far each may look.
pub(crate) fn run_lists(sample: &Sample, looked_at_max: LookedAtMax) -> Vec<(&'static str, RunFilter)> {
    let all = || RunFilter {
        limit: 50,
        looked_at_max,
        ..RunFilter::default()
    };
    let statuses = |status| RunFilter {
        statuses: vec![status],
        ..all()
    };
    let text = |words: &str| RunFilter {
        text: Some(words.into()),
        ..all()
    };
    let name = |name: &str| Some(name.parse().expect("a name"));
    let agent = |of: &str| RunFilter {
        agent: Some(of.parse().expect("a name")),
        ..all()
    };
    let hours_ago = Some(Time(sample.now().0 - 6 * 3_600_000));
    vec![
        ("runs", all()),
        (
            "runs, a later page",
            RunFilter {
                before: Some(sample.run(sample.runs / 3)),
                ..all()
            },
        ),
        ("runs at the top", RunFilter { top: true, ..all() }),
        (
            "runs of a space",
            RunFilter {
                space: Some(sample.space(2)),
                ..all()
            },
        ),
        (
            "runs of a large space",
            RunFilter {
                space: Some(sample.space(1)),
                ..all()
            },
        ),
        (
            "open runs of a large space",
            RunFilter {
                space: Some(sample.space(1)),
                ..statuses(Status::Running)
            },
        ),
        (
            "children of a run",
            RunFilter {
                parent: Some(sample.run(4)),
                ..all()
            },
        ),
        (
            "runs below a run",
            RunFilter {
                root: Some(sample.run(4)),
                ..all()
            },
        ),
        ("runs of an agent", agent("agent_1")),
        ("runs of a rare agent", agent("rare")),
        (
            "failed runs of a rare agent",
            RunFilter {
                statuses: vec![Status::Failed],
                ..agent("rare")
            },
        ),
        (
            "runs of a user",
            RunFilter {
                user: Some(user(5)),
                ..all()
            },
        ),
        (
            "runs of a tool",
            RunFilter {
                tool: name("lookup"),
                ..all()
            },
        ),
        (
            "runs of a tool that many have",
            RunFilter {
                tool: name("errand"),
                ..all()
            },
        ),
        (
            "runs of a tool that is not there",
            RunFilter {
                tool: name("nothing"),
                ..all()
            },
        ),
        ("completed runs", statuses(Status::Completed)),
        ("failed runs", statuses(Status::Failed)),
        ("waiting runs", statuses(Status::WaitingTool)),
        ("queued runs, of which there are none", statuses(Status::Queued)),
        (
            "runs that have not ended",
            RunFilter {
                statuses: Status::OPEN.to_vec(),
                ..all()
            },
        ),
        (
            "runs since a few hours",
            RunFilter {
                since: hours_ago,
                ..all()
            },
        ),
        (
            "runs since long ago",
            RunFilter {
                since: Some(sample.long_ago()),
                ..all()
            },
        ),
        (
            "runs until long ago",
            RunFilter {
                until: Some(sample.long_ago()),
                ..all()
            },
        ),
        (
            "runs of a rare agent since a few hours",
            RunFilter {
                since: hours_ago,
                ..agent("rare")
            },
        ),
        ("runs with a text that many have", text("order")),
        ("runs with a text that few have", text("needle")),
        ("runs with a text that none has", text("nothing")),
        (
            "runs of an agent with a text that none has",
            RunFilter {
                text: Some("nothing".into()),
                ..agent("agent_1")
            },
        ),
    ]
}

/// The agent whose runs are almost all one call of a tool.
const ERRANDS: &str = "agent_6";

/// What A2A clients list: runs in the order of their changes. Not flat are those of an agent that failed: they are found among all
/// runs of the project that failed, and sorted.
pub(crate) fn recent_lists(sample: &Sample) -> Vec<(&'static str, RecentFilter)> {
    let all = |agent: &str| RecentFilter {
        agent: Some(agent.parse().expect("a name")),
        limit: 50,
        ..RecentFilter::default()
    };
    let statuses = |statuses: &[Status]| RecentFilter {
        statuses: statuses.to_vec(),
        ..all("agent_1")
    };
    let before = Some((sample.long_ago(), sample.run(sample.runs / 3)));
    vec![
        ("tasks of an agent", all("agent_1")),
        (
            "tasks of an agent, a later page",
            RecentFilter {
                before,
                ..all("agent_1")
            },
        ),
        ("tasks of a rare agent", all("rare")),
        ("tasks of an agent that mostly calls single tools", all(ERRANDS)),
        (
            "tasks of a user",
            RecentFilter {
                member: Some(user(5)),
                ..all("agent_1")
            },
        ),
        (
            "tasks of a space",
            RecentFilter {
                space: Some(sample.space(2)),
                ..all("agent_1")
            },
        ),
        ("completed tasks", statuses(&[Status::Completed])),
        ("working tasks", statuses(&[Status::Running, Status::WaitingTime])),
        (
            "tasks that need input",
            statuses(&[Status::WaitingTool, Status::WaitingApproval]),
        ),
    ]
}

/// Lists of which clients are told how many tasks there are, too: where those are few. Others are counted one by one, up to
/// `RECENT_COUNT_MAX`.
pub(crate) fn recent_counts() -> Vec<(&'static str, RecentFilter)> {
    let of = |agent: &str| RecentFilter {
        agent: Some(agent.parse().expect("a name")),
        ..RecentFilter::default()
    };
    vec![
        ("number of tasks of a rare agent", of("rare")),
        (
            "number of tasks of an agent that mostly calls single tools",
            of(ERRANDS),
        ),
    ]
}

pub(crate) fn asking_lists(sample: &Sample) -> Vec<(&'static str, AskingFilter)> {
    let all = || AskingFilter {
        limit: 50,
        looked_at_max: LookedAtMax(100),
        ..AskingFilter::default()
    };
    vec![
        ("approvals", all()),
        (
            "approvals of a user",
            AskingFilter {
                member: Some(user(5)),
                ..all()
            },
        ),
        (
            "approvals of a space",
            AskingFilter {
                space: Some(sample.space(2)),
                ..all()
            },
        ),
    ]
}

/// A read, what it cost, and the milliseconds that it took.
pub(crate) type Read = (String, u64, f64);

/// What one read cost, on each size.
pub(crate) struct Cost {
    name: String,
    costs: Vec<u64>,
    /// Milliseconds.
    times: Vec<f64>,
}

/// Costs of the same reads on each size.
pub(crate) fn side_by_side(sizes: Vec<Vec<Read>>) -> Vec<Cost> {
    let of = |place: usize| Cost {
        name: sizes[0][place].0.clone(),
        costs: sizes.iter().map(|reads| reads[place].1).collect(),
        times: sizes.iter().map(|reads| reads[place].2).collect(),
    };
    (0..sizes[0].len()).map(of).collect()
}

/// Those that cost more on the larger sample than twice what they cost on the smaller, and `more`.
pub(crate) fn grown(costs: &[Cost], more: u64) -> Vec<String> {
    let grown = costs
        .iter()
        .filter(|cost| cost.costs[1] > cost.costs[0] * 2 + more);
    grown
        .map(|cost| format!("{}: {:?}", cost.name, cost.costs))
        .collect()
}

pub(crate) fn table(costs: &[Cost], unit: &str) -> String {
    let mut table = format!(
        "| read | {unit}, 100,000 events | {unit}, 10,000,000 | ms, 100,000 | ms, 10,000,000 |\n| --- | --- | --- | --- | --- |\n"
    );
    for Cost { name, costs, times } in costs {
        table += &format!(
            "| {name} | {} | {} | {:.1} | {:.1} |\n",
            costs[0], costs[1], times[0], times[1]
        );
    }
    table
}
