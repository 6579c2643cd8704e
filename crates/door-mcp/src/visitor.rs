//! Who asks, for whose tools, and what their client can do.

use http::request::Parts;
use rmcp::ErrorData;
use rmcp::RoleServer;
use rmcp::model::{Extensions, ProtocolVersion};
use rmcp::service::RequestContext;
use toolgate_access::Principal;
use toolgate_kernel::id::{RunId, SpaceId};
use toolgate_kernel::name::AgentName;

use crate::list_changes::Changes;

/// Member of a request's `_meta` that names the space of a call.
pub(crate) const SPACE_META: &str = "toolgate/space";
/// Member of a result's `_meta` that names the run.
pub(crate) const RUN_META: &str = "toolgate/run";

/// The caller of one HTTP request; stands in its extensions.
#[derive(Clone)]
pub(crate) struct Visitor {
    pub who: Principal,
    /// Agent whose tools are offered.
    pub agent: AgentName,
    /// Space that the address or a header names.
    pub space: Option<SpaceId>,
    /// Tasks that a `subscriptions/listen` follows.
    pub tasks: Vec<RunId>,
    /// Changes of the project's lists, for a request that listens.
    pub changes: Option<Changes>,
}

impl Visitor {
    /// The caller of the request that a handler was given.
    pub fn of(extensions: &Extensions) -> Result<&Self, ErrorData> {
        let parts = extensions.get::<Parts>();
        let visitor = parts.and_then(|parts| parts.extensions.get::<Self>());
        visitor.ok_or_else(|| ErrorData::internal_error("the request has no caller", None))
    }

    /// The space that the request names in `_meta`, or else its address or header.
    pub fn space_of(&self, context: &RequestContext<RoleServer>) -> Result<Option<SpaceId>, ErrorData> {
        let Some(named) = context.meta.get(SPACE_META) else {
            return Ok(self.space);
        };
        let space = named.as_str().and_then(|text| text.parse().ok());
        space.map(Some).ok_or_else(|| {
            let words = format!("_meta {SPACE_META:?} must be the id of a space, such as \"space_…\"");
            ErrorData::invalid_params(words, None)
        })
    }

    /// Whom a request state or a space belongs to: the project, and the user if there is one.
    pub fn owner(&self) -> String {
        let entity = self.who.entity().map(|entity| entity.to_string());
        format!("{}:{}", self.who.project, entity.unwrap_or_default())
    }
}

/// What the client of a request can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Abilities {
    /// It speaks 2026-07-28 or later: every request stands for itself.
    pub modern: bool,
    /// It takes a task for an answer.
    pub tasks: bool,
    /// It asks its person what a form asks for.
    pub elicits: bool,
    /// It asks its person to visit a page.
    pub visits: bool,
}

impl Abilities {
    /// Those of a client of which nothing matters but its era.
    pub const MODERN: Self = Self {
        modern: true,
        tasks: false,
        elicits: false,
        visits: false,
    };

    /// What the request, or the session's beginning, declares.
    pub fn of(context: &RequestContext<RoleServer>) -> Self {
        let version = context.protocol_version();
        let modern =
            version.is_some_and(|version| version.as_str() >= ProtocolVersion::V_2026_07_28.as_str());
        let declared = context.client_capabilities();
        let elicitation = declared
            .as_ref()
            .and_then(|declared| declared.elicitation.as_ref());
        Self {
            modern,
            tasks: modern
                && declared
                    .as_ref()
                    .is_some_and(|declared| declared.supports_tasks()),
            // Before there were modes, an empty object meant forms.
            elicits: elicitation.is_some_and(|modes| modes.form.is_some() || modes.url.is_none()),
            visits: elicitation.is_some_and(|modes| modes.url.is_some()),
        }
    }
}
