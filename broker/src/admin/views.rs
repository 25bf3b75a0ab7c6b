//! `GET /views`, and `GET /views/try?q=QUERY`: what views have, and what a query would have.

use std::collections::BTreeMap;

use axum::Router;
use axum::extract::{Query as Asked, State};
use axum::routing::get;
use exchange::takedown::Refused;
use http::StatusCode;
use query::{Matcher, Query};
use serde::{Deserialize, Serialize};

use crate::answer::{Matching, SEARCH_CPU_MAX, SearchRequest, Sort};
use crate::blocking::blocking;
use crate::error::Error;
use crate::server::Handle;
use crate::views::alerts::WebhookStatus;
use crate::views::selecting::standing;

/// Number of objects that are named of a query that is tried.
const SAMPLES: usize = 5;

/// A view, and what it has.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ViewStatus {
    /// Its name.
    pub name: String,
    /// Its name for people.
    pub title: String,
    /// The view that it is within.
    pub within: Option<String>,
    /// What the settings say.
    pub query: String,
    /// What its records match, all views around it included.
    pub whole: String,
    /// Number of its objects.
    pub objects: u64,
}

/// What a query would have.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tried {
    /// The query as it is understood, with those of the views that it names.
    pub query: String,
    /// Number of objects that match.
    pub objects: u64,
    /// Some of them, those that were updated last.
    pub samples: Vec<Sample>,
    /// Of a source that was asked about: what would go if only this were pulled of it.
    pub source: Option<Leaving>,
}

/// An object that matches.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sample {
    /// Its title.
    pub title: String,
    /// Its URL.
    pub url: String,
}

/// What would go of a source.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Leaving {
    /// Number of its objects that do not match.
    pub leaving: u64,
    /// Number of its objects here.
    pub of: u64,
}

#[derive(Deserialize)]
struct TryQuery {
    q: String,
    source: Option<String>,
}

pub(super) fn routes() -> Router<Handle> {
    Router::new().route("/views", get(views)).route("/views/try", get(tried))
}

async fn views(State(handle): State<Handle>) -> Result<axum::Json<Vec<ViewStatus>>, Refused> {
    let views = handle.config().views.clone();
    let read = move || {
        let status = |view: &crate::views::View| {
            Ok::<_, Error>(ViewStatus {
                name: view.name.clone(),
                title: view.title.clone(),
                within: view.within.clone(),
                query: view.query.to_string(),
                whole: view.whole.to_string(),
                objects: handle.found(&view.whole, 0)?.0,
            })
        };
        views.all().map(status).collect::<Result<Vec<_>, _>>()
    };
    Ok(axum::Json(blocking("views", read).await?))
}

async fn tried(
    State(handle): State<Handle>,
    Asked(asked): Asked<TryQuery>,
) -> Result<axum::Json<Tried>, Refused> {
    let wrong = |message: String| Refused { status: StatusCode::BAD_REQUEST, message };
    let (rest, scope) = {
        let query = standing(&asked.q).map_err(wrong)?;
        handle.config().views.scope(&query).map_err(wrong)?
    };
    let all = std::iter::once(rest).chain(scope).map(|it| it.root);
    let query =
        Query { root: query::Node::and(all.filter(|it| *it != query::Node::All).collect()) };
    let read = move || {
        let (objects, samples) = handle.found(&query, SAMPLES)?;
        let matcher = Matcher::new(&query);
        let count = |source: &String| {
            let takes = |record: &soif::Record| matcher.matches(record).is_some();
            let (of, matching) = handle.inner.collection.count_held(source, takes)?;
            Ok::<_, Error>(Leaving { leaving: of - matching, of })
        };
        let source = asked.source.as_ref().map(count).transpose()?;
        Ok::<_, Error>(Tried { query: query.to_string(), objects, samples, source })
    };
    Ok(axum::Json(blocking("views", read).await?))
}

impl Handle {
    /// Returns how it goes with the webhooks, by the names of their views.
    pub fn webhooks(&self) -> BTreeMap<String, WebhookStatus> {
        self.inner.stages.alerts.status()
    }

    /// Returns how many objects match a query, and some of them. Blocks.
    fn found(&self, query: &Query, samples: usize) -> Result<(u64, Vec<Sample>), Error> {
        let request = SearchRequest {
            limit: samples,
            matching: Matching::All,
            sort: Sort::Updated,
            facets: false,
            snippets: false,
            duplicates: true,
            ..SearchRequest::new(query.clone(), query.to_string())
        };
        let answer = self.inner.engine.search(&request, SEARCH_CPU_MAX)?;
        let sample = |it: crate::answer::Hit| Sample { title: it.title, url: it.url };
        Ok((answer.total, answer.hits.into_iter().map(sample).collect()))
    }
}
