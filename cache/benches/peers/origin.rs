//! The origin of TR Figure 9: it answers late, as far hosts do, some very late.

use std::convert::Infallible;
use std::time::Duration;

use http::{HeaderValue, Request, Response, header};
use net::body::{self, Body};
use net::server::{Limits, bind, serve as serve_at};
use net::shutdown::Shutdown;
use tower::service_fn;
use xxhash_rust::xxh3::xxh3_64;

/// First argument of its process.
pub(crate) const ROLE: &str = "origin";
/// Median of its delays, in milliseconds; their logarithms are normal, with this deviation.
const DELAY_MS: f64 = 10.0;
const DEVIATION: f64 = 1.2;
/// Median of the lengths of its objects, in bytes; their logarithms are normal, with this deviation.
const BYTES: f64 = 4_000.0;
const BYTES_DEVIATION: f64 = 1.5;
const BYTES_MAX: f64 = 1e6;

/// Runs as its process, until it is killed.
pub(crate) fn serve() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let listener = bind(([127, 0, 0, 1], 0).into()).await.unwrap();
        println!("{}", listener.local_addr().unwrap());
        let limits = Limits { peer_connections_max: 1_000, ..Limits::default() };
        serve_at(listener, service_fn(answer), limits, Shutdown::new()).await.unwrap();
    });
}

async fn answer(request: Request<Body>) -> Result<Response<Body>, Infallible> {
    let path = request.uri().path();
    let delay = DELAY_MS * (DEVIATION * normal(path, 1)).exp();
    tokio::time::sleep(Duration::from_secs_f64(delay / 1e3)).await;
    let bytes = (BYTES * (BYTES_DEVIATION * normal(path, 2)).exp()).min(BYTES_MAX);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is a length")]
    let mut response = Response::new(body::full(vec![b'x'; bytes as usize]));
    let lifetime = HeaderValue::from_static("max-age=86400");
    response.headers_mut().insert(header::CACHE_CONTROL, lifetime);
    Ok(response)
}

/// Returns a number of the normal distribution, always the same for a path (Box and Muller).
fn normal(path: &str, salt: u8) -> f64 {
    let [one, other] = [0, 1].map(|it| unit(&format!("{path} {salt} {it}")));
    (-2.0 * one.ln()).sqrt() * (std::f64::consts::TAU * other).cos()
}

/// Returns a number above 0 and up to 1, always the same for a text.
pub(crate) fn unit(text: &str) -> f64 {
    ((xxh3_64(text.as_bytes()) >> 12) + 1) as f64 / (1_u64 << 52) as f64
}
