//! Executing a tool: typed arguments, failures, time.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use toolgate_client::{Definition, JsonSchema, Plugin, Tool, ToolError};

use crate::{client, tool, words};

#[derive(Deserialize, JsonSchema)]
struct Area {
    /// In metres.
    width: f64,
    height: Option<f64>,
}

#[derive(Serialize, JsonSchema)]
struct Answer {
    square: f64,
}

fn area() -> Tool {
    Tool::typed("area", "Computes an area.", |room: Area| async move {
        if room.width < 0.0 {
            return Err(ToolError::new("a room has no negative width"));
        }
        Ok(Answer {
            square: room.width * room.height.unwrap_or(room.width),
        })
    })
    .output::<Answer>()
}

async fn area_of(input: Value) -> Result<Value, ToolError> {
    let client = client();
    client.register_tool(area()).await.unwrap();
    client.try_tool("area", input).await
}

#[test]
fn a_typed_tools_schema_is_its_arguments() {
    let definition = area().definition().clone();
    assert_eq!(
        definition.parameters["properties"]["width"]["description"],
        "In metres."
    );
    assert_eq!(definition.parameters["required"], json!(["width"]));
    assert_eq!(
        definition.output_schema.unwrap()["properties"]["square"]["type"],
        "number"
    );
}

#[tokio::test]
async fn a_typed_tool_gets_its_arguments_and_gives_its_answer() {
    let outcome = area_of(json!({"width": 2.0, "height": 4.0})).await;
    assert_eq!(outcome.unwrap(), json!({"square": 8.0}));
}

#[tokio::test]
async fn arguments_that_do_not_fit_are_told_in_words() {
    let words = words(area_of(json!({"width": "wide"})).await);
    assert!(
        words.starts_with("the arguments do not match the schema:") && words.contains("wide"),
        "{words}"
    );
}

#[tokio::test]
async fn a_tool_that_fails_says_why() {
    assert_eq!(
        words(area_of(json!({"width": -1.0})).await),
        "a room has no negative width"
    );
}

