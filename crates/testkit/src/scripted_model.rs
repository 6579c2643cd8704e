//! A model that says what a test tells it to.

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
    /// Words, one delta.
    Text(String),
    /// Reasoning, one delta.
    Reasoning(String),
    /// A call.
    Call(String, String),
    /// Waits for a permit: the test decides when the reply goes on.
    Gate(Arc<Semaphore>),
    /// Ends in the middle; asking again may help or not.
    Break(ModelErrorKind),
}

/// Words.
pub fn text(words: impl Into<String>) -> Say {
    Say::Text(words.into())
}
/// A call with this JSON text as input.
pub fn call(name: &str, input: impl Into<String>) -> Say {
    Say::Call(name.into(), input.into())
}

type Script = Box<dyn Fn(&Ask) -> Vec<Say> + Send + Sync>;

/// A model by script. Remembers what it was asked.
pub struct ScriptedModel {
    script: Script,
    asked: Mutex<Vec<Ask>>,
}

impl ScriptedModel {
    /// Answers with whatever `script` makes of the question.
    pub fn new(script: impl Fn(&Ask) -> Vec<Say> + Send + Sync + 'static) -> Arc<Self> {
        Arc::new(Self {
            script: Box::new(script),
            asked: Mutex::default(),
        })
    }
    /// Everything it was asked so far.
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
                    let message = "the script broke off".to_owned();
                    return Err(ModelError {
                        message,
                        kind,
                        retry_after: None,
                    });
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
            usage: Usage {
                input_tokens: 10,
                output_tokens: 5,
                ..Usage::default()
            },
        })
    }
    /// The names, under the vendor's.
    fn definitions(&self, vendor: Provider, tools: &[OfferedTool]) -> Option<Json> {
        let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
        Some(json!([{ "vendor": vendor, "names": names }]).into())
    }
}

/// What the user last said.
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

/// The results of the last step, if the model is asked because of them.
pub fn last_results(ask: &Ask) -> Option<&[CallResult]> {
    match ask.turns.last().map(AsRef::as_ref) {
        Some(Turn::Results(results)) => Some(results),
        Some(Turn::User(_) | Turn::Assistant(_)) | None => None,
    }
}
