use std::future::poll_fn;
use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::stream::{StreamExt, unfold};
use tokio_postgres::NoTls;
use toolgate_bus::{Dial, Dialed, PostgresBus};
use toolgate_engine::bus::Bus;
use toolgate_testkit::bus_conformance::{Carrier, all, outages};
use toolgate_testkit::postgres_server::{Durability, PostgresServer, Stop};

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

struct Server(PostgresServer);

impl Carrier for Server {
    fn stop(&mut self) {
        self.0.stop(Stop::AtOnce);
    }
    async fn start(&mut self) {
        self.0.start_again();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_bus_over_postgresql_keeps_every_promise() {
    let address = PostgresServer::shared().database();
    all(async || three(&address).await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_postgresql_that_goes_away_and_comes_back_is_joined_again() {
    let mut server = Server(PostgresServer::start(Durability::None));
    let address = server.0.database();
    outages(&mut server, async || three(&address).await).await;
}
