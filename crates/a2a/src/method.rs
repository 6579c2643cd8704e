//! The operations, and what JSON-RPC calls them. The names of 1.0 and 0.3 never collide, so a method's name tells
//! the dialect.

use crate::Dialect;

/// What a client asks for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Operation {
    /// Send a message, and wait for the task to end or to pause.
    SendMessage,
    /// Send a message, and stream what follows.
    SendStreamingMessage,
    /// Read a task.
    GetTask,
    /// List tasks; 1.0 alone.
    ListTasks,
    /// Cancel a task.
    CancelTask,
    /// Stream a task that exists.
    SubscribeToTask,
    /// Store where changes of a task are posted to.
    CreatePushConfig,
    /// Read one such configuration.
    GetPushConfig,
    /// List a task's configurations.
    ListPushConfigs,
    /// Delete one.
    DeletePushConfig,
    /// The card for callers who have said who they are.
    GetExtendedAgentCard,
    /// Give results of client tools by their calls alone, without a message; neither version has it.
    ResumeTask,
}

/// Every name there is.
const NAMES: [(Operation, Option<&str>, Option<&str>); 12] = [
    (Operation::SendMessage, Some("SendMessage"), Some("message/send")),
    (
        Operation::SendStreamingMessage,
        Some("SendStreamingMessage"),
        Some("message/stream"),
    ),
    (Operation::GetTask, Some("GetTask"), Some("tasks/get")),
    (Operation::ListTasks, Some("ListTasks"), None),
    (Operation::CancelTask, Some("CancelTask"), Some("tasks/cancel")),
    (
        Operation::SubscribeToTask,
        Some("SubscribeToTask"),
        Some("tasks/resubscribe"),
    ),
    (
        Operation::CreatePushConfig,
        Some("CreateTaskPushNotificationConfig"),
        Some("tasks/pushNotificationConfig/set"),
    ),
    (
        Operation::GetPushConfig,
        Some("GetTaskPushNotificationConfig"),
        Some("tasks/pushNotificationConfig/get"),
    ),
    (
        Operation::ListPushConfigs,
        Some("ListTaskPushNotificationConfigs"),
        Some("tasks/pushNotificationConfig/list"),
    ),
    (
        Operation::DeletePushConfig,
        Some("DeleteTaskPushNotificationConfig"),
        Some("tasks/pushNotificationConfig/delete"),
    ),
    (
        Operation::GetExtendedAgentCard,
        Some("GetExtendedAgentCard"),
        Some("agent/getAuthenticatedExtendedCard"),
    ),
    (Operation::ResumeTask, None, Some("tasks/resume")),
];

impl Operation {
    /// The operation of a JSON-RPC method, and the dialect that calls it so.
    pub fn of_method(name: &str) -> Option<(Self, Dialect)> {
        NAMES.iter().find_map(|(operation, v1, v03)| {
            if *v1 == Some(name) {
                Some((*operation, Dialect::V1))
            } else if *v03 == Some(name) {
                Some((*operation, Dialect::V03))
            } else {
                None
            }
        })
    }

    /// The operation's name in JSON-RPC; none where the dialect does not have it.
    pub fn method(self, dialect: Dialect) -> Option<&'static str> {
        let (_, v1, v03) = NAMES.iter().find(|(operation, ..)| *operation == self)?;
        match dialect {
            Dialect::V1 => *v1,
            Dialect::V03 => *v03,
        }
    }
}
