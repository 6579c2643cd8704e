//! The findings as tables, ratios, and a verdict on each goal.

use std::time::Duration;

use crate::load::Measured;
use crate::plan::{CONCURRENCIES, Findings};
use crate::protocol::{SCENARIOS, Timing};
use crate::server::Kind;

pub fn render(findings: &Findings) -> String {
    [cells, memory, history, goals, faults]
        .map(|part| part(findings))
        .concat()
}

/// One cell over all passes: medians.
struct Summary {
    runs_per_second: f64,
    p50_ms: f64,
    p99_ms: f64,
    first_p50_ms: f64,
    cpu_ms: f64,
    memory_mib: f64,
    noise_cores: f64,
}

fn summary(findings: &Findings, server: Kind, scenario: &str, concurrency: usize) -> Option<Summary> {
    let cells: Vec<&Measured> = findings
        .cells
        .iter()
        .filter(|cell| cell.server == server && cell.scenario == scenario && cell.concurrency == concurrency)
        .filter(|cell| !cell.load.timings.is_empty())
        .collect();
    let over = |value: &dyn Fn(&Measured) -> f64| quantile(cells.iter().map(|cell| value(cell)), 0.5);
    let millis = |cell: &Measured, part: fn(&Timing) -> Duration, q| {
        quantile(
            cell.load
                .timings
                .iter()
                .map(|timing| part(timing).as_secs_f64() * 1e3),
            q,
        )
    };
    (!cells.is_empty()).then(|| Summary {
        runs_per_second: over(&|cell| cell.load.timings.len() as f64 / cell.load.seconds),
        p50_ms: over(&|cell| millis(cell, |timing| timing.whole, 0.5)),
        p99_ms: over(&|cell| millis(cell, |timing| timing.whole, 0.99)),
        first_p50_ms: over(&|cell| millis(cell, |timing| timing.first_token, 0.5)),
        cpu_ms: over(&|cell| cell.cpu_ms_per_run),
        memory_mib: cells.iter().map(|cell| cell.memory_mib).fold(0.0, f64::max),
        noise_cores: over(&|cell| cell.noise_cores),
    })
}

pub fn quantile(values: impl Iterator<Item = f64>, q: f64) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    let at = values.len().saturating_sub(1) as f64 * q;
    let (low, high) = (values[at.floor() as usize], values[at.ceil() as usize]);
    low + (high - low) * at.fract()
}

const COLUMNS: &str = "|at|server|runs/s|p50 ms|p99 ms|1st token ms|CPU ms/run|MiB|runs/s to AI SDK|CPU to AI SDK|CPU to relay|CPU to baseline|noise";

fn cells(findings: &Findings) -> String {
    let mut rows = vec![COLUMNS.split('|').map(String::from).collect()];
    for scenario in &SCENARIOS {
        for concurrency in CONCURRENCIES {
            let of = |server| summary(findings, server, scenario.name, concurrency);
            let (relay, aisdk, baseline) = (of(Kind::Relay), of(Kind::Aisdk), of(Kind::Baseline));
            let against = |value: f64, other: &Option<Summary>, field: fn(&Summary) -> f64| {
                other
                    .as_ref()
                    .map_or("-".into(), |other| format!("{}x", number(value / field(other))))
            };
            for server in [Kind::Gateway, Kind::Baseline, Kind::Relay, Kind::Aisdk] {
                let Some(cell) = of(server) else { continue };
                rows.push(vec![
                    scenario.name.into(),
                    concurrency.to_string(),
                    server.title().into(),
                    number(cell.runs_per_second),
                    number(cell.p50_ms),
                    number(cell.p99_ms),
                    number(cell.first_p50_ms),
                    number(cell.cpu_ms),
                    number(cell.memory_mib),
                    against(cell.runs_per_second, &aisdk, |other| other.runs_per_second),
                    against(cell.cpu_ms, &aisdk, |other| other.cpu_ms),
                    against(cell.cpu_ms, &relay, |other| other.cpu_ms),
                    against(cell.cpu_ms, &baseline, |other| other.cpu_ms),
                    format!("{:.1}", cell.noise_cores),
                ]);
            }
        }
    }
    let titles = SCENARIOS
        .iter()
        .map(|scenario| format!("\n{}: {}", scenario.name, scenario.title));
    titles.collect::<String>()
        + "\nMedians over the passes; noise: cores that others kept busy meanwhile.\n\n"
        + &table(&rows)
}

