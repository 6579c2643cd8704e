use std::sync::Arc;

use toolgate_bus::InProcessBus;
use toolgate_engine::bus::Bus;
use toolgate_testkit::bus_conformance::all;

#[tokio::test(flavor = "multi_thread")]
async fn the_bus_of_one_process_keeps_every_promise() {
    all(async || {
        let bus: Arc<dyn Bus> = Arc::new(InProcessBus::default());
        [bus.clone(), bus.clone(), bus]
    })
    .await;
}
