//! A small OAI-PMH repository on this machine, whose records a test changes.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderValue, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use net::clock;
use net::server::{self, Limits};
use net::shutdown::Shutdown;
use oai::request::{Listed, Request, Scope};
use oai::response::write::Writer;
use oai::response::{Deleted, Format, Header, Identify, Record, Token, Xml};
use oai::{Code, Datestamp, Fault, Granularity};
use tokio::sync::Notify;
use url::Url;

/// 2026-01-01, in Unix seconds.
pub(crate) const START: i64 = 1_767_225_600;

/// Maximum number of records in one response.
pub(crate) const PAGE: usize = 10;

/// An answer that is none of OAI-PMH: its status, its fields and its body.
type Instead = (u16, Vec<(&'static str, &'static str)>, &'static str);

#[derive(Debug, Default)]
struct Shared {
    /// Datestamp and title of each record by its number; no title if it is deleted.
    items: BTreeMap<u32, (i64, Option<String>)>,
    /// The queries so far.
    queries: Vec<String>,
    /// Status, fields and body of all answers; `None` for the usual ones.
    instead: Option<Instead>,
    /// Queries with this text are not answered.
    stalled: Option<String>,
}

pub(crate) struct Archive {
    pub(crate) url: Url,
    shared: Arc<Mutex<Shared>>,
    /// Notified of each query that is not answered.
    stalling: Arc<Notify>,
    shutdown: Shutdown,
}

impl Archive {
    /// Serves `count` records with the datestamp [`START`].
    pub(crate) async fn start(count: u32) -> Self {
        let items = (0..count).map(|n| (n, (START, Some(format!("Item {n}"))))).collect();
        let shared = Arc::new(Mutex::new(Shared { items, ..Shared::default() }));
        let (stalling, shutdown) = (Arc::new(Notify::new()), Shutdown::new());
        let listener = server::bind("127.0.0.1:0".parse().unwrap()).await.unwrap();
        let url = Url::parse(&format!("http://{}/oai", listener.local_addr().unwrap())).unwrap();
        let state = (shared.clone(), stalling.clone());
        let router = Router::new().fallback(answer).with_state(state);
        tokio::spawn(server::serve(listener, router, Limits::default(), shutdown.clone()));
        Self { url, shared, stalling, shutdown }
    }

    /// Changes a record, or deletes it, now.
    pub(crate) fn set(&self, number: u32, title: Option<&str>) {
        let item = (now(), title.map(str::to_owned));
        self.shared.lock().unwrap().items.insert(number, item);
    }

    /// Gives a record another title without a new datestamp.
    pub(crate) fn repair(&self, number: u32, title: &str) {
        let mut shared = self.shared.lock().unwrap();
        shared.items.get_mut(&number).unwrap().1 = Some(title.to_owned());
    }

    /// Removes records without a tombstone.
    pub(crate) fn lose(&self, is_lost: impl Fn(u32) -> bool) {
        self.shared.lock().unwrap().items.retain(|number, _| !is_lost(*number));
    }

    /// Answers with this status from now on.
    pub(crate) fn fail(&self, status: Option<u16>) {
        self.answer_all(status.map(|it| (it, Vec::new(), "")));
    }

    /// Answers like this from now on, or as usual.
    pub(crate) fn answer_all(&self, instead: Option<Instead>) {
        self.shared.lock().unwrap().instead = instead;
    }

    /// Leaves queries with this text unanswered.
    pub(crate) fn stall(&self, text: Option<&str>) {
        self.shared.lock().unwrap().stalled = text.map(str::to_owned);
    }

    /// Waits for a query that is left unanswered.
    pub(crate) async fn stalled(&self) {
        self.stalling.notified().await;
    }

    /// Returns the queries since the last call.
    pub(crate) fn take_queries(&self) -> Vec<String> {
        std::mem::take(&mut self.shared.lock().unwrap().queries)
    }

    /// Returns the URL of the object of a record.
    pub(crate) fn object(number: u32) -> String {
        format!("oai:archive.test:{number}")
    }
}

impl Drop for Archive {
    fn drop(&mut self) {
        self.shutdown.start();
    }
}

fn now() -> i64 {
    i64::try_from(clock::now_ms() / 1_000).unwrap()
}

fn stamp(secs: i64) -> Datestamp {
    Datestamp::at(secs, Granularity::Second)
}

async fn answer(
    State((shared, stalling)): State<(Arc<Mutex<Shared>>, Arc<Notify>)>,
    uri: Uri,
) -> Response {
    let query = uri.query().unwrap_or_default().to_owned();
    let (instead, is_stalled) = {
        let mut shared = shared.lock().unwrap();
        shared.queries.push(query.clone());
        let stalled = shared.stalled.as_ref().is_some_and(|it| query.contains(it));
        (shared.instead.clone(), stalled)
    };
    if is_stalled {
        stalling.notify_one();
        std::future::pending::<()>().await;
    }
    if let Some((status, fields, body)) = instead {
        let mut response = (StatusCode::from_u16(status).unwrap(), body).into_response();
        for (name, value) in fields {
            response.headers_mut().insert(name, HeaderValue::from_static(value));
        }
        return response;
    }
    let text = written(&shared.lock().unwrap(), &Request::parse(&query));
    ([(header::CONTENT_TYPE, "text/xml")], text).into_response()
}

fn written(shared: &Shared, request: &Result<Request, Fault>) -> String {
    let writer = Writer::new(stamp(now()), "http://archive.test/oai", request.as_ref().ok());
    let scope = match request {
        Err(fault) => return writer.faults(std::slice::from_ref(fault)),
        Ok(Request::Identify) => {
            return writer.identify(&Identify {
                repository_name: "Archive".to_owned(),
                base_url: "http://archive.test/oai".to_owned(),
                protocol_version: "2.0".to_owned(),
                admin_emails: vec!["admin@archive.test".to_owned()],
                earliest_datestamp: Some(stamp(START)),
                deleted_record: Deleted::Persistent,
                granularity: Granularity::Second,
                ..Identify::default()
            });
        }
        Ok(Request::Formats { .. }) => {
            let format = Format { prefix: "oai_dc".to_owned(), ..Format::default() };
            return writer.formats(&[format]);
        }
        Ok(Request::Get { identifier, .. }) => {
            let number = identifier.rsplit(':').next().unwrap().parse().unwrap();
            return match shared.items.get(&number) {
                Some((at, title)) => writer.one(&record(number, *at, title.as_deref())),
                None => writer.faults(&[Fault::new(Code::IdDoesNotExist, "")]),
            };
        }
        Ok(Request::List { scope, .. }) => scope,
        Ok(_) => return writer.faults(&[Fault::new(Code::BadArgument, "")]),
    };
    // A token has the list's first and last datestamp, and the number of records sent before.
    let (from, until, skip) = match scope {
        Scope::Selection(it) => {
            let from = it.from.map_or(i64::MIN, Datestamp::secs);
            (from, it.until.map_or(i64::MAX, Datestamp::last_secs), 0)
        }
        Scope::Token(token) => {
            let numbers: Vec<i64> = token.split(',').map(|it| it.parse().unwrap()).collect();
            (numbers[0], numbers[1], usize::try_from(numbers[2]).unwrap())
        }
    };
    let fits = |it: &(&u32, &(i64, Option<String>))| (from..=until).contains(&it.1.0);
    let found: Vec<_> = shared.items.iter().filter(fits).collect();
    if found.is_empty() {
        return writer.faults(&[Fault::new(Code::NoRecordsMatch, "")]);
    }
    let mut list = writer.list(Listed::Records);
    for (number, (at, title)) in found.iter().skip(skip).take(PAGE) {
        list.push(&record(**number, *at, title.as_deref()));
    }
    let next = skip + PAGE;
    let is_first = skip == 0;
    let value = if next < found.len() { format!("{from},{until},{next}") } else { String::new() };
    let token = Token { value, ..Token::default() };
    list.finish((!is_first || !token.value.is_empty()).then_some(&token))
}

fn record(number: u32, at: i64, title: Option<&str>) -> Record {
    let text = title.map(|title| {
        Xml(format!(
            "<oai_dc:dc xmlns:oai_dc=\"http://www.openarchives.org/OAI/2.0/oai_dc/\" \
             xmlns:dc=\"http://purl.org/dc/elements/1.1/\"><dc:title>{title}</dc:title>\
             <dc:identifier>https://archive.test/{number}</dc:identifier></oai_dc:dc>"
        ))
    });
    Record {
        header: Header {
            identifier: Archive::object(number),
            datestamp: Some(stamp(at)),
            sets: Vec::new(),
            deleted: title.is_none(),
        },
        metadata: text,
        about: Vec::new(),
    }
}
