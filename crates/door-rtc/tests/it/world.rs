//! This door with an engine behind it and a UDP port in front.

use std::sync::{Arc, LazyLock};

use serde_json::{Value, json};
use tokio::task::JoinHandle;
use toolgate_door_rtc::{RtcAddresses, RtcLimits, RtcPort, api, router};
use toolgate_engine::deletion::Deletions;
use toolgate_engine::feed::Scope;
use toolgate_engine::intake::{Answer, Charged, Post, Posted, UnderWay};
use toolgate_engine::retention::Rules;
use toolgate_engine::store::SpaceRecord;
use toolgate_http::describe::document;
use toolgate_kernel::agent::Starter;
use toolgate_kernel::event::Seq;
use toolgate_kernel::id::{MessageId, RunId, SpaceId};
use toolgate_kernel::message::{Message, Part};
use toolgate_kernel::time::Time;
use toolgate_testkit_http::client::Client;
use toolgate_testkit_http::contract::Contract;
use toolgate_testkit_http::rtc_peer::Peer;
pub use toolgate_testkit_http::rtc_peer::WAIT_MAX;
use toolgate_testkit_http::world::{World, WorldSettings, project};
use uuid::Uuid;

static CONTRACT: LazyLock<Contract> = LazyLock::new(|| Contract::new(&document([api()])));

/// A gateway with data channels.
pub struct RtcWorld {
    pub world: World,
    serving: JoinHandle<()>,
}

impl RtcWorld {
    pub async fn new() -> Self {
        Self::with(RtcLimits::default()).await
    }

    pub async fn with(limits: RtcLimits) -> Self {
        Self::made(limits, |_| ()).await
    }

    /// Another node of this gateway, with a UDP port of its own.
    pub async fn another_node(&self) -> Self {
        Self::made(RtcLimits::default(), |settings| settings.beside(&self.world)).await
    }

    pub async fn made(limits: RtcLimits, change: impl FnOnce(&mut WorldSettings)) -> Self {
        let addresses = RtcAddresses {
            listen: "127.0.0.1:0".parse().unwrap(),
            public: Vec::new(),
        };
        let port = RtcPort::bind(addresses, limits).await.unwrap();
        let door = port.door();
        let world = World::new(&CONTRACT, change, |ground| {
            router(ground.shared.clone(), Some(door))
        })
        .await;
        let serving = tokio::spawn(port.run(world.shared.clone(), world.stop.clone()));
        Self { world, serving }
    }

    /// A space with these members, by subject.
    pub async fn space(&self, members: &[&str]) -> SpaceId {
        let id = SpaceId::new(Uuid::now_v7());
        let mut entities = Vec::new();
        for member in members {
            entities.push(self.world.shared.access.entity(project(1), member).await.unwrap());
        }
        let record = SpaceRecord {
            id,
            project: project(1),
            title: None,
            agent: None,
            metadata: None,
            by_backend: true,
            members: entities,
            created: Time(0),
        };
        self.world.engine.create_space(record).await.unwrap();
        id
    }

    /// Says something in a space; the model does what the words say.
    pub async fn say(&self, space: SpaceId, words: &str) -> Posted {
        let parts = vec![Part::Text { text: words.into() }];
        let post = Post {
            project: project(1),
            starter: Starter::Backend,
            charged: Charged::Nobody,
            space: Some(space),
            makes_space: false,
            message: Message::new(MessageId::new(Uuid::now_v7()), None, parts),
            answer: Answer::Default,
            client_tools: Vec::new(),
            categories: None,
            history: Vec::new(),
            told: Vec::new(),
            under_way: UnderWay::Join,
            call: None,
            user_token: None,
            idempotency: None,
        };
        self.world.engine.post(post).await.unwrap()
    }

    /// Waits for the end of a run and deletes it.
    pub async fn delete_ended(&self, run: RunId) {
        let engine = &self.world.engine;
        let mut events = engine.subscribe(Scope::Run(run), Seq(0)).await.unwrap();
        let end = async { while events.next().await.is_ok() {} };
        tokio::time::timeout(WAIT_MAX, end).await.expect("the run ends");
        let deletions = Deletions::new(
            engine.clone(),
            self.world.store.clone(),
            Arc::new(Rules::default()),
        );
        let record = engine.run(run).await.unwrap().unwrap();
        deletions.delete_run(&record).await.unwrap();
    }

    /// A peer with an open channel.
    pub async fn connect(&self, who: &Client<'_>, space: SpaceId, after: u64) -> Peer {
        let mut peer = Peer::new().await;
        let offer = json!({"type": "offer", "sdp": peer.offer(), "after": after});
        let answer = who.post(&path(space), offer).await.expect(200);
        peer.accept(answer["sdp"].as_str().unwrap());
        let ready = peer.next().await;
        assert_eq!(
            (&ready["type"], &ready["seq"]),
            (&json!("CHANNEL_READY"), &json!(after)),
            "{ready}"
        );
        peer
    }

    /// A peer with an open channel that reads messages of so many bytes, and everything from the beginning.
    pub async fn connect_reading(&self, who: &Client<'_>, space: SpaceId, bytes_max: usize) -> Peer {
        let mut peer = Peer::new().await;
        let offer = peer.offer();
        let said = "a=max-message-size:262144";
        assert!(offer.contains(said), "{offer}");
        let offer = offer.replace(said, &format!("a=max-message-size:{bytes_max}"));
        let answer = who.post(&path(space), json!({ "sdp": offer })).await.expect(200);
        peer.accept(answer["sdp"].as_str().unwrap());
        peer.first("CHANNEL_READY").await;
        peer
    }

    /// Stops the gateway; its channels are closed with words.
    pub async fn stop(self) {
        self.world.stop.cancel();
        tokio::time::timeout(WAIT_MAX, self.serving)
            .await
            .unwrap()
            .unwrap();
    }
}

pub fn path(space: SpaceId) -> String {
    format!("/v1/spaces/{space}/rtc")
}

/// A message of a client that leaves the tool open.
pub fn sent(kind: &str, id: &str, payload: Value) -> String {
    sent_for("*", kind, id, payload)
}

/// A message of a client that names a tool.
pub fn sent_for(tool: &str, kind: &str, id: &str, payload: Value) -> String {
    json!({"type": kind, "toolId": tool, "payload": payload, "timestamp": 1, "id": id}).to_string()
}
