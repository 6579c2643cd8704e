//! Parses documents in worker processes: one process for each document, which can open nothing and is killed when it
//! exceeds its limits on memory or time.
//!
//! A request is the document's metadata as one line of JSON, then its bytes; the response is JSON.

use std::io;
use std::time::Duration;

use toolgate_fair::{Share, Shares, Spare};
use toolgate_worker::{Kind, Limits, Seals, WorkerError, Workers};

use super::{AT_ONCE, PDF_BYTES_MAX, Readable, Source, Unreadable};

/// Longest metadata line, and longest response, in bytes.
const HEAD_BYTES_MAX: usize = 64 << 10;
const RESPONSE_BYTES_MAX: usize = 16 << 20;
/// One byte more than the largest document: enough to detect that it is too long.
const DATA_BYTES_MAX: usize = PDF_BYTES_MAX + 1;
const REQUEST_BYTES_MAX: usize = HEAD_BYTES_MAX + DATA_BYTES_MAX;

/// Kind of worker that parses documents.
pub const READER: Kind = Kind {
    argument: "read-document",
    // A document that takes over its parser must not see the next one.
    uses: 1,
    warm: 1,
    limits: Limits {
        memory_bytes: 512 << 20,
        cpu_seconds: 10,
        wall: Duration::from_secs(40),
        files: 3,
        request_bytes_max: REQUEST_BYTES_MAX,
        response_bytes_max: RESPONSE_BYTES_MAX,
    },
    seals: Seals::NONE,
    // A document may take all of its time, so one user never has all processes of its project, nor one project all.
    queue: toolgate_fair::Limits {
        running: Shares {
            all: AT_ONCE + 1,
            tenant: AT_ONCE,
            user: AT_ONCE / 2,
        },
        waiting: Shares {
            all: 256,
            tenant: 64,
            user: 16,
        },
        waiting_bytes: Shares {
            all: 32 * REQUEST_BYTES_MAX,
            tenant: 8 * REQUEST_BYTES_MAX,
            user: 4 * REQUEST_BYTES_MAX,
        },
        spare: Spare::NONE,
    },
};

/// Has a worker parse a document.
pub(super) async fn read(workers: &Workers, source: &Source, share: Share) -> Result<Readable, Unreadable> {
    let mut request = serde_json::to_vec(source).expect("what is known of a document is JSON");
    request.push(b'\n');
    request.extend_from_slice(&source.data[..source.data.len().min(DATA_BYTES_MAX)]);
    match workers.run(share, &request).await {
        Ok(response) => serde_json::from_slice(&response).unwrap_or_else(|error| {
            tracing::warn!(%error, "a document's reader made no sense");
            Err(costly())
        }),
        Err(WorkerError::Failed | WorkerError::TooLong(_)) => Err(costly()),
        Err(error @ WorkerError::Busy) => Err(Unreadable::Unfit(format!(
            "the document cannot be read now: {error}"
        ))),
        Err(error @ WorkerError::Start(_)) => {
            tracing::warn!(%error, "no process can be started to read a document");
            Err(Unreadable::Unfit("documents cannot be read here now".into()))
        }
    }
}

fn costly() -> Unreadable {
    let (memory, seconds) = (READER.limits.memory_bytes >> 20, READER.limits.cpu_seconds);
    Unreadable::Unfit(format!(
        "the document cannot be read with {memory} MiB of memory and {seconds} seconds of work"
    ))
}

/// Main loop of the worker process, behind a hidden subcommand of the gateway.
pub fn work() -> io::Result<()> {
    toolgate_worker::serve(&READER, |mut request| {
        let head = request.iter().position(|byte| *byte == b'\n');
        let head = head.unwrap_or(request.len());
        let data = request.split_off((head + 1).min(request.len()));
        let source: Result<Source, _> = serde_json::from_slice(&request);
        let read = match source {
            Ok(source) => Source { data, ..source }.read(),
            Err(error) => Err(Unreadable::Unfit(format!(
                "what is known of it is damaged: {error}"
            ))),
        };
        serde_json::to_vec(&read).expect("what was read is JSON")
    })
}

#[cfg(test)]
mod tests {
    use std::iter;

    use toolgate_fair::Queue;

    use super::*;

    #[test]
    fn one_users_documents_leave_a_process_to_other_users_and_other_projects() {
        let queue = Queue::new(READER.queue);
        let take_all = |tenant, user| {
            let share = Share { tenant, user };
            iter::from_fn(|| queue.try_turn(share)).collect::<Vec<_>>()
        };
        let first = take_all(1, Some(1));
        let second = take_all(1, Some(2));
        let third = take_all(2, Some(3));
        assert!(!first.is_empty() && !second.is_empty() && !third.is_empty());
    }
}
