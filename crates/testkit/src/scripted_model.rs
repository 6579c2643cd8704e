//! An in-process model that follows a script.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use serde_json::json;
use tokio::sync::Semaphore;
use toolgate_engine::model::{Ask, Delta, Ending, Model, ModelError, ModelErrorKind, ReplySink};
use toolgate_kernel::agent::Provider;
use toolgate_kernel::event::{FinishReason, Usage};
use toolgate_kernel::json::Json;
use toolgate_kernel::message::Part;
use toolgate_kernel::prompt::{CallResult, OfferedTool, Turn};

/// One piece of a scripted reply.
#[derive(Clone)]
pub enum Say {
    /// Text, in one delta.
    Text(String),
    /// Reasoning, in one delta.
    Reasoning(String),
    /// A tool call.
    Call(String, String),
    /// Waits for a permit: the test decides when the reply continues.
    Gate(Arc<Semaphore>),
    /// Fails in the middle, with or without a chance for a retry.
    Break(ModelErrorKind),
}

/// A text piece.
pub fn text(words: impl Into<String>) -> Say {
    Say::Text(words.into())
}
/// A call piece with this JSON text as input.
pub fn call(name: &str, input: impl Into<String>) -> Say {
    Say::Call(name.into(), input.into())
}

type Script = Box<dyn Fn(&Ask) -> Vec<Say> + Send + Sync>;

/// A scripted model. Records its requests.
pub struct ScriptedModel {
    script: Script,
    usage: Usage,
    asked: Mutex<Vec<Ask>>,
}

impl ScriptedModel {
    /// A model whose replies are computed by `script`.
    pub fn new(script: impl Fn(&Ask) -> Vec<Say> + Send + Sync + 'static) -> Arc<Self> {
        let usage = Usage {
            input_tokens: 10,
            output_tokens: 5,
            ..Usage::default()
        };
        Self::with_usage(script, usage)
    }
    /// The same, of a vendor that reports no usage.
    pub fn without_usage(script: impl Fn(&Ask) -> Vec<Say> + Send + Sync + 'static) -> Arc<Self> {
        Self::with_usage(script, Usage::default())
    }
    fn with_usage(script: impl Fn(&Ask) -> Vec<Say> + Send + Sync + 'static, usage: Usage) -> Arc<Self> {
        Arc::new(Self {
            script: Box::new(script),
            usage,
            asked: Mutex::default(),
        })
    }
    /// All requests so far.
    pub fn asked(&self) -> Vec<Ask> {
        self.asked.lock().expect("no panic holds the list").clone()
    }
}

#[async_trait]
impl Model for ScriptedModel {
    async fn reply(&self, ask: &Ask, sink: &mut dyn ReplySink) -> Result<Ending, ModelError> {
        self.asked
            .lock()
            .expect("no panic holds the list")
            .push(ask.clone());
        let mut slot = 0;
        for say in (self.script)(ask) {
            match say {
                Say::Text(words) => sink.delta(Delta::Text(&words)),
                Say::Reasoning(words) => sink.delta(Delta::Reasoning(&words)),
                Say::Call(name, input) => {
                    sink.delta(Delta::CallStart { slot, name: &name });
                    sink.delta(Delta::CallInput { slot, text: &input });
                    slot += 1;
                }
                Say::Gate(gate) => {
                    sink.flush();
                    gate.acquire().await.expect("gates are not closed").forget();
                }
                Say::Break(kind) => {
                    sink.flush();
                    return Err(ModelError::new(kind, "the script broke off"));
                }
            }
        }
        sink.flush();
        let reason = if slot > 0 {
            FinishReason::ToolCalls
        } else {
            FinishReason::Stop
        };
        Ok(Ending {
            reason,
            usage: self.usage,
        })
    }
    /// Names of the tools, under the vendor's name.
    fn definitions(&self, vendor: Provider, tools: &[OfferedTool]) -> Option<Json> {
        let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
        Some(json!([{ "vendor": vendor, "names": names }]).into())
    }
}

/// Text of the last user turn.
pub fn last_words(ask: &Ask) -> String {
    let words = ask.turns.iter().rev().find_map(|turn| match turn.as_ref() {
        Turn::User(parts) => Some(
            parts
                .iter()
                .filter_map(|part| match part {
                    Part::Text { text } => Some(text.as_str()),
                    Part::Image { .. } => None,
                })
                .collect(),
        ),
        Turn::Assistant(_) | Turn::Results(_) => None,
    });
    words.unwrap_or_default()
}

/// The tool results of the last turn, if it has some.
pub fn last_results(ask: &Ask) -> Option<&[CallResult]> {
    match ask.turns.last().map(AsRef::as_ref) {
        Some(Turn::Results(results)) => Some(results),
        Some(Turn::User(_) | Turn::Assistant(_)) | None => None,
    }
}
