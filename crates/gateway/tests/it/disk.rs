//! T14: a disk whose syncs fail, a loss of power at any write, and a disk that lies about its syncs. The gateway runs with
//! a library that records what it does to its files (`disk/shim.c`); what a disk would hold at any moment is worked out
//! from that.

mod journal;
mod remains;
mod shim;

use std::hash::{DefaultHasher, Hasher as _};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use reqwest::Method;
use rustix::process::Signal;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::task::JoinSet;
use toolgate_kernel::id::RunId;
use toolgate_testkit::model_server::ModelServer;

use self::journal::{Files, Journal, Step, Unsynced};
use self::remains::{Verdict, look};
use self::shim::Disk;
use crate::harness::client::Client;
use crate::harness::ledger::{Fact, Ledger, RunFacts};
use crate::harness::stored::Stored;
use crate::harness::{
    Answer, Api, Gateway, Random, api_answer, put_staff, put_worker, setting, shown, soon, worker,
};

/// Times that the syncs fail.
const FAULTS: u64 = 6;
/// Clients at work at once.
const CLIENTS: u64 = 4;
/// Runs of each client between two ends of the gateway.
const RUNS: u64 = 8;
/// Bytes of a message: enough that the recorded run moves its write-ahead log into the database by itself.
const MESSAGE_BYTES: usize = 12 << 10;
/// Losses of power after which the real binary is started.
const STARTS: usize = 5;
/// The same for a disk that lies.
const LYING_STARTS: usize = 8;
/// Most records before a loss of power whose syncs a disk may have lied about.
const LIES_MAX: usize = 2000;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_failed_sync_did_not_write_is_acknowledged_by_nobody() {
    let mut random = Random::seeded("disk, failing");
    let models = ModelServer::start().await;
    let (disk, mut gateway) = Disk::with_gateway().await;
    let api = gateway.api();
    put_staff(&api, &models).await;
    let stop = Arc::new(AtomicBool::new(false));
    let mut clients = JoinSet::new();
    for name in 0..CLIENTS {
        let client = Client::new(api.clone(), random.fork(), name);
        clients.spawn(client.work(stop.clone()));
    }
    let mut ledger = Ledger::default();
    let mut refusals = 0;
    for fault in 0..setting("TOOLGATE_DISK_FAULTS", FAULTS) {
        let waiting = Waiting::start(&api, fault).await;
        disk.fail();
        refusals += waiting.refused(&models).await;
        if fault % 2 == 1 {
            // What the failed sync left is in the memory of the system, where the next process finds it.
            disk.kill();
            assert!(soon("the kill", waiting.ask()).await.is_err());
            gateway.ended().await;
            disk.mend();
            gateway.spawn();
            gateway.ready().await;
        } else {
            disk.mend();
        }
        waiting.accepted(&mut ledger).await;
    }
    stop.store(true, Ordering::Relaxed);
    let others = soon("the last run of every client", clients.join_all()).await;
    let others = others.into_iter().chain([ledger]).collect();
    let ledger = Ledger::joined(others);
    disk.kill();
    gateway.ended().await;
    disk.mend();
    let journal = disk.journal();
    let failed = journal.records.iter();
    let failed = failed.filter(|record| record.step == Step::Sync { worked: false });
    eprintln!(
        "disk, failing: {} syncs failed, {refusals} requests refused, {} runs, {} facts",
        failed.count(),
        ledger.runs.len(),
        ledger.facts.len(),
    );
    // The process is gone and the power stays on.
    gateway.spawn();
    gateway.ready().await;
    verify(&ledger, &gateway, &models).await;
    drop(gateway);
    // The power failed: nothing is there that only a failed sync, or none, has written.
    let count = journal.records.len();
    for unsynced in [Unsynced::Lost, Unsynced::Torn] {
        let files = journal.cut(count, count, unsynced, &mut random);
        let gateway = Gateway::start_in(put_back(&files), &[]).await;
        verify(&ledger, &gateway, &models).await;
    }
}

