//! Search requests and answers: the types of `/api/search`.
//!
//! The field names of [`Answer`] and [`Hit`] are those of the JSON and must not change, since other
//! programs read them.
//!
//! Sans-I/O.

mod several;

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use collection::Subset;
use query::Query;
use serde::{Deserialize, Serialize};
use soif::Record;

pub(crate) use several::OBJECTS_MAX;
pub use several::{
    AskedBroker, AskedState, Everywhere, Foreign, ForeignHit, FromBroker, Statistics,
};

/// Default number of hits in one answer.
pub const HITS_DEFAULT: usize = 10;
/// Maximum number of hits in one answer.
pub const HITS_MAX: usize = 1_000;
/// Highest `offset + limit`; the cost of a search is linear in this sum.
pub const DEPTH_MAX: usize = 10_000;
/// Time limit of a search, however busy the machine is; a search that takes longer fails with an error.
pub const SEARCH_TIME_MAX: Duration = Duration::from_secs(10);
/// Processor time that a search may use; one that needs more fails with an error.
pub const SEARCH_CPU_MAX: Duration = Duration::from_secs(1);
/// Maximum number of values of a facet in one answer.
pub const FACET_VALUES_MAX: usize = 10;

/// A search.
#[derive(Clone, Debug, PartialEq)]
pub struct SearchRequest {
    /// The parsed query.
    pub query: Query,
    /// The query as typed, for pages and logs.
    pub text: String,
    /// Number of hits to return, up to [`HITS_MAX`]; 0 asks for the total and the facets only.
    pub limit: usize,
    /// Number of hits to skip before the first.
    pub offset: usize,
    /// How many of the words side by side a hit has.
    pub matching: Matching,
    /// Order of the hits.
    pub sort: Sort,
    /// What each hit matches, too, and is not ranked by: the views that the search is within.
    pub scope: Vec<Query>,
    /// The chosen facet values, but for views. For each facet with chosen values, a hit has one of them.
    pub filters: Vec<Filter>,
    /// Whether to count facets.
    pub facets: bool,
    /// The views in which matching objects are counted as the facet [`Facet::View`].
    pub views: Vec<CountedView>,
    /// Whether to cut snippets.
    pub snippets: bool,
    /// Whether to say why each hit stands where it stands.
    pub explain: bool,
    /// Whether each duplicate has a hit of its own, instead of being named in the hit of another.
    pub duplicates: bool,
    /// An object that is no hit, nor are its duplicates and twins: they are [`Answer::forms`].
    pub but: Option<Arc<Record>>,
    /// Words that raise the rank, with their weights beside that of 1 for each word of the query;
    /// unless [`Matching::All`] is asked for, objects that have only such words follow the others.
    /// Only for queries of plain words.
    pub expansion: Vec<(String, f32)>,
    /// By which words are scored; `None`: by what this index has.
    pub statistics: Option<Arc<Statistics>>,
}

impl SearchRequest {
    /// Returns the usual search for `query`: the first hits by relevance, with facets and snippets.
    pub fn new(query: Query, text: impl Into<String>) -> Self {
        Self {
            query,
            text: text.into(),
            limit: HITS_DEFAULT,
            offset: 0,
            matching: Matching::Best,
            sort: Sort::Relevance,
            scope: Vec::new(),
            filters: Vec::new(),
            facets: true,
            views: Vec::new(),
            snippets: true,
            explain: false,
            duplicates: false,
            but: None,
            expansion: Vec::new(),
            statistics: None,
        }
    }
}

/// A view in which matching objects are counted.
#[derive(Clone, Debug, PartialEq)]
pub struct CountedView {
    /// Its name.
    pub name: String,
    /// Its name for people.
    pub title: String,
    /// What it has.
    pub objects: Subset,
}

/// How many of the words side by side a hit has. Signs, phrases, operators and attributes hold for
/// every hit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Matching {
    /// All of them; where such hits are fewer than the limit, hits with some of them follow.
    #[default]
    Best,
    /// All of them.
    All,
    /// At least one of them.
    Any,
}

impl Matching {
    /// All of them, the default first.
    pub const ALL: [Self; 3] = [Self::Best, Self::All, Self::Any];

    /// Returns its name in a URL: `match=NAME`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Best => "best",
            Self::All => "all",
            Self::Any => "any",
        }
    }

    /// Returns the one with this name; `None` if there is none.
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.name() == name)
    }
}

