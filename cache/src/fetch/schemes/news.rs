//! News: groups as pages, articles as text, of one server.

use std::sync::{Mutex, MutexGuard, PoisonError};

use http::{StatusCode, header};
use net::fetch::{Bounds, FetchError};
use net::nntp::{Lookup, Overviews, Reader, Settings};
use url::Url;

use super::{insert, page, text, too_large, types, whole};
use crate::fetch::coming::Coming;
use crate::target::news_name;

/// Number of connections to the server that are kept.
const KEPT_MAX: usize = 4;

/// Number of a group's newest articles that its page looks for.
const NEWEST: u64 = 1_000;

/// What reads news.
#[derive(Debug)]
pub(super) struct News {
    settings: Settings,
    kept: Mutex<Vec<Reader>>,
}

impl News {
    pub(super) fn new(server: Url, bounds: Bounds) -> Self {
        Self { settings: Settings { bounds, ..Settings::new(server) }, kept: Mutex::default() }
    }

    fn kept(&self) -> MutexGuard<'_, Vec<Reader>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Fetches an article, or lists a group.
    pub(super) async fn fetch(&self, url: &Url) -> Result<Coming, FetchError> {
        let kept = self.kept().pop();
        let mut reader = match kept {
            Some(reader) => reader,
            None => Reader::new(self.settings.clone())?,
        };
        let name = news_name(url);
        let fetched = if name.contains('@') {
            article(&mut reader, url, &name).await
        } else {
            group(&mut reader, url, &name).await
        };
        // A reader that has a group chooses it again on a new connection, though it may be gone by then.
        let mut kept = self.kept();
        if kept.len() < KEPT_MAX && name.contains('@') {
            kept.push(reader);
        }
        fetched
    }
}

async fn article(reader: &mut Reader, url: &Url, name: &str) -> Result<Coming, FetchError> {
    Ok(match reader.article_by_id(&format!("<{name}>")).await? {
        Lookup::Found(it) if it.truncated => too_large(url),
        Lookup::Found(it) => whole(url, &types::with_charset("text/plain", &it.bytes), it.bytes),
        Lookup::Expired | Lookup::Canceled => missing(url, "article"),
    })
}

async fn group(reader: &mut Reader, url: &Url, name: &str) -> Result<Coming, FetchError> {
    let Some(group) = reader.group(name).await? else { return Ok(missing(url, "group")) };
    let overviews = match group.ranges(group.high.saturating_sub(NEWEST)).last() {
        Some(range) => reader.overviews(range).await?,
        None => Overviews::default(),
    };
    let mut answer = whole(url, "text/html; charset=utf-8", page::group(&group, &overviews));
    insert(&mut answer.headers, header::CONTENT_SECURITY_POLICY, page::POLICY);
    Ok(answer)
}

fn missing(url: &Url, what: &str) -> Coming {
    let message = format!("the news server has no such {what}: {url}; check its name");
    text(url, StatusCode::NOT_FOUND, message)
}
