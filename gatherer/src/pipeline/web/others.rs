//! FTP, Gopher and News: what their servers are asked for, and what they have.
//!
//! Their servers list what they have. A list has no record; it leads to objects, and of FTP and News it tells
//! enough of each to see whether that has changed, so that only what is new is asked for.

mod ftp;
mod gopher;
pub(super) mod local;
mod news;

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use formats::object::Object;
use net::clock;
use net::fetch::{Bounds, Fault, FetchError};
use net::ftp as client;
use rustix::io::Errno;
use soif::digest::Md5;
use url::Url;

use super::super::run::Fetched;
use super::spool::{Head, Kind};
use crate::lock::lock;
use crate::spec::{Protocol, Web};
use crate::validator::Validator;

/// What a server has at a URL.
#[derive(Debug)]
pub(super) enum Found {
    /// A list.
    List(List),
    /// An object.
    Content(Box<Fetched>),
    /// An object that has not changed.
    Unchanged,
    /// Nothing, in the server's words.
    Absent { is_certain: bool, why: String },
}

/// A list of objects, or of more lists.
#[derive(Debug, Default)]
pub(super) struct List {
    pub(super) items: Vec<Item>,
    /// Lists that came with this one.
    pub(super) included: Vec<Url>,
    /// Of a newsgroup, which articles are in the list.
    pub(super) numbers: Option<Numbers>,
    /// What is wrong with it, if anything.
    pub(super) flaw: Option<String>,
}

/// The numbers of the articles of a newsgroup.
#[derive(Clone, Copy, Debug)]
pub(super) struct Numbers {
    /// The lowest that the server keeps.
    pub(super) lowest: u64,
    /// The one from which on all articles are in the list.
    pub(super) first: u64,
}

/// What a list leads to.
#[derive(Debug)]
pub(super) struct Item {
    pub(super) url: Url,
    /// Number of links from the list.
    pub(super) steps: u16,
    pub(super) sign: Option<Sign>,
}

/// What a server tells of an object without its content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Sign {
    /// Its size in bytes; of an article, its number.
    pub(super) tag: String,
    /// The time of its last change, in seconds since 1970.
    pub(super) modified: Option<i64>,
    /// Whether any later change will show.
    pub(super) is_sure: bool,
}

impl Sign {
    /// Returns whether an object with this validator is the same.
    pub(super) fn is_of(&self, validator: &Validator) -> bool {
        let own = self.validator(String::new());
        match (&own, validator) {
            (
                Validator::Http { etag: own, last_modified: own_time, .. },
                Validator::Http { etag, last_modified, .. },
            ) => (own, own_time) == (etag, last_modified),
            _ => false,
        }
    }

    fn validator(&self, md5: String) -> Validator {
        let last_modified = self.modified.map(|it| it.to_string());
        Validator::Http { etag: Some(self.tag.clone()), last_modified, md5 }
    }
}

/// Clients of FTP: for the root's own host, and for all others, which must be public.
#[derive(Debug)]
struct Clients {
    own: client::Client,
    public: client::Client,
    settings: [client::Settings; 2],
}

impl Clients {
    fn new(settings: [client::Settings; 2]) -> Self {
        let [own, public] = settings.clone().map(client::Client::new);
        Self { own, public, settings }
    }

    fn client(&self, is_own: bool) -> client::Client {
        if is_own { self.own.clone() } else { self.public.clone() }
    }
}

/// Asks the servers of one root.
#[derive(Clone, Debug)]
pub(super) struct Others {
    web: Arc<Web>,
    ftp: Arc<Mutex<Clients>>,
    bounds: Bounds,
    news: news::News,
    /// What lists have told of objects that are still to be asked for.
    signs: Arc<Mutex<HashMap<Url, Sign>>>,
}

impl Others {
    /// Returns the clients of a root. `extra_roots` are the authorities that the settings trust (DER).
    pub(super) fn new(web: Arc<Web>, bytes_max: usize, extra_roots: &[Vec<u8>]) -> Self {
        let mut bounds = Bounds { bytes_max, ..Bounds::default() };
        bounds.timeouts.total = Some(web.answer_time_max);
        let own = Bounds { allow_private: web.allow_private, ..bounds };
        let settings = client::Settings {
            start_tls: web.start_tls,
            login: web.login.as_deref().cloned(),
            allow_unencrypted_password: web.allow_unencrypted_password,
            bounds: own,
            extra_roots: extra_roots.to_vec(),
            ..Default::default()
        };
        let public =
            client::Settings { bounds, extra_roots: extra_roots.to_vec(), ..Default::default() };
        Self {
            ftp: Arc::new(Mutex::new(Clients::new([settings, public]))),
            bounds: own,
            news: news::News::new(web.clone(), own, extra_roots),
            signs: Arc::default(),
            web,
        }
    }

