//! The broker's public pages: `/` to search, `/object` for one record; and the routes of the pages
//! and of the search API.
//!
//! Everything works without script, from the keyboard and on a phone. The templates escape all text
//! of foreign documents: nothing is marked as safe.

mod advice;
mod asked;
pub mod atom;
mod browse;
pub(crate) mod client;
mod copies;
mod display_url;
mod lanes;
mod limit;
mod object;
pub mod parameters;
mod related;
mod results;
mod surroundings;
mod text_place;

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use collection::{Collection, Oid};
use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderValue, StatusCode, Uri};
use query::record::oid_parse;
use query::{Node, QUERY_BYTES_MAX, Query, QueryError};
use soif::Record;
use url::Url;
use web::Pages;
use web::failure::{Failure, Wants};
use web::templates::Source;

use crate::answer::{Answer, HITS_DEFAULT, Matching, Notice, SearchRequest, Statistics};
use crate::api;
use crate::blocking::blocking;
use crate::engine::Engine;
use crate::error::Error;
use crate::route::routing::Route;
use crate::snippet::excerpt;
use crate::views::membership::{Membership, Present};
use client::{Client, later};
use copies::Copies;
pub use lanes::DearSearches;
use lanes::{Lanes, is_dear, quick_cpu};
use limit::Limit;
use object::{Format, ObjectPage, ObjectParameters};
use parameters::{PAGE_HITS_MAX, Parameters, Scope, Unknown};
use related::How;
pub(crate) use results::shortened;
use results::{Home, Mistake, Results, SearchPage};
pub use surroundings::Surroundings;

/// The broker's templates; files of these names in the administrator's folder replace them.
pub const TEMPLATES: &[Source] = &[
    Source { name: "parts.html", text: include_str!("../templates/parts.html") },
    Source { name: "search.html", text: include_str!("../templates/search.html") },
    Source { name: "tree.html", text: include_str!("../templates/tree.html") },
    Source { name: "views.html", text: include_str!("../templates/views.html") },
    Source { name: "object.html", text: include_str!("../templates/object.html") },
];

/// The media type of SOIF (RFC 2655).
const SOIF: HeaderValue = HeaderValue::from_static("application/index.obj.HARVEST-SOIF-1");

/// The state of the pages and of the search API. Clones share it.
#[derive(Clone, Debug)]
pub struct PageState {
    engine: Engine,
    collection: Collection,
    pages: Pages,
    lanes: Lanes,
    views: Present,
    /// What each view has; `None`: that is not kept.
    membership: Option<Membership>,
    /// The caches whose copies of objects are linked.
    copies: Option<Copies>,
    /// The address of the pages, as others see it.
    base_url: Option<Arc<Url>>,
    /// The process around a front; `None` in a broker.
    around: Option<Arc<dyn Surroundings>>,
    /// What asks other brokers, too.
    route: Option<Route>,
}

impl PageState {
    /// Returns pages over `engine` and its `collection`.
    pub fn new(engine: Engine, collection: Collection, pages: Pages) -> Self {
        let (lanes, views, copies) = (Lanes::default(), Present::default(), None);
        let (membership, base_url, around, route) = (None, None, None, None);
        Self {
            engine,
            collection,
            pages,
            lanes,
            views,
            membership,
            copies,
            base_url,
            around,
            route,
        }
    }

    /// Returns how many dear searches there were.
    pub(crate) fn dear_searches(&self) -> DearSearches {
        self.lanes.counts()
    }

    pub(crate) fn pages(&self) -> &Pages {
        &self.pages
    }

    /// Returns the same pages, whose address is `base_url` as others see it.
    pub(crate) fn at(self, base_url: Option<&Url>) -> Self {
        Self { base_url: base_url.cloned().map(Arc::new), ..self }
    }

    /// Returns the same pages, whose searches are within these views if they name them.
    pub(crate) fn with_views(self, views: Present, membership: Membership) -> Self {
        Self { views, membership: Some(membership), ..self }
    }

    /// Returns the same pages, whose searches may ask others, too.
    pub(crate) fn asking(self, route: Route) -> Self {
        Self { route: Some(route), ..self }
    }

    pub(crate) fn route(&self) -> Option<&Route> {
        self.route.as_ref()
    }

    /// Returns how many of the words a hit has, as it is asked for or set.
    pub(crate) fn matching(&self, asked: &Parameters) -> Matching {
        asked.matching.unwrap_or_else(|| self.engine.ranking().matching)
    }

