//! Who may sign, what runs, and what is stopped.

use serde_json::json;
use toolgate_kernel::time::Time;
use toolgate_package::{Algorithm, CuratorKey, SigningKey};
use toolgate_plugins::{
    Action, Candidate, NewKey, PluginError, PluginSettings, Revoke, RollBack, Signed, Signing, Trust,
};

use crate::world::{CURATOR, KEY, World, development, document, reasons, world};

#[tokio::test(start_paused = true)]
async fn production_installs_what_a_trusted_curator_has_signed_and_nothing_else() {
    let world = world().await;
    let unsigned = document("time", "1.0.0", &["get_time"]);
    let refused = reasons(world.install(&unsigned).await);
    assert!(
        refused.len() == 1 && refused[0].starts_with("NOT_VERIFIED /packageSignature it is not signed"),
        "{refused:?}"
    );

    let signed = world.signed(unsigned.clone());
    for (pointer, value) in [
        ("/tools/0/executorCode", json!("return 'stolen';")),
        ("/version", json!("9.0.0")),
        ("/name", json!("other")),
        ("/tools/0/description", json!("Does something else.")),
    ] {
        let mut tampered = signed.clone();
        *tampered.pointer_mut(pointer).unwrap() = value;
        let refused = reasons(world.install(&tampered).await);
        assert!(refused[0].starts_with("NOT_VERIFIED"), "{pointer}: {refused:?}");
    }
    let mut asks_more = signed.clone();
    asks_more["permissions"] = json!(["storage"]);
    assert!(reasons(world.install(&asks_more).await)[0].starts_with("NOT_VERIFIED"));

    let stranger = SigningKey::generate(Algorithm::Ed25519);
    let by_stranger = world.signed_by(unsigned.clone(), "stranger", "k", &stranger);
    assert!(reasons(world.install(&by_stranger).await)[0].contains("stranger is not trusted"));
    let in_its_name = world.signed_by(unsigned, CURATOR, KEY, &stranger);
    assert!(reasons(world.install(&in_its_name).await)[0].contains("was not made by a key of acme"));
    assert_eq!(world.index().await.packages.len(), 0, "nothing was stored");

    let review = world.install(&signed).await.unwrap();
    assert_eq!(
        (review.action, review.trust),
        (Action::Install, Ok(Trust::Verified))
    );
    assert!(world.runs(&review.hash).await);
}

#[tokio::test(start_paused = true)]
async fn development_runs_unsigned_plugins_until_the_project_goes_into_production() {
    let world = World::with(development()).await;
    let review = world
        .install(&document("time", "1.0.0", &["get_time"]))
        .await
        .unwrap();
    assert_eq!(review.trust, Ok(Trust::Unsigned));
    assert_eq!(review.package.signed, Signed::Unsigned);
    assert!(world.runs(&review.hash).await);
    let mut tampered = world.signed(document("time", "1.1.0", &["get_time"]));
    tampered["tools"][0]["executorCode"] = json!("return 1;");
    assert!(
        reasons(world.install(&tampered).await)[0].starts_with("NOT_VERIFIED"),
        "not even here"
    );

    let world = world.reopened(PluginSettings::default());
    assert!(!world.runs(&review.hash).await);
}

#[tokio::test(start_paused = true)]
async fn a_signature_over_the_tools_alone_is_enough_only_where_the_settings_say_so_and_nothing_is_asked_for()
{
    let tools_only = |world: &World, permissions: &[&str]| {
        let mut document = document("time", "1.0.0", &["get_time"]);
        if !permissions.is_empty() {
            document["permissions"] = json!(permissions);
        }
        let mut signed = world.signed(document);
        signed.as_object_mut().unwrap().remove("packageSignature");
        signed
    };
    let strict = world().await;
    let refused = reasons(strict.install(&tools_only(&strict, &[])).await);
    assert!(refused[0].contains("covers its tools only"), "{refused:?}");
    let lenient = World::with(PluginSettings {
        tools_only_signatures: true,
        ..PluginSettings::default()
    })
    .await;
    assert!(
        reasons(lenient.install(&tools_only(&lenient, &["storage"])).await)[0].starts_with("NOT_VERIFIED")
    );
    let review = lenient.install(&tools_only(&lenient, &[])).await.unwrap();
    assert_eq!(review.trust, Ok(Trust::ToolsOnly));
}

