//! For tests: every event with a value of its own in every member. The macros that declare the events implement
//! [`Marked`] for them, so a new member is filled without anybody thinking of it; the types of members are listed here.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use uuid::Uuid;

use super::{
    Budget, ChildStatus, Claim, EndReason, Event, FinishReason, Pause, RemoteTask, Seq, Status,
    ToolInputAvailable, Usage,
};
use crate::call::ErrorCode;
use crate::history::{Earlier, EarlierPart};
use crate::id::{ApprovalId, CallId, EntityId, MessageId, QuestionId, RunId};
use crate::json::Json;
use crate::message::{Executor, Message, Origin, Part, Sender};
use crate::model::{ModelName, Provider};
use crate::name::{AgentName, ToolName};
use crate::question::Action;
use crate::time::Time;
use crate::tool::{ApprovalTerms, Approvers, ClientTool, ConsentRef, Placement, Remember, Spoken};

/// Can be filled with values that are found again.
pub(crate) trait Marked: Sized {
    /// A value that no other has and that is not left out of JSON, all its members filled.
    fn marked() -> Self;
    /// One per variant, for an enum whose variants have members.
    fn each() -> Vec<Self> {
        vec![Self::marked()]
    }
}

fn number() -> u32 {
    static NEXT: AtomicU32 = AtomicU32::new(1_000_000);
    NEXT.fetch_add(1, Ordering::Relaxed)
}
fn text() -> String {
    format!("mark_{}_", number())
}
fn uuid() -> Uuid {
    Uuid::from_u128(number().into())
}

macro_rules! marked {
    ($( $of:ty => $value:expr ),* $(,)?) => { $( impl Marked for $of { fn marked() -> Self { $value } } )* };
}
marked! {
    bool => true,
    u32 => number(),
    u64 => number().into(),
    String => text(),
    Arc<str> => text().into(),
    Json => Json::string(&text()),
    Time => Time(number().into()),
    Seq => Seq(number().into()),
    Box<Event> => Box::new(ToolInputAvailable::marked().into()),
    RunId => RunId::new(uuid()),
    EntityId => EntityId::new(uuid()),
    MessageId => MessageId::new(uuid()),
    CallId => CallId { run: Marked::marked(), number: number() },
    ApprovalId => ApprovalId { run: Marked::marked(), number: number() },
    QuestionId => QuestionId { call: Marked::marked(), number: number() },
    AgentName => text().parse().expect("a mark is a name"),
    ToolName => text().parse().expect("a mark is a name"),
    // Without members: it is seen or it is not there.
    Placement => Placement::Server,
    ErrorCode => ErrorCode::ExecutionFailed,
    Action => Action::Accept,
    Status => Status::Failed,
    FinishReason => FinishReason::Other,
    EndReason => EndReason::Limit,
    Remember => Remember::FirstInSpace,
    Provider => Provider::Demo,
}

impl<T: Marked> Marked for Option<T> {
    fn marked() -> Self {
        Some(T::marked())
    }
}
impl<T: Marked> Marked for Vec<T> {
    fn marked() -> Self {
        T::each()
    }
}
impl<K: Marked + Ord, T: Marked> Marked for BTreeMap<K, T> {
    fn marked() -> Self {
        BTreeMap::from([(K::marked(), T::marked())])
    }
}

/// A struct by its members: one that is missing here does not compile.
macro_rules! members {
    ($( $name:ident { $( $member:ident ),* $(,)? } )*) => {
        $( marked! { $name => $name { $( $member: Marked::marked(), )* } } )*
    };
}
members! {
    ModelName { provider, name }
    Budget { tokens, descendants, depth }
    ApprovalTerms { approvers, not_requester, requesters, unknown_requester, hide, editable, editor, remember }
    ConsentRef { consent_id, by, given_at }
    Spoken { text, plain, from }
    ChildStatus { status, seq }
    Claim { holder, until, by }
    Pause { until, signal }
    RemoteTask { source, task, check_at }
    Usage { input_tokens, output_tokens, reasoning_tokens, cached_tokens, estimated }
    Message { message_id, from, sender, parts, metadata, origin, on_behalf_of }
    Sender { name, time_zone, executor }
    Executor { holder, tools }
    ClientTool {
        name, description, parameters, output_schema, timeout_ms, version, deprecated, given_name,
    }
}

/// An enum by its variants: the `match` does not compile when one is missing.
macro_rules! variants {
    ($( $name:ident { $( $variant:pat => $value:expr ),* $(,)? } )*) => { $(
        impl Marked for $name {
            fn marked() -> Self {
                Self::each().remove(0)
            }
            fn each() -> Vec<Self> {
                use $name::*;
                let _all_listed = |one: &$name| match one { $( $variant => () ),* };
                vec![ $( $value ),* ]
            }
        }
    )* };
}
variants! {
    Approvers {
        Roles(_) => Roles(Marked::marked()),
        Groups(_) => Groups(Marked::marked()),
        Members => Members,
        Backend => Backend,
    }
    Part {
        Text { text: _ } => Text { text: text() },
        Image { url: _, media_type: _ } => Image { url: text(), media_type: Marked::marked() },
    }
    Origin {
        Plan { plan_id: _, due_at: _ } => Plan { plan_id: text(), due_at: Marked::marked() },
    }
    Earlier {
        User(_) => User(Marked::marked()),
        Assistant(_) => Assistant(Marked::marked()),
    }
    EarlierPart {
        Text(_) => Text(text()),
        Call { name: _, input: _, output: _, failed: _ } => Call {
            name: Marked::marked(),
            input: Marked::marked(),
            output: Marked::marked(),
            failed: Marked::marked(),
        },
    }
}
