//! Relays before servers of FTP, Gopher and News: one that writes down what a server is asked, line by line, and one
//! port for two servers.

use std::net::SocketAddr;

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, copy, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

type Asked = watch::Sender<Vec<String>>;

/// A relay, which ends with the test.
pub(crate) struct Relay {
    pub(crate) address: SocketAddr,
    asked: Asked,
}

impl Relay {
    pub(crate) async fn start(server: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (address, asked) = (listener.local_addr().unwrap(), Asked::default());
        let noted = asked.clone();
        tokio::spawn(async move {
            loop {
                let stream = listener.accept().await.unwrap().0;
                // Who asked may be killed.
                tokio::spawn(relay(stream, server, noted.clone()));
            }
        });
        Self { address, asked }
    }

    /// Waits until there are this many lines with this text. Returns those that there are.
    pub(crate) async fn asked(&self, text: &str, count: usize) -> Vec<String> {
        let of = |all: &[String]| -> Vec<String> {
            all.iter().filter(|it| it.contains(text)).cloned().collect()
        };
        let mut asked = self.asked.subscribe();
        of(&asked.wait_for(|it| count <= of(it).len()).await.unwrap())
    }
}

async fn relay(client: TcpStream, server: SocketAddr, asked: Asked) -> std::io::Result<()> {
    let server = TcpStream::connect(server).await?;
    for it in [&client, &server] {
        it.set_nodelay(true)?;
    }
    let (from_client, mut to_client) = client.into_split();
    let (mut from_server, mut to_server) = server.into_split();
    let back = tokio::spawn(async move { copy(&mut from_server, &mut to_client).await });
    let (mut reader, mut line) = (BufReader::new(from_client), Vec::new());
    while 0 < reader.read_until(b'\n', &mut line).await? {
        let text = String::from_utf8_lossy(&line).trim_end().to_owned();
        asked.send_modify(|it| it.push(text));
        to_server.write_all(&line).await?;
        line.clear();
    }
    drop(to_server);
    back.await.unwrap().map(drop)
}

/// The first byte of a connection of TLS.
const TLS: u8 = 22;

/// Returns a port at which clients that begin with TLS reach one server, and others that begin reach the other. So
/// both are one site, which may be in a private network.
pub(crate) async fn shared(secure: SocketAddr, plain: SocketAddr) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        loop {
            let mut client = listener.accept().await.unwrap().0;
            tokio::spawn(async move {
                let mut first = [0];
                client.peek(&mut first).await?;
                let server = if first == [TLS] { secure } else { plain };
                copy_bidirectional(&mut client, &mut TcpStream::connect(server).await?).await
            });
        }
    });
    address
}
