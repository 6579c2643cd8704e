//! What every bus promises: one suite that all of them pass.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::timeout;
use toolgate_engine::bus::{Bus, BusListener, Notice};
use toolgate_engine::feed::Live;
use toolgate_engine::revocation::Revoked;
use toolgate_kernel::event::{Event, Seq, TextDelta};
use toolgate_kernel::id::{EntityId, KeyId, NodeId, ProjectId, RunId, SessionId, SpaceId};
use toolgate_kernel::time::Time;

/// Longest wait for a notice that must come.
const PATIENCE: Duration = Duration::from_secs(10);

/// Runs every check, each with the connections of three nodes from `make`.
pub async fn all(make: impl AsyncFn() -> [Arc<dyn Bus>; 3]) {
    others_hear_every_notice_in_order(make().await).await;
    a_listener_may_publish(make().await).await;
    a_node_that_joins_again_is_heard_once(make().await).await;
}

/// A node on the bus, and what it hears.
struct Node {
    id: NodeId,
    bus: Arc<dyn Bus>,
    heard: UnboundedReceiver<Notice>,
}

struct Ear(UnboundedSender<Notice>);

impl BusListener for Ear {
    fn heard(&self, notice: &Notice) {
        // The test may have ended.
        let _ = self.0.send(notice.clone());
    }
}

impl Node {
    fn join(number: u8, bus: Arc<dyn Bus>) -> Self {
        let (sender, heard) = unbounded_channel();
        let id = NodeId::from_bytes([number; 16]);
        bus.join(id, Arc::new(Ear(sender)));
        Self { id, bus, heard }
    }
    fn publish(&self, notice: &Notice) {
        self.bus.publish(self.id, notice);
    }
    async fn next(&mut self) -> String {
        let heard = timeout(PATIENCE, self.heard.recv()).await;
        format!("{:?}", heard.expect("a notice comes").expect("the bus is there"))
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
