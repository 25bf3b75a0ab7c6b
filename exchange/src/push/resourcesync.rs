//! ResourceSync: a collection's objects and changes as documents for clients that follow sitemaps.
//!
//! Source: ANSI/NISO Z39.99-2017; the documents are those of [`oai::resourcesync`].
//!
//! `/.well-known/resourcesync` leads to `/resourcesync/capabilitylist.xml`, which leads to the list
//! of objects and the list of changes. Each list is cut into parts of [`PART_SERIALS`] serials. So
//! a part is found without counting, stays within the size limit of a document, and is the same for
//! every client. A list of several parts is an index of them. Changes reach back as far as
//! tombstones.
//!
//! # Differences from the standard
//!
//! * A change is `updated` or `deleted`, never `created`. The log has only the present record of an
//!   object, and does not show whether the object existed before: compaction drops superseded
//!   versions, and a source that is read anew brings old objects as new ones. A client that has no
//!   copy of the object should treat `updated` as `created`.
//! * Only objects with a web address are listed, not those with other URLs (`oai:`, `file:`).
//! * The list of objects shows the state at each request: objects that change while a client reads
//!   the parts move to the last part, and to the list of changes.

use std::ops::RangeInclusive;
use std::sync::Arc;

use axum::Router;
use axum::extract::{Path, Request, State};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use collection::{Change, Collection, Error, Oid, Scanned, Stamp};
use daemon::gate::Limit;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use net::clock;
use oai::resourcesync::{Capability, ChangeKind, Document, ENTRIES_MAX, Entry, WELL_KNOWN};
use soif::Record;
use tokio::sync::Semaphore;
use url::Url;

use super::notifier::text;
use crate::repository::datestamp;

/// Serials of one part of a list. Each serial gives at most one entry.
pub const PART_SERIALS: u64 = ENTRIES_MAX as u64;

/// Maximum number of documents that are made at once.
const AT_ONCE: usize = 2;

/// Pause that a client is asked for if all turns are taken, in seconds.
const RETRY_SECS: u64 = 10;

/// Folder of the documents, below a daemon's root.
const FOLDER: &str = "resourcesync";

#[derive(Clone)]
struct Pages {
    collection: Collection,
    base_url: Option<Url>,
    turns: Arc<Semaphore>,
    /// Serials of one part: [`PART_SERIALS`], or fewer in tests.
    part_serials: u64,
}

/// Returns the routes of the documents of `collection`. `base_url` is the daemon's public address;
/// without it the requested host is used. While `open` returns false, requests are answered as if
/// the documents did not exist; so are those of clients that are limited to a view, since these documents are of all.
pub fn routes(
    collection: Collection,
    base_url: Option<Url>,
    open: impl Fn() -> bool + Clone + Send + Sync + 'static,
) -> Router {
    let turns = Arc::new(Semaphore::new(AT_ONCE));
    let pages = Pages { collection, base_url, turns, part_serials: PART_SERIALS };
    let answer = move |request: Request, next: Next| {
        let is_open = open() && request.extensions().get::<Limit>().is_none();
        async move { if is_open { next.run(request).await } else { closed() } }
    };
    router(pages).route_layer(middleware::from_fn(answer))
}

fn router(pages: Pages) -> Router {
    Router::new()
        .route(WELL_KNOWN, get(description))
        .route("/resourcesync/capabilitylist.xml", get(capabilities))
        .route("/resourcesync/{list}", get(list_or_index))
        .route("/resourcesync/{list}/{part}", get(part))
        .with_state(pages)
}

async fn description(State(pages): State<Pages>, headers: HeaderMap) -> Response {
    match pages.names(&headers) {
        Some(names) => xml(&Document::description(&names.list(Capability::CapabilityList))),
        None => no_host(),
    }
}

async fn capabilities(State(pages): State<Pages>, headers: HeaderMap) -> Response {
    let Some(names) = pages.names(&headers) else { return no_host() };
    let lists = [Capability::ResourceList, Capability::ChangeList].map(|it| (it, names.list(it)));
    xml(&Document::capability_list(&names.description(), &lists))
}