/// What clients were told is in the database, and the gateway shows it.
async fn verify(ledger: &Ledger, gateway: &Gateway, models: &ModelServer) {
    let stored = Stored::in_sqlite(&gateway.database());
    ledger.verify(&stored, models);
    shown::compare(&gateway.api(), &stored).await;
}

/// A run whose call waits for a result, and requests that a failing disk refuses.
struct Waiting {
    api: Api,
    fault: u64,
    run: Value,
    said: String,
    call: String,
}

impl Waiting {
    async fn start(api: &Api, fault: u64) -> Self {
        let said = format!("call:ask text:1 #waits.{fault}.");
        let body = json!({"agent": "worker", "message": said});
        let run = api
            .insist("/v1/runs", &body, Some(&format!("waits-{fault}")))
            .await;
        assert_eq!(run.status, 201, "{run:?}");
        let offer = api.follow(&run.text("runId"), 0).await.offer().await;
        Self {
            api: api.clone(),
            fault,
            run: run.body,
            said,
            call: offer.call().into(),
        }
    }

    fn key(&self) -> String {
        format!("refused-{}", self.fault)
    }

    /// A request for another run.
    fn body(&self) -> Value {
        json!({"agent": "worker", "message": format!("text:2 #refused.{}.", self.fault)})
    }

    fn result(&self) -> (String, Value) {
        let path = format!("/v1/runs/{}/tool-results", text(&self.run, "runId"));
        let result = json!({"answer": format!("#answer.{}.", self.fault)});
        (path, json!({"toolCallId": self.call, "result": result}))
    }

    /// Asks for another run, once.
    async fn ask(&self) -> reqwest::Result<Answer> {
        let request = self.api.request(Method::POST, "/v1/runs");
        let request = request.header("idempotency-key", self.key());
        let request = request.header("content-type", "application/json");
        api_answer(request.body(self.body().to_string())).await
    }

    /// Nothing is accepted while no sync works, and what is stored can be read; how many requests were refused.
    async fn refused(&self, models: &ModelServer) -> usize {
        let (path, result) = self.result();
        let answers = [
            self.ask().await.expect("an answer"),
            self.api.post(&path, &result).await,
            self.api
                .put(&format!("/v1/agents/refused-{}", self.fault), &worker(models))
                .await,
            self.ask().await.expect("an answer"),
        ];
        for answer in &answers {
            assert_eq!(
                (answer.status, &answer.body["code"]),
                (503, &"UNAVAILABLE".into()),
                "{answer:?}"
            );
        }
        let read = self
            .api
            .get(&format!("/v1/runs/{}", text(&self.run, "runId")))
            .await;
        assert_eq!(
            (read.status, &read.body["status"]),
            (200, &"waiting_tool".into()),
            "{read:?}"
        );
        answers.len()
    }

    /// The same requests are done once, now that the disk works.
    async fn accepted(self, ledger: &mut Ledger) {
        let other = self.api.insist("/v1/runs", &self.body(), Some(&self.key())).await;
        assert_eq!(other.status, 201, "{other:?}");
        let (path, result) = self.result();
        let receipt = self.api.insist(&path, &result, None).await;
        assert_eq!(receipt.status, 200, "{receipt:?}");
        ledger.facts.push(Fact::Result {
            run: text(&self.run, "runId").into(),
            call: self.call.clone(),
            value: result["result"].clone(),
            seq: receipt.body["seq"].as_u64().expect("a place"),
        });
        let said = [self.said.clone(), text(&self.body(), "message").into()];
        for (answer, said) in [&self.run, &other.body].into_iter().zip(said) {
            let (run, space) = (
                text(answer, "runId").to_owned(),
                text(answer, "spaceId").to_owned(),
            );
            let message = text(answer, "messageId").into();
            ledger.facts.push(Fact::Message {
                space: space.clone(),
                message,
                said,
            });
            let seen = self.api.finished(&run).await;
            ledger.runs.push(RunFacts { run, space, seen });
        }
    }
}

