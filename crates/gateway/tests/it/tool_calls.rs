//! Answers that a request waits for, and calls without a model, through the real binary.

use reqwest::Method;
use rustix::process::Signal;
use serde_json::{Value, json};
use toolgate_testkit::model_server::ModelServer;

use crate::harness::{Answer, Api, Gateway, LOOK, MARK, Outside, api_answer, put_agent, soon, tool, worker};

/// A gateway with an agent of tools that reach a held server, and the model that nobody may ask.
async fn caller() -> (Gateway, Outside, ModelServer) {
    let (outside, models) = (Outside::start().await, ModelServer::start().await);
    let settings = outside.settings();
    let settings: Vec<(&str, &str)> = settings
        .iter()
        .map(|(name, value)| (*name, value.as_str()))
        .collect();
    let gateway = Gateway::start(&settings).await;
    let request = |name: &str, method: &str| {
        json!({
            "name": name, "description": "Asks.", "executionType": "request",
            "execution": {"url": outside.url(&format!("/{name}")), "method": method},
        })
    };
    let shown = json!({"visibility": "public"});
    let agent = json!({
        "access": "public",
        "instructions": "None.",
        "model": {"provider": "openai", "name": "script", "baseUrl": models.base_url(), "apiKey": "none"},
        "tools": [
            request("look", "GET"),
            request("order", "POST"),
            tool("ask", Value::Null, json!({})),
            tool("shown", json!({"mode": "pass-through"}), shown),
            tool("quiet", json!({"mode": "pass-through"}), json!({})),
            tool("risky", json!({"mode": "pass-through"}), json!({"approval": "always"})),
        ],
    });
    put_agent(&gateway.api(), "caller", &agent).await;
    (gateway, outside, models)
}

