//! Installing, upgrading, removing and revoking under `kill -9`: all of it or nothing, and what was acknowledged stays.

use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};

use super::{Curator, document, hash};
use crate::harness::{Api, Gateway, Random, setting};

/// Longest time between a request and the kill: about as long as a request takes.
const MOMENT_MICROS: u64 = 6_000;

/// What a client does, and how the list looks afterwards.
struct Step {
    method: Method,
    path: String,
    body: Value,
    /// Current version and whether it runs; none when the plugin is not there.
    after: Option<(&'static str, bool)>,
}

fn steps(curator: &Curator, round: u64) -> (String, Vec<Step>) {
    let plugin = format!("plugin-{round}");
    let tool = format!("tool_{round}");
    // Large enough that writing it takes a moment.
    let code = format!("/* {} */ return 1;", "x".repeat(100_000));
    let version = |version| curator.signed(document(&plugin, version, &[(&tool, &code)]));
    let (first, second) = (version("1.0.0"), version("1.1.0"));
    let step = |method: Method, path: String, body: Value, after| Step {
        method,
        path,
        body,
        after,
    };
    let revoke = json!({"packageHash": hash(&second)});
    let list = vec![
        step(Method::POST, "/v1/plugins".into(), first, Some(("1.0.0", true))),
        step(Method::POST, "/v1/plugins".into(), second, Some(("1.1.0", true))),
        step(
            Method::POST,
            "/v1/plugins/revoke".into(),
            revoke,
            Some(("1.1.0", false)),
        ),
        step(
            Method::POST,
            format!("/v1/plugins/{plugin}/rollback"),
            json!({}),
            Some(("1.0.0", true)),
        ),
        step(
            Method::DELETE,
            format!("/v1/plugins/{plugin}?purge=true"),
            json!({}),
            None,
        ),
    ];
    (plugin, list)
}

/// The current version of a plugin and whether it runs. Whatever is listed must be there whole.
async fn seen(api: &Api, plugin: &str) -> Option<(String, bool)> {
    let list = api.get("/v1/plugins").await;
    let plugins = list.body["plugins"].as_array().expect("plugins");
    let found = plugins.iter().find(|found| found["id"] == plugin)?;
    let listed = found["otherVersions"].as_array().expect("versions").iter();
    for package in listed.chain([&found["current"]]) {
        let address = package["packageHash"].as_str().expect("a hash");
        let stored = api.get(&format!("/v1/plugins/{address}")).await;
        assert_eq!(
            hash(&stored.body),
            address,
            "a listed package is not what its hash says"
        );
    }
    let version = found["current"]["version"].as_str().expect("a version");
    Some((version.into(), found["running"] == true))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn plugins_are_changed_whole_or_not_at_all_by_whatever_is_killed() {
    let rounds = setting("TOOLGATE_PLUGIN_KILLS", 8);
    let mut random = Random::seeded("plugin kills");
    let curator = Curator::new();
    let mut gateway = Gateway::start(&[]).await;
    let api = gateway.api();
    curator.trusted(&api).await;
    let (mut done, mut undone, mut acknowledged) = (0, 0, 0);
    for round in 0..rounds {
        let (plugin, steps) = steps(&curator, round);
        let mut before = None;
        for step in steps {
            let moment = Duration::from_micros(random.below(MOMENT_MICROS));
            let request = api.send_or_cut(step.method.clone(), &step.path, &step.body);
            let request = tokio::spawn(request);
            // Not a wait for anything: the moment of the kill is what is being varied.
            tokio::time::sleep(moment).await;
            gateway.kill();
            let answered = request.await.expect("it ended");
            gateway.spawn();
            gateway.ready().await;
            let after = step.after.map(|(version, runs)| (version.to_owned(), runs));
            let now = seen(&api, &plugin).await;
            let what = format!("{} {}", step.method, step.path);
            if answered.is_some_and(|status| (200..300).contains(&status)) {
                acknowledged += 1;
                assert_eq!(now, after, "{what} was acknowledged");
            }
            if now == after {
                done += 1;
            } else {
                undone += 1;
                assert_eq!(now, before, "{what} was done by half");
                let again = api.send(step.method, &step.path, &step.body).await;
                assert!(again.is_success(), "{what}: {again:?}");
                assert_eq!(seen(&api, &plugin).await, after);
            }
            before = after;
        }
    }
    eprintln!("plugin kills: {done} done ({acknowledged} acknowledged), {undone} not done");
    assert!(done > 0 && undone > 0, "the kills came too early or too late");
}
