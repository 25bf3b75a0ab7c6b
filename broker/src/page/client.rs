//! The client that asks for a page, and the answer to one that has to wait.

use std::convert::Infallible;
use std::net::{IpAddr, Ipv4Addr};

use axum::extract::FromRequestParts;
use axum::response::Response;
use daemon::gate::Limit;
use http::HeaderValue;
use http::header::RETRY_AFTER;
use http::request::Parts;
use net::server::Peer;

use crate::error::Crowded;

/// The client that asks.
#[derive(Clone, Debug)]
pub(crate) struct Client {
    /// The part of its address that belongs to one subscriber.
    pub(crate) address: IpAddr,
    /// The view to which it is limited.
    pub(crate) limit: Option<String>,
}

impl<S: Sync> FromRequestParts<S> for Client {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        let here = IpAddr::V4(Ipv4Addr::LOCALHOST);
        let address = parts.extensions.get().map_or(here, |peer: &Peer| peer.subscriber());
        let limit = parts.extensions.get().map(|Limit(view)| view.clone());
        Ok(Self { address, limit })
    }
}

/// Adds to an answer when to ask again.
pub(crate) fn later(crowded: &Crowded, mut answer: Response) -> Response {
    let value = HeaderValue::from(crowded.retry_after_secs);
    answer.headers_mut().insert(RETRY_AFTER, value);
    answer
}
