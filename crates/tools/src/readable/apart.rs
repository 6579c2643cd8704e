//! A process of its own for each document. It has no environment, opens nothing, and is ended by the system when it wants
//! more memory or time than a document is worth.
//!
//! Over its standard input it is given what is known of the document as one line of JSON, then the bytes; it answers with
//! JSON.

use std::io::{self, Read as _, Write as _};
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use rustix::process::{Resource, Rlimit, setrlimit};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::Command;

use super::{PDF_BYTES_MAX, Readable, Source, Unreadable};

/// What the program is started with.
pub const ARGUMENT: &str = "read-document";
/// Memory of a process, all of it.
const MEMORY_BYTES: u64 = 512 << 20;
/// Work of a process.
const CPU_SECONDS: u64 = 10;
/// How long a document may take on a machine that is busy with other things.
const TIMEOUT: Duration = Duration::from_secs(40);
/// The three that it is started with.
const FILES: u64 = 3;
/// Longest line with what is known of a document, and longest answer.
const HEAD_BYTES_MAX: u64 = 64 << 10;
const ANSWER_BYTES_MAX: u64 = 16 << 20;

/// Lets a new process read a document.
pub(super) async fn read(program: &Path, source: &Source) -> Result<Readable, Unreadable> {
    let asked = tokio::time::timeout(TIMEOUT, ask(program, source)).await;
    match asked {
        Ok(Ok(answer)) if !answer.is_empty() => serde_json::from_slice(&answer).unwrap_or_else(|error| {
            tracing::warn!(%error, "a document's reader made no sense");
            Err(costly())
        }),
        Ok(Ok(_)) | Err(_) => Err(costly()),
        Ok(Err(error)) => {
            tracing::warn!(%error, "no process can be started to read a document");
            Err(Unreadable::Unfit("documents cannot be read here now".into()))
        }
    }
}

fn costly() -> Unreadable {
    let memory = MEMORY_BYTES >> 20;
    Unreadable::Unfit(format!(
        "the document cannot be read with {memory} MiB of memory and {CPU_SECONDS} seconds of work"
    ))
}

async fn ask(program: &Path, source: &Source) -> io::Result<Vec<u8>> {
    let mut process = Command::new(program)
        .arg(ARGUMENT)
        .env_clear()
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        // A parser's last words are for its authors.
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()?;
    let mut to = process.stdin.take().expect("it is piped");
    let from = process.stdout.take().expect("it is piped");
    let mut head = serde_json::to_vec(source)?;
    head.push(b'\n');
    let send = async move {
        to.write_all(&head).await?;
        to.write_all(&source.data).await?;
        to.shutdown().await
    };
    let mut answer = Vec::new();
    let mut from = from.take(ANSWER_BYTES_MAX);
    // One that ends early has not taken everything; its answer tells why, or that there is none.
    let (_, heard) = tokio::join!(send, from.read_to_end(&mut answer));
    heard?;
    // One that has more to say is not heard out.
    drop(from);
    process.wait().await?;
    Ok(answer)
}

/// Reads the one document that stands on the standard input, within limits that hold for the whole process from here on.
/// What a program does that was started to read.
pub fn work() -> io::Result<()> {
    for (resource, most) in [
        (Resource::As, MEMORY_BYTES),
        (Resource::Cpu, CPU_SECONDS),
        (Resource::Nofile, FILES),
        (Resource::Core, 0),
    ] {
        let (current, maximum) = (Some(most), Some(most));
        setrlimit(resource, Rlimit { current, maximum })?;
    }
    let mut given = Vec::new();
    let bytes_max = HEAD_BYTES_MAX + PDF_BYTES_MAX as u64 + 1;
    io::stdin().lock().take(bytes_max).read_to_end(&mut given)?;
    let head = given
        .iter()
        .position(|byte| *byte == b'\n')
        .unwrap_or(given.len());
    let mut source: Source = serde_json::from_slice(&given[..head])?;
    source.data = given.split_off((head + 1).min(given.len()));
    let mut to = io::stdout().lock();
    serde_json::to_writer(&mut to, &source.read())?;
    to.flush()
}