#[tokio::test]
async fn an_error_of_any_kind_is_told_with_its_causes() {
    #[derive(Debug, thiserror::Error)]
    #[error("the shop is closed")]
    struct Closed(#[source] std::num::ParseIntError);
    let client = client();
    let shop = Tool::typed("shop", "Sells.", |_: Value| async {
        "x".parse::<i32>().map_err(Closed)
    });
    client.register_tool(shop).await.unwrap();
    let words = words(client.try_tool("shop", json!({})).await);
    assert_eq!(words, "the shop is closed: invalid digit found in string");
}

#[derive(Deserialize, JsonSchema)]
struct Nothing {}

/// The words of a tool that fails by `?` with this error.
async fn words_of<E>(fail: fn() -> Result<u32, E>) -> String
where
    E: 'static,
    ToolError: From<E>,
{
    let client = client();
    let failing = Tool::typed("fails", "Fails.", move |_: Nothing| async move {
        let number = fail()?;
        Ok::<_, ToolError>(number)
    });
    client.register_tool(failing).await.unwrap();
    words(client.try_tool("fails", json!({})).await)
}

#[tokio::test]
async fn every_error_type_works_with_the_question_mark() {
    use anyhow::Context as _;
    assert_eq!(
        words_of(|| "x".parse::<u32>()).await,
        "invalid digit found in string"
    );
    let with_context = || "x".parse::<u32>().context("the number cannot be read");
    assert_eq!(
        words_of(with_context).await,
        "the number cannot be read: invalid digit found in string"
    );
    let boxed = || Err(Box::<dyn std::error::Error + Send + Sync>::from("in a box"));
    assert_eq!(words_of(boxed).await, "in a box");
    assert_eq!(words_of(|| Err(ToolError::new("as it is"))).await, "as it is");
    assert_eq!(words_of(|| Err("plain words")).await, "plain words");
    let client = client();
    let failing = Tool::typed("fails", "Fails.", |_: Nothing| async {
        anyhow::bail!("out of paper");
        #[allow(unreachable_code, reason = "says the type")]
        Ok(())
    });
    client.register_tool(failing).await.unwrap();
    assert_eq!(words(client.try_tool("fails", json!({})).await), "out of paper");
}

#[tokio::test]
async fn a_blocking_tool_leaves_the_thread_to_others() {
    let client = client();
    let (tell, told) = std::sync::mpsc::channel::<u32>();
    let told = std::sync::Mutex::new(told);
    let waits = Tool::blocking("waits", "Waits for another tool.", move |_: Nothing| {
        told.lock().unwrap().recv_timeout(Duration::from_secs(30))
    });
    let tells = Tool::typed("tells", "Tells another tool.", move |_: Nothing| {
        let tell = tell.clone();
        async move { tell.send(7) }
    });
    client.register_tool(waits).await.unwrap();
    client.register_tool(tells).await.unwrap();
    // On the one thread of this test: the second could not run while the first blocks it.
    let (waited, told) = tokio::join!(
        client.try_tool("waits", json!({})),
        client.try_tool("tells", json!({}))
    );
    assert_eq!((waited.unwrap(), told.unwrap()), (json!(7), Value::Null));
}

#[tokio::test]
async fn a_blocking_tool_hears_that_its_time_is_over() {
    let client = client();
    let (heard, hears) = std::sync::mpsc::channel();
    let slow = Tool::blocking_with_call("slow", "Works on.", move |_: Nothing, call| {
        while !call.cancelled.is_cancelled() {
            std::thread::sleep(Duration::from_millis(1));
        }
        heard.send(())
    })
    .timeout(Duration::from_millis(20));
    client.register_tool(slow).await.unwrap();
    let words = words(client.try_tool("slow", json!({})).await);
    assert_eq!(words, "slow gave no result within 20ms");
    hears.recv_timeout(Duration::from_secs(30)).unwrap();
}

#[tokio::test]
async fn an_executor_may_come_apart_from_its_definition() {
    let client = client();
    let plugin = Plugin::new("late", "1.0.0")
        .tool(Tool::without_executor(Definition::new("late", "Comes later.")))
        .executor("late", |call| async move { Ok(call.input) });
    client.use_plugin(plugin).await.unwrap();
    assert_eq!(client.try_tool("late", json!([1])).await.unwrap(), json!([1]));
}

#[tokio::test]
async fn a_tool_that_nobody_has_is_an_error() {
    let client = client();
    client.register_tool(tool("here")).await.unwrap();
    let words = words(client.try_tool("there", json!({})).await);
    assert!(words.contains("no tool named \"there\""), "{words}");
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_takes_too_long_is_given_up() {
    let client = client();
    let slow = Tool::new(Definition::new("slow", "Never ends."), |_| std::future::pending())
        .timeout(Duration::from_secs(5));
    assert_eq!(
        slow.definition().timeout,
        Some(Duration::from_secs(605)),
        "the gateway waits longer"
    );
    client.register_tool(slow).await.unwrap();
    let words = words(client.try_tool("slow", json!({})).await);
    assert_eq!(words, "slow gave no result within 5s");
}

#[test]
fn a_definition_is_written_and_read_as_the_gateway_has_it() {
    let mut definition = Definition::new("lamp", "Turns the lamp on.")
        .version("2.1.0")
        .deprecated("Use light.");
    definition.timeout = Some(Duration::from_millis(1_500));
    let written = serde_json::to_value(&definition).unwrap();
    assert_eq!(written["timeout"], "1500ms");
    assert_eq!(written["version"], "2.1.0");
    assert_eq!(written["deprecated"], "Use light.");
    assert_eq!(serde_json::from_value::<Definition>(written).unwrap(), definition);
    for (timeout, read) in [(json!("2m"), 120), (json!(90), 90)] {
        let written = json!({"name": "a", "description": "A.", "parameters": {}, "timeout": timeout, "deprecated": true});
        let definition: Definition = serde_json::from_value(written).unwrap();
        assert_eq!(definition.timeout, Some(Duration::from_secs(read)));
        assert_eq!(definition.deprecated, Some(true.into()));
    }
    let wrong = json!({"name": "a", "description": "A.", "parameters": {}, "timeout": "soon"});
    let words = serde_json::from_value::<Definition>(wrong)
        .unwrap_err()
        .to_string();
    assert!(words.contains("got \"soon\""), "{words}");
}
