//! The UDP port that all peers share, and the task that owns it.

use std::io;
use std::net::{IpAddr, SocketAddr, SocketAddrV6};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::net::UdpSocket;
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use toolgate_access::{Pass, Principal};
use toolgate_http::Shared;
use toolgate_http::problem::Refusal;
use toolgate_kernel::event::Seq;
use toolgate_kernel::id::SpaceId;

use crate::RtcLimits;
use crate::offer::{Answered, Answerer};
use crate::outlet::{Command, Outlet};
use crate::peer::{Inbox, Peer};
use crate::peer_shares::{PeerShare, PeerShares};
use crate::peers::Peers;
use crate::session::Session;

/// Requests of sessions that wait for the task. A full queue holds a session up.
const COMMANDS_MAX: usize = 1024;
/// Offers that were answered and wait for the task.
const OPENINGS_MAX: usize = 64;
/// Messages that wait for one session; their bytes are bounded apart.
const INBOX_MESSAGES_MAX: usize = 256;
/// Datagrams, or requests, that are handled before the task looks at anything else.
const TURN_MAX: usize = 64;
/// Largest datagram that is read. WebRTC sends no more than one Ethernet frame holds.
const DATAGRAM_BYTES_MAX: usize = 2048;
/// Longest time for open channels to be closed when the gateway goes down.
const STOP_MAX: Duration = Duration::from_secs(2);

/// Where peers reach this node.
#[derive(Debug, Clone, PartialEq)]
pub struct RtcAddresses {
    /// UDP address to listen on; port 0 for any.
    pub listen: SocketAddr,
    /// Addresses that browsers are told, where the listening one is not what they reach. Without a port, that of `listen`.
    pub public: Vec<(IpAddr, Option<u16>)>,
}

/// The UDP port, before its task runs.
pub struct RtcPort {
    socket: UdpSocket,
    door: RtcDoor,
    openings: mpsc::Receiver<Opening>,
}

/// Answers offers. Cheap to clone.
#[derive(Clone)]
pub struct RtcDoor {
    answerer: Arc<Answerer>,
    shares: Arc<PeerShares>,
    openings: mpsc::Sender<Opening>,
    pub(crate) limits: RtcLimits,
}

/// Who opens a channel, to what.
pub(crate) struct Visitor {
    pub who: Principal,
    pub pass: Pass,
    pub space: SpaceId,
    pub after: Seq,
}

/// A connection that was answered, on its way to the task.
struct Opening {
    answered: Answered,
    visitor: Visitor,
    share: PeerShare,
}

impl RtcPort {
    /// Binds the port and makes the certificate. Fails on an address that browsers could not be told.
    pub async fn bind(addresses: RtcAddresses, limits: RtcLimits) -> io::Result<Self> {
        let socket = UdpSocket::bind(addresses.listen).await?;
        let bound = socket.local_addr()?;
        let candidates = candidates(bound, &addresses.public)?;
        let answerer =
            Answerer::new(candidates).ok_or_else(|| io::Error::other("no DTLS certificate could be made"))?;
        let (sender, openings) = mpsc::channel(OPENINGS_MAX);
        let door = RtcDoor {
            answerer: Arc::new(answerer),
            shares: Arc::default(),
            openings: sender,
            limits,
        };
        Ok(Self {
            socket,
            door,
            openings,
        })
    }

    /// Answers offers for this port.
    pub fn door(&self) -> RtcDoor {
        self.door.clone()
    }

    /// The addresses that browsers are told.
    pub fn candidates(&self) -> &[SocketAddr] {
        &self.door.answerer.candidates
    }

    /// Serves peers until `stop` fires, then closes them and waits for their sessions.
    pub async fn run(mut self, shared: Shared, stop: CancellationToken) {
        let mut peers = Peers::new(self.candidates().to_vec());
        let (sender, mut commands) = mpsc::channel(COMMANDS_MAX);
        let mut sessions = JoinSet::new();
        let mut stopped: Option<tokio::time::Instant> = None;
        let mut buffer = [0; DATAGRAM_BYTES_MAX];
        loop {
            self.send(&mut peers);
            if stopped.is_some() && peers.is_empty() && sessions.is_empty() {
                return;
            }
            let wake = peers.next_wake().map(tokio::time::Instant::from_std);
            let wake = [wake, stopped].into_iter().flatten().min();
            tokio::select! {
                () = stop.cancelled(), if stopped.is_none() => {
                    // Sessions hear of it too, and close their peers with a cursor to come back.
                    stopped = Some(tokio::time::Instant::now() + STOP_MAX);
                    self.openings.close();
                }
                ready = self.socket.readable() => match ready {
                    Ok(()) => self.receive(&mut peers, &mut buffer),
                    Err(error) => tracing::warn!(%error, "the port of data channels cannot be read"),
                },
                Some(command) = commands.recv() => {
                    peers.command(Instant::now(), command);
                    for _ in 1..TURN_MAX {
                        let Ok(command) = commands.try_recv() else { break };
                        peers.command(Instant::now(), command);
                    }
                }
                Some(opening) = self.openings.recv() => {
                    let session = self.open(&mut peers, opening, sender.clone(), &shared);
                    sessions.spawn(session.run());
                }
                Some(ended) = sessions.join_next(), if !sessions.is_empty() => {
                    // Its peer finds that nobody listens, and is closed.
                    if let Err(error) = ended {
                        tracing::error!(%error, "the session of a data channel failed");
                    }
                }
                () = sleep_until(wake) => peers.pass_time(Instant::now()),
            }
            if stopped.is_some_and(|limit| tokio::time::Instant::now() >= limit) {
                sessions.shutdown().await;
                return;
            }
        }
    }

