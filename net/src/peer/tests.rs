use rustls::RootCertStore;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use super::*;
use crate::error::Retry;

const SHORT: Duration = Duration::from_millis(300);

fn identity(seed: u8) -> Arc<Identity> {
    Arc::new(Identity::of(&[seed; 32]).unwrap())
}

fn endpoint(seed: u8) -> Endpoint {
    Endpoint::new(identity(seed)).unwrap()
}

/// Returns an endpoint that waits for a short time only.
fn hasty(seed: u8) -> Endpoint {
    Endpoint { patience: SHORT, ..endpoint(seed) }
}

async fn listener() -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    (listener, address)
}

/// Connects the endpoint of seed 1 to that of seed 2; returns the accepted and the connecting end's
/// result.
async fn meet(expected: Option<[u8; 32]>) -> (Result<Stream, Error>, Result<Stream, Error>) {
    let (listener, address) = listener().await;
    let (accepting, connecting) = (endpoint(2), endpoint(1));
    tokio::join!(
        async {
            let (tcp, _) = listener.accept().await.unwrap();
            accepting.accept(tcp).await
        },
        connecting.connect(&address, expected),
    )
}

/// Connects and calls `doing` with the socket; returns the error of the accepting end.
async fn check_stranger<F>(with: Endpoint, doing: impl FnOnce(TcpStream) -> F) -> Error
where
    F: Future<Output = ()>,
{
    let (listener, address) = listener().await;
    let stranger = async {
        let tcp = TcpStream::connect(&address).await.unwrap();
        doing(tcp).await;
    };
    let accepting = async {
        let (tcp, _) = listener.accept().await.unwrap();
        with.accept(tcp).await.unwrap_err()
    };
    tokio::pin!(stranger);
    tokio::select! {
        biased;
        error = accepting => error,
        () = async { stranger.await; std::future::pending().await } => unreachable!(),
    }
}

#[tokio::test]
async fn each_end_learns_the_others_key() {
    for expected in [Some(identity(2).public()), None] {
        let (accepted, connected) = meet(expected).await;
        let (mut accepted, mut connected) = (accepted.unwrap(), connected.unwrap());
        assert_eq!(accepted.key(), identity(1).public());
        assert_eq!(connected.key(), identity(2).public());
        assert!(connected.is_dialed() && !accepted.is_dialed());
        for label in ["EXPORTER-a", "EXPORTER-b"] {
            assert_eq!(accepted.secret(label).unwrap(), connected.secret(label).unwrap());
        }
        assert_ne!(accepted.secret("EXPORTER-a").unwrap(), accepted.secret("EXPORTER-b").unwrap());
        let sent = vec![7; 300_000];
        let mut came = vec![0; sent.len()];
        let (_, ()) =
            tokio::join!(async { accepted.read_exact(&mut came).await.unwrap() }, async {
                connected.write_all(&sent).await.unwrap();
                connected.flush().await.unwrap();
            });
        assert_eq!(came, sent);
    }
}

#[tokio::test]
async fn a_key_that_is_not_expected_is_refused_at_both_ends() {
    let (accepted, connected) = meet(Some(identity(3).public())).await;
    let error = connected.unwrap_err();
    let Error::WrongKey { expected, found, .. } = &error else { panic!("{error}") };
    assert_eq!((*expected, *found), (identity(3).public(), identity(2).public()));
    assert!(error.to_string().contains(identity(2).key()), "{error}");
    let error = accepted.unwrap_err();
    assert!(matches!(error, Error::Rejected { .. }), "{error}");
}

#[tokio::test]
async fn each_end_knows_the_address_of_the_other() {
    let (listener, address) = listener().await;
    let (connecting, accepting) = (endpoint(1), endpoint(2));
    let (accepted, connected) = tokio::join!(
        async {
            let (tcp, _) = listener.accept().await.unwrap();
            accepting.accept(tcp).await.unwrap()
        },
        connecting.connect(&address, None),
    );
    assert!(accepted.address().ip().is_loopback());
    assert_eq!(connected.unwrap().address().to_string(), address);
}

#[tokio::test]
async fn a_peer_without_a_key_is_refused() {
    let error = check_stranger(endpoint(2), |tcp| async {
        let mut config = ClientConfig::builder_with_provider(provider())
            .with_protocol_versions(&[&TLS13])
            .unwrap()
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(ServerKeyVerifier::new(None)))
            .with_no_client_auth();
        config.alpn_protocols = vec![PROTOCOL.to_vec()];
        let connector = TlsConnector::from(Arc::new(config));
        let name = ServerName::from(IpAddr::from([0; 4]));
        let _ = connector.connect(name, tcp).await;
    });
    let error = error.await;
    assert!(matches!(error, Error::NoKey { .. }), "{error}");
}

