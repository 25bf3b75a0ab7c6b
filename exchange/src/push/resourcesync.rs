//! A collection's objects and their changes as the documents of ResourceSync: for whoever follows sitemaps.
//!
//! Source: ANSI/NISO Z39.99-2017; see [`oai::resourcesync`] for the documents.
//!
//! `/.well-known/resourcesync` leads to `/resourcesync/capabilitylist.xml`, and that to the list of objects
//! and the list of changes. Either is cut by serials, [`PART_SERIALS`] to a part, so that a part is found
//! without counting, holds no more than a document may, and is the same for everybody who asks; where there
//! is more than one part, the list is an index of them. Changes reach back as far as tombstones are kept.
//!
//! # Differences from the standard
//!
//! * A change is `updated` or `deleted`, never `created`. The log keeps of an object what it is now, and
//!   not whether it was there before: versions that others have taken the place of go with a compaction,
//!   and a source that is read anew brings old objects as if they were new. Who has no copy takes
//!   `updated` for `created`.
//! * Listed is what has an address on the web: what is named otherwise (`oai:`, `file:`) is left out.
//! * The list of objects is as of when it is asked for: what changes while its parts are read moves to the
//!   last of them, and the list of changes has it.

use std::ops::RangeInclusive;
use std::sync::Arc;

use axum::Router;
use axum::extract::{Path, Request, State};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use collection::{Change, Collection, Error, Oid, Scanned, Stamp};
use http::{HeaderMap, HeaderValue, StatusCode, header};
use net::clock;
use oai::resourcesync::{Capability, Document, ENTRIES_MAX, Entry, Happened, WELL_KNOWN};
use oai::{Datestamp, Granularity};
use soif::Record;
use tokio::sync::Semaphore;
use url::Url;

use super::notifier::text;

/// Serials of one part of a list: each is at most one entry.
pub const PART_SERIALS: u64 = ENTRIES_MAX as u64;

/// Most lists that are made at once.
const AT_ONCE: usize = 2;

/// When one who found all turns taken may come again, in seconds.
const RETRY_SECS: u64 = 10;

/// Where the documents are, below a daemon's root.
const FOLDER: &str = "resourcesync";

#[derive(Clone)]
struct Pages {
    collection: Collection,
    base_url: Option<Url>,
    turns: Arc<Semaphore>,
    /// Of one part; [`PART_SERIALS`].
    part_serials: u64,
}

/// The routes of the documents of `collection`, of a daemon that others reach at `base_url`, or else under
/// the name that they ask by. There is nothing at them while it is not `open`.
pub fn routes(
    collection: Collection,
    base_url: Option<Url>,
    open: impl Fn() -> bool + Clone + Send + Sync + 'static,
) -> Router {
    let turns = Arc::new(Semaphore::new(AT_ONCE));
    let pages = Pages { collection, base_url, turns, part_serials: PART_SERIALS };
    let answer = move |request: Request, next: Next| {
        let is_open = open();
        async move { if is_open { next.run(request).await } else { closed() } }
    };
    router(pages).route_layer(middleware::from_fn(answer))
}

fn router(pages: Pages) -> Router {
    Router::new()
        .route(WELL_KNOWN, get(description))
        .route("/resourcesync/capabilitylist.xml", get(capabilities))
        .route("/resourcesync/{list}", get(whole))
        .route("/resourcesync/{list}/{part}", get(part))
        .with_state(pages)
}

async fn description(State(pages): State<Pages>, headers: HeaderMap) -> Response {
    match pages.names(&headers) {
        Some(names) => xml(&Document::description(&names.capabilities())),
        None => no_host(),
    }
}

async fn capabilities(State(pages): State<Pages>, headers: HeaderMap) -> Response {
    let Some(names) = pages.names(&headers) else { return no_host() };
    let [resources, changes] =
        [Capability::ResourceList, Capability::ChangeList].map(|it| (it, names.list(it)));
    let lists = [(resources.0, resources.1.as_str()), (changes.0, changes.1.as_str())];
    xml(&Document::capability_list(&names.description(), &lists))
}

