//! Push notification configurations.

use serde_json::Value;

use crate::Dialect;
use crate::json::{Invalid, Members, Object, Violations, parse};

/// Where a task's changes are posted to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PushConfig {
    /// Its id within the task; the server makes one where it is absent.
    pub id: Option<String>,
    /// The task; absent in the configuration of a message that begins one.
    pub task_id: Option<String>,
    /// Where to post to.
    pub url: String,
    /// Text that the receiver knows the sender by.
    pub token: Option<String>,
    /// What to send in `Authorization`.
    pub authentication: Option<Authentication>,
}

/// Content of the header `Authorization` of a push notification.
#[derive(Clone, PartialEq, Eq)]
pub struct Authentication {
    /// The HTTP authentication scheme, like `Bearer`.
    pub scheme: String,
    /// What comes after the scheme. A secret.
    pub credentials: Option<String>,
}

impl std::fmt::Debug for Authentication {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Credentials stay out of logs.
        f.debug_struct("Authentication")
            .field("scheme", &self.scheme)
            .finish_non_exhaustive()
    }
}

impl PushConfig {
    /// Reads a configuration as a request of `CreateTaskPushNotificationConfig` carries it: flat in 1.0, within
    /// `pushNotificationConfig` beside `taskId` in 0.3.
    pub fn from_json(value: Value, dialect: Dialect) -> Result<Self, Invalid> {
        parse(value, "", |value, at, bad| match dialect {
            Dialect::V1 => Self::read(value, at, bad, dialect),
            Dialect::V03 => Self::read_for_task(value, at, bad),
        })
    }

    /// Writes the configuration as the four operations answer it: flat in 1.0, in a wrapper with `taskId` in 0.3.
    pub fn to_json(&self, dialect: Dialect) -> Value {
        match dialect {
            Dialect::V1 => self
                .flat(dialect)
                .with_some("taskId", self.task_id.as_deref())
                .value(),
            Dialect::V03 => Members::new()
                .with_some("taskId", self.task_id.as_deref())
                .with("pushNotificationConfig", self.flat(dialect).value())
                .value(),
        }
    }

    /// Writes it as a part of a message's configuration.
    pub fn within_configuration(&self, dialect: Dialect) -> Value {
        let task = (dialect == Dialect::V1)
            .then_some(self.task_id.as_deref())
            .flatten();
        self.flat(dialect).with_some("taskId", task).value()
    }

    fn flat(&self, dialect: Dialect) -> Members {
        let authentication = self.authentication.as_ref().map(|found| found.to_json(dialect));
        Members::new()
            .with_some("id", self.id.as_deref())
            .with("url", self.url.as_str())
            .with_some("token", self.token.as_deref())
            .with_some("authentication", authentication)
    }

    fn read_for_task(value: Value, at: String, bad: &Violations) -> Self {
        let mut object = Object::new(value, at, bad);
        let task_id = object.need_text("taskId");
        let config = object.need("pushNotificationConfig", |value, at, bad| {
            Self::read(value, at, bad, Dialect::V03)
        });
        Self {
            task_id: Some(task_id),
            ..config.unwrap_or_else(Self::nowhere)
        }
    }

    pub(crate) fn read(value: Value, at: String, bad: &Violations, dialect: Dialect) -> Self {
        let mut object = Object::new(value, at, bad);
        Self {
            id: object.text("id").filter(|id| !id.is_empty()),
            task_id: object.text("taskId").filter(|id| !id.is_empty()),
            url: object.need_text("url"),
            token: object.text("token").filter(|token| !token.is_empty()),
            authentication: object.inner("authentication", |value, at, bad| {
                Authentication::read(value, at, bad, dialect)
            }),
        }
    }

    fn nowhere() -> Self {
        Self {
            id: None,
            task_id: None,
            url: String::new(),
            token: None,
            authentication: None,
        }
    }
}

impl Authentication {
    fn to_json(&self, dialect: Dialect) -> Value {
        let members = match dialect {
            Dialect::V1 => Members::new().with("scheme", self.scheme.as_str()),
            Dialect::V03 => Members::new().with("schemes", vec![Value::from(self.scheme.as_str())]),
        };
        members
            .with_some("credentials", self.credentials.as_deref())
            .value()
    }

    /// 0.3 has a list of schemes; the first one counts.
    fn read(value: Value, at: String, bad: &Violations, dialect: Dialect) -> Self {
        let mut object = Object::new(value, at, bad);
        let scheme = match dialect {
            Dialect::V1 => object.need_text("scheme"),
            Dialect::V03 => {
                let first = object.texts("schemes").into_iter().next();
                if first.is_none() {
                    object.bad("schemes", "must name a scheme");
                }
                first.unwrap_or_default()
            }
        };
        Self {
            scheme,
            credentials: object.text("credentials"),
        }
    }
}
