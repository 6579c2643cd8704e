//! The tools, what they are called with, and what has to come of it.

use serde_json::{Value, json};
use toolgate_kernel::time::Time;
use toolgate_testkit::model_server::ModelServer;

use crate::harness::{MARK, Outside};

/// A tool under test: the agent of the row calls it, and the gateway is killed before the run ends.
pub struct Row {
    pub tool: &'static str,
    pub input: Value,
    /// What stands where in its output, anything when not said; or the code of its error.
    pub expected: Result<(&'static str, Option<Value>), &'static str>,
    /// A call that is over when the test begins. `$id` in the input stands for the `id` that it gives.
    pub before: Option<(&'static str, Value)>,
    /// A call after it all that shows what was done: what stands where in its output.
    pub after: Option<(&'static str, Value, &'static str, Value)>,
}

fn row(tool: &'static str, input: Value) -> Row {
    Row {
        tool,
        input,
        expected: Err("no expectation"),
        before: None,
        after: None,
    }
}

impl Row {
    fn gives(mut self, pointer: &'static str, value: impl Into<Value>) -> Self {
        self.expected = Ok((pointer, Some(value.into())));
        self
    }
    fn has(mut self, pointer: &'static str) -> Self {
        self.expected = Ok((pointer, None));
        self
    }
    fn fails(mut self, code: &'static str) -> Self {
        self.expected = Err(code);
        self
    }
    fn after(mut self, tool: &'static str, input: Value) -> Self {
        self.before = Some((tool, input));
        self
    }
    fn then(
        mut self,
        tool: &'static str,
        input: Value,
        pointer: &'static str,
        value: impl Into<Value>,
    ) -> Self {
        self.after = Some((tool, input, pointer, value.into()));
        self
    }
}

/// Tools that keep what they do in the gateway's own store.
pub fn keeping() -> Vec<Row> {
    let goals = || json!({"goals": [{"description": MARK}]});
    let memory = || json!({"topic": "cat", "content": MARK});
    let plan = || json!({"message": MARK, "at": "2099-01-01T00:00:00Z"});
    let file = || json!({"path": "a.md", "content": MARK});
    vec![
        row("setGoals", goals())
            .gives("/totalGoals", 1)
            .then("getGoals", json!({}), "/totalGoals", 1),
        row("getGoals", json!({}))
            .after("setGoals", goals())
            .gives("/currentGoals/0/description", MARK),
        row("setMemory", memory()).gives("/action", "created").then(
            "getMemory",
            json!({}),
            "/totalMemories",
            1,
        ),
        row("getMemory", json!({"query": MARK}))
            .after("setMemory", memory())
            .gives("/memories/0/topic", "cat"),
        row("createPlan", plan())
            .gives("/status", "active")
            .then("getPlan", json!({}), "/totalPlans", 1),
        row("getPlan", json!({}))
            .after("createPlan", plan())
            .gives("/plans/0/message", MARK),
        row("cancelPlan", json!({"id": "$id"}))
            .after("createPlan", plan())
            .gives("/cancelled/status", "cancelled")
            .then("getPlan", json!({}), "/plans/0/status", "cancelled"),
        row("vfs_write", file()).gives("/version", 1).then(
            "vfs_read",
            json!({"path": "a.md"}),
            "/version",
            1,
        ),
        row("vfs_read", json!({"path": "a.md"}))
            .after("vfs_write", file())
            .gives("/content", MARK),
        row("vfs_list", json!({}))
            .after("vfs_write", file())
            .gives("/totalFiles", 1),
        row("vfs_delete", json!({"path": "a.md"}))
            .after("vfs_write", file())
            .gives("/path", "a.md")
            .then("vfs_list", json!({}), "/totalFiles", 0),
        row("updateSpaceMetadata", json!({"metadata": {"a": MARK}}))
            .gives("/metadata/a", MARK)
            .then("getSpaceContext", json!({}), "/metadata/a", MARK),
        row("getSpaceContext", json!({})).gives("/recentMessages/0/text", "go"),
        row("searchKnowledge", json!({"query": MARK})).gives("/results/0/documentId", "guide"),
        row(
            "sendNotification",
            json!({"title": "Tea", "channels": ["space", "webhook"]}),
        )
        .gives("/sent/0", "space"),
    ]
}

/// Tools that ask somebody else, who is asked when the gateway dies.
pub fn outside(server: &Outside) -> Vec<Row> {
    vec![
        row("find", json!({"id": MARK})).gives("/body/said", MARK),
        row("order", json!({"id": MARK})).fails("INTERRUPTED"),
        row("large", json!({}))
            .gives("/truncated", true)
            .then("vfs_list", json!({}), "/totalFiles", 1),
        row("web_fetch", json!({"url": server.url("/page")})).gives("/title", "A page"),
        row("web_search", json!({"query": MARK})).gives("/results/0/snippet", MARK),
        row("draw", json!({"prompt": MARK})).fails("INTERRUPTED").then(
            "vfs_list",
            json!({}),
            "/totalFiles",
            0,
        ),
        row("draw_again", json!({"prompt": MARK}))
            .gives("/mediaType", "image/png")
            .then("vfs_list", json!({}), "/totalFiles", 1),
    ]
}

/// Tools that are runs of their own, whose model is asked when the gateway dies.
pub fn families() -> Vec<Row> {
    vec![
        row("spawn_agent", json!({"agent": "held", "prompt": MARK})).gives("", "MARKED-answer"),
        row("spawn_agent", json!({"agent": "signaller", "prompt": MARK})).gives("/signals/0/message", MARK),
        row("ask_held", json!({"prompt": MARK})).gives("", "MARKED-answer"),
        row("form", json!({"mark": MARK})).gives("/mark", MARK),
    ]
}

/// Tools that need nobody but time.
pub fn waiting(moment: Time) -> Vec<Row> {
    vec![
        row("fixed", json!({})).gives("/fixed", MARK),
        row("mirror", json!({"a": MARK})).gives("/a", MARK),
        row("pause", json!({})).has("/waitedUntil"),
        row("wait", json!({"until": moment})).gives("/waitedUntil", moment.to_string()),
        row("signal", json!({})).gives("/signal", MARK),
    ]
}

const PREBUILT: [&str; 18] = [
    "setGoals",
    "getGoals",
    "setMemory",
    "getMemory",
    "createPlan",
    "getPlan",
    "cancelPlan",
    "searchKnowledge",
    "sendNotification",
    "getSpaceContext",
    "updateSpaceMetadata",
    "vfs_read",
    "vfs_write",
    "vfs_list",
    "vfs_delete",
    "signal_parent",
    "web_fetch",
    "web_search",
];

/// An agent that follows a script and has every tool there is.
pub fn agent(models: &ModelServer, server: &Outside, script: &str) -> Value {
    // What the agent of a row remembers is its own: all rows work for one person.
    let execution = |name: &str| match name.ends_with("Memory") {
        true => json!({"action": name, "scope": "agent"}),
        false => json!({"action": name}),
    };
    let prebuilt = PREBUILT.map(|name| (name, "prebuilt", execution(name)));
    let own = [
        ("gate", "request", json!({"url": server.url("/gate")})),
        ("find", "request", json!({"url": server.url("/items/{{id}}")})),
        (
            "order",
            "request",
            json!({"method": "POST", "url": server.url("/orders"), "body": {"id": "{{id}}"}}),
        ),
        ("large", "request", json!({"url": server.url("/large")})),
        ("draw", "image-generator", json!({})),
        ("draw_again", "image-generator", json!({})),
        ("spawn_agent", "spawn-agent", json!({})),
        ("ask_held", "ai-agent", json!({"agent": "held"})),
        (
            "form",
            "prompt",
            json!({
                "prompt": r#"hold:0 say:{"mark":"{{mark}}"}"#,
                "result_schema": {"type": "object", "properties": {"mark": {"type": "string"}}, "required": ["mark"]},
            }),
        ),
        ("fixed", "basic", json!({"static": {"fixed": MARK}})),
        ("mirror", "basic", json!({"mode": "pass-through"})),
        ("pause", "waiting", json!({"duration": "1s"})),
        ("wait", "waiting", json!({})),
        ("signal", "waiting", json!({"signal": true})),
    ];
    let tools = prebuilt.into_iter().chain(own).map(|(name, kind, execution)| {
        let mut tool =
            json!({"name": name, "description": "A tool.", "executionType": kind, "execution": execution});
        if name == "draw_again" {
            tool["retry"] = "safe".into();
        }
        tool
    });
    json!({
        "access": "public",
        "instructions": format!("script: {script}"),
        "model": {"provider": "openai", "name": "script", "baseUrl": models.base_url(), "apiKey": "none"},
        "tools": tools.collect::<Vec<_>>(),
    })
}
