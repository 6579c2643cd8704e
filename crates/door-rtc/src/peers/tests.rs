//! Connections over a network that is a list, in a time that is a number: nothing here waits or sleeps.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use str0m::change::SdpAnswer;
use str0m::channel::ChannelId;
use str0m::net::{DatagramRecv, Protocol, Receive};
use str0m::{Candidate, Event, Input, Output, Rtc};
use tokio::sync::{Semaphore, mpsc};
use tokio_util::sync::CancellationToken;
use toolgate_access::Principal;
use toolgate_kernel::id::ProjectId;

use super::{PeerId, Peers};
use crate::RtcLimits;
use crate::offer::Answerer;
use crate::outlet::Command;
use crate::peer::{Inbound, Inbox, Message, Peer};
use crate::peer_shares::PeerShares;

const GATEWAY: &str = "127.0.0.1:5000";
const CLIENT: &str = "127.0.0.1:6000";
const STEP: Duration = Duration::from_millis(10);

fn address(text: &str) -> SocketAddr {
    text.parse().unwrap()
}

/// A gateway's peers and one client, with what travels between them.
struct Net {
    now: Instant,
    peers: Peers,
    id: PeerId,
    inbox: mpsc::Receiver<Inbound>,
    overflow: CancellationToken,
    client: Rtc,
    channel: Option<ChannelId>,
    received: Vec<String>,
    closed: bool,
}

impl Net {
    fn new() -> Self {
        let (now, limits) = (Instant::now(), RtcLimits::default());
        let mut client = Rtc::builder()
            .set_crypto_provider(Arc::new(str0m::crypto::from_feature_flags()))
            .build(now);
        client.add_local_candidate(Candidate::host(address(CLIENT), "udp").unwrap());
        let mut changes = client.sdp_api();
        changes.add_channel("tools".into());
        let (offer, pending) = changes.apply().unwrap();
        let answerer = Answerer::new(vec![address(GATEWAY)]).unwrap();
        let answered = answerer.accept(&offer.to_sdp_string(), &limits, now).unwrap();
        // A client that sends more than it may.
        let sdp = answered
            .sdp
            .replace("a=max-message-size:65536", "a=max-message-size:262144");
        let answer = SdpAnswer::from_sdp_string(&sdp).unwrap();
        client.sdp_api().accept_answer(pending, answer).unwrap();
        let (sender, inbox) = mpsc::channel(8);
        let inbound = Inbox {
            sender,
            room: Arc::new(Semaphore::new(limits.inbox_bytes_max())),
            message_bytes_max: limits.message_bytes_max,
            overflow: CancellationToken::new(),
        };
        let overflow = inbound.overflow.clone();
        let who = Principal::backend(ProjectId::from_bytes([1; 16]));
        let share = Arc::new(PeerShares::default()).take(&who, &limits).unwrap();
        let mut peers = Peers::new(vec![address(GATEWAY)]);
        let id = peers.fresh_id();
        let peer = Peer::new(answered.rtc, inbound, now + limits.handshake_timeout, share);
        peers.add(now, id, answered.fragment, peer);
        Self {
            now,
            peers,
            id,
            inbox,
            overflow,
            client,
            channel: None,
            received: Vec::new(),
            closed: false,
        }
    }

    /// Lets both sides talk for a while.
    fn talk(&mut self, span: Duration) {
        let end = self.now + span;
        while self.now < end {
            self.now += STEP;
            self.client.handle_input(Input::Timeout(self.now)).unwrap();
            self.peers.pass_time(self.now);
            while self.exchange() {}
        }
    }

    /// Lets time pass for the gateway alone.
    fn silence(&mut self, span: Duration) {
        let end = self.now + span;
        while self.now < end {
            self.now += STEP;
            self.peers.pass_time(self.now);
            self.peers.outgoing().for_each(drop);
        }
    }

    /// Carries what is on its way in both directions; whether there was anything.
    fn exchange(&mut self) -> bool {
        let mut carried = false;
        for datagram in self.peers.outgoing().collect::<Vec<_>>() {
            carried = true;
            let contents = DatagramRecv::try_from(datagram.bytes.as_slice()).unwrap();
            let receive = Receive {
                proto: Protocol::Udp,
                source: address(GATEWAY),
                destination: address(CLIENT),
                contents,
            };
            self.client
                .handle_input(Input::Receive(self.now, receive))
                .unwrap();
        }
        loop {
            match self.client.poll_output().unwrap() {
                Output::Timeout(_) => return carried,
                Output::Transmit(datagram) => {
                    carried = true;
                    self.peers.receive(self.now, address(CLIENT), &datagram.contents);
                }
                Output::Event(Event::ChannelOpen(id, _)) => self.channel = Some(id),
                Output::Event(Event::ChannelData(data)) => {
                    self.received.push(String::from_utf8(data.data).unwrap());
                }
                Output::Event(Event::ChannelClose(_) | Event::Closed) => self.closed = true,
                Output::Event(_) => {}
            }
        }
    }

