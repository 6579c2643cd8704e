//! Every version is kept; installing, going back, removing and purging.

use serde_json::json;
use toolgate_package::{Algorithm, SigningKey};
use toolgate_plugins::{Action, PluginError, Revoke, RollBack};

use crate::world::{CURATOR, KEY, document, world};

#[tokio::test(start_paused = true)]
async fn a_review_changes_nothing_and_says_what_would() {
    let world = world().await;
    let mut first = document("time", "1.0.0", &["get_time"]);
    first["permissions"] = serde_json::json!(["storage"]);
    world.installed(first.clone()).await;
    let before = world.index().await;
    first["version"] = "1.1.0".into();
    first["permissions"] = serde_json::json!(["storage", "fetch:*.example.com"]);
    let offer = world.offer(&world.signed(first));
    let review = world.plugins.review(world.project, &offer, &world.sources);
    let review = review.await.unwrap();
    assert_eq!(
        (review.action, review.from.as_deref()),
        (Action::Upgrade, Some("1.0.0"))
    );
    let permissions: Vec<_> = review
        .permissions
        .iter()
        .map(|asked| (asked.permission.as_str(), asked.added))
        .collect();
    assert_eq!(permissions, [("fetch:*.example.com", true), ("storage", false)]);
    assert!(
        review.permissions[0]
            .words
            .contains("every host below example.com")
    );
    assert!(review.refused.is_empty());
    assert_eq!(world.index().await, before);
}

#[tokio::test(start_paused = true)]
async fn installing_the_current_package_again_changes_nothing() {
    let world = world().await;
    let signed = world.signed(document("time", "1.0.0", &["get_time"]));
    world.install(&signed).await.unwrap();
    let before = world.index().await;
    assert_eq!(world.install(&signed).await.unwrap().action, Action::None);
    assert_eq!(world.index().await, before);
}

