//! The page of the views with the form, and the page that asks before one is removed.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use http::{HeaderMap, StatusCode, Uri};
use query::Query;
use serde::Serialize;
use url::form_urlencoded;
use web::failure::{Failure, Wants};

use super::form::{Parameters, Typed, Wrong, leaning_on, wrong_name};
use super::{SAMPLES, Sample};
use crate::blocking::blocking;
use crate::config::Config;
use crate::config::edit::{self, NewView};
use crate::error::Error;
use crate::server::Handle;
use crate::views::tree::{self, TreePage};
use crate::views::{View, Views};

/// Maximum number of views that are named in a list of those that others change.
const NAMED_MAX: usize = 20;
/// Maximum number of views around which the form offers.
const OFFERED_MAX: usize = 500;

/// The settings as they are written.
pub(super) struct Written {
    /// The settings file; `None`: this broker has none.
    pub(super) file: Option<PathBuf>,
    pub(super) text: String,
}

impl Written {
    /// Reads the settings file; the error says in words that it cannot be read. Blocks.
    pub(super) fn read(handle: &Handle) -> Result<Self, String> {
        let Some(settings) = handle.inner.settings.get() else {
            let view = |it: &View| {
                let (name, query, within) = (it.name.clone(), it.query.clone(), it.within.clone());
                NewView { name, query, title: Some(it.title.clone()), within }.lines()
            };
            let views: Vec<String> = handle.config().views.all().map(view).collect();
            let text = format!("name = \"none\"\ndata = \"none\"\n{}", views.join("\n"));
            return Ok(Self { file: None, text });
        };
        match fs::read_to_string(&settings.path) {
            Ok(text) => Ok(Self { file: Some(settings.path.clone()), text }),
            Err(error) => Err(format!("{} cannot be read: {error}", settings.file)),
        }
    }
}

/// All data of the page of the views.
#[derive(Debug, Default, Serialize)]
pub(super) struct ViewsPage {
    file: Option<String>,
    /// What was done.
    done: Option<String>,
    list: Option<TreePage<Row>>,
    typed: Typed,
    wrong: Wrong,
    /// Names of views, for the field `within`.
    offered: Vec<String>,
    tried: Option<Tried>,
    /// The name of the trial, if it can be saved.
    trial: Option<String>,
    /// The lines to copy, if nothing can be saved here.
    lines: Option<String>,
}

impl ViewsPage {
    /// Returns a page with what was typed, and no more.
    pub(super) fn refused(typed: Typed, trial: String, wrong: Wrong) -> Self {
        Self { typed, wrong, trial: Some(trial), ..Self::default() }
    }
}

/// A view in the list.
#[derive(Debug, Serialize)]
struct Row {
    name: String,
    title: String,
    query: String,
    /// `None`: it is not known yet.
    objects: Option<u64>,
}

/// What a view would have, and what would change.
#[derive(Debug, Serialize)]
struct Tried {
    query: String,
    objects: u64,
    samples: Vec<Sample>,
    change: Option<Coming>,
    others: Vec<String>,
    others_more: usize,
}

/// What would change of a view that is there.
#[derive(Debug, Serialize)]
struct Coming {
    now: u64,
    come: u64,
    go: u64,
}

/// All data of the page that asks before a view is removed.
#[derive(Debug, Default, Serialize)]
pub(super) struct RemovalPage {
    pub(super) name: String,
    pub(super) wrong: Wrong,
    pub(super) file: Option<String>,
    /// `None`: whoever asks may not know.
    pub(super) known: Option<Known>,
}

/// Facts about a view.
#[derive(Debug, Serialize)]
pub(super) struct Known {
    title: String,
    objects: u64,
    leaning: BTreeSet<String>,
}

