//! The keeper of a program that is not ours, such as an MCP server: a process of the same binary that starts the program
//! and does not end before everything that the program has started, however far from it.
//!
//! Descendants whose parent has ended become children of the keeper (Linux: "child subreaper"), so none gets away by
//! starting a session of its own. The keeper ends them all when the program ends, when it is told to (`SIGTERM`), and
//! when the gateway is gone, whichever way.

use std::ffi::OsString;
use std::io;
use std::process::{Command, ExitCode};
use std::thread;
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{
    Pid, Resource, Rlimit, Signal, WaitOptions, WaitStatus, getppid, kill_process, setrlimit, wait,
};
use tokio::signal::unix::{SignalKind, signal};

use crate::confined_files::ConfinedFiles;

/// Name of the hidden subcommand.
pub const KEEP_SERVER: &str = "keep-server";

/// How often the keeper looks whether the gateway is still there.
const LOOK: Duration = Duration::from_millis(500);

/// What each process of the program may use; as much as it likes where nothing is said.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KeptLimits {
    /// Address space, in bytes.
    pub memory_bytes: Option<u64>,
    /// CPU time, in seconds.
    pub cpu_seconds: Option<u64>,
    /// Open files.
    pub files: Option<u64>,
    /// Files that it may reach; what the gateway's user may if nothing is said.
    pub confined: Option<ConfinedFiles>,
}

impl KeptLimits {
    /// As arguments of the subcommand.
    pub fn arguments(&self) -> Vec<OsString> {
        let one = |flag: &str, most: Option<u64>| most.map(|most| format!("{flag}={most}").into());
        let all = [
            one("--memory-bytes", self.memory_bytes),
            one("--cpu-seconds", self.cpu_seconds),
            one("--files", self.files),
        ];
        let confined = self.confined.iter().flat_map(ConfinedFiles::arguments);
        all.into_iter().flatten().chain(confined).collect()
    }

    fn set(&self) -> io::Result<()> {
        let limits = [
            (Resource::As, self.memory_bytes),
            (Resource::Cpu, self.cpu_seconds),
            (Resource::Nofile, self.files),
        ];
        for (resource, most) in limits {
            if most.is_some() {
                let (current, maximum) = (most, most);
                setrlimit(resource, Rlimit { current, maximum })?;
            }
        }
        match &self.confined {
            Some(files) => files.set(),
            None => Ok(()),
        }
    }
}

/// Runs a program on this process's standard streams; gives its exit code once it and all that it has started have ended.
pub fn keep(program: &OsString, arguments: &[OsString], limits: KeptLimits) -> io::Result<ExitCode> {
    let parent = getppid();
    platform::adopt_orphans()?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let mut told = {
        let _entered = runtime.enter();
        signal(SignalKind::terminate())?
    };
    limits.set()?;
    let child = Command::new(program).args(arguments).spawn()?;
    let child = Pid::from_raw(child.id().try_into().unwrap_or_default());
    let Some(child) = child else {
        return Err(io::Error::other("the program has no process id"));
    };
    thread::spawn(move || {
        runtime.block_on(async {
            while getppid() == parent {
                if tokio::time::timeout(LOOK, told.recv()).await.is_ok() {
                    break;
                }
            }
        });
        // What is left is for the thread that waits: the program may have ended by itself at this moment.
        let _ = kill_process(child, Signal::KILL);
    });
    let status = loop {
        match wait(WaitOptions::empty()) {
            Ok(Some((ended, status))) if ended == child => break Some(status),
            Ok(_) | Err(Errno::INTR) => {}
            Err(_) => break None,
        }
    };
    platform::end_descendants();
    Ok(status.map_or(ExitCode::FAILURE, exit_code))
}

/// As shells tell it.
fn exit_code(status: WaitStatus) -> ExitCode {
    let code = match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => code,
        (None, Some(signal)) => 128 + signal,
        (None, None) => 1,
    };
    u8::try_from(code).map_or(ExitCode::FAILURE, ExitCode::from)
}

#[cfg(target_os = "linux")]
mod platform {
    use super::*;

    pub fn adopt_orphans() -> io::Result<()> {
        Ok(rustix::process::set_child_subreaper(Some(
            rustix::process::getpid(),
        ))?)
    }

    /// Kills children until there is none: those of a killed child become ours.
    pub fn end_descendants() {
        let own = rustix::process::getpid();
        loop {
            for child in children(own) {
                let _ = kill_process(child, Signal::KILL);
            }
            match wait(WaitOptions::empty()) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(_) => return,
            }
        }
    }

    fn children(of: Pid) -> Vec<Pid> {
        let Ok(processes) = std::fs::read_dir("/proc") else {
            return Vec::new();
        };
        let ids = processes
            .flatten()
            .filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        ids.filter(|id| parent(*id) == Some(of.as_raw_nonzero().get()))
            .filter_map(Pid::from_raw)
            .collect()
    }

    /// The second field after the name of the program, which stands in brackets and may hold anything.
    fn parent(id: i32) -> Option<i32> {
        let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
        let (_, fields) = stat.rsplit_once(')')?;
        fields.split_whitespace().nth(1)?.parse().ok()
    }
}

#[cfg(not(target_os = "linux"))]
mod platform {
    use super::*;

    pub fn adopt_orphans() -> io::Result<()> {
        Ok(())
    }

    /// The group, which the keeper leads: those that have left it get away.
    pub fn end_descendants() {
        let _ = rustix::process::kill_process_group(rustix::process::getpid(), Signal::KILL);
    }
}
