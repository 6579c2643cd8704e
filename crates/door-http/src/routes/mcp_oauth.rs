//! Sign-in to MCP servers: begins for a backend, ends in a person's browser.

use std::sync::Arc;

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
};
use http::{HeaderName, HeaderValue, StatusCode, Uri};
use serde::Serialize;
use toolgate_http::answer::{Answer, ok};
use toolgate_http::caller::Backend;
use toolgate_http::describe::{BackendOnly, Contended, Limited, Missing, Refused};
use toolgate_http::problem::Refusal;
use toolgate_http::query::{At, Query};
use toolgate_http::{Shared, schema};
use toolgate_kernel::time::Time;
use toolgate_sources::oauth::{CALLBACK_PATH, CLIENT_NAME, CLIENT_PATH};
use utoipa::ToSchema;

use super::mcp_servers::refused;
use crate::Resources;

/// Most characters of a parameter of the callback.
const PARAMETER_CHARS_MAX: usize = 8_192;

/// A sign-in that has begun.
#[derive(Serialize, ToSchema)]
#[schema(as = McpSignIn)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SignInBody {
    /// Where a person signs in, in a browser. Whoever has it can sign the gateway in, so it is for one person.
    authorize_url: String,
    /// When it is too late.
    #[schema(value_type = schema::Time)]
    expires_at: Time,
}

/// The gateway as a client of authorization servers (client id metadata document).
#[derive(Serialize, ToSchema)]
#[schema(as = McpClientMetadata)]
pub(crate) struct ClientBody {
    /// The address of this document.
    client_id: String,
    /// What people read.
    client_name: &'static str,
    /// The gateway's own address.
    client_uri: String,
    /// Where browsers come back to.
    redirect_uris: Vec<String>,
    /// `authorization_code` and `refresh_token`.
    grant_types: [&'static str; 2],
    /// `code`.
    response_types: [&'static str; 1],
    /// `none`: the client has no secret.
    token_endpoint_auth_method: &'static str,
}

/// Begins a person's sign-in to an MCP server that asks for one. The person opens `authorizeUrl` within 10 minutes; the
/// server is connected afterwards. Asks the server and its authorization server, and registers the gateway with the
/// latter if that is needed.
#[utoipa::path(
    post, path = "/v1/mcp/servers/{server}/authorize", operation_id = "authorize_mcp_server", tag = "mcp",
    params(("server" = String, Path, description = "Name of the server.")),
    responses(
        (status = 200, description = "Where to sign in.", body = SignInBody),
        (status = 502, description = "The server or its authorization server gave no way to sign in.", content_type = "application/problem+json"),
        Missing, BackendOnly, Contended, Refused,
    ),
)]
pub(crate) async fn authorize(
    State(resources): State<Arc<Resources>>,
    Backend(project): Backend,
    At(server): At<String>,
) -> Result<Answer<SignInBody>, Refusal> {
    let begun = resources.mcp.authorize(project, &server).await.map_err(refused)?;
    Ok(ok(SignInBody {
        authorize_url: begun.authorize_url.into(),
        expires_at: begun.expires_at,
    }))
}

/// Where an authorization server sends the browser of whoever has signed in. Needs no key: `state` was sealed by the
/// gateway, counts once and for 10 minutes. The page says what came of it, and nothing else.
#[utoipa::path(
    get, path = CALLBACK_PATH, operation_id = "finish_mcp_sign_in", tag = "mcp", security(()),
    params(
        ("state" = Option<String>, Query, description = "Names the sign-in."),
        ("code" = Option<String>, Query, description = "What the tokens are given for."),
        ("iss" = Option<String>, Query, description = "The authorization server."),
        ("error" = Option<String>, Query, description = "Why there is no code."),
    ),
    responses(
        (status = 200, description = "The gateway is signed in.", body = String, content_type = "text/html"),
        (status = 400, description = "It is not; the page says why.", body = String, content_type = "text/html"),
        Limited,
    ),
)]
pub(crate) async fn callback(
    State(door): State<Shared>,
    State(resources): State<Arc<Resources>>,
    uri: Uri,
) -> Result<Response, Refusal> {
    let query = Query::of(&uri)?;
    let given = |name| query.text(name).filter(|text| text.len() <= PARAMETER_CHARS_MAX);
    let state = given("state").unwrap_or_default();
    let finished = resources
        .mcp
        .finish_sign_in(state, given("code"), given("iss"), given("error"))
        .await;
    Ok(match finished {
        Ok((project, _)) => {
            door.engine.tools_changed(project);
            page(
                StatusCode::OK,
                "Signed in",
                "The gateway is signed in. You may close this window.",
            )
        }
        Err(error) => page(StatusCode::BAD_REQUEST, "Not signed in", &error.to_string()),
    })
}

/// The gateway's client id metadata document, which authorization servers read. Needs no key.
#[utoipa::path(
    get, path = CLIENT_PATH, operation_id = "get_mcp_client_metadata", tag = "mcp", security(()),
    responses((status = 200, description = "The document.", body = ClientBody), Missing, Limited),
)]
pub(crate) async fn client(State(resources): State<Arc<Resources>>) -> Result<Answer<ClientBody>, Refusal> {
    let Some(base) = &resources.public_url else {
        return Err(Refusal::missing(
            "the gateway's public address is not set (files.public_url)",
        ));
    };
    Ok(ok(ClientBody {
        client_id: format!("{base}{CLIENT_PATH}"),
        client_name: CLIENT_NAME,
        client_uri: base.clone(),
        redirect_uris: vec![format!("{base}{CALLBACK_PATH}")],
        grant_types: ["authorization_code", "refresh_token"],
        response_types: ["code"],
        token_endpoint_auth_method: "none",
    }))
}

/// A page for a person. The words may hold what a stranger wrote, so nothing in it is markup.
fn page(status: StatusCode, title: &str, words: &str) -> Response {
    let words = escaped(words);
    let html = format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>{title}</title><h1>{title}</h1><p>{words}</p></html>\n"
    );
    let headers: [(HeaderName, HeaderValue); 5] = [
        (CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8")),
        (
            CONTENT_SECURITY_POLICY,
            HeaderValue::from_static("default-src 'none'"),
        ),
        (X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
        // The address holds the code and the state.
        (REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
        (CACHE_CONTROL, HeaderValue::from_static("no-store")),
    ];
    (status, headers, html).into_response()
}

fn escaped(text: &str) -> String {
    let mut escaped = String::new();
    for c in text.chars() {
        match c {
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '&' => escaped.push_str("&amp;"),
            '"' => escaped.push_str("&quot;"),
            c => escaped.push(c),
        }
    }
    escaped
}
