//! The nearest of several replicas of a source, by the measured time of a round trip.
//!
//! Source: TR §11 (the nearest instance of a server).

use std::time::{Duration, Instant};

use net::client::Client;
use net::clock;
use net::connect::distance::Distances;
use net::guard::Policy;
use tokio::task::JoinSet;
use url::Url;

use crate::source::Source;

/// Time for measuring.
const PATIENCE: Duration = Duration::from_secs(2);

/// Returns the addresses of a source in the order in which to try them.
pub(super) async fn first(client: &Client, source: &Source) -> Vec<Url> {
    let mut urls = vec![source.url.clone()];
    if source.replicas.is_empty() {
        return urls;
    }
    urls.extend(source.replicas.iter().cloned());
    let mut measuring = JoinSet::new();
    let now = clock::monotonic();
    for url in urls.iter().filter(|it| client.distances().lately(it, now).is_none()) {
        let (client, url) = (client.clone(), url.clone());
        let policy = Policy::from_allow_private(source.allow_private);
        measuring.spawn(async move { client.measure(&url, policy, PATIENCE).await });
    }
    while measuring.join_next().await.is_some() {}
    ordered(urls, client.distances(), clock::monotonic())
}

/// Orders addresses: the nearest first, those that were not reached lately last.
fn ordered(mut urls: Vec<Url>, distances: &Distances, now: Instant) -> Vec<Url> {
    urls.sort_by_key(|it| distances.lately(it, now).flatten().unwrap_or(Duration::MAX));
    urls
}