#[tokio::test(start_paused = true)]
async fn a_key_is_rotated_and_the_old_one_revoked() {
    let world = world().await;
    let old = world.installed(document("time", "1.0.0", &["get_time"])).await;
    let second = SigningKey::generate(Algorithm::Ed25519);
    world.trust(CURATOR, "second", &second).await;
    let newer = world.signed_by(
        document("time", "1.1.0", &["get_time"]),
        CURATOR,
        "second",
        &second,
    );
    let new = world.install(&newer).await.unwrap().hash;
    assert!(
        world.runs(&old).await && world.runs(&new).await,
        "both keys count while one replaces the other"
    );

    let key = Revoke::Key {
        curator: CURATOR.into(),
        key: KEY.into(),
    };
    world
        .plugins
        .revoke(world.project, &key, Some("lost"))
        .await
        .unwrap();
    assert!(!world.runs(&old).await && world.runs(&new).await);
    let again = world.signed(document("time", "1.2.0", &["get_time"]));
    assert!(reasons(world.install(&again).await)[0].contains("was revoked"));
    let refused = reasons(world.roll_back("time", &RollBack::Previous).await);
    assert!(refused[0].starts_with("REVOKED"), "{refused:?}");

    let mut same_id = CuratorKey::new(world.key.public());
    same_id.id = KEY.parse().unwrap();
    let Err(PluginError::Invalid(problems)) = world.put_key(CURATOR, same_id).await else {
        panic!("a revoked key stays revoked");
    };
    assert_eq!(problems[0].pointer, "/keys/0");
    let mut another = CuratorKey::new(world.key.public());
    another.id = "second".parse().unwrap();
    assert!(
        world.put_key(CURATOR, another).await.is_err(),
        "a key never changes"
    );
}

