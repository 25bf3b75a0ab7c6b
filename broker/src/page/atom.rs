//! `/atom`: a search as a feed, whose readers see what it finds anew.
//!
//! The parameters are those of the search page. Entries come in the order in which their records were
//! updated, the latest first, at most [`ENTRIES_MAX`]; an object that was updated is an entry anew.
//!
//! Source: RFC 4287.

use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use collection::Oid;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, HOST};
use http::{HeaderMap, StatusCode, Uri};
use jiff::Timestamp;
use url::form_urlencoded;
use web::failure::{Failure, Wants};
use web::foreign::harmless;
use web::templates::escape;

use super::PageState;
use super::client::{Client, later};
use super::parameters::{Parameters, Scope, Unknown};
use super::results::{shortened, summary_address};
use crate::answer::{Hit, Sort};
use crate::blocking::blocking;
use crate::error::Error;

/// Maximum number of entries.
pub const ENTRIES_MAX: usize = 50;
/// Longest title and summary, in characters.
const TITLE_CHARS_MAX: usize = 200;
const SUMMARY_CHARS_MAX: usize = 500;
/// Time for which a reader need not ask again, in seconds.
const AGE_SECS: u32 = 60;

/// An entry of the feed.
#[derive(Clone, Debug)]
struct Entry {
    hit: Hit,
    /// When the record was taken, in milliseconds since 1970.
    updated_ms: u64,
}

pub(super) async fn atom(
    State(state): State<PageState>,
    client: Client,
    uri: Uri,
    headers: HeaderMap,
) -> Response {
    let asked = match Parameters::parse(uri.query(), Unknown::Ignored) {
        Ok(asked) if asked.is_search() => asked,
        Ok(_) => return wrong(&state, "a feed is of a search: /atom?q=WORDS"),
        Err(error) => return wrong(&state, &error.message),
    };
    let limit = asked.limit.clamp(1, ENTRIES_MAX);
    // When a record came, only this broker knows of its own.
    let scope = Scope::Here;
    let searched =
        Parameters { sort: Sort::Updated, limit, scope, offset: 0, facets: false, ..asked.clone() };
    let text = asked.text.as_deref().unwrap_or_default();
    let hits = match state.ask(client, &searched, text).await {
        Ok((_, answer)) => answer.hits,
        Err(Error::Query(error)) => return wrong(&state, &error.message),
        Err(error @ Error::Late) => return wrong(&state, &error.to_string()),
        Err(Error::Crowded(crowded)) => {
            return later(&crowded, StatusCode::TOO_MANY_REQUESTS.into_response());
        }
        Err(error) => return state.fault(Wants::Html, &error),
    };
    let collection = state.collection.clone();
    let read = move || {
        let entry = |hit: Hit| {
            let stored = collection.get(&Oid::new(&hit.gatherer_id, &hit.url));
            Some(Entry { updated_ms: stored.ok()??.stamp.0, hit })
        };
        let mut entries: Vec<Entry> = hits.into_iter().filter_map(entry).collect();
        entries.sort_by_key(|it| std::cmp::Reverse(it.updated_ms));
        Ok::<_, Error>(entries)
    };
    let entries = match blocking("feed", read).await {
        Ok(entries) => entries,
        Err(error) => return state.fault(Wants::Html, &error),
    };
    let base = state.base_of(&headers);
    let name = &state.pages.site().name;
    let body = feed(&base, name, (&asked, text), &entries);
    let kind = [
        (CONTENT_TYPE, "application/atom+xml; charset=utf-8".to_owned()),
        (CACHE_CONTROL, format!("max-age={AGE_SECS}")),
    ];
    (kind, body).into_response()
}

impl PageState {
    /// Returns the address of the pages as the client knows it, with a slash at the end.
    fn base_of(&self, headers: &HeaderMap) -> String {
        let host = headers.get(HOST).and_then(|it| it.to_str().ok()).unwrap_or("localhost");
        match &self.base_url {
            Some(base) => base.to_string(),
            None => format!("http://{host}{}", self.pages.site().base),
        }
    }
}

fn wrong(state: &PageState, message: &str) -> Response {
    state.pages.fail(Wants::Html, &Failure::bad_request(message))
}

/// Returns the feed of a search.
fn feed(base: &str, name: &str, (asked, text): (&Parameters, &str), entries: &[Entry]) -> String {
    let (page, own) =
        (format!("{base}{}", asked.address()), format!("{base}atom{}", asked.address()));
    let updated = entries.iter().map(|it| it.updated_ms).max().unwrap_or_default();
    let title = format!("{} · {name}", if text.is_empty() { "everything" } else { text });
    let mut out = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<feed xmlns=\"http://www.w3.org/2005/Atom\">\n\
         <title>{}</title>\n<id>{own}</id>\n<updated>{}</updated>\n\
         <link rel=\"self\" type=\"application/atom+xml\" href=\"{own}\"/>\n\
         <link rel=\"alternate\" type=\"text/html\" href=\"{page}\"/>\n<author><name>{}</name></author>\n",
        shown(&title, TITLE_CHARS_MAX),
        time(updated),
        shown(name, TITLE_CHARS_MAX),
        own = escape(&own),
        page = escape(&page),
    );
    for Entry { hit, updated_ms } in entries {
        let object = format!("{base}{}", summary_address(&hit.oid, &Parameters::default()));
        let oid: String = form_urlencoded::byte_serialize(hit.oid.as_bytes()).collect();
        // The page leads on to the object itself, which a reader may not be able to open.
        let summary = if hit.description.is_empty() { &hit.snippet.text } else { &hit.description };
        out += &format!(
            "<entry>\n<title>{}</title>\n<id>{}</id>\n<updated>{}</updated>\n\
             <link rel=\"alternate\" href=\"{}\"/>\n<category term=\"{}\"/>\n<summary>{}</summary>\n</entry>\n",
            shown(&hit.title, TITLE_CHARS_MAX),
            escape(&format!("{base}object?oid={oid}")),
            time(*updated_ms),
            escape(&object),
            shown(&hit.r#type, TITLE_CHARS_MAX),
            shown(summary, SUMMARY_CHARS_MAX),
        );
    }
    out + "</feed>\n"
}

/// Returns foreign text as XML takes it.
fn shown(text: &str, chars_max: usize) -> String {
    let is_allowed = |it: &char| matches!(it, '\t' | '\n' | ' '..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'..);
    let text: String = harmless(text).chars().filter(is_allowed).collect();
    escape(&shortened(text.trim(), chars_max))
}

fn time(ms: u64) -> String {
    let ms = i64::try_from(ms).unwrap_or(i64::MAX);
    let second = Timestamp::from_second(ms / 1_000).unwrap_or(Timestamp::UNIX_EPOCH);
    second.to_string()
}