    /// Returns how many objects have the words of a query.
    ///
    /// # Errors
    ///
    /// The query has a mistake, or the engine failed.
    pub(crate) async fn statistics(
        &self,
        client: Client,
        query: &Query,
    ) -> Result<Statistics, Error> {
        let (engine, query) = (self.engine.clone(), query.clone());
        let quick = Some(quick_cpu(self.collection.len()));
        self.lanes.run(client.address, quick, move |_cpu| engine.statistics(&query)).await
    }

    /// Returns the views that count at present.
    pub(crate) fn views(&self) -> &Present {
        &self.views
    }

    /// Returns the same pages, which show what `around` tells.
    pub(crate) fn within(self, around: Arc<dyn Surroundings>) -> Self {
        Self { around: Some(around), ..self }
    }

    /// Reads the typed `text`, and answers it to `client` as `asked`, as the returned request says it.
    /// A text that cannot be read as a query is searched by its words.
    ///
    /// # Errors
    ///
    /// [`Error::Query`] if the text has no word either or is too long; [`Error::Late`] and
    /// [`Error::Crowded`] if its search takes too long, or too much by now.
    pub(crate) async fn ask(
        &self,
        client: Client,
        asked: &Parameters,
        text: &str,
    ) -> Result<(SearchRequest, Answer), Error> {
        let (query, notice) = understand(text)?;
        if asked.scope == Scope::Everywhere {
            let (request, mut answer) =
                Box::pin(self.ask_everywhere(client, asked, text, &query)).await?;
            answer.notice = notice.or(answer.notice);
            return Ok((request, answer));
        }
        let wrong = |message| Error::Query(QueryError { offset: 0, len: text.len(), message });
        let ranking = self.engine.ranking();
        let request = asked.request(query, ranking.matching);
        let mut request = self.within_views(&client, request).map_err(wrong)?;
        let limit = self.limit_of(&client);
        request.scope.extend(limit.iter().map(|it| it.query.clone()));
        // One that stands for others may be outside of the view.
        request.duplicates |= limit.is_some();
        let feedback = asked.feedback.unwrap_or(ranking.feedback);
        let how = if feedback { How::Expanded } else { How::AsTyped };
        if let Some(name) = &asked.like {
            let named = self.named(&client, limit.as_ref(), name).await?;
            request.but = named.filter(|it| limit.as_ref().is_none_or(|limit| limit.has(it)));
            if request.but.is_none() {
                let message = format!("no object here is {}", shortened(name, 200));
                let notice = Notice { message, ..Notice::default() };
                return Ok((request, Answer { notice: Some(notice), ..Answer::default() }));
            }
        }
        let asking = (client.address, limit);
        let (mut request, mut answer) = self.search(&asking, request, how).await?;
        // Text with a colon may mean no attribute at all.
        let words = query::plain(text);
        if let Some(unknown) = &answer.notice
            && request.matching != Matching::All
            && request.query.is_side_by_side()
            && ![&request.query, &Query::all()].contains(&&words)
        {
            let message = format!("{}; so its words were searched", unknown.message);
            let unknown = Notice { message, ..unknown.clone() };
            (request, answer) =
                self.search(&asking, SearchRequest { query: words, ..request }, how).await?;
            answer.notice = Some(unknown);
        }
        answer.notice = notice.or(answer.notice);
        Ok((request, answer))
    }

    /// Answers a search on a thread that may block, as soon as its lane has room; returns it with the
    /// request as it was completed.
    async fn search(
        &self,
        (address, limit): &(IpAddr, Option<Limit>),
        request: SearchRequest,
        how: How,
    ) -> Result<(SearchRequest, Answer), Error> {
        let quick = (!is_dear(&request)).then(|| quick_cpu(self.collection.len()));
        let work = self.work((*address, limit.clone()), request, how);
        self.lanes.run(*address, quick, work).await
    }

    /// Returns the search for `request`, to be called with the processor time that it may use.
    fn work(
        &self,
        (address, limit): (IpAddr, Option<Limit>),
        request: SearchRequest,
        how: How,
    ) -> impl Fn(Duration) -> Result<(SearchRequest, Answer), Error> + Clone + Send + 'static + use<>
    {
        let (engine, collection) = (self.engine.clone(), self.collection.clone());
        let lanes = self.lanes.clone();
        move |cpu| {
            let mut request = request.clone();
            related::complete(&mut request, how, (&engine, cpu), &collection)?;
            let mut answer = engine.search(&request, cpu)?;
            if let Some(limit) = &limit {
                limit.apply(&mut answer, &collection)?;
            }
            if request.snippets {
                let text = answer.suggestion.as_deref().filter(|_| answer.respelled);
                let respelled = text.and_then(|it| query::parse(it).ok());
                let query = respelled.as_ref().unwrap_or(&request.query);
                lanes.read_texts(address, |goes_on| {
                    excerpt::add(&mut answer.hits, query, &collection, goes_on);
                });
            }
            Ok((request, answer))
        }
    }

