//! Remote A2A agents as tools: agents on the official Python SDK, of both versions of the protocol, as processes that are
//! killed and started again.

mod hostile;
mod sample;

use serde_json::{Value, json};
use toolgate_testkit::model_server::ModelServer;

use crate::harness::{Api, Event, Gateway, put_agent, soon};
use sample::{Sample, Speaks};

const ALL: [Speaks; 4] = [Speaks::JsonRpc, Speaks::Rest, Speaks::Polling, Speaks::V03];

/// A gateway that may reach the agent, with the agent `chief` that has it as the tool `remote`.
async fn gateway(models: &ModelServer, sample: &Sample) -> Gateway {
    let gateway = Gateway::start(&[
        ("TOOLGATE_OUTSIDE_ALLOW", &sample.address()),
        ("TOOLGATE_SECRET_AGENT_TOKEN", "hush-hush-hush"),
    ])
    .await;
    let tool = json!({"name": "remote", "executionType": "ai-agent", "execution": {"url": sample.url()}});
    put_chief(&gateway.api(), models, tool).await;
    gateway
}

async fn put_chief(api: &Api, models: &ModelServer, tool: Value) {
    let config = json!({
        "instructions": "Follow the script.",
        "model": {"provider": "openai", "name": "script", "baseUrl": models.base_url(), "apiKey": "none"},
        "tools": [tool],
    });
    put_agent(api, "chief", &config).await;
}

/// Starts a run that sends the agent `message`.
async fn start(api: &Api, message: &str) -> String {
    let input = json!({ "message": message.replace(' ', "+") });
    let script = format!("call:remote input:{input} text:1");
    let started = api
        .post("/v1/runs", &json!({"agent": "chief", "message": script}))
        .await;
    assert!(started.is_success(), "{started:?}");
    started.text("runId")
}

fn is(kind: &'static str) -> impl Fn(&Event) -> bool {
    move |event| event.kind == kind
}

/// What the call of a run that has ended came to: its output, or code and words of its error.
async fn outcome(api: &Api, run: &str) -> Value {
    let events = api.finished(run).await;
    let end = events.iter().find_map(|event| match event.kind.as_str() {
        "tool-output-available" => Some(event.data["output"].clone()),
        "tool-output-error" => Some(json!({"code": event.data["code"], "error": event.data["errorText"]})),
        _ => None,
    });
    end.unwrap_or_else(|| panic!("the call of {run} has no outcome: {events:?}"))
}

/// Waits until the call of a run has a task.
async fn delegated(api: &Api, run: &str) {
    let mut stream = api.follow(run, 0).await;
    let has_task = |event: &Event| event.kind == "tool-executing" && !event.data["task"].is_null();
    stream.until("a task", has_task).await;
}

async fn asked(api: &Api, run: &str) -> Event {
    let mut stream = api.follow(run, 0).await;
    stream.until("a question", is("tool-question")).await
}

