//! The feed as daemons serve it, with links to the hub that announces its changes.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::http::header::RETRY_AFTER;
use axum::http::uri::PathAndQuery;
use axum::http::{HeaderValue, Response, StatusCode, Uri};
use axum::response::IntoResponse as _;
use axum::routing::any;
use collection::feed::{FeedServer, Selection};
use daemon::gate::{Limit, Visitor};
use url::form_urlencoded;

use super::notifier::Notifier;
use super::topic::OwnTopic;

/// The header of an answer that is of a part.
const VIEW: &str = "harvest-view";
/// Pause after which a consumer asks again, in seconds.
const RETRY_SECS: u64 = 5;

/// Why nothing is selected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unselected {
    /// The parameters have this mistake.
    Wrong(String),
    /// What is asked for is not known yet: the consumer asks again.
    Later,
}

/// Who asks for the feed.
#[derive(Clone, Copy, Debug, Default)]
pub struct Asking<'a> {
    /// The view to which the client is limited.
    pub limit: Option<&'a str>,
    /// Whether the client is one that the settings name.
    pub is_named: bool,
    /// The selection of which it has something already, by its name.
    pub has: Option<&'a str>,
}

/// Reads the parameters of a request: returns those that the feed knows, and which records are asked for. `None`: all
/// are.
pub type Select =
    Arc<dyn Fn(Asking<'_>, &str) -> Result<Option<(String, Selection)>, Unselected> + Send + Sync>;

/// Returns the [`Select`] of a feed that serves all to everybody.
pub fn all() -> Select {
    Arc::new(|_, _| Ok(None))
}

/// A part of the feed that is a collection of its own: who asks for the whole does not get it.
#[derive(Clone, Debug)]
pub struct Apart {
    /// The query that asks for it, as it is written: `q=type:Summary`.
    pub query: &'static str,
    /// What serves it.
    pub feed: FeedServer,
    /// All of it, under its name on the wire.
    pub selection: Selection,
}

impl Apart {
    /// Returns the parameters that its feed knows, if they ask for it.
    fn asked(&self, parameters: &str) -> Option<String> {
        let pairs = || form_urlencoded::parse(parameters.as_bytes());
        let is_asked = pairs().any(|(name, value)| name == "q" && value.trim() == self.query);
        let rest = pairs().filter(|it| it.0 != "q");
        is_asked
            .then(|| form_urlencoded::Serializer::new(String::new()).extend_pairs(rest).finish())
    }
}

/// Returns the routes `/feed` and `/snapshot/ID`. `select` says what of the feed a request is for, but for the part
/// that is `apart`.
pub fn routes(
    feed: FeedServer,
    notifier: Notifier,
    select: Select,
    apart: Option<Apart>,
) -> Router {
    let serve = move |depth: usize| {
        let (feed, notifier, select) = (feed.clone(), notifier.clone(), select.clone());
        let apart = apart.clone();
        any(move |request: Request| {
            let (feed, notifier, select) = (feed.clone(), notifier.clone(), select.clone());
            let apart = apart.clone();
            async move {
                let request = request.map(drop);
                let limit = request.extensions().get().map(|Limit(view)| view.as_str());
                let is_named = request.extensions().get::<Visitor>().is_some();
                let has = request.headers().get(VIEW).and_then(|it| it.to_str().ok());
                let (limit_is_set, asking) = (limit.is_some(), Asking { limit, is_named, has });
                let parameters = request.uri().query().unwrap_or_default();
                if let Some(apart) = apart.as_ref().filter(|_| depth == 0 && !limit_is_set)
                    && let Some(rest) = apart.asked(parameters)
                {
                    let request = with_parameters(request, &rest);
                    let answer = apart.feed.respond_selected(request, &apart.selection).await;
                    return answer.map(Body::new);
                }
                let selected = match depth {
                    0 => select(asking, request.uri().query().unwrap_or_default()),
                    _ => Ok(None),
                };
                let mut response = match selected {
                    Ok(None) => {
                        let again = copy(&request);
                        let response = feed.respond(request).await;
                        let is_unknown =
                            matches!(response.status(), StatusCode::NOT_FOUND | StatusCode::GONE);
                        match &apart {
                            // A snapshot may be one of the part.
                            Some(apart) if depth != 0 && !limit_is_set && is_unknown => {
                                apart.feed.respond(again).await
                            }
                            _ => response,
                        }
                    }
                    Ok(Some((rest, selection))) => {
                        let request = with_parameters(request, &rest);
                        feed.respond_selected(request, &selection).await
                    }
                    Err(fault) => return refusal(&fault),
                };
                // One that was begun before the client was limited has all.
                let is_of_all =
                    response.status().is_success() && !response.headers().contains_key(VIEW);
                if limit_is_set && depth != 0 && is_of_all {
                    return StatusCode::GONE.into_response();
                }
                notifier.link(OwnTopic::Feed, "", depth, &mut response);
                response.map(Body::new)
            }
        })
    };
    Router::new().route("/feed", serve(0)).route("/snapshot/{id}", serve(1))
}

/// Returns the same request.
fn copy(request: &Request<()>) -> Request<()> {
    let mut copy = Request::new(());
    *copy.method_mut() = request.method().clone();
    *copy.uri_mut() = request.uri().clone();
    *copy.headers_mut() = request.headers().clone();
    copy
}

/// Returns a request with other parameters.
fn with_parameters(mut request: Request<()>, parameters: &str) -> Request<()> {
    let target = format!("{}?{parameters}", request.uri().path());
    if let Ok(target) = target.parse::<PathAndQuery>() {
        *request.uri_mut() = Uri::from(target);
    }
    request
}

fn refusal(fault: &Unselected) -> Response<Body> {
    match fault {
        Unselected::Wrong(fault) => (StatusCode::BAD_REQUEST, format!("{fault}\n")).into_response(),
        Unselected::Later => {
            let soon = [(RETRY_AFTER, HeaderValue::from(RETRY_SECS))];
            let message = "what this view has is being found out; ask again\n";
            (StatusCode::SERVICE_UNAVAILABLE, soon, message).into_response()
        }
    }
}
