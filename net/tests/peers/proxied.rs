//! Tests of the HTTP client behind tinyproxy.

use std::convert::Infallible;
use std::net::SocketAddr;

use http::{Response, StatusCode};
use net::Error;
use net::body::{self, Body};
use net::client::{Client, Request, Settings};
use net::server::{Limits, bind, serve};
use net::shutdown::Shutdown;
use net::tls::{Server, ServerFiles};
use tower::service_fn;
use url::Url;

use crate::certificates::Authority;
use crate::peer::{der, free_port};
use crate::servers::Tinyproxy;

/// Starts a host that says what it was asked for; returns its port.
async fn host(tls: Option<Server>, shutdown: &Shutdown) -> u16 {
    let listener = bind(SocketAddr::from(([127, 0, 0, 1], 0))).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let limits = Limits { tls, ..Limits::default() };
    tokio::spawn(serve(listener, service_fn(answer), limits, shutdown.clone()));
    port
}

async fn answer(request: http::Request<Body>) -> Result<Response<Body>, Infallible> {
    let secret = request.headers().get("proxy-authorization");
    let text = format!("{} {} {secret:?}", request.method(), request.uri());
    Ok(Response::new(body::full(text)))
}

#[tokio::test]
async fn tinyproxy_passes_on_both_schemes_for_who_knows_its_password() {
    let (shutdown, authority) = (Shutdown::new(), Authority::new("of the union"));
    let folder = tempfile::tempdir().unwrap();
    let (certificate, key) = authority.write(folder.path(), "server", &["localhost"]);
    let tls = Server::open(ServerFiles { certificate, key, client_ca: None }).unwrap();
    let (plain, secure) = (host(None, &shutdown).await, host(Some(tls), &shutdown).await);
    let peer = Tinyproxy::start(secure);
    let extra_roots = vec![der(&authority.pem)];
    let settings = Settings { allow_private: true, extra_roots, ..Settings::default() };
    let client = Client::new(settings);
    let get =
        |url: &str, login| Request::get(Url::parse(url).unwrap()).proxy(Some(peer.proxy(login)));
    let status_of = |it| match it {
        Err(Error::Proxy { status, .. }) => status.as_u16(),
        it => panic!("{it:?}"),
    };
    let known = Some(Tinyproxy::LOGIN);
    let open = format!("http://localhost:{plain}/a?b");
    let closed = format!("https://localhost:{secure}/c");
    for (url, expected) in [(&open, "GET /a?b None"), (&closed, "GET /c None")] {
        for _ in 0..2 {
            let answer = client.send(get(url, known)).await.unwrap();
            assert_eq!((answer.status, answer.address()), (StatusCode::OK, None));
            assert_eq!(answer.bytes(99).await.unwrap(), expected);
        }
        assert_eq!(status_of(client.send(get(url, None)).await), 407);
    }
    // Of a wrong password it says 401; of http nobody can tell this from an answer of the host.
    let guess = Some(["harvest", "guess"]);
    assert_eq!(status_of(client.send(get(&closed, guess)).await), 401);
    let unknown = format!("https://localhost:{}/", free_port());
    assert_eq!(status_of(client.send(get(&unknown, known)).await), 403);
    let asked = peer.requests();
    let count = |text: &str| asked.iter().filter(|it| *it == text).count();
    assert_eq!(count(&format!("GET {open}")), 3, "{asked:?}");
    // The tunnel is kept; two others were refused.
    assert_eq!(count(&format!("CONNECT localhost:{secure}")), 3, "{asked:?}");
    shutdown.start();
}
