//! What every bus promises: one suite that all of them pass.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::timeout;
use toolgate_engine::bus::{Bus, BusHealth, BusListener, Gap, Notice};
use toolgate_engine::feed::Live;
use toolgate_engine::revocation::Revoked;
use toolgate_kernel::event::{Event, Seq, TextDelta};
use toolgate_kernel::id::{EntityId, KeyId, NodeId, ProjectId, RunId, SessionId, SpaceId};
use toolgate_kernel::time::Time;

/// Longest wait for a notice that must come.
const PATIENCE: Duration = Duration::from_secs(20);
/// Pause between two looks at something that gives no sign by itself.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Runs every check, each with the connections of three nodes from `make`.
pub async fn all(make: impl AsyncFn() -> [Arc<dyn Bus>; 3]) {
    others_hear_every_notice_in_order(make().await).await;
    a_listener_may_publish(make().await).await;
    a_node_that_joins_again_is_heard_once(make().await).await;
    a_burst_comes_whole_and_in_order(make().await).await;
    large_notices_come_whole(make().await).await;
}

/// What carries the notices of a bus over a network.
pub trait Carrier {
    /// Takes it away, as a crash would.
    fn stop(&mut self);
    /// Brings it back at the same address.
    fn start(&mut self) -> impl Future<Output = ()>;
}

/// Runs the checks of a bus that can be away, each with the connections of three nodes from `make`.
pub async fn outages(carrier: &mut impl Carrier, make: impl AsyncFn() -> [Arc<dyn Bus>; 3]) {
    an_outage_is_told_of_and_ends_by_itself(carrier, make().await).await;
    publishing_never_waits(carrier, make().await).await;
}

/// A node on the bus, and what it hears.
struct Node {
    id: NodeId,
    bus: Arc<dyn Bus>,
    heard: UnboundedReceiver<Notice>,
    missed: UnboundedReceiver<Gap>,
}

struct Ear {
    heard: UnboundedSender<Notice>,
    missed: UnboundedSender<Gap>,
}

impl BusListener for Ear {
    // The test may have ended.
    fn heard(&self, notice: &Notice) {
        let _ = self.heard.send(notice.clone());
    }
    fn missed(&self, gap: Gap) {
        let _ = self.missed.send(gap);
    }
}

