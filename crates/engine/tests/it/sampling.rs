//! A tool that has the model of its run asked.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Value, json};
use toolgate_engine::sampling::{SAMPLINGS_MAX, SamplingRequest};
use toolgate_engine::tools::{CallContext, CallFailure, Called, ToolSource};
use toolgate_kernel::event::Event;
use toolgate_kernel::id::ProjectId;
use toolgate_kernel::json::Json;
use toolgate_kernel::message::Part;
use toolgate_kernel::prompt::Turn;
use toolgate_kernel::tool::{Listed, SourceTool, ToolList};

use crate::world::{Setup, World, agent};

/// Has the model asked as often as its input says; gives what the model said, or why it did not.
pub struct Sampler;

#[async_trait]
impl ToolSource for Sampler {
    fn name(&self) -> &'static str {
        "sampler"
    }
    fn execution_types(&self) -> &'static [&'static str] {
        &["sampler"]
    }
    async fn list(&self, _: ProjectId) -> Result<Arc<ToolList>, CallFailure> {
        let sample = json!({"description": "Sample.", "parameters": {"type": "object"}});
        let list = ToolList::from([("sample".to_owned(), Listed::new(sample))]);
        Ok(Arc::new(list))
    }
    async fn call(&self, _: &SourceTool, input: &Json, context: &CallContext) -> Result<Called, CallFailure> {
        let mut said: Vec<Value> = Vec::new();
        for number in 0..input.to_value()["times"].as_u64().unwrap_or(1) {
            let text = format!("number {number}");
            let request = SamplingRequest {
                instructions: "Be brief.".into(),
                turns: vec![Turn::User(vec![Part::Text { text }])],
                max_output_tokens: 100,
                temperature: None,
            };
            said.push(match context.sampling.sample(request).await {
                Ok(sampled) => sampled.text.into(),
                Err(words) => json!({ "refused": words }),
            });
        }
        Ok(Json::from(Value::from(said)).into())
    }
}

pub fn sampling_agent() -> Value {
    let mut agent = agent();
    let tool = json!({"name": "sample", "executionType": "sampler", "execution": {"tool": "sample"}});
    agent["tools"].as_array_mut().unwrap().push(tool);
    agent
}

/// The output of the call, the log of the run, and what the store has counted for it.
async fn sampled(agent: Value, words: &str) -> (World, Value, Vec<Event>, u64) {
    let world = World::with(Setup {
        agent,
        ..Setup::default()
    })
    .await;
    let run = world.say(words).await.run_id.unwrap();
    let end = world.finish(run).await;
    let tree = world.store.run_tree(run).await.unwrap();
    assert_eq!(
        tree.tokens,
        end.usage.total(),
        "the budget of the run tree counts it"
    );
    let events: Vec<Event> = world.log(run).await.into_iter().map(|(_, event)| event).collect();
    let output = events.iter().find_map(|event| match event {
        Event::ToolOutputAvailable(e) => e.output.as_ref().map(Json::to_value),
        _ => None,
    });
    let output = output.unwrap_or_default();
    (world, output, events, end.usage.total())
}

fn samplings(events: &[Event]) -> Vec<u32> {
    let numbers = events.iter().filter_map(|event| match event {
        Event::ToolSampling(e) => Some(e.number),
        _ => None,
    });
    numbers.collect()
}

#[tokio::test(start_paused = true)]
async fn a_tool_has_the_model_asked_and_the_run_pays() {
    let (world, output, events, tokens) = sampled(sampling_agent(), "call:sample={\"times\":2}").await;
    assert_eq!(output, json!(["you said number 0", "you said number 1"]));
    assert_eq!(samplings(&events), [1, 2]);
    // Two steps and two samplings of 15 tokens each.
    assert_eq!(tokens, 60);
    let asked = world.model.asked();
    let own = asked
        .iter()
        .find(|ask| &*ask.instructions == "Be brief.")
        .unwrap();
    assert!(own.tools.is_empty() && own.turns.len() == 1, "{own:?}");
    assert_eq!(own.model.max_output_tokens, Some(100));
}

#[tokio::test(start_paused = true)]
async fn a_call_has_the_model_asked_a_few_times_only() {
    let times = SAMPLINGS_MAX + 2;
    let (_, output, events, _) =
        sampled(sampling_agent(), &format!("call:sample={{\"times\":{times}}}")).await;
    let said = output.as_array().unwrap();
    assert_eq!(samplings(&events).len(), SAMPLINGS_MAX as usize);
    let refused = said.last().unwrap()["refused"].as_str().unwrap();
    assert!(refused.contains("16 times"), "{refused}");
}

#[tokio::test(start_paused = true)]
async fn a_run_without_tokens_left_has_no_model_asked_for_its_tools() {
    let mut agent = sampling_agent();
    // The step before and the first sampling use 30 of them.
    agent["limits"] = json!({"tokens": 29});
    let (_, output, events, _) = sampled(agent, "call:sample={\"times\":3}").await;
    assert_eq!(samplings(&events), [1]);
    let refused = output[1]["refused"].as_str().unwrap();
    assert!(refused.contains("30 tokens"), "{refused}");
}
