//! News: the newest articles of a group. An article never changes; it expires or is canceled.

use std::sync::Arc;

use net::fetch::{Bounds, Fault, FetchError};
use net::nntp::{Lookup, Part, Reader, Settings};
use tokio::sync::Mutex;
use url::Url;

use super::{Found, Item, List, Numbers, Sign, object};
use crate::spec::{Web, is_group};

/// The news server of one root.
#[derive(Clone, Debug)]
pub(super) struct News {
    server: Url,
    settings: Settings,
    /// One connection, made when it is first needed.
    reader: Arc<Mutex<Option<Reader>>>,
}

impl News {
    pub(super) fn new(web: &Web, bounds: Bounds, extra_roots: &[Vec<u8>]) -> Self {
        let settings = Settings {
            start_tls: web.start_tls,
            login: web.login.as_deref().cloned(),
            allow_unencrypted_password: web.allow_unencrypted_password,
            bounds,
            extra_roots: extra_roots.to_vec(),
            ..Settings::new(web.url.clone())
        };
        Self { server: web.url.clone(), settings, reader: Arc::default() }
    }

    /// Asks for the group at `url`, of which the newest `numbers_max` numbers count, or for an article of which
    /// the group's list has told the number.
    pub(super) async fn fetch(
        &self,
        url: &Url,
        numbers_max: usize,
        sign: Option<Sign>,
    ) -> Result<Found, FetchError> {
        let mut reader = self.reader.lock().await;
        let reader = match &mut *reader {
            Some(reader) => reader,
            empty @ None => empty.insert(Reader::new(self.settings.clone())?),
        };
        if is_group(url) {
            return self.list(reader, url.path().trim_start_matches('/'), numbers_max).await;
        }
        let number = sign.as_ref().and_then(|it| it.tag.parse().ok());
        let Some(number) = number else {
            let message = "no list has told the number of this article".to_owned();
            return Err(FetchError { url: url.to_string(), fault: Fault::Url { message } });
        };
        Ok(match reader.article(Part::Article, number).await? {
            Lookup::Found(article) => object(
                url,
                "article.eml".to_owned(),
                (article.bytes, article.truncated),
                sign.as_ref(),
            ),
            Lookup::Expired => Found::Absent { is_certain: true, why: "it has expired".to_owned() },
            Lookup::Canceled => {
                Found::Absent { is_certain: true, why: "it was canceled".to_owned() }
            }
        })
    }

    async fn list(
        &self,
        reader: &mut Reader,
        name: &str,
        numbers_max: usize,
    ) -> Result<Found, FetchError> {
        let Some(group) = reader.group(name).await? else {
            let why = format!("the server has no group {name}");
            return Ok(Found::Absent { is_certain: false, why });
        };
        let newest = u64::try_from(numbers_max).unwrap_or(u64::MAX).saturating_sub(1);
        let first = group.high.saturating_sub(newest).max(group.low);
        let (mut list, mut left_out) = (List::default(), 0);
        for range in group.ranges(first.saturating_sub(1)) {
            let found = reader.overviews(range).await?;
            left_out += found.left_out;
            let items = found.articles.iter().filter_map(|it| {
                let id = it.id.trim_start_matches('<').trim_end_matches('>');
                let sign = Sign { tag: it.number.to_string(), modified: None, is_sure: true };
                Some(Item { url: self.article_url(id)?, steps: 1, sign: Some(sign) })
            });
            list.items.extend(items);
        }
        if 0 < left_out {
            list.flaw = Some(format!("{left_out} lines of its overview are no articles"));
        }
        list.numbers = Some(Numbers { lowest: group.low, first });
        Ok(Found::List(list))
    }

    /// Returns the URL of an article at this server (RFC 5538 §2.2).
    fn article_url(&self, id: &str) -> Option<Url> {
        let path = percent_encoding::utf8_percent_encode(id, percent_encoding::NON_ALPHANUMERIC);
        let path = path.to_string().replace("%40", "@").replace("%2E", ".").replace("%2D", "-");
        self.server.join(&format!("/{path}")).ok().filter(|it| !is_group(it))
    }
}
