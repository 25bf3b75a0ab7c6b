//! Whether an address is an OAI-PMH repository or a web site: asked for once, and remembered in the
//! data folder.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::Context as _;
use crawl::robots::{PRODUCT, Rules};
use crawl::walls;
use net::client::{Client, Request, Settings, redirect};
use serde::{Deserialize, Serialize};
use url::Url;

/// Name of the file in the data folder.
const FILE: &str = "addresses.json";

/// Maximum number of redirects of one question.
const REDIRECTS_MAX: u32 = 5;

/// Number of bytes of an answer that are looked at.
const FRONT_BYTES: usize = 64 * 1024;

/// What is at an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(super) enum Kind {
    /// A web site, to be crawled.
    Web,
    /// An OAI-PMH repository, to be harvested.
    Oai,
}

/// Returns what is at each address: as `named`, as remembered in the data folder, or as its host
/// answers. A host that does not answer counts as a web site this time.
pub(super) async fn kinds(
    urls: &[Url],
    named: Option<Kind>,
    data: &Path,
) -> anyhow::Result<Vec<(Url, Kind)>> {
    let path = data.join(FILE);
    let known = fs::read(&path).ok().and_then(|it| serde_json::from_slice(&it).ok());
    let mut known: BTreeMap<Url, Kind> = known.unwrap_or_default();
    let (before, mut all) = (known.clone(), Vec::with_capacity(urls.len()));
    for url in urls {
        let kind = match named.or_else(|| known.get(url).copied()) {
            Some(kind) => Some(kind),
            None => ask(url).await,
        };
        known.extend(kind.map(|it| (url.clone(), it)));
        all.push((url.clone(), kind.unwrap_or(Kind::Web)));
    }
    if known != before {
        let text = serde_json::to_vec(&known)?;
        fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(all)
}

/// Asks the host what is at an address, if its robots.txt allows the question; `None` if there is no
/// answer that tells.
async fn ask(url: &Url) -> Option<Kind> {
    if url.query().is_some() {
        return Some(Kind::Web);
    }
    let client = Client::new(Settings { allow_private: true, ..Settings::default() });
    let mut identify = url.clone();
    identify.set_query(Some("verb=Identify"));
    let robots = url.join("/robots.txt").ok()?;
    let (status, body) = front(&client, robots).await?;
    let is_wall = walls::recognize(status, &http::HeaderMap::new(), &body).is_some();
    match status {
        200..=299 if !is_wall => {
            let rules = Rules::parse(&body, PRODUCT);
            if rules.rule(&identify).is_some_and(|it| !it.allow) {
                return Some(Kind::Web);
            }
        }
        429 | 500.. => return None,
        _ if is_wall => return None,
        _ => {}
    }
    let (status, body) = front(&client, identify).await?;
    match status {
        200..=299 => {
            let text = String::from_utf8_lossy(&body);
            Some(if text.contains("<OAI-PMH") { Kind::Oai } else { Kind::Web })
        }
        429 | 500.. => None,
        _ => Some(Kind::Web),
    }
}

/// Returns the status and the front of the body of an answer. Redirects are followed at the same host
/// alone.
async fn front(client: &Client, url: Url) -> Option<(u16, Vec<u8>)> {
    let mut url = url;
    let mut left = REDIRECTS_MAX;
    let mut response = loop {
        let request = Request { keeps_redirect: true, ..Request::get(url.clone()) };
        let response = client.send(request).await.ok()?;
        match redirect(&url, response.status, &response.headers) {
            Ok(Some(to)) if 0 < left && to.host_str() == url.host_str() => url = to,
            _ => break response,
        }
        left -= 1;
    };
    let mut body = Vec::new();
    while let Ok(Some(piece)) = response.chunk().await {
        body.extend_from_slice(&piece);
        if FRONT_BYTES <= body.len() {
            break;
        }
    }
    Some((response.status.as_u16(), body))
}

#[cfg(test)]
mod tests {
    use axum::Router;
    use axum::routing::get;
    use net::server::{self, Limits};
    use net::shutdown::Shutdown;

    use super::*;

    #[tokio::test]
    async fn the_host_says_what_it_is_and_that_is_remembered() {
        let shutdown = Shutdown::new();
        let listener = server::bind("127.0.0.1:0".parse().unwrap()).await.unwrap();
        let base = Url::parse(&format!("http://{}/", listener.local_addr().unwrap())).unwrap();
        let robots = "User-agent: *\nDisallow: /shy?verb=";
        let router = Router::new()
            .route("/robots.txt", get(move || async move { robots }))
            .route("/oai", get(async || "<?xml version='1.0'?><OAI-PMH xmlns='x'>"))
            .route("/shy", get(async || "<OAI-PMH>"))
            .route("/page", get(async || "<html>"));
        let serving =
            tokio::spawn(server::serve(listener, router, Limits::default(), shutdown.clone()));
        let data = tempfile::tempdir().unwrap();
        let urls: Vec<Url> = ["oai", "shy", "page", "none", "oai?x=1"]
            .iter()
            .map(|it| base.join(it).unwrap())
            .collect();
        let found = kinds(&urls, None, data.path()).await.unwrap();
        let found: Vec<Kind> = found.into_iter().map(|it| it.1).collect();
        let (oai, web) = (Kind::Oai, Kind::Web);
        assert_eq!(found, [oai, web, web, web, web]);
        let named = kinds(&urls[1..2], Some(oai), data.path()).await.unwrap();
        assert_eq!(named[0].1, oai);
        shutdown.start();
        drop(serving.await);
        let remembered = kinds(&urls[..2], None, data.path()).await.unwrap();
        assert_eq!((remembered[0].1, remembered[1].1), (oai, oai));
        // A host that does not answer is asked again.
        let late = base.join("late").unwrap();
        assert_eq!(kinds(&[late], None, data.path()).await.unwrap()[0].1, web);
        let stored = fs::read_to_string(data.path().join(FILE)).unwrap();
        assert!(!stored.contains("late") && stored.contains("oai"), "{stored}");
    }
}
