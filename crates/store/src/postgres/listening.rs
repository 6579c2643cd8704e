//! A connection outside the pool, for whoever listens to the server's notifications.

use std::future::poll_fn;
use std::time::Duration;

use futures_util::stream::{BoxStream, StreamExt as _, unfold};
use tokio_postgres::{AsyncMessage, Client, Error};
use toolgate_engine::store::StoreError;

use super::address::PostgresAddress;
use super::fault::Fault;
use super::tls;

/// Longest time to connect.
const CONNECT_TIME: Duration = Duration::from_secs(5);

/// What the server says on a connection, by itself. The connection works while it is polled.
pub type ServerMessages = BoxStream<'static, Result<AsyncMessage, Error>>;

impl PostgresAddress {
    /// Connects, as the store does, for notifications.
    pub async fn connect_to_listen(&self) -> Result<(Client, ServerMessages), StoreError> {
        let tls = tls::connector(&self.protection)
            .map_err(|why| StoreError::Unavailable(format!("TLS to {self}: {why}")))?;
        let connected = self.hosts.connect(&tls, CONNECT_TIME).await;
        let ((client, connection), _) = connected.map_err(Fault::into_store_error)?;
        let messages = unfold(connection, |mut connection| async {
            let message = poll_fn(|context| connection.poll_message(context)).await?;
            Some((message, connection))
        });
        Ok((client, messages.boxed()))
    }
}
