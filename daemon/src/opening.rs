//! Answers of a daemon while it opens its stored data, which can take minutes after a crash: the
//! daemon lives, but is not ready.

use std::io;
use std::os::fd::AsFd as _;
use std::time::Duration;

use axum::Router;
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use http::header::RETRY_AFTER;
use http::{HeaderValue, StatusCode};
use net::server::Limits;
use net::shutdown::Shutdown;
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use crate::Listener;
use crate::health::{self, Check, Readiness};

/// Time limit for answers that are still in progress when the daemon has opened its data.
const DRAIN: Duration = Duration::from_millis(200);

/// Waits for `opening`; until then answers `/healthz` and `/readyz` at `listeners`, and tells all
/// other clients to try again later. `service` is the daemon's kind (`gatherer`, `broker` …).
pub async fn meanwhile<T>(
    service: &'static str,
    listeners: impl IntoIterator<Item = &Listener>,
    opening: impl Future<Output = T>,
) -> T {
    let stop = Shutdown::new();
    let mut tasks = JoinSet::new();
    for Listener { listener, limits, .. } in listeners {
        match again(listener) {
            Ok(listener) => {
                let limits = Limits { drain: DRAIN, ..limits.clone() };
                tasks.spawn(net::server::serve(listener, routes(service), limits, stop.clone()));
            }
            Err(error) => tracing::debug!(%error, "no answers until the daemon has opened"),
        }
    }
    let opened = opening.await;
    stop.start();
    while tasks.join_next().await.is_some() {}
    opened
}

/// Duplicates the socket: connections that arrive between two servers wait in the socket's queue
/// for the daemon itself.
fn again(listener: &TcpListener) -> io::Result<TcpListener> {
    let socket = listener.as_fd().try_clone_to_owned()?;
    TcpListener::from_std(std::net::TcpListener::from(socket))
}

fn routes(service: &'static str) -> Router {
    let message = "the daemon opens its stored data, which may need repair first: its log says \
                   how far it is";
    let ready = Readiness::new([Check::new("is-open", message, Some("it is starting".to_owned()))]);
    Router::new()
        .route("/healthz", get(move || async move { health::healthz(service) }))
        .route("/readyz", get(move || std::future::ready(ready.for_anybody().respond())))
        .fallback(later)
}

async fn later() -> Response {
    let retry = [(RETRY_AFTER, HeaderValue::from_static("5"))];
    (StatusCode::SERVICE_UNAVAILABLE, retry, "starting: come again in some seconds\n")
        .into_response()
}

#[cfg(test)]
mod tests {
    use net::client::{Client, Request, Settings};
    use tokio::sync::oneshot;
    use url::Url;

    use super::*;
    use crate::Control;

    #[tokio::test]
    async fn an_opening_daemon_lives_and_is_not_ready_and_then_serves() {
        let any = "127.0.0.1:0".parse().unwrap();
        let settings = crate::Settings::new(any, any, "/none");
        let control = Control::open(&settings).unwrap();
        let listener = Listener::public(&settings, any, &control).await.unwrap();
        let base = format!("http://{}/", listener.address());
        let client = Client::new(Settings { allow_private: true, ..Settings::default() });
        let ask = async |path: &str| {
            let url = Url::parse(&base).unwrap().join(path).unwrap();
            let response = client.send(Request::get(url)).await.unwrap();
            let status = response.status.as_u16();
            (status, String::from_utf8(response.bytes(1 << 16).await.unwrap().to_vec()).unwrap())
        };
        let (opened, opening) = oneshot::channel();
        let asking = async {
            let (status, body) = ask("healthz").await;
            assert!(status == 200 && body.contains(r#""status":"ok""#), "{status} {body}");
            let (status, body) = ask("readyz").await;
            assert!(status == 503 && body.contains(r#""name":"is-open""#), "{status} {body}");
            assert_eq!(ask("feed").await.0, 503);
            opened.send(7).unwrap();
        };
        let (opened, ()) = tokio::join!(meanwhile("broker", [&listener], opening), asking);
        assert_eq!(opened, Ok(7));
        let router = Router::new().route("/feed", get(|| async { "the feed" }));
        let stop = Shutdown::new();
        let serving = listener.serve(router, DRAIN, stop.clone());
        let asking = async {
            assert_eq!(ask("feed").await, (200, "the feed".to_owned()));
            stop.start();
        };
        let (served, ()) = tokio::join!(serving, asking);
        served.unwrap();
    }
}
