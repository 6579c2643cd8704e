//! How the kernel's own types look on the wire. The names here stand for them in `value_type` of the
//! response bodies, and become components of the OpenAPI document.

use serde_json::value::RawValue;
use toolgate_kernel::event;
use toolgate_kernel::id;
use toolgate_kernel::name;
use toolgate_kernel::problem::Problem;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{KnownFormat, ObjectBuilder, Schema, SchemaFormat, SchemaType, Type};
use utoipa::{PartialSchema, ToSchema};

use crate::query::SEQ_MAX;
use crate::wire::{At, Wire, component, string};

/// A text that the kernel reads: described by its form, read by its own rule.
macro_rules! text {
    ($(#[doc = $doc:literal])* $name:ident = $kernel:ty, $pattern:literal) => {
        $(#[doc = $doc])*
        pub struct $name;

        impl PartialSchema for $name {
            fn schema() -> RefOr<Schema> {
                ObjectBuilder::new()
                    .schema_type(Type::String)
                    .pattern(Some($pattern))
                    .description(Some(concat!($($doc),*).trim()))
                    .into()
            }
        }
        impl ToSchema for $name {}
        impl Wire for $kernel {
            fn read(value: &RawValue, at: &At<'_>, problems: &mut Vec<Problem>) -> Option<Self> {
                let text = string(value, at, problems)?;
                text.parse().map_err(|e: <$kernel as std::str::FromStr>::Err| problems.push(at.problem(e.to_string()))).ok()
            }
            fn schema() -> RefOr<Schema> {
                component(stringify!($name))
            }
            fn components(components: &mut Vec<(String, RefOr<Schema>)>) {
                components.push((stringify!($name).into(), <$name as PartialSchema>::schema()));
            }
        }
    };
}

text!(
    /// A lasting participant.
    EntityId = id::EntityId, "^ent_[0-7][0-9a-hjkmnp-tv-z]{25}$"
);
text!(
    /// A shared conversation.
    SpaceId = id::SpaceId, "^space_[0-7][0-9a-hjkmnp-tv-z]{25}$"
);
text!(
    /// One activation of an agent.
    RunId = id::RunId, "^run_[0-7][0-9a-hjkmnp-tv-z]{25}$"
);
text!(
    /// One message in a space.
    MessageId = id::MessageId, "^msg_[0-7][0-9a-hjkmnp-tv-z]{25}$"
);
text!(
    /// A project.
    ProjectId = id::ProjectId, "^proj_[0-7][0-9a-hjkmnp-tv-z]{25}$"
);
text!(
    /// Names an API key; not the key itself.
    KeyId = id::KeyId, "^key_[0-7][0-9a-hjkmnp-tv-z]{25}$"
);
text!(
    /// A browser that has signed in.
    SessionId = id::SessionId, "^sess_[0-7][0-9a-hjkmnp-tv-z]{25}$"
);
text!(
    /// One use of a tool by the model.
    CallId = id::CallId, "^call_[0-7][0-9a-hjkmnp-tv-z]{25}_(0|[1-9][0-9]{0,9})$"
);
text!(
    /// A question to a person: may this call run?
    ApprovalId = id::ApprovalId, "^appr_[0-7][0-9a-hjkmnp-tv-z]{25}_(0|[1-9][0-9]{0,9})$"
);
text!(
    /// A question that a tool asks people in the middle of a call.
    QuestionId = id::QuestionId, "^qst_[0-7][0-9a-hjkmnp-tv-z]{25}_(0|[1-9][0-9]{0,9})_(0|[1-9][0-9]{0,9})$"
);
text!(
    /// An agent's name, unique in its project.
    AgentName = name::AgentName, "^[A-Za-z_][A-Za-z0-9_-]{0,63}$"
);

/// A moment, as RFC 3339 in UTC.
pub struct Time;

impl PartialSchema for Time {
    fn schema() -> RefOr<Schema> {
        ObjectBuilder::new()
            .schema_type(Type::String)
            .format(Some(SchemaFormat::KnownFormat(KnownFormat::DateTime)))
            .into()
    }
}
impl ToSchema for Time {}

/// A place in a stream.
pub struct Seq;

impl PartialSchema for Seq {
    fn schema() -> RefOr<Schema> {
        ObjectBuilder::new()
            .schema_type(Type::Integer)
            .minimum(Some(0))
            .maximum(Some(SEQ_MAX))
            .into()
    }
}
impl ToSchema for Seq {}

/// What a client may call one of its requests.
pub struct IdempotencyKey;

impl PartialSchema for IdempotencyKey {
    fn schema() -> RefOr<Schema> {
        ObjectBuilder::new()
            .schema_type(Type::String)
            .pattern(Some("^[!-~]{1,255}$"))
            .into()
    }
}
impl ToSchema for IdempotencyKey {}

/// The `etag` of one version, or `*` for any.
pub struct EtagOrAny;

impl PartialSchema for EtagOrAny {
    fn schema() -> RefOr<Schema> {
        ObjectBuilder::new()
            .schema_type(Type::String)
            .pattern(Some(r#"^(\*|"[0-9]{1,16}")$"#))
            .into()
    }
}
impl ToSchema for EtagOrAny {}

/// Any version: there must be none.
pub struct AnyEtag;

impl PartialSchema for AnyEtag {
    fn schema() -> RefOr<Schema> {
        ObjectBuilder::new()
            .schema_type(Type::String)
            .enum_values(Some(["*"]))
            .into()
    }
}
impl ToSchema for AnyEtag {}

/// Any JSON value.
pub struct Any;

impl PartialSchema for Any {
    fn schema() -> RefOr<Schema> {
        ObjectBuilder::new().schema_type(SchemaType::AnyValue).into()
    }
}
impl ToSchema for Any {}

fn statuses() -> [&'static str; event::Status::ALL.len()] {
    event::Status::ALL.map(event::Status::as_str)
}

/// Status of a run.
pub struct Status;

impl PartialSchema for Status {
    fn schema() -> RefOr<Schema> {
        ObjectBuilder::new()
            .schema_type(Type::String)
            .enum_values(Some(statuses()))
            .into()
    }
}
impl ToSchema for Status {}

/// Statuses of runs, with commas between them.
pub struct Statuses;

impl PartialSchema for Statuses {
    fn schema() -> RefOr<Schema> {
        let one = format!("({})", statuses().join("|"));
        ObjectBuilder::new()
            .schema_type(Type::String)
            .pattern(Some(format!("^{one}(,{one})*$")))
            .into()
    }
}
impl ToSchema for Statuses {}