/// Answers `GET /views` with the page or JSON.
pub(super) async fn views(State(handle): State<Handle>, uri: Uri, headers: HeaderMap) -> Response {
    let asked = Parameters::read(uri.query().unwrap_or_default().as_bytes());
    let wants = match asked.get("format") {
        "json" => Wants::Json,
        "html" => Wants::Html,
        _ => Wants::of(uri.path(), &headers),
    };
    if wants == Wants::Html {
        return show(handle, asked, Wrong::new()).await;
    }
    let pages = handle.inner.admin_pages.clone();
    let read = move || {
        let views = handle.config().views.clone();
        handle.view_status(&views)
    };
    match blocking("views", read).await {
        Ok(views) => axum::Json(views).into_response(),
        Err(error) => failed(&pages, wants, &error),
    }
}

/// Answers `GET /views/removing?name=NAME`.
pub(super) async fn removing(State(handle): State<Handle>, uri: Uri) -> Response {
    let asked = Parameters::read(uri.query().unwrap_or_default().as_bytes());
    show_removal(handle, asked.get("name").to_owned(), Wrong::new()).await
}

/// Answers with the page; `wrong` is why something was not saved.
pub(super) async fn show(handle: Handle, asked: Parameters, wrong: Wrong) -> Response {
    let pages = handle.inner.admin_pages.clone();
    let is_refused = !wrong.is_empty();
    match blocking("page of views", move || page(&handle, &asked, wrong)).await {
        Ok(page) => {
            let status = match &page.wrong {
                _ if is_refused => StatusCode::CONFLICT,
                none if none.is_empty() => StatusCode::OK,
                of_the_file if of_the_file.contains_key("file") => {
                    StatusCode::INTERNAL_SERVER_ERROR
                }
                _ => StatusCode::BAD_REQUEST,
            };
            pages.respond(status, "edit-views.html", &page)
        }
        Err(error) => failed(&pages, Wants::Html, &error),
    }
}

/// Answers with the page that asks before a view is removed; `wrong` is why it was not.
pub(super) async fn show_removal(handle: Handle, name: String, wrong: Wrong) -> Response {
    let pages = handle.inner.admin_pages.clone();
    match blocking("page of a view", move || removal(&handle, name, wrong)).await {
        Ok(Some(page)) => {
            let is_well = page.wrong.is_empty();
            let status = if is_well { StatusCode::OK } else { StatusCode::CONFLICT };
            pages.respond(status, "remove-view.html", &page)
        }
        Ok(None) => {
            let failure = Failure::not_found("There is no view of this name.");
            pages.fail(Wants::Html, &failure)
        }
        Err(error) => failed(&pages, Wants::Html, &error),
    }
}

fn failed(pages: &web::Pages, wants: Wants, error: &Error) -> Response {
    tracing::error!(%error, "request failed");
    pages.fail(wants, &Failure::internal())
}

/// Returns the page. Blocks.
fn page(handle: &Handle, asked: &Parameters, wrong: Wrong) -> Result<ViewsPage, Error> {
    let views = handle.config().views.clone();
    let mut page = ViewsPage { wrong, done: done(&views, asked), ..ViewsPage::default() };
    let written = match Written::read(handle) {
        Ok(written) => Some(written),
        Err(message) => {
            page.wrong.insert("file", message);
            None
        }
    };
    let known = written.as_ref().map(|it| edit::views_in(&it.text)).unwrap_or_default();
    page.offered = known.iter().take(OFFERED_MAX).map(|it| it.name.clone()).collect();
    page.list = Some(list(handle, &views, asked)?);
    let chosen = || known.iter().find(|it| it.name == asked.get("edit")).map(Typed::from_view);
    let typed = Typed::of(asked);
    page.typed = typed.clone().or_else(chosen).unwrap_or_default();
    let (Some(typed), Some(written)) = (typed, written) else { return Ok(page) };
    match typed.edited(&written.text) {
        Ok(edited) => {
            page.tried = match tried(handle, &views, (&edited, &typed.name)) {
                Err(error @ (Error::Late | Error::Query(_))) => {
                    page.wrong.insert("query", error.to_string());
                    return Ok(page);
                }
                tried => tried?,
            };
            page.file = written.file.map(|it| it.display().to_string());
            let trial = typed.trial(&written.text);
            let is_saved = page.file.is_some();
            page.trial = is_saved.then_some(trial);
            page.lines = (!is_saved).then(|| typed.view().lines());
        }
        Err(mistakes) => page.wrong.extend(mistakes),
    }
    Ok(page)
}

