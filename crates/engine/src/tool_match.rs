//! Which tools somebody means by what they say.

use toolgate_kernel::tool::Tool;
use toolgate_search::{Utterance, match_triggers};

pub use toolgate_search::{How, Language, Order, TriggerMatch, WordMatch};

/// Ranks tools by their triggers, best first; `list` of a match is the place of its tool. Those that no trigger fits are
/// missing. The work is bounded: at most 5,000 words of triggers are compared with 64 that were said.
pub fn match_tools<'t>(
    text: &str,
    context: &[String],
    language: Option<Language>,
    tools: impl Iterator<Item = &'t Tool>,
) -> Vec<TriggerMatch> {
    let utterance = Utterance {
        text,
        context,
        language,
    };
    let lists: Vec<&[String]> = tools.map(|tool| tool.triggers.as_slice()).collect();
    match_triggers(&utterance, &lists)
}
