//! A balancer as simple as they come: each connection to the next node that says it is ready.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_util::task::AbortOnDropHandle;

/// How often nodes are asked whether they are ready.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Passes connections on until it is dropped.
pub struct Balancer {
    port: u16,
    _tasks: Vec<AbortOnDropHandle<()>>,
}

struct Node {
    address: SocketAddr,
    is_ready: AtomicBool,
}

impl Balancer {
    /// In front of these nodes.
    pub async fn start(addresses: impl IntoIterator<Item = SocketAddr>) -> Self {
        let nodes: Arc<[Arc<Node>]> = addresses
            .into_iter()
            .map(|address| {
                let is_ready = AtomicBool::new(true);
                Arc::new(Node { address, is_ready })
            })
            .collect();
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let port = listener.local_addr().expect("an address").port();
        let mut tasks: Vec<_> = nodes
            .iter()
            .map(|node| tokio::spawn(watch(node.clone())))
            .collect();
        tasks.push(tokio::spawn(accept(listener, nodes)));
        Self {
            port,
            _tasks: tasks.into_iter().map(AbortOnDropHandle::new).collect(),
        }
    }

    pub fn port(&self) -> u16 {
        self.port
    }
}

async fn accept(listener: TcpListener, nodes: Arc<[Arc<Node>]>) {
    let next = AtomicUsize::new(0);
    let mut connections = JoinSet::new();
    while let Ok((client, _)) = listener.accept().await {
        let first = next.fetch_add(1, Ordering::Relaxed);
        connections.spawn(pass_on(client, nodes.clone(), first));
        while connections.try_join_next().is_some() {}
    }
}

async fn pass_on(mut client: TcpStream, nodes: Arc<[Arc<Node>]>, first: usize) {
    let in_turn = (0..nodes.len()).map(|offset| &nodes[(first + offset) % nodes.len()]);
    for node in in_turn.filter(|node| node.is_ready.load(Ordering::Relaxed)) {
        if let Ok(mut server) = TcpStream::connect(node.address).await {
            // Either side may end it.
            let _ = tokio::io::copy_bidirectional(&mut client, &mut server).await;
            return;
        }
    }
}

async fn watch(node: Arc<Node>) {
    loop {
        let ready = tokio::time::timeout(LOOK_EVERY * 20, is_ready(node.address)).await;
        node.is_ready
            .store(ready.is_ok_and(|ready| ready.unwrap_or(false)), Ordering::Relaxed);
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

async fn is_ready(address: SocketAddr) -> std::io::Result<bool> {
    let mut stream = TcpStream::connect(address).await?;
    stream
        .write_all(b"GET /readyz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")
        .await?;
    let mut status = [0; 12];
    stream.read_exact(&mut status).await?;
    Ok(&status == b"HTTP/1.1 200")
}