#[tokio::test(start_paused = true)]
async fn versions_are_kept_and_gone_back_to() {
    let world = world().await;
    let mut hashes = Vec::new();
    for version in ["1.0.0", "1.1.0", "2.0.0"] {
        hashes.push(world.installed(document("time", version, &["get_time"])).await);
    }
    for (to, version) in [
        (RollBack::Previous, "1.1.0"),
        (RollBack::Previous, "1.0.0"),
        (RollBack::To(hashes[2].clone()), "2.0.0"),
        (RollBack::Previous, "1.0.0"),
    ] {
        world.roll_back("time", &to).await.unwrap();
        assert_eq!(world.version("time").await.as_deref(), Some(version), "{to:?}");
    }
    let nothing = world.roll_back("time", &RollBack::Previous).await;
    assert!(matches!(nothing, Err(PluginError::Missing(_))));
    for hash in &hashes {
        assert!(world.runs(hash).await, "a run that pinned it may go on");
        assert!(
            world
                .plugins
                .document(world.project, hash)
                .await
                .unwrap()
                .is_some()
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_removed_plugin_keeps_its_packages_for_runs_under_way_until_it_is_purged() {
    let world = world().await;
    let hash = world.installed(document("time", "1.0.0", &["get_time"])).await;
    world.plugins.remove(world.project, "time", false).await.unwrap();
    assert!(world.runs(&hash).await && world.version("time").await.is_none());
    let again = world.plugins.remove(world.project, "time", false).await;
    assert!(matches!(again, Err(PluginError::Missing(_))));
    world.plugins.remove(world.project, "time", true).await.unwrap();
    assert!(!world.runs(&hash).await);
    assert!(
        world
            .plugins
            .document(world.project, &hash)
            .await
            .unwrap()
            .is_none()
    );
}

#[tokio::test(start_paused = true)]
async fn two_nodes_that_change_plugins_at_once_lose_nothing() {
    let world = world().await;
    let nodes = [world.plugins.clone(), world.another_node()];
    let installs = (0..8).map(|number| {
        let document = world.signed(document(
            &format!("plugin-{number}"),
            "1.0.0",
            &[&format!("tool_{number}")],
        ));
        let (plugins, project, offer) = (nodes[number % 2].clone(), world.project, world.offer(&document));
        let sources = world.sources.clone();
        tokio::spawn(async move { plugins.install(project, offer, &sources).await })
    });
    let installs: Vec<_> = installs.collect();
    for install in installs {
        install.await.unwrap().unwrap();
    }
    assert_eq!(world.index().await.plugins.len(), 8);
}

#[tokio::test(start_paused = true)]
async fn a_review_says_what_differs_in_kept_tools_member_by_member() {
    let world = world().await;
    let mut before = document("time", "1.0.0", &["get_time", "set_time"]);
    before["tools"][0]["approval"] = json!("always");
    before["tools"][0]["timeout"] = json!(1000);
    world.installed(before).await;

    let mut after = document("time", "1.1.0", &["get_time", "set_time", "more"]);
    after["tools"][0]["retry"] = json!("safe");
    after["tools"][0]["timeout"] = json!(2000);
    after["tools"][0]["parameters"] = json!({"type": "object", "properties": {"zone": {"type": "string"}}});
    after["tools"][1]["executorCode"] = json!("return 2;");
    let offer = world.offer(&world.signed(after));
    let review = world.plugins.review(world.project, &offer, &world.sources);
    let review = review.await.unwrap();
    let told: Vec<_> = review
        .tools
        .changed
        .into_iter()
        .map(|change| {
            assert_eq!(change.tool, "get_time");
            (change.member, change.from, change.to)
        })
        .collect();
    let schema = json!({"type": "object", "properties": {"zone": {"type": "string"}}});
    assert_eq!(
        told,
        [
            ("approval".to_owned(), Some(json!("always")), None),
            ("parameters".into(), Some(json!({"type": "object"})), Some(schema)),
            ("retry".into(), None, Some(json!("safe"))),
            ("timeout".into(), Some(json!(1000)), Some(json!(2000))),
        ]
    );
    assert_eq!(review.tools.other_code, ["set_time"]);
    let installed = world.plugins.install(world.project, offer, &world.sources);
    assert_eq!(
        installed.await.unwrap().tools.changed.len(),
        4,
        "the same when it is done"
    );
}

#[tokio::test(start_paused = true)]
async fn an_address_by_the_hash_of_a_document_gives_the_same_bytes_or_nothing() {
    let world = world().await;
    // Without the id of the key in it, the package has the same hash whichever key signs it.
    let signed_with = |key: &SigningKey| {
        let document = document("time", "1.0.0", &["get_time"]);
        toolgate_package::sign(document, key, &CURATOR.parse().unwrap(), None).unwrap()
    };
    let hash = world.install(&signed_with(&world.key)).await.unwrap().hash;
    let stored = async |hash: &str| world.plugins.document(world.project, hash).await.unwrap();
    let first = stored(&hash).await.unwrap();
    assert_eq!(stored(&first.hash).await.unwrap().body, first.body);
    assert_eq!(
        world.index().await.packages[&hash].document_hash.as_ref(),
        Some(&first.hash)
    );

    let key = SigningKey::generate(Algorithm::Ed25519);
    world.trust(CURATOR, "second", &key).await;
    let revoke = Revoke::Key {
        curator: CURATOR.into(),
        key: KEY.into(),
    };
    world.plugins.revoke(world.project, &revoke, None).await.unwrap();
    let again = world.install(&signed_with(&key)).await.unwrap();
    assert_eq!(again.hash, hash);
    let second = stored(&hash).await.unwrap();
    assert_ne!(second.hash, first.hash);
    assert_eq!(stored(&second.hash).await.unwrap().body, second.body);
    assert!(
        stored(&first.hash).await.is_none(),
        "other bytes have another address"
    );
}
