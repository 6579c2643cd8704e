//! What one caller may take of a server and of the gateway.

use std::time::Duration;

use reqwest::StatusCode;
use serde_json::Value;
use toolgate_door_mcp::through::{Limits, Places};
use toolgate_fair::Shares;
use toolgate_testkit_mcp::Eras;

use crate::caller::{Caller, Incoming, response, until};
use crate::client::{Client, Era, text};
use crate::gateway::{By, Gateway, exposed, program, turns};

#[tokio::test(flavor = "multi_thread")]
async fn programs_of_sessions_count_for_their_users_and_for_all() {
    let processes = turns(Shares {
        all: 3,
        tenant: 3,
        user: 1,
    });
    let counted = processes.clone();
    let gateway = Gateway::before_with(Eras::Legacy, By::Pipe, |exposed| {
        exposed.processes = Some(processes);
    })
    .await;
    let [ann, bob, cat, dan] = ["ann", "bob", "cat", "dan"].map(|name| Caller::user(&gateway.url, name));
    let refused = async |caller: &Caller| {
        let refused: Value = caller.initialize().await.json().await.unwrap();
        let words = refused["error"]["message"]
            .as_str()
            .unwrap_or_default()
            .to_owned();
        words.contains("as many programs")
    };
    let session = ann.session().await;
    assert!(refused(&ann).await, "one user has more than its share");
    bob.session().await;
    cat.session().await;
    assert_eq!(counted.running(), 3);
    assert!(refused(&dan).await, "there are more programs than may be");
    assert!(session.leave().await.is_success());
    until("a program has ended", || counted.running() == 2).await;
    dan.session().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unused_connection_gives_its_program_to_whoever_needs_one() {
    let processes = turns(Shares::same(1));
    let counted = processes.clone();
    let gateway = Gateway::before_with(Eras::Legacy, By::Pipe, |exposed| {
        exposed.processes = Some(processes);
    })
    .await;
    for name in ["ann", "bob"] {
        let done = Caller::user(&gateway.url, name).call("test_simple_text").await;
        assert_eq!(done["result"]["resultType"], "complete", "{done}");
        assert_eq!(
            counted.running(),
            1,
            "the connection is kept for the next request"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_beyond_those_at_once_wait_for_their_turn() {
    for (eras, by) in [(Eras::Modern, By::Http), (Eras::Legacy, By::Pipe)] {
        let queue = turns(Shares::same(1));
        let counted = queue.clone();
        let gateway = Gateway::before_with(eras, by, |exposed| exposed.turns = queue).await;
        let ann = Caller::user(&gateway.url, "ann");
        let params = serde_json::json!({"name": "wait_until_cancelled", "_meta": {"progressToken": 1}});
        let mut slow = Incoming::of(ann.open("tools/call", params).await);
        assert_eq!(slow.next().await.unwrap()["method"], "notifications/progress");
        let bob = Caller::user(&gateway.url, "bob");
        let waiting = tokio::spawn(async move { bob.call("test_simple_text").await });
        until("the second call waits", || counted.waiting() == 1).await;
        drop(slow);
        let done = waiting.await.unwrap();
        assert_eq!(done["result"]["resultType"], "complete", "{done}");
        until("all turns are over", || counted.running() == 0).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_takes_too_long_is_ended_in_every_pair_of_eras() {
    for era in [Era::Modern, Era::Legacy] {
        for eras in [Eras::Modern, Eras::Legacy] {
            let gateway = Gateway::before_with(eras, By::Http, |exposed| {
                exposed.timeout = Duration::from_secs(2);
            })
            .await;
            let client = Client::connect(&gateway.url, era).await;
            let late = client.call("wait_until_cancelled", serde_json::json!({})).await;
            assert_eq!(late.is_error, Some(true), "{era:?} {eras:?}");
            assert!(text(&late).starts_with("TIMEOUT"), "{late:?}");
            let fixture = gateway.fixture.clone();
            until("the server is told", || fixture.cancelled_calls() == 1).await;
            let next = client.call("test_simple_text", serde_json::json!({})).await;
            assert_ne!(next.is_error, Some(true));
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_asks_its_client_leaves_its_turn_to_others() {
    // In a session the question comes on the stream of its call, whichever era the server speaks.
    for eras in [Eras::Legacy, Eras::Modern] {
        let queue = turns(Shares::same(1));
        let counted = queue.clone();
        let gateway = Gateway::before_with(eras, By::Http, |exposed| exposed.turns = queue).await;
        let session = Caller::user(&gateway.url, "ann").session().await;
        let mut asking = Incoming::of(
            session
                .call_in_session("test_input_required_result_elicitation")
                .await,
        );
        let question = asking.next().await.unwrap();
        assert_eq!(question["method"], "elicitation/create", "{question}");
        assert_eq!(counted.running(), 0, "{eras:?}: a question holds a turn");
        let other = Caller::user(&gateway.url, "bob").call("test_simple_text").await;
        assert_eq!(other["result"]["resultType"], "complete", "{other}");
        let answer = serde_json::json!({"action": "accept", "content": {"name": "Ada"}});
        let answer = serde_json::json!({"jsonrpc": "2.0", "id": question["id"], "result": answer});
        assert_eq!(session.send(&answer).await.status(), StatusCode::ACCEPTED);
        let done = asking.next().await.unwrap();
        assert_eq!(done["result"]["content"][0]["text"], "Hello, Ada!", "{done}");
        until("all turns are over", || counted.running() == 0).await;
    }
    // A client of the newer era is asked by a response, and the server's call waits.
    let queue = turns(Shares::same(1));
    let counted = queue.clone();
    let gateway = Gateway::before_with(Eras::Legacy, By::Http, |exposed| exposed.turns = queue).await;
    let ann = Caller::user(&gateway.url, "ann");
    let asked = ann.call("test_input_required_result_elicitation").await;
    assert_eq!(asked["result"]["resultType"], "input_required", "{asked}");
    assert_eq!(counted.running(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn sessions_have_shares_for_projects_and_users() {
    let limits = Limits {
        sessions: Places {
            all: 3,
            project: 2,
            user: 1,
            spare: 0,
        },
        ..Limits::default()
    };
    let gateway = Gateway::before_server(exposed(program(Eras::Modern)), limits).await;
    let user = |name: &str| Caller::user(&gateway.url, name);
    let ann = user("ann").session().await;
    let refused = user("ann").initialize().await;
    assert_eq!(refused.status(), StatusCode::TOO_MANY_REQUESTS);
    user("bob").session().await;
    assert_eq!(
        user("cat").initialize().await.status(),
        StatusCode::TOO_MANY_REQUESTS
    );
    // What one project may not take is there for another.
    let elsewhere = Caller::other_backend(&gateway.url);
    elsewhere.session().await;
    assert!(ann.leave().await.is_success());
    user("cat").session().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_handle_that_is_pushed_out_is_one_of_the_same_user() {
    let limits = Limits {
        parked: Places {
            all: 4,
            project: 4,
            user: 2,
            spare: 0,
        },
        ..Limits::default()
    };
    let gateway = Gateway::before_server(exposed(program(Eras::Legacy)), limits).await;
    const TOOL: &str = "test_input_required_result_elicitation";
    let ask = async |name: &str| {
        let asked = Caller::user(&gateway.url, name).call(TOOL).await;
        asked["result"]["requestState"].as_str().unwrap().to_owned()
    };
    let answer = async |name: &str, state: &str| {
        let answers = serde_json::json!({"question_1": {"action": "accept", "content": {"name": "Ada"}}});
        let params = serde_json::json!({"name": TOOL, "arguments": {}, "requestState": state, "inputResponses": answers});
        let caller = Caller::user(&gateway.url, name);
        response(caller.open("tools/call", params).await).await
    };
    let theirs = ask("bob").await;
    let first = ask("ann").await;
    ask("ann").await;
    let last = ask("ann").await;
    assert_eq!(answer("ann", &first).await["error"]["code"], -32_602);
    for (name, state) in [("bob", theirs), ("ann", last)] {
        let done = answer(name, &state).await;
        assert_eq!(
            done["result"]["content"][0]["text"], "Hello, Ada!",
            "{name}: {done}"
        );
    }
}
