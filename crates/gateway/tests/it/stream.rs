//! T6: the stream is cut at every event and taken up again. Nothing is missing, nothing comes twice.

use std::collections::BTreeMap;

use serde_json::json;
use toolgate_testkit::model_script;
use toolgate_testkit::model_server::ModelServer;

use crate::harness::{Api, Event, gateway, soon};

const WORDS: usize = 6;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_cut_at_any_event_of_a_step_goes_on_and_misses_no_word() {
    let models = ModelServer::start().await;
    let gateway = gateway(&models).await;
    let api = gateway.api();
    // The model is held when it has said its words and not yet that it is done: the role, then the words.
    let script = format!("text:{WORDS} hold:{}", WORDS + 1);
    let mut before_hold = None;
    for cut in 0.. {
        let started = api.start(&script).await;
        let run = started["runId"].as_str().unwrap();
        models.held(cut as u64 + 1).await;
        let mut reader = Reader::new(&api, run);
        reader.read(cut).await;
        reader.read_words(WORDS).await;
        let count = *before_hold.get_or_insert(reader.count);
        assert_eq!(reader.count, count, "two connections show as much as one");
        models.release(1);
        reader.finish().await;
        reader.has_all().await;
        assert_eq!(reader.told, reader.whole);
        assert_eq!(reader.texts(), [model_script::text(WORDS)]);
        if cut == count {
            break;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_goes_on_over_a_crash_at_any_event() {
    let models = ModelServer::start().await;
    let mut gateway = gateway(&models).await;
    let api = gateway.api();
    for cut in 0.. {
        let started = api.start("call:clock call:ask text:3 delay:1").await;
        let run = started["runId"].as_str().unwrap();
        let mut reader = Reader::new(&api, run);
        reader.read(cut).await;
        gateway.crash().await;
        reader.finish().await;
        reader.has_all().await;
        assert_eq!(reader.texts(), [model_script::text(3)]);
        if reader.count < cut {
            break;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_ended_run_is_replayed_from_any_place_also_after_a_restart() {
    let models = ModelServer::start().await;
    let mut gateway = gateway(&models).await;
    let api = gateway.api();
    let started = api.start("call:clock call:ask tools:2 text:3").await;
    let (run, space) = (
        started["runId"].as_str().unwrap(),
        started["spaceId"].as_str().unwrap(),
    );
    Reader::new(&api, run).finish().await;
    let log = api.finished(run).await;
    gateway.crash().await;
    for from in 0..log.len() {
        let cursor = if from == 0 { 0 } else { log[from - 1].seq };
        // A cursor between two durable events is the place of a delta that is gone by now.
        for cursor in [cursor, cursor + 1] {
            assert_eq!(api.follow(run, cursor).await.rest().await, log[from..]);
        }
    }
    assert_eq!(api.list(&format!("/v1/spaces/{space}/events")).await, log);
}

/// A client that reads a run over several connections and answers the calls it is offered.
struct Reader<'a> {
    api: &'a Api,
    run: &'a str,
    cursor: u64,
    /// Events read so far.
    count: usize,
    durable: Vec<(u64, String)>,
    /// The text of each part, as the deltas told it.
    told: BTreeMap<String, String>,
    /// The text of each part, as its end told it.
    whole: BTreeMap<String, String>,
}

impl<'a> Reader<'a> {
    fn new(api: &'a Api, run: &'a str) -> Self {
        let (told, whole) = (BTreeMap::new(), BTreeMap::new());
        Self {
            api,
            run,
            cursor: 0,
            count: 0,
            durable: Vec::new(),
            told,
            whole,
        }
    }

    /// Reads on one connection while `more` holds, or to the end of the stream.
    async fn read_while(&mut self, more: impl Fn(&Self) -> bool) {
        soon("the next event", async {
            let mut stream = self.api.follow(self.run, self.cursor).await;
            while more(self) {
                match stream.next().await {
                    Some(event) => self.take(&event).await,
                    None => return,
                }
            }
        })
        .await;
    }
    async fn read(&mut self, count: usize) {
        self.read_while(|reader| reader.count < count).await;
    }
    async fn read_words(&mut self, count: usize) {
        let told = |reader: &Self| {
            reader
                .told
                .values()
                .map(|told| told.split_whitespace().count())
                .sum::<usize>()
        };
        self.read_while(|reader| told(reader) < count).await;
    }
    async fn finish(&mut self) {
        self.read_while(|_| true).await;
    }

    async fn take(&mut self, event: &Event) {
        assert!(event.seq > self.cursor, "{} after {}", event.seq, self.cursor);
        self.cursor = event.seq;
        self.count += 1;
        if event.is_durable() {
            self.durable.push((event.seq, event.kind.clone()));
        }
        match event.kind.as_str() {
            "text-delta" => *self.told.entry(event.text("id").into()).or_default() += event.text("delta"),
            "text-end" => drop(
                self.whole
                    .insert(event.text("id").into(), event.text("text").into()),
            ),
            "step-retry" => self.told.clear(),
            _ => {}
        }
        if event.is_offer() {
            let receipt = self
                .api
                .result(self.run, event.call(), &json!({"answer": "yes"}))
                .await;
            assert_eq!(receipt.status, 200, "{receipt:?}");
        }
    }

    /// Everything that is stored was read once, and nothing else.
    async fn has_all(&self) {
        let log = self.api.list(&format!("/v1/runs/{}/events", self.run)).await;
        let stored: Vec<(u64, String)> = log.into_iter().map(|event| (event.seq, event.kind)).collect();
        assert_eq!(self.durable, stored);
    }

    fn texts(&self) -> Vec<String> {
        self.whole.values().cloned().collect()
    }
}