fn memory(findings: &Findings) -> String {
    let mut rows = vec![vec!["memory, MiB".into(), "idle".into(), "under load".into()]];
    for &(server, idle) in &findings.idle {
        let of_server = findings.cells.iter().filter(|cell| cell.server == server);
        let peak = of_server.map(|cell| cell.memory_mib).fold(idle, f64::max);
        rows.push(vec![server.title().into(), number(idle), number(peak)]);
    }
    let mut out = format!("\n{}", table(&rows));
    if let Some(paused) = &findings.paused {
        out += &paused.to_string();
    }
    if let Some(worst) = findings.worst {
        out += &format!(
            "gateway under the worst allowed requests: {} MiB at most\n",
            number(worst)
        );
    }
    out
}

fn history(findings: &Findings) -> String {
    if findings.history.is_empty() {
        return String::new();
    }
    let head = [
        "earlier messages",
        "gateway CPU ms/run",
        "with context.maxTokens",
        "to baseline",
    ];
    let mut rows = vec![head.map(String::from).to_vec()];
    for (at, &(messages, cpu)) in findings.history.iter().enumerate() {
        let baseline = findings.baseline_history.get(at);
        let ratio = baseline.map_or("-".into(), |(_, other)| format!("{}x", number(cpu / other)));
        let windowed = findings.windowed_history.get(at);
        let windowed = windowed.map_or("-".into(), |(_, cpu)| number(*cpu));
        rows.push(vec![messages.to_string(), number(cpu), windowed, ratio]);
    }
    format!("\n{}", table(&rows))
}

/// What the gateway is measured against, as far as it was measured.
fn goals(findings: &Findings) -> String {
    let mut out = String::from("\ngoals\n");
    let mut say = |goal: &str, seen: Vec<String>, reached: bool| {
        let verdict = if reached { "reached    " } else { "NOT REACHED" };
        out += &format!("  {verdict}  {goal}: {}\n", seen.join(", "));
    };
    let mut ratio = |goal: &str, pairs: Option<Vec<Pair>>, within: &dyn Fn(f64) -> bool| {
        let Some(pairs) = pairs else { return };
        let seen = pairs
            .iter()
            .map(|pair| format!("{} {}x", pair.scenario, number(pair.ours / pair.other)));
        say(
            goal,
            seen.collect(),
            pairs.iter().all(|pair| within(pair.ours / pair.other)),
        );
    };
    let cpu = |other| pairs(findings, other, 16, |cell| cell.cpu_ms);
    let rate = |concurrency| pairs(findings, Kind::Aisdk, concurrency, |cell| cell.runs_per_second);
    ratio(
        "CPU per run at 16 at most a tenth of the AI SDK's",
        cpu(Kind::Aisdk),
        &|ratio| ratio <= 0.1,
    );
    ratio(
        "CPU per run at 16 at most twice the relay's",
        cpu(Kind::Relay),
        &|ratio| ratio <= 2.0,
    );
    for concurrency in CONCURRENCIES {
        ratio(
            &format!("CPU per run at {concurrency} at most 3 % over the baseline's"),
            pairs(findings, Kind::Baseline, concurrency, |cell| cell.cpu_ms),
            &|ratio| ratio <= 1.03,
        );
    }
    ratio("runs/s at 16 at least 8 times the AI SDK's", rate(16), &|ratio| {
        ratio >= 8.0
    });
    ratio("runs/s at 64 at least 8 times the AI SDK's", rate(64), &|ratio| {
        ratio >= 8.0
    });
    if let Some(pairs) = pairs(findings, Kind::Relay, 1, |cell| cell.first_p50_ms) {
        let seen = pairs
            .iter()
            .map(|pair| format!("{} {:+.2} ms", pair.scenario, pair.ours - pair.other));
        let reached = pairs.iter().all(|pair| pair.ours - pair.other <= 1.0);
        say(
            "first token within 1 ms of the relay's, p50 at 1",
            seen.collect(),
            reached,
        );
    }
    if let Some(&(_, idle)) = findings.idle.iter().find(|(server, _)| *server == Kind::Gateway) {
        say(
            "idle memory under 30 MB",
            vec![format!("{} MiB", number(idle))],
            mb(idle) < 30.0,
        );
    }
    if let Some(paused) = &findings.paused {
        let more = paused.with - paused.before;
        let goal = format!("{} paused runs under 10 MB more", paused.count);
        say(&goal, vec![format!("{} MiB", number(more))], mb(more) < 10.0);
    }
    if let Some(worst) = findings.worst {
        say(
            "the worst allowed requests take less than 256 MiB",
            vec![format!("{} MiB", number(worst))],
            worst < 256.0,
        );
    }
    if findings.history.len() > 1 {
        // A fixed cost plus one in proportion can never grow faster than the history itself.
        let growth = |pair: &[(usize, f64)]| (pair[1].1 / pair[0].1, pair[1].0 as f64 / pair[0].0 as f64);
        let steps: Vec<(f64, f64)> = findings.history.windows(2).map(growth).collect();
        let seen = steps
            .iter()
            .map(|(cost, size)| format!("{}x for {size}x", number(*cost)));
        let reached = steps.iter().all(|(cost, size)| cost <= size);
        say(
            "CPU grows linearly with the conversation at worst",
            seen.collect(),
            reached,
        );
    }
    if let [.., (shorter, before), (longer, after)] = findings.windowed_history[..] {
        let goal = format!(
            "with a context window {longer} earlier messages cost no more than {shorter}, within a fifth"
        );
        say(
            &goal,
            vec![format!("{}x", number(after / before))],
            after <= before * 1.2,
        );
    }
    out
}

