//! Time zones.

use serde_json::json;
use toolgate_client::plugins::time::plugin;

use crate::{client, words};

#[tokio::test]
async fn a_moment_is_told_in_another_zone() {
    let client = client();
    client.use_plugin(plugin()).await.unwrap();
    let asked = json!({"time": "2026-07-01T20:00:00Z", "timezone": "Asia/Tokyo"});
    assert_eq!(
        client.try_tool("convert_time", asked).await.unwrap(),
        json!({"time": "2026-07-02T05:00:00+09:00", "timezone": "Asia/Tokyo", "weekday": "Thursday"})
    );
}

#[tokio::test]
async fn the_time_now_is_told_in_the_zone_that_was_asked_for() {
    let client = client();
    client.use_plugin(plugin()).await.unwrap();
    let now = client
        .try_tool("get_current_time", json!({"timezone": "UTC"}))
        .await
        .unwrap();
    assert_eq!(now["timezone"], "UTC");
    assert!(now["time"].as_str().unwrap().ends_with("+00:00"), "{now}");
    words(
        client
            .try_tool("get_current_time", json!({"timezone": "Mars/Olympus"}))
            .await,
    );
}
