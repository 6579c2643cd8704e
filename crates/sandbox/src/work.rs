//! The worker's side: a child process of the gateway that runs one call after the other, all of one owner, each in a realm
//! of its own.

use std::io;
use std::time::Duration;

use toolgate_fair::{Shares, Spare};
use toolgate_script::{
    Failure, FailureKind, Host, HostGone, Limits, LogLevel, Operation, Realm, Script, Spent,
};
use toolgate_worker::{Kind, Protection, Seals, Talk};

use crate::job::{CODE_BYTES_MAX, CPU_MAX, MEMORY_BYTES_MAX, OUTPUT_BYTES_MAX};
use crate::wire::{self, Request, Said};

/// Calls that run at the same time.
const AT_ONCE: usize = 16;
/// Calls beyond those, one for each user who has none running: however many calls of others only wait, nobody waits for
/// their end. With [`AT_ONCE`] it bounds the memory of all code: 32 calls of 64 MiB.
const SPARE: Spare = Spare { all: 16, tenant: 4 };
/// Largest call: the code and its arguments, with room for quoting.
const REQUEST_BYTES_MAX: usize = 2 * CODE_BYTES_MAX + (8 << 20);

/// Kind of worker that runs code of others.
pub const RUN_SCRIPT: Kind = Kind {
    argument: "run-script",
    // Each call has a realm of its own; a new process now and then bounds what a leak may grow to.
    uses: 1_000,
    warm: 1,
    limits: toolgate_worker::Limits {
        memory_bytes: 256 << 20,
        cpu_seconds: CPU_MAX.as_secs() + 1,
        wall: Duration::from_secs(60),
        files: 3,
        request_bytes_max: REQUEST_BYTES_MAX,
        response_bytes_max: OUTPUT_BYTES_MAX,
    },
    seals: Seals::ALL,
    // Most of the time of a call may be waiting for a server. One user never has all processes of its project, nor one
    // project all.
    queue: toolgate_fair::Limits {
        running: Shares::of(AT_ONCE),
        waiting: Shares {
            all: 1_024,
            tenant: 512,
            user: 128,
        },
        waiting_bytes: Shares {
            all: 64 << 20,
            tenant: 32 << 20,
            user: 16 << 20,
        },
        spare: SPARE,
    },
};

// A call of the largest size leaves room for the code of the process itself.
const _: () = assert!(RUN_SCRIPT.limits.memory_bytes as usize >= MEMORY_BYTES_MAX + (96 << 20));

/// Main loop of the worker process, behind a hidden subcommand of the gateway. `without` names seals that tests leave
/// out: `seccomp`, `landlock`.
pub fn work(without: &[String]) -> io::Result<()> {
    work_with_probe(without, |_| "there is no probe".into())
}

/// The same with something to try from inside, for tests.
pub fn work_with_probe(without: &[String], probe: impl Fn(&str) -> String) -> io::Result<()> {
    let has = |seal: &str| !without.iter().any(|name| name == seal);
    let kind = Kind {
        seals: Seals {
            seccomp: has("seccomp"),
            landlock: has("landlock"),
        },
        ..RUN_SCRIPT
    };
    let prepare = |protection: &Protection| (Realm::new(), protection.clone());
    toolgate_worker::serve_with(&kind, prepare, |(realm, protection), request, talk| {
        let request = serde_json::from_slice(&request).map_err(io::Error::other)?;
        let told = |words: &str| (Said::Told(words).write(), None);
        Ok(match request {
            Request::Run {
                code,
                args,
                cpu_millis,
                memory_bytes,
                output_bytes,
            } => {
                let limits = Limits {
                    cpu: Duration::from_millis(cpu_millis),
                    memory_bytes,
                    output_bytes,
                };
                let (code, args) = (&*code, args.get());
                run(realm, Script { code, args, limits }, talk)?
            }
            Request::Check(code) => match Realm::check(&code) {
                Ok(()) => told(""),
                Err(failure) => told(&failure.message),
            },
            Request::Protection => told(&serde_json::to_string(&protection)?),
            Request::Probe(what) => told(&probe(&what)),
        })
    })
}

/// The response, and what is left to be freed once it was sent.
type Responded = (Vec<u8>, Option<Spent>);

fn run(realm: Result<Realm, Failure>, script: Script<'_>, talk: &mut Talk) -> io::Result<Responded> {
    // The kernel counts whole seconds; what is not stopped by QuickJS itself is stopped by it.
    talk.limit_cpu(script.limits.cpu.as_secs() + 1)?;
    let mut lines = Lines { talk, open: 0 };
    let (outcome, spent) = match realm {
        Ok(realm) => {
            let (outcome, spent) = realm.run_and_keep(script, &mut lines);
            (outcome, Some(spent))
        }
        Err(failure) => (Err(failure), None),
    };
    let clean = lines.open == 0;
    let said = match &outcome {
        Ok(output) => Said::Done { clean, output },
        Err(failure) if failure.kind == FailureKind::HostGone => {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        Err(Failure { kind, message }) => Said::Failed {
            clean,
            kind: *kind,
            message,
        },
    };
    Ok((said.write(), spent))
}

/// Host calls and the log as frames.
struct Lines<'t> {
    talk: &'t mut Talk,
    /// Host calls without an answer.
    open: usize,
}

impl Lines<'_> {
    fn say(&mut self, said: Said<'_>) -> Result<(), HostGone> {
        self.talk.send(&said.write()).map_err(|_| HostGone)
    }
}

impl Host for Lines<'_> {
    fn begin(&mut self, id: u32, operation: Operation, body: &str) -> Result<(), HostGone> {
        self.open += 1;
        self.say(Said::Call { id, operation, body })
    }
    fn log(&mut self, level: LogLevel, text: &str) -> Result<(), HostGone> {
        self.say(Said::Log(wire::level(level), text))
    }
    fn answer(&mut self, wait: Option<Duration>) -> Result<Option<(u32, Result<String, String>)>, HostGone> {
        let frame = self.talk.receive(wait).map_err(|_| HostGone)?;
        let Some(frame) = frame else { return Ok(None) };
        self.open = self.open.saturating_sub(1);
        wire::read_answer(&frame).map(Some).ok_or(HostGone)
    }
}
