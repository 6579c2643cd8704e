//! How much memory an event takes: queues of events are bounded by it.

use std::io;

use super::Event;
use crate::json::Json;

impl Event {
    /// Bytes of memory that it takes, roughly: its own size and that of its texts.
    pub fn memory(&self) -> usize {
        let texts = match self {
            Self::TextDelta(e) => e.delta.len(),
            Self::ReasoningDelta(e) => e.delta.len(),
            Self::ToolInputDelta(e) => e.input_text_delta.len(),
            Self::ToolProgress(e) => e.progress.as_ref().map_or(0, text),
            Self::TextEnd(e) => e.text.len(),
            Self::ToolInputAvailable(e) => e.input.as_ref().map_or(0, text),
            Self::ToolOutputAvailable(e) => e.output.as_ref().map_or(0, text),
            Self::TextStart(_)
            | Self::ReasoningStart(_)
            | Self::ToolInputStart(_)
            | Self::StepStart(_)
            | Self::StepFinish(_)
            | Self::RunStatus(_)
            | Self::ToolExecuting(_)
            | Self::ToolSampling(_)
            | Self::ToolReleased(_) => 0,
            // Rare, or of many members: as long as they are written.
            Self::RunStart(_)
            | Self::Said(_)
            | Self::Told(_)
            | Self::CallRequest(_)
            | Self::ContextCut(_)
            | Self::StepRetry(_)
            | Self::ReasoningEnd(_)
            | Self::ToolApprovalRequest(_)
            | Self::ToolApprovalResponse(_)
            | Self::ToolQuestion(_)
            | Self::ToolQuestionResponse(_)
            | Self::ToolOutputError(_)
            | Self::ToolOutputDenied(_)
            | Self::RunFinish(_)
            | Self::Notification(_)
            | Self::ChildCall(_)
            | Self::Opaque(_) => self.written(),
        };
        size_of::<Self>() + texts
    }

    fn written(&self) -> usize {
        let mut count = Count(0);
        serde_json::to_writer(&mut count, self).expect("an event has text keys, and counting does not fail");
        count.0
    }
}

fn text(json: &Json) -> usize {
    json.as_str().len()
}

/// Counts what is written to it.
struct Count(usize);

impl io::Write for Count {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
