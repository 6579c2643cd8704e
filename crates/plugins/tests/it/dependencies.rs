//! What stands against a change: dependencies, names, the gateway's version, limits. All at once, and nothing changes.

use serde_json::{Value, json};
use toolgate_plugins::{PluginError, RollBack};

use crate::world::{World, document, limits, reasons, world};

fn needing(id: &str, version: &str, needed: &[(&str, &str)]) -> Value {
    let mut document = document(id, version, &[&format!("{id}_tool")]);
    document["dependencies"] = needed
        .iter()
        .map(|(id, range)| ((*id).to_owned(), json!(range)))
        .collect();
    document
}

async fn refused(world: &World, document: Value) -> Vec<String> {
    let before = world.index().await;
    let reasons = reasons(world.install(&world.signed(document)).await);
    assert_eq!(world.index().await, before, "nothing changed");
    reasons
}

#[tokio::test(start_paused = true)]
async fn everything_that_stands_against_a_package_is_told_at_once() {
    let world = world().await;
    world.installed(document("units", "1.0.0", &["convert"])).await;
    let mut bad = document("calculator", "1.0.0", &["Convert", "setgoals", "add"]);
    bad["dependencies"] = json!({"units": "^2", "missing": "*"});
    bad["engine"] = json!(">=9");
    let told = refused(&world, bad).await;
    assert_eq!(told.len(), 5, "{told:#?}");
    assert!(
        told[0].starts_with("ENGINE_MISMATCH /engine it needs version >=9 of the gateway, this is 0.1.0")
    );
    assert!(told[1].starts_with(
        r#"DEPENDENCY /dependencies/missing it needs the plugin "missing" in version *, which"#
    ));
    assert!(told[2].contains("installed is 1.0.0"), "{told:#?}");
    assert!(
        told[3].starts_with(r#"NAME_CONFLICT /tools/0/name the plugin "units" has a tool named"#),
        "{told:#?}"
    );
    assert!(
        told[4].starts_with("NAME_CONFLICT /tools/1/name the gateway has"),
        "{told:#?}"
    );
}

#[tokio::test(start_paused = true)]
async fn what_others_need_is_neither_removed_nor_replaced_by_what_does_not_fit() {
    let world = world().await;
    world.installed(document("units", "1.0.0", &["convert"])).await;
    world.installed(document("units", "1.1.0", &["convert"])).await;
    world
        .installed(needing("calculator", "1.0.0", &[("units", "^1.1")]))
        .await;
    let told = reasons(world.plugins.remove(world.project, "units", false).await);
    assert!(
        told[0].contains(r#"the plugin "calculator" needs it in version ^1.1"#),
        "{told:?}"
    );
    let told = refused(&world, document("units", "2.0.0", &["convert"])).await;
    assert!(told[0].starts_with("DEPENDENCY /version"), "{told:?}");
    let told = reasons(world.roll_back("units", &RollBack::Previous).await);
    assert!(told[0].starts_with("DEPENDENCY /version"), "{told:?}");
    world
        .plugins
        .remove(world.project, "calculator", false)
        .await
        .unwrap();
    world.plugins.remove(world.project, "units", false).await.unwrap();
    assert!(world.index().await.plugins.is_empty());
}

#[tokio::test(start_paused = true)]
async fn circles_of_dependencies_are_refused() {
    let world = world().await;
    world.installed(document("first", "1.0.0", &["first_tool"])).await;
    world
        .installed(needing("second", "1.0.0", &[("first", "*")]))
        .await;
    world
        .installed(needing("third", "1.0.0", &[("second", "*"), ("first", "*")]))
        .await;
    let told = refused(&world, needing("first", "1.1.0", &[("third", "*")])).await;
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(
        told[0].contains("first → third → ") && told[0].ends_with("→ first"),
        "{told:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_plugin_keeps_its_own_names_when_it_is_upgraded() {
    let world = world().await;
    world
        .installed(document("units", "1.0.0", &["convert", "list_units"]))
        .await;
    let upgrade = world.signed(document("units", "1.1.0", &["convert", "compare"]));
    let review = world.install(&upgrade).await.unwrap();
    assert_eq!(review.tools.added, ["compare"]);
    assert_eq!(review.tools.removed, ["list_units"]);
    assert_eq!(review.tools.kept, ["convert"]);
    world
        .installed(document("lister", "1.0.0", &["list_units"]))
        .await;
    let told = reasons(world.roll_back("units", &RollBack::Previous).await);
    assert!(
        told[0].starts_with("NAME_CONFLICT /tools/1/name"),
        "the name was taken meanwhile: {told:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn ids_that_stand_for_something_else_in_addresses_are_refused() {
    let world = world().await;
    for id in ["sign", "revoke", &"a".repeat(64)] {
        let told = refused(&world, document(id, "1.0.0", &["x"])).await;
        assert!(told[0].starts_with("NAME_CONFLICT /id"), "{told:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn limits_count_plugins_packages_and_bytes() {
    let world = World::with(limits(|limits| limits.installed = 1)).await;
    world.installed(document("one", "1.0.0", &["a"])).await;
    assert!(refused(&world, document("two", "1.0.0", &["b"])).await[0].starts_with("LIMIT_EXCEEDED"));
    world.installed(document("one", "1.1.0", &["a"])).await;

    let world = World::with(limits(|limits| limits.packages = 2)).await;
    let first = world.installed(document("one", "1.0.0", &["a"])).await;
    world.installed(document("one", "1.1.0", &["a"])).await;
    let told = refused(&world, document("one", "1.2.0", &["a"])).await;
    assert!(told[0].contains("2 packages"), "{told:?}");
    world.plugins.purge(world.project, &first).await.unwrap();
    let current = world.installed(document("one", "1.2.0", &["a"])).await;
    assert!(
        world.plugins.purge(world.project, &current).await.is_err(),
        "it is in use"
    );

    let world = World::with(limits(|limits| limits.bytes = 1_000)).await;
    world.installed(document("one", "1.0.0", &["a"])).await;
    let told = refused(&world, document("two", "1.0.0", &["b", "c", "d", "e"])).await;
    assert!(told[0].contains("at most 1000 are allowed"), "{told:?}");
}

#[tokio::test(start_paused = true)]
async fn a_name_that_another_source_takes_at_the_same_moment_is_not_taken_twice() {
    let world = world().await;
    world.take_meanwhile("Convert").await;
    let told = refused(&world, document("units", "1.0.0", &["convert"])).await;
    assert!(told[0].starts_with("NAME_CONFLICT /tools/0/name"), "{told:?}");
    assert_eq!(world.version("units").await, None);

    world.installed(document("units", "1.0.0", &["list_units"])).await;
    world
        .installed(document("units", "1.1.0", &["compare_units"]))
        .await;
    world.take_meanwhile("list_units").await;
    let told = reasons(world.roll_back("units", &RollBack::Previous).await);
    assert!(told[0].starts_with("NAME_CONFLICT /tools/0/name"), "{told:?}");
    assert_eq!(world.version("units").await.as_deref(), Some("1.1.0"));
}

#[tokio::test(start_paused = true)]
async fn nothing_is_installed_while_a_source_cannot_say_which_names_it_has() {
    let world = world().await;
    world.others.fall_silent();
    let units = world.signed(document("units", "1.0.0", &["convert"]));
    let installed = world.install(&units).await;
    assert!(
        matches!(&installed, Err(PluginError::NamesUnknown(_))),
        "{installed:?}"
    );
    let reviewed = world
        .plugins
        .review(world.project, &world.offer(&units), &world.sources)
        .await;
    assert!(
        matches!(reviewed, Err(PluginError::NamesUnknown(_))),
        "{reviewed:?}"
    );
    assert_eq!(world.version("units").await, None);
}
