//! CPU time, memory and files of processes, from the kernel's own accounts.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use nix::time::ClockId;
use nix::unistd::Pid;

/// A process and everything below it.
pub fn tree(root: u32) -> Vec<u32> {
    let mut found = vec![root];
    let mut next = 0;
    while let Some(&parent) = found.get(next) {
        next += 1;
        let tasks = fs::read_dir(format!("/proc/{parent}/task"))
            .into_iter()
            .flatten()
            .flatten();
        for task in tasks {
            let children = fs::read_to_string(task.path().join("children")).unwrap_or_default();
            found.extend(
                children
                    .split_whitespace()
                    .filter_map(|pid| pid.parse::<u32>().ok()),
            );
        }
    }
    found
}

/// CPU seconds of the processes so far, to the nanosecond, ended threads included.
pub fn cpu(pids: &[u32]) -> f64 {
    let one = |&pid: &u32| {
        let clock = ClockId::pid_cpu_clock_id(Pid::from_raw(pid as i32)).ok()?;
        let time = clock.now().ok()?;
        Some(time.tv_sec() as f64 + time.tv_nsec() as f64 / 1e9)
    };
    pids.iter().filter_map(one).sum()
}

/// Resident memory of the processes in MiB.
pub fn memory(pids: &[u32]) -> f64 {
    status(pids, "VmRSS:")
}

/// Most resident memory that each of the processes has ever had, together, in MiB.
pub fn peak(pids: &[u32]) -> f64 {
    status(pids, "VmHWM:")
}

/// MiB that the files in a folder take, those below it included.
pub fn disk(folder: &Path) -> anyhow::Result<f64> {
    /// What a file system counts blocks in, whatever its own are.
    const BLOCK_BYTES: f64 = 512.0;
    let mut mib = 0.0;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let metadata = entry.metadata()?;
        mib += metadata.blocks() as f64 * BLOCK_BYTES / (1 << 20) as f64;
        if metadata.is_dir() {
            mib += disk(&entry.path())?;
        }
    }
    Ok(mib)
}

fn status(pids: &[u32], name: &str) -> f64 {
    let one = |&pid: &u32| {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
        let line = status.lines().find(|line| line.starts_with(name))?;
        line.split_whitespace().nth(1)?.parse::<f64>().ok()
    };
    pids.iter().filter_map(one).sum::<f64>() / 1024.0
}

/// CPU seconds that the whole machine has worked so far.
pub fn machine() -> f64 {
    const TICKS_PER_SECOND: f64 = 100.0;
    /// user nice system idle iowait irq softirq steal: all but the fourth and fifth are work.
    const RESTING: [usize; 2] = [3, 4];
    let stat = fs::read_to_string("/proc/stat").unwrap_or_default();
    let fields = stat
        .lines()
        .next()
        .unwrap_or_default()
        .split_whitespace()
        .skip(1)
        .take(8);
    fields
        .enumerate()
        .filter(|(at, _)| !RESTING.contains(at))
        .filter_map(|(_, ticks)| ticks.parse::<f64>().ok())
        .sum::<f64>()
        / TICKS_PER_SECOND
}