async fn answer(api: &Api, question: &Event, answer: Value) {
    let path = format!("/v1/questions/{}", question.text("questionId"));
    let answered = api.post(&path, &answer).await;
    assert!(answered.is_success(), "{answered:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_of_either_version_answers_with_text_data_and_files() {
    let models = ModelServer::start().await;
    for speaks in ALL {
        let sample = Sample::start(speaks).await;
        let gateway = gateway(&models, &sample).await;
        let api = gateway.api();
        let checks = [
            ("hello", json!("Echo: hello")),
            ("data", json!({"count": 3, "ratio": 0.5})),
            (
                "fail",
                json!({"code": "EXECUTION_FAILED", "error": "the remote agent failed: The oven is broken."}),
            ),
            (
                "reject",
                json!({"code": "EXECUTION_FAILED", "error": "the remote agent rejected the task: Not my business."}),
            ),
        ];
        for (message, expected) in checks {
            let run = start(&api, message).await;
            assert_eq!(outcome(&api, &run).await, expected, "{message} by {speaks:?}");
        }
        let run = start(&api, "file").await;
        let output = outcome(&api, &run).await;
        assert_eq!(output[0], "Here.", "{speaks:?}: {output}");
        assert_eq!(
            (&output[1]["mediaType"], &output[1]["bytes"]),
            (&json!("text/plain"), &json!(12))
        );
        assert!(
            output[1]["path"].as_str().unwrap().ends_with("-1-note.txt"),
            "{output}"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tool_is_described_by_the_card_of_its_agent() {
    let models = ModelServer::start().await;
    let sample = Sample::start(Speaks::JsonRpc).await;
    let gateway = gateway(&models, &sample).await;
    let api = gateway.api();
    put_chief(
        &api,
        &models,
        json!({"executionType": "ai-agent", "execution": {"url": sample.url()}}),
    )
    .await;
    let told = api.get("/v1/tools?agent=chief&format=openai").await.body;
    let function = &told["tools"][0]["function"];
    assert_eq!(function["name"], "sample_agent");
    assert_eq!(
        function["description"],
        "Does what the first word says.\n- Echo: Says it again."
    );
    assert_eq!(function["parameters"]["required"], json!(["message"]));

    let away = json!({"executionType": "ai-agent", "execution": {"url": "http://127.0.0.1:1/"}});
    let config = json!({"instructions": "x", "tools": [away]});
    let refused = api.put("/v1/agents/other", &config).await;
    assert_eq!(refused.status, 422, "{refused:?}");
    assert_eq!(
        refused.body["errors"][0]["pointer"], "/tools/0/execution/url",
        "{refused:?}"
    );
    let skill = json!({"executionType": "ai-agent", "execution": {"url": sample.url(), "skill": "fly"}});
    let refused = api
        .put(
            "/v1/agents/other",
            &json!({"instructions": "x", "tools": [skill]}),
        )
        .await;
    assert!(refused.body.to_string().contains("no skill"), "{refused:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_kill_of_the_gateway_in_mid_task_loses_nothing_and_sends_nothing_twice() {
    let models = ModelServer::start().await;
    for speaks in ALL {
        let sample = Sample::start(speaks).await;
        let mut gateway = gateway(&models, &sample).await;
        let run = start(&gateway.api(), "slow").await;
        delegated(&gateway.api(), &run).await;
        gateway.crash().await;
        sample.permit();
        assert_eq!(
            outcome(&gateway.api(), &run).await,
            "It took a while.",
            "{speaks:?}"
        );
        assert_eq!(sample.messages().len(), 1, "{speaks:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_that_is_killed_and_comes_back_gives_its_result() {
    let models = ModelServer::start().await;
    for speaks in ALL {
        let mut sample = Sample::start(speaks).await;
        let gateway = gateway(&models, &sample).await;
        let run = start(&gateway.api(), "slow").await;
        delegated(&gateway.api(), &run).await;
        sample.has_stored_a_task().await;
        sample.kill();
        sample.permit();
        sample.restart().await;
        assert_eq!(
            outcome(&gateway.api(), &run).await,
            "Done after a restart.",
            "{speaks:?}"
        );
        assert_eq!(sample.messages().len(), 1, "{speaks:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_that_forgets_its_task_leaves_the_outcome_unknown() {
    let models = ModelServer::start().await;
    let mut sample = Sample::start(Speaks::JsonRpc).await;
    let gateway = gateway(&models, &sample).await;
    let run = start(&gateway.api(), "slow").await;
    delegated(&gateway.api(), &run).await;
    sample.has_stored_a_task().await;
    sample.kill();
    sample.forget_tasks();
    sample.restart().await;
    assert_eq!(outcome(&gateway.api(), &run).await["code"], "INTERRUPTED");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_of_ag2_gives_its_result_also_over_a_kill_of_the_gateway() {
    let models = ModelServer::start().await;
    let sample = Sample::start(Speaks::Ag2).await;
    let mut gateway = gateway(&models, &sample).await;
    let run = start(&gateway.api(), "work").await;
    delegated(&gateway.api(), &run).await;
    sample.has_begun().await;
    gateway.crash().await;
    sample.permit();
    assert_eq!(outcome(&gateway.api(), &run).await, "All done.");
    assert_eq!(sample.messages().len(), 1, "nothing is sent twice");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_of_ag2_that_is_killed_in_mid_task_leaves_the_outcome_unknown() {
    let models = ModelServer::start().await;
    let mut sample = Sample::start(Speaks::Ag2).await;
    let gateway = gateway(&models, &sample).await;
    let run = start(&gateway.api(), "work").await;
    delegated(&gateway.api(), &run).await;
    sample.has_begun().await;
    sample.kill();
    sample.restart().await;
    assert_eq!(outcome(&gateway.api(), &run).await["code"], "INTERRUPTED");
    assert_eq!(sample.messages().len(), 1, "nothing is sent twice");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_an_agent_asks_is_asked_in_the_space_and_survives_a_kill() {
    let models = ModelServer::start().await;
    for speaks in ALL {
        let sample = Sample::start(speaks).await;
        let mut gateway = gateway(&models, &sample).await;
        let run = start(&gateway.api(), "ask").await;
        let question = asked(&gateway.api(), &run).await;
        assert_eq!(question.text("message"), "Which city?", "{speaks:?}");
        gateway.crash().await;
        let api = gateway.api();
        answer(
            &api,
            &question,
            json!({"action": "accept", "content": {"reply": "Oslo"}}),
        )
        .await;
        assert_eq!(outcome(&api, &run).await, "You said Oslo.", "{speaks:?}");
        let messages = sample.messages();
        assert_eq!(messages.len(), 2, "{messages:?}");
        assert!(
            messages[1].split(' ').next().unwrap().ends_with(".1"),
            "{messages:?}"
        );

        let run = start(&api, "form").await;
        let question = asked(&api, &run).await;
        assert_eq!(question.data["schema"]["required"], json!(["seat"]), "{speaks:?}");
        answer(&api, &question, json!({"action": "decline"})).await;
        let output = outcome(&api, &run).await;
        assert!(
            output.as_str().unwrap().contains("declined"),
            "{speaks:?}: {output}"
        );

        let run = start(&api, "ask").await;
        let question = asked(&api, &run).await;
        answer(&api, &question, json!({"action": "cancel"})).await;
        assert_eq!(outcome(&api, &run).await["code"], "DENIED", "{speaks:?}");
        soon("a cancel at the agent", sample.has_cancelled()).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_that_wants_a_sign_in_says_where_or_ends_the_call() {
    let models = ModelServer::start().await;
    let sample = Sample::start(Speaks::JsonRpc).await;
    let gateway = gateway(&models, &sample).await;
    let api = gateway.api();
    let run = start(&api, "auth https://agents.example/in").await;
    let question = asked(&api, &run).await;
    assert_eq!(question.data["url"], "https://agents.example/in");
    let run = start(&api, "auth nowhere").await;
    let ended = outcome(&api, &run).await;
    assert_eq!(ended["code"], "UNAVAILABLE");
    assert!(
        ended["error"].as_str().unwrap().contains("authorization"),
        "{ended}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancelled_run_cancels_the_task_of_its_agent_and_progress_is_told() {
    let models = ModelServer::start().await;
    for speaks in ALL {
        let sample = Sample::start(speaks).await;
        let gateway = gateway(&models, &sample).await;
        let api = gateway.api();
        let run = start(&api, "slow").await;
        let mut stream = api.follow(&run, 0).await;
        let told = stream.until("progress", is("tool-progress")).await;
        assert_eq!(
            told.data["progress"]["status"], "Thinking about it.",
            "{speaks:?}"
        );
        delegated(&api, &run).await;
        let cancelled = api.post(&format!("/v1/runs/{run}/cancel"), &json!({})).await;
        assert!(cancelled.is_success(), "{cancelled:?}");
        soon("a cancel at the agent", sample.has_cancelled()).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_secret_in_a_header_reaches_the_agent_and_nobody_else() {
    let models = ModelServer::start().await;
    let sample = Sample::start(Speaks::JsonRpc).await;
    let gateway = gateway(&models, &sample).await;
    let api = gateway.api();
    let headers = json!({"Authorization": "Bearer ${secret.AGENT_TOKEN}"});
    let execution = json!({"url": sample.url(), "headers": headers});
    put_chief(
        &api,
        &models,
        json!({"name": "remote", "executionType": "ai-agent", "execution": execution}),
    )
    .await;
    let run = start(&api, "headers").await;
    assert_eq!(outcome(&api, &run).await, "You are Bearer [secret AGENT_TOKEN].");
    let headers = json!({"Authorization": "Bearer mine"});
    let execution = json!({"url": sample.url(), "headers": headers});
    let tool = json!({"name": "remote", "executionType": "ai-agent", "execution": execution});
    let refused = api
        .put("/v1/agents/other", &json!({"instructions": "x", "tools": [tool]}))
        .await;
    assert!(refused.body.to_string().contains("${secret.NAME}"), "{refused:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_must_match_the_result_schema() {
    let models = ModelServer::start().await;
    let sample = Sample::start(Speaks::JsonRpc).await;
    let gateway = gateway(&models, &sample).await;
    let api = gateway.api();
    let schema =
        json!({"type": "object", "required": ["count"], "properties": {"count": {"type": "integer"}}});
    let execution = json!({"url": sample.url(), "result_schema": schema});
    put_chief(
        &api,
        &models,
        json!({"name": "remote", "executionType": "ai-agent", "execution": execution}),
    )
    .await;
    let run = start(&api, "data").await;
    assert_eq!(outcome(&api, &run).await["count"], 3);
    let run = start(&api, "hello").await;
    assert_eq!(outcome(&api, &run).await["code"], "INVALID_OUTPUT");
}
