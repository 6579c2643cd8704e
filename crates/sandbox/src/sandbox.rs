//! The gateway's side: jobs in, results out.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde_json::value::RawValue;
use tokio::sync::OnceCell;
use toolgate_fair::Share;
use toolgate_kernel::json::Json;
use toolgate_worker::{Kind, Protection, WorkerError, Workers};

use crate::host::Host;
use crate::job::{
    CODE_BYTES_MAX, CPU_MAX, FailureKind, Job, JobLimits, MEMORY_BYTES_MAX, OUTPUT_BYTES_MAX, ScriptFailure,
};
use crate::session;
use crate::syntax::SyntaxChecker;
use crate::wire::{Request, Said};
use crate::work::RUN_SCRIPT;

/// Longest answer to anything but a job.
const TOLD_BYTES_MAX: usize = 64 << 10;
/// Longest wait for it.
const TOLD_WITHIN: Duration = Duration::from_secs(10);

/// Runs code of others in confined processes. Cheap to clone. The processes end with the last clone.
#[derive(Clone)]
pub struct Sandbox {
    program: Arc<Path>,
    workers: Workers,
    protection: Arc<OnceCell<Protection>>,
}

/// How a sandbox differs from the usual one.
#[derive(Debug, Clone)]
pub struct SandboxOptions {
    /// How many calls run and wait, how many processes are started ahead, and what one may use.
    pub kind: Kind,
    /// Seals that are left out, so that tests can show that the others hold: `seccomp`, `landlock`.
    pub without: Vec<String>,
}

impl Default for SandboxOptions {
    fn default() -> Self {
        Self {
            kind: RUN_SCRIPT,
            without: Vec::new(),
        }
    }
}

impl Sandbox {
    /// A sandbox whose workers are `program`, the gateway's own binary. None is started yet.
    pub fn new(program: PathBuf, options: SandboxOptions) -> Self {
        let arguments = options
            .without
            .iter()
            .flat_map(|seal| ["--without".into(), seal.clone()]);
        Self {
            program: program.as_path().into(),
            workers: Workers::with_arguments(program, options.kind, arguments.collect()),
            protection: Arc::default(),
        }
    }

    /// Runs a call when it is its turn. Dropping the future kills its worker.
    pub async fn run(&self, job: Job, host: Arc<dyn Host>) -> Result<Json, ScriptFailure> {
        let limits = JobLimits {
            wall: job.limits.wall,
            cpu: job.limits.cpu.min(CPU_MAX),
            memory_bytes: job.limits.memory_bytes.min(MEMORY_BYTES_MAX),
            output_bytes: job.limits.output_bytes.min(OUTPUT_BYTES_MAX),
        };
        let request = request(&job, &limits)?;
        let permit = self
            .workers
            .admit(job.share, request.len())
            .await
            .map_err(no_worker)?;
        let call = async {
            let exchange = self
                .workers
                .begin(permit, job.owner, &request)
                .await
                .map_err(no_worker)?;
            session::run(exchange, host, &limits).await
        };
        tokio::time::timeout(limits.wall, call).await.unwrap_or_else(|_| {
            let words = format!("it did not finish within {} ms", limits.wall.as_millis());
            Err(ScriptFailure::new(FailureKind::Timeout, words))
        })
    }

    /// Says whether code is JavaScript, in processes of the same program.
    pub fn syntax_checker(&self) -> SyntaxChecker {
        SyntaxChecker::new(self.program.to_path_buf())
    }

    /// What protects the machine from the code, as a worker finds it. Asked once.
    pub async fn protection(&self) -> Result<Protection, ScriptFailure> {
        let found = self.protection.get_or_try_init(|| async {
            let told = self.ask(&Request::Protection).await?;
            serde_json::from_str(&told).map_err(|_| no_worker(WorkerError::Failed))
        });
        found.await.cloned()
    }

    /// Tries something from inside of a worker that must fail: for tests.
    #[doc(hidden)]
    pub async fn probe(&self, what: &str) -> Result<String, ScriptFailure> {
        self.ask(&Request::Probe(what.into())).await
    }

    /// Asks a worker that has run nobody's code.
    async fn ask(&self, request: &Request) -> Result<String, ScriptFailure> {
        let nobody = Share {
            tenant: 0,
            user: None,
        };
        let request = serde_json::to_vec(request).expect("a request is JSON");
        let asked = async {
            let permit = self.workers.admit(nobody, request.len()).await?;
            let mut exchange = self.workers.begin(permit, [0; 32], &request).await?;
            let frame = exchange.next(TOLD_BYTES_MAX).await?;
            match Said::parse(&frame) {
                Ok(Said::Told(words)) => Ok(words.to_owned()),
                Ok(_) | Err(_) => Err(WorkerError::Failed),
            }
        };
        let asked = tokio::time::timeout(TOLD_WITHIN, asked).await;
        asked.unwrap_or(Err(WorkerError::Failed)).map_err(no_worker)
    }
}

fn request(job: &Job, limits: &JobLimits) -> Result<Vec<u8>, ScriptFailure> {
    if job.code.len() > CODE_BYTES_MAX {
        let words = format!("the code has more than {CODE_BYTES_MAX} bytes");
        return Err(ScriptFailure::new(FailureKind::Forbidden, words));
    }
    let request = Request::Run {
        code: job.code.to_string(),
        args: RawValue::from_string(job.args.as_str().to_owned()).expect("it is JSON already"),
        cpu_millis: limits.cpu.as_millis().try_into().unwrap_or(u64::MAX),
        memory_bytes: limits.memory_bytes,
        output_bytes: limits.output_bytes,
    };
    Ok(serde_json::to_vec(&request).expect("a request is JSON"))
}

fn no_worker(error: WorkerError) -> ScriptFailure {
    match error {
        WorkerError::Busy => ScriptFailure::new(
            FailureKind::Busy,
            "too many calls wait already; try again in a moment",
        ),
        WorkerError::TooLong(most) => {
            let words = format!("the code and its arguments have more than {most} bytes");
            ScriptFailure::new(FailureKind::Forbidden, words)
        }
        WorkerError::Start(error) => {
            tracing::warn!(%error, "no process can be started to run code");
            ScriptFailure::new(
                FailureKind::Unavailable,
                "code cannot be run here now; try again later",
            )
        }
        WorkerError::Failed => ScriptFailure::new(FailureKind::Crashed, "its process died"),
    }
}
