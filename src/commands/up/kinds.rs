//! Whether an address is an OAI-PMH repository or a web site: asked for once, and remembered in the
//! data folder.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::Context as _;
use crawl::robots::{PRODUCT, Rules};
use crawl::walls;
use gatherer::spec::{Protocol, Repository, Root, Web};
use net::client::{Client, Request, Settings, redirect};
use serde::{Deserialize, Serialize};
use url::Url;

use super::Args;
use crate::output;

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
    /// A web site, FTP folder, Gopher hole or newsgroup, to be crawled.
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
    if url.query().is_some() || Protocol::of(url) != Some(Protocol::Web) {
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

/// Returns the root at an address; of a web site, says by which limits it is gathered.
pub(super) fn root(url: Url, kind: Kind, args: &Args) -> anyhow::Result<Root> {
    if kind == Kind::Oai {
        let base = exchange::source::base_url_of(url.as_str());
        let base = base.with_context(|| {
            format!("{url} is no base URL of an OAI-PMH repository: leave out \"?\" and the rest")
        })?;
        output::note(&format!(
            "{url} is harvested as an OAI-PMH repository; --as web if it is none"
        ));
        return Ok(Root::Repository(Repository::new(base)));
    }
    let delay =
        Duration::try_from_secs_f64(args.delay).context("--delay is a number of seconds")?;
    let count = |it: u64| usize::try_from(it).unwrap_or(usize::MAX);
    let (urls_max, hosts_max) = (count(args.urls_max), count(args.hosts_max));
    let web = Web { urls_max, hosts_max, delay, ..Web::new(url) };
    let (what, other) = match web.protocol() {
        Protocol::Web => ("a web site", "; --as oai if it is a repository"),
        Protocol::Ftp => ("a folder of FTP", ""),
        Protocol::Gopher => ("a Gopher hole", ""),
        Protocol::News => ("a newsgroup", ""),
    };
    output::note(&format!(
        "{} is gathered as {what}: at most {urls_max} objects (--urls-max), {} (--hosts-max), {} s between requests \
         to a host (--delay; none at this machine's own){other}",
        web.url,
        output::counted(args.hosts_max, "host"),
        args.delay,
    ));
    Ok(Root::Web(web))
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead as _, BufReader, Write as _};
    use std::net::TcpListener;
    use std::thread;

    use super::*;

    /// Answers this number of requests by their path, one after the other.
    fn serve(listener: TcpListener, count: usize) {
        for stream in listener.incoming().take(count) {
            let mut stream = stream.unwrap();
            let mut line = String::new();
            let mut reader = BufReader::new(stream.try_clone().unwrap());
            reader.read_line(&mut line).unwrap();
            while reader.read_line(&mut String::new()).unwrap() > 2 {}
            let path = line.split(' ').nth(1).unwrap();
            let (status, body) = match path.split('?').next().unwrap() {
                "/robots.txt" => (200, "User-agent: *\nDisallow: /shy?verb="),
                "/oai" => (200, "<?xml version='1.0'?><OAI-PMH xmlns='x'>"),
                "/shy" => (200, "<OAI-PMH>"),
                "/page" => (200, "<html>"),
                _ => (404, ""),
            };
            let length = body.len();
            write!(
                stream,
                "HTTP/1.1 {status} X\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
            )
            .unwrap();
        }
    }

    #[tokio::test]
    async fn the_host_says_what_it_is_and_that_is_remembered() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let base = Url::parse(&format!("http://{}/", listener.local_addr().unwrap())).unwrap();
        // Four are asked for robots.txt, three of them for Identify.
        let serving = thread::spawn(move || serve(listener, 7));
        let data = tempfile::tempdir().unwrap();
        let urls: Vec<Url> = ["oai", "shy", "page", "none", "oai?x=1"]
            .iter()
            .map(|it| base.join(it).unwrap())
            .collect();
        let found = kinds(&urls, None, data.path()).await.unwrap();
        let found: Vec<Kind> = found.into_iter().map(|it| it.1).collect();
        let (oai, web) = (Kind::Oai, Kind::Web);
        assert_eq!(found, [oai, web, web, web, web]);
        serving.join().unwrap();
        let named = kinds(&urls[1..2], Some(oai), data.path()).await.unwrap();
        assert_eq!(named[0].1, oai);
        let remembered = kinds(&urls[..2], None, data.path()).await.unwrap();
        assert_eq!((remembered[0].1, remembered[1].1), (oai, oai));
        // A host that does not answer is asked again.
        let late = base.join("late").unwrap();
        assert_eq!(kinds(&[late], None, data.path()).await.unwrap()[0].1, web);
        let stored = fs::read_to_string(data.path().join(FILE)).unwrap();
        assert!(!stored.contains("late") && stored.contains("oai"), "{stored}");
    }
}
