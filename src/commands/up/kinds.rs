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
/// answer that tells, such as that of a bot wall.
async fn ask(url: &Url) -> Option<Kind> {
    if url.query().is_some() || Protocol::of(url) != Some(Protocol::Web) {
        return Some(Kind::Web);
    }
    let client = Client::new(Settings { allow_private: true, ..Settings::default() });
    let mut identify = url.clone();
    identify.set_query(Some("verb=Identify"));
    let robots = url.join("/robots.txt").ok()?;
    let (status, body) = front(&client, robots).await?;
    match status {
        200..=299 => {
            let rules = Rules::parse(&body, PRODUCT);
            if rules.rule(&identify).is_some_and(|it| !it.allow) {
                return Some(Kind::Web);
            }
        }
        429 | 500.. => return None,
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

/// Returns the status and the front of the body of an answer; `None` if there is none, or a bot wall gave it.
/// Redirects are followed at the same host alone.
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
    let status = response.status.as_u16();
    walls::recognize(status, &response.headers, &body).is_none().then_some((status, body))
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
            let (status, field, body) = match path.split('?').next().unwrap() {
                "/robots.txt" => (200, "", "User-agent: *\nDisallow: /shy?verb="),
                "/oai" => (200, "", "<?xml version='1.0'?><OAI-PMH xmlns='x'>"),
                "/shy" => (200, "", "<OAI-PMH>"),
                "/page" => (200, "", "<html>"),
                "/challenged" => (200, "", "<script id=\"anubis_challenge\">"),
                "/refused" => (403, "cf-mitigated: challenge\r\n", ""),
                _ => (404, "", ""),
            };
            let fields = format!("Content-Length: {}\r\nConnection: close\r\n{field}", body.len());
            write!(stream, "HTTP/1.1 {status} X\r\n{fields}\r\n{body}").unwrap();
        }
    }

    #[tokio::test]
    async fn the_host_says_what_it_is_and_that_is_remembered() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let base = Url::parse(&format!("http://{}/", listener.local_addr().unwrap())).unwrap();
        // Six are asked for robots.txt, five of them for Identify.
        let serving = thread::spawn(move || serve(listener, 11));
        let data = tempfile::tempdir().unwrap();
        let urls: Vec<Url> = ["oai", "shy", "page", "none", "oai?x=1", "challenged", "refused"]
            .iter()
            .map(|it| base.join(it).unwrap())
            .collect();
        let found = kinds(&urls, None, data.path()).await.unwrap();
        let found: Vec<Kind> = found.into_iter().map(|it| it.1).collect();
        let (oai, web) = (Kind::Oai, Kind::Web);
        assert_eq!(found, [oai, web, web, web, web, web, web]);
        serving.join().unwrap();
        let named = kinds(&urls[1..2], Some(oai), data.path()).await.unwrap();
        assert_eq!(named[0].1, oai);
        let remembered = kinds(&urls[..2], None, data.path()).await.unwrap();
        assert_eq!((remembered[0].1, remembered[1].1), (oai, oai));
        // A host that does not answer, or whose wall does, is asked again.
        let late = base.join("late").unwrap();
        assert_eq!(kinds(&[late], None, data.path()).await.unwrap()[0].1, web);
        let stored = fs::read_to_string(data.path().join(FILE)).unwrap();
        let is_asked_again =
            ["late", "challenged", "refused"].iter().all(|it| !stored.contains(it));
        assert!(is_asked_again && stored.contains("oai"), "{stored}");
    }
}
