//! A request that does not fit the model's context window, in the words of each vendor: a shorter one may fit.

use toolgate_engine::model::{Model, ModelErrorKind};
use toolgate_kernel::agent::Provider;
use toolgate_models::{ModelSettings, Models};

use crate::asking::{ask, user};
use crate::stand_in::{StandIn, refusal, stream};
use crate::trace::Trace;

async fn kind(provider: Provider, answer: crate::stand_in::Answer) -> ModelErrorKind {
    let server = StandIn::start([answer]).await;
    let asked = ask(provider, "m", &server.url, vec![user("hi")]);
    let models = Models::new(ModelSettings::default());
    models
        .reply(&asked, &mut Trace::default())
        .await
        .unwrap_err()
        .kind
}

#[tokio::test]
async fn each_vendors_refusal_of_a_long_request_is_known() {
    let refusals = [
        (
            Provider::Openai,
            400,
            r#"{"error":{"message":"Your input exceeds the context window of this model. Please adjust your input and try again.","type":"invalid_request_error","param":"input","code":"context_length_exceeded"}}"#,
        ),
        (
            Provider::Openai,
            400,
            r#"{"object":"error","message":"x","error":{"message":"This model's maximum context length is 4096 tokens. However, you requested 5000 tokens.","type":"BadRequestError","param":null,"code":400}}"#,
        ),
        (
            Provider::Openai,
            400,
            r#"{"error":{"code":400,"message":"the request exceeds the available context size. try increasing the context size or enable context shift","type":"exceed_context_size_error","n_prompt_tokens":5000,"n_ctx":4096}}"#,
        ),
        (
            Provider::Anthropic,
            400,
            r#"{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 210000 tokens > 200000 maximum"}}"#,
        ),
        (
            Provider::Anthropic,
            400,
            r#"{"type":"error","error":{"type":"invalid_request_error","message":"input length and `max_tokens` exceed context limit: 195000 + 8192 > 200000, decrease input length or `max_tokens` and try again"}}"#,
        ),
        (
            Provider::Anthropic,
            413,
            r#"{"type":"error","error":{"type":"request_too_large","message":"Request exceeds the maximum size"}}"#,
        ),
        (
            Provider::Google,
            400,
            r#"{"error":{"code":400,"message":"The input token count (1048600) exceeds the maximum number of tokens allowed (1048576).","status":"INVALID_ARGUMENT"}}"#,
        ),
    ];
    for (provider, status, body) in refusals {
        assert_eq!(
            kind(provider, refusal(status, "", body)).await,
            ModelErrorKind::TooLong,
            "{body}"
        );
    }
    let in_stream = br#"data: {"error":{"message":"too many tokens","code":"context_length_exceeded"}}"#;
    let answer = stream([&in_stream[..], b"\n\n"]);
    assert_eq!(kind(Provider::Openai, answer).await, ModelErrorKind::TooLong);
}

#[tokio::test]
async fn another_refusal_is_final_as_before() {
    let body = r#"{"error":{"message":"Unknown parameter: 'tols'.","type":"invalid_request_error"}}"#;
    for provider in [Provider::Openai, Provider::Anthropic, Provider::Google] {
        assert_eq!(
            kind(provider, refusal(400, "", body)).await,
            ModelErrorKind::Final
        );
    }
}
