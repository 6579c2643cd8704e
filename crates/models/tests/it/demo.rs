//! The model for those who have none.

use serde_json::json;
use toolgate_engine::model::{Ask, Model};
use toolgate_kernel::agent::Provider;
use toolgate_kernel::prompt::{OfferedTool, ToolChoice, Turn};
use toolgate_models::{ModelSettings, Models};

use crate::asking::{ask, call, error, result, tool, user};
use crate::trace::Trace;

async fn check_ask(ask: &Ask, expected: &str) {
    let mut trace = Trace::default();
    let ended = Models::new(ModelSettings::default()).reply(ask, &mut trace).await;
    let seen = trace.end(ended);
    assert!(seen.starts_with("text: [demo model] "), "{seen}");
    let seen = seen.rsplit_once('\n').unwrap().0;
    assert_eq!(seen.strip_prefix("text: [demo model] ").unwrap(), expected);
}

fn tools() -> Vec<OfferedTool> {
    vec![
        tool(
            "echo",
            json!({"type": "object", "required": ["count", "text"], "properties": {
                "text": {"type": "string"}, "count": {"type": "integer", "maximum": 9}, "other": {"type": "string"}}}),
        ),
        tool("ask", json!({"type": "object"})),
        tool(
            "ask_user",
            json!({"type": "object", "required": ["colour", "loud", "question", "tags"], "$defs": {"tag": {"const": "t"}},
                "properties": {"question": {"type": "string"}, "colour": {"enum": ["red", "dark blue"]},
                    "loud": {"type": "boolean"}, "tags": {"type": "array", "minItems": 2, "items": {"$ref": "#/$defs/tag"}}}}),
        ),
    ]
}

fn demo(turns: Vec<Turn>) -> Ask {
    Ask {
        tools: tools().into(),
        ..ask(Provider::Demo, "demo", "", turns)
    }
}

#[tokio::test]
async fn a_newcomer_is_told_what_this_is() {
    check_ask(
        &demo(vec![user("Hello!")]),
        "Hello! I follow simple rules so that you can try this agent without a key for a real model. \
         Name one of its tools and I call it: echo, ask, ask_user. Put quotes around a text and I pass it on \
         as it is. For real answers give the agent a model of openai, anthropic or google.",
    )
    .await;
}

#[tokio::test]
async fn a_tool_is_called_when_it_is_named() {
    check_ask(
        &demo(vec![user("please echo good morning 3 times")]),
        "I call echo.\ncall 0: echo\ninput 0: {\"count\":3,\"text\":\"good morning 3 times\"}",
    )
    .await;
    check_ask(
        &demo(vec![user("Echo \"as it is\" 12 times")]),
        "I call echo.\ncall 0: echo\ninput 0: {\"count\":9,\"text\":\"as it is\"}",
    )
    .await;
}

#[tokio::test]
async fn a_tool_is_known_by_its_words_and_several_are_called_at_once() {
    check_ask(
        &demo(vec![user("Ask user \"Which one?\" in dark blue, not loud, and then echo \"hi\"")]),
        "I call ask_user, echo.\n\
         call 0: ask_user\n\
         input 0: {\"colour\":\"dark blue\",\"loud\":false,\"question\":\"Which one?\",\"tags\":[\"t\",\"t\"]}\n\
         call 1: echo\n\
         input 1: {\"count\":1,\"text\":\"Which one?\"}",
    )
    .await;
}

#[tokio::test]
async fn results_are_told_with_what_went_wrong() {
    let turns = vec![
        user("echo and ask user"),
        Turn::Assistant(vec![
            call(1, "echo", json!({}), None),
            call(2, "ask_user", json!({}), None),
        ]),
        Turn::Results(vec![
            result(1, "echo", json!({"text": "hi"})),
            error(2, "ask_user", "Error: not today."),
        ]),
    ];
    check_ask(
        &demo(turns),
        "echo gave {\"text\":\"hi\"}. ask_user gave no output. Error: not today.",
    )
    .await;
}

#[tokio::test]
async fn anything_else_is_said_back_with_the_tools_there_are() {
    check_ask(
        &demo(vec![user("What is love?")]),
        "You said: What is love?. I only follow rules and cannot answer that. \
         Name one of its tools and I call it: echo, ask, ask_user.",
    )
    .await;
    let bare = ask(Provider::Demo, "demo", "", vec![user("echo this")]);
    check_ask(
        &bare,
        "You said: echo this. I only follow rules and cannot answer that. This agent has no tools.",
    )
    .await;
}

#[tokio::test]
async fn the_choice_of_tools_is_honoured() {
    let with = |tool_choice| Ask {
        tool_choice,
        ..demo(vec![user("echo \"x\"")])
    };
    check_ask(
        &with(ToolChoice::None),
        "You said: echo \"x\". I only follow rules and cannot answer that. \
         Name one of its tools and I call it: echo, ask, ask_user.",
    )
    .await;
    check_ask(
        &with(ToolChoice::Tool("ask".parse().unwrap())),
        "I call ask.\ncall 0: ask\ninput 0: {}",
    )
    .await;
    let required = Ask {
        tool_choice: ToolChoice::Required,
        ..demo(vec![user("hm")])
    };
    check_ask(
        &required,
        "I call echo.\ncall 0: echo\ninput 0: {\"count\":1,\"text\":\"hm\"}",
    )
    .await;
}
