//! Opens what a start needs: listener, data directory, store.

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::{anyhow, bail};
use tokio::net::TcpListener;
use toolgate_door_rtc::RtcPort;
use toolgate_store::{StartLock, Storage};
use url::Url;

use super::{Damage, Entry};
use crate::agents::Folder;
use crate::commands::warnings_of_folder;
use crate::data::DataDir;
use crate::settings::{self, Settings};
use crate::{output, project, storage};

/// What a start has opened.
pub struct Prepared {
    pub listener: TcpListener,
    pub address: SocketAddr,
    /// The UDP port of data channels, unless they are off.
    pub rtc: Option<RtcPort>,
    pub data: DataDir,
    pub store: Arc<dyn Storage>,
    /// Where the data is, for people.
    pub place: String,
    /// Held until the node serves.
    pub starting: Option<StartLock>,
}

impl Prepared {
    /// Refuses what cannot work, before anything is made or printed.
    pub async fn open(settings: &Settings, entry: Entry, damage: Damage) -> anyhow::Result<Self> {
        // Bound before anything is made: a second start by mistake must not print keys and then fail.
        let listener = bind(&settings.listen).await?;
        let address = listener.local_addr()?;
        if entry == Entry::Open && !address.ip().is_loopback() {
            bail!(
                "--no-auth lets everybody in, so it works on loopback only; {address} is not, use --listen 127.0.0.1:8787"
            );
        }
        project::check_keys(settings)?;
        settings.http.check_origins()?;
        let rtc = settings.rtc.bind(address).await?;
        let model = settings.model.address()?;
        if let Some(folder) = &settings.agents {
            Folder::check(folder)?;
            // Before the keys, which are shown once: who sees that a file is wrong may start again.
            output::print(&warnings_of_folder(folder, settings).await?)?;
        }
        let data = DataDir::open(&settings.data)?;
        data.check_writable()?;
        // Before the store: its start lock must not be held while this waits for the network.
        warn_of_settings(settings, model.as_ref(), address).await;
        let opened = storage::open(settings, &data, damage).await?;
        data.sign();
        Ok(Self {
            listener,
            address,
            rtc,
            data,
            store: opened.store,
            place: opened.place,
            starting: opened.starting,
        })
    }

    /// Where a person on this machine reaches the gateway.
    pub fn url(&self) -> String {
        match self.address.ip().is_unspecified() {
            true => format!("http://localhost:{}", self.address.port()),
            false => format!("http://{}", self.address),
        }
    }
}

/// Says what may be wrong in the settings, and is no error. `model` is the address of the default model's server, if one is set.
async fn warn_of_settings(settings: &Settings, model: Option<&Url>, own: SocketAddr) {
    if let Some(model) = model
        && let Some(doubt) = settings::doubt(model, own.port(), settings.vendors.direct).await
    {
        tracing::warn!("the setting model.base_url (TOOLGATE_MODEL_BASE_URL) may be wrong: {doubt}");
    }
    settings.warn_of_unpriced_models();
}

async fn bind(listen: &str) -> anyhow::Result<TcpListener> {
    TcpListener::bind(listen).await.map_err(|error| {
        let advice = match error.kind() {
            ErrorKind::AddrInUse => {
                "something listens there already; stop it, or choose another address with --listen"
            }
            ErrorKind::PermissionDenied => "this user may not; choose a port above 1023 with --listen",
            ErrorKind::AddrNotAvailable => "this machine has no such address; try --listen 127.0.0.1:8787",
            _ => "expected an address like 127.0.0.1:8787",
        };
        anyhow!(error).context(format!("cannot listen on {listen}: {advice}"))
    })
}
