//! Requests for pages and for robots.txt.

use std::net::IpAddr;
use std::sync::Arc;

use ::crawl::directives::Directives;
use ::crawl::robots::{BYTES_MAX, PRODUCT, REDIRECTS};
use bytes::{Bytes, BytesMut};
use formats::object::Object;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use net::client::{Client, Credentials, Request, Response, http_date, redirect};
use net::clock;
use net::coding::{self, Decoded};
use net::error::Error;
use soif::digest::Md5;
use tokio::task::spawn_blocking;
use url::Url;

use super::super::run::Fetched;
use super::answer;
use super::realms::Realms;
use super::resuming::{Front, TIMES_MAX};
use super::spool::{Head, Kept, Kind, Spool};
use crate::spec::Web;
use crate::validator::Validator;

/// Number of sent bytes from which on codings are undone on a thread of their own.
const LONG_BYTES: usize = 64 * 1024;

/// Number of bytes that are read of an answer that asks who we are, so that its connection can be used again.
const REFUSAL_BYTES_MAX: u64 = 64 * 1024;

/// An answer, whose codings are undone.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    /// The content, or its front.
    pub(super) body: Bytes,
    /// Whether there is more.
    pub(super) is_cut: bool,
    /// Number of bytes as they were sent.
    pub(super) sent_bytes: u64,
    /// The address of the host, as far as it is known.
    pub(super) address: Option<IpAddr>,
    /// Time of the answer, in milliseconds since 1970.
    pub(super) at_ms: u64,
    /// Keeps it in the spool.
    pub(super) kept: Option<Kept>,
}

/// Asks for objects of one root.
#[derive(Clone, Debug)]
pub(super) struct Fetcher {
    client: Client,
    /// Shared by all requests: a list can be long.
    web: Arc<Web>,
    /// What the hosts have asked for.
    realms: Arc<Realms>,
    /// Maximum number of bytes of one object.
    bytes_max: usize,
}

impl Fetcher {
    pub(super) fn new(client: Client, web: Arc<Web>, bytes_max: u64) -> Self {
        let bytes_max = usize::try_from(bytes_max).unwrap_or(usize::MAX);
        Self { client, web, realms: Arc::default(), bytes_max }
    }

    /// Asks for the object at `url`, of which at least `bytes_min` bytes are read; with the validator of what is known
    /// of it, only if it has changed.
    ///
    /// # Errors
    ///
    /// There is no answer, or its body cannot be read.
    pub(super) async fn fetch(
        &self,
        url: Url,
        known: Option<Validator>,
        bytes_min: usize,
    ) -> Result<Answer, Error> {
        let mut request = self.request(url);
        // A list, or the disk, may have told of it before.
        if let Some(Validator::Http { etag, last_modified, .. }) = known {
            let etag = etag.filter(|it| it.ends_with('"'));
            let last_modified = last_modified.filter(|it| http_date(it).is_some());
            let mut add = |name, value: Option<String>| {
                if let Some(value) = value.and_then(|it| HeaderValue::try_from(it).ok()) {
                    request.headers.insert(name, value);
                }
            };
            add(header::IF_NONE_MATCH, etag);
            add(header::IF_MODIFIED_SINCE, last_modified);
        }
        request.headers.insert(header::ACCEPT_ENCODING, coding::ACCEPTED);
        let response = self.send(&mut request).await?;
        self.read(request, response, self.bytes_max.max(bytes_min)).await
    }

    /// Asks for a robots.txt, and follows its redirects (RFC 9309 §2.3.1.2).
    ///
    /// # Errors
    ///
    /// There is no answer, or its body cannot be read.
    pub(super) async fn robots(&self, url: Url) -> Result<Answer, Error> {
        let mut url = url;
        for _ in 0..REDIRECTS {
            let mut request = self.request(url.clone());
            request.headers.insert(header::ACCEPT_ENCODING, coding::ACCEPTED);
            let response = self.send(&mut request).await?;
            let next = redirect(&url, response.status, &response.headers);
            match next {
                Ok(Some(next)) if matches!(next.scheme(), "http" | "https") => url = next,
                _ => return self.read(request, response, BYTES_MAX).await,
            }
        }
        let mut request = self.request(url);
        let response = self.send(&mut request).await?;
        self.read(request, response, BYTES_MAX).await
    }

