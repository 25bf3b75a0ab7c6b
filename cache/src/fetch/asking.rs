//! Asking for an object: its home, or a neighbor that has it; about what is stored, or anew.

use std::sync::{Arc, PoisonError};
use std::time::Instant;

use http::{HeaderMap, HeaderValue, StatusCode, header};
use net::body::{self, Body};
use net::client::{Proxy, Request};
use net::clock;

use super::coming::Coming;
use super::flight::Outcome;
use super::giver::Giver;
use super::{Fetcher, REST_BYTES_MAX};
use crate::content::Content;
use crate::memory::Object;
use crate::neighbors::Route;
use crate::origin::{dated, renewed, sound};
use crate::parts::{completed, rest_wanted};
use crate::policy::choice::conditions;
use crate::policy::control::RequestControl;
use crate::policy::freshness::Times;
use crate::policy::storing::{Head, own, was_provoked};
use crate::policy::validation::{Validated, validated};
use crate::request::{Asked, CONDITIONS};
use crate::resolution::Code;
use crate::target::{Scheme, named};

/// What comes of asking an origin.
pub(super) enum Came {
    Answer(Box<Coming>, Times),
    /// The rest of what is stored in part, with the headers of the whole.
    Rest(Box<Coming>, Times),
    /// The outcome for all, and the headers that the client alone gets that asked.
    Stored(Outcome, HeaderMap),
}

impl Fetcher {
    /// Asks the origin, about what is stored if there is something.
    pub(super) async fn ask(
        &self,
        asked: &Asked,
        stored: Option<&Arc<Object>>,
        began: Instant,
    ) -> Result<Came, net::Error> {
        let url = asked.object.url.as_str();
        if let Some(part) = stored.map(|it| it.head()).filter(|it| it.extent().is_some()) {
            return self.ask_rest(asked, &part).await;
        }
        let mut outgoing = asked.outgoing();
        let takes_stale = !RequestControl::of(&asked.headers).no_cache;
        if let Some(stored) = stored {
            CONDITIONS.iter().for_each(|it| drop(outgoing.remove(it)));
            outgoing.extend(conditions(&stored.head()));
        }
        let (response, times) = match self.send(asked, outgoing).await {
            Ok(came) => came,
            Err(error) => {
                return match stored.filter(|it| {
                    takes_stale && it.head().terms.may_be_used_instead(clock::now_ms())
                }) {
                    Some(object) => Ok(instead(object)),
                    None => Err(error),
                };
            }
        };
        let Some(stored) = stored else { return Ok(Came::Answer(response, times)) };
        match validated(&stored.head(), response.status, &response.headers, times.came_ms) {
            Validated::Replaced => Ok(Came::Answer(response, times)),
            Validated::Failed if !takes_stale => Ok(Came::Answer(response, times)),
            Validated::Failed => Ok(instead(stored)),
            Validated::Good => {
                let mut headers = response.headers.clone();
                dated(&mut headers, times);
                let giver = response.giver.clone();
                // It is read so that the connection can be used again; a 304 has none.
                response.skip(REST_BYTES_MAX).await;
                let Some(head) = renewed(asked, &stored.head(), &headers, times) else {
                    // It is for one client alone now.
                    self.0.objects.remove(url, Some(&asked.headers));
                    return self.ask_anew(asked).await;
                };
                let object = Arc::new(Object::new(&head, stored.body.clone()));
                self.given(url, giver.as_ref());
                // What was not on disk any more cannot be given.
                if matches!(&object.body, Content::Disk(it) if !it.is_there()) {
                    return self.ask_anew(asked).await;
                }
                let may = || !self.has_changed(url, began);
                self.0.objects.renew(url, (stored, &object), may);
                let own = own(&headers, &head.terms.control);
                Ok(Came::Stored(Outcome::Validated(object, giver), own))
            }
            Validated::Other => self.ask_anew(asked).await,
        }
    }

    /// Asks the origin for the rest of what is stored in part.
    async fn ask_rest(&self, asked: &Asked, stored: &Head) -> Result<Came, net::Error> {
        let mut outgoing = asked.outgoing();
        outgoing.extend(rest_wanted(stored).into_iter().flatten());
        let (mut response, times) = self.send(asked, outgoing).await?;
        if let Some(headers) = completed(stored, response.status, &response.headers) {
            (response.status, response.headers) = (StatusCode::OK, headers);
            return Ok(Came::Rest(response, times));
        }
        let has_part = [StatusCode::PARTIAL_CONTENT, StatusCode::RANGE_NOT_SATISFIABLE];
        if has_part.contains(&response.status) {
            return self.ask_anew(asked).await;
        }
        Ok(Came::Answer(response, times))
    }

    /// Asks the origin without conditions.
    async fn ask_anew(&self, asked: &Asked) -> Result<Came, net::Error> {
        let mut outgoing = asked.outgoing();
        CONDITIONS.iter().for_each(|it| drop(outgoing.remove(it)));
        let (response, times) = self.send(asked, outgoing).await?;
        Ok(Came::Answer(response, times))
    }

