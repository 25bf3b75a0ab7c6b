//! A small web site on this machine, whose pages a test changes.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use gatherer::Config;
use gatherer::config::Watch;
use gatherer::spec::{Root, Web};
use net::client::Proxy;
use net::clock;
use net::server::{self, Limits, Mode};
use net::shutdown::Shutdown;
use soif::digest::Md5;
use tokio::sync::Notify;
use url::Url;

use super::{Bench, Tree};

/// What the site answers for one path.
#[derive(Clone, Debug)]
pub(crate) struct Page {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) body: Vec<u8>,
}

/// A request, as the site saw it.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) at: Instant,
    /// The path and query; of a request to a proxy the whole URL.
    pub(crate) target: String,
    pub(crate) headers: HeaderMap,
}

#[derive(Debug, Default)]
struct Shared {
    /// Pages by path and query; all others are not found.
    pages: BTreeMap<String, Page>,
    /// The answer for all pages, if there is one.
    all: Option<Page>,
    /// The paths that were asked for, with the status of the answer.
    asked: Vec<(String, u16)>,
    /// All requests, in order.
    seen: Vec<Seen>,
    /// The headers of the last request, and of the last one for each path.
    last: HeaderMap,
    last_of: BTreeMap<String, HeaderMap>,
    /// Paths with this text are not answered.
    stalled: Option<String>,
}

pub(crate) struct Site {
    pub(crate) url: Url,
    shared: Arc<Mutex<Shared>>,
    stalling: Arc<Notify>,
    shutdown: Shutdown,
}

impl Site {
    /// Serves pages of HTML by path.
    pub(crate) async fn start(pages: &[(&str, &str)]) -> Self {
        Self::start_at("127.0.0.1:0", pages).await
    }

    /// Serves them at an address.
    pub(crate) async fn start_at(address: &str, pages: &[(&str, &str)]) -> Self {
        Self::start_by(address, Mode::Origin, pages).await
    }

    /// Is a proxy, which answers requests for any host by the path alone.
    pub(crate) async fn start_proxy(pages: &[(&str, &str)]) -> Self {
        Self::start_by("127.0.0.1:0", Mode::Proxy, pages).await
    }

    async fn start_by(address: &str, mode: Mode, pages: &[(&str, &str)]) -> Self {
        let (shared, stalling): (Arc<Mutex<Shared>>, Arc<Notify>) = Default::default();
        let shutdown = Shutdown::new();
        let listener = server::bind(address.parse().unwrap()).await.unwrap();
        let url = Url::parse(&format!("http://{}/", listener.local_addr().unwrap())).unwrap();
        let router = Router::new().fallback(answer).with_state((shared.clone(), stalling.clone()));
        let limits = Limits { mode, ..Limits::default() };
        tokio::spawn(server::serve(listener, router, limits, shutdown.clone()));
        let site = Self { url, shared, stalling, shutdown };
        for (path, body) in pages {
            site.set(path, body);
        }
        site
    }

    /// Returns the URL of a page.
    pub(crate) fn at(&self, path: &str) -> String {
        self.url.join(path).unwrap().into()
    }

    /// Sets a page.
    pub(crate) fn set(&self, path: &str, body: &str) {
        self.answer(path, 200, &[("content-type", "text/html")], body);
    }