    /// Returns what goes on until everything is found; `None` when it is.
    pub(crate) fn activity(&self) -> Option<String> {
        self.around.as_ref().and_then(|it| it.activity())
    }

    /// Returns the URL to which a page posts a file that is to be opened; `None` unless the browser
    /// with these headers may open files.
    fn open_address(&self, headers: &HeaderMap) -> Option<String> {
        self.around.as_ref().and_then(|it| it.open_address(headers))
    }

    /// Answers with an internal error; the cause goes to the log.
    pub(crate) fn fault(&self, wants: Wants, error: &Error) -> Response {
        tracing::error!(%error, "request failed");
        self.pages.fail(wants, &Failure::internal())
    }
}

/// Returns the broker's public routes: `/`, `/object`, `/api/search` and `/assets/…`, with 404 and
/// 405 for all other requests. Merge it into a router that has no fallback of its own.
pub fn routes(state: PageState) -> Router {
    let pages = state.pages.clone();
    let router = Router::new()
        .route("/", get(search))
        .route("/object", get(object))
        .route("/atom", get(atom::atom))
        .route("/views", get(browse::browse))
        .route("/api/search", get(api::search))
        .route("/api/statistics", get(api::statistics))
        .with_state(state);
    pages.frame(router)
}

async fn search(
    State(state): State<PageState>,
    client: Client,
    uri: Uri,
    headers: HeaderMap,
) -> Response {
    let asked = match Parameters::parse(uri.query(), Unknown::Ignored) {
        // Only programs need an answer without hits, so a page has the default number.
        Ok(asked) if asked.limit == 0 => Parameters { limit: HITS_DEFAULT, ..asked },
        Ok(asked) if PAGE_HITS_MAX < asked.limit => Parameters { limit: PAGE_HITS_MAX, ..asked },
        Ok(asked) => asked,
        Err(error) => {
            let (asked, wrong) = (Parameters::default(), Mistake::parameter(error.message));
            let shown = (&asked, &headers);
            return show(&state, &client, shown, StatusCode::BAD_REQUEST, Some(wrong), None).await;
        }
    };
    let text = asked.text.as_deref().unwrap_or_default();
    // Filters without a query ask for all objects that have these values.
    if !asked.is_search() {
        let asked = Parameters::default();
        return show(&state, &client, (&asked, &headers), StatusCode::OK, None, None).await;
    }
    find(&state, &client, (&asked, &headers), text).await
}

/// Reads the typed text: as a query or, if it has a mistake, as words with a notice of the mistake.
fn understand(text: &str) -> Result<(Query, Option<Notice>), QueryError> {
    let error = match query::parse(text) {
        Ok(query) => {
            let notice = negation(text, &query);
            return Ok((query, notice));
        }
        Err(error) => error,
    };
    let words = query::plain(text);
    if words == Query::all() || QUERY_BYTES_MAX < text.len() {
        return Err(error);
    }
    let message = format!("{}; so its words were searched", error.message);
    Ok((words, Some(Notice { message, offset: error.offset, length: error.len })))
}

/// Returns a remark about a query that leaves out one word, and asks for nothing.
fn negation(text: &str, query: &Query) -> Option<Notice> {
    let Node::Not(_) = query.root else { return None };
    let typed = text.trim();
    let message =
        format!("these are all objects without it; \"{typed}\" in quotation marks looks for it");
    typed.starts_with('-').then(|| Notice {
        message,
        offset: text.len() - text.trim_start().len(),
        length: typed.len(),
    })
}

async fn find(
    state: &PageState,
    client: &Client,
    asking: (&Parameters, &HeaderMap),
    text: &str,
) -> Response {
    let (status, wrong, found) = match state.ask(client.clone(), asking.0, text).await {
        Ok((request, answer)) => {
            (StatusCode::OK, None, Some(Results::new(asking.0, &request, &answer)))
        }
        Err(Error::Query(error)) => {
            (StatusCode::BAD_REQUEST, Some(Mistake::query(&error, text)), None)
        }
        Err(error @ Error::Late) => {
            (StatusCode::BAD_REQUEST, Some(Mistake::parameter(error.to_string())), None)
        }
        Err(Error::Crowded(crowded)) => {
            let wrong = Some(Mistake::parameter(crowded.to_string()));
            let status = StatusCode::TOO_MANY_REQUESTS;
            return later(&crowded, show(state, client, asking, status, wrong, None).await);
        }
        Err(error) => return state.fault(Wants::Html, &error),
    };
    show(state, client, asking, status, wrong, found).await
}

