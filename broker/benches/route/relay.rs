//! A relay before a broker, which can answer late.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use http::header::{CONNECTION, CONTENT_LENGTH, HOST, TRANSFER_ENCODING};
use http::{HeaderMap, Uri};
use net::client::{Client, Request, Settings};
use net::shutdown::Shutdown;
use url::Url;

/// One of so many answers is late, by this.
const ONE_OF: u64 = 50;
const LATE: Duration = Duration::from_millis(500);

/// A relay. It ends with the runtime.
pub(crate) struct Relay {
    pub(crate) address: SocketAddr,
    is_late: Arc<AtomicBool>,
}

#[derive(Clone)]
struct Relaying {
    to: SocketAddr,
    client: Client,
    is_late: Arc<AtomicBool>,
    count: Arc<AtomicU64>,
}

impl Relay {
    pub(crate) async fn start(to: SocketAddr) -> Self {
        let is_late = Arc::new(AtomicBool::new(false));
        let client = Client::new(Settings { allow_private: true, ..Settings::default() });
        // Not all of them are late at the same time.
        let count = Arc::new(AtomicU64::new(u64::from(to.port())));
        let relaying = Relaying { to, client, is_late: Arc::clone(&is_late), count };
        let listener = net::server::bind(([127, 0, 0, 1], 0).into()).await.unwrap();
        let address = listener.local_addr().unwrap();
        let router = Router::new().fallback(relay).with_state(relaying);
        tokio::spawn(async move {
            let limits = net::server::Limits::default();
            net::server::serve(listener, router, limits, Shutdown::new()).await.unwrap();
        });
        Self { address, is_late }
    }

    /// Delays answers to searches from now on.
    pub(crate) fn delay(&self) {
        self.is_late.store(true, Ordering::Relaxed);
    }
}

async fn relay(State(relay): State<Relaying>, uri: Uri, headers: HeaderMap) -> Response {
    let target = uri.path_and_query().unwrap();
    let is_search = target.path() == "/api/search" && relay.is_late.load(Ordering::Relaxed);
    if is_search && relay.count.fetch_add(1, Ordering::Relaxed).is_multiple_of(ONE_OF) {
        tokio::time::sleep(LATE).await;
    }
    let url = Url::parse(&format!("http://{}{target}", relay.to)).unwrap();
    let of_hop = [CONNECTION, CONTENT_LENGTH, HOST, TRANSFER_ENCODING];
    let mut request = Request { keeps_redirect: true, ..Request::get(url) };
    for (name, value) in headers.iter().filter(|it| !of_hop.contains(it.0)) {
        request = request.header(name.clone(), value.clone());
    }
    let response = relay.client.send(request).await.unwrap();
    let (status, mut headers) = (response.status, response.headers.clone());
    of_hop.iter().for_each(|it| drop(headers.remove(it)));
    (status, headers, response.bytes(64 << 20).await.unwrap().to_vec()).into_response()
}
