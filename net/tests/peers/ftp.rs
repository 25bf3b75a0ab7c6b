//! Tests of the FTP client: against vsftpd and pyftpdlib.

use std::net::SocketAddr;

use net::fetch::{Bounds, Fault, Login};
use net::ftp::{Client, EntryKind, Folder, Listing, Settings};
use url::Url;

use crate::peer::der;
use crate::servers::{Pyftpdlib, Vsftpd};

pub(crate) fn settings() -> Settings {
    let bounds = Bounds { allow_private: true, bytes_max: 100_000, ..Bounds::default() };
    Settings { bounds, ..Settings::default() }
}

pub(crate) fn url(address: SocketAddr, path: &str) -> Url {
    Url::parse(&format!("ftp://localhost:{}/{path}", address.port())).unwrap()
}

/// The files that both servers have.
fn files() -> Vec<(&'static str, Vec<u8>)> {
    let noise = (0..70_000_u32).map(|it| u8::try_from(it * 7 % 251).unwrap()).collect();
    vec![
        ("a.txt", b"one\r\n.two\nlast".to_vec()),
        ("b.bin", noise),
        ("large.bin", vec![7; 200_000]),
        ("sub/c d.txt", b"below".to_vec()),
        ("sub/-R [1]/e.txt", b"odd".to_vec()),
    ]
}

/// Returns the names in a folder with sizes, folders with a slash; in order.
fn names(folder: &Folder) -> Vec<String> {
    let shown = folder.entries.iter().map(|it| {
        assert!(it.modified.is_some(), "{it:?}");
        let name = String::from_utf8_lossy(&it.name);
        match it.kind {
            EntryKind::Folder => format!("{name}/"),
            _ => format!("{name} {}", it.size.unwrap()),
        }
    });
    let mut shown: Vec<String> = shown.collect();
    shown.sort();
    shown
}

fn only(listing: &Listing) -> Vec<String> {
    assert_eq!((listing.folders.len(), listing.left_out), (1, 0), "{listing:?}");
    assert!(!listing.truncated);
    names(&listing.folders[0])
}

