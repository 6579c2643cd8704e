use std::future::poll_fn;
use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::stream::{StreamExt, unfold};
use tokio_postgres::NoTls;
use toolgate_bus::{Dial, Dialed, PostgresBus};
use toolgate_engine::bus::Bus;
use toolgate_testkit::bus_conformance::{Carrier, all, outages};

use crate::postgres_process::PostgresProcess;

fn dial(address: String) -> Dial {
    Arc::new(move || {
        let address = address.clone();
        async move {
            let (client, connection) = tokio_postgres::connect(&address, NoTls).await?;
            let messages = unfold(connection, |mut connection| async {
                let message = poll_fn(|context| connection.poll_message(context)).await?;
                Some((message, connection))
            });
            Ok(Dialed {
                client,
                messages: messages.boxed(),
            })
        }
        .boxed()
    })
}

async fn three(address: &str) -> [Arc<dyn Bus>; 3] {
    let dial = dial(address.to_owned());
    [join(&dial).await, join(&dial).await, join(&dial).await]
}

async fn join(dial: &Dial) -> Arc<dyn Bus> {
    Arc::new(PostgresBus::join_by(dial.clone()).await)
}

impl Carrier for PostgresProcess {
    fn stop(&mut self) {
        PostgresProcess::stop(self);
    }
    async fn start(&mut self) {
        self.start_again().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_bus_over_postgresql_keeps_every_promise() {
    let server = PostgresProcess::start().await;
    let address = server.address();
    all(async || three(&address).await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_postgresql_that_goes_away_and_comes_back_is_joined_again() {
    let mut server = PostgresProcess::start().await;
    let address = server.address();
    outages(&mut server, async || three(&address).await).await;
}
