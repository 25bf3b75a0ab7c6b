//! Tests of the Gopher client: against gophernicus, and against scripted servers.

use std::fs;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;
use std::time::Duration;

use net::client::Timeouts;
use net::error::{Error, Stage};
use net::fetch::{Bounds, Fault, FetchError};
use net::gopher::{Fetched, Kind, Menu, fetch};
use net::guard::Refusal;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use url::Url;

use crate::peer::Peer;
use crate::servers::gophernicus;

fn bounds() -> Bounds {
    let timeouts = Timeouts {
        connect: Duration::from_secs(10),
        header: Duration::from_secs(10),
        idle: Duration::from_secs(10),
        total: None,
    };
    Bounds { bytes_max: 100_000, timeouts, allow_private: true }
}

async fn get(address: SocketAddr, path: &str) -> Result<Fetched, FetchError> {
    fetch(&Url::parse(&format!("gopher://{address}/{path}")).unwrap(), &bounds()).await
}

#[tokio::test(flavor = "multi_thread")]
async fn gophernicus_is_read() {
    let peer = Peer::unpack("gophernicus");
    let root = peer.make_folder("root");
    peer.make_folder("root/sub");
    let noise: Vec<u8> = (0..70_000_u32).map(|it| (it * 7 % 251) as u8).collect();
    for (name, content) in [
        ("a.txt", &b"one\n.two\nlast"[..]),
        ("x.bin", &noise),
        ("sub/b.txt", b"below\n"),
        ("large.bin", &[7; 200_000]),
    ] {
        peer.write(&format!("root/{name}"), content);
        // The server shows only what everybody may read.
        fs::set_permissions(root.join(name), fs::Permissions::from_mode(0o644)).unwrap();
    }
    let address = gophernicus(Arc::new(peer)).await;

    let menu = get(address, "").await.unwrap();
    let menu = Menu::parse(&menu.bytes);
    assert_eq!(menu.left_out, 0);
    let urls: Vec<Url> = menu.items.iter().filter_map(|it| it.url()).collect();
    let named = |end: &str| urls.iter().find(|it| it.path().ends_with(end)).unwrap().clone();
    let text = fetch(&named("/a.txt"), &bounds()).await.unwrap();
    assert_eq!((text.kind, text.truncated), (Kind::Text, false));
    assert_eq!(text.bytes, b"one\r\n.two\r\nlast\r\n");
    let file = fetch(&named("/x.bin"), &bounds()).await.unwrap();
    assert!(file.bytes == noise && !file.truncated);
    let large = fetch(&named("/large.bin"), &bounds()).await.unwrap();
    assert_eq!((large.bytes.len(), large.truncated), (100_000, true));
    let below = fetch(&named("/sub/"), &bounds()).await.unwrap();
    let below = Menu::parse(&below.bytes).items.iter().filter_map(|it| it.url()).next_back();
    assert_eq!(fetch(&below.unwrap(), &bounds()).await.unwrap().bytes, b"below\r\n");

    for missing in ["0/none.txt", "1/none", "9/none.bin"] {
        let error = get(address, missing).await.unwrap_err();
        assert!(matches!(error.fault, Fault::Refused { .. }), "{error}");
        let named = format!("gopher://{address}/{missing}: the server says \"Error: File or dir");
        assert!(error.to_string().starts_with(&named), "{error}");
    }
}

/// A server that reads a request, sends `answer` and then, if `ends`, closes.
async fn scripted(answer: Vec<u8>, ends: bool) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut request = Vec::new();
            while !request.ends_with(b"\r\n") {
                request.push(stream.read_u8().await.unwrap());
            }
            // The client may close as soon as it has enough.
            let _ = stream.write_all(&answer).await;
            if !ends {
                tokio::spawn(async move {
                    std::future::pending::<()>().await;
                    drop(stream);
                });
            }
        }
    });
    address
}

#[tokio::test]
async fn an_answer_that_has_its_dot_needs_no_end_of_the_connection() {
    let address = scripted(b"a\r\n.\r\n".to_vec(), false).await;
    assert_eq!(get(address, "0/").await.unwrap().bytes, b"a\r\n");
    let address = scripted(b"a\r\n".to_vec(), true).await;
    assert_eq!(get(address, "0/").await.unwrap().bytes, b"a\r\n");
}

#[tokio::test]
async fn a_server_that_stops_is_given_up() {
    let address = scripted(b"a\r\n".to_vec(), false).await;
    let mut bounds = bounds();
    bounds.timeouts.idle = Duration::from_millis(50);
    let url = Url::parse(&format!("gopher://{address}/0")).unwrap();
    let error = fetch(&url, &bounds).await.unwrap_err();
    let is_idle = matches!(error.fault, Fault::Net(Error::Timeout { stage: Stage::Idle, .. }));
    assert!(is_idle, "{error}");
    bounds.timeouts.total = Some(Duration::from_millis(20));
    let error = fetch(&url, &bounds).await.unwrap_err();
    let is_total = matches!(error.fault, Fault::Net(Error::Timeout { stage: Stage::Total, .. }));
    assert!(is_total, "{error}");
}

#[tokio::test]
async fn the_guard_refuses_hosts_inside() {
    let address = scripted(Vec::new(), true).await;
    let bounds = Bounds { allow_private: false, ..bounds() };
    for host in ["127.0.0.1", "localhost", "0x7f.1", "[::1]", "[::ffff:127.0.0.1]"] {
        let url = Url::parse(&format!("gopher://{host}:{}/1", address.port())).unwrap();
        let error = fetch(&url, &bounds).await.unwrap_err();
        let refusal = Refusal::Loopback;
        assert!(
            matches!(&error.fault, Fault::Net(Error::Refused { refusal: it, .. }) if *it == refusal),
            "{error}"
        );
    }
    let error = get(address, "0a%0d%0ab").await.unwrap_err();
    assert!(matches!(error.fault, Fault::Url { .. }), "{error}");
}