/// Serves a list, or the index of its parts.
async fn list_or_index(
    State(pages): State<Pages>,
    Path(list): Path<String>,
    headers: HeaderMap,
) -> Response {
    let Some(names) = pages.names(&headers) else { return no_host() };
    let Some(capability) = list.strip_suffix(".xml").and_then(list_by_name) else {
        return no_such_list();
    };
    let parts = pages.parts(capability);
    if parts.start() == parts.end() {
        return pages.list(names, capability, *parts.end(), None).await;
    }
    let index = move |pages: &Pages| {
        let mut index = pages.empty_document(&names, capability, 0)?;
        index.is_index = true;
        for part in parts {
            index.push(Entry::at(names.part(capability, part)));
        }
        Ok(index)
    };
    pages.respond_with(index).await
}

async fn part(
    State(pages): State<Pages>,
    Path((list, part)): Path<(String, String)>,
    headers: HeaderMap,
) -> Response {
    let Some(names) = pages.names(&headers) else { return no_host() };
    let number = part.strip_suffix(".xml").and_then(|it| it.parse::<u64>().ok());
    let (Some(capability), Some(number)) = (list_by_name(&list), number) else {
        return no_such_list();
    };
    if !pages.parts(capability).contains(&number) {
        return no_such_list();
    }
    let index = names.list(capability);
    pages.list(names, capability, number, Some(index)).await
}

fn list_by_name(name: &str) -> Option<Capability> {
    [Capability::ResourceList, Capability::ChangeList].into_iter().find(|it| it.name() == name)
}

struct Addresses(Url);

impl Addresses {
    fn at(&self, path: &str) -> String {
        self.0.join(path).map_or_else(|_| path.to_owned(), String::from)
    }

    fn description(&self) -> String {
        self.at(WELL_KNOWN.trim_start_matches('/'))
    }

    fn list(&self, capability: Capability) -> String {
        self.at(&format!("{FOLDER}/{}.xml", capability.name()))
    }

    fn part(&self, capability: Capability, part: u64) -> String {
        self.at(&format!("{FOLDER}/{}/{part}.xml", capability.name()))
    }
}

impl Pages {
    fn names(&self, headers: &HeaderMap) -> Option<Addresses> {
        let base = match &self.base_url {
            Some(base_url) => base_url.clone(),
            None => {
                let host = headers.get(header::HOST)?.to_str().ok()?;
                Url::parse(&format!("http://{host}/")).ok()?
            }
        };
        Some(Addresses(base))
    }

    /// Returns the numbers of a list's parts. Changes before the horizon are incomplete, so their
    /// parts are left out.
    fn parts(&self, capability: Capability) -> RangeInclusive<u64> {
        let last = self.collection.version().serial.saturating_sub(1) / self.part_serials;
        let first = match capability {
            Capability::ChangeList => self.collection.horizon() / self.part_serials,
            _ => 0,
        };
        // An index names at most this many parts, which have room for 2.5 billion serials. If the
        // log is longer, its oldest parts are left out.
        let fewest = last.saturating_sub(ENTRIES_MAX as u64 - 1);
        first.max(fewest).min(last)..=last
    }

    /// Returns a list without entries, beginning after `serial`. Blocks.
    fn empty_document(
        &self,
        names: &Addresses,
        capability: Capability,
        serial: u64,
    ) -> Result<Document, Error> {
        let now = Stamp(clock::now_ms());
        let up = names.list(Capability::CapabilityList);
        if capability != Capability::ChangeList {
            return Ok(Document::resource_list(&up, datestamp(now)));
        }
        // A client needs the list of objects if its copy is older than this change, or else only
        // the changes.
        let first = self.collection.scan(serial.max(self.collection.horizon()))?.next();
        let since = first.transpose()?.map_or(now, |it| it.stamp);
        Ok(Document::change_list(&up, datestamp(since)))
    }

    async fn list(
        self,
        names: Addresses,
        capability: Capability,
        part: u64,
        index: Option<String>,
    ) -> Response {
        let list = move |pages: &Self| {
            let first = part.saturating_mul(pages.part_serials);
            let mut document = pages.empty_document(&names, capability, first)?;
            document.index = index;
            let entries = match capability {
                Capability::ChangeList => pages.changes(part)?,
                _ => pages.objects(part)?,
            };
            for entry in entries {
                document.push(entry);
            }
            Ok(document)
        };
        self.respond_with(list).await
    }

