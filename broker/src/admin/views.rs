//! The page **Views**: what views have, what a view would have, and their changes; the same as JSON: `GET /views`,
//! `GET /views/try?q=QUERY`.
//!
//! The page works without script. A trial changes nothing. What was tried is saved into the settings file with the
//! administrator's token.

pub(super) mod changing;
mod form;
mod page;

use std::collections::BTreeMap;

use axum::Router;
use axum::extract::{Query as Asked, State};
use axum::routing::get;
use exchange::takedown::Refused;
use http::StatusCode;
use query::{Matcher, Query};
use serde::{Deserialize, Serialize};
use web::templates::Source;

use crate::answer::{Matching, SEARCH_CPU_MAX, SearchRequest, Sort};
use crate::blocking::blocking;
use crate::error::Error;
use crate::server::Handle;
use crate::views::alerts::WebhookStatus;
use crate::views::selecting::standing;
use crate::views::{View, Views};

/// The page's templates; files of their names in the administrator's template folder replace them.
pub(crate) const TEMPLATES: &[Source] = &[
    Source { name: "edit-views.html", text: include_str!("../../templates/edit-views.html") },
    Source { name: "tree.html", text: include_str!("../../templates/tree.html") },
    Source { name: "remove-view.html", text: include_str!("../../templates/remove-view.html") },
];

/// Maximum number of views without a known count that are searched for at once.
const SEARCHED_MAX: usize = 100;

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
    /// Number of its objects; `None`: it is not known yet.
    pub objects: Option<u64>,
    /// How it goes with its webhook, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub webhook: Option<WebhookStatus>,
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
    Router::new()
        .route("/views", get(page::views))
        .route("/views/try", get(tried))
        .route("/views/removing", get(page::removing))
}

async fn tried(
    State(handle): State<Handle>,
    Asked(asked): Asked<TryQuery>,
) -> Result<axum::Json<Tried>, Refused> {
    let wrong = |message: String| Refused { status: StatusCode::BAD_REQUEST, message };
    let query = {
        let (query, views) = (standing(&asked.q).map_err(wrong)?, &handle.config().views);
        let (rest, scope) = views.visible(None).scope(&query).map_err(wrong)?;
        Query::joined(std::iter::once(rest).chain(scope.into_iter().map(|it| it.whole.clone())))
    };
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

    /// Returns what views have. Blocks.
    fn view_status(&self, views: &Views) -> Result<Vec<ViewStatus>, Error> {
        let (objects, webhooks) = (self.objects_of(views)?, self.webhooks());
        let status = |view: &View| ViewStatus {
            name: view.name.clone(),
            title: view.title.clone(),
            within: view.within.clone(),
            query: view.query.clone(),
            whole: view.whole.to_string(),
            objects: objects.get(&view.name).copied(),
            webhook: webhooks.get(&view.name).cloned(),
        };
        Ok(views.all().map(status).collect())
    }

    /// Returns the numbers of objects of those views of which they are known, or soon found. Blocks.
    fn objects_of(&self, views: &Views) -> Result<BTreeMap<String, u64>, Error> {
        let counts = self.inner.stages.membership.counts();
        let is_counted = counts.is_some();
        let mut objects = counts.unwrap_or_default();
        // A view that is not counted may be empty, or new.
        let others: Vec<&View> = views.all().filter(|it| !objects.contains_key(&it.name)).collect();
        let are_few = others.len() <= SEARCHED_MAX;
        for view in others {
            let found = if are_few { self.found(&view.whole, 0) } else { Err(Error::Late) };
            match found {
                Ok((count, _)) => drop(objects.insert(view.name.clone(), count)),
                Err(Error::Late) if is_counted => drop(objects.insert(view.name.clone(), 0)),
                Err(Error::Late) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(objects)
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