    fn opened() -> Self {
        let mut net = Self::new();
        net.talk(Duration::from_secs(2));
        assert!(matches!(net.inbox.try_recv(), Ok(Inbound::Opened)));
        net
    }

    fn say(&mut self, text: &str) {
        let id = self.channel.expect("the channel is open");
        assert!(
            self.client
                .channel(id)
                .unwrap()
                .write(false, text.as_bytes())
                .unwrap()
        );
        self.talk(Duration::from_millis(100));
    }

    fn write(&mut self, text: &str) {
        let permit = Arc::new(Semaphore::new(1)).try_acquire_owned().unwrap();
        let command = Command::Write {
            peer: self.id,
            text: text.into(),
            permit,
        };
        self.peers.command(self.now, command);
    }
}

#[test]
fn messages_travel_both_ways_and_a_close_comes_after_what_was_written() {
    let mut net = Net::opened();
    net.say("hello");
    assert!(matches!(net.inbox.try_recv(), Ok(Inbound::Message(Message::Text(text), _)) if text == "hello"));
    net.write("one");
    net.write("two");
    let peer = net.id;
    net.peers.command(net.now, Command::Close { peer, why: "test" });
    net.talk(Duration::from_secs(2));
    assert_eq!(net.received, ["one", "two"]);
    assert!(net.closed && net.peers.is_empty());
}

#[test]
fn a_peer_that_falls_silent_is_gone_after_fifteen_seconds() {
    let mut net = Net::opened();
    net.silence(Duration::from_secs(13));
    assert!(!net.peers.is_empty());
    net.silence(Duration::from_secs(4));
    assert!(net.peers.is_empty());
    assert!(matches!(
        net.inbox.try_recv(),
        Err(mpsc::error::TryRecvError::Disconnected)
    ));
}

#[test]
fn a_peer_that_talks_stays_however_long_it_has_nothing_to_say() {
    let mut net = Net::opened();
    net.talk(Duration::from_secs(120));
    net.say("still here");
    assert!(matches!(net.inbox.try_recv(), Ok(Inbound::Message(..))));
}

#[test]
fn a_handshake_that_takes_too_long_is_given_up() {
    let mut net = Net::new();
    net.silence(Duration::from_secs(14));
    assert!(!net.peers.is_empty());
    net.silence(Duration::from_secs(2));
    assert!(net.peers.is_empty() && net.peers.next_wake().is_none());
}

#[test]
fn a_session_that_is_gone_closes_its_peer() {
    let mut net = Net::opened();
    net.inbox.close();
    net.talk(Duration::from_secs(5));
    assert!(net.closed && net.peers.is_empty());
}

#[test]
fn a_peer_that_floods_its_session_is_told_so_before_it_is_closed() {
    let mut net = Net::opened();
    let large = "x".repeat(60_000);
    for number in 1..=6 {
        let id = net.channel.unwrap();
        let mut channel = net.client.channel(id).unwrap();
        assert!(channel.write(false, large.as_bytes()).unwrap());
        net.talk(Duration::from_secs(1));
        assert_eq!(
            net.overflow.is_cancelled(),
            number > 4,
            "four messages of the largest size may wait, and no fifth"
        );
    }
    // The session says why and closes.
    net.write("too fast");
    let peer = net.id;
    net.peers.command(
        net.now,
        Command::Close {
            peer,
            why: "too_fast",
        },
    );
    net.talk(Duration::from_secs(2));
    assert_eq!(net.received, ["too fast"]);
    assert!(net.closed && net.peers.is_empty());
    let mut handed = 0;
    while net.inbox.try_recv().is_ok() {
        handed += 1;
    }
    assert_eq!(handed, 4, "what came after is dropped");
}

#[test]
fn damaged_and_forged_datagrams_do_not_end_a_connection() {
    let mut net = Net::opened();
    for length in [1, 13, 14, 60, 1200] {
        let mut record = vec![0xab; length];
        record[0] = 23;
        net.peers.receive(net.now, address(CLIENT), &record);
        net.peers.receive(net.now, address("127.0.0.1:6001"), &record);
    }
    net.say("still here");
    assert!(matches!(net.inbox.try_recv(), Ok(Inbound::Message(..))));
}
