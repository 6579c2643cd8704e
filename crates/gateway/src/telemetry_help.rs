//! What each figure of `/metrics` is, for whoever reads it beside its name.

use metrics::{describe_counter, describe_gauge, describe_histogram};

/// Describes every figure of the gateway.
pub fn describe() {
    describe_gauge!(
        "toolgate_build_info",
        "Always 1; the label is the gateway's version."
    );
    describe_counter!(
        "toolgate_runs_started_total",
        "Runs started, by project and agent."
    );
    describe_counter!(
        "toolgate_runs_finished_total",
        "Runs ended, by project, agent and final status."
    );
    describe_counter!(
        "toolgate_steps_total",
        "Model replies stored, by project, agent and vendor."
    );
    describe_counter!(
        "toolgate_tokens_total",
        "Tokens, by project, agent, vendor and kind: input, output, or cached, which are also in input."
    );
    describe_counter!(
        "toolgate_cost_micros_total",
        "Cost of tokens in millionths of a unit of the currency, by project, agent, vendor and currency."
    );
    describe_counter!(
        "toolgate_unpriced_requests_total",
        "Requests to models that have no price, by project, agent and vendor: their cost is counted nowhere."
    );
    describe_counter!(
        "toolgate_budget_refusals_total",
        "Runs and requests to models refused because a budget is used up, by project and budget."
    );
    describe_counter!(
        "toolgate_calls_total",
        "Tool calls ended, by project, tool and outcome: output, denied, or the code of the error."
    );
    describe_histogram!(
        "toolgate_model_seconds",
        "Requests to models from asking to the last piece, by vendor and outcome."
    );
    describe_histogram!(
        "toolgate_model_first_token_seconds",
        "Requests to models from asking to the first piece, by vendor."
    );
    describe_counter!(
        "toolgate_deletions_total",
        "Runs, spaces and people deleted for good, by what was deleted."
    );
    describe_counter!(
        "toolgate_retention_runs_total",
        "Ended runs deleted because their project keeps them no longer."
    );
    describe_counter!(
        "toolgate_retention_bytes_total",
        "Bytes of events deleted because their project keeps them no longer."
    );
    describe_counter!(
        "toolgate_retention_failures_total",
        "Batches of old data that were not archived or deleted to the end; they are tried again."
    );
    describe_counter!(
        "toolgate_retention_usage_rows_total",
        "Rows of tool figures deleted because their project keeps them no longer."
    );
    describe_counter!(
        "toolgate_archive_bytes_total",
        "Compressed bytes archived before deletion."
    );
    describe_counter!(
        "toolgate_http_requests_total",
        "HTTP requests answered, by method, route and status."
    );
    describe_histogram!(
        "toolgate_http_request_seconds",
        "HTTP requests until the response begins, by route."
    );
    describe_counter!(
        "toolgate_http_connections_cut_total",
        "Connections that the gateway closed, by reason."
    );
    describe_gauge!(
        "toolgate_rtc_peers",
        "Data channels that are open or being opened."
    );
    describe_counter!(
        "toolgate_rtc_messages_total",
        "Messages on data channels, by direction: in or out."
    );
    describe_counter!(
        "toolgate_rtc_closed_total",
        "Data channels that ended, by reason: peer, dead, handshake, access, role, slow, too_fast, cut, stopping, channels, session, error or panic."
    );
    describe_counter!(
        "toolgate_rtc_packets_dropped_total",
        "Datagrams of data channels that were dropped: unknown for those that no channel knows, unsent for those that the system had no room for."
    );
    describe_histogram!(
        "toolgate_store_commit_seconds",
        "Transactions of the store, sync included."
    );
    describe_histogram!(
        "toolgate_store_commit_writes",
        "Writes that one transaction of the store took together."
    );
    describe_gauge!(
        "toolgate_bus_up",
        "1 while this node reaches the bus that joins the nodes, 0 while it reads the store instead."
    );
    describe_counter!(
        "toolgate_bus_dropped_total",
        "Notices to other nodes that were dropped, by reason: full, age or size. The others read the store."
    );
    describe_counter!(
        "toolgate_bus_gaps_total",
        "Times that notices of other nodes may have been missed, and the store was read instead."
    );
    describe_counter!(
        "toolgate_bus_catch_ups_total",
        "Passes over everything followed or in memory here, to read what notices did not tell."
    );
    describe_counter!(
        "toolgate_mcp_through_calls_total",
        "Calls passed to exposed MCP servers, by project, server and outcome."
    );
    describe_histogram!(
        "toolgate_mcp_through_call_seconds",
        "Calls passed to exposed MCP servers, by project and server."
    );
}
