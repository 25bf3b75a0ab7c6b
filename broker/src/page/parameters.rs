//! The parameters of `/` and `/api/search`, and URLs made of them.
//!
//! | parameter | is | default |
//! |---|---|---|
//! | `q` | the query | none: the API requires it or `like`; a page without it has only the search box |
//! | `like` | an OID or URL: objects about the same follow, which match `q` if that is given | none |
//! | `match` | `best`, `all`, `any`: how many of the words side by side a hit has | `best`, or that of the settings |
//! | `feedback` | whether the query is expanded by what its best hits are about | `false`, or that of the settings |
//! | `limit` | hits in one answer, 0 to [`HITS_MAX`]; a page shows at most [`PAGE_HITS_MAX`] | 10 |
//! | `offset` | hits skipped before the first; `offset + limit` is at most [`DEPTH_MAX`] | 0 |
//! | `sort` | `relevance`, `newest`, `oldest`, `updated`, `title`, `size`, `url` | `relevance` |
//! | `view`, `type`, `host`, `gatherer`, `year` | a facet's value; may be repeated | all |
//! | `duplicates` | `true`: objects with the same content are hits of their own | `false` |
//! | `facets`, `snippets` | `false`: the answer has none, and comes sooner | `true` |
//! | `explain` | `true`: each hit says why it stands where it stands | `false` |
//! | `scope` | `here`, or `everywhere`: other brokers are asked, too | `here` |
//! | `ask` | of a search everywhere: how many brokers are asked, 1 to [`ASK_MAX`] | that of the settings |
//! | `hops` | of a search everywhere: how often those that are asked ask others in turn, 0 to [`HOPS_MAX`] | 0 |
//! | `search` | between brokers: by what a search everywhere is known again | none |
//! | `within` | between brokers: the time until the answer must be there, in milliseconds | the deadline of the settings |
//! | `statistics` | between brokers: [`Statistics`] as JSON, by which words are scored | those of the index |
//!
//! Sans-I/O.

use std::sync::Arc;
use std::time::Duration;

use query::Query;
use url::form_urlencoded;

use crate::answer::{
    DEPTH_MAX, Facet, Filter, HITS_DEFAULT, HITS_MAX, Matching, SearchRequest, Sort, Statistics,
};

use crate::route::settings::ASK_MAX;

/// Maximum number of hits on one page.
pub const PAGE_HITS_MAX: usize = 100;
/// Maximum number of filters in one request.
pub const FILTERS_MAX: usize = 32;
/// Maximum length of the OID or URL after `like=`, in bytes.
pub const LIKE_BYTES_MAX: usize = 8 << 10;

/// Highest number of hops.
pub const HOPS_MAX: usize = 3;
/// Longest value of `search` and of `statistics`, in bytes.
const SEARCH_BYTES_MAX: usize = 64;
const STATISTICS_BYTES_MAX: usize = 16 << 10;
/// Longest time of `within`, in milliseconds.
const WITHIN_MS_MAX: usize = 60_000;

const NAMES: [&str; 22] = [
    "q",
    "like",
    "match",
    "feedback",
    "limit",
    "offset",
    "sort",
    "duplicates",
    "facets",
    "snippets",
    "explain",
    "scope",
    "ask",
    "hops",
    "search",
    "within",
    "statistics",
    "view",
    "type",
    "host",
    "gatherer",
    "year",
];

/// The parameters of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parameters {
    /// The query as typed; `None` when the request has none.
    pub text: Option<String>,
    /// The OID or URL of an object; hits are about the same.
    pub like: Option<String>,
    /// The chosen facet values, in the order of the request.
    pub filters: Vec<Filter>,
    /// How many of the words side by side a hit has; `None`: as the settings say.
    pub matching: Option<Matching>,
    /// Whether the query is expanded by what its best hits are about; `None`: as the settings say.
    pub feedback: Option<bool>,
    /// The order of the hits.
    pub sort: Sort,
    /// Number of hits in one answer, up to [`HITS_MAX`].
    pub limit: usize,
    /// Number of hits skipped before the first.
    pub offset: usize,
    /// Whether objects with the same content are hits of their own.
    pub duplicates: bool,
    /// Whether to count facets.
    pub facets: bool,
    /// Whether to cut snippets.
    pub snippets: bool,
    /// Whether each hit says why it stands where it stands.
    pub explain: bool,
    /// Who is asked.
    pub scope: Scope,
    /// How many brokers are asked; `None`: as the settings say.
    pub ask: Option<usize>,
    /// How often those that are asked ask others in turn.
    pub hops: usize,
    /// By what a search everywhere is known again.
    pub search: Option<String>,
    /// The time until the answer must be there.
    pub within: Option<Duration>,
    /// By which words are scored.
    pub statistics: Option<Arc<Statistics>>,
}

