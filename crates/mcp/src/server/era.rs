//! Which era of the protocol a server speaks: with a handshake (`initialize`), or without one (`server/discover`).

use std::time::Duration;

use rmcp::model::ProtocolVersion;
use rmcp::service::ClientLifecycleMode;
use tokio::time::Instant;

use super::{Failure, Server};
use crate::connection::Connection;

/// How long the SDK waits for a response to `server/discover` before it takes a server for one of the older protocol.
const PROBE_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a server may take to start and to answer `server/discover` when it did not answer in time before.
const SECOND_PROBE_TIMEOUT: Duration = Duration::from_secs(30);

/// A connection, and what is known of its era.
pub(super) enum Connected {
    /// The server has said which era it speaks, now or before.
    Certain(Connection),
    /// It speaks the older protocol, and did not say in time whether it speaks the newer one.
    Guessed(Connection),
}

impl Server {
    /// Asks a server which protocol it speaks, unless that is known. One that starts so slowly that its response comes
    /// after the request was given up is started again and spoken to as one of each kind.
    pub(super) async fn connect_in_any_era(&self) -> Result<Connected, Failure> {
        let auto = ClientLifecycleMode::Auto {
            preferred_versions: vec![ProtocolVersion::LATEST],
            legacy_version: None,
        };
        if let Some(before) = &self.protocol {
            let known = match is_older(before) {
                true => ClientLifecycleMode::Initialize,
                false => discover(),
            };
            // What it spoke before it may not speak any more: then it is asked like any other.
            if let Ok(connection) = self.reach.connect(self.handler(), known).await {
                return Ok(Connected::Certain(connection));
            }
        }
        let mut failure = Failure::from(String::new());
        let mut is_asked_in_vain = false;
        for lifecycle in [auto, ClientLifecycleMode::Initialize, discover()] {
            let is_probe = matches!(lifecycle, ClientLifecycleMode::Auto { .. });
            let began = Instant::now();
            let connected = self.reach.connect(self.handler(), lifecycle).await;
            let took = began.elapsed();
            is_asked_in_vain |= is_probe && took >= PROBE_TIMEOUT;
            match connected {
                Ok(connection) if is_asked_in_vain && is_older(&connection.about().protocol) => {
                    return Ok(Connected::Guessed(connection));
                }
                Ok(connection) => return Ok(Connected::Certain(connection)),
                Err(error) if took < PROBE_TIMEOUT && !error.may_be_legacy => return Err(error),
                Err(error) => failure = error,
            }
        }
        Err(failure)
    }

    /// Starts or reaches a server anew and asks once more whether it speaks the newer protocol. A program that starts
    /// slowly for the first time, or on a busy machine, would be remembered as one of the older protocol otherwise.
    pub(super) async fn ask_once_more(&self, older: Connection) -> Connection {
        let asked = self.reach.connect(self.handler(), discover());
        match tokio::time::timeout(SECOND_PROBE_TIMEOUT, asked).await {
            Ok(Ok(newer)) => {
                // Nobody has used it yet, so how it ends does not matter.
                let _ = older.close().await;
                newer
            }
            Ok(Err(_)) | Err(_) => older,
        }
    }
}

fn discover() -> ClientLifecycleMode {
    ClientLifecycleMode::Discover {
        preferred_versions: vec![ProtocolVersion::LATEST],
    }
}

/// Whether this revision has a handshake.
fn is_older(protocol: &str) -> bool {
    protocol < ProtocolVersion::NO_INITIALIZE.as_str()
}
