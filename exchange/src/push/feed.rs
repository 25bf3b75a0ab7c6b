//! The feed as daemons serve it, with links to the hub that announces its changes.

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::routing::any;
use collection::feed::FeedServer;

use super::notifier::Notifier;
use super::topic::OwnTopic;

/// Returns the routes `/feed` and `/snapshot/ID`.
pub fn routes(feed: FeedServer, notifier: Notifier) -> Router {
    let serve = move |depth: usize| {
        let (feed, notifier) = (feed.clone(), notifier.clone());
        any(move |request: Request| {
            let (feed, notifier) = (feed.clone(), notifier.clone());
            async move {
                let mut response = feed.respond(request.map(drop)).await;
                notifier.link(OwnTopic::Feed, "", depth, &mut response);
                response.map(Body::new)
            }
        })
    };
    Router::new().route("/feed", serve(0)).route("/snapshot/{id}", serve(1))
}