    /// Sends a request, and once more with the credentials of the realm that the host names, if there are any.
    async fn send(&self, request: &mut Request) -> Result<Response, Error> {
        let response = self.client.send(request.clone()).await?;
        let said = (response.status, &response.headers);
        let asked = self.realms.asked(&self.web.realms, &request.url, said, &request.credentials);
        let Some(asked) = asked else { return Ok(response) };
        let certificate = request.credentials.certificate.take();
        request.credentials = Credentials { certificate, ..asked };
        drop(response.bytes(REFUSAL_BYTES_MAX).await);
        self.client.send(request.clone()).await
    }

    /// Private networks are only for the host as the settings name it: links and redirects to others
    /// must not lead there.
    fn request(&self, url: Url) -> Request {
        let is_own = self.web.is_own(&url);
        let mut timeouts = self.client.timeouts();
        timeouts.total = Some(self.web.answer_time_max);
        let mut credentials = self.web.credentials(&url);
        if let Some(known) = self.realms.known(&self.web.realms, &url) {
            credentials = Credentials { certificate: credentials.certificate, ..known };
        }
        let mut request = Request::get(url)
            .credentials(credentials)
            .allow_private(self.web.allow_private && is_own)
            .proxy(self.web.proxy.clone());
        if self.web.proxy.is_some() {
            // Each page is fetched once: kept by a cache, it would take the room of what is asked for again
            // (TR footnote 3).
            let once = HeaderValue::from_static("no-store");
            request.headers.insert(header::CACHE_CONTROL, once);
        }
        if let Some(name) = &self.web.user_agent {
            request.headers.insert(header::USER_AGENT, name.clone());
        }
        request.keeps_redirect = true;
        request.timeouts = Some(timeouts);
        request.response_bytes_max = Some(u64::MAX);
        request
    }

    /// Reads an answer. Where its body breaks off, the rest is asked for, at most [`TIMES_MAX`] times.
    async fn read(
        &self,
        request: Request,
        mut response: Response,
        bytes_max: usize,
    ) -> Result<Answer, Error> {
        let (mut body, mut is_cut) = (BytesMut::new(), false);
        let (status, headers) = (response.status, response.headers.clone());
        let (mut sent_bytes, mut times) = (0, 0);
        loop {
            match response.chunk().await {
                Ok(Some(piece)) => body.extend_from_slice(&piece),
                Ok(None) => break,
                Err(error) => {
                    sent_bytes += response.received();
                    times += 1;
                    let front = Front::of((status, &headers), body.len());
                    response = self.rest(&request, front, times, error).await?;
                }
            }
            if bytes_max < body.len() {
                is_cut = true;
                break;
            }
        }
        sent_bytes += response.received();
        let (url, address) = (response.url.to_string(), response.address());
        drop(response);
        let (body, long) = (body.freeze(), headers.clone());
        let decode = move || coding::decode(&long, body, is_cut, bytes_max);
        let decoded = if sent_bytes < LONG_BYTES as u64 {
            decode()
        } else {
            spawn_blocking(decode).await.unwrap_or_else(|_stopped| Ok(Decoded::default()))
        };
        let Decoded { bytes: body, is_cut } =
            decoded.map_err(|error| Error::Url { url, message: error.to_string() })?;
        let at_ms = clock::now_ms();
        Ok(Answer { status, headers, body, is_cut, sent_bytes, address, at_ms, kept: None })
    }