/// Who is asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scope {
    /// This broker.
    #[default]
    Here,
    /// All brokers that are worth asking.
    Everywhere,
}

impl Scope {
    /// All of them, the default first.
    pub const ALL: [Self; 2] = [Self::Here, Self::Everywhere];

    /// Returns its name in a URL: `scope=NAME`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Here => "here",
            Self::Everywhere => "everywhere",
        }
    }
}

impl Default for Parameters {
    fn default() -> Self {
        Self {
            text: None,
            like: None,
            filters: Vec::new(),
            matching: None,
            feedback: None,
            sort: Sort::Relevance,
            limit: HITS_DEFAULT,
            offset: 0,
            duplicates: false,
            facets: true,
            snippets: true,
            explain: false,
            scope: Scope::Here,
            ask: None,
            hops: 0,
            search: None,
            within: None,
            statistics: None,
        }
    }
}

/// Treatment of unknown parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unknown {
    /// An unknown parameter is an error, so that the author of a program notices it.
    Refused,
    /// Unknown parameters are ignored: mailers and trackers add their own to the URL of a page.
    Ignored,
}

/// A parameter that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct BadParameter {
    /// Its name.
    pub name: String,
    /// Description of the mistake and of the expected value.
    pub message: String,
}

impl BadParameter {
    fn new(name: &str, message: impl Into<String>) -> Self {
        Self { name: name.to_owned(), message: message.into() }
    }
}

impl Parameters {
    /// Reads the part of a URL after `?`.
    ///
    /// # Errors
    ///
    /// The first parameter that cannot be read; show its message.
    pub fn parse(query: Option<&str>, unknown: Unknown) -> Result<Self, BadParameter> {
        let mut asked = Self::default();
        let mut seen: Vec<String> = Vec::new();
        for (name, value) in form_urlencoded::parse(query.unwrap_or_default().as_bytes()) {
            let facet = Facet::by_name(&name);
            if facet.is_none() && seen.iter().any(|it| *it == name) {
                return Err(BadParameter::new(&name, format!("{name} is given twice")));
            }
            match (&*name, facet) {
                (_, Some(facet)) => asked.add_filter(facet, &value)?,
                ("q", _) => asked.text = Some(value.into_owned()),
                ("like", _) => {
                    let like = short(&name, &value, LIKE_BYTES_MAX)?;
                    asked.like = Some(like).filter(|it| !it.is_empty());
                }
                ("limit", _) => asked.limit = number(&name, &value, HITS_MAX)?,
                ("offset", _) => asked.offset = number(&name, &value, DEPTH_MAX)?,
                ("match", _) => {
                    let found = Matching::by_name(&value);
                    asked.matching = Some(found.ok_or_else(|| {
                        unlisted("match", "match", &value, &Matching::ALL.map(Matching::name))
                    })?);
                }
                ("sort", _) => {
                    let found = Sort::by_name(&value);
                    asked.sort = found.ok_or_else(|| {
                        unlisted("sort", "sort order", &value, &Sort::ALL.map(Sort::name))
                    })?;
                }
                ("feedback", _) => asked.feedback = Some(switch(&name, &value)?),
                ("duplicates", _) => asked.duplicates = switch(&name, &value)?,
                ("facets", _) => asked.facets = switch(&name, &value)?,
                ("snippets", _) => asked.snippets = switch(&name, &value)?,
                ("explain", _) => asked.explain = switch(&name, &value)?,
                ("scope", _) => {
                    let found = Scope::ALL.into_iter().find(|it| it.name() == value);
                    asked.scope = found.ok_or_else(|| {
                        unlisted("scope", "scope", &value, &Scope::ALL.map(Scope::name))
                    })?;
                }
                ("ask", _) => asked.ask = Some(number(&name, &value, ASK_MAX)?.max(1)),
                _ if asked.take_between(&name, &value)? => {}
                _ if unknown == Unknown::Refused => return Err(unknown_parameter(&name)),
                _ => continue,
            }
            seen.push(name.into_owned());
        }
        if DEPTH_MAX < asked.offset.saturating_add(asked.limit) {
            let message = format!("offset and limit together go up to {DEPTH_MAX}");
            return Err(BadParameter::new("offset", message));
        }
        Ok(asked)
    }

