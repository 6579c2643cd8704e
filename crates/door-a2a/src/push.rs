//! The four operations on push configurations. What is posted to them, and when, is for whoever delivers.

use serde_json::{Value, json};
use toolgate_a2a::error::{Error, ErrorKind};
use toolgate_a2a::push::{Authentication, PushConfig};
use toolgate_a2a::request::PushConfigOf;
use toolgate_a2a::{Dialect, Invalid, VERSION, VERSION_03};
use toolgate_engine::push_configs::{
    CONFIG_ID_BYTES_MAX, PushConfig as Stored, PushConfigError, PushConfigs,
};
use toolgate_engine::store::RunRecord;
use toolgate_kernel::agent::Secret;
use toolgate_kernel::event::Seq;
use toolgate_kernel::id::{RunId, SpaceId};
use toolgate_kernel::time::Time;
use uuid::Uuid;

use crate::A2a;
use crate::asking::Asking;
use crate::problem::refused;
use crate::send::find_task;

/// Most bytes of the name of an authentication scheme.
const SCHEME_BYTES_MAX: usize = 64;
/// Longest address, token and credentials, in bytes.
const URL_BYTES_MAX: usize = 2048;
const SECRET_BYTES_MAX: usize = 8192;

pub(crate) async fn create(asking: &Asking<'_>, config: PushConfig) -> Result<Value, Error> {
    check(asking.a2a, &config)?;
    let task = config.task_id.clone();
    let task = task.ok_or_else(|| Invalid::one("taskId", "is required and must not be empty"))?;
    let task = find_task(asking, &task).await?;
    let since = asking.door().engine.clock().now();
    let stored = store(asking, task.id, task.space, config, since).await?;
    Ok(told(&stored).to_json(asking.dialect))
}

pub(crate) async fn get(asking: &Asking<'_>, of: PushConfigOf) -> Result<Value, Error> {
    let configs = configs(asking.a2a)?;
    let task = find_task(asking, &of.task_id).await?;
    let found = match &of.id {
        Some(id) => {
            let found = configs.get(task.project, task.space, task.id, id).await;
            found
                .map_err(|error| refused(error, ""))?
                .filter(|found| is_mine(asking, found))
        }
        None => mine(asking, configs, &task).await?.into_iter().next(),
    };
    let found = found
        .ok_or_else(|| Error::new(ErrorKind::TaskNotFound, "the task has no such push configuration"))?;
    Ok(told(&found).to_json(asking.dialect))
}

pub(crate) async fn list(asking: &Asking<'_>, of: PushConfigOf) -> Result<Value, Error> {
    let configs = configs(asking.a2a)?;
    let task = find_task(asking, &of.task_id).await?;
    let found = mine(asking, configs, &task).await?;
    let found: Vec<Value> = found
        .iter()
        .map(|found| told(found).to_json(asking.dialect))
        .collect();
    Ok(match asking.dialect {
        Dialect::V1 => json!({"configs": found, "nextPageToken": ""}),
        Dialect::V03 => found.into(),
    })
}

/// Deleting what is not there is no error.
pub(crate) async fn delete(asking: &Asking<'_>, of: PushConfigOf) -> Result<Value, Error> {
    let configs = configs(asking.a2a)?;
    let task = find_task(asking, &of.task_id).await?;
    let id = of
        .id
        .ok_or_else(|| Invalid::one("id", "is required and must not be empty"))?;
    let found = configs.get(task.project, task.space, task.id, &id).await;
    let found = found.map_err(|error| refused(error, ""))?;
    if found.is_some_and(|found| is_mine(asking, &found)) {
        let removed = configs.remove(task.project, task.space, task.id, &id).await;
        removed.map_err(|error| refused(error, ""))?;
    }
    Ok(match asking.dialect {
        Dialect::V1 => json!({}),
        Dialect::V03 => Value::Null,
    })
}

