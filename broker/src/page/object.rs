//! The page of one object: to people it shows first what they read, and the technical attributes
//! folded; to programs it gives the record as SOIF or JSON.
//!
//! Everything on it is bounded, however large the record is.
//!
//! Sans-I/O.

mod row;
mod text;

use std::borrow::Cow;
use std::collections::BTreeSet;

use collection::ORIGIN_PATH;
use oai::crosswalk::LANDING_PAGE;
use query::Query;
use query::field::Quantity;
use query::record::{gatherer_name, quantity};
use serde::Serialize;
use soif::{Attribute, Record};
use url::{Url, form_urlencoded};
use web::foreign::harmless;

use super::display_url::DisplayUrl;
use super::parameters::{Parameters, Unknown};
use super::results::{DuplicateShown, date, shortened, summary_address};
use crate::answer::{Answer, Hit};
use row::{Row, links, rows};
use text::{TEXTS, TextShown};

const TITLE_CHARS_MAX: usize = 300;
/// Maximum length of the description as shown, in characters.
const DESCRIPTION_CHARS_MAX: usize = 2_000;
/// Maximum length of one value of a fact or of one keyword, in characters.
const FACT_CHARS_MAX: usize = 200;
/// Maximum number of values of one fact.
const FACT_VALUES_MAX: usize = 8;
/// Number of keywords that are shown at once, and folded.
const KEYWORDS_MAX: usize = 12;
const KEYWORDS_FOLDED_MAX: usize = 500;
/// Bytes of an attribute's value that are split into lines.
const LINES_BYTES_MAX: usize = 256 << 10;

/// Format of an object: `format=`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Format {
    #[default]
    Html,
    Soif,
    Json,
}

#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct ObjectParameters {
    pub(crate) oid: Option<String>,
    pub(crate) format: Option<Format>,
    /// Number of the part of the text to show, from 1: `part=`.
    pub(crate) part: Option<usize>,
    /// The results that lead to the object; `None` if there are none.
    pub(crate) results: Option<Parameters>,
}

impl ObjectParameters {
    /// Reads the part of the URL after `?`; the error is a sentence.
    pub(crate) fn parse(query: Option<&str>) -> Result<Self, String> {
        let mut asked = Self::default();
        for (name, value) in form_urlencoded::parse(query.unwrap_or_default().as_bytes()) {
            match &*name {
                "oid" => asked.oid = Some(value.into_owned()),
                "format" => {
                    asked.format = Some(match &*value {
                        "html" => Format::Html,
                        "soif" => Format::Soif,
                        "json" => Format::Json,
                        _ => {
                            return Err(format!(
                                "format is {value:?}; expected html, soif or json"
                            ));
                        }
                    });
                }
                // A number that nobody can read shows the beginning.
                "part" => asked.part = Some(value.parse().unwrap_or(1)),
                _ => {}
            }
        }
        let results = Parameters::parse(query, Unknown::Ignored).ok();
        asked.results = results.filter(Parameters::is_search);
        Ok(asked)
    }
}

/// The data of `object.html`.
#[derive(Debug, Serialize)]
pub(crate) struct ObjectPage {
    object: ObjectShown,
    /// The URL to which to post a file that is to be opened; `None` unless the browser may.
    pub(crate) open: Option<String>,
}

#[derive(Debug, Serialize)]
struct ObjectShown {
    title: String,
    place: DisplayUrl,
    href: Option<String>,
    /// The URL of a cache's copy of it.
    copy: Option<String>,
    /// The URL of a local file, which the desktop can open.
    file: Option<String>,
    /// URL of the results that lead here.
    back: Option<String>,
    facts: Vec<Fact>,
    description: String,
    text: Option<TextShown>,
    /// URLs of the part before, of the part behind, and of the first part.
    previous: Option<String>,
    next: Option<String>,
    first: String,
    forms: Vec<DuplicateShown>,
    related: Vec<Related>,
    /// URL of all objects about the same.
    like: String,
    keywords: Vec<String>,
    keywords_folded: Vec<String>,
    /// How many keywords are not even among the folded ones.
    keywords_left_out: usize,
    links: Vec<DisplayUrl>,
    links_left_out: usize,
    soif: String,
    json: String,
    rows: Vec<Row>,
    rows_left_out: usize,
}

/// An object about the same.
#[derive(Debug, Serialize)]
struct Related {
    title: String,
    r#type: String,
    summary: String,
}

impl Related {
    fn new(hit: &Hit, results: &Parameters) -> Self {
        let address = DisplayUrl::of(&hit.url).text;
        let title = if hit.title.trim().is_empty() { &address } else { &hit.title };
        Self {
            title: shortened(&harmless(title), FACT_CHARS_MAX),
            r#type: harmless(&hit.r#type).into_owned(),
            summary: summary_address(&hit.oid, results),
        }
    }
}

