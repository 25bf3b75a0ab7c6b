//! A name that leads to a public address first and then to this machine (DNS rebinding): no request follows
//! it there.

use std::net::SocketAddr;
use std::process::Command;

use crate::common::{Site, answer, counted, raw};
use http::{Request, Response};
use net::body::{self, Body};
use net::client::{self, Client, Proxy};
use net::server::{Limits, bind, serve};
use net::shutdown::Shutdown;
use tower::service_fn;
use url::Url;

/// Variable with the file of names of the child process.
const HOSTS: &str = "HARVEST_CACHE_HOSTS";

/// The name, and an address of the public internet, which the child's own network has.
const NAME: &str = "changing.example.org";
const PUBLIC: [u8; 4] = [198, 41, 0, 4];

fn page(_: Request<Body>) -> Response<Body> {
    answer(200, &[("cache-control", "no-store"), ("connection", "close")], body::full("public"))
}

/// Runs in a network and with names of its own; does nothing in a usual run.
#[tokio::test]
async fn in_a_network_of_its_own() {
    let Ok(hosts) = std::env::var(HOSTS) else { return };
    let lead = |address: &str| std::fs::write(&hosts, format!("{address} {NAME}\n")).unwrap();
    let secret = Site::with(
        |_, before| counted(&[], before),
        |it| (it.allow_private, it.connect_ports) = (false, vec![1..=u16::MAX]),
    )
    .await;
    let port = secret.origin.port().unwrap();
    let listener = bind(SocketAddr::from((PUBLIC, port))).await.unwrap();
    let (stop, service) =
        (Shutdown::new(), service_fn(async |it| Ok::<_, std::convert::Infallible>(page(it))));
    let serving = tokio::spawn(serve(listener, service, Limits::default(), stop.clone()));
    let client = Client::new(client::Settings { allow_private: true, ..Default::default() });
    let proxy = Url::parse(&format!("http://{}/", secret.cache)).unwrap();
    let url = Url::parse(&format!("http://{NAME}:{port}/")).unwrap();
    let get = async || {
        let proxy = Some(Proxy::new(proxy.clone(), None).unwrap());
        let came = client.send(client::Request::get(url.clone()).proxy(proxy)).await.unwrap();
        (
            came.status.as_u16(),
            String::from_utf8(came.bytes(10_000).await.unwrap().to_vec()).unwrap(),
        )
    };
    lead("198.41.0.4");
    assert_eq!(get().await, (200, "public".to_owned()));
    // The name leads elsewhere now, and the address that it had before to nobody.
    lead("127.0.0.1");
    stop.start();
    serving.await.unwrap().unwrap();
    let mut seen = Vec::new();
    while seen.last().is_none_or(|it: &(u16, String)| it.0 != 403) {
        seen.push(get().await);
        assert!(seen.len() < 20, "{seen:?}");
    }
    let refused = &seen.last().unwrap().1;
    assert!(refused.contains("127.0.0.1, an address of this machine itself"), "{seen:?}");
    let to = format!("{NAME}:{port}");
    let tunnel = format!("CONNECT {to} HTTP/1.1\r\nHost: {to}\r\nConnection: close\r\n\r\n");
    let refused = raw(&secret, &tunnel).await;
    assert!(refused.starts_with("HTTP/1.1 403 ") && refused.contains("this machine"), "{refused}");
    assert_eq!(secret.seen().len(), 0, "it was asked for something");
}

#[test]
fn a_name_that_turns_to_this_machine_is_not_followed() {
    let folder = tempfile::tempdir().unwrap();
    let hosts = folder.path().join("hosts");
    std::fs::write(&hosts, "").unwrap();
    let script = "ip link set lo up && ip addr add 198.41.0.4/32 dev lo && \
                  mount --bind \"$HARVEST_CACHE_HOSTS\" /etc/hosts && \
                  exec \"$0\" rebinding::in_a_network_of_its_own --exact";
    let output = Command::new("unshare")
        .args(["-rmn", "sh", "-c", script])
        .arg(std::env::current_exe().unwrap())
        .env(HOSTS, &hosts)
        .output()
        .expect("it needs unshare and ip: apt-get install util-linux iproute2");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains("1 passed"), "{text} {output:?}");
}