async fn show(
    state: &PageState,
    client: &Client,
    (asked, headers): (&Parameters, &HeaderMap),
    status: StatusCode,
    wrong: Option<Mistake>,
    found: Option<Results>,
) -> Response {
    let mut keep = asked.parameters();
    keep.retain(|(name, _)| !["q", "scope"].contains(name));
    let is_open = state.route().is_some_and(Route::is_open) && client.limit.is_none();
    let everywhere = is_open.then_some(asked.scope == Scope::Everywhere);
    let is_home = found.is_none() && wrong.is_none();
    let home = if is_home { home(state, client).await } else { Home::default() };
    let q = asked.text.clone().unwrap_or_default();
    let activity = state.activity();
    let open = state.open_address(headers);
    let page = SearchPage { q, keep, activity, open, everywhere, home, wrong, found };
    opening(state.pages.respond(status, "search.html", &page), page.open.as_deref())
}

/// Lets a page post files that are to be opened to `address`.
fn opening(mut response: Response, address: Option<&str>) -> Response {
    if let Some(address) = address {
        web::headers::allow_forms_to(&mut response, address);
    }
    response
}

/// Counts the objects and sources; returns zeros on an error, since the page works without them.
async fn home(state: &PageState, client: &Client) -> Home {
    let collection = state.collection.clone();
    let has_views = state.views.get().all().next().is_some();
    if let Some(view) = &client.limit {
        let counts = state.membership.as_ref().and_then(Membership::counts);
        let objects = counts.and_then(|it| it.get(view).copied()).unwrap_or_default();
        return Home { objects, has_views, ..Home::default() };
    }
    let count = move || {
        let sources = collection.sources().map_or(0, |sources| sources.len());
        Home { objects: collection.len(), sources, has_views }
    };
    tokio::task::spawn_blocking(count).await.unwrap_or_default()
}

async fn object(
    State(state): State<PageState>,
    client: Client,
    uri: Uri,
    headers: HeaderMap,
) -> Response {
    let wants = Wants::of(uri.path(), &headers);
    let asked = match ObjectParameters::parse(uri.query()) {
        Ok(asked) => asked,
        Err(message) => return state.pages.fail(wants, &Failure::bad_request(message)),
    };
    let Some(oid) = asked.oid.clone() else {
        let message =
            "The URL needs an object: /object?oid=GATHERER:URL, as in the links of search results.";
        return state.pages.fail(wants, &Failure::bad_request(message));
    };
    let accepted = if wants == Wants::Json { Format::Json } else { Format::Html };
    let format = asked.format.unwrap_or(accepted);
    let wants = if format == Format::Json { Wants::Json } else { wants };
    let Some((gatherer, url)) = oid_parse(&oid) else {
        let message = "This is no object id: an object id has the form GATHERER:URL.";
        return state.pages.fail(wants, &Failure::bad_request(message));
    };
    let wanted = Oid::new(&gatherer, url);
    let collection = state.collection.clone();
    let stored = match blocking("an object", move || collection.get(&wanted)).await {
        Ok(stored) => stored,
        Err(error) => return state.fault(wants, &error),
    };
    let limit = state.limit_of(&client);
    let may_have = |record: &Record| limit.as_ref().is_none_or(|it| it.has(record));
    let Some(stored) = stored.filter(|it| may_have(&it.record)) else {
        let message = "No summary of this object is here; its source may have removed it.";
        return state.pages.fail(wants, &Failure::not_found(message));
    };
    match format {
        Format::Html => {
            let text = asked.results.as_ref().and_then(|it| it.text.as_deref());
            let query = text.and_then(|it| understand(it).ok()).map(|it| it.0);
            let record = Arc::new(stored.record);
            let shown = Arc::clone(&record);
            let page = move |related: &Answer| {
                ObjectPage::new(&oid, &shown, (&asked, query.as_ref()), related)
            };
            match state.with_related(record, limit, page).await {
                Ok(mut page) => {
                    page.open = state.open_address(&headers);
                    if page.may_be_copied() {
                        page.link_copy(state.nearest_cache().await.as_ref());
                    }
                    let response = state.pages.respond(StatusCode::OK, "object.html", &page);
                    opening(response, page.open.as_deref())
                }
                Err(error) => state.fault(wants, &error),
            }
        }
        Format::Json => axum::Json(soif::json::to_json(&stored.record)).into_response(),
        Format::Soif => {
            let mut bytes = Vec::new();
            soif::write_record(&mut bytes, &stored.record);
            ([(CONTENT_TYPE, SOIF)], bytes).into_response()
        }
    }
}

#[cfg(test)]
mod tests;
