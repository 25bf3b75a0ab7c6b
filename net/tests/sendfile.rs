//! Tests of files that the kernel sends: every byte arrives, in order, between other answers.

#![allow(clippy::unwrap_used, reason = "tests may panic")]

use std::convert::Infallible;
use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::BodyExt;
use net::body::{self, Body};
use net::sendfile::{Memory, MemoryFile};
use net::server::{Limits, bind, serve};
use net::shutdown::Shutdown;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::task::JoinSet;
use tokio::time::timeout;
use tower::service_fn;

const SOON: Duration = Duration::from_secs(20);

/// Returns bytes in which no two aligned words are equal.
fn content(len: usize) -> Vec<u8> {
    let number = |n: usize| (n as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes();
    (0..len.div_ceil(8)).flat_map(number).take(len).collect()
}

fn file(len: usize) -> MemoryFile {
    let mut pieces: Vec<Bytes> =
        content(len).chunks(100_000).rev().map(|it| it.to_vec().into()).collect();
    MemoryFile::of(&Memory::default(), move || Ok(pieces.pop())).unwrap()
}

/// Answers `/file/LEN` with a file that the kernel sends, other paths with the path.
async fn answer(request: Request<Body>) -> Result<Response<Body>, Infallible> {
    let path = request.uri().path().to_owned();
    let mut response = Response::new(body::full(path.clone()));
    if let Some(len) = path.strip_prefix("/file/") {
        file(len.parse().unwrap()).answer(&mut response);
        response.headers_mut().insert("content-length", len.parse().unwrap());
    }
    if request.method() == "HEAD" {
        *response.body_mut() = body::empty();
    }
    Ok(response)
}

async fn server() -> (SocketAddr, JoinSet<()>) {
    let listener = bind(SocketAddr::from(([127, 0, 0, 1], 0))).await.unwrap();
    server_at(listener, Limits::default())
}

fn server_at(listener: TcpListener, limits: Limits) -> (SocketAddr, JoinSet<()>) {
    let address = listener.local_addr().unwrap();
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        serve(listener, service_fn(answer), limits, Shutdown::new()).await.unwrap();
    });
    (address, tasks)
}

fn request(method: &str, path: &str, connection: &str) -> String {
    format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: {connection}\r\n\r\n")
}

/// Sends pipelined requests and returns the bodies of the answers.
async fn bodies(stream: &mut TcpStream, requests: &[(&str, &str)]) -> Vec<Vec<u8>> {
    let mut all = String::new();
    for (at, (method, path)) in requests.iter().enumerate() {
        let last = at + 1 == requests.len();
        all.push_str(&request(method, path, if last { "close" } else { "keep-alive" }));
    }
    stream.write_all(all.as_bytes()).await.unwrap();
    let mut answers = Vec::new();
    timeout(SOON, stream.read_to_end(&mut answers)).await.unwrap().unwrap();
    let mut rest = answers.as_slice();
    let mut found = Vec::new();
    for (method, _) in requests {
        let end = rest.windows(4).position(|it| it == b"\r\n\r\n").unwrap() + 4;
        let head = String::from_utf8_lossy(&rest[..end]).to_lowercase();
        let len = head.lines().find_map(|it| it.strip_prefix("content-length: ")).unwrap();
        let len: usize = if *method == "HEAD" { 0 } else { len.parse().unwrap() };
        found.push(rest[end..end + len].to_vec());
        rest = &rest[end + len..];
    }
    assert!(rest.is_empty(), "{} bytes too many", rest.len());
    found
}

#[tokio::test]
async fn files_and_other_answers_follow_each_other_on_one_connection() {
    let (address, _tasks) = server().await;
    let mut stream = TcpStream::connect(address).await.unwrap();
    let asked = [
        ("GET", "/file/3000001"),
        ("GET", "/between"),
        ("HEAD", "/file/70000"),
        ("GET", "/file/0"),
        ("GET", "/file/1"),
        ("GET", "/file/5000000"),
        ("GET", "/last"),
    ];
    let found = bodies(&mut stream, &asked).await;
    for ((method, path), body) in asked.iter().zip(found) {
        let expected = match (*method, path.strip_prefix("/file/")) {
            ("HEAD", _) => Vec::new(),
            (_, Some(len)) => content(len.parse().unwrap()),
            (_, None) => path.as_bytes().to_vec(),
        };
        assert!(body == expected, "{method} {path}: {} bytes", body.len());
    }
}

#[tokio::test]
async fn a_client_that_leaves_in_the_middle_harms_nobody() {
    let (address, _tasks) = server().await;
    for _ in 0..20 {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(request("GET", "/file/9000000", "close").as_bytes()).await.unwrap();
        let mut some = [0; 10_000];
        stream.read_exact(&mut some).await.unwrap();
    }
    let mut stream = TcpStream::connect(address).await.unwrap();
    let found = bodies(&mut stream, &[("GET", "/file/9000000")]).await;
    assert!(found[0] == content(9_000_000));
}

#[tokio::test]
async fn a_reader_that_is_slow_is_not_idle() {
    const LEN: usize = 1 << 20;
    /// Size of the system's buffers at either end.
    const ROOM_BYTES: u32 = 64 << 10;
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_send_buffer_size(ROOM_BYTES).unwrap();
    socket.bind(SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
    let idle_timeout = Duration::from_millis(100);
    let limits = Limits { idle_timeout, ..Limits::default() };
    let (address, _tasks) = server_at(socket.listen(1).unwrap(), limits);
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(ROOM_BYTES).unwrap();
    let mut stream = socket.connect(address).await.unwrap();
    let path = format!("/file/{LEN}");
    stream.write_all(request("GET", &path, "keep-alive").as_bytes()).await.unwrap();
    let mut piece = vec![0; 64 << 10];
    for taken in 0..LEN / piece.len() {
        tokio::time::sleep(idle_timeout / 4).await;
        let read = timeout(SOON, stream.read_exact(&mut piece)).await.unwrap();
        assert!(read.is_ok(), "cut off after {taken} pieces: {read:?}");
    }
    // From here on it is idle.
    let rest = async { while stream.read(&mut piece).await.unwrap() != 0 {} };
    timeout(SOON, rest).await.expect("it is closed");
}

#[tokio::test]
async fn the_body_can_be_read_without_the_server() {
    let response = answer(Request::new(body::empty()).map(|it: Body| it)).await.unwrap();
    assert_eq!(response.into_body().collect().await.unwrap().to_bytes(), "/");
    let mut response = Response::new(body::empty());
    file(300_000).answer(&mut response);
    assert!(response.into_body().collect().await.unwrap().to_bytes() == content(300_000));
}

#[test]
fn a_file_is_counted_once_while_it_lives() {
    let memory = Memory::default();
    let mut pieces = vec![Bytes::from_static(b"two"), Bytes::from_static(b"one")];
    let file = MemoryFile::of(&memory, || Ok(pieces.pop())).unwrap();
    let mut response = Response::new(body::empty());
    file.answer(&mut response);
    drop(file.clone());
    drop(file);
    assert_eq!(memory.bytes(), 6, "the answer holds it");
    drop(response);
    assert_eq!(memory.bytes(), 0);
}

#[test]
fn a_failed_read_makes_no_file() {
    let mut pieces =
        vec![Err(std::io::Error::other("damaged")), Ok(Some(Bytes::from_static(b"x")))];
    let memory = Memory::default();
    let error = MemoryFile::of(&memory, move || pieces.pop().unwrap()).unwrap_err();
    assert_eq!((error.to_string(), memory.bytes()), ("damaged".to_owned(), 0));
}