/// What a person wants to know of an object at once.
#[derive(Debug, PartialEq, Eq, Serialize)]
struct Fact {
    name: &'static str,
    values: Vec<String>,
    more: usize,
}

impl ObjectPage {
    /// Returns the page of a record. `query` is that of the results which lead to it; `related` has
    /// objects about the same, and its other forms.
    pub(crate) fn new(
        oid: &str,
        record: &Record,
        (asked, query): (&ObjectParameters, Option<&Query>),
        related: &Answer,
    ) -> Self {
        let mut parts = Parts { record, used: BTreeSet::new() };
        let place = DisplayUrl::of(&record.url);
        let title = parts.line("Title").map(Cow::Owned);
        let title = title.unwrap_or_else(|| Cow::Borrowed(last_part(&place.text)));
        let facts = facts(&mut parts);
        let text = TEXTS.into_iter().find_map(|it| parts.take(it));
        let text = text.map(|it| TextShown::new(record, it, asked.part, query));
        let description = parts.take("Description").or_else(|| parts.take("Abstract"));
        let description = head(description.unwrap_or_default(), 4 * DESCRIPTION_CHARS_MAX + 4);
        let description = String::from_utf8_lossy(description);
        // The beginning of a text is no description beside it.
        let is_new = !text.as_ref().is_some_and(|it| it.has(description.trim()));
        let description = if is_new { description.trim() } else { "" };
        let keywords = parts.take("Keywords").unwrap_or_default();
        let (mut keywords, keywords_left_out) = lines(keywords, KEYWORDS_MAX + KEYWORDS_FOLDED_MAX);
        let keywords_folded = keywords.split_off(KEYWORDS_MAX.min(keywords.len()));
        let (links, links_left_out) = links(parts.take("URL-References").unwrap_or_default());
        let landing = record.text(LANDING_PAGE).map(|it| DisplayUrl::of(it.trim()));
        let open = place.href.as_deref().or_else(|| landing.as_ref()?.href.as_deref());
        let address = summary_address(oid, &Parameters::default());
        let results = asked.results.clone().unwrap_or_default();
        let of_part = |part: usize| format!("{}&part={part}", summary_address(oid, &results));
        let beside = |step: isize| {
            let text = text.as_ref()?;
            let part = text.part.checked_add_signed(step)?;
            (1..=text.parts).contains(&part).then(|| of_part(part))
        };
        let (previous, next) = (beside(-1), beside(1));
        let itself = (record.url.as_str(), quantity(record, Quantity::Modified));
        let forms = related.forms.iter().map(|it| DuplicateShown::new(it, itself, (&results, "")));
        let (rows, rows_left_out) = rows(&parts.rest());
        let object = ObjectShown {
            title: shortened(&harmless(title.trim()), TITLE_CHARS_MAX),
            href: open.map(str::to_owned),
            copy: None,
            file: place.local.then(|| record.url.clone()),
            place,
            back: asked.results.as_ref().map(Parameters::address),
            facts,
            description: shortened(&harmless(description), DESCRIPTION_CHARS_MAX),
            text,
            previous,
            next,
            first: of_part(1),
            forms: forms.collect(),
            related: related.hits.iter().map(|it| Related::new(it, &results)).collect(),
            like: results.like(oid).address(),
            keywords,
            keywords_folded,
            keywords_left_out,
            links,
            links_left_out,
            soif: format!("{address}&format=soif"),
            json: format!("{address}&format=json"),
            rows,
            rows_left_out,
        };
        Self { object, open: None }
    }

    /// Returns whether a cache may have a copy of the object.
    pub(crate) fn may_be_copied(&self) -> bool {
        self.object.href.is_some()
    }

    /// Links the copy that a cache may have of the object, for when its home is down.
    pub(crate) fn link_copy(&mut self, cache: Option<&Url>) {
        let copy = cache.and_then(|it| it.join("copy").ok()).zip(self.object.href.as_deref());
        self.object.copy = copy.map(|(mut copy, original)| {
            copy.query_pairs_mut().append_pair("url", original);
            copy.into()
        });
    }
}

/// The attributes of a record, of which those that people read are taken one after the other.
struct Parts<'a> {
    record: &'a Record,
    /// The places of the taken attributes.
    used: BTreeSet<usize>,
}

impl<'a> Parts<'a> {
    /// Takes the first attribute of this name that is not blank.
    fn take(&mut self, name: &str) -> Option<&'a [u8]> {
        let mut all = self.record.attributes().iter().enumerate();
        let is_it = |it: &Attribute| {
            it.name.eq_ignore_ascii_case(name) && !it.value.trim_ascii().is_empty()
        };
        let (at, found) = all.find(|(_, it)| is_it(it))?;
        self.used.insert(at);
        Some(&found.value)
    }

    /// Takes an attribute as one line.
    fn line(&mut self, name: &str) -> Option<String> {
        let value = self.take(name)?;
        Some(lines(value, 1).0.concat())
    }

    /// Returns the attributes that are left.
    fn rest(&self) -> Vec<&'a Attribute> {
        let all = self.record.attributes().iter().enumerate();
        all.filter(|(at, _)| !self.used.contains(at)).map(|(_, it)| it).collect()
    }
}

