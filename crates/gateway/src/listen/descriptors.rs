//! File descriptors: every connection needs one, and so do files, outbound requests and child processes.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Descriptors kept for everything that is not a client's connection; half of all if there are few.
const OTHERS: u64 = 256;

/// Raises the process's limit of open files to the hard limit, and gives how many of `connections_max` fit.
pub fn fit_to_descriptors(connections_max: usize) -> usize {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        ..limit
    };
    let files = match setrlimit(Resource::Nofile, raised) {
        Ok(()) => limit.maximum,
        Err(error) => {
            tracing::warn!(%error, "the limit of open files stays as it is");
            limit.current
        }
    };
    let fits = fitting(connections_max, files);
    if fits < connections_max {
        tracing::warn!(
            open_files = files,
            connections_max,
            connections = fits,
            "the limit of open files is too low for http.connections.max, fewer connections are accepted; raise it (ulimit -Hn, LimitNOFILE=)"
        );
    }
    fits
}

/// How many of `connections_max` connections fit into so many descriptors; `None` is no limit.
fn fitting(connections_max: usize, files: Option<u64>) -> usize {
    let Some(files) = files else {
        return connections_max;
    };
    let left = files - OTHERS.min(files / 2);
    connections_max
        .min(usize::try_from(left).unwrap_or(usize::MAX))
        .max(1)
}

#[cfg(test)]
mod tests {
    use super::fitting;

    #[test]
    fn connections_leave_descriptors_for_everything_else() {
        assert_eq!(fitting(4096, None), 4096);
        assert_eq!(fitting(4096, Some(1 << 20)), 4096);
        assert_eq!(fitting(4096, Some(1024)), 768);
        assert_eq!(fitting(4096, Some(256)), 128);
        assert_eq!(fitting(4096, Some(0)), 1);
    }
}