/// A list, or the index of its parts.
async fn whole(
    State(pages): State<Pages>,
    Path(list): Path<String>,
    headers: HeaderMap,
) -> Response {
    let Some(names) = pages.names(&headers) else { return no_host() };
    let Some(capability) = list.strip_suffix(".xml").and_then(list_named) else {
        return no_such_list();
    };
    let parts = pages.parts(capability);
    if parts.start() == parts.end() {
        return pages.list(names, capability, *parts.end(), None).await;
    }
    let index = move |pages: &Pages| {
        let mut index = pages.begun(&names, capability, 0)?;
        index.is_index = true;
        for part in parts {
            index.push(Entry::at(names.part(capability, part)));
        }
        Ok(index)
    };
    pages.made(index).await
}

async fn part(
    State(pages): State<Pages>,
    Path((list, part)): Path<(String, String)>,
    headers: HeaderMap,
) -> Response {
    let Some(names) = pages.names(&headers) else { return no_host() };
    let number = part.strip_suffix(".xml").and_then(|it| it.parse::<u64>().ok());
    let (Some(capability), Some(number)) = (list_named(&list), number) else {
        return no_such_list();
    };
    if !pages.parts(capability).contains(&number) {
        return no_such_list();
    }
    let index = names.list(capability);
    pages.list(names, capability, number, Some(index)).await
}

fn list_named(name: &str) -> Option<Capability> {
    let is_list = |it: &Capability| matches!(it, Capability::ResourceList | Capability::ChangeList);
    Capability::named(name).filter(is_list)
}

/// What the documents are called.
struct Names {
    base: Url,
}

impl Names {
    fn at(&self, path: &str) -> String {
        self.base.join(path).map_or_else(|_| path.to_owned(), String::from)
    }

    fn description(&self) -> String {
        self.at(WELL_KNOWN.trim_start_matches('/'))
    }

    fn capabilities(&self) -> String {
        self.at(&format!("{FOLDER}/{}.xml", Capability::CapabilityList.name()))
    }

    fn list(&self, capability: Capability) -> String {
        self.at(&format!("{FOLDER}/{}.xml", capability.name()))
    }

    fn part(&self, capability: Capability, part: u64) -> String {
        self.at(&format!("{FOLDER}/{}/{part}.xml", capability.name()))
    }
}

impl Pages {
    fn names(&self, headers: &HeaderMap) -> Option<Names> {
        let base = match &self.base_url {
            Some(base_url) => base_url.clone(),
            None => {
                let host = headers.get(header::HOST)?.to_str().ok()?;
                Url::parse(&format!("http://{host}/")).ok()?
            }
        };
        Some(Names { base })
    }

    /// The parts of a list: the numbers of those that there are. Of changes, those before the horizon are
    /// not all there.
    fn parts(&self, capability: Capability) -> RangeInclusive<u64> {
        let last = self.collection.version().serial.saturating_sub(1) / self.part_serials;
        let first = match capability {
            Capability::ChangeList => self.collection.horizon() / self.part_serials,
            _ => 0,
        };
        // More parts than an index can name are more objects than can be kept.
        let fewest = last.saturating_sub(ENTRIES_MAX as u64 - 1);
        first.max(fewest).min(last)..=last
    }

    /// A list without its entries, of what follows `serial`. Blocks.
    fn begun(&self, names: &Names, capability: Capability, serial: u64) -> Result<Document, Error> {
        let now = Stamp(clock::now_ms());
        let up = names.capabilities();
        if capability != Capability::ChangeList {
            return Ok(Document::resource_list(&up, datestamp(now)));
        }
        // Who came before that needs the list of objects, and who came since does not.
        let first = self.collection.scan(serial.max(self.collection.horizon()))?.next();
        let since = first.transpose()?.map_or(now, |it| it.stamp);
        Ok(Document::change_list(&up, datestamp(since)))
    }