fn text<'a>(body: &'a Value, member: &str) -> &'a str {
    body[member]
        .as_str()
        .unwrap_or_else(|| panic!("no {member} in {body}"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_acknowledged_survives_a_loss_of_power_at_any_write() {
    let mut random = Random::seeded("disk, power");
    let models = ModelServer::start().await;
    let recording = Recording::make(&models).await;
    let journal = &recording.journal;
    let cuts = recording.cuts(setting("TOOLGATE_DISK_CUTS", 40) as usize, &mut random);
    let mut expected = 0;
    for (number, &count) in cuts.iter().enumerate() {
        for unsynced in [Unsynced::Lost, Unsynced::Torn] {
            let files = journal.cut(count, count, unsynced, &mut random);
            let directory = put_back(&files);
            let facts: Vec<&Ack> = recording.before(count).collect();
            let place = format!(
                "{unsynced:?} after {:?}, number {count}",
                journal.records[count - 1]
            );
            let remains = look(&directory, &place);
            assert_eq!(remains.verdict, Verdict::Whole, "{place}");
            assert_eq!(remains.contradictions, [""; 0], "{place}");
            for ack in &facts {
                assert!(
                    remains.holds(&ack.fact),
                    "{:?} was acknowledged and is lost: {place}",
                    ack.fact
                );
            }
            expected += facts.len();
            if unsynced == Unsynced::Torn && number % (cuts.len() / STARTS).max(1) == 0 {
                go_on(directory, &facts).await;
            }
        }
    }
    eprintln!(
        "disk, power: {} records, {} facts, cut at {} of them in two ways, {expected} facts looked up",
        journal.records.len(),
        recording.acks.len(),
        cuts.len(),
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_disk_that_lies_about_its_syncs_costs_what_it_lost_and_is_found_out() {
    let mut random = Random::seeded("disk, lying");
    let models = ModelServer::start().await;
    let recording = Recording::make(&models).await;
    let lies = recording.lies(setting("TOOLGATE_DISK_LIES", 30) as usize, &mut random);
    let mut found = [0; 3];
    let mut refused = 0;
    for (number, &(honest, count)) in lies.iter().enumerate() {
        let unsynced = [Unsynced::Lost, Unsynced::Torn][number % 2];
        let files = recording.journal.cut(count, honest, unsynced, &mut random);
        let directory = put_back(&files);
        let place = format!("{unsynced:?} after {honest} of {count} records");
        let remains = look(&directory, &place);
        found[remains.verdict as usize] += 1;
        if remains.verdict == Verdict::Whole {
            assert_eq!(remains.contradictions, [""; 0], "{place}");
        }
        if number % (lies.len() / LYING_STARTS).max(1) == 0 {
            refused += usize::from(!starts_or_refuses(directory, remains.verdict, &place).await);
        }
    }
    let [whole, damaged, unusable] = found;
    eprintln!(
        "disk, lying: {} cuts, {whole} whole, {damaged} damaged, {unusable} without a database, {refused} starts refused",
        lies.len()
    );
}

/// What a gateway did to its disk over three lives, and what its clients were told meanwhile.
struct Recording {
    journal: Journal,
    /// In the order of the journal.
    acks: Vec<Ack>,
}

/// Something that was acknowledged before this place of the journal.
struct Ack {
    at: u64,
    fact: Told,
}

/// What a client was told.
#[derive(Debug, Clone)]
enum Told {
    /// A text that stands in one entry of the log of the run.
    Stored { run: RunId, mark: String },
    /// The run has ended.
    Ended { run: RunId },
}

impl Recording {
    /// The first life ends in order, the second is cut off, and the third leaves nothing open.
    async fn make(models: &ModelServer) -> Self {
        let (disk, mut gateway) = Disk::with_gateway().await;
        let disk = Arc::new(disk);
        let api = gateway.api();
        put_worker(&api, models).await;
        let mut acks = Vec::new();
        for life in 0..3 {
            let mut clients = JoinSet::new();
            for client in 0..CLIENTS {
                clients.spawn(chat(api.clone(), disk.clone(), format!("{life}.{client}")));
            }
            acks.extend(clients.join_all().await.into_iter().flatten());
            if life == 1 {
                disk.kill();
            } else {
                gateway.signal(Signal::TERM);
            }
            gateway.ended().await;
            disk.mend();
            if life < 2 {
                gateway.spawn();
                gateway.ready().await;
            }
        }
        acks.sort_by_key(|ack| ack.at);
        let journal = disk.journal();
        let count = journal.records.len();
        let all = journal.cut(count, count, Unsynced::Kept, &mut Random::seeded("disk, record"));
        assert_eq!(
            summary(&all),
            summary(&files_of(disk.data())),
            "the record is not what happened"
        );
        Self { journal, acks }
    }

    /// What was acknowledged when so many records were made.
    fn before(&self, count: usize) -> impl Iterator<Item = &Ack> {
        let place = self.journal.records[count - 1].end;
        self.acks.iter().take_while(move |ack| ack.at <= place)
    }

    /// Numbers of records after which the power fails: right after something was acknowledged, while the write-ahead log is
    /// moved into the database, and anywhere.
    fn cuts(&self, count: usize, random: &mut Random) -> Vec<usize> {
        let first = self.journal.before(self.acks[0].at);
        let end = self.journal.records.len();
        let moved = self.moved(first);
        let mut cuts: Vec<usize> = (0..count)
            .map(|number| match number % 4 {
                0 | 1 => {
                    let ack = random.below(self.acks.len() as u64) as usize;
                    self.journal.before(self.acks[ack].at)
                }
                2 => moved[random.below(moved.len() as u64) as usize] + 1,
                _ => first + random.below((end - first) as u64) as usize + 1,
            })
            .collect();
        cuts.sort_unstable();
        cuts
    }

    /// Numbers of records after which a disk begins to lie, and after which the power fails. Half of them begin while the
    /// write-ahead log is moved into the database: what is lost there, the log may not have any more.
    fn lies(&self, count: usize, random: &mut Random) -> Vec<(usize, usize)> {
        let first = self.journal.before(self.acks[0].at);
        let end = self.journal.records.len();
        let moved = self.moved(first);
        let lie = |number: usize| {
            let honest = match number / 2 % 2 {
                0 => first + random.below((end - first) as u64) as usize,
                _ => moved[random.below(moved.len() as u64) as usize],
            };
            let longest = (end - honest).min(LIES_MAX) as u64;
            (honest, honest + random.below(longest) as usize + 1)
        };
        (0..count).map(lie).collect()
    }

    /// Numbers of the records, from `first` on, that change the database file itself.
    fn moved(&self, first: usize) -> Vec<usize> {
        let records = self.journal.records.iter().enumerate().skip(first);
        let moved = records.filter(|(_, record)| record.name == "toolgate.db");
        moved.map(|(number, _)| number).collect()
    }
}

/// Starts runs one after the other, gives the result that each asks for, and sees it to its end.
async fn chat(api: Api, disk: Arc<Disk>, name: String) -> Vec<Ack> {
    let mut acks = Vec::new();
    let mut told = |fact| acks.push(Ack { at: disk.now(), fact });
    let padding = "x".repeat(MESSAGE_BYTES);
    for number in 0..RUNS {
        let mark = format!("#said.{name}.{number}.");
        let started = api.start(&format!("call:ask text:1 {padding} {mark}")).await;
        let id = text(&started, "runId");
        let run: RunId = id.parse().expect("an id");
        told(Told::Stored { run, mark });
        let mut stream = api.follow(id, 0).await;
        let offer = stream.offer().await;
        let mark = format!("#answer.{name}.{number}.");
        let receipt = api.result(id, offer.call(), &json!({"answer": mark})).await;
        assert_eq!(receipt.status, 200, "{receipt:?}");
        told(Told::Stored { run, mark });
        stream.until("the end", |event| event.kind == "run-finish").await;
        told(Told::Ended { run });
    }
    acks
}

/// A directory for a gateway with these files in it.
fn put_back(files: &Files) -> TempDir {
    let directory = tempfile::tempdir().expect("a directory");
    let data = Gateway::data(directory.path());
    std::fs::create_dir(&data).expect("a directory");
    for (name, content) in files {
        std::fs::write(data.join(name), content).expect("a file can be written");
    }
    directory
}

fn files_of(data: &Path) -> Files {
    let files = std::fs::read_dir(data)
        .expect("a directory")
        .map(|file| file.unwrap());
    files
        .map(|file| (file.file_name().into_string().unwrap(), file.path()))
        .filter(|(name, _)| !name.ends_with(".lock") && !name.ends_with("-shm"))
        .map(|(name, path)| (name, std::fs::read(path).expect("a file")))
        .collect()
}

/// Names, lengths and hashes: short enough to print.
fn summary(files: &Files) -> Vec<(&str, usize, u64)> {
    let hash = |content: &[u8]| {
        let mut hasher = DefaultHasher::new();
        hasher.write(content);
        hasher.finish()
    };
    files
        .iter()
        .map(|(name, content)| (name.as_str(), content.len(), hash(content)))
        .collect()
}

/// Starts the real binary on what is left. It has what was acknowledged, and every run goes on to its end, once.
async fn go_on(directory: TempDir, facts: &[&Ack]) {
    let gateway = Gateway::start_in(directory, &[]).await;
    let api = gateway.api();
    let runs = api.runs().await;
    for ack in facts {
        let (run, mark) = match &ack.fact {
            Told::Stored { run, mark } => (run.to_string(), mark.as_str()),
            Told::Ended { run } => (run.to_string(), "run-finish"),
        };
        let log = api
            .list(&format!("/v1/spaces/{}/events", space_of(&api, &run).await))
            .await;
        let stored = log.iter().filter(|event| event.data.to_string().contains(mark));
        assert_eq!(stored.count(), 1, "{:?} must be stored once", ack.fact);
        assert!(runs.contains(&run), "{run} is not listed");
    }
    for run in &runs {
        let mut stream = api.follow(run, 0).await;
        let end = async {
            while let Some(event) = stream.next().await {
                if event.is_offer() {
                    // One that was answered before is rejected.
                    let answer = api.result(run, event.call(), &json!("late")).await;
                    assert!([200, 409, 410].contains(&answer.status), "{answer:?}");
                }
            }
        };
        soon(&format!("the end of {run}"), end).await;
        assert_consistent(&api, run).await;
        let status = api.get(&format!("/v1/runs/{run}")).await;
        assert_eq!(status.body["status"], "completed", "{status:?}");
    }
}

async fn space_of(api: &Api, run: &str) -> String {
    api.get(&format!("/v1/runs/{run}")).await.text("spaceId")
}

/// The log of a run is in order, and what it says of its end is what its row says.
async fn assert_consistent(api: &Api, run: &str) {
    let log = api.list(&format!("/v1/runs/{run}/events")).await;
    let row = api.get(&format!("/v1/runs/{run}")).await;
    let count = |kind: &str| log.iter().filter(|event| event.kind == kind).count();
    assert!(log.is_sorted_by(|a, b| a.seq < b.seq), "{log:#?}");
    assert_eq!(count("run-start"), 1, "{log:#?}");
    let ended = ["completed", "failed", "cancelled"].contains(&text(&row.body, "status"));
    assert_eq!(count("run-finish"), usize::from(ended), "{row:?} {log:#?}");
    let settled = log
        .iter()
        .filter(|event| event.kind.starts_with("tool-output"))
        .count();
    assert!(settled <= count("tool-input-available"), "{log:#?}");
}

/// Starts the real binary on what a lying disk has left, and tells whether it did. If not, it says why and what to do; if the
/// database is whole, no run in it contradicts itself.
async fn starts_or_refuses(directory: TempDir, verdict: Verdict, place: &str) -> bool {
    let gateway = match Gateway::try_start_in(directory, &[]).await {
        Ok(gateway) => gateway,
        Err(log) => {
            let advised = log.contains("store check") || log.contains("--force");
            assert!(log.contains("toolgate.db") && advised, "{place}: {log}");
            assert!(!log.contains("panicked"), "{place}: {log}");
            assert_ne!(verdict, Verdict::Whole, "{place}: {log}");
            return false;
        }
    };
    let api = gateway.api();
    if verdict == Verdict::Whole {
        for run in api.runs().await {
            assert_consistent(&api, &run).await;
        }
    }
    assert!(!gateway.log().contains("panicked"), "{place}");
    true
}
