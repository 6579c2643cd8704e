//! What a worker takes from itself, for good, before it reads a byte. A kernel may lack a part of it: the worker says what
//! is in force, and whoever runs the gateway is told.

use std::io;

use rustix::process::{Resource, Rlimit, setrlimit};
use serde::{Deserialize, Serialize};

use crate::kind::Kind;

/// What protects the machine from a worker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Protection {
    /// System calls that the work does not need fail.
    pub seccomp: Seal,
    /// No path, no TCP port and no process outside can be reached.
    pub landlock: Seal,
    /// Nothing that it could start has more rights.
    pub no_new_privileges: Seal,
    /// It has its standard streams and no other open file.
    pub descriptors: Seal,
}

/// Whether a protection is in force.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub enum Seal {
    /// It is.
    InForce,
    /// It is not, for this reason.
    Missing(String),
}

impl Protection {
    /// The protections that are missing, and why.
    pub fn missing(&self) -> Vec<(&'static str, &str)> {
        let all = [
            ("seccomp", &self.seccomp),
            ("landlock", &self.landlock),
            ("no-new-privileges", &self.no_new_privileges),
            ("descriptors", &self.descriptors),
        ];
        let missing = all.into_iter().filter_map(|(name, seal)| match seal {
            Seal::InForce => None,
            Seal::Missing(reason) => Some((name, reason.as_str())),
        });
        missing.collect()
    }
}

impl Seal {
    fn of(done: Result<(), String>) -> Self {
        match done {
            Ok(()) => Self::InForce,
            Err(reason) => Self::Missing(reason),
        }
    }
}

/// Sets limits and seals on this process. A limit that cannot be set is an error; a seal that the kernel lacks is told.
pub(crate) fn confine(kind: &Kind, limits: [(Resource, u64); 4]) -> io::Result<Protection> {
    let off = || Seal::Missing("switched off".into());
    let descriptors = Seal::of(only_standard_streams());
    let no_new_privileges = Seal::of(no_new_privileges());
    // Before the limit on open files: making the rules takes a descriptor for a moment.
    let landlock = match kind.seals.landlock {
        true => Seal::of(platform::landlock()),
        false => off(),
    };
    for (resource, most) in limits {
        let (current, maximum) = (Some(most), Some(most));
        setrlimit(resource, Rlimit { current, maximum })?;
    }
    // Last: from here on the calls above would fail.
    let seccomp = match kind.seals.seccomp {
        true => Seal::of(platform::seccomp()),
        false => off(),
    };
    Ok(Protection {
        seccomp,
        landlock,
        no_new_privileges,
        descriptors,
    })
}

/// Closes what the gateway was given by whoever started it to every program that it starts. Called by the gateway at
/// its start: what it opens itself is closed to them anyway.
pub fn keep_descriptors_from_workers() {
    #[cfg(target_os = "linux")]
    close_fds::set_fds_cloexec(3, &[]);
}

fn only_standard_streams() -> Result<(), String> {
    let Ok(list) = std::fs::read_dir("/proc/self/fd") else {
        return Err("/proc cannot be read, so it is not known".into());
    };
    // The three, and the directory itself.
    match list.flatten().count() {
        0..=4 => Ok(()),
        open => Err(format!(
            "{} files are open besides the standard streams",
            open - 4
        )),
    }
}

#[cfg(target_os = "linux")]
fn no_new_privileges() -> Result<(), String> {
    rustix::thread::set_no_new_privs(true).map_err(|error| error.to_string())
}

#[cfg(not(target_os = "linux"))]
fn no_new_privileges() -> Result<(), String> {
    platform::seccomp()
}

#[cfg(not(target_os = "linux"))]
mod platform {
    pub fn landlock() -> Result<(), String> {
        Err("only Linux has it".into())
    }
    pub fn seccomp() -> Result<(), String> {
        Err("only Linux has it".into())
    }
}

#[cfg(target_os = "linux")]
mod platform {
    use std::collections::BTreeMap;

    use landlock::{ABI, Access as _, AccessFs, AccessNet, Ruleset, RulesetAttr as _, RulesetStatus, Scope};
    use seccompiler::{
        BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
        SeccompRule, TargetArch,
    };