    async fn list(
        self,
        names: Names,
        capability: Capability,
        part: u64,
        index: Option<String>,
    ) -> Response {
        let list = move |pages: &Self| {
            let first = part.saturating_mul(pages.part_serials);
            let mut document = pages.begun(&names, capability, first)?;
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
        self.made(list).await
    }

    /// Makes a document, in one of the turns. Who does not wait for it has it made all the same, so the turn
    /// ends with the making.
    async fn made(
        self,
        document: impl FnOnce(&Self) -> Result<Document, Error> + Send + 'static,
    ) -> Response {
        let Ok(turn) = self.turns.clone().try_acquire_owned() else { return come_again() };
        let make = move || {
            let _turn = turn;
            Ok::<_, Error>(document(&self)?.written())
        };
        match tokio::task::spawn_blocking(make).await {
            Ok(Ok(text)) => written(text),
            Ok(Err(error)) => {
                tracing::error!(%error, "a list of resources cannot be made");
                come_again()
            }
            Err(error) => {
                tracing::error!(%error, "a list of resources cannot be made");
                come_again()
            }
        }
    }

    /// The log's changes of a part, in order.
    fn scan(&self, part: u64) -> Result<impl Iterator<Item = Result<Scanned, Error>>, Error> {
        let since = part.saturating_mul(self.part_serials);
        let last = since.saturating_add(self.part_serials);
        let within = move |it: &Result<Scanned, Error>| !matches!(it, Ok(it) if last < it.serial);
        self.collection.is_whole(since + 1, last)?;
        Ok(self.collection.scan(since)?.take_while(within))
    }

    /// What has changed. Blocks.
    fn changes(&self, part: u64) -> Result<Vec<Entry>, Error> {
        let mut entries = Vec::new();
        let horizon = self.collection.horizon();
        for scanned in self.scan(part)? {
            let scanned = scanned?;
            let stamp = Some(datestamp(scanned.stamp));
            let (happened, entry) = match &scanned.change {
                _ if scanned.serial <= horizon => continue,
                Change::Update(record) => (Happened::Updated, resource(record)),
                // One that is only carried is of no object.
                Change::Suppress(oid, notice) if *oid == notice.carrier() => continue,
                Change::Delete(oid) | Change::Suppress(oid, _) => {
                    (Happened::Deleted, Entry::at(&*oid.url))
                }
                Change::Refresh(_) | Change::Confirm { .. } => continue,
            };
            let (lastmod, datetime, change) = (stamp, stamp, Some(happened));
            if is_of_the_web(&entry.loc) {
                entries.push(Entry { lastmod, datetime, change, ..entry });
            }
        }
        Ok(entries)
    }

    /// What there is. Blocks.
    fn objects(&self, part: u64) -> Result<Vec<Entry>, Error> {
        let mut entries = Vec::new();
        for scanned in self.scan(part)? {
            let scanned = scanned?;
            let Change::Update(record) = &scanned.change else { continue };
            let Some(oid) = Oid::of(record).filter(|it| is_of_the_web(&it.url)) else { continue };
            // Not what a later change has taken the place of.
            if self.collection.serial(&oid)? == Some(scanned.serial) {
                let lastmod = Some(datestamp(scanned.stamp));
                entries.push(Entry { lastmod, ..resource(record) });
            }
        }
        Ok(entries)
    }
}

/// Whether a sitemap may name that.
fn is_of_the_web(url: &str) -> bool {
    let scheme = url.split_once("://").map_or("", |(scheme, _)| scheme);
    ["http", "https"].iter().any(|it| scheme.eq_ignore_ascii_case(it))
}

/// What a record says of its object.
fn resource(record: &Record) -> Entry {
    let value = |name| record.text(name).map(|it| it.trim().to_owned());
    let is_md5 = |it: &String| it.len() == 32 && it.bytes().all(|it| it.is_ascii_hexdigit());
    Entry {
        md5: value("MD5").filter(is_md5),
        length: value("File-Size").and_then(|it| it.parse().ok()),
        ..Entry::at(&*record.url)
    }
}

fn datestamp(stamp: Stamp) -> Datestamp {
    let secs = i64::try_from(stamp.0 / 1_000).unwrap_or(i64::MAX);
    Datestamp::at(secs, Granularity::Second)
}

fn xml(document: &Document) -> Response {
    written(document.written())
}

fn written(text: String) -> Response {
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static("application/xml")),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-cache")),
    ];
    (headers, text).into_response()
}

fn closed() -> Response {
    text(StatusCode::NOT_FOUND, "nothing is listed here: [oai] has enabled = false")
}

fn no_such_list() -> Response {
    text(
        StatusCode::NOT_FOUND,
        "no such list; /resourcesync/capabilitylist.xml names those there are",
    )
}

fn no_host() -> Response {
    text(StatusCode::BAD_REQUEST, "the request does not say which host it is for")
}

fn come_again() -> Response {
    let message = "the list cannot be made just now; come again";
    let mut response = text(StatusCode::SERVICE_UNAVAILABLE, message);
    response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(RETRY_SECS));
    response
}

#[cfg(test)]
mod tests;