#[tokio::test(start_paused = true)]
async fn a_key_is_known_under_one_id_and_a_revoked_one_comes_back_under_none() {
    let world = world().await;
    let named = |id: &str| {
        let mut key = CuratorKey::new(world.key.public());
        key.id = id.parse().unwrap();
        key
    };
    let told = async |curator: &str, id: &str| match world.put_key(curator, named(id)).await {
        Err(PluginError::Invalid(problems)) => problems[0].message.clone(),
        other => panic!("it is refused: {other:?}"),
    };
    assert!(
        told(CURATOR, "again")
            .await
            .contains("knows this key under another id")
    );
    assert!(
        told("other", KEY)
            .await
            .contains("knows this key under another id")
    );
    world.put_key(CURATOR, named(KEY)).await.unwrap();
    let key = Revoke::Key {
        curator: CURATOR.into(),
        key: KEY.into(),
    };
    world.plugins.revoke(world.project, &key, None).await.unwrap();
    for (curator, id) in [(CURATOR, KEY), (CURATOR, "again"), ("other", KEY)] {
        assert!(told(curator, id).await.contains("was revoked"), "{curator} {id}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_key_that_is_put_again_without_dates_keeps_them() {
    let world = world().await;
    let mut key = CuratorKey::new(world.key.public());
    key.id = KEY.parse().unwrap();
    let dated = CuratorKey {
        not_before: Some(Time(1_700_000_000_000)),
        expires: Some(Time(1_900_000_000_000)),
        ..key.clone()
    };
    world.put_key(CURATOR, dated.clone()).await.unwrap();
    world.put_key(CURATOR, key).await.unwrap();
    let stored = world.index().await.curators[CURATOR].keys[KEY].clone();
    assert_eq!(
        (stored.not_before, stored.expires),
        (dated.not_before, dated.expires)
    );
}

#[tokio::test(start_paused = true)]
async fn a_package_that_a_new_key_has_signed_runs_again_after_its_old_key_was_revoked() {
    let world = world().await;
    // Without the id of the key in it, the package has the same hash whichever key signs it.
    let signed_with = |key: &SigningKey| {
        let document = document("time", "1.0.0", &["get_time"]);
        toolgate_package::sign(document, key, &CURATOR.parse().unwrap(), None).unwrap()
    };
    let hash = world.install(&signed_with(&world.key)).await.unwrap().hash;
    let second = SigningKey::generate(Algorithm::Ed25519);
    world.trust(CURATOR, "second", &second).await;
    let key = Revoke::Key {
        curator: CURATOR.into(),
        key: KEY.into(),
    };
    world.plugins.revoke(world.project, &key, None).await.unwrap();
    assert!(!world.runs(&hash).await);
    let again = world.install(&signed_with(&second)).await.unwrap();
    assert_eq!(again.hash, hash);
    assert!(world.runs(&hash).await);
}

#[tokio::test(start_paused = true)]
async fn a_revoked_package_does_not_come_back_by_a_signature_over_its_tools_alone() {
    let world = World::with(PluginSettings {
        tools_only_signatures: true,
        ..PluginSettings::default()
    })
    .await;
    let signed = world.signed(document("time", "1.0.0", &["get_time"]));
    let mut renamed = signed.clone();
    for member in ["packageHash", "packageSignature"] {
        renamed.as_object_mut().unwrap().remove(member);
    }
    renamed["version"] = json!("1.0.1");
    let bad = world.install(&signed).await.unwrap().hash;
    let stored = world.install(&renamed).await.unwrap().hash;
    assert!(world.runs(&stored).await);
    let revoke = Revoke::Package(bad);
    world.plugins.revoke(world.project, &revoke, None).await.unwrap();
    assert!(!world.runs(&stored).await);
    renamed["version"] = json!("1.0.2");
    assert!(reasons(world.install(&renamed).await)[0].starts_with("REVOKED"));
    let meant = world.signed(document("time", "1.0.3", &["get_time"]));
    assert!(
        world.install(&meant).await.is_ok(),
        "the curator has signed that this is another version"
    );
}

#[tokio::test(start_paused = true)]
async fn an_expired_key_installs_nothing_more_and_what_it_has_signed_goes_on() {
    let world = world().await;
    let mut key = CuratorKey::new(world.key.public());
    key.id = KEY.parse().unwrap();
    key.expires = Some(Time(1_800_000_060_000));
    world.put_key(CURATOR, key).await.unwrap();
    let first = world.installed(document("time", "1.0.0", &["get_time"])).await;
    world.installed(document("time", "1.1.0", &["get_time"])).await;
    world.clock.jump(60_000);
    let late = world.signed(document("time", "1.2.0", &["get_time"]));
    assert!(reasons(world.install(&late).await)[0].contains("expired"));
    assert!(world.runs(&first).await);
    world.roll_back("time", &RollBack::Previous).await.unwrap();
    assert_eq!(world.version("time").await.as_deref(), Some("1.0.0"));
}

#[tokio::test(start_paused = true)]
async fn a_revoked_curator_stops_everything_it_has_signed_and_comes_back_with_a_new_key_only() {
    let world = world().await;
    let hash = world.installed(document("time", "1.0.0", &["get_time"])).await;
    let revoke = Revoke::Curator(CURATOR.into());
    world.plugins.revoke(world.project, &revoke, None).await.unwrap();
    assert!(!world.runs(&hash).await);
    let second = SigningKey::generate(Algorithm::Ed25519);
    world.trust(CURATOR, "second", &second).await;
    assert!(
        !world.runs(&hash).await,
        "what the old key has signed does not come back"
    );
    let again = world.signed_by(
        document("time", "1.0.1", &["get_time"]),
        CURATOR,
        "second",
        &second,
    );
    assert!(world.install(&again).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_revoked_package_cannot_be_installed_again_or_go_back_to() {
    let world = world().await;
    let signed = world.signed(document("time", "1.0.0", &["get_time"]));
    let bad = world.install(&signed).await.unwrap().hash;
    let good = world.installed(document("time", "1.0.1", &["get_time"])).await;
    let revoke = Revoke::Package(bad.clone());
    world.plugins.revoke(world.project, &revoke, None).await.unwrap();
    assert!(!world.runs(&bad).await && world.runs(&good).await);
    assert!(reasons(world.install(&signed).await)[0].starts_with("REVOKED"));
    assert!(reasons(world.roll_back("time", &RollBack::To(bad.clone())).await)[0].starts_with("REVOKED"));
    world.plugins.remove(world.project, "time", true).await.unwrap();
    assert!(
        reasons(world.install(&signed).await)[0].starts_with("REVOKED"),
        "also when it was purged"
    );
}

#[tokio::test(start_paused = true)]
async fn another_curator_takes_a_plugin_over_only_when_that_is_said() {
    let world = world().await;
    world.installed(document("time", "1.0.0", &["get_time"])).await;
    let other = SigningKey::generate(Algorithm::Ed25519);
    world.trust("other", "k", &other).await;
    let theirs = world.signed_by(document("time", "2.0.0", &["get_time"]), "other", "k", &other);
    let refused = reasons(world.install(&theirs).await);
    assert!(refused[0].starts_with("NOT_VERIFIED /curatorId"), "{refused:?}");
    let mut offer = world.offer(&theirs);
    offer.replace_curator = true;
    let before = world.index().await.plugins["time"].data.clone();
    let replaced = world.plugins.install(world.project, offer, &world.sources);
    replaced.await.unwrap();
    assert_eq!(world.version("time").await.as_deref(), Some("2.0.0"));
    let after = world.index().await.plugins["time"].data.clone();
    assert_ne!(before, after, "what the first has kept is not for the other");
    world.roll_back("time", &RollBack::Previous).await.unwrap();
    let back = world.index().await.plugins["time"].data.clone();
    assert_ne!(after, back, "nor the other way round");
    world.installed(document("time", "1.0.1", &["get_time"])).await;
    let upgraded = world.index().await.plugins["time"].data.clone();
    assert_eq!(back, upgraded, "the same curator goes on with it");
}

#[tokio::test(start_paused = true)]
async fn a_project_signs_for_the_api_keys_that_its_settings_name() {
    let key = SigningKey::generate(Algorithm::Ed25519);
    let signing = |private_key: Option<&str>| PluginSettings {
        signing: Some(Signing {
            curator: "own".into(),
            key: Some("k".into()),
            private_key: private_key.map(toolgate_kernel::agent::Secret::new),
            allowed: vec!["key_1".into()],
        }),
        ..PluginSettings::default()
    };
    let world = World::with(signing(Some(&key.to_pem()))).await;
    let unsigned = document("time", "1.0.0", &["get_time"]);
    let sign = |world: &World, key| {
        let (plugins, project) = (world.plugins.clone(), world.project);
        let unsigned = Candidate::parse(unsigned.to_string().as_bytes()).unwrap();
        async move { plugins.sign(project, unsigned, key).await }
    };
    let refused = sign(&world, Some("key_2")).await.err().unwrap().to_string();
    assert!(refused.contains("plugins.signing.keys"), "{refused}");
    let signature = sign(&world, Some("key_1")).await.ok().unwrap();
    assert_eq!(signature.audit.tools[0].name, "get_time");
    world.trust("own", "k", &key).await;
    let review = world.install(&signature.document).await.unwrap();
    assert_eq!(review.trust, Ok(Trust::Verified));

    let world = world.reopened(signing(None));
    let refused = sign(&world, Some("key_1")).await.err().unwrap().to_string();
    assert!(refused.contains("plugins.signing.secret"), "{refused}");
    let world = world.reopened(PluginSettings::default());
    let refused = sign(&world, Some("key_1")).await.err().unwrap().to_string();
    assert!(refused.contains("toolgate plugin keygen"), "{refused}");
}

#[tokio::test(start_paused = true)]
async fn an_end_is_taken_away_where_that_is_said() {
    let world = world().await;
    let mut key = CuratorKey::new(world.key.public());
    key.id = KEY.parse().unwrap();
    let dated = CuratorKey {
        not_before: Some(Time(1_700_000_000_000)),
        expires: Some(Time(1_900_000_000_000)),
        ..key.clone()
    };
    world.put_key(CURATOR, dated.clone()).await.unwrap();
    let without_end = NewKey {
        clear_expires: true,
        ..key.into()
    };
    world.put_new_key(CURATOR, without_end).await.unwrap();
    let stored = world.index().await.curators[CURATOR].keys[KEY].clone();
    assert_eq!((stored.not_before, stored.expires), (dated.not_before, None));
}

#[tokio::test(start_paused = true)]
async fn revoked_keys_fill_no_curator_and_are_never_forgotten() {
    let world = world().await;
    let hash = world.installed(document("time", "1.0.0", &["get_time"])).await;
    let revoke = async |key: &str| {
        let key = Revoke::Key {
            curator: CURATOR.into(),
            key: key.into(),
        };
        world.plugins.revoke(world.project, &key, None).await.unwrap();
        world.clock.jump(1_000);
    };
    revoke(KEY).await;
    for number in 0..70 {
        let id = format!("k{number}");
        world
            .trust(CURATOR, &id, &SigningKey::generate(Algorithm::Ed25519))
            .await;
        revoke(&id).await;
    }
    let last = SigningKey::generate(Algorithm::Ed25519);
    world.trust(CURATOR, "last", &last).await;
    let curator = world.index().await.curators[CURATOR].clone();
    assert_eq!((curator.keys.len(), curator.retired.len()), (33, 39));
    assert!(
        curator.retired.contains_key(KEY),
        "the one that was revoked first"
    );

    assert!(!world.runs(&hash).await);
    let put = async |id: &str, key: &SigningKey| {
        let mut written = CuratorKey::new(key.public());
        written.id = id.parse().unwrap();
        match world.put_key(CURATOR, written).await {
            Err(PluginError::Invalid(problems)) => problems[0].message.clone(),
            other => panic!("{id}: {other:?}"),
        }
    };
    assert!(
        put("new", &world.key).await.contains("was revoked"),
        "under another id"
    );
    let other = SigningKey::generate(Algorithm::Ed25519);
    assert!(
        put(KEY, &other).await.contains("was revoked"),
        "another under its id"
    );
    let mut elsewhere = CuratorKey::new(world.key.public());
    elsewhere.id = "x".parse().unwrap();
    assert!(
        world.put_key("other", elsewhere).await.is_err(),
        "for another curator"
    );
    assert!(!world.runs(&hash).await);
    let signed = world.signed_by(document("clock", "1.0.0", &["tick"]), CURATOR, "last", &last);
    world.install(&signed).await.unwrap();

    for number in 0..31 {
        let key = SigningKey::generate(Algorithm::Ed25519);
        world.trust(CURATOR, &format!("live-{number}"), &key).await;
    }
    let one_more = put("one-more", &SigningKey::generate(Algorithm::Ed25519)).await;
    assert!(one_more.contains("at most 32 keys"), "{one_more}");
}