    async fn send(
        &self,
        asked: &Asked,
        outgoing: HeaderMap,
    ) -> Result<(Box<Coming>, Times), net::Error> {
        let sent_ms = clock::now_ms();
        let route = if asked.object.is_before_origin() {
            Route::DIRECT
        } else {
            self.0.neighbors.route(&asked.object.at(), self.0.policy).await
        };
        self.count(route.code.name());
        // A home that is asked since its neighbors fail after all was not the faster one.
        let code = if route.neighbor.is_some() { Code::Direct } else { route.code };
        let mut response = match self.by_neighbor(asked, &outgoing, route).await {
            Ok(response) => response,
            Err(refusal) => match self.ask_nearest(asked, outgoing).await {
                Ok(response) => response,
                Err(error) => refusal.ok_or(error)?,
            },
        };
        let home = asked.object.url.host_str().unwrap_or_default();
        response.giver.get_or_insert_with(|| Giver::new(code, home));
        Ok((response, Times { sent_ms, came_ms: clock::now_ms() }))
    }

    pub(super) fn count(&self, code: &'static str) {
        let mut routes = self.0.routes.lock().unwrap_or_else(PoisonError::into_inner);
        *routes.entry(code).or_default() += 1;
    }

    /// Asks a neighbor. An error means that there is none on the route, or that it does not give the object
    /// after all; a parent's refusal, which may be the home's, counts if the home cannot be asked.
    async fn by_neighbor(
        &self,
        asked: &Asked,
        outgoing: &HeaderMap,
        route: Route,
    ) -> Result<Box<Coming>, Option<Box<Coming>>> {
        let Some((proxy, giver)) = route.neighbor else { return Err(None) };
        // A sibling is asked for what it has alone.
        let is_sibling = route.code == Code::NeighborHit;
        let mut headers = outgoing.clone();
        if is_sibling {
            headers.append(header::CACHE_CONTROL, HeaderValue::from_static("only-if-cached"));
        }
        match self.pass(asked, headers, body::empty(), Some(proxy)).await {
            Ok(mut response) => {
                response.giver = Some(giver);
                let status = response.status;
                if !is_refusal(status, is_sibling) {
                    return Ok(response);
                }
                tracing::debug!(%status, "a neighbor did not give an object");
                Err(Some(response).filter(|_| !is_sibling && status == StatusCode::FORBIDDEN))
            }
            Err(error) => {
                tracing::debug!(%error, "a neighbor did not give an object");
                Err(None)
            }
        }
    }

    /// Passes a request on, to the home or through a neighbor's proxy.
    pub(crate) async fn pass(
        &self,
        asked: &Asked,
        headers: HeaderMap,
        body: Body,
        proxy: Option<Proxy>,
    ) -> Result<Box<Coming>, net::Error> {
        if let Some(scheme) = Scheme::of(&asked.object.url) {
            return self.0.schemes.fetch(scheme, asked, &headers).await.map(Box::new);
        }
        let request = Request {
            proxy,
            method: asked.method.clone(),
            headers,
            response_bytes_max: Some(u64::MAX),
            target: asked.object.written.clone(),
            ..Request::get(asked.object.at())
        };
        // The site behind is the settings' own choice.
        let request =
            if asked.object.is_before_origin() { request.allow_private(true) } else { request };
        self.exchange(request, body).await
    }

    /// Sends a request, and makes sure that what comes is an answer to it.
    pub(super) async fn exchange(
        &self,
        request: Request,
        body: Body,
    ) -> Result<Box<Coming>, net::Error> {
        let asks = CONDITIONS.map(|it| request.headers.contains_key(it));
        // A neighbor's times say nothing of the home.
        let home = request.proxy.is_none().then(|| named(&request.url).to_owned());
        let sent = clock::monotonic();
        let outcome = self.0.client.pass(request, body).await;
        if let Some(home) = home {
            let fails = outcome.as_ref().map_or(true, |it| it.status.is_server_error());
            self.0.counts.origin(&home, sent.elapsed(), fails);
        }
        let mut response = Box::new(Coming::from(outcome?));
        match sound(response.status, &mut response.headers, asks) {
            Ok(()) => Ok(response),
            Err(why) => Err(net::Error::Protocol {
                host: named(&response.url).to_owned(),
                source: why.into(),
            }),
        }
    }
}

/// Returns the outcome where what is stored is used instead of what the origin says.
fn instead(stored: &Arc<Object>) -> Came {
    Came::Stored(Outcome::Instead(Arc::clone(stored)), HeaderMap::new())
}

/// Returns whether a status is a neighbor's word about the one who asks it, not about the object. Of a parent
/// other errors may be the home's; a sibling gives what it has, and has no errors.
fn is_refusal(status: StatusCode, is_sibling: bool) -> bool {
    let refusals = [
        StatusCode::FORBIDDEN,
        StatusCode::PROXY_AUTHENTICATION_REQUIRED,
        StatusCode::LOOP_DETECTED,
    ];
    let is_error = status.is_server_error() || was_provoked(status);
    refusals.contains(&status) || is_sibling && is_error
}