    /// Asks for what is missing after the front of an answer, which ended with `error`.
    ///
    /// # Errors
    ///
    /// `error`: the rest cannot be had. Or there is no answer.
    async fn rest(
        &self,
        request: &Request,
        front: Option<Front>,
        times: u32,
        error: Error,
    ) -> Result<Response, Error> {
        let is_broken_off = matches!(error, Error::Cut { .. }) && times <= TIMES_MAX;
        let Some(front) = front.filter(|_| is_broken_off) else { return Err(error) };
        let mut request = request.clone();
        front.ask(&mut request.headers);
        let response = self.client.send(request).await?;
        let goes_on = front.goes_on((response.status, &response.headers));
        if goes_on { Ok(response) } else { Err(error) }
    }
}

impl Answer {
    /// Returns an answer from the spool; `None` if it is not of the web.
    pub(super) fn from_spool(head: Head, body: Bytes, kept: Kept) -> Option<Self> {
        let Kind::Page { status, headers, is_cut, sent_bytes, address } = head.kind else {
            return None;
        };
        let pair = |(name, value): (String, String)| {
            Some((HeaderName::try_from(name).ok()?, HeaderValue::try_from(value).ok()?))
        };
        let (status, headers) =
            (StatusCode::from_u16(status).ok()?, headers.into_iter().filter_map(pair).collect());
        let (at_ms, kept) = (head.at_ms, Some(kept));
        Some(Self { status, headers, body, is_cut, sent_bytes, address, at_ms, kept })
    }

    /// Writes the answer for `url` to the spool, if it is one that need not be asked for again. Blocks.
    pub(super) fn keep_in(&mut self, spool: &Spool, url: &Url) {
        let is_lasting = self.status.is_success()
            || self.status.is_redirection()
            || matches!(self.status, StatusCode::NOT_FOUND | StatusCode::GONE);
        if !is_lasting {
            return;
        }
        let pair = |(name, value): (&HeaderName, &HeaderValue)| {
            (name.as_str().to_owned(), String::from_utf8_lossy(value.as_bytes()).into_owned())
        };
        let (is_cut, sent_bytes, address) = (self.is_cut, self.sent_bytes, self.address);
        let headers = self.headers.iter().map(pair).collect();
        let kind =
            Kind::Page { status: self.status.as_u16(), headers, is_cut, sent_bytes, address };
        let head = Head { url: url.to_string(), at_ms: self.at_ms, kind };
        self.kept = spool.keep(&head, &self.body);
    }

    /// Returns what the header fields ask of robots.
    pub(super) fn directives(&self) -> Directives {
        let mut directives = Directives::default();
        for value in self.headers.get_all("x-robots-tag") {
            directives.add_header(&String::from_utf8_lossy(value.as_bytes()), PRODUCT);
        }
        directives
    }

    /// Returns the content as the object at `url`.
    pub(super) fn content(&self, url: &Url) -> Fetched {
        let md5 = Md5::of(&self.body);
        let text = |name| self.headers.get(name).and_then(|it: &HeaderValue| it.to_str().ok());
        let last_modified = text(header::LAST_MODIFIED);
        let object = Object {
            url: url.to_string(),
            name: answer::name(url, &self.headers),
            modified: last_modified.and_then(http_date),
            size: self.whole_bytes(),
            truncated: self.is_cut,
            rest: None,
            md5: (!self.is_cut).then_some(md5),
            bytes: self.body.clone(),
        };
        let validator = Validator::Http {
            etag: text(header::ETAG).map(str::to_owned),
            last_modified: last_modified.map(str::to_owned),
            md5: md5.to_string(),
        };
        Fetched { object, md5, validator, sure: true, file: None }
    }

    /// Returns the size of the whole content, as far as it is known.
    fn whole_bytes(&self) -> u64 {
        let declared = |headers: &HeaderMap| {
            let text = headers.get(header::CONTENT_LENGTH)?.to_str().ok()?;
            text.parse::<u64>().ok().filter(|_| !headers.contains_key(header::CONTENT_ENCODING))
        };
        let got = self.body.len() as u64;
        if self.is_cut { declared(&self.headers).unwrap_or(got + 1).max(got + 1) } else { got }
    }
}
