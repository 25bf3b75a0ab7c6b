//! Objects of other schemes: what FTP, Gopher and NNTP give, as answers of HTTP.
//!
//! Folders, menus and groups are pages. Files by FTP are passed on as they come; what the other
//! protocols give is read whole first, up to [`BYTES_MAX`].
//!
//! Source: TR §9.

mod ftp;
mod gopher;
mod news;
mod page;
mod types;

use std::sync::Arc;

use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use net::body;
use net::client::Timeouts;
use net::error::{Error, RETRY_DEFAULT, Stage};
use net::fetch::{Bounds, Fault, FetchError};
use net::ftp::Client;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;
use url::Url;

use crate::config::Config;
use crate::fetch::coming::Coming;
use crate::request::Asked;
use crate::target::{Scheme, named};
use news::News;

/// Largest object that is read whole before it is passed on, in bytes.
const BYTES_MAX: usize = 32 << 20;

/// Maximum number of objects that are fetched at once by Gopher and NNTP: they are in memory.
const UNDER_WAY_MAX: usize = 16;

/// What fetches objects of other schemes.
#[derive(Debug)]
pub(crate) struct Schemes {
    bounds: Bounds,
    ftp: Client,
    news: Option<News>,
    room: Arc<Semaphore>,
}

impl Schemes {
    pub(crate) fn new(config: &Config) -> Self {
        let timeouts = Timeouts::default();
        let bounds = Bounds { bytes_max: BYTES_MAX, timeouts, allow_private: config.allow_private };
        // Whoever writes a password into a URL of plain FTP wants it to be sent so.
        let ftp = net::ftp::Settings {
            bounds,
            allow_unencrypted_password: true,
            ..net::ftp::Settings::default()
        };
        // The news server is the settings' own choice.
        let of_news = Bounds { allow_private: true, ..bounds };
        let news = config.news_server.clone().map(|it| News::new(it, of_news));
        let room = Arc::new(Semaphore::new(UNDER_WAY_MAX));
        Self { bounds, ftp: Client::new(ftp), news, room }
    }

    /// Fetches an object; with the headers that are passed on.
    ///
    /// # Errors
    ///
    /// Its host was not reached. What the host says is an answer.
    pub(crate) async fn fetch(
        &self,
        scheme: Scheme,
        asked: &Asked,
        headers: &HeaderMap,
    ) -> Result<Coming, Error> {
        let url = &asked.object.at();
        if ![Method::GET, Method::HEAD].contains(&asked.method) {
            let message = format!("objects of {:?} are read alone: GET or HEAD", url.scheme());
            let mut answer = text(url, StatusCode::METHOD_NOT_ALLOWED, message);
            insert(&mut answer.headers, header::ALLOW, "GET, HEAD");
            return Ok(answer);
        }
        let room = self.room(url).await?;
        let fetched = match (scheme, &self.news) {
            (Scheme::Ftp, _) => ftp::fetch(&self.ftp, asked, headers).await,
            (Scheme::Gopher, _) => gopher::fetch(url, &self.bounds).await,
            (Scheme::News, Some(news)) => news.fetch(url).await,
            // Requests are not let through without a server; settings may have been reloaded.
            (Scheme::News, None) => {
                let message = "the news server is used after the cache has been started again";
                Ok(text(url, StatusCode::SERVICE_UNAVAILABLE, message.to_owned()))
            }
        };
        match fetched {
            Err(FetchError { fault: Fault::Net(error), .. }) => Err(error),
            Err(error) => Ok(refused(url, &error)),
            Ok(answer) => Ok(answer.within(room)),
        }
    }

    async fn room(&self, url: &Url) -> Result<OwnedSemaphorePermit, Error> {
        let after = self.bounds.timeouts.connect;
        match timeout(after, Arc::clone(&self.room).acquire_owned()).await {
            Ok(Ok(permit)) => Ok(permit),
            _ => Err(Error::Timeout { host: named(url).to_owned(), stage: Stage::Queue, after }),
        }
    }
}