    fn open(
        &self,
        peers: &mut Peers,
        opening: Opening,
        commands: mpsc::Sender<Command>,
        shared: &Shared,
    ) -> Session {
        let Opening {
            answered,
            visitor,
            share,
        } = opening;
        let (now, id, limits) = (Instant::now(), peers.fresh_id(), self.door.limits);
        let (sender, inbox) = mpsc::channel(INBOX_MESSAGES_MAX);
        let overflow = CancellationToken::new();
        let inbound = Inbox {
            sender,
            room: Arc::new(Semaphore::new(limits.inbox_bytes_max())),
            message_bytes_max: limits.message_bytes_max,
            overflow: overflow.clone(),
        };
        let peer = Peer::new(answered.rtc, inbound, now + limits.handshake_timeout, share);
        peers.add(now, id, answered.fragment, peer);
        let outlet = Outlet::new(id, commands, limits.message_bytes_max, limits.stall);
        Session::new(
            shared.clone(),
            visitor,
            inbox,
            overflow,
            outlet,
            limits,
            answered.message_bytes_max,
        )
    }

    fn receive(&self, peers: &mut Peers, buffer: &mut [u8]) {
        for _ in 0..TURN_MAX {
            match self.socket.try_recv_from(buffer) {
                Ok((bytes, source)) => {
                    let source = SocketAddr::new(source.ip().to_canonical(), source.port());
                    peers.receive(Instant::now(), source, &buffer[..bytes]);
                    self.send(peers);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                // An earlier datagram met a closed port; the next one may be fine.
                Err(_) => {}
            }
        }
    }

    /// Sends what is to be sent. UDP loses datagrams anyway: one that the system has no room for is sent again in time.
    fn send(&self, peers: &mut Peers) {
        let is_v6 = self.socket.local_addr().is_ok_and(|own| own.is_ipv6());
        for datagram in peers.outgoing() {
            let to = match datagram.to {
                SocketAddr::V4(to) if is_v6 => {
                    SocketAddrV6::new(to.ip().to_ipv6_mapped(), to.port(), 0, 0).into()
                }
                to => to,
            };
            if self.socket.try_send_to(&datagram.bytes, to).is_err() {
                metrics::counter!("toolgate_rtc_packets_dropped_total", "why" => "unsent").increment(1);
            }
        }
    }
}

impl RtcDoor {
    /// The right to one more peer, or which limit stands against it.
    pub(crate) fn reserve(&self, who: &Principal) -> Result<PeerShare, Refusal> {
        self.shares.take(who, &self.limits)
    }

    /// Answers an offer: the SDP to give back, and the bytes of one message.
    pub(crate) async fn answer(
        &self,
        offer: &str,
        visitor: Visitor,
        share: PeerShare,
    ) -> Result<(String, usize), Refusal> {
        let answered = self.answerer.accept(offer, &self.limits, Instant::now())?;
        let told = (answered.sdp.clone(), answered.message_bytes_max);
        let opening = Opening {
            answered,
            visitor,
            share,
        };
        let sent = self.openings.send(opening).await;
        sent.map_err(|_| Refusal::unavailable("the gateway is going down"))?;
        Ok(told)
    }
}

async fn sleep_until(wake: Option<tokio::time::Instant>) {
    match wake {
        Some(wake) => tokio::time::sleep_until(wake).await,
        None => std::future::pending().await,
    }
}

/// The addresses that browsers are told: the public ones, or the one that the socket is bound to.
fn candidates(bound: SocketAddr, public: &[(IpAddr, Option<u16>)]) -> io::Result<Vec<SocketAddr>> {
    let unfit = |words: String| Err(io::Error::new(io::ErrorKind::InvalidInput, words));
    if let Some((ip, _)) = public
        .iter()
        .find(|(ip, _)| ip.is_unspecified() || ip.is_multicast())
    {
        return unfit(format!(
            "{ip} is no address that a browser can reach; see rtc.public_addresses"
        ));
    }
    if !public.is_empty() {
        let told = public
            .iter()
            .map(|(ip, port)| SocketAddr::new(*ip, port.unwrap_or(bound.port())));
        return Ok(told.collect());
    }
    match bound.ip().is_unspecified() {
        true => unfit(format!(
            "{bound} is every address of this machine; say in rtc.public_addresses which of them browsers reach"
        )),
        false => Ok(vec![bound]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn browsers_are_told_addresses_that_they_can_reach() {
        let all: SocketAddr = "0.0.0.0:4000".parse().unwrap();
        let one: SocketAddr = "192.0.2.7:4000".parse().unwrap();
        let ip: IpAddr = "203.0.113.9".parse().unwrap();
        assert_eq!(candidates(one, &[]).unwrap(), [one]);
        let told = candidates(all, &[(ip, None), (ip, Some(9))]).unwrap();
        assert_eq!(told.iter().map(SocketAddr::port).collect::<Vec<_>>(), [4000, 9]);
        assert!(
            candidates(all, &[])
                .unwrap_err()
                .to_string()
                .contains("rtc.public_addresses")
        );
        assert!(candidates(one, &[(all.ip(), None)]).is_err());
    }
}
