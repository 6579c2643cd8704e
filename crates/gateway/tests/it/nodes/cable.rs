//! The network between a node and a server, which can be cut: nothing arrives, and nobody is told.

use std::net::SocketAddr;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_util::task::AbortOnDropHandle;

/// Bytes that are passed on at once.
const PIECE_BYTES: usize = 16 << 10;

/// Passes connections on to a server, except while it is cut.
pub struct Cable {
    port: u16,
    whole: watch::Sender<bool>,
    _task: AbortOnDropHandle<()>,
}

impl Cable {
    /// To a server at this port.
    pub async fn to(port: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let own = listener.local_addr().expect("an address").port();
        let (whole, is_whole) = watch::channel(true);
        let server = SocketAddr::from(([127, 0, 0, 1], port));
        let task = tokio::spawn(accept(listener, server, is_whole));
        Self {
            port: own,
            whole,
            _task: AbortOnDropHandle::new(task),
        }
    }

    /// Where its near end is.
    pub fn host(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// An address of the server, by way of this cable.
    pub fn through(&self, address: &str, port: u16) -> String {
        address.replace(&format!(":{port}"), &format!(":{}", self.port))
    }

    /// Cuts it.
    pub fn cut(&self) {
        self.whole.send_replace(false);
    }

    /// Mends it: what was on its way arrives.
    pub fn mend(&self) {
        self.whole.send_replace(true);
    }
}

async fn accept(listener: TcpListener, server: SocketAddr, is_whole: watch::Receiver<bool>) {
    let mut connections = JoinSet::new();
    while let Ok((client, _)) = listener.accept().await {
        connections.spawn(pass_on(client, server, is_whole.clone()));
        while connections.try_join_next().is_some() {}
    }
}

async fn pass_on(client: TcpStream, server: SocketAddr, mut is_whole: watch::Receiver<bool>) {
    if is_whole.wait_for(|whole| *whole).await.is_err() {
        return;
    }
    let Ok(server) = TcpStream::connect(server).await else {
        return;
    };
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    tokio::select! {
        () = copy(from_client, to_server, is_whole.clone()) => {}
        () = copy(from_server, to_client, is_whole) => {}
    }
}

/// Copies until one side ends; nothing while the cable is cut.
async fn copy(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, mut is_whole: watch::Receiver<bool>) {
    let mut piece = vec![0; PIECE_BYTES];
    while let Ok(bytes @ 1..) = from.read(&mut piece).await {
        let arrives = is_whole.wait_for(|whole| *whole).await.is_ok();
        if !arrives || to.write_all(&piece[..bytes]).await.is_err() {
            return;
        }
    }
    // The other side notices an end at once, cut or not, which a real cut would keep from it: wait for the mending.
    let _ = is_whole.wait_for(|whole| *whole).await;
}
