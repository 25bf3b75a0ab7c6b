//! News: the newest articles of a group. An article never changes; it expires or is canceled.
//!
//! Articles of a root's own group are asked for by the numbers that its list tells; those of other groups, to which
//! links lead, by their ids.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use net::fetch::{Bounds, FetchError};
use net::nntp::{Lookup, Part, Reader, Settings};
use tokio::sync::Mutex as AsyncMutex;
use url::{Position, Url};

use super::{Found, Item, List, Numbers, Sign, object};
use crate::lock::lock;
use crate::spec::{Web, is_group};

/// Maximum number of servers to which connections are kept.
const READERS_MAX: usize = 16;

/// The news servers of one root.
#[derive(Clone, Debug)]
pub(super) struct News {
    web: Arc<Web>,
    bounds: Bounds,
    extra_roots: Arc<[Vec<u8>]>,
    /// One connection to each server, made when it is first needed, by its address. Without one: that for the root's
    /// own group, since numbers are of the group that was chosen last.
    readers: Arc<Mutex<Readers>>,
}

type Readers = HashMap<String, Arc<AsyncMutex<Reader>>>;

impl News {
    /// Returns the news servers of a root, of which its own may be where `bounds` allow.
    pub(super) fn new(web: Arc<Web>, bounds: Bounds, extra_roots: &[Vec<u8>]) -> Self {
        Self { web, bounds, extra_roots: extra_roots.into(), readers: Arc::default() }
    }

    /// Asks for the group at `url`, or for an article, of which the list of the root's group may have told the
    /// number.
    pub(super) async fn fetch(&self, url: &Url, sign: Option<Sign>) -> Result<Found, FetchError> {
        let number = sign.as_ref().and_then(|it| it.tag.parse().ok());
        let is_of_root = *url == self.web.url || number.is_some();
        let reader = self.reader(url, is_of_root)?;
        let mut reader = reader.lock().await;
        let name = url.path().trim_start_matches('/');
        if is_group(url) {
            return list(&mut reader, url, name, self.web.urls_max, is_of_root).await;
        }
        let looked = match number {
            Some(number) => reader.article(Part::Article, number).await?,
            None => {
                let id = percent_encoding::percent_decode_str(name).decode_utf8_lossy();
                reader.article_by_id(&format!("<{id}>")).await?
            }
        };
        Ok(match looked {
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

    /// Lets go of connections that are of no use now.
    pub(super) fn let_go(&self) {
        keep_own(&mut lock(&self.readers));
    }

    /// Returns the connection to the server of `url`, or that for the root's own group.
    fn reader(&self, url: &Url, is_of_root: bool) -> Result<Arc<AsyncMutex<Reader>>, FetchError> {
        let server = if is_of_root { "" } else { &url[..Position::BeforePath] };
        let mut readers = lock(&self.readers);
        if let Some(reader) = readers.get(server) {
            return Ok(reader.clone());
        }
        if READERS_MAX <= readers.len() {
            keep_own(&mut readers);
        }
        let mut settings = Settings {
            bounds: Bounds { allow_private: false, ..self.bounds },
            extra_roots: self.extra_roots.to_vec(),
            ..Settings::new(url.clone())
        };
        if self.web.is_own(url) {
            settings.start_tls = self.web.start_tls;
            settings.login = self.web.login.as_deref().cloned();
            settings.allow_unencrypted_password = self.web.allow_unencrypted_password;
            settings.bounds = self.bounds;
        }
        let reader = Arc::new(AsyncMutex::new(Reader::new(settings)?));
        readers.insert(server.to_owned(), reader.clone());
        Ok(reader)
    }
}

/// Lets go of all connections but that for the root's own group, which is chosen there.
fn keep_own(readers: &mut Readers) {
    readers.retain(|server, _| server.is_empty());
}

/// Lists the newest articles of a group; of the root's own also by which numbers it has them.
async fn list(
    reader: &mut Reader,
    url: &Url,
    name: &str,
    numbers_max: usize,
    is_of_root: bool,
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
            let url = article_url(url, id)?;
            Some(Item { url, steps: 1, sign: is_of_root.then_some(sign) })
        });
        list.items.extend(items);
    }
    if 0 < left_out {
        list.flaw = Some(format!("{left_out} lines of its overview are no articles"));
    }
    list.numbers = is_of_root.then_some(Numbers { lowest: group.low, first });
    Ok(Found::List(list))
}

/// Returns the URL of an article at the server of a group (RFC 5538 §2.2).
fn article_url(group: &Url, id: &str) -> Option<Url> {
    let path = percent_encoding::utf8_percent_encode(id, percent_encoding::NON_ALPHANUMERIC);
    let path = path.to_string().replace("%40", "@").replace("%2E", ".").replace("%2D", "-");
    group.join(&format!("/{path}")).ok().filter(|it| !is_group(it))
}
