//! The kinds that the fixture serves and the tests ask.

use std::time::Duration;

use toolgate_fair::{Shares, Spare};
use toolgate_worker::{Kind, Limits, Seals};

/// One request for each process.
pub const ONCE: Kind = Kind {
    argument: "once",
    uses: 1,
    warm: 1,
    limits: Limits {
        memory_bytes: 256 << 20,
        cpu_seconds: 1,
        wall: Duration::from_secs(60),
        files: 16,
        request_bytes_max: 1 << 20,
        response_bytes_max: 1 << 20,
    },
    seals: Seals::NONE,
    queue: toolgate_fair::Limits {
        running: Shares {
            all: 2,
            tenant: 1,
            user: 1,
        },
        waiting: Shares {
            all: 4,
            tenant: 1,
            user: 1,
        },
        waiting_bytes: Shares {
            all: 4 << 20,
            tenant: 1 << 20,
            user: 1 << 20,
        },
        spare: Spare::NONE,
    },
};

/// Three requests for each process.
pub const THRICE: Kind = Kind {
    argument: "thrice",
    uses: 3,
    ..ONCE
};