    /// The newest rules that are asked for; a kernel with older ones enforces what it knows.
    const LANDLOCK: ABI = ABI::V6;

    /// System calls that a worker needs once it is confined: on open descriptors, on its own memory, clocks, its end.
    const ALLOWED: &[i64] = &[
        libc::SYS_read,
        libc::SYS_readv,
        libc::SYS_write,
        libc::SYS_writev,
        libc::SYS_close,
        libc::SYS_fstat,
        libc::SYS_lseek,
        libc::SYS_brk,
        libc::SYS_munmap,
        libc::SYS_mremap,
        libc::SYS_madvise,
        libc::SYS_futex,
        libc::SYS_clock_gettime,
        libc::SYS_clock_nanosleep,
        libc::SYS_nanosleep,
        libc::SYS_gettimeofday,
        libc::SYS_getrandom,
        libc::SYS_ppoll,
        #[cfg(target_arch = "x86_64")]
        libc::SYS_poll,
        libc::SYS_rt_sigreturn,
        libc::SYS_rt_sigprocmask,
        libc::SYS_rt_sigaction,
        libc::SYS_sigaltstack,
        libc::SYS_sched_yield,
        libc::SYS_restart_syscall,
        libc::SYS_getpid,
        libc::SYS_gettid,
        libc::SYS_getrusage,
        libc::SYS_exit,
        libc::SYS_exit_group,
    ];

    /// No path may be opened, changed or executed, no TCP port bound or connected to, no process outside signalled.
    pub fn landlock() -> Result<(), String> {
        let rules = Ruleset::default()
            .handle_access(AccessFs::from_all(LANDLOCK))
            .and_then(|rules| rules.handle_access(AccessNet::from_all(LANDLOCK)))
            .and_then(|rules| rules.scope(Scope::from_all(LANDLOCK)))
            .and_then(Ruleset::create);
        let status = rules.and_then(|rules| rules.restrict_self());
        match status.map(|status| status.ruleset) {
            Ok(RulesetStatus::FullyEnforced) => Ok(()),
            Ok(RulesetStatus::PartiallyEnforced) => {
                Err("the kernel enforces a part only; Linux 6.12 enforces all of it".into())
            }
            Ok(RulesetStatus::NotEnforced) => Err("the kernel lacks it or it is switched off at boot".into()),
            Err(error) => Err(error.to_string()),
        }
    }

    /// Every system call that is not needed fails as not permitted.
    pub fn seccomp() -> Result<(), String> {
        let program = filter().map_err(|error| error.to_string())?;
        seccompiler::apply_filter(&program).map_err(|error| error.to_string())
    }

    fn filter() -> Result<BpfProgram, seccompiler::BackendError> {
        let mut rules: BTreeMap<i64, Vec<SeccompRule>> =
            ALLOWED.iter().map(|call| (*call, Vec::new())).collect();
        // Memory may be taken, but never to execute what was written there.
        let exec = u64::from(libc::PROT_EXEC.unsigned_abs());
        for call in [libc::SYS_mmap, libc::SYS_mprotect] {
            rules.insert(call, vec![rule(&[(2, SeccompCmpOp::MaskedEq(exec), 0)])?]);
        }
        // The CPU time of the next request, of this process.
        let cpu = u64::from(libc::RLIMIT_CPU);
        let own = [(0, SeccompCmpOp::Eq, 0), (1, SeccompCmpOp::Eq, cpu)];
        rules.insert(libc::SYS_prlimit64, vec![rule(&own)?]);
        let refused = SeccompAction::Errno(libc::EPERM.unsigned_abs());
        let arch = TargetArch::try_from(std::env::consts::ARCH)?;
        SeccompFilter::new(rules, refused, SeccompAction::Allow, arch)?.try_into()
    }

    /// A call whose arguments fit all of this.
    fn rule(arguments: &[(u8, SeccompCmpOp, u64)]) -> Result<SeccompRule, seccompiler::BackendError> {
        let fits = arguments.iter().map(|(at, compare, value)| {
            SeccompCondition::new(*at, SeccompCmpArgLen::Dword, compare.clone(), *value)
        });
        SeccompRule::new(fits.collect::<Result<_, _>>()?)
    }
}