impl Node {
    fn join(number: u8, bus: Arc<dyn Bus>) -> Self {
        let (heard_sender, heard) = unbounded_channel();
        let (missed_sender, missed) = unbounded_channel();
        let id = NodeId::from_bytes([number; 16]);
        let ear = Ear {
            heard: heard_sender,
            missed: missed_sender,
        };
        bus.join(id, Arc::new(ear));
        Self {
            id,
            bus,
            heard,
            missed,
        }
    }
    fn publish(&self, notice: &Notice) {
        self.bus.publish(self.id, notice);
    }
    async fn next(&mut self) -> String {
        format!("{:?}", self.next_notice().await)
    }
    async fn next_notice(&mut self) -> Notice {
        let heard = timeout(PATIENCE, self.heard.recv()).await;
        heard.expect("a notice comes").expect("the bus is there")
    }
    async fn until_health(&self, is: impl Fn(BusHealth) -> bool) {
        let began = Instant::now();
        while !is(self.bus.health()) {
            assert!(began.elapsed() < PATIENCE, "{:?}", self.bus.health());
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }
}

fn nodes(buses: [Arc<dyn Bus>; 3]) -> [Node; 3] {
    let mut number = 0;
    buses.map(|bus| {
        number += 1;
        Node::join(number, bus)
    })
}

fn poke(number: u8) -> Notice {
    Notice::Poke {
        run: RunId::from_bytes([number; 16]),
        node: Some(NodeId::from_bytes([number; 16])),
    }
}

fn one_of_each() -> Vec<Notice> {
    let (space, run) = (SpaceId::from_bytes([7; 16]), RunId::from_bytes([8; 16]));
    let delta = TextDelta {
        id: "1.0".into(),
        delta: "words, and ümläuts".into(),
    };
    let live = Live {
        run,
        first: Seq(5_000_033),
        time: Time(1_800_000_000_000),
        events: vec![Event::from(delta)],
    };
    vec![
        Notice::Live {
            space,
            live: Arc::new(live),
            again: true,
        },
        Notice::Committed {
            space,
            run: Some(run),
            first: Seq::durable(6),
            last: Seq::durable(8),
            ends_step: true,
        },
        Notice::Committed {
            space,
            run: None,
            first: Seq::durable(9),
            last: Seq::durable(9),
            ends_step: false,
        },
        poke(1),
        Notice::Wanted { space },
        Notice::Revoked(Revoked::Key(KeyId::from_bytes([9; 16]))),
        Notice::Revoked(Revoked::Member {
            space,
            member: EntityId::from_bytes([10; 16]),
        }),
        Notice::Revoked(Revoked::Project(ProjectId::from_bytes([11; 16]))),
        Notice::Revoked(Revoked::Session(SessionId::from_bytes([12; 16]))),
        Notice::Revoked(Revoked::Space(SpaceId::from_bytes([13; 16]))),
        Notice::Revoked(Revoked::Words(SpaceId::from_bytes([14; 16]))),
        Notice::Revoked(Revoked::Entity(EntityId::from_bytes([15; 16]))),
    ]
}

async fn others_hear_every_notice_in_order(buses: [Arc<dyn Bus>; 3]) {
    let [a, mut b, mut c] = nodes(buses);
    let notices = one_of_each();
    notices.iter().for_each(|notice| a.publish(notice));
    for listener in [&mut b, &mut c] {
        for notice in &notices {
            assert_eq!(listener.next().await, format!("{notice:?}"));
        }
    }
    // A node does not hear itself: the first that it hears is another's.
    let mut a = a;
    b.publish(&poke(9));
    assert_eq!(a.next().await, format!("{:?}", poke(9)));
}

/// Answers every notice but an answer.
struct Echo {
    id: NodeId,
    bus: Arc<dyn Bus>,
}

impl BusListener for Echo {
    fn heard(&self, notice: &Notice) {
        if matches!(notice, Notice::Wanted { .. }) {
            self.bus.publish(self.id, &poke(5));
        }
    }
    fn missed(&self, _: Gap) {}
}

async fn a_listener_may_publish([first, second, _]: [Arc<dyn Bus>; 3]) {
    let mut a = Node::join(1, first);
    let id = NodeId::from_bytes([2; 16]);
    let bus = second.clone();
    second.join(id, Arc::new(Echo { id, bus }));
    a.publish(&Notice::Wanted {
        space: SpaceId::from_bytes([7; 16]),
    });
    assert_eq!(a.next().await, format!("{:?}", poke(5)));
}

async fn a_node_that_joins_again_is_heard_once([first, second, _]: [Arc<dyn Bus>; 3]) {
    let a = Node::join(1, first);
    let mut left = Node::join(2, second.clone());
    let mut back = Node::join(2, second);
    a.publish(&poke(3));
    assert_eq!(back.next().await, format!("{:?}", poke(3)));
    assert!(left.heard.recv().await.is_none(), "the bus has let go of it");
}

/// A notice that is told from others by a number.
fn numbered(number: u64) -> Notice {
    Notice::Committed {
        space: SpaceId::from_bytes([7; 16]),
        run: None,
        first: Seq::durable(number),
        last: Seq::durable(number),
        ends_step: false,
    }
}

fn number_of(notice: &Notice) -> u64 {
    match notice {
        Notice::Committed { last, .. } => last.index(),
        other => panic!("{other:?}"),
    }
}

async fn a_burst_comes_whole_and_in_order(buses: [Arc<dyn Bus>; 3]) {
    const BURST: u64 = 5_000;
    let [a, mut b, mut c] = nodes(buses);
    (1..=BURST).for_each(|number| a.publish(&numbered(number)));
    for listener in [&mut b, &mut c] {
        for number in 1..=BURST {
            assert_eq!(number_of(&listener.next_notice().await), number);
        }
    }
}

async fn large_notices_come_whole(buses: [Arc<dyn Bus>; 3]) {
    let [a, mut b, mut c] = nodes(buses);
    let delta = |length: usize| {
        Event::from(TextDelta {
            id: "1.0".into(),
            delta: "wörter ".repeat(length),
        })
    };
    // Small ones, one beyond what PostgreSQL notifies of, and together more than one notice holds.
    let events: Vec<_> = [1, 2_000, 90_000, 3, 60_000, 60_000].map(delta).into();
    let live = Arc::new(Live {
        run: RunId::from_bytes([8; 16]),
        first: Seq(5_000_033),
        time: Time(1_800_000_000_000),
        events,
    });
    let space = SpaceId::from_bytes([7; 16]);
    a.publish(&Notice::Live {
        space,
        live: live.clone(),
        again: false,
    });
    a.publish(&numbered(1));
    for listener in [&mut b, &mut c] {
        let mut heard = Vec::new();
        while let Notice::Live { live, .. } = listener.next_notice().await {
            heard.extend(placed(&live));
        }
        assert_eq!(heard, placed(&live));
    }
}

fn placed(live: &Live) -> Vec<(Seq, Event)> {
    let events = live.events.iter().cloned().enumerate();
    events
        .map(|(index, event)| (Seq(live.first.0 + index as u64 * Seq::LANES), event))
        .collect()
}

async fn an_outage_is_told_of_and_ends_by_itself(carrier: &mut impl Carrier, buses: [Arc<dyn Bus>; 3]) {
    let [a, mut b, c] = nodes(buses);
    a.publish(&numbered(1));
    assert_eq!(number_of(&b.next_notice().await), 1);
    carrier.stop();
    for node in [&a, &b, &c] {
        node.until_health(|health| health == BusHealth::Away).await;
    }
    a.publish(&numbered(2));
    let gap = timeout(PATIENCE, b.missed.recv()).await;
    gap.expect("whoever cannot hear is told")
        .expect("the bus is there");
    carrier.start().await;
    for node in [&a, &b, &c] {
        node.until_health(|health| health != BusHealth::Away).await;
    }
    let mut last = 1;
    for number in 3.. {
        // What was said before the others were back may be lost; what comes, comes in order and once.
        a.publish(&numbered(number));
        let Ok(heard) = timeout(LOOK_EVERY * 10, b.heard.recv()).await else {
            assert!(number < 100, "nothing is heard after the outage");
            continue;
        };
        let heard = number_of(&heard.expect("the bus is there"));
        assert!(heard > last, "{heard} after {last}");
        last = heard;
        if heard > 2 {
            break;
        }
    }
    let mut gaps = Vec::new();
    while let Ok(gap) = b.missed.try_recv() {
        gaps.push(gap);
    }
    assert!(!gaps.is_empty(), "what was lost meanwhile is looked for");
}

async fn publishing_never_waits(carrier: &mut impl Carrier, buses: [Arc<dyn Bus>; 3]) {
    let [a, mut b, _] = nodes(buses);
    carrier.stop();
    a.until_health(|health| health == BusHealth::Away).await;
    let piece = "x".repeat(16 << 10);
    let live = Arc::new(Live {
        run: RunId::from_bytes([8; 16]),
        first: Seq(5_000_033),
        time: Time(1_800_000_000_000),
        events: vec![Event::from(TextDelta {
            id: "1.0".into(),
            delta: piece,
        })],
    });
    let space = SpaceId::from_bytes([7; 16]);
    let began = Instant::now();
    for _ in 0..4_096 {
        // 64 MiB: more than any bus keeps.
        a.publish(&Notice::Live {
            space,
            live: live.clone(),
            again: false,
        });
    }
    assert!(began.elapsed() < PATIENCE);
    while b.missed.try_recv().is_ok() {}
    carrier.start().await;
    a.until_health(|health| health != BusHealth::Away).await;
    b.until_health(|health| health != BusHealth::Away).await;
    let gap = timeout(PATIENCE, b.missed.recv()).await;
    gap.expect("whoever was not told everything knows it")
        .expect("the bus is there");
}