/// Lists and fetches what both servers have.
async fn check(client: &Client, address: SocketAddr) {
    let at = |path: &str| url(address, path);
    let root = client.list(&at("")).await.unwrap();
    assert_eq!(only(&root), ["a.txt 14", "b.bin 70000", "large.bin 200000", "sub/"]);
    let sub = client.list(&at("sub/")).await.unwrap();
    assert_eq!(only(&sub), ["-R [1]/", "c d.txt 5"]);
    let odd = client.list(&at("sub/-R%20%5B1%5D/")).await.unwrap();
    assert_eq!(only(&odd), ["e.txt 3"]);
    for (name, content) in files() {
        let fetched = client.fetch(&at(&name.replace(' ', "%20"))).await.unwrap();
        let is_large = content.len() == 200_000;
        assert_eq!(fetched.truncated, is_large, "{name}");
        assert!(content.starts_with(&fetched.bytes), "{name}");
        assert_eq!(fetched.bytes.len(), if is_large { 100_000 } else { content.len() });
        let (mut file, mut whole) =
            (client.open(&at(&name.replace(' ', "%20"))).await.unwrap(), Vec::new());
        while let Some(piece) = file.chunk().await.unwrap() {
            whole.extend_from_slice(&piece);
        }
        assert!(whole == content, "{name}");
    }
    let facts = client.facts(&at("a.txt")).await.unwrap();
    assert_eq!(facts.size, Some(14));
    let listed = root.folders[0].entries.iter().find(|it| it.name == b"a.txt").unwrap();
    let (exact, listed) = (facts.modified.unwrap(), listed.modified.unwrap());
    let apart = exact.seconds - listed.seconds;
    assert!((0..i64::from(listed.precision_seconds)).contains(&apart), "{exact:?} {listed:?}");
    let error = client.fetch(&at("none.txt")).await.unwrap_err();
    assert!(matches!(error.fault, Fault::Refused { .. }), "{error}");
    let port = address.port();
    assert!(error.to_string().starts_with(&format!("ftp://localhost:{port}/none.txt: ")));
    let error = client.facts(&at("sub")).await.unwrap_err();
    assert!(matches!(error.fault, Fault::Refused { .. }), "{error}");
    let error = client.open(&at("none.txt")).await.unwrap_err();
    assert!(matches!(error.fault, Fault::Refused { .. }), "{error}");
    let error = client.list(&at("none/")).await.unwrap_err();
    assert!(matches!(error.fault, Fault::Refused { .. }), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn vsftpd_is_read_and_lists_trees() {
    let server = Vsftpd::start(false, &files());
    let (client, address) = (Client::new(settings()), server.running.address);
    check(&client, address).await;
    let tree = client.list_tree(&url(address, "")).await.unwrap();
    let shown = |it: &Folder| (String::from_utf8_lossy(&it.path).into_owned(), names(it).len());
    let folders: Vec<(String, usize)> = tree.folders.iter().map(shown).collect();
    let expected = [(String::new(), 4), ("sub".to_owned(), 2), ("sub/-R [1]".to_owned(), 1)];
    assert_eq!((folders.as_slice(), tree.left_out), (&expected[..], 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn pyftpdlib_is_read_and_lists_no_trees() {
    let server = Pyftpdlib::start(false, &files());
    let (client, address) = (Client::new(settings()), server.running.address);
    check(&client, address).await;
    let error = client.list_tree(&url(address, "")).await.unwrap_err();
    assert!(matches!(error.fault, Fault::Refused { .. }), "{error}");

    let login =
        |password: &str| Some(Login { name: "reader".to_owned(), password: password.to_owned() });
    let named = Client::new(Settings { login: login("secret"), ..settings() });
    assert_eq!(named.fetch(&url(address, "sub/c%20d.txt")).await.unwrap().bytes, b"below");
    let wrong = Client::new(Settings { login: login("guess"), ..settings() });
    let error = wrong.fetch(&url(address, "a.txt")).await.unwrap_err();
    assert!(matches!(error.fault, Fault::Login { .. }), "{error}");
    let mut by_url = url(address, "a.txt");
    by_url.set_username("reader").unwrap();
    by_url.set_password(Some("guess")).unwrap();
    let error = client.fetch(&by_url).await.unwrap_err();
    assert!(matches!(error.fault, Fault::Login { .. }), "{error}");
    assert!(!error.to_string().contains("guess"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn vsftpd_is_read_over_tls() {
    let server = Vsftpd::start(true, &files());
    check_secure(server.running.address, &server.authority).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn pyftpdlib_is_read_over_tls() {
    let server = Pyftpdlib::start(true, &files());
    check_secure(server.running.address, &server.authority).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn vsftpd_is_read_over_tls_from_the_first_byte_on() {
    let server = Vsftpd::start_implicit(&files());
    let port = server.running.address.port();
    let at = |path: &str| Url::parse(&format!("ftps://localhost:{port}/{path}")).unwrap();
    let extra_roots = vec![der(&server.authority)];
    let client = Client::new(Settings { extra_roots, ..settings() });
    let sub = client.list(&at("sub/")).await.unwrap();
    assert_eq!(only(&sub), ["-R [1]/", "c d.txt 5"]);
    for (name, content) in files().iter().filter(|it| it.1.len() < 200_000) {
        let fetched = client.fetch(&at(&name.replace(' ', "%20"))).await.unwrap();
        assert!(fetched.bytes == *content, "{name}");
    }
    let error = Client::new(settings()).list(&at("")).await.unwrap_err();
    assert!(matches!(error.fault, Fault::Net(net::Error::Tls { .. })), "{error}");
}

async fn check_secure(address: SocketAddr, authority: &str) {
    let plain = Client::new(settings()).list(&url(address, "")).await.unwrap_err();
    assert!(matches!(plain.fault, Fault::Login { .. } | Fault::Refused { .. }), "{plain}");
    let extra_roots = vec![der(authority)];
    check(&Client::new(Settings { start_tls: true, extra_roots, ..settings() }), address).await;
    let untrusted = Client::new(Settings { start_tls: true, ..settings() });
    let error = untrusted.list(&url(address, "")).await.unwrap_err();
    assert!(matches!(error.fault, Fault::Net(net::Error::Tls { .. })), "{error}");
}
