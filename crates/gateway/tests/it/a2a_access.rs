//! What users of public keys learn through the A2A door: nothing of a server tool's inner workings, nothing of tasks of
//! others or of other projects, and nothing more once they are out of the space.

use reqwest::Method;
use serde_json::{Value, json};
use toolgate_testkit::model_server::ModelServer;

use crate::a2a_push::{Posted, Receiver};
use crate::harness::{Api, Gateway, put_agent, soon, tool, worker};
use crate::redaction::{MARK, SCRIPTS, agent};

/// Everything that a client may ask about a task.
fn operations(task: &str) -> [(&'static str, Value); 14] {
    let result = json!([{"toolCallId": call(task, 1), "success": true, "result": 1}]);
    let push = json!({"taskId": task, "url": "https://client.example.com/"});
    let text = json!({"messageId": "m", "role": "ROLE_USER", "taskId": task, "parts": [{"text": "go on"}]});
    [
        ("GetTask", json!({"id": task})),
        ("SubscribeToTask", json!({"id": task})),
        ("CancelTask", json!({"id": task})),
        ("SendMessage", json!({"message": text})),
        ("SendMessage", answer(task, 1)),
        ("SendStreamingMessage", json!({"message": text})),
        ("CreateTaskPushNotificationConfig", push),
        (
            "GetTaskPushNotificationConfig",
            json!({"taskId": task, "id": "own"}),
        ),
        ("ListTaskPushNotificationConfigs", json!({"taskId": task})),
        (
            "DeleteTaskPushNotificationConfig",
            json!({"taskId": task, "id": "own"}),
        ),
        ("tasks/get", json!({"id": task})),
        ("tasks/resubscribe", json!({"id": task})),
        ("tasks/cancel", json!({"id": task})),
        ("tasks/resume", json!({"taskId": task, "toolResults": result})),
    ]
}

fn call(task: &str, index: usize) -> String {
    let id = task.strip_prefix("run_").expect("a run");
    format!("call_{id}_{index}")
}

fn answer(task: &str, index: usize) -> Value {
    let tag = json!({"toolResult": {"callId": call(task, index)}});
    json!({"message": {"messageId": "r", "role": "ROLE_USER", "taskId": task, "parts": [
        {"data": {"answer": 1}, "metadata": {"https://toolgate.dev/a2a/client-tools/v1": tag}},
    ]}})
}

async fn rpc(api: &Api, agent: &str, method: &str, params: Value) -> Value {
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
    let answer = api.post(&format!("/a2a/{agent}"), &body).await;
    assert_eq!(answer.status, 200, "{method}: {answer:?}");
    answer.body
}

/// A stream, read to its end.
async fn stream(api: &Api, path: &str, body: &Value) -> String {
    let request = api.request(Method::POST, path).json(body);
    let response = request.send().await.expect("a response");
    soon("the end of a stream", response.text()).await.expect("text")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_user_learns_that_a_server_tool_ran_and_nothing_else() {
    let (models, receiver) = (ModelServer::start().await, Receiver::start().await);
    let settings = [
        ("TOOLGATE_HTTP_RATE_PUBLIC_PER_SECOND", "10000"),
        ("TOOLGATE_HTTP_RATE_PUBLIC_BURST", "10000"),
        ("TOOLGATE_OUTSIDE_ALLOW", &receiver.address),
    ];
    let gateway = Gateway::start(&settings).await;
    let user = gateway.api().as_user("ada");
    for script in SCRIPTS {
        put_agent(&gateway.api(), "keeper", &agent(&models, script)).await;
        let message = json!({"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "go"}]});
        let push = json!({"url": receiver.url, "id": "own"});
        let params = json!({"message": message, "configuration": {"taskPushNotificationConfig": push}});
        let mut seen = vec![stream(&user, "/a2a/keeper/message:stream", &params).await];
        let listed = rpc(
            &user,
            "keeper",
            "ListTasks",
            json!({"historyLength": 9, "includeArtifacts": true}),
        )
        .await;
        let task = listed["result"]["tasks"][0]["id"]
            .as_str()
            .expect("a task")
            .to_owned();
        seen.push(listed.to_string());
        seen.push(
            rpc(&user, "keeper", "GetTask", json!({"id": task}))
                .await
                .to_string(),
        );
        let taken = rpc(&user, "keeper", "SendMessage", answer(&task, 1)).await;
        assert!(taken["error"].is_null(), "{script}: {taken:#}");
        seen.push(taken.to_string());
        // What waits for a decision of somebody else ends here; everything else has ended.
        seen.push(
            rpc(&user, "keeper", "CancelTask", json!({"id": task}))
                .await
                .to_string(),
        );
        let replay = user
            .request(Method::GET, &format!("/a2a/keeper/tasks/{task}:subscribe"))
            .header("last-event-id", "0");
        let replay = replay.send().await.expect("a response");
        seen.push(soon("the end of a stream", replay.text()).await.expect("text"));
        seen.push(
            rpc(&user, "keeper", "tasks/get", json!({"id": task}))
                .await
                .to_string(),
        );
        receiver.until_ended(&task).await;
        seen.extend(receiver.posted().into_iter().map(|posted| posted.body));
        for text in &seen {
            assert!(!text.contains(MARK), "{script}: a user was shown {text}");
        }
        let all = gateway.api().list(&format!("/v1/runs/{task}/events")).await;
        let hidden = all.iter().any(|event| event.data.to_string().contains(MARK));
        assert!(hidden, "{script}: there was nothing to hide");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tasks_of_others_and_of_other_projects_are_not_there() {
    const OPERATOR: &str = "op_0123456789abcdef0123456789";
    let models = ModelServer::start().await;
    let gateway = Gateway::start(&[("TOOLGATE_OPERATOR_KEY", OPERATOR)]).await;
    let mut public = worker(&models);
    public["access"] = json!("public");
    put_agent(&gateway.api(), "keeper", &public).await;
    let made = gateway
        .api()
        .with_key(OPERATOR)
        .post("/v1/projects", &json!({"name": "other"}))
        .await;
    assert!(made.is_success(), "{made:?}");
    let other = gateway.api().with_key(&made.text("secretKey"));
    put_agent(&other, "keeper", &public).await;

    let ada = gateway.api().as_user("ada");
    let message = json!({"messageId": "m", "role": "ROLE_USER", "contextId": "mine", "parts": [
        {"text": "call:clock call:ask say:done"},
    ]});
    let push = json!({"url": "https://client.example.com/", "id": "own"});
    let params = json!({"message": message, "configuration": {"taskPushNotificationConfig": push}});
    let task = rpc(&ada, "keeper", "SendMessage", params).await["result"]["task"].clone();
    assert_eq!(task["status"]["state"], "TASK_STATE_INPUT_REQUIRED", "{task:#}");
    let id = task["id"].as_str().expect("an id");
    let run = gateway.api().get(&format!("/v1/runs/{id}")).await.body;
    let space = run["spaceId"].as_str().expect("a space");

    for (name, stranger) in [
        ("another user", gateway.api().as_user("bob")),
        ("another project", other),
    ] {
        for (method, params) in operations(id) {
            let told = rpc(&stranger, "keeper", method, params).await;
            assert_eq!(told["error"]["code"], -32001, "{name}, {method}: {told:#}");
        }
        for context in [space, "mine"] {
            let listed = rpc(&stranger, "keeper", "ListTasks", json!({"contextId": context})).await;
            assert_eq!(listed["result"]["totalSize"], 0, "{name}: {listed:#}");
        }
        let message =
            json!({"messageId": "m", "role": "ROLE_USER", "contextId": space, "parts": [{"text": "hi"}]});
        let told = rpc(&stranger, "keeper", "SendMessage", json!({ "message": message })).await;
        assert_eq!(told["error"]["code"], -32001, "{name}: {told:#}");
    }
    // Nothing of that has touched it.
    let still = rpc(&ada, "keeper", "GetTask", json!({"id": id})).await["result"].clone();
    assert_eq!(still, task);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_removed_member_learns_nothing_more() {
    let (models, receiver) = (ModelServer::start().await, Receiver::start().await);
    let of_backend = Receiver::start().await;
    let allow = format!("{},{}", receiver.address, of_backend.address);
    let gateway = Gateway::start(&[("TOOLGATE_OUTSIDE_ALLOW", &allow)]).await;
    let mut public = worker(&models);
    public["access"] = json!("public");
    public["tools"] = json!([tool("ask", Value::Null, json!({}))]);
    put_agent(&gateway.api(), "keeper", &public).await;
    let (api, ada) = (gateway.api(), gateway.api().as_user("ada"));
    let message =
        json!({"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "call:ask say:afterwards"}]});
    let push = json!({"url": receiver.url, "id": "own"});
    let params = json!({"message": message, "configuration": {"taskPushNotificationConfig": push}});
    let task = rpc(&ada, "keeper", "SendMessage", params).await["result"]["task"].clone();
    let id = task["id"].as_str().expect("an id").to_owned();
    receiver.until_state("TASK_STATE_INPUT_REQUIRED").await;
    let open = ada.request(Method::GET, &format!("/a2a/keeper/tasks/{id}:subscribe"));
    let open = open.send().await.expect("a stream");
    let run = api.get(&format!("/v1/runs/{id}")).await.body;
    let member = format!(
        "/v1/spaces/{}/members/ada",
        run["spaceId"].as_str().expect("a space")
    );
    assert_eq!(api.send(Method::DELETE, &member, &json!({})).await.status, 204);
    let told = soon("the end of the stream", open.text()).await.expect("text");
    assert!(told.contains("there is no such task"), "{told}");
    for (method, params) in operations(&id) {
        let told = rpc(&ada, "keeper", method, params).await;
        assert_eq!(told["error"]["code"], -32001, "{method}: {told:#}");
    }
    // A configuration that is stored later is posted later: when the backend's has it all, the user's would have it.
    let push = json!({"taskId": id, "url": of_backend.url});
    rpc(&api, "keeper", "CreateTaskPushNotificationConfig", push).await;
    assert!(api.result(&id, &call(&id, 0), &json!(1)).await.is_success());
    of_backend.until_ended(&id).await;
    let all = receiver.posted();
    let is_later =
        |posted: &Posted| posted.body.contains("artifactUpdate") || posted.state() == "TASK_STATE_COMPLETED";
    assert!(!all.iter().any(is_later), "{all:?}");
}