/// Returns the answer that says what a host has said, and what to do.
fn refused(url: &Url, error: &FetchError) -> Coming {
    let status = status_of(&error.fault);
    let mut answer = text(url, status, error.to_string());
    if status == StatusCode::UNAUTHORIZED {
        let realm = format!("Basic realm=\"{}\", charset=\"UTF-8\"", named(url));
        insert(&mut answer.headers, header::WWW_AUTHENTICATE, &realm);
    }
    if status == StatusCode::SERVICE_UNAVAILABLE {
        answer.headers.insert(header::RETRY_AFTER, RETRY_DEFAULT.as_secs().into());
    }
    answer
}

/// Returns the status for a fault. Replies begin with the codes of FTP (RFC 959 §4.2.1) and NNTP; those
/// of Gopher have none, and say that something is not there.
fn status_of(fault: &Fault) -> StatusCode {
    match fault {
        Fault::Url { .. } => StatusCode::BAD_REQUEST,
        Fault::Refused { reply } => match reply.get(..3) {
            Some("550" | "551" | "553") => StatusCode::NOT_FOUND,
            Some(code) if code.parse::<u16>().is_ok() => StatusCode::BAD_GATEWAY,
            _ => StatusCode::NOT_FOUND,
        },
        Fault::Busy { .. } => StatusCode::SERVICE_UNAVAILABLE,
        // Only FTP has users whom the cache can name.
        Fault::Login { reply } if reply.starts_with('5') || reply.starts_with("33") => {
            StatusCode::UNAUTHORIZED
        }
        Fault::Login { .. } | Fault::Unencrypted => StatusCode::FORBIDDEN,
        _ => StatusCode::BAD_GATEWAY,
    }
}

/// Returns an answer that is a message. That something is not there is kept as other answers are.
fn text(url: &Url, status: StatusCode, message: String) -> Coming {
    let mut answer = whole(url, "text/plain; charset=utf-8", message + "\n");
    answer.status = status;
    if status != StatusCode::NOT_FOUND {
        insert(&mut answer.headers, header::CACHE_CONTROL, "no-store");
    }
    answer
}

/// Returns the answer in place of an object that is too large.
fn too_large(url: &Url) -> Coming {
    let mib = BYTES_MAX >> 20;
    let message = format!(
        "{url} has more than {mib} MiB, the most that is passed on of this scheme: fetch it without the cache"
    );
    text(url, StatusCode::BAD_GATEWAY, message)
}

/// Returns an answer with this body.
fn whole(url: &Url, content_type: &str, content: impl Into<bytes::Bytes>) -> Coming {
    let (content, mut headers) = (content.into(), HeaderMap::new());
    insert(&mut headers, header::CONTENT_TYPE, content_type);
    headers.insert(header::CONTENT_LENGTH, content.len().into());
    Coming::made(url.clone(), StatusCode::OK, headers, body::full(content))
}

fn insert(headers: &mut HeaderMap, name: HeaderName, text: &str) {
    if let Ok(value) = HeaderValue::try_from(text) {
        headers.insert(name, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_host_says_has_a_status() {
        let reply = |it: &str| it.to_owned();
        for (fault, expected) in [
            (Fault::Refused { reply: reply("550 no such file") }, 404),
            (Fault::Refused { reply: reply("500 what?") }, 502),
            (Fault::Refused { reply: reply("Error: File not found") }, 404),
            (Fault::Busy { reply: reply("421 full") }, 503),
            (Fault::Login { reply: reply("530 no") }, 401),
            (Fault::Login { reply: reply("480 no") }, 403),
            (Fault::Unencrypted, 403),
            (Fault::Url { message: reply("") }, 400),
            (Fault::Protocol { message: reply("") }, 502),
            (Fault::Cut { source: std::io::ErrorKind::UnexpectedEof.into() }, 502),
        ] {
            assert_eq!(status_of(&fault).as_u16(), expected, "{fault}");
        }
    }
}
