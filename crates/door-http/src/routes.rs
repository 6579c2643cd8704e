//! The routes, one file per thing.

mod agent_state;
mod agents;
mod approvals;
mod asking;
mod calls;
mod consents;
mod curators;
mod deletions;
mod deliveries;
mod entities;
mod feeds;
mod file_links;
mod files;
mod health;
mod keys;
mod knowledge;
mod knowledge_search;
mod mcp_oauth;
mod mcp_programs;
mod mcp_servers;
mod memories;
mod message;
mod messages;
mod open_approvals;
pub(crate) mod overview;
mod plugin_bodies;
mod plugins;
mod projects;
mod questions;
mod results;
mod run_changes;
mod runs;
mod sessions;
mod shared_tools;
pub(crate) mod spaces;
mod tool_call;
mod tool_check;
mod tool_match;
mod tool_usage;
mod tool_voice;
pub(crate) mod tools;
mod usage;

use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::Rest;

/// Every route with its description.
pub(crate) fn all() -> OpenApiRouter<Rest> {
    OpenApiRouter::default()
        .routes(routes!(agents::list))
        .routes(routes!(agents::put, agents::get, agents::remove))
        .routes(routes!(agents::revisions))
        .routes(routes!(agents::revision))
        .routes(routes!(agent_state::goals))
        .routes(routes!(agent_state::change_goal, agent_state::remove_goal))
        .routes(routes!(memories::list))
        .routes(routes!(memories::change, memories::remove))
        .routes(routes!(agent_state::plans))
        .routes(routes!(agent_state::change_plan, agent_state::remove_plan))
        .routes(routes!(spaces::create, spaces::list))
        .routes(routes!(spaces::get, deletions::space))
        .routes(routes!(spaces::member, spaces::add_member, spaces::remove_member))
        .routes(routes!(files::list))
        .routes(routes!(files::read, files::write, files::remove))
        .routes(routes!(file_links::create))
        .routes(routes!(file_links::end_all))
        .routes(routes!(file_links::read))
        .routes(routes!(knowledge::list, knowledge_search::put_many))
        .routes(routes!(knowledge_search::search))
        .routes(routes!(knowledge::put, knowledge::get, knowledge::remove))
        .routes(routes!(deliveries::list))
        .routes(routes!(deliveries::retry))
        .routes(routes!(entities::put, entities::get, deletions::entity))
        .routes(routes!(deletions::export))
        .routes(routes!(messages::post))
        .routes(routes!(feeds::space))
        .routes(routes!(runs::of_space))
        .routes(routes!(results::to_space))
        .routes(routes!(messages::start, runs::list))
        .routes(routes!(run_changes::watch))
        .routes(routes!(runs::get, deletions::run))
        .routes(routes!(feeds::run))
        .routes(routes!(runs::cancel))
        .routes(routes!(runs::tree))
        .routes(routes!(results::to_run))
        .routes(routes!(calls::claim))
        .routes(routes!(calls::release))
        .routes(routes!(calls::progress))
        .routes(routes!(calls::signal))
        .routes(routes!(open_approvals::list))
        .routes(routes!(approvals::decide))
        .routes(routes!(consents::list))
        .routes(routes!(consents::revoke))
        .routes(routes!(questions::list))
        .routes(routes!(questions::respond))
        .routes(routes!(tools::list))
        .routes(routes!(tool_match::find))
        .routes(routes!(tool_voice::say))
        .routes(routes!(shared_tools::list, shared_tools::clear))
        .routes(routes!(
            shared_tools::put,
            shared_tools::get,
            shared_tools::remove
        ))
        .routes(routes!(tool_call::call))
        .routes(routes!(tool_check::validate))
        .routes(routes!(tool_usage::usage))
        .routes(routes!(plugins::list, plugins::install))
        .routes(routes!(plugins::get, plugins::remove))
        .routes(routes!(plugins::roll_back))
        .routes(routes!(plugins::revoke))
        .routes(routes!(plugins::sign))
        .routes(routes!(curators::list))
        .routes(routes!(curators::get, curators::put, curators::revoke))
        .routes(routes!(curators::put_for_project))
        .routes(routes!(curators::revoke_key))
        .routes(routes!(mcp_servers::list))
        .routes(routes!(mcp_servers::get, mcp_servers::put, mcp_servers::remove))
        .routes(routes!(mcp_servers::test))
        .routes(routes!(mcp_programs::restart))
        .routes(routes!(mcp_programs::log))
        .routes(routes!(mcp_servers::approve))
        .routes(routes!(mcp_servers::reject))
        .routes(routes!(mcp_oauth::authorize))
        .routes(routes!(mcp_oauth::callback))
        .routes(routes!(mcp_oauth::client))
        .routes(routes!(keys::list, keys::create))
        .routes(routes!(keys::remove))
        .routes(routes!(sessions::make_code))
        .routes(routes!(sessions::open, sessions::list, sessions::end_all))
        .routes(routes!(sessions::end))
        .routes(routes!(sessions::own, sessions::sign_out))
        .routes(routes!(projects::list, projects::create))
        .routes(routes!(projects::get, projects::remove))
        .routes(routes!(projects::put_settings))
        .routes(routes!(projects::keys, projects::add_key))
        .routes(routes!(projects::remove_key))
        .routes(routes!(projects::own_settings, projects::put_own_settings))
        .routes(routes!(usage::usage))
        .routes(routes!(usage::of_project))
        .routes(routes!(usage::budgets))
        .routes(routes!(overview::overview))
        .routes(routes!(overview::prices))
        .routes(routes!(health::openapi))
        .routes(routes!(health::healthz))
        .routes(routes!(health::readyz))
        .routes(routes!(health::metrics))
}
