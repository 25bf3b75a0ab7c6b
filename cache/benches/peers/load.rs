//! The load: connections that are kept, with one request at a time each.

use std::cell::Cell;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};
use tokio::task::{JoinSet, LocalSet};

/// Bytes that are read at once.
const READ_BYTES: usize = 256 << 10;

/// What requests ask for: the request with this number.
pub(crate) type Requests = Rc<dyn Fn(usize) -> String>;

/// Returns a request in the form that a server takes.
pub(crate) fn origin_form(host: &str, path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n")
}

/// Returns a request in the form that a proxy takes.
pub(crate) fn proxy_form(host: impl std::fmt::Display, path: &str) -> String {
    format!("GET http://{host}{path} HTTP/1.1\r\nHost: {host}\r\n\r\n")
}

/// Sends requests number `first` to `first + count` over so many connections. Returns the time.
pub(crate) async fn run(
    address: SocketAddr,
    connections: usize,
    (first, count): (usize, usize),
    requests: &Requests,
) -> Duration {
    let (next, began) = (Rc::new(Cell::new(first)), now());
    let (local, mut tasks) = (LocalSet::new(), JoinSet::new());
    for place in 0..connections {
        let (next, requests) = (Rc::clone(&next), Rc::clone(requests));
        let task = async move {
            let mut connection = Connection::open(address, place).await;
            while next.get() < first + count {
                let number = next.replace(next.get() + 1);
                connection.ask(&requests(number)).await;
            }
        };
        tasks.spawn_local_on(task, &local);
    }
    local
        .run_until(async { while tasks.join_next().await.transpose().unwrap().is_some() {} })
        .await;
    now().duration_since(began)
}

/// Returns the time.
#[expect(clippy::disallowed_methods, reason = "a bench measures time")]
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// A kept connection.
pub(crate) struct Connection {
    stream: TcpStream,
    buffer: Vec<u8>,
    /// Length of the last answer's head.
    pub(crate) head_bytes: usize,
}

impl Connection {
    /// Connects, with others of another place from another address: no server takes as many from one.
    pub(crate) async fn open(address: SocketAddr, place: usize) -> Self {
        let socket = TcpSocket::new_v4().unwrap();
        let last = u8::try_from(2 + place % 8).unwrap();
        socket.bind(([127, 0, 0, last], 0).into()).unwrap();
        let stream = socket.connect(address).await.unwrap();
        stream.set_nodelay(true).unwrap();
        Self { stream, buffer: vec![0; READ_BYTES], head_bytes: 0 }
    }

    /// Asks, and reads the answer, which must be 200. Returns the time of its first byte.
    pub(crate) async fn ask(&mut self, request: &str) -> Instant {
        self.stream.write_all(request.as_bytes()).await.unwrap();
        let (mut filled, mut first) = (0, None);
        let (begun, length) = loop {
            filled += self.read(filled).await;
            first.get_or_insert_with(now);
            if let Some(head) = head_of(&self.buffer[..filled]) {
                break head;
            }
        };
        self.head_bytes = begun;
        let mut left = (begun + length).checked_sub(filled).unwrap();
        while left != 0 {
            left = left.checked_sub(self.read(0).await).unwrap();
        }
        first.unwrap()
    }

    async fn read(&mut self, from: usize) -> usize {
        let count = self.stream.read(&mut self.buffer[from..]).await.unwrap();
        let seen = String::from_utf8_lossy(&self.buffer[..from]);
        assert_ne!(count, 0, "the connection was closed: {seen}");
        count
    }
}

/// Returns the length of an answer's head and that of its body, once the head is whole.
fn head_of(bytes: &[u8]) -> Option<(usize, usize)> {
    let end = bytes.windows(4).position(|it| it == b"\r\n\r\n")? + 4;
    let head = String::from_utf8_lossy(&bytes[..end]).to_ascii_lowercase();
    assert!(head.starts_with("http/1.1 200 "), "{head}");
    let length = head.split("content-length:").nth(1).and_then(|it| it.split("\r\n").next());
    Some((end, length.unwrap().trim().parse().unwrap()))
}