/// Order of the hits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sort {
    /// Best first.
    #[default]
    Relevance,
    /// The latest modification first; hits without a date last.
    Newest,
    /// The earliest modification first; hits without a date last.
    Oldest,
    /// The record that was updated last first.
    Updated,
    /// By title, without regard to case; hits without a title last.
    Title,
    /// Largest first.
    Size,
    /// By URL.
    Url,
}

impl Sort {
    /// All orders, as a page's menu lists them.
    pub const ALL: [Self; 7] = [
        Self::Relevance,
        Self::Newest,
        Self::Oldest,
        Self::Updated,
        Self::Title,
        Self::Size,
        Self::Url,
    ];

    /// Returns the order's name in a URL: `sort=NAME`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Relevance => "relevance",
            Self::Newest => "newest",
            Self::Oldest => "oldest",
            Self::Updated => "updated",
            Self::Title => "title",
            Self::Size => "size",
            Self::Url => "url",
        }
    }

    /// Returns the order with this [`name`](Self::name), or with one of the other names `score` and
    /// `date`; `None` if there is none.
    pub fn by_name(name: &str) -> Option<Self> {
        match name {
            "score" => Some(Self::Relevance),
            "date" => Some(Self::Newest),
            _ => Self::ALL.into_iter().find(|it| it.name() == name),
        }
    }
}

/// An attribute by whose values hits are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Facet {
    /// The object's type: `HTML`, `PDF` …
    Type,
    /// The host of its URL; none for `file:` URLs.
    Host,
    /// The name of the gatherer that summarized it.
    Gatherer,
    /// Its own `Year` or that of its `Date`, or else of its last modification (UTC).
    Year,
    /// A view that has it: one of those right within the view in which is searched, or of the topmost.
    View,
}

impl Facet {
    /// All facets, in the order in which a page shows them.
    pub const ALL: [Self; 5] = [Self::View, Self::Type, Self::Host, Self::Gatherer, Self::Year];

    /// Returns the facet's name in the answer's `facets` and in a URL: `NAME=VALUE`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Type => "type",
            Self::Host => "host",
            Self::Gatherer => "gatherer",
            Self::Year => "year",
            Self::View => "view",
        }
    }

    /// Returns the facet with this name; `None` if there is none.
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.name() == name)
    }
}

/// One chosen facet value, written exactly as in the facet counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Filter {
    /// The facet.
    pub facet: Facet,
    /// The value.
    pub value: String,
}

/// The answer to a search.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Answer {
    /// Exact number of matching objects, whatever the limit. Objects with the same content are one,
    /// unless the request asks for duplicates.
    pub total: u64,
    /// How many of them have all words of the query; by [`Matching::Best`] they come first. Equal to
    /// `total` unless words side by side are matched in part.
    #[serde(default)]
    pub total_all: u64,
    /// By which the objects were found.
    #[serde(default, rename = "match")]
    pub matching: Matching,
    /// Another spelling of the query that finds more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suggestion: Option<String>,
    /// Whether the hits are those of the `suggestion`, since nothing has all words of the query.
    #[serde(default)]
    pub respelled: bool,
    /// A remark for whoever asked: the query was not understood as it may have been meant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notice: Option<Notice>,
    /// What goes on until everything is found, such as `still gathering, 43 %`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub activity: Option<String>,
    /// How many objects, matching or not, are here with only the beginning of their text.
    #[serde(default)]
    pub parts: u64,
    /// Time that the index took, in microseconds.
    pub took_us: u64,
    /// The requested hits, in order.
    pub hits: Vec<Hit>,
    /// The other forms of [`SearchRequest::but`]: its duplicates, and twins among the best hits.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub forms: Vec<Duplicate>,
    /// Who was asked, if others were.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub everywhere: Option<Everywhere>,
    /// For each [`Facet::name`], at most [`FACET_VALUES_MAX`] values with the number of matching
    /// objects, the most frequent first (years: the latest first); empty unless requested.
    pub facets: BTreeMap<String, Vec<(String, u64)>>,
}

/// A remark about a query.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Notice {
    /// The remark: a sentence without its full stop.
    pub message: String,
    /// Start of the part that it is about, in bytes from the start of the query.
    pub offset: usize,
    /// Length of that part, in bytes.
    pub length: usize,
}

