//! Registration: what is taken, what is refused, and that a refusal changes nothing.

use serde_json::json;
use toolgate_client::{Definition, Plugin, Tool};

use crate::{client, tool};

/// Registers a plugin on a client that has the plugin `first` with the tool `taken`; gives the code and the words
/// of the refusal.
async fn refused(plugin: Plugin) -> (String, String) {
    let client = client();
    client
        .use_plugin(Plugin::new("first", "1.0.0").tool(tool("taken")))
        .await
        .unwrap();
    let error = client.use_plugin(plugin).await.expect_err("it is refused");
    assert_eq!(client.plugin_names(), ["first"], "nothing has changed");
    assert_eq!(client.client_tool_definitions().len(), 1);
    (error.code().to_owned(), error.to_string())
}

#[tokio::test]
async fn a_plugin_and_its_tools_are_registered() {
    let client = client();
    let plugin = Plugin::new("pair", "1.0.0").tool(tool("one")).tool(tool("two"));
    client.use_plugin(plugin).await.unwrap();
    assert!(client.has_plugin("pair") && !client.has_plugin("one"));
    assert!(client.has_tool("one") && !client.has_tool("pair"));
    let names: Vec<String> = client
        .client_tool_definitions()
        .into_iter()
        .map(|tool| tool.name)
        .collect();
    assert_eq!(names, ["one", "two"]);
}

#[tokio::test]
async fn a_client_without_plugins_has_no_tools() {
    assert!(client().client_tool_definitions().is_empty());
    assert!(client().plugin_names().is_empty());
}

#[tokio::test]
async fn registrations_chain_and_keep_their_order() {
    let client = client();
    client
        .use_plugin(Plugin::new("z", "1").tool(tool("z1")))
        .await
        .unwrap()
        .use_plugin(Plugin::new("a", "1").tool(tool("a1")))
        .await
        .unwrap()
        .register_tool(tool("lone"))
        .await
        .unwrap();
    assert_eq!(client.plugin_names(), ["z", "a", "tool:lone"]);
    assert_eq!(client.client_tool_definitions()[2].name, "lone");
}

#[tokio::test]
async fn clones_share_their_plugins() {
    let client = client();
    client.clone().register_tool(tool("shared")).await.unwrap();
    assert!(client.has_tool("shared"));
}

#[tokio::test]
async fn a_plugin_without_a_name_is_refused() {
    assert_eq!(refused(Plugin::new(" ", "1.0.0")).await.0, "PLUGIN_INVALID");
}

#[tokio::test]
async fn a_plugin_without_a_version_is_refused() {
    assert_eq!(refused(Plugin::new("new", "")).await.0, "PLUGIN_INVALID");
}

#[tokio::test]
async fn a_second_plugin_of_the_same_name_is_refused() {
    assert_eq!(refused(Plugin::new("first", "2.0.0")).await.0, "PLUGIN_CONFLICT");
}

#[tokio::test]
async fn names_that_no_model_takes_are_refused_all_at_once() {
    let plugin = Plugin::new("new", "1.0.0")
        .tool(tool("1st"))
        .tool(tool("fine"))
        .tool(tool("not this"))
        .tool(tool(&"x".repeat(65)));
    let (code, words) = refused(plugin).await;
    assert_eq!(code, "PLUGIN_INVALID");
    for at in [0, 2, 3] {
        assert!(words.contains(&format!("/tools/{at}/name")), "{words}");
    }
    assert!(!words.contains("/tools/1/"), "{words}");
}

#[tokio::test]
async fn a_schema_that_the_gateway_would_not_take_is_refused() {
    let definition = Definition::new("new", "Refers.").parameters(json!({
        "type": "object", "properties": {"x": {"$ref": "#/$defs/x"}}, "$defs": {"x": {"type": "string"}},
    }));
    let (code, words) = refused(Plugin::new("new", "1").tool(Tool::without_executor(definition))).await;
    assert_eq!(code, "PLUGIN_INVALID");
    assert!(words.contains("$ref"), "{words}");
}

#[tokio::test]
async fn an_executor_for_no_tool_is_refused() {
    let plugin = Plugin::new("new", "1.0.0")
        .tool(tool("one"))
        .executor("two", |_| async { Ok(json!(2)) });
    let (code, words) = refused(plugin).await;
    assert_eq!(code, "PLUGIN_INVALID");
    assert!(words.contains("\"two\""), "{words}");
}

#[tokio::test]
async fn a_tool_that_nothing_executes_is_refused() {
    let bare = || Tool::without_executor(Definition::new("bare", "Has no executor."));
    let (code, words) = refused(Plugin::new("new", "1.0.0").tool(tool("one")).tool(bare())).await;
    assert_eq!(code, "PLUGIN_INVALID");
    assert!(words.contains("no executor for \"bare\""), "{words}");
    let error = client().register_tool(bare()).await.expect_err("it is refused");
    assert_eq!(error.code(), "PLUGIN_INVALID");
}

#[tokio::test]
async fn a_tool_whose_name_is_taken_is_refused_and_the_holder_named() {
    let plugin = Plugin::new("new", "1.0.0").tool(tool("free")).tool(tool("taken"));
    let (code, words) = refused(plugin).await;
    assert_eq!(code, "PLUGIN_CONFLICT");
    assert!(words.contains("\"first\""), "{words}");
}

#[tokio::test]
async fn two_tools_of_one_name_in_one_plugin_are_refused() {
    let plugin = Plugin::new("new", "1.0.0").tool(tool("same")).tool(tool("same"));
    assert_eq!(refused(plugin).await.0, "PLUGIN_INVALID");
}

#[tokio::test]
async fn a_plugin_that_is_taken_out_takes_its_tools_along_and_frees_their_names() {
    let client = client();
    let plugin = Plugin::new("pair", "1.0.0").tool(tool("one"));
    client.use_plugin(plugin.clone()).await.unwrap();
    client.unuse("pair").await.unwrap();
    assert!(!client.has_plugin("pair") && !client.has_tool("one"));
    client.use_plugin(plugin).await.unwrap();
}

#[tokio::test]
async fn a_plugin_that_is_not_there_cannot_be_taken_out() {
    let error = client().unuse("ghost").await.unwrap_err();
    assert_eq!(error.code(), "PLUGIN_UNKNOWN");
}

#[test]
fn an_address_that_is_none_is_refused() {
    for url in ["", "localhost", "ftp://localhost", "http://"] {
        let error = toolgate_client::Client::builder(url).build().unwrap_err();
        assert_eq!(error.code(), "SETUP", "{url}");
    }
}