    /// Asks for what is at `url`. `known` is the validator of what is known there, if that is of the present
    /// settings.
    ///
    /// # Errors
    ///
    /// There is no answer, or it cannot be read.
    pub(super) async fn fetch(
        &self,
        url: &Url,
        known: Option<&Validator>,
    ) -> Result<Found, FetchError> {
        let told = lock(&self.signs).remove(url);
        let mut found = self.ask(url, known, told.clone()).await;
        if found.as_ref().is_err_and(is_shortage) {
            self.let_go();
            found = self.ask(url, known, told.clone()).await;
        }
        if let (Err(_), Some(told)) = (&found, told) {
            // It may be asked for again.
            self.remember(url, told);
        }
        found
    }

    /// Lets go of all connections that are kept for later: they make room for what is asked for now.
    fn let_go(&self) {
        let mut ftp = lock(&self.ftp);
        *ftp = Clients::new(ftp.settings.clone());
        self.news.let_go();
    }

    async fn ask(
        &self,
        url: &Url,
        known: Option<&Validator>,
        sign: Option<Sign>,
    ) -> Result<Found, FetchError> {
        let is_own = self.web.is_own(url);
        match Protocol::of(url) {
            Some(Protocol::Ftp) => {
                let client = lock(&self.ftp).client(is_own);
                ftp::fetch(&client, url, *url == self.web.url, known, sign).await
            }
            Some(Protocol::News) => self.news.fetch(url, sign).await,
            Some(Protocol::Gopher | Protocol::Web) | None => {
                let allow_private = self.bounds.allow_private && is_own;
                gopher::fetch(url, &Bounds { allow_private, ..self.bounds }).await
            }
        }
    }

    /// Remembers what a list has told of an object that is still to be asked for.
    pub(super) fn remember(&self, url: &Url, sign: Sign) {
        lock(&self.signs).insert(url.clone(), sign);
    }
}

/// Returns whether there were no descriptors left for a connection.
fn is_shortage(error: &FetchError) -> bool {
    let Fault::Net(net::Error::Connect { source, .. }) = &error.fault else { return false };
    matches!(Errno::from_io_error(source), Some(Errno::MFILE | Errno::NFILE))
}

/// Returns content as the object at `url`, which is called `name`.
fn object(url: &Url, name: String, (bytes, is_cut): (Vec<u8>, bool), sign: Option<&Sign>) -> Found {
    let (md5, bytes) = (Md5::of(&bytes), Bytes::from(bytes));
    let least = bytes.len() as u64 + u64::from(is_cut);
    let told = sign.and_then(|it| it.tag.parse().ok()).filter(|_| is_cut).unwrap_or(least);
    let validator = match sign {
        Some(sign) => sign.validator(md5.to_string()),
        None => Validator::Http { etag: None, last_modified: None, md5: md5.to_string() },
    };
    let object = Object {
        url: url.to_string(),
        name,
        modified: sign.and_then(|it| it.modified).and_then(|it| u64::try_from(it).ok()),
        size: least.max(told),
        truncated: is_cut,
        rest: None,
        md5: (!is_cut).then_some(md5),
        bytes,
    };
    let sure = sign.is_none_or(|it| it.is_sure);
    Found::Content(Box::new(Fetched { object, md5, validator, sure, file: None }))
}

/// Returns what the spool has of an object beside its content.
pub(super) fn head(url: &Url, content: &Fetched) -> Head {
    let object = &content.object;
    let kind = Kind::Object {
        name: object.name.clone(),
        modified: object.modified,
        size: object.size,
        is_cut: object.truncated,
        validator: content.validator.clone(),
        is_sure: content.sure,
    };
    Head { url: url.to_string(), at_ms: clock::now_ms(), kind }
}

/// Returns an object from the spool; `None` if it is of the web.
pub(super) fn from_spool(head: Head, bytes: Bytes) -> Option<Found> {
    let Kind::Object { name, modified, size, is_cut, validator, is_sure } = head.kind else {
        return None;
    };
    let md5 = Md5::of(&bytes);
    let object = Object {
        url: head.url,
        name,
        modified,
        size,
        truncated: is_cut,
        rest: None,
        md5: (!is_cut).then_some(md5),
        bytes,
    };
    Some(Found::Content(Box::new(Fetched { object, md5, validator, sure: is_sure, file: None })))
}

/// Returns the last name in the path of a URL.
fn last_name(url: &Url) -> String {
    let last = url.path().rsplit('/').next().unwrap_or_default();
    percent_encoding::percent_decode_str(last).decode_utf8_lossy().into_owned()
}