/// One object that matches.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Hit {
    /// Its URL.
    pub url: String,
    /// Its title, or the last part of its URL.
    pub title: String,
    /// Its description or abstract; empty when it has none.
    pub description: String,
    /// Its type; empty when unknown.
    pub r#type: String,
    /// Relevance, comparable only within one answer; 0 when hits are not sorted by relevance.
    pub score: f32,
    /// Name of the gatherer that summarized it.
    pub gatherer: String,
    /// Id of that gatherer; with the URL it makes the OID.
    pub gatherer_id: String,
    /// Host of the URL; empty when it has none.
    pub host: String,
    /// Size in bytes, when known.
    pub size: Option<u64>,
    /// Last modification, in Unix seconds, when known.
    pub modified: Option<i64>,
    /// Web page about an object whose own URL is neither `http` nor `https`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub landing_page: Option<String>,
    /// Whether only the beginning of its text is here, so that phrases further on are not found.
    #[serde(default)]
    pub part: bool,
    /// MD5 of its content; empty if it is not known.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub md5: String,
    /// The broker that has it, if others were asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub broker: Option<FromBroker>,
    /// The OID in the form of `/object?oid=`: `GATHERER-ID:URL`, not yet percent-encoded.
    pub oid: String,
    /// An excerpt with the words of the query.
    #[serde(flatten)]
    pub snippet: Snippet,
    /// Other objects with the same content, or nearly the same text, at most [`DUPLICATES_MAX`] of
    /// each.
    pub duplicates: Vec<Duplicate>,
    /// Why the hit stands where it stands, if that was asked for and hits are sorted by relevance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasons: Option<Reasons>,
}

/// Why a hit stands where it stands: the score of its words, and what it is multiplied with.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Reasons {
    /// The score of the words by BM25F.
    pub words: f32,
    /// More than 1 for words in the title, most if they are all of it.
    pub title: f32,
    /// More than 1 if just the words are the name of the file.
    pub name: f32,
    /// More than 1 for words close to each other in the text.
    pub near: f32,
    /// Less than 1 for what is seldom wanted by its type and place: a change log, a test.
    pub standing: f32,
    /// More than 1 for a new object.
    pub age: f32,
}

impl Reasons {
    /// Returns the reasons of a hit of which only the score of its words is known.
    pub(crate) fn of_words(words: f32) -> Self {
        Self { words, title: 1.0, name: 1.0, near: 1.0, standing: 1.0, age: 1.0 }
    }

    /// Returns the score.
    pub fn score(&self) -> f32 {
        self.words * self.title * self.name * self.near * self.standing * self.age
    }
}

/// Maximum number of duplicates that one hit names.
pub const DUPLICATES_MAX: usize = 16;

/// Another object with the content or text of a hit.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Duplicate {
    /// Its URL.
    pub url: String,
    /// Name of the gatherer that summarized it.
    pub gatherer: String,
    /// Its OID, as in [`Hit::oid`].
    pub oid: String,
    /// Its type; empty when unknown.
    #[serde(default)]
    pub r#type: String,
    /// Last modification, in Unix seconds, when known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub modified: Option<i64>,
    /// Whether it has not the same content, but nearly the same text: another format or version.
    #[serde(default)]
    pub similar: bool,
    /// The broker that has it, if others were asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub broker: Option<FromBroker>,
}

impl Duplicate {
    /// Returns how it stands to the object at `url`, as text for people behind a comma; empty if both
    /// are the same.
    pub fn relation(&self, url: &str, modified: Option<i64>) -> &'static str {
        match self.modified.cmp(&modified) {
            _ if !self.similar => "",
            _ if self.url != url => "nearly the same",
            Ordering::Less => "an older version",
            Ordering::Greater => "a newer version",
            Ordering::Equal => "another version",
        }
    }
}

/// An excerpt of an object's text.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Snippet {
    /// The excerpt as plain text.
    #[serde(rename = "snippet")]
    pub text: String,
    /// The excerpt as HTML: escaped, the matched words in `<mark>`.
    #[serde(rename = "snippet_html")]
    pub html: String,
    /// The matched words: `[start, end)` in bytes of the plain text, ascending, disjoint.
    pub highlights: Vec<(usize, usize)>,
    /// The place of the first matched word in the object, for people: `page 3`, `pages 3–5`,
    /// `page 9 or later`, `line 120`, `sheet Costs, from B7`. `None` if the excerpt has no matched
    /// word, or if the record does not name its places.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
}
