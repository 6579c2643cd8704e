//! Agent cards: what an agent is to whoever may start it. To others it does not exist.

use std::sync::Arc;

use axum::extract::FromRequestParts as _;
use axum::response::{IntoResponse, Response};
use http::header::{
    AUTHORIZATION, CACHE_CONTROL, CONTENT_TYPE, ETAG, HOST, IF_NONE_MATCH, LAST_MODIFIED, VARY,
};
use http::request::Parts;
use http::{HeaderValue, Method, StatusCode};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use toolgate_a2a::card::{AgentCard, Capabilities, Extension, Interface, Provider, SecurityScheme, Skill};
use toolgate_a2a::client_tools::{AG2_CALL, AG2_HISTORY, AG2_RESULT, AG2_SCHEMAS, AG2_URI, URI};
use toolgate_a2a::error::Error;
use toolgate_a2a::{VERSION, VERSION_03};
use toolgate_access::Principal;
use toolgate_http::caller::Caller;
use toolgate_http::problem::Refusal;
use toolgate_kernel::agent::{Access, Agent, Starter};
use toolgate_kernel::id::ProjectId;
use toolgate_kernel::name::AgentName;
use toolgate_kernel::time::Time;
use toolgate_kernel::tool::{CLIENT_DEADLINE, ClientToolLimits};

use crate::A2a;
use crate::asking::{Asking, JSON};
use crate::problem::refused;
use crate::send::no_agent;

/// How long a card may be used without asking again, in seconds.
const MAX_AGE: u32 = 60;

/// The response with a card. Somebody who shows a key is told of the agents of its project, others of the public agents
/// of the project `default`.
pub(crate) async fn respond(a2a: &A2a, parts: &mut Parts, agent: AgentName) -> Response {
    if parts.method != Method::GET && parts.method != Method::HEAD {
        let words = "an agent card is read with GET";
        return Refusal::new(StatusCode::METHOD_NOT_ALLOWED, "METHOD_NOT_ALLOWED", words).into_response();
    }
    match find(a2a, parts, &agent).await {
        Ok((found, changed, is_public)) => {
            let card = card(a2a, parts, &found, &changed, None);
            let body = match a2a.settings.advertise_03 {
                true => card.to_hybrid_json(),
                false => card.to_json(),
            };
            let body = a2a.sign(body, &card);
            cached(parts, &body, changed.time, is_public)
        }
        Err(refusal) => refusal.into_response(),
    }
}

/// The extended card, which says what the agent's tools are as far as the caller may know them.
pub(crate) async fn extended(asking: &Asking<'_>) -> Result<Value, Error> {
    let found = startable(asking.a2a, &asking.who, &asking.agent).await;
    let found = found.map_err(|error| refused(error, ""))?.ok_or_else(no_agent)?;
    let changed = changed(asking.a2a, asking.who.project, &asking.agent).await;
    let changed = changed.map_err(|error| refused(error, ""))?;
    let card = card(asking.a2a, &asking.parts, &found, &changed, Some(&asking.who));
    let body = match asking.dialect {
        toolgate_a2a::Dialect::V1 => card.to_json(),
        toolgate_a2a::Dialect::V03 => card.to_hybrid_json(),
    };
    Ok(asking.a2a.sign(body, &card))
}

/// Which state of an agent a card is of.
#[derive(Clone, Copy)]
struct Changed {
    revision: u32,
    time: Time,
    /// What a request of the project may bring.
    limits: ClientToolLimits,
}

async fn find(
    a2a: &A2a,
    parts: &mut Parts,
    agent: &AgentName,
) -> Result<(Arc<Agent>, Changed, bool), Refusal> {
    let shows_key = parts.headers.contains_key(AUTHORIZATION) || parts.headers.contains_key("x-public-key");
    let missing = || Refusal::not_found("agent");
    let open = a2a.shared.access.open();
    let (project, found, is_public) = match (shows_key, open) {
        (true, _) | (false, Some(_)) => {
            let Caller(who) = Caller::from_request_parts(parts, &a2a.shared).await?;
            (who.project, startable(a2a, &who, agent).await?, false)
        }
        (false, None) => {
            let project = a2a.default_project;
            let found = a2a.shared.engine.agent(project, agent, None).await?;
            let found = found
                .map(|(_, found)| found)
                .filter(|found| found.access == Access::Public);
            (project, found, true)
        }
    };
    let found = found.ok_or_else(missing)?;
    Ok((found, changed(a2a, project, agent).await?, is_public))
}