/// Returns what was done, as far as it is true.
fn done(views: &Views, asked: &Parameters) -> Option<String> {
    let (saved, removed) = (asked.get("saved"), asked.get("removed"));
    if let Some(view) = views.get(saved) {
        return Some(format!("The view {} is saved, and in force.", view.name));
    }
    let is_gone = wrong_name(removed).is_none() && views.get(removed).is_none();
    is_gone.then(|| format!("There is no view {removed} any more."))
}

/// Returns a page of the list.
fn list(handle: &Handle, views: &Views, asked: &Parameters) -> Result<TreePage<Row>, Error> {
    let objects = handle.objects_of(views)?;
    let row = |view: &View| Row {
        name: view.name.clone(),
        title: view.title.clone(),
        query: view.query.clone(),
        objects: objects.get(&view.name).copied(),
    };
    Ok(tree::page(views.visible(None), asked.get("page").parse().unwrap_or(1), row))
}

/// Returns what a view of edited settings has, and what differs from the present views.
fn tried(
    handle: &Handle,
    now: &Views,
    (edited, name): (&str, &str),
) -> Result<Option<Tried>, Error> {
    let then = Config::parse(edited).map(|it| it.views).unwrap_or_default();
    let Some(view) = then.get(name) else { return Ok(None) };
    let (objects, samples) = handle.found(&view.whole, SAMPLES)?;
    let count = |query: &Query| handle.found(query, 0).map(|it| it.0);
    let compare = |old: &Query| {
        let both = Query::joined([old, &view.whole].map(Clone::clone));
        let (now, both) = (count(old)?, count(&both)?);
        let (come, go) = (objects.saturating_sub(both), now.saturating_sub(both));
        Ok::<_, Error>(Coming { now, come, go })
    };
    let change = now.get(name).map(|it| compare(&it.whole)).transpose()?;
    let differs =
        |it: &&View| it.name != name && now.get(&it.name).is_some_and(|old| old.whole != it.whole);
    let mut others: Vec<String> = then.all().filter(differs).map(|it| it.name.clone()).collect();
    let others_more = others.len().saturating_sub(NAMED_MAX);
    others.truncate(NAMED_MAX);
    let query = view.whole.to_string();
    Ok(Some(Tried { query, objects, samples, change, others, others_more }))
}

/// Returns the page that asks before a view is removed; `None`: there is no such view. Blocks.
fn removal(handle: &Handle, name: String, wrong: Wrong) -> Result<Option<RemovalPage>, Error> {
    let views = handle.config().views.clone();
    let mut page = RemovalPage { wrong, ..RemovalPage::default() };
    let text = match Written::read(handle) {
        Ok(Written { file, text }) => {
            page.file = file.map(|it| it.display().to_string());
            text
        }
        Err(message) => {
            page.wrong.insert("file", message);
            String::new()
        }
    };
    let Some(view) = views.get(&name) else { return Ok(None) };
    let objects = handle.found(&view.whole, 0)?.0;
    let (title, leaning) = (view.title.clone(), leaning_on(&text, &name));
    page.known = Some(Known { title, objects, leaning });
    page.name = name;
    Ok(Some(page))
}

/// Returns the address of the page with one parameter.
pub(super) fn address(pages: &web::Pages, name: &str, value: &str) -> String {
    let query = form_urlencoded::Serializer::new(String::new()).append_pair(name, value).finish();
    format!("{}views?{query}", pages.site().base)
}
