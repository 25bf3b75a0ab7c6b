//! The page **Freshness**: freshness and cost of the sources, and a preview of other settings.
//!
//! Source: Adly §6 asks for a tool with which an administrator weighs freshness against cost; the
//! measures are those of Adly and Liu. The page works without script and changes nothing: the
//! administrator writes new settings into the settings file.

mod curve;
mod format;
mod parameters;
mod sentences;
mod table;
mod template_data;
mod view;

use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use http::{HeaderMap, StatusCode, Uri};
use net::clock;
use tokio::sync::Semaphore;
use web::failure::{Failure, Wants};
use web::templates::Source;

use crate::blocking::blocking;
use crate::error::Error;
use crate::server::Handle;
use parameters::Parameters;
use template_data::TemplateData;
use view::{Present, View};

/// The page's template; a file of its name in the administrator's template folder replaces it.
pub(crate) const TEMPLATES: &[Source] =
    &[Source { name: "freshness.html", text: include_str!("../../templates/freshness.html") }];

/// Maximum number of pages that are made at the same time; further requests wait. Each page
/// computes about 40 plans.
const PAGES_MAX: usize = 2;

pub(crate) fn routes() -> Router<Handle> {
    let turns = Arc::new(Semaphore::new(PAGES_MAX));
    let page = async move |State(handle): State<Handle>, uri: Uri, headers: HeaderMap| {
        answer(handle, turns, &uri, &headers).await
    };
    Router::new().route("/freshness", get(page))
}

/// Answers `GET /freshness` with a page or JSON.
async fn answer(handle: Handle, turns: Arc<Semaphore>, uri: &Uri, headers: &HeaderMap) -> Response {
    let asked = Parameters::parse(uri.query());
    let wants = asked.wants(Wants::of(uri.path(), headers));
    let pages = handle.inner.admin_pages.clone();
    if let (Wants::Json, [mistake, ..]) = (wants, &*asked.mistakes) {
        return pages.fail(wants, &Failure::bad_request(&mistake.message));
    }
    let wrong = !asked.mistakes.is_empty();
    let status = if wrong { StatusCode::BAD_REQUEST } else { StatusCode::OK };
    // The permit moves into the blocking work: a client that disconnects cannot free it early.
    let permit = turns.acquire_owned().await;
    let work = move || {
        let view = View::new(present(&handle), &asked);
        drop(permit);
        Ok::<_, Error>((view, asked))
    };
    match (blocking("page of freshness", work).await, wants) {
        (Ok((view, _)), Wants::Json) => (status, axum::Json(view)).into_response(),
        (Ok((view, asked)), Wants::Html) => {
            let shown = TemplateData::new(&view, &asked, clock::now_ms(), std::process::id());
            pages.respond(status, "freshness.html", &shown)
        }
        (Err(error), _) => {
            tracing::error!(%error, "request failed");
            pages.fail(wants, &Failure::internal())
        }
    }
}

/// Returns the present settings and sources for the page. Blocks.
fn present(handle: &Handle) -> Present {
    let status = handle.status_now();
    let settings = handle.config().freshness;
    let collector = &handle.inner.stages.collector;
    let (expected, planned) = (collector.expected(), collector.planned());
    Present {
        settings,
        expected,
        measured: status.freshness,
        planned,
        sources: status.sources,
        held_back: status.expected.held_back,
    }
}
