//! The client's side finds out which era a server speaks, whatever way the server has to say so.

use toolgate_mcp::Server;
use toolgate_testkit_mcp::{Eras, Fixture, serve_http};

use crate::gateway::{listen, soon, spawn};

#[tokio::test(flavor = "multi_thread")]
async fn servers_of_every_era_list_their_tools() {
    for eras in [Eras::Both, Eras::Modern, Eras::Legacy] {
        let (listener, url) = listen("mcp").await;
        let _server = spawn(async move { drop(serve_http(listener, Fixture::new(eras)).await) });
        let server = Server::http("fixture", url);
        let connection = soon("connect", server.connect()).await;
        let connection = connection.unwrap_or_else(|error| panic!("{eras:?}: {error}"));
        let tools = soon("list", connection.list_raw()).await.unwrap();
        assert!(tools.len() > 30, "{eras:?}: {}", tools.len());
    }
}
