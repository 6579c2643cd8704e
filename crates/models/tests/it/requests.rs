//! What each vendor is sent, byte for byte.

use serde_json::{Value, json};
use toolgate_engine::model::{Ask, Model};
use toolgate_kernel::agent::Provider;
use toolgate_kernel::json::Json;
use toolgate_kernel::message::Part;
use toolgate_kernel::prompt::{Said, ToolChoice, Turn};
use toolgate_models::{ModelSettings, Models};

use crate::asking::{ask, call, error, reasoning, result, tool, user};
use crate::stand_in::{StandIn, refusal};
use crate::trace::Trace;

/// The request that `ask` makes: its first line, the headers that matter, its body.
pub async fn sent(mut ask: Ask) -> (String, String) {
    let server = StandIn::start([refusal(400, "", "{}")]).await;
    ask.model.base_url = Some(server.url.clone());
    let models = Models::new(ModelSettings::default());
    models.reply(&ask, &mut Trace::default()).await.unwrap_err();
    let request = server.seen().remove(0);
    let (head, body) = request.split_once("\r\n\r\n").unwrap();
    let head = head
        .lines()
        .filter(|line| !line.starts_with("host: ") && !line.starts_with("content-length: "));
    (head.collect::<Vec<_>>().join("\n"), body.to_owned())
}

/// The body, a member to a line, in the order in which it was sent.
fn laid_out(body: &str) -> String {
    let mut out = String::new();
    let (mut depth, mut quoted, mut escaped) = (0, false, false);
    for c in body.chars() {
        let structural = !quoted;
        if structural && (c == '}' || c == ']') {
            depth -= 1;
            out += &format!("\n{}", "  ".repeat(depth));
        }
        out.push(c);
        if structural && (c == '{' || c == '[' || c == ',') {
            depth += usize::from(c != ',');
            out += &format!("\n{}", "  ".repeat(depth));
        }
        quoted ^= c == '"' && !escaped;
        escaped = c == '\\' && !escaped;
    }
    out
}

macro_rules! snapshot {
    ($name:literal, $ask:expr) => {
        let (head, body) = sent($ask).await;
        insta::assert_snapshot!($name, format!("{head}\n\n{}", laid_out(&body)));
    };
}