    /// Makes a document in one of the turns, or refuses if all are taken. The work continues even
    /// if the client hangs up, and the turn ends with the work.
    async fn respond_with(
        self,
        document: impl FnOnce(&Self) -> Result<Document, Error> + Send + 'static,
    ) -> Response {
        let Ok(turn) = self.turns.clone().try_acquire_owned() else { return come_again() };
        let make = move || {
            let _turn = turn;
            Ok::<_, Error>(document(&self)?.to_xml())
        };
        let error = match tokio::task::spawn_blocking(make).await {
            Ok(Ok(text)) => return xml_response(text),
            Ok(Err(error)) => error.to_string(),
            Err(error) => error.to_string(),
        };
        tracing::error!(%error, "a list of resources cannot be made");
        come_again()
    }

    /// Returns the log's changes of a part, in order.
    fn scan(&self, part: u64) -> Result<impl Iterator<Item = Result<Scanned, Error>>, Error> {
        let since = part.saturating_mul(self.part_serials);
        let last = since.saturating_add(self.part_serials);
        let within = move |it: &Result<Scanned, Error>| !matches!(it, Ok(it) if last < it.serial);
        self.collection.is_whole(since + 1, last)?;
        Ok(self.collection.scan(since)?.take_while(within))
    }

    /// Returns the entries of a part of the changes. Blocks.
    fn changes(&self, part: u64) -> Result<Vec<Entry>, Error> {
        let mut entries = Vec::new();
        let horizon = self.collection.horizon();
        for scanned in self.scan(part)? {
            let scanned = scanned?;
            let stamp = Some(datestamp(scanned.stamp));
            let (happened, entry) = match &scanned.change {
                _ if scanned.serial <= horizon => continue,
                Change::Update(record) => (ChangeKind::Updated, resource(record)),
                // This tombstone has no object: it only carries a notice.
                Change::Suppress(oid, notice) if *oid == notice.carrier() => continue,
                Change::Delete(oid) | Change::Withdraw(oid, _) | Change::Suppress(oid, _) => {
                    (ChangeKind::Deleted, Entry::at(&*oid.url))
                }
                Change::Refresh(..) | Change::Confirm { .. } => continue,
            };
            let (lastmod, datetime, change) = (stamp, stamp, Some(happened));
            if is_of_the_web(&entry.loc) {
                entries.push(Entry { lastmod, datetime, change, ..entry });
            }
        }
        Ok(entries)
    }

    /// Returns the entries of a part of the objects. Blocks.
    fn objects(&self, part: u64) -> Result<Vec<Entry>, Error> {
        let mut entries = Vec::new();
        for scanned in self.scan(part)? {
            let scanned = scanned?;
            let Change::Update(record) = &scanned.change else { continue };
            let Some(oid) = Oid::of(record).filter(|it| is_of_the_web(&it.url)) else { continue };
            // Skip superseded changes.
            if self.collection.serial(&oid)? == Some(scanned.serial) {
                let lastmod = Some(datestamp(scanned.stamp));
                entries.push(Entry { lastmod, ..resource(record) });
            }
        }
        Ok(entries)
    }
}

/// Returns whether a sitemap may contain the URL.
fn is_of_the_web(url: &str) -> bool {
    let scheme = url.split_once("://").map_or("", |(scheme, _)| scheme);
    ["http", "https"].iter().any(|it| scheme.eq_ignore_ascii_case(it))
}

/// Returns the entry of a record's object.
fn resource(record: &Record) -> Entry {
    let value = |name| record.text(name).map(|it| it.trim().to_owned());
    let is_md5 = |it: &String| it.len() == 32 && it.bytes().all(|it| it.is_ascii_hexdigit());
    Entry {
        md5: value("MD5").filter(is_md5),
        length: value("File-Size").and_then(|it| it.parse().ok()),
        ..Entry::at(&*record.url)
    }
}

fn xml(document: &Document) -> Response {
    xml_response(document.to_xml())
}

fn xml_response(text: String) -> Response {
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static("application/xml")),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-cache")),
    ];
    (headers, text).into_response()
}

fn closed() -> Response {
    text(StatusCode::NOT_FOUND, "there are no lists here: [oai] has enabled = false")
}

fn no_such_list() -> Response {
    text(StatusCode::NOT_FOUND, "no such list; /resourcesync/capabilitylist.xml names all lists")
}

fn no_host() -> Response {
    text(StatusCode::BAD_REQUEST, "the request does not say which host it is for")
}

fn come_again() -> Response {
    let message = "the list cannot be made now; try again later";
    let mut response = text(StatusCode::SERVICE_UNAVAILABLE, message);
    response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(RETRY_SECS));
    response
}

#[cfg(test)]
mod tests;
