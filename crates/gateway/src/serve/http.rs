//! Who may come in, and what the HTTP doors are given.

use std::sync::{Arc, LazyLock};

use axum::Router;
use toolgate_access::file_links::FileLinks;
use toolgate_access::{Access, AccessSettings, Auth, ClaimNames};
use toolgate_door_a2a::A2aParts;
use toolgate_door_http::Resources;
use toolgate_door_mcp::through::{Limits, Through};
use toolgate_door_mcp::{Entrance, McpParts};
use toolgate_door_rtc::RtcPort;
use toolgate_engine::clock::SystemClock;
use toolgate_engine::record_updater::RecordUpdater;
use toolgate_http::in_flight::USER_PART;
use toolgate_http::meter::{Meter, MeterLimits};
use toolgate_http::session_cookie::SessionCookie;
use toolgate_http::{Http, HttpSettings, Shared};
use toolgate_kernel::id::ProjectId;
use toolgate_tools::Editor;

use super::prepared::Prepared;
use super::services::Services;
use crate::exposed::ExposedServers;
use crate::listen::Ends;
use crate::settings::Settings;
use crate::telemetry::Telemetry;
use crate::{doors, project};

/// Who is asking, and what they may reach.
pub fn access(settings: &Settings, prepared: &Prepared, services: &Services, auth: Auth) -> Access {
    let store = &prepared.store;
    let settings = AccessSettings {
        auth,
        rate: settings.http.rate.rates(),
        claims: ClaimNames {
            groups: settings.jwt.groups_claim.clone(),
            roles: settings.jwt.roles_claim.clone(),
        },
        operator_key: settings.operator_key.clone(),
        egress: services.egress.clone(),
        records: store.clone(),
        sessions: settings.sessions.limits(),
    };
    let revocations = services.engine.revocations().clone();
    Access::new(
        store.clone(),
        store.clone(),
        Arc::new(SystemClock),
        revocations,
        settings,
    )
}

/// What the HTTP doors share.
pub fn shared(
    settings: &Settings,
    prepared: &Prepared,
    services: &Services,
    access: Access,
    ends: Ends,
) -> anyhow::Result<Shared> {
    let public_url = settings.files.address()?;
    Ok(Arc::new(Http {
        engine: services.engine.clone(),
        access,
        in_flight: Meter::new(MeterLimits {
            all: settings.http.in_flight_bytes_max,
            user: (settings.http.in_flight_bytes_max / USER_PART).max(settings.http.body_bytes_max),
        }),
        streams: Meter::new(MeterLimits {
            all: usize::MAX,
            user: settings.quotas.streams,
        }),
        settings: HttpSettings {
            body_bytes_max: settings.http.body_bytes_max,
            body_timeout: settings.http.body_timeout,
            content: settings.content.limits(),
            heartbeat: settings.http.heartbeat,
            wait_max: settings.http.wait_max,
            origins: settings.http.origins.clone(),
            session_cookie: SessionCookie::new(prepared.address.port(), public_url.as_deref()),
            leaving: ends.leaving,
            stop: ends.stop,
        },
    }))
}

/// Every route, and the console's pages if it is served.
pub fn router(
    settings: &Settings,
    prepared: &Prepared,
    services: &Services,
    shared: Shared,
    project: ProjectId,
    telemetry: &Telemetry,
) -> anyhow::Result<Router> {
    let mcp = McpParts {
        workspace: services.workspace.clone(),
        records: prepared.store.clone(),
        entrance: Entrance {
            public_url: settings.files.address()?,
            hosts: settings.http.hosts.clone(),
            authorization_servers: settings.jwt.issuer.clone().into_iter().collect(),
        },
    };
    let a2a = A2aParts {
        default_project: project,
        public_url: settings.files.address()?,
        push: Some(services.push_configs.clone()),
        settings: settings.a2a.door()?,
    };
    Ok(doors::router(
        shared,
        resources(settings, prepared, services, telemetry)?,
        mcp,
        Through::new(Arc::new(ExposedServers(services.mcp.clone())), Limits::default()),
        a2a,
        prepared.rtc.as_ref().map(RtcPort::door),
        settings.console.enabled,
    ))
}

/// What the REST door shows and changes beside runs.
fn resources(
    settings: &Settings,
    prepared: &Prepared,
    services: &Services,
    telemetry: &Telemetry,
) -> anyhow::Result<Resources> {
    let store = &prepared.store;
    Ok(Resources {
        records: store.clone(),
        deletions: services.deletions.clone(),
        state: Arc::new(Editor {
            updater: RecordUpdater::new(store.clone()),
            plans: settings.plans.limits(),
        }),
        workspace: services.workspace.clone(),
        links: FileLinks::new(store.clone(), settings.files.links()),
        public_url: settings.files.address()?,
        knowledge: services.knowledge.clone(),
        plugins: services.plugins.clone(),
        mcp: services.mcp.clone(),
        outbox: services.outbox.clone(),
        metrics: telemetry.figures(),
        openapi: LazyLock::new(doors::openapi),
        first_agent: project::first_agent(),
        prices: settings.prices.told(),
        sandbox_lacks: services.sandbox_lacks.clone(),
    })
}
