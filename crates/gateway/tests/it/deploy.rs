//! The alerts and the dashboard in `deploy/` go by figures that the gateway has, and each alert is explained.

use std::collections::BTreeSet;

const RULES: &str = include_str!("../../../../deploy/prometheus/rules.yaml");
const RULES_TEST: &str = include_str!("../../../../deploy/prometheus/rules.test.yaml");
const DASHBOARD: &str = include_str!("../../../../deploy/grafana/toolgate.json");
const OPERATIONS: &str = include_str!("../../../../docs/operations.md");
const CHART: &str = include_str!("../../../../deploy/helm/toolgate/templates/deployment.yaml");
const HELP: &str = include_str!("../../src/telemetry_help.rs");

/// What Prometheus adds to the name of a histogram.
const SUFFIXES: [&str; 3] = ["_bucket", "_sum", "_count"];

/// Names of figures in a text, without what Prometheus adds.
fn figures(text: &str) -> BTreeSet<&str> {
    let is_name = |c: char| c.is_ascii_lowercase() || c == '_';
    let starts = text.match_indices("toolgate_").map(|(start, _)| &text[start..]);
    let names = starts.map(|rest| &rest[..rest.find(|c| !is_name(c)).unwrap_or(rest.len())]);
    names
        .map(|name| {
            let whole = SUFFIXES.iter().find_map(|suffix| name.strip_suffix(suffix));
            // A counter may be called so itself.
            whole
                .filter(|whole| HELP.contains(&format!("\"{whole}\"")))
                .unwrap_or(name)
        })
        .collect()
}

#[test]
fn alerts_and_dashboard_name_figures_that_the_gateway_has() {
    let known = figures(HELP);
    for (file, text) in [
        ("rules.yaml", RULES),
        ("rules.test.yaml", RULES_TEST),
        ("toolgate.json", DASHBOARD),
    ] {
        let unknown: Vec<_> = figures(text).difference(&known).copied().collect();
        assert!(unknown.is_empty(), "{file} names {unknown:?}");
    }
}

#[test]
fn the_dashboard_shows_every_figure() {
    let missing: Vec<_> = figures(HELP).difference(&figures(DASHBOARD)).copied().collect();
    assert!(missing.is_empty(), "no panel shows {missing:?}");
    let dashboard: serde_json::Value = serde_json::from_str(DASHBOARD).expect("JSON");
    let panels = dashboard["panels"].as_array().expect("panels");
    let ids: BTreeSet<_> = panels.iter().map(|panel| panel["id"].as_u64()).collect();
    assert_eq!(ids.len(), panels.len(), "each panel has an id of its own");
}

#[test]
fn the_chart_demands_a_store_of_nodes_without_a_volume() {
    let condition = "{{- if not (or .Values.persistence.enabled .Values.settings.TOOLGATE_STORE) }}";
    let (_, rest) = CHART.split_once(condition).expect("a condition");
    let block = rest.split("{{- end }}").next().expect("its block");
    let demands = ["- name: TOOLGATE_STORE", "secretKeyRef:", "key: TOOLGATE_STORE"];
    assert!(demands.iter().all(|line| block.contains(line)), "{block}");
    assert!(!block.contains("optional"), "{block}");
}

#[test]
fn every_alert_is_explained() {
    let names = RULES
        .lines()
        .filter_map(|line| line.trim().strip_prefix("- alert: "));
    let unexplained: Vec<_> = names
        .filter(|name| !OPERATIONS.contains(&format!("### {name}")))
        .collect();
    assert!(
        unexplained.is_empty(),
        "docs/operations.md does not explain {unexplained:?}"
    );
}