/// Words, pictures, thoughts, calls, results and errors, as this vendor signed them.
fn conversation(tag: &str) -> Vec<Turn> {
    let signed = |text: &str| format!("{tag}:{text}");
    vec![
        Turn::User(vec![
            Part::Text {
                text: "What is \"this\"?\n".into(),
            },
            Part::Image {
                url: "https://example.com/cat.png".into(),
                media_type: Some("image/png".into()),
            },
            Part::Image {
                url: "data:image/gif;base64,R0lGODlhAQABAAAAACw=".into(),
                media_type: None,
            },
        ]),
        Turn::Assistant(vec![
            reasoning("Let me look.", Some(&signed("reasoning_content"))),
            Said::Text("I look.".into()),
            call(1, "look", json!({"at": "cat"}), Some(&signed(r#"{"k":"v"}"#))),
            call(2, "odd name!", json!("{not json"), None),
        ]),
        Turn::Results(vec![
            result(1, "look", json!({"is": ["cat"]})),
            error(2, "odd name!", "Error: there is no such tool."),
        ]),
        Turn::Assistant(vec![
            reasoning("Foreign thought.", Some("elsewhere:x")),
            Said::Text("A cat.".into()),
            Said::Text("Really.".into()),
        ]),
        user("Thanks."),
        user("And now?"),
    ]
}

/// A schema as its author wrote it.
const LOOK: &str = r#"{"type":"object","properties":{"at":{"type":"string"}},"required":["at"]}"#;

fn full(provider: Provider, name: &str, tag: &str) -> Ask {
    let mut ask = ask(provider, name, "", conversation(tag));
    ask.instructions = "Be brief.".into();
    ask.today = "Today is Monday, 16 November 2026.".into();
    ask.tools = [
        tool("look", Json::parse(LOOK.into()).unwrap()),
        tool("echo", json!({"type": "object"})),
    ]
    .into();
    ask.model.temperature = Some(0.5);
    ask.model.top_p = Some(0.9);
    ask.model.max_output_tokens = Some(1000);
    ask
}

#[tokio::test]
async fn openai_is_sent_the_whole_conversation() {
    snapshot!("openai", full(Provider::Openai, "gpt-5.2", "openai"));
}

#[tokio::test]
async fn anthropic_is_sent_the_whole_conversation() {
    snapshot!(
        "anthropic",
        full(Provider::Anthropic, "claude-opus-5-5", "anthropic")
    );
}

#[tokio::test]
async fn google_is_sent_the_whole_conversation() {
    snapshot!("google", full(Provider::Google, "gemini-3.5-flash", "google"));
}

async fn body(ask: Ask) -> Value {
    serde_json::from_str(&sent(ask).await.1).unwrap()
}

#[tokio::test]
async fn the_least_request_says_nothing_that_was_not_asked() {
    let least = |provider| ask(provider, "m", "", vec![user("hi")]);
    assert_eq!(
        body(least(Provider::Openai)).await,
        json!({"model": "m", "stream": true, "stream_options": {"include_usage": true},
            "messages": [{"role": "user", "content": "hi"}]})
    );
    assert_eq!(
        body(least(Provider::Anthropic)).await,
        json!({"model": "m", "stream": true, "max_tokens": 8192,
            "messages": [{"role": "user", "content": [
                {"type": "text", "text": "hi", "cache_control": {"type": "ephemeral"}}]}]})
    );
    assert_eq!(
        body(least(Provider::Google)).await,
        json!({"contents": [{"role": "user", "parts": [{"text": "hi"}]}], "generationConfig": {}})
    );
}

#[tokio::test]
async fn every_choice_of_tools_is_said_in_the_vendors_words() {
    for (choice, openai, anthropic, google) in [
        (
            ToolChoice::Auto,
            json!("auto"),
            json!({"type": "auto"}),
            json!({"mode": "AUTO"}),
        ),
        (
            ToolChoice::Required,
            json!("required"),
            json!({"type": "any"}),
            json!({"mode": "ANY"}),
        ),
        (
            ToolChoice::None,
            json!("none"),
            json!({"type": "none"}),
            json!({"mode": "NONE"}),
        ),
        (
            ToolChoice::Tool("look".parse().unwrap()),
            json!({"type": "function", "function": {"name": "look"}}),
            json!({"type": "tool", "name": "look"}),
            json!({"mode": "ANY", "allowedFunctionNames": ["look"]}),
        ),
    ] {
        let with = |provider| Ask {
            tool_choice: choice.clone(),
            ..full(provider, "m", "x")
        };
        assert_eq!(body(with(Provider::Openai)).await["tool_choice"], openai);
        assert_eq!(body(with(Provider::Anthropic)).await["tool_choice"], anthropic);
        assert_eq!(
            body(with(Provider::Google)).await["toolConfig"]["functionCallingConfig"],
            google
        );
    }
}

#[tokio::test]
async fn reasoning_is_asked_for_in_the_models_own_way() {
    let with = |provider, name: &str, tokens| {
        let mut ask = full(provider, name, "x");
        ask.model.reasoning_tokens = Some(tokens);
        body(ask)
    };
    assert_eq!(
        with(Provider::Openai, "gpt-5.2", 4000).await["reasoning_effort"],
        json!("medium")
    );

    let adaptive = with(Provider::Anthropic, "claude-opus-5-5", 4000).await;
    assert_eq!(
        adaptive["thinking"],
        json!({"type": "adaptive", "display": "summarized"})
    );
    assert_eq!(adaptive["output_config"], json!({"effort": "medium"}));
    assert_eq!(adaptive["max_tokens"], json!(5000));
    assert_eq!(adaptive.get("temperature"), None, "does not go with reasoning");

    let budget = with(Provider::Anthropic, "claude-sonnet-4-5-20250929", 400).await;
    assert_eq!(
        budget["thinking"],
        json!({"type": "enabled", "budget_tokens": 1024})
    );
    assert_eq!(budget["max_tokens"], json!(2024));
    assert_eq!(budget.get("output_config"), None);

    let level = with(Provider::Google, "gemini-3.5-flash", 400).await;
    let thinking = json!({"includeThoughts": true, "thinkingLevel": "low"});
    assert_eq!(level["generationConfig"]["thinkingConfig"], thinking);
    let budget = with(Provider::Google, "gemini-2.5-pro", 400).await;
    let thinking = json!({"includeThoughts": true, "thinkingBudget": 400});
    assert_eq!(budget["generationConfig"]["thinkingConfig"], thinking);
}

#[tokio::test]
async fn anthropic_is_not_asked_to_think_where_it_would_refuse() {
    let mut forced = full(Provider::Anthropic, "claude-opus-5-5", "anthropic");
    forced.model.reasoning_tokens = Some(4000);
    forced.tool_choice = ToolChoice::Required;
    assert_eq!(body(forced).await.get("thinking"), None);

    for (signature, thinks) in [("anthropic:sig", true), ("google:sig", false)] {
        let turns = vec![
            user("hi"),
            Turn::Assistant(vec![
                reasoning("hm", Some(signature)),
                call(1, "look", json!({}), None),
            ]),
            Turn::Results(vec![result(1, "look", json!("cat"))]),
        ];
        let mut ask = ask(Provider::Anthropic, "claude-haiku-4-5", "", turns);
        ask.model.reasoning_tokens = Some(4000);
        assert_eq!(body(ask).await.get("thinking").is_some(), thinks, "{signature}");
    }
}

#[tokio::test]
async fn anthropic_hears_user_and_assistant_in_turn_and_results_first() {
    let turns = vec![
        user("a"),
        user("  \n"),
        user("b"),
        Turn::Assistant(vec![Said::Text("".into())]),
        user("c"),
        Turn::Assistant(vec![call(1, "look", json!({}), None)]),
        Turn::Results(vec![result(1, "look", json!("cat"))]),
        user("d"),
    ];
    let body = body(ask(Provider::Anthropic, "m", "", turns)).await;
    let roles: Vec<&str> = body["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|m| m["role"].as_str().unwrap())
        .collect();
    assert_eq!(roles, ["user", "assistant", "user"]);
    assert_eq!(body["messages"][0]["content"].as_array().unwrap().len(), 3);
    assert_eq!(body["messages"][2]["content"][0]["content"], json!("cat"));
    assert_eq!(
        body["messages"][2]["content"][1],
        json!({"type": "text", "text": "d", "cache_control": {"type": "ephemeral"}})
    );
}

#[tokio::test]
async fn anthropic_is_given_schemas_without_alternatives_at_the_top() {
    let mut ask = ask(Provider::Anthropic, "m", "", vec![user("hi")]);
    let inner = json!({"anyOf": [{"type": "string"}, {"type": "null"}]});
    ask.tools = [tool(
        "look",
        json!({"anyOf": [{"required": ["a"]}], "properties": {"a": inner}, "type": "object"}),
    )]
    .into();
    assert_eq!(
        body(ask).await["tools"][0]["input_schema"],
        json!({"type": "object", "properties": {"a": inner}})
    );
}

#[tokio::test]
async fn google_is_given_schemas_in_the_part_of_json_schema_it_reads() {
    let mut ask = ask(Provider::Google, "m", "", vec![user("hi")]);
    ask.tools = [tool(
        "look",
        json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object",
            "properties": {
                "const": {"const": "a", "examples": ["a"]},
                "n": {"type": "integer", "exclusiveMinimum": 0, "exclusiveMaximum": 10},
                "f": {"type": "number", "exclusiveMinimum": 0.5},
                "list": {"type": "array", "items": {"anyOf": [{"not": {"type": "null"}, "type": "string"}]}},
            },
            "required": ["const"],
            "additionalProperties": false,
        }),
    )]
    .into();
    assert_eq!(
        body(ask).await["tools"][0]["functionDeclarations"][0]["parametersJsonSchema"],
        json!({
            "type": "object",
            "properties": {
                "const": {"enum": ["a"]},
                "n": {"type": "integer", "minimum": 1, "maximum": 9},
                "f": {"type": "number", "minimum": 0.5},
                "list": {"type": "array", "items": {"anyOf": [{"type": "string"}]}},
            },
            "required": ["const"],
            "additionalProperties": false,
        })
    );
}

#[tokio::test]
async fn a_call_that_another_model_made_gets_the_signature_that_google_accepts() {
    let turns = || {
        vec![
            user("hi"),
            Turn::Assistant(vec![
                call(1, "look", json!({}), Some("openai:{}")),
                call(2, "look", json!({}), None),
            ]),
            Turn::Results(vec![result(1, "look", json!(1)), result(2, "look", json!(2))]),
        ]
    };
    let signatures = |body: Value| {
        let parts = body["contents"][1]["parts"].as_array().unwrap().clone();
        parts
            .iter()
            .map(|part| part.get("thoughtSignature").cloned())
            .collect::<Vec<_>>()
    };
    let newer = body(ask(Provider::Google, "gemini-3.5-flash", "", turns())).await;
    assert_eq!(
        signatures(newer),
        [Some(json!("skip_thought_signature_validator")), None]
    );
    let older = body(ask(Provider::Google, "gemini-2.5-pro", "", turns())).await;
    assert_eq!(signatures(older), [None, None]);
}

#[tokio::test]
async fn an_image_that_cannot_be_sent_is_told_instead() {
    for provider in [Provider::Anthropic, Provider::Google] {
        let image = Turn::User(vec![Part::Image {
            url: "data:image/svg+xml,%3Csvg/%3E".into(),
            media_type: None,
        }]);
        let body = sent(ask(provider, "m", "", vec![image])).await.1;
        assert!(
            body.contains("[an image that cannot be shown to this model]"),
            "{body}"
        );
    }
}

#[tokio::test]
async fn google_finds_a_model_by_its_name_or_its_path() {
    for (name, path) in [
        (
            "gemini-3.5-flash",
            "/v1/models/gemini-3.5-flash:streamGenerateContent?alt=sse",
        ),
        (
            "tunedModels/mine",
            "/v1/tunedModels/mine:streamGenerateContent?alt=sse",
        ),
    ] {
        let (head, _) = sent(ask(Provider::Google, name, "", vec![user("hi")])).await;
        assert!(head.starts_with(&format!("POST {path} HTTP/1.1")), "{head}");
    }
}

#[tokio::test]
async fn definitions_are_what_the_vendor_is_sent_in_the_form_it_documents() {
    let parameters = json!({"type": "object", "properties": {"at": {"type": "string"}}, "required": ["at"]});
    for (provider, documented) in [
        (
            Provider::Openai,
            json!([{"type": "function", "function": {"name": "look", "description": "Does look.", "parameters": parameters}}]),
        ),
        (
            Provider::Anthropic,
            json!([{"name": "look", "description": "Does look.", "input_schema": parameters}]),
        ),
        (
            Provider::Google,
            json!([{"functionDeclarations": [{"name": "look", "description": "Does look.", "parametersJsonSchema": parameters}]}]),
        ),
    ] {
        let tools = [tool("look", parameters.clone())];
        let told = Models::new(ModelSettings::default())
            .definitions(provider, &tools)
            .unwrap();
        assert_eq!(told.to_value(), documented);
        let nothing = Models::new(ModelSettings::default()).definitions(provider, &[]);
        assert_eq!(nothing.unwrap().as_str(), "[]");
        let mut ask = ask(provider, "m", "", vec![user("hi")]);
        ask.tools = tools.into();
        ask.instructions = "Be brief.".into();
        let sent = sent(ask).await.1;
        assert!(sent.contains(&format!("\"tools\":{},", told.as_str())), "{sent}");
    }
    assert_eq!(
        Models::new(ModelSettings::default()).definitions(Provider::Demo, &[]),
        None
    );
}