async fn startable(a2a: &A2a, who: &Principal, agent: &AgentName) -> Result<Option<Arc<Agent>>, Refusal> {
    let engine = &a2a.shared.engine;
    Ok(engine.agent_for(who.project, agent, &who.starter(), None).await?)
}

async fn changed(a2a: &A2a, project: ProjectId, agent: &AgentName) -> Result<Changed, Refusal> {
    let record = a2a.shared.engine.agent_record(project, agent, None).await?;
    let record = record.ok_or_else(|| Refusal::not_found("agent"))?;
    Ok(Changed {
        revision: record.revision,
        time: record.created,
        limits: a2a.shared.engine.client_tool_limits(project).await?,
    })
}

fn card(
    a2a: &A2a,
    parts: &Parts,
    agent: &Agent,
    changed: &Changed,
    for_whom: Option<&Principal>,
) -> AgentCard {
    let base = base(a2a, parts);
    let description = agent.description.clone();
    let description =
        description.unwrap_or_else(|| format!("The agent {} of a Toolgate gateway.", agent.name));
    let mut skills = vec![Skill {
        id: agent.name.to_string(),
        name: agent.name.to_string(),
        description: description.clone(),
        tags: vec!["agent".into()],
        examples: Vec::new(),
        input_modes: Vec::new(),
        output_modes: Vec::new(),
    }];
    if let Some(who) = for_whom {
        skills.extend(tool_skills(agent, &who.starter()));
    }
    let (security_schemes, security) = match a2a.shared.access.open() {
        Some(_) => (Vec::new(), Vec::new()),
        None => security(),
    };
    AgentCard {
        name: agent.name.to_string(),
        description,
        version: changed.revision.to_string(),
        interfaces: interfaces(a2a, &base, &agent.name),
        capabilities: Capabilities {
            streaming: true,
            push_notifications: a2a.push.is_some(),
            extended_card: true,
            extensions: extensions(&changed.limits),
        },
        input_modes: modes(&[
            "text/plain",
            "application/json",
            "image/png",
            "image/jpeg",
            "image/webp",
            "image/gif",
        ])
        .chain(modes(&[AG2_SCHEMAS, AG2_RESULT, AG2_HISTORY]))
        .collect(),
        output_modes: modes(&["text/plain", "application/json", AG2_CALL]).collect(),
        skills,
        provider: a2a
            .settings
            .provider
            .clone()
            .map(|(organization, url)| Provider { organization, url }),
        documentation_url: None,
        icon_url: None,
        security_schemes,
        security,
        signatures: Vec::new(),
    }
}

fn modes(types: &[&str]) -> impl Iterator<Item = String> {
    types
        .iter()
        .map(|text| (*text).to_owned())
        .collect::<Vec<_>>()
        .into_iter()
}

fn interfaces(a2a: &A2a, base: &str, agent: &AgentName) -> Vec<Interface> {
    let below = format!("{base}/a2a/{agent}");
    let rpc = match *agent == toolgate_engine::default_agent() {
        true => format!("{base}/a2a"),
        false => below.clone(),
    };
    let interface = |url: &str, binding: &str, version: &str| Interface {
        url: url.to_owned(),
        binding: binding.to_owned(),
        version: version.to_owned(),
        tenant: None,
    };
    let mut interfaces = vec![
        interface(&rpc, "JSONRPC", VERSION),
        interface(&below, "HTTP+JSON", VERSION),
    ];
    if a2a.settings.advertise_03 {
        interfaces.push(interface(&rpc, "JSONRPC", VERSION_03));
    }
    interfaces
}

fn extensions(limits: &ClientToolLimits) -> Vec<Extension> {
    // The card may be kept and passed on, so it says what every kind of key may bring.
    let params = json!({
        "maxTools": limits.tools.min(limits.public_tools),
        "maxBytes": limits.bytes,
        "maxResultBytes": limits.result_bytes,
        "callTimeoutSeconds": CLIENT_DEADLINE.as_secs(),
    });
    let extension = |uri: &str, words: &str| Extension {
        uri: uri.to_owned(),
        description: Some(words.to_owned()),
        required: false,
        params: params.as_object().cloned(),
    };
    vec![
        extension(
            URI,
            "The client brings its own tools and executes the calls; approvals and questions of tools.",
        ),
        extension(AG2_URI, "The same in the form of AG2."),
    ]
}