/// Returns what a person wants to know at once.
fn facts(parts: &mut Parts<'_>) -> Vec<Fact> {
    let record = parts.record;
    let mut facts = Vec::new();
    let mut add = |name, (values, more): (Vec<String>, usize)| {
        if !values.is_empty() {
            facts.push(Fact { name, values, more });
        }
    };
    let one = |value: Option<String>| (value.into_iter().collect::<Vec<_>>(), 0);
    for (name, attribute) in [("Author", "Author"), ("Date", "Date")] {
        add(name, lines(parts.take(attribute).unwrap_or_default(), FACT_VALUES_MAX));
    }
    let changed = record.number("Last-Modification-Time").and_then(|it| i64::try_from(it).ok());
    add("Changed", one(changed.and_then(date)));
    add("Language", one(parts.line("Language").map(language)));
    add("Type", one(parts.line("Type")));
    add("Size", one(record.number("File-Size").map(web::templates::size)));
    let gatherer = shortened(&harmless(&gatherer_name(record)), FACT_CHARS_MAX);
    add("Gathered by", one(Some(gatherer).filter(|it| !it.is_empty())));
    // The ids of brokers, the first of which pulled the gatherer.
    let path = parts.line(ORIGIN_PATH).unwrap_or_default();
    add("By way of", (path.split_whitespace().map(str::to_owned).collect(), 0));
    facts
}

/// Returns a language tag (BCP 47) with the English name of its language, if it is a usual one.
fn language(tag: String) -> String {
    let code = tag.split(['-', '_']).next().unwrap_or_default().to_ascii_lowercase();
    match LANGUAGES.iter().find(|it| it.0 == code) {
        Some((_, name)) if code == tag => (*name).to_owned(),
        Some((_, name)) => format!("{name} ({tag})"),
        None => tag,
    }
}

#[rustfmt::skip]
const LANGUAGES: [(&str, &str); 36] = [
    ("ar", "Arabic"), ("bg", "Bulgarian"), ("ca", "Catalan"), ("cs", "Czech"), ("da", "Danish"),
    ("de", "German"), ("el", "Greek"), ("en", "English"), ("es", "Spanish"), ("et", "Estonian"),
    ("fa", "Persian"), ("fi", "Finnish"), ("fr", "French"), ("he", "Hebrew"), ("hi", "Hindi"),
    ("hr", "Croatian"), ("hu", "Hungarian"), ("id", "Indonesian"), ("it", "Italian"),
    ("ja", "Japanese"), ("ko", "Korean"), ("lt", "Lithuanian"), ("lv", "Latvian"), ("nl", "Dutch"),
    ("no", "Norwegian"), ("pl", "Polish"), ("pt", "Portuguese"), ("ro", "Romanian"),
    ("ru", "Russian"), ("sk", "Slovak"), ("sl", "Slovenian"), ("sv", "Swedish"), ("th", "Thai"),
    ("tr", "Turkish"), ("uk", "Ukrainian"), ("zh", "Chinese"),
];

/// Returns the first lines of a value that are not blank, harmless and short, and how many more
/// there are in the part of it that is read.
fn lines(value: &[u8], lines_max: usize) -> (Vec<String>, usize) {
    let text = String::from_utf8_lossy(head(value, LINES_BYTES_MAX));
    let mut all = text.lines().map(str::trim).filter(|it| !it.is_empty());
    let line = |it: &str| shortened(&harmless(it), FACT_CHARS_MAX);
    let first = all.by_ref().take(lines_max).map(line).collect();
    (first, all.count())
}

/// Returns at most the first `bytes_max` bytes, without the beginning of a character at their end.
fn head(bytes: &[u8], bytes_max: usize) -> &[u8] {
    let Some(cut) = bytes.get(..bytes_max) else { return bytes };
    let is_start = |it: &u8| it & 0xC0 != 0x80;
    match cut.iter().rposition(is_start).filter(|at| cut.len() < at + 4) {
        Some(at) if bytes.get(bytes_max).is_some_and(|it| !is_start(it)) => {
            cut.get(..at).unwrap_or(cut)
        }
        _ => cut,
    }
}

/// Returns the last non-empty part of a URL.
fn last_part(address: &str) -> &str {
    address.trim_end_matches('/').rsplit('/').next().filter(|it| !it.is_empty()).unwrap_or(address)
}

#[cfg(test)]
mod tests;