/// Calls a tool of the agent `caller` under a key, so that the call can be asked for again.
async fn call(api: &Api, tool: &str, more: Value, wait: &str) -> reqwest::Result<Answer> {
    let mut body = json!({"agent": "caller"});
    body.as_object_mut()
        .expect("an object")
        .extend(more.as_object().expect("an object").clone());
    let request = api
        .request(Method::POST, &format!("/v1/tools/{tool}/call"))
        .header("content-type", "application/json")
        .header("idempotency-key", tool)
        .header("prefer", wait)
        .body(body.to_string());
    api_answer(request).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_kill_in_the_middle_of_a_call_loses_neither_the_call_nor_its_answer() {
    let (mut gateway, outside, models) = caller().await;
    let mut told = Vec::new();
    for (tool, held) in [("order", 1), ("look", 2)] {
        let api = gateway.api();
        let calling = tokio::spawn(async move { call(&api, tool, json!({}), "wait=60").await });
        outside.held(held).await;
        gateway.kill();
        assert!(
            calling.await.expect("no panic").is_err(),
            "the connection is gone"
        );
        if tool == "look" {
            outside.open();
        }
        gateway.spawn();
        gateway.ready().await;
        // Whoever asked asks again, and is told of the same call.
        let again = call(&gateway.api(), tool, json!({}), "wait=60")
            .await
            .expect("an answer");
        assert_eq!(again.status, 200, "{again:?}");
        told.push(again);
    }
    let [order, look] = told.as_slice() else {
        unreachable!()
    };
    // One that may have done something is not made again, the other is, under the same key.
    assert_eq!(
        (order.text("status").as_str(), &order.body["error"]["code"]),
        ("failed", &json!("INTERRUPTED"))
    );
    assert_eq!(outside.asked("/order").len(), 1);
    assert_eq!(
        (look.text("status").as_str(), &look.body["output"]["body"]),
        ("completed", &json!({"said": MARK}))
    );
    let keys: Vec<String> = outside
        .asked("/look")
        .iter()
        .map(|asked| asked.header("idempotency-key").to_owned())
        .collect();
    assert_eq!(keys, [look.text("toolCallId"), look.text("toolCallId")]);
    assert_eq!(models.requests(), 0, "no model was asked");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn people_and_clients_take_their_part_over_a_kill() {
    let (mut gateway, _outside, models) = caller().await;
    let user = gateway.api().as_user("ada");
    let space = user
        .post("/v1/spaces", &json!({"agent": "caller"}))
        .await
        .text("id");
    let place = json!({"spaceId": space, "arguments": {"a": 1}});

    let waits = call(&gateway.api(), "risky", place.clone(), "wait=60")
        .await
        .expect("an answer");
    assert_eq!(
        (waits.status, &waits.body["status"]),
        (202, &json!("waiting_approval")),
        "{waits:?}"
    );
    let approval = waits.body["pending"]["approvals"][0]["approvalId"]
        .as_str()
        .expect("an id");
    let offered = call(&user, "ask", place.clone(), "wait=0")
        .await
        .expect("an answer");
    assert_eq!(offered.status, 202, "{offered:?}");
    gateway.crash().await;

    let yes = json!({"approved": true});
    let decided = user
        .post(&format!("/v1/approvals/{approval}?wait=60s"), &yes)
        .await;
    assert_eq!(
        (decided.status, &decided.body["run"]["status"]),
        (200, &json!("completed")),
        "{decided:?}"
    );
    let told = call(&gateway.api(), "risky", place.clone(), "wait=60")
        .await
        .expect("an answer");
    assert_eq!(
        (told.status, &told.body["output"]),
        (200, &json!({"a": 1})),
        "{told:?}"
    );

    let result = user
        .result(
            &offered.text("runId"),
            &offered.text("toolCallId"),
            &json!("seen"),
        )
        .await;
    assert_eq!(result.status, 200, "{result:?}");
    let told = call(&user, "ask", place.clone(), "wait=60")
        .await
        .expect("an answer");
    assert_eq!(
        (told.status, &told.body["output"]),
        (200, &json!("seen")),
        "{told:?}"
    );

    // A user calls what it is shown; of the rest it learns that it ran.
    let told = call(&user, "shown", place.clone(), "wait=60")
        .await
        .expect("an answer");
    assert_eq!(
        (told.status, &told.body["output"]),
        (200, &json!({"a": 1})),
        "{told:?}"
    );
    let refused = call(&user, "quiet", place.clone(), "wait=60")
        .await
        .expect("an answer");
    assert_eq!(refused.status, 404, "{refused:?}");
    let told = call(&gateway.api(), "quiet", place, "wait=60")
        .await
        .expect("an answer");
    let run = format!("/v1/runs/{}", told.text("runId"));
    for path in [run.clone(), format!("{run}/events")] {
        let seen = user.get(&path).await.body.to_string();
        assert!(seen.contains("quiet") && !seen.contains("\"a\""), "{seen}");
    }
    assert_eq!(models.requests(), 0, "no model was asked");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wait_is_one_stream_of_its_user_and_ends_with_its_client_or_the_gateway() {
    let models = ModelServer::start().await;
    let mut gateway = Gateway::start(&[("TOOLGATE_QUOTAS_STREAMS", "1")]).await;
    let mut worker = worker(&models);
    worker["access"] = json!("public");
    put_agent(&gateway.api(), "worker", &worker).await;
    let user = gateway.api().as_user("ada");
    let start = |script: &str| json!({"agent": "worker", "message": script});
    let wait = |script: &str| {
        let (user, body) = (user.clone(), start(script));
        tokio::spawn(async move { user.try_post("/v1/runs?wait=60s", &body).await })
    };
    let told = user
        .post("/v1/runs?wait=60s", &start("call:clock say:noon"))
        .await;
    assert_eq!(
        (told.status, &told.body["text"]),
        (200, &json!("noon")),
        "{told:?}"
    );

    let waiting = wait("hold:1 text:3");
    models.held(1).await;
    let busy = user.post("/v1/runs?wait=60s", &start("say:hello")).await;
    assert_eq!(
        (busy.status, busy.text("code").as_str()),
        (429, "TOO_MANY_STREAMS")
    );
    waiting.abort();
    let told = soon("a wait of one's own", async {
        loop {
            let told = user.post("/v1/runs?wait=60s", &start("say:hello")).await;
            if told.status != 429 {
                return told;
            }
            tokio::time::sleep(LOOK).await;
        }
    })
    .await;
    assert_eq!(
        (told.status, &told.body["text"]),
        (200, &json!("hello")),
        "{told:?}"
    );

    let waiting = wait("hold:1 text:3");
    models.held(2).await;
    gateway.signal(Signal::TERM);
    let told = waiting.await.expect("no panic").expect("an answer");
    assert_eq!(told.status, 202, "{told:?}");
    gateway.signal(Signal::INT);
    gateway.ended().await;
    models.release(8);
    gateway.spawn();
    gateway.ready().await;
    let run = format!("/v1/runs/{}", told.text("runId"));
    user.finished(&told.text("runId")).await;
    assert_eq!(user.get(&run).await.body["status"], "completed");
}
