//! `toolgate serve`: puts the parts together, runs them, and takes them down in order.
//!
//! [`prepared`] opens what a start needs: listener, data directory, store. [`services`] is everything that works on it,
//! [`http`] what the doors are given, and [`lifecycle`] how all of it runs and ends.

mod http;
mod lifecycle;
mod prepared;
mod services;

use std::time::Duration;

use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use toolgate_access::{Access, Auth, Maker};
use toolgate_console::HAS_CONSOLE;
use toolgate_door_a2a::conformance;
use toolgate_engine::clock::{Clock as _, SystemClock};
use toolgate_kernel::id::ProjectId;

use crate::agents::Folder;
use crate::bus::share_rates;
use crate::listen::Ends;
use crate::settings::Settings;
use crate::telemetry::Telemetry;
use crate::welcome::{ConsoleLink, NO_CONSOLE, Welcome};
use crate::{listen, output, project};

use lifecycle::{Notice, Parts, Signals};
use prepared::Prepared;
use services::Services;
pub(crate) use services::sources;

/// Longest wait for the store to close once everything else has ended.
const STORE_CLOSE: Duration = Duration::from_secs(5);

/// Whether callers need a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Entry {
    /// Every caller shows a key.
    Keys,
    /// Everybody is the default project's backend.
    Open,
}

/// What becomes of a start on a database that is damaged, half imported or gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Damage {
    /// It is refused.
    Refused,
    /// It goes on, without looking for damage.
    Accepted,
}

/// Serves until a signal asks it to stop, then drains. An error says what to do about it.
pub fn run(settings: Settings, entry: Entry, damage: Damage) -> anyhow::Result<()> {
    let telemetry = Telemetry::start(&settings.log, &settings.telemetry)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let served = runtime.block_on(serve(&settings, entry, damage, &telemetry));
    // Whatever still runs after the drain has had its time.
    runtime.shutdown_background();
    telemetry.flush();
    served
}

async fn serve(
    settings: &Settings,
    entry: Entry,
    damage: Damage,
    telemetry: &Telemetry,
) -> anyhow::Result<()> {
    let signals = Signals::listen()?;
    toolgate_worker::keep_descriptors_from_workers();
    let mut prepared = Prepared::open(settings, entry, damage).await?;
    let services = Services::build(settings, &prepared).await?;
    let project = ensure_project(&services, &prepared, settings).await?;
    if settings.a2a.conformance_agent {
        let agent = conformance::AGENT.parse().expect("a name");
        let config = conformance::config().into();
        services.engine.put_agent(project, &agent, config).await?;
    }
    if let Some(starting) = &prepared.starting {
        // What follows may wait for MCP servers.
        starting.let_others_start().await?;
    }
    services.mcp.warm(project).await?;
    let agents = match &settings.agents {
        Some(folder) => {
            let (engine, store) = (services.engine.clone(), prepared.store.clone());
            Some(Folder::open(folder, engine, store, project).await?)
        }
        None => None,
    };

    let auth = match entry {
        Entry::Keys => Auth::Keys,
        Entry::Open => Auth::Open(project),
    };
    let access = http::access(settings, &prepared, &services, auth);
    if settings.console.enabled {
        let url = settings.files.address()?.unwrap_or_else(|| prepared.url());
        let words = match HAS_CONSOLE {
            true => console_link(&access, entry, project, &url).await?.to_string(),
            false => NO_CONSOLE.to_owned(),
        };
        output::print(&words)?;
    }
    let ends = Ends {
        leaving: CancellationToken::new(),
        stop: CancellationToken::new(),
    };
    let notice = Notice {
        leaving: ends.leaving.clone(),
        lasts: settings.drain_notice,
    };
    let shared = http::shared(settings, &prepared, &services, access, ends.clone())?;
    let door = http::router(settings, &prepared, &services, shared.clone(), project, telemetry)?;
    // Last, because only the store can still fail: a node that cannot start must not extend the lease on its old runs. The rest of
    // the start lock is held until then, so that no import begins in between.
    let lease_end = SystemClock.now().after(settings.engine.node_lease);
    prepared.store.heartbeat(services.node.id, lease_end).await?;
    drop(prepared.starting.take());
    let upkeep = AbortOnDropHandle::new(tokio::spawn(telemetry.upkeep()));
    tracing::info!(address = %prepared.address, access = ?entry, "ready");

    let mut parts = Parts::new(ends.stop.clone());
    services.start(&mut parts, settings, &prepared);
    let limits = settings.http.connections.limits();
    parts.start(|_| listen::serve(prepared.listener, door, limits, ends));
    parts.start(|stop| share_rates(shared.clone(), stop));
    if let Some(rtc) = prepared.rtc {
        tracing::info!(addresses = ?rtc.candidates(), "data channels are answered");
        parts.start(|stop| rtc.run(shared, stop));
    }
    if let Some(agents) = agents {
        parts.start(|stop| agents.watch(stop));
    }
    parts.until_signalled(notice, signals, settings.drain).await?;
    services.bus.leave().await;

    drop(upkeep);
    if tokio::time::timeout(STORE_CLOSE, prepared.store.close())
        .await
        .is_err()
    {
        tracing::warn!("the store did not close in time; what was acknowledged is stored");
    }
    prepared.data.unsign();
    tracing::info!("stopped");
    Ok(())
}

/// Prints where the gateway listens, and makes what the default project still lacks, such as its keys, which are printed once.
async fn ensure_project(
    services: &Services,
    prepared: &Prepared,
    settings: &Settings,
) -> anyhow::Result<ProjectId> {
    let url = prepared.url();
    // Nobody reads on behind a pipe that was closed, as by `head`: the gateway serves all the same.
    output::print(&format!(
        "Toolgate {} listens on {url}, data in {}\nModel: {}\n",
        env!("CARGO_PKG_VERSION"),
        prepared.place,
        settings.model.sentence()
    ))?;
    project::ensure(&services.engine, &*prepared.store, settings, |fresh| {
        output::print(&Welcome { fresh, url: &url }.to_string()).map(drop)
    })
    .await
}

/// What to open in a browser: with a login code that is good once, unless everybody is let in anyway.
async fn console_link(
    access: &Access,
    entry: Entry,
    project: ProjectId,
    url: &str,
) -> anyhow::Result<ConsoleLink> {
    let code = match entry {
        Entry::Keys => Some(access.make_login_code(project, Maker::Start).await?.code),
        Entry::Open => None,
    };
    Ok(ConsoleLink {
        url: url.to_owned(),
        code,
    })
}