/// What is wrong with a configuration, before anything is stored.
pub(crate) fn check(a2a: &A2a, config: &PushConfig) -> Result<(), Error> {
    configs(a2a)?;
    let is_web = config.url.starts_with("https://") || config.url.starts_with("http://");
    if !is_web || config.url.len() > URL_BYTES_MAX || config.url.parse::<http::Uri>().is_err() {
        let words = format!("must be an http or https address of at most {URL_BYTES_MAX} bytes");
        return Err(Invalid::one("url", words).into());
    }
    let id = config.id.as_deref().unwrap_or("-");
    if id.len() > CONFIG_ID_BYTES_MAX || id.contains(|c: char| c == '/' || c.is_control()) {
        let words =
            format!("may have {CONFIG_ID_BYTES_MAX} bytes at most, no slash and no control character");
        return Err(Invalid::one("id", words).into());
    }
    let scheme = config.authentication.as_ref().map(|found| found.scheme.as_str());
    let is_token = |scheme: &str| !scheme.is_empty() && http::HeaderName::try_from(scheme).is_ok();
    if scheme.is_some_and(|scheme| scheme.len() > SCHEME_BYTES_MAX || !is_token(scheme)) {
        let words =
            format!("must be the name of a scheme, such as Bearer, with {SCHEME_BYTES_MAX} bytes at most");
        return Err(Invalid::one("authentication.scheme", words).into());
    }
    let credentials = config
        .authentication
        .as_ref()
        .and_then(|found| found.credentials.as_deref());
    for (field, text) in [
        ("token", config.token.as_deref()),
        ("authentication.credentials", credentials),
    ] {
        let text = text.unwrap_or_default();
        let is_header = http::HeaderValue::try_from(text).is_ok();
        if text.len() > SECRET_BYTES_MAX || !is_header {
            let words = format!("must fit a header, with {SECRET_BYTES_MAX} bytes at most");
            return Err(Invalid::one(field, words).into());
        }
    }
    Ok(())
}

/// Stores a configuration of a task: changes from `since` on are posted.
pub(crate) async fn store(
    asking: &Asking<'_>,
    run: RunId,
    space: SpaceId,
    config: PushConfig,
    since: Time,
) -> Result<Stored, Error> {
    let authorization = config
        .authentication
        .map(|found| (found.scheme, Secret::new(found.credentials.unwrap_or_default())));
    let stored = Stored {
        id: config.id.unwrap_or_else(|| Uuid::now_v7().to_string()),
        run,
        url: config.url,
        token: config.token.map(Secret::new),
        authorization,
        by: asking.who.entity(),
        form: match asking.dialect {
            Dialect::V1 => VERSION.into(),
            Dialect::V03 => VERSION_03.into(),
        },
        delivered: 0,
        failures: 0,
        place: Seq::default(),
        since,
        due: Some(since),
        is_claimed: false,
    };
    let configs = configs(asking.a2a)?;
    let known = configs.get(asking.who.project, space, run, &stored.id).await;
    if let Some(known) = known.map_err(|error| refused(error, ""))?
        && !is_mine(asking, &known)
    {
        return Err(Invalid::one("id", "is the id of somebody else's configuration; choose another").into());
    }
    match configs.put(asking.who.project, space, &stored).await {
        Ok(()) => Ok(stored),
        Err(error @ PushConfigError::Full) => Err(Invalid::one("id", error.to_string()).into()),
        Err(PushConfigError::Store(error)) => Err(refused(error, "")),
    }
}

async fn mine(asking: &Asking<'_>, configs: &PushConfigs, task: &RunRecord) -> Result<Vec<Stored>, Error> {
    let found = configs.list(task.project, task.space, task.id).await;
    let found = found.map_err(|error| refused(error, ""))?;
    Ok(found.into_iter().filter(|found| is_mine(asking, found)).collect())
}

/// A configuration holds credentials: other members of the space do not see it.
fn is_mine(asking: &Asking<'_>, config: &Stored) -> bool {
    asking.who.is_backend() || config.by == asking.who.entity()
}

fn configs(a2a: &A2a) -> Result<&PushConfigs, Error> {
    let words = "push notifications are not offered here";
    a2a.push
        .as_ref()
        .ok_or_else(|| Error::new(ErrorKind::PushNotificationNotSupported, words))
}

fn told(stored: &Stored) -> PushConfig {
    PushConfig {
        id: Some(stored.id.clone()),
        task_id: Some(stored.run.to_string()),
        url: stored.url.clone(),
        token: stored.token.as_ref().map(|token| token.expose().to_owned()),
        authentication: stored
            .authorization
            .as_ref()
            .map(|(scheme, credentials)| Authentication {
                scheme: scheme.clone(),
                credentials: Some(credentials.expose().to_owned()).filter(|text| !text.is_empty()),
            }),
    }
}