/// Tools that the caller may know of: a backend all, others those that run on their side or are shown.
fn tool_skills(agent: &Agent, who: &Starter) -> Vec<Skill> {
    let tools = agent.tools.iter().filter(|(_, tool)| tool.is_callable_by(who));
    tools
        .map(|(name, tool)| Skill {
            id: format!("{}/{name}", agent.name),
            name: name.to_string(),
            description: tool.description.to_string(),
            tags: vec!["tool".into()],
            examples: Vec::new(),
            input_modes: Vec::new(),
            output_modes: Vec::new(),
        })
        .collect()
}

type Security = (Vec<(String, SecurityScheme)>, Vec<Vec<(String, Vec<String>)>>);

fn security() -> Security {
    let bearer = |format: Option<&str>, words: &str| SecurityScheme::Http {
        scheme: "Bearer".into(),
        bearer_format: format.map(str::to_owned),
        description: Some(words.to_owned()),
    };
    let schemes = vec![
        (
            "secretKey".to_owned(),
            bearer(None, "A secret key of the project, sk_…"),
        ),
        (
            "publicKey".to_owned(),
            SecurityScheme::ApiKey {
                location: "header".into(),
                name: "X-Public-Key".into(),
                description: Some("A public key of the project, pk_…, with a user's token".into()),
            },
        ),
        (
            "userToken".to_owned(),
            bearer(Some("JWT"), "A token of a user of the project"),
        ),
    ];
    let needed = |names: &[&str]| {
        names
            .iter()
            .map(|name| ((*name).to_owned(), Vec::new()))
            .collect()
    };
    (
        schemes,
        vec![needed(&["secretKey"]), needed(&["publicKey", "userToken"])],
    )
}

/// Where clients reach the gateway: as it is set, or as this request names it.
fn base(a2a: &A2a, parts: &Parts) -> String {
    if let Some(url) = &a2a.public_url {
        return url.trim_end_matches('/').to_owned();
    }
    let host = parts.headers.get(HOST).and_then(|host| host.to_str().ok());
    let host = host.filter(|host| host.parse::<http::uri::Authority>().is_ok());
    format!("http://{}", host.unwrap_or("127.0.0.1:8787"))
}

fn cached(parts: &Parts, body: &Value, changed: Time, is_public: bool) -> Response {
    let text = body.to_string();
    let hash = Sha256::digest(&text);
    let tag: String = hash[..16].iter().map(|byte| format!("{byte:02x}")).collect();
    let tag = format!("\"{tag}\"");
    let known = parts
        .headers
        .get(IF_NONE_MATCH)
        .and_then(|known| known.to_str().ok());
    let is_known = known.is_some_and(|known| {
        known
            .split(',')
            .any(|known| known.trim().trim_start_matches("W/") == tag)
    });
    let mut response = match is_known {
        true => StatusCode::NOT_MODIFIED.into_response(),
        false => text.into_response(),
    };
    let scope = if is_public { "public" } else { "private" };
    let time = std::time::UNIX_EPOCH + std::time::Duration::from_millis(changed.0.max(0) as u64);
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, JSON);
    headers.insert(
        VARY,
        HeaderValue::from_static("authorization, x-public-key, host"),
    );
    let values = [
        (CACHE_CONTROL, format!("{scope}, max-age={MAX_AGE}")),
        (ETAG, tag),
        (LAST_MODIFIED, httpdate::fmt_http_date(time)),
    ];
    for (name, value) in values {
        headers.insert(name, HeaderValue::try_from(value).expect("it is ASCII"));
    }
    response
}

impl A2a {
    /// The body with the gateway's signature of the card, if it has a key for that. Signed is the form of 1.0, which is
    /// what remains of a card that was read by the proto.
    fn sign(&self, mut body: Value, card: &AgentCard) -> Value {
        if let Some(signer) = &self.settings.signer {
            body["signatures"] = json!([signer(&card.to_json())]);
        }
        body
    }
}