#[tokio::test]
async fn a_browser_is_refused() {
    let error = check_stranger(endpoint(2), |tcp| async {
        let config = ClientConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(RootCertStore::empty())
            .with_no_client_auth();
        let connector = TlsConnector::from(Arc::new(config));
        let name = ServerName::try_from("example.org").unwrap();
        assert!(connector.connect(name, tcp).await.is_err());
    });
    let error = error.await;
    assert!(matches!(error, Error::NoKey { .. }), "{error}");
}

#[tokio::test]
async fn another_protocol_is_refused() {
    let (listener, address) = listener().await;
    let mut other = endpoint(2);
    let mut config = ServerConfig::clone(&other.accepting);
    config.alpn_protocols = vec![b"harvest-replicator/2".to_vec()];
    other.accepting = Arc::new(config);
    let connecting = endpoint(1);
    let (accepted, connected) = tokio::join!(
        async {
            let (tcp, _) = listener.accept().await.unwrap();
            other.accept(tcp).await.unwrap_err()
        },
        connecting.connect(&address, None),
    );
    assert!(matches!(accepted, Error::Protocol { .. }), "{accepted}");
    let error = connected.unwrap_err();
    assert!(matches!(error, Error::Protocol { .. }), "{error}");
}

#[tokio::test]
async fn a_peer_that_does_not_speak_tls_is_refused() {
    for bytes in [&b"GET / HTTP/1.1\r\n\r\n"[..], &[0; 400], &[0x16, 3, 1, 0, 2, 1, 0]] {
        let error = check_stranger(endpoint(2), |mut tcp| async move {
            tcp.write_all(bytes).await.unwrap();
            tcp.shutdown().await.unwrap();
            let _ = tcp.read_to_end(&mut Vec::new()).await;
        });
        let error = error.await;
        assert!(matches!(error, Error::Handshake { .. }), "{error}");
        assert_ne!(error.retry(), Retry::No);
    }
}

#[tokio::test]
async fn a_silent_or_trickling_peer_is_given_up() {
    let error = check_stranger(hasty(2), |tcp| async move {
        let _tcp = tcp;
        std::future::pending::<()>().await;
    });
    let error = error.await;
    assert!(matches!(error, Error::Net(crate::Error::Timeout { after: SHORT, .. })), "{error}");
    // The beginning of a long record, byte by byte: the peer always sends, and never completes it.
    let error = check_stranger(hasty(2), |mut tcp| async move {
        for byte in [0x16, 3, 1, 0x20, 0, 1].into_iter().chain(std::iter::repeat(0)) {
            tcp.write_all(&[byte]).await.unwrap();
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    });
    let error = error.await;
    assert!(matches!(error, Error::Net(crate::Error::Timeout { after: SHORT, .. })), "{error}");
}

#[tokio::test]
async fn a_peer_that_does_not_answer_is_given_up() {
    let (listener, address) = listener().await;
    let error = hasty(1).connect(&address, None).await.unwrap_err();
    assert!(matches!(error, Error::Net(crate::Error::Timeout { after: SHORT, .. })), "{error}");
    drop(listener);
    let error = endpoint(1).connect(&address, None).await.unwrap_err();
    assert!(matches!(error, Error::Net(crate::Error::Connect { .. })), "{error}");
    let error = endpoint(1).connect("no port", None).await.unwrap_err();
    assert!(matches!(error, Error::Net(crate::Error::Resolve { .. })), "{error}");
}

#[tokio::test]
async fn a_daemon_does_not_connect_to_itself() {
    let (listener, address) = listener().await;
    let endpoint = endpoint(2);
    let (accepted, connected) = tokio::join!(
        async {
            let (tcp, _) = listener.accept().await.unwrap();
            endpoint.accept(tcp).await
        },
        endpoint.connect(&address, None),
    );
    for error in [accepted.unwrap_err(), connected.unwrap_err()] {
        assert!(matches!(error, Error::Ourselves { .. }), "{error}");
        assert_eq!(error.retry(), Retry::No);
    }
}

#[test]
fn a_key_is_read_only_from_its_exact_encoding() {
    let key = identity(1).public();
    let right = [&[0x30, 0x2a, 0x30, 5, 6, 3, 0x2b, 0x65, 0x70, 3, 0x21, 0][..], &key].concat();
    assert_eq!(keys::of_spki(&right), Some(key));
    for at in 0..12 {
        let mut wrong = right.clone();
        wrong[at] ^= 1;
        assert_eq!(keys::of_spki(&wrong), None, "{at}");
    }
    assert_eq!(keys::of_spki(&right[..43]), None);
    assert_eq!(keys::of_spki(&[&right[..], &[0]].concat()), None);
}