/// The gateway beside another server.
struct Pair {
    scenario: &'static str,
    ours: f64,
    other: f64,
}

/// One for every scenario; none when one of the two was not measured.
fn pairs(
    findings: &Findings,
    other: Kind,
    concurrency: usize,
    field: fn(&Summary) -> f64,
) -> Option<Vec<Pair>> {
    let value = |server, scenario| summary(findings, server, scenario, concurrency).map(|cell| field(&cell));
    let pair = |scenario| {
        Some(Pair {
            scenario,
            ours: value(Kind::Gateway, scenario)?,
            other: value(other, scenario)?,
        })
    };
    SCENARIOS.iter().map(|scenario| pair(scenario.name)).collect()
}

fn faults(findings: &Findings) -> String {
    let faults: Vec<String> = findings.faults().collect();
    if faults.is_empty() {
        return "\nevery run was verified: text, tool outputs, end\n".into();
    }
    format!(
        "\n{} RUNS WENT WRONG, the first of them:\n{}\n",
        faults.len(),
        faults[..faults.len().min(10)].join("\n")
    )
}

fn mb(mib: f64) -> f64 {
    mib * 1.048_576
}

/// Three significant digits.
pub fn number(value: f64) -> String {
    let digits = match value.abs() {
        v if v >= 100.0 => 0,
        v if v >= 10.0 => 1,
        v if v >= 1.0 => 2,
        _ => 3,
    };
    format!("{value:.digits$}")
}

/// Rows with a head, as Markdown.
pub fn table(rows: &[Vec<String>]) -> String {
    let widths: Vec<usize> = (0..rows[0].len())
        .map(|column| {
            rows.iter()
                .map(|row| row[column].chars().count())
                .max()
                .unwrap_or(0)
        })
        .collect();
    let mut out = String::new();
    for (at, row) in rows.iter().enumerate() {
        let cells: Vec<String> = row
            .iter()
            .zip(&widths)
            .map(|(cell, width)| format!("{cell:>width$}"))
            .collect();
        out += &format!("| {} |\n", cells.join(" | "));
        if at == 0 {
            let rules: Vec<String> = widths.iter().map(|width| "-".repeat(width + 1) + ":").collect();
            out += &format!("|{}|\n", rules.join("|"));
        }
    }
    out
}