    /// Sets any answer.
    pub(crate) fn answer(
        &self,
        path: &str,
        status: u16,
        headers: &[(&'static str, &str)],
        body: &str,
    ) {
        let page = page(status, headers, body);
        self.shared.lock().unwrap().pages.insert(path.to_owned(), page);
    }

    /// Sets any answer with this body.
    pub(crate) fn answer_bytes(&self, path: &str, headers: &[(&'static str, &str)], body: Vec<u8>) {
        let page = Page { body, ..page(200, headers, "") };
        self.shared.lock().unwrap().pages.insert(path.to_owned(), page);
    }

    /// Removes a page.
    pub(crate) fn remove(&self, path: &str) {
        self.shared.lock().unwrap().pages.remove(path);
    }

    /// Answers everything but robots.txt like this.
    pub(crate) fn answer_all(&self, status: u16, headers: &[(&'static str, &str)], body: &str) {
        self.shared.lock().unwrap().all = Some(page(status, headers, body));
    }

    /// Leaves paths with this text unanswered.
    pub(crate) fn stall(&self, text: Option<&str>) {
        self.shared.lock().unwrap().stalled = text.map(str::to_owned);
    }

    /// Waits for a request that is left unanswered.
    pub(crate) async fn stalled(&self) {
        self.stalling.notified().await;
    }

    /// Returns all requests so far, in order.
    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.shared.lock().unwrap().seen.clone()
    }

    /// Returns a header of the last request.
    pub(crate) fn last_header(&self, name: &str) -> Option<String> {
        let shared = self.shared.lock().unwrap();
        shared.last.get(name).map(|it| it.to_str().unwrap().to_owned())
    }

    /// Returns a header of the last request for a path.
    pub(crate) fn header_of(&self, path: &str, name: &str) -> Option<String> {
        let shared = self.shared.lock().unwrap();
        shared.last_of.get(path)?.get(name).map(|it| it.to_str().unwrap().to_owned())
    }

    /// Returns the paths that were asked for since the last call, sorted, each with the status of the
    /// answer.
    pub(crate) fn take_asked(&self) -> Vec<(String, u16)> {
        let mut asked = std::mem::take(&mut self.shared.lock().unwrap().asked);
        asked.sort();
        asked
    }
}

/// Returns settings for the site alone, which is asked as fast as it answers.
pub(crate) fn config(tree: &Tree, site: &Site) -> Config {
    let web = Web { delay: Duration::ZERO, grace: Duration::ZERO, ..Web::new(site.url.clone()) };
    Config { watch: Watch::Off, roots: vec![Root::Web(web)], ..tree.config() }
}

/// Returns the settings of the site, the first root.
pub(crate) fn web_of(config: &mut Config) -> &mut Web {
    match config.roots.first_mut() {
        Some(Root::Web(web)) => web,
        other => panic!("{other:?}"),
    }
}

/// Returns settings for a site with a public name, which is reached by a proxy: this one.
pub(crate) fn config_by(tree: &Tree, proxy: &Site, url: &str) -> Config {
    let mut config = config(tree, proxy);
    let web = web_of(&mut config);
    web.url = Url::parse(url).unwrap();
    web.proxy = Some(Proxy::new(proxy.url.clone(), None).unwrap().fetching_https());
    config
}

/// Starts a gatherer of the site, and waits for its first pass.
pub(crate) async fn start(site: &Site) -> Bench {
    let tree = Tree::new();
    let config = config(&tree, site);
    start_with(tree, config).await
}

/// Does the same with other settings.
pub(crate) async fn start_with(tree: Tree, config: Config) -> Bench {
    let bench = Bench::start_with(tree, config).await;
    bench.progress(|it| it.harvests_due == 0).await;
    bench
}

/// Crawls once more.
pub(crate) async fn again(bench: &Bench) {
    let before = bench.crawls().await;
    bench.handle.gather();
    bench.crawled(before + 1).await;
}

impl Drop for Site {
    fn drop(&mut self) {
        self.shutdown.start();
    }
}

fn page(status: u16, headers: &[(&'static str, &str)], body: &str) -> Page {
    let headers = headers.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
    Page { status, headers, body: body.as_bytes().to_vec() }
}

type SiteState = (Arc<Mutex<Shared>>, Arc<Notify>);

async fn answer(
    State((shared, stalling)): State<SiteState>,
    uri: Uri,
    headers: HeaderMap,
) -> Response {
    let at = clock::monotonic();
    let path = uri.path_and_query().map_or_else(String::new, ToString::to_string);
    let is_stalled =
        shared.lock().unwrap().stalled.as_ref().is_some_and(|text| path.contains(text));
    if is_stalled {
        stalling.notify_one();
        std::future::pending::<()>().await;
    }
    let mut shared = shared.lock().unwrap();
    shared.seen.push(Seen { at, target: uri.to_string(), headers: headers.clone() });
    let missing = page(404, &[], "");
    let own = shared.pages.get(&path).unwrap_or(&missing);
    let answer = match &shared.all {
        Some(all) if path != "/robots.txt" => all,
        _ => own,
    };
    let tag = format!("\"{}\"", Md5::of(&answer.body));
    let is_same = answer.status == 200
        && headers.get(header::IF_NONE_MATCH).is_some_and(|it| it.as_bytes() == tag.as_bytes());
    let (status, body) =
        if is_same { (304, Vec::new()) } else { (answer.status, answer.body.clone()) };
    let status_code = StatusCode::from_u16(status).unwrap();
    // Text has the type of text, unless the page says otherwise.
    let mut response = match String::from_utf8(body) {
        Ok(text) => (status_code, text).into_response(),
        Err(other) => (status_code, other.into_bytes()).into_response(),
    };
    for (name, value) in &answer.headers {
        response.headers_mut().insert(*name, value.parse().unwrap());
    }
    if answer.status == 200 {
        response.headers_mut().insert(header::ETAG, tag.parse().unwrap());
    }
    shared.asked.push((path.clone(), status));
    shared.last_of.insert(path, headers.clone());
    shared.last = headers;
    response
}