    /// Takes a parameter that brokers send each other; returns whether it is one.
    fn take_between(&mut self, name: &str, value: &str) -> Result<bool, BadParameter> {
        match name {
            "hops" => self.hops = number(name, value, HOPS_MAX)?,
            "search" => self.search = Some(short(name, value, SEARCH_BYTES_MAX)?),
            "within" => {
                let ms = number(name, value, WITHIN_MS_MAX)?;
                self.within = Some(Duration::from_millis(ms as u64));
            }
            "statistics" => {
                let text = short(name, value, STATISTICS_BYTES_MAX)?;
                let wrong = |error| format!("statistics are no JSON as they are: {error}");
                let read = serde_json::from_str(&text);
                let read = read.map_err(|error| BadParameter::new(name, wrong(error)))?;
                self.statistics = Some(Arc::new(read));
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn add_filter(&mut self, facet: Facet, value: &str) -> Result<(), BadParameter> {
        let filter = Filter { facet, value: value.to_owned() };
        // A form without a choice sends an empty value.
        if value.is_empty() || self.filters.contains(&filter) {
            return Ok(());
        }
        if FILTERS_MAX <= self.filters.len() {
            let message = format!("there are more than {FILTERS_MAX} filters");
            return Err(BadParameter::new(facet.name(), message));
        }
        self.filters.push(filter);
        Ok(())
    }

    /// Returns the search for `query`, the parsed text; `matching` is that of the settings.
    pub fn request(&self, query: Query, matching: Matching) -> SearchRequest {
        let mut request = SearchRequest::new(query, self.text.clone().unwrap_or_default());
        request.limit = self.limit;
        request.offset = self.offset;
        request.matching = self.matching.unwrap_or(matching);
        request.sort = self.sort;
        request.filters.clone_from(&self.filters);
        request.duplicates = self.duplicates;
        request.facets = self.facets;
        request.snippets = self.snippets;
        request.explain = self.explain;
        request.statistics.clone_from(&self.statistics);
        request
    }

    /// Returns the parameters that differ from the defaults, without the offset, in a fixed order.
    pub fn parameters(&self) -> Vec<(&'static str, String)> {
        let mut all = Vec::new();
        if let Some(text) = &self.text {
            all.push(("q", text.clone()));
        }
        if let Some(like) = &self.like {
            all.push(("like", like.clone()));
        }
        all.extend(self.filters.iter().map(|it| (it.facet.name(), it.value.clone())));
        if let Some(matching) = self.matching {
            all.push(("match", matching.name().to_owned()));
        }
        if let Some(feedback) = self.feedback {
            all.push(("feedback", feedback.to_string()));
        }
        if self.sort != Sort::Relevance {
            all.push(("sort", self.sort.name().to_owned()));
        }
        if self.limit != HITS_DEFAULT {
            all.push(("limit", self.limit.to_string()));
        }
        let on = [("duplicates", self.duplicates), ("explain", self.explain)].into_iter();
        all.extend(on.filter(|(_, is_on)| *is_on).map(|(name, _)| (name, "true".to_owned())));
        let off = [("facets", self.facets), ("snippets", self.snippets)].into_iter();
        all.extend(off.filter(|(_, is_on)| !is_on).map(|(name, _)| (name, "false".to_owned())));
        if self.scope != Scope::Here {
            all.push(("scope", self.scope.name().to_owned()));
        }
        all.extend(self.ask.map(|it| ("ask", it.to_string())));
        if self.hops != 0 {
            all.push(("hops", self.hops.to_string()));
        }
        all
    }

    /// Returns all parameters that differ from the defaults, with those between brokers.
    pub fn all(&self) -> Vec<(&'static str, String)> {
        let mut all = self.parameters();
        if self.offset != 0 {
            all.push(("offset", self.offset.to_string()));
        }
        all.extend(self.search.clone().map(|it| ("search", it)));
        all.extend(self.within.map(|it| ("within", it.as_millis().to_string())));
        let statistics = self.statistics.as_deref().map(serde_json::to_string);
        all.extend(statistics.and_then(Result::ok).map(|it| ("statistics", it)));
        all
    }

    /// Returns whether something is looked for.
    pub fn is_search(&self) -> bool {
        self.text.as_ref().is_some_and(|it| !it.trim().is_empty())
            || self.like.is_some()
            || !self.filters.is_empty()
    }

    /// Returns the URL of the same request: `?q=…`.
    pub fn address(&self) -> String {
        let mut all = form_urlencoded::Serializer::new(String::new());
        all.extend_pairs(self.parameters());
        if 0 < self.offset {
            all.append_pair("offset", &self.offset.to_string());
        }
        format!("?{}", all.finish())
    }

    /// Returns the same request, with the first `offset` hits skipped.
    #[must_use]
    pub fn at(&self, offset: usize) -> Self {
        Self { offset, ..self.clone() }
    }

    /// Returns the same request with another query, starting at the first hit.
    #[must_use]
    pub fn asking(&self, text: impl Into<String>) -> Self {
        Self { text: Some(text.into()), offset: 0, ..self.clone() }
    }

    /// Returns the same request without filters, starting at the first hit.
    #[must_use]
    pub fn unfiltered(&self) -> Self {
        Self { filters: Vec::new(), offset: 0, ..self.clone() }
    }

    /// Returns the search for objects about the same as `oid`, with nothing else of this request but
    /// how many hits it shows.
    #[must_use]
    pub fn like(&self, oid: impl Into<String>) -> Self {
        Self { like: Some(oid.into()), limit: self.limit, ..Self::default() }
    }

    /// Returns the same request with `filter` added or, if the request has it already, removed;
    /// starting at the first hit. A view takes the place of another one.
    #[must_use]
    pub fn toggled(&self, filter: &Filter) -> Self {
        let mut asked = self.at(0);
        if asked.filters.contains(filter) {
            asked.filters.retain(|it| it != filter);
        } else {
            asked.filters.retain(|it| it.facet != Facet::View || filter.facet != Facet::View);
            asked.filters.push(filter.clone());
        }
        asked
    }
}

fn number(name: &str, value: &str, max: usize) -> Result<usize, BadParameter> {
    value.parse().ok().filter(|it| *it <= max).ok_or_else(|| {
        BadParameter::new(name, format!("{name} is {value:?}; expected a number from 0 to {max}"))
    })
}

fn short(name: &str, value: &str, bytes_max: usize) -> Result<String, BadParameter> {
    if bytes_max < value.len() {
        return Err(BadParameter::new(name, format!("{name} is longer than {bytes_max} bytes")));
    }
    Ok(value.to_owned())
}

fn switch(name: &str, value: &str) -> Result<bool, BadParameter> {
    match value {
        "true" | "1" => Ok(true),
        "false" | "0" | "" => Ok(false),
        _ => Err(BadParameter::new(name, format!("{name} is {value:?}; expected true or false"))),
    }
}

fn unlisted(name: &str, what: &str, value: &str, expected: &[&str]) -> BadParameter {
    let message = format!("unknown {what} {value:?}; expected one of {}", expected.join(", "));
    BadParameter::new(name, message)
}

fn unknown_parameter(name: &str) -> BadParameter {
    let expected = match settings::nearest(name, NAMES) {
        Some(near) => near.to_owned(),
        None => format!("one of {}", NAMES.join(", ")),
    };
    BadParameter::new(name, format!("unknown parameter {name:?}; expected {expected}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(query: &str, expected: &Parameters) {
        let asked = Parameters::parse(Some(query), Unknown::Refused).unwrap();
        assert_eq!(asked, *expected, "{query}");
        let again = Parameters::parse(asked.address().strip_prefix('?'), Unknown::Refused).unwrap();
        assert_eq!(again, *expected, "{}", asked.address());
    }

    fn check_wrong(query: &str, name: &str, message: &str) {
        let error = Parameters::parse(Some(query), Unknown::Refused).unwrap_err();
        assert_eq!(error.name, name, "{query}");
        assert!(error.message.contains(message), "{error}");
    }

    #[test]
    fn parameters_are_read_and_written() {
        check("", &Parameters::default());
        let asked = Parameters { text: Some("a & \"b\"".to_owned()), ..Parameters::default() };
        check("q=a+%26+%22b%22", &asked);
        let filter = |facet, value: &str| Filter { facet, value: value.to_owned() };
        let filters = vec![
            filter(Facet::Type, "HTML"),
            filter(Facet::Year, "2024"),
            filter(Facet::Type, "PDF"),
        ];
        let asked = Parameters {
            filters,
            matching: Some(Matching::Any),
            feedback: Some(true),
            like: Some("0a:http://h/".to_owned()),
            sort: Sort::Newest,
            limit: 5,
            offset: 20,
            duplicates: true,
            facets: false,
            snippets: false,
            explain: true,
            scope: Scope::Everywhere,
            ask: Some(7),
            hops: 2,
            search: None,
            within: None,
            statistics: None,
            text: Some(String::new()),
        };
        check(
            "q=&type=HTML&year=2024&type=PDF&type=HTML&host=&match=any&feedback=1&sort=date&limit=5\
             &offset=20&like=0a:http://h/&duplicates=1&facets=false&snippets=0&explain=true\
             &scope=everywhere&ask=7&hops=2",
            &asked,
        );
    }

    #[test]
    fn wrong_parameters_are_named() {
        check_wrong("limit=1001", "limit", "from 0 to 1000");
        check_wrong("limit=-1", "limit", "\"-1\"");
        check_wrong("offset=99999999999999999999", "offset", "from 0 to 10000");
        check_wrong("offset=9991", "offset", "together");
        check_wrong("sort=best", "sort", "relevance, newest");
        check_wrong("match=some", "match", "best, all, any");
        check_wrong("duplicates=perhaps", "duplicates", "true or false");
        check_wrong("feedback=x", "feedback", "true or false");
        check_wrong(&format!("like={}", "x".repeat(8_193)), "like", "8192 bytes");
        check_wrong("q=a&q=b", "q", "twice");
        check_wrong("limt=5", "limt", "expected limit");
        check_wrong("utm_source=x", "utm_source", "one of q, like, match");
        let many: String = (0..33).map(|i| format!("host={i}&")).collect();
        check_wrong(&many, "host", "more than 32");
        assert_eq!(
            Parameters::parse(Some("utm_source=x"), Unknown::Ignored),
            Ok(Parameters::default())
        );
    }

    #[test]
    fn links_change_one_thing_and_start_over() {
        let asked = Parameters::parse(Some("q=x&type=A&offset=10"), Unknown::Refused).unwrap();
        let filter = Filter { facet: Facet::Host, value: "a b".to_owned() };
        assert_eq!(asked.toggled(&filter).address(), "?q=x&type=A&host=a+b");
        assert_eq!(asked.toggled(&asked.filters[0]).address(), "?q=x");
        let view = |name: &str| Filter { facet: Facet::View, value: name.to_owned() };
        let within = asked.toggled(&view("a")).toggled(&view("b"));
        assert_eq!(within.address(), "?q=x&type=A&view=b");
        assert_eq!(within.toggled(&view("b")).address(), "?q=x&type=A");
        assert_eq!(asked.unfiltered().address(), "?q=x");
        assert_eq!(asked.at(20).address(), "?q=x&type=A&offset=20");
        assert_eq!(asked.asking("y").address(), "?q=y&type=A");
        assert_eq!(asked.like("g:x").address(), "?like=g%3Ax");
    }
}
