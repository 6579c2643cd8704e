//! The data channel: `[rtc]`.

use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use anyhow::{Context, anyhow, bail};
use serde::Deserialize;
use toolgate_door_rtc::{RtcAddresses, RtcLimits, RtcPort};

use super::text;

/// Value of `listen` that opens no port.
const OFF: &str = "off";
/// Largest message that peers are told of: the library behind the channel reads no larger one.
const MESSAGE_BYTES_MAX: usize = 256 * 1024;
/// Smallest limit of a message: its ids have to fit.
const MESSAGE_BYTES_MIN: usize = 1024;

/// The data channel.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Rtc {
    /// UDP address; empty for the gateway's own while that is a loopback address, `off` for none.
    pub listen: String,
    /// Addresses that browsers reach, each with or without a port.
    pub public_addresses: Vec<String>,
    /// Bytes of one message.
    pub message_bytes_max: usize,
    /// Messages of one channel per second in the long run.
    pub messages_per_second: u32,
    /// Messages of one channel at once.
    pub messages_burst: u32,
    /// Channels of this node.
    pub peers_max: usize,
    /// Channels of one project on this node.
    pub peers_per_project: usize,
    /// Channels of one user on this node.
    pub peers_per_user: usize,
    /// Bytes that one peer has not acknowledged.
    pub buffered_bytes_max: usize,
    /// Longest time from the answer to the open channel.
    #[serde(deserialize_with = "text::duration")]
    pub handshake_timeout: Duration,
    /// Longest time in which a peer takes nothing.
    #[serde(deserialize_with = "text::duration")]
    pub stall_timeout: Duration,
}

impl Default for Rtc {
    fn default() -> Self {
        let limits = RtcLimits::default();
        Self {
            listen: String::new(),
            public_addresses: Vec::new(),
            message_bytes_max: limits.message_bytes_max,
            messages_per_second: limits.messages_per_second,
            messages_burst: limits.messages_burst,
            peers_max: limits.peers_max,
            peers_per_project: limits.peers_per_project,
            peers_per_user: limits.peers_per_user,
            buffered_bytes_max: limits.buffered_bytes_max,
            handshake_timeout: limits.handshake_timeout,
            stall_timeout: limits.stall,
        }
    }
}

impl Rtc {
    /// Binds the port of the data channel, if there is one. `gateway` is the address that the gateway listens on.
    pub async fn bind(&self, gateway: SocketAddr) -> anyhow::Result<Option<RtcPort>> {
        let limits = self.limits()?;
        let public = self.public()?;
        let (listen, is_chosen) = match self.listen.as_str() {
            OFF => return Ok(None),
            "" if gateway.ip().is_loopback() => (gateway, false),
            "" => return Ok(None),
            given => (address(given)?, true),
        };
        let addresses = RtcAddresses { listen, public };
        let bound = match RtcPort::bind(addresses.clone(), limits).await {
            // Nobody has asked for this very port.
            Err(error) if error.kind() == ErrorKind::AddrInUse && !is_chosen => {
                let listen = SocketAddr::new(listen.ip(), 0);
                RtcPort::bind(RtcAddresses { listen, ..addresses }, limits).await
            }
            bound => bound,
        };
        let advice = "change rtc.listen, or set it to \"off\"";
        let port =
            bound.with_context(|| format!("cannot open the data channel's UDP port {listen}; {advice}"))?;
        Ok(Some(port))
    }

    fn limits(&self) -> anyhow::Result<RtcLimits> {
        let bytes = self.message_bytes_max;
        if !(MESSAGE_BYTES_MIN..=MESSAGE_BYTES_MAX).contains(&bytes) {
            bail!(
                "the setting `rtc.message_bytes_max` is {bytes}; expected {MESSAGE_BYTES_MIN} to {MESSAGE_BYTES_MAX}"
            );
        }
        Ok(RtcLimits {
            message_bytes_max: bytes,
            messages_per_second: self.messages_per_second,
            messages_burst: self.messages_burst,
            peers_max: self.peers_max,
            peers_per_project: self.peers_per_project,
            peers_per_user: self.peers_per_user,
            buffered_bytes_max: self.buffered_bytes_max,
            handshake_timeout: self.handshake_timeout,
            stall: self.stall_timeout,
        })
    }

    fn public(&self) -> anyhow::Result<Vec<(IpAddr, Option<u16>)>> {
        let read = |given: &String| match (given.parse::<IpAddr>(), given.parse::<SocketAddr>()) {
            (Ok(ip), _) => Ok((ip, None)),
            (Err(_), Ok(address)) => Ok((address.ip(), Some(address.port()))),
            (Err(_), Err(_)) => Err(anyhow!(
                "the setting `rtc.public_addresses` names {given:?}; expected an IP address like \"203.0.113.7\" or \
                 \"203.0.113.7:8787\""
            )),
        };
        self.public_addresses.iter().map(read).collect()
    }
}

fn address(given: &str) -> anyhow::Result<SocketAddr> {
    given.parse().map_err(|_| {
        anyhow!(
            "the setting `rtc.listen` is {given:?}; expected an address like \"0.0.0.0:8787\", or \"off\""
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bind(rtc: &Rtc, gateway: &str) -> Result<Option<Vec<SocketAddr>>, String> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let bound = runtime.block_on(rtc.bind(gateway.parse().unwrap()));
        let told = bound.map(|port| port.map(|port| port.candidates().to_vec()));
        told.map_err(|error| format!("{error:#}"))
    }
    fn at(listen: &str) -> Rtc {
        Rtc {
            listen: listen.into(),
            ..Rtc::default()
        }
    }

    #[test]
    fn by_default_there_is_a_port_on_loopback_and_none_elsewhere() {
        let told = bind(&Rtc::default(), "127.0.0.1:0").unwrap().unwrap();
        assert!(told[0].ip().is_loopback() && told[0].port() != 0, "{told:?}");
        assert_eq!(bind(&Rtc::default(), "0.0.0.0:8787"), Ok(None));
        assert_eq!(bind(&at("off"), "127.0.0.1:0"), Ok(None));
    }

    #[test]
    fn an_address_that_no_browser_reaches_is_refused_with_the_setting() {
        assert!(
            bind(&at("somewhere"), "127.0.0.1:0")
                .unwrap_err()
                .contains("rtc.listen")
        );
        assert!(
            bind(&at("0.0.0.0:0"), "127.0.0.1:0")
                .unwrap_err()
                .contains("rtc.public_addresses")
        );
        let public = Rtc {
            public_addresses: vec!["203.0.113.7".into(), "[2001:db8::1]:9".into()],
            ..at("127.0.0.1:0")
        };
        let told = bind(&public, "127.0.0.1:0").unwrap().unwrap();
        assert_eq!(told[1], "[2001:db8::1]:9".parse().unwrap());
        let wrong = Rtc {
            public_addresses: vec!["gate.example.com".into()],
            ..at("127.0.0.1:0")
        };
        assert!(
            bind(&wrong, "127.0.0.1:0")
                .unwrap_err()
                .contains("expected an IP address")
        );
        let small = Rtc {
            message_bytes_max: 10,
            ..Rtc::default()
        };
        assert!(
            bind(&small, "127.0.0.1:0")
                .unwrap_err()
                .contains("rtc.message_bytes_max")
        );
    }
}
