//! The routes of the public listener: pages, search API, objects, feed, OAI-PMH, description.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::routing::get;
use collection::Collection;
use collection::feed::{FeedOptions, FeedServer};
use exchange::push::{self, Listener};
use net::shutdown::Shutdown;

use super::Handle;
use crate::admin;
use crate::page;
use crate::pipeline::Stages;
use crate::route::summary;

/// Returns the routes; `summaries` are those of a registry, `None` stands for the broker's own.
pub(super) fn routes(handle: &Handle, summaries: Option<Collection>, shutdown: Shutdown) -> Router {
    let inner = &handle.inner;
    let (base_url, lister) = (handle.config().daemon.base_url.clone(), handle.clone());
    let options = FeedOptions { shutdown, ..FeedOptions::default() };
    let options = options.owned_by(&inner.author, base_url.as_ref());
    let summaries = match summaries {
        Some(summaries) => FeedServer::new(summaries, options.clone()),
        None => {
            // One summary is small, and of what it was an hour ago nobody has use.
            let fresh = FeedOptions { snapshot_shared: Duration::ZERO, ..options.clone() };
            FeedServer::new(inner.stages.summarizer.collection(), fresh)
        }
    };
    let feed = FeedServer::new(inner.collection.clone(), options);
    let feed = inner.feed.get_or_init(|| feed).clone();
    let Stages { notifier, collector, .. } = &inner.stages;
    let select = inner.page.selecting();
    let callbacks = collector.listener().map(Listener::routes).unwrap_or_default();
    let is_open = move || lister.config().oai.enabled;
    let resources = push::resourcesync::routes(inner.collection.clone(), base_url, is_open);
    Router::new()
        .merge(push::feed::routes(feed, notifier.clone(), select, Some(summary::apart(summaries))))
        .merge(notifier.routes())
        .merge(resources)
        .merge(callbacks)
        .merge(notifier.linked(&inner.stages.repository))
        .merge(describe(handle))
        .route("/healthz", get(admin::healthz).with_state(handle.clone()))
        .route("/readyz", get(admin::public_readyz).with_state(handle.clone()))
        .merge(page::routes(inner.page.clone()))
}

fn describe(handle: &Handle) -> Router {
    let (describer, signer) = (handle.clone(), Arc::clone(&handle.inner));
    let sign = move |text: &[u8]| signer.author.identity.sign(text);
    let inner = &handle.inner;
    inner.control.describe(&inner.describer, move || describer.facts(), sign)
}
