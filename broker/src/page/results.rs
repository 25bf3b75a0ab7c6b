//! The page of results: this module prepares all data of an answer, so that the template only
//! arranges them.
//!
//! Sans-I/O.

use jiff::Timestamp;
use query::record::oid_parse;
use query::{Query, QueryError, Value};
use serde::Serialize;
use url::form_urlencoded;
use web::foreign::harmless;

use super::advice::{Advice, advice};
use super::asked::{AskedShown, BrokerShown, ForeignShown};
use super::display_url::DisplayUrl;
use super::parameters::Parameters;
use super::text_place::TextPlace;
use crate::answer::{
    Answer, DEPTH_MAX, Duplicate, Facet, Filter, Hit, Matching, Notice, SearchRequest, Snippet,
    Sort,
};
use crate::route;

/// Number of links to pages on each side of the current page.
const PAGES_BESIDE: usize = 2;
/// Maximum length of the description shown in place of a missing snippet, in characters.
const DESCRIPTION_CHARS_MAX: usize = 300;
const TITLE_CHARS_MAX: usize = 200;

/// The data of `search.html`.
#[derive(Debug, Serialize)]
pub(crate) struct SearchPage {
    /// The query as typed.
    pub(crate) q: String,
    /// Hidden fields of the search form, with the parameters to keep.
    pub(crate) keep: Vec<(&'static str, String)>,
    /// What goes on until everything is found; `None` when it is.
    pub(crate) activity: Option<String>,
    /// The URL to which to post a file that is to be opened; `None` unless the browser may.
    pub(crate) open: Option<String>,
    /// Whether other brokers are asked, too; `None`: there are none.
    pub(crate) everywhere: Option<bool>,
    pub(crate) home: Home,
    pub(crate) wrong: Option<Mistake>,
    pub(crate) found: Option<Results>,
}

#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(crate) struct Home {
    pub(crate) objects: u64,
    pub(crate) sources: usize,
    /// Whether there are views to browse.
    pub(crate) has_views: bool,
}

#[derive(Debug, Serialize)]
pub(crate) struct Mistake {
    message: String,
    /// The query; empty when the mistake is not in the query.
    shown: String,
    /// The line of carets to show below the query; empty when the query is.
    carets: String,
    /// Number of the character above the first caret, from 1, for screen readers; 0 without carets.
    character: usize,
}

impl Mistake {
    pub(crate) fn query(error: &QueryError, text: &str) -> Self {
        let lines = error.caret(text);
        let (shown, carets) = lines.split_once('\n').unwrap_or((&lines, ""));
        Self {
            message: harmless(&error.message).into_owned(),
            shown: harmless(shown).into_owned(),
            carets: carets.to_owned(),
            character: text.char_indices().filter(|(at, _)| *at < error.offset).count() + 1,
        }
    }

    fn notice(notice: &Notice, text: &str) -> Self {
        let Notice { message, offset, length } = notice.clone();
        Self::query(&QueryError { offset, len: length, message }, text)
    }

    pub(crate) fn parameter(message: impl Into<String>) -> Self {
        Self { message: message.into(), shown: String::new(), carets: String::new(), character: 0 }
    }
}

#[derive(Debug, Serialize)]
pub(crate) struct Results {
    total: u64,
    /// How many hits have all words; they come first.
    total_all: u64,
    /// Whether hits with some of the words follow those with all.
    some_follow: bool,
    /// Number of the first hit on this page without all words, from 1; 0 if there is none.
    first_some: u64,
    notice: Option<Mistake>,
    suggestion: Option<Suggestion>,
    took: String,
    /// Number of the first hit shown, from 1; 0 when no hit is shown.
    first: u64,
    /// Number of the last hit shown; 0 when no hit is shown.
    last: u64,
    hits: Vec<HitShown>,
    facets: Vec<FacetShown>,
    chips: Vec<Chip>,
    /// Hidden fields of the sort form, with the parameters to keep.
    keep: Vec<(&'static str, String)>,
    sorts: Vec<SortShown>,
    pages: Vec<PageLink>,
    previous: Option<String>,
    next: Option<String>,
    /// The number of the last hit that can be reached by paging; `None` if all hits can.
    cut: Option<usize>,
    /// URL of the first page.
    start: String,
    /// URL of the first page without filters, if there are filters.
    unfiltered: Option<String>,
    /// Query part of the URL of the answer as JSON.
    api: String,
    advice: Vec<Advice>,
    /// How many objects are here with only the beginning of their text, if the query has a phrase.
    parts: u64,
    /// Who was asked, if others were.
    asked: Vec<AskedShown>,
    /// Number of brokers that this one has asked itself.
    chosen: usize,
    /// How many brokers are known, if others were asked.
    known: u64,
    /// What engines of other makes have, if some were asked.
    foreign: Option<ForeignShown>,
}

#[derive(Debug, Serialize)]
struct HitShown {
    part: bool,
    title: String,
    href: Option<String>,
    /// The URL of a local file, which the desktop can open.
    file: Option<String>,
    place: DisplayUrl,
    summary: String,
    /// URL of the objects about the same.
    like: String,
    r#type: String,
    size: Option<u64>,
    date: Option<String>,
    gatherer: String,
    snippet: Vec<Piece>,
    text_place: Option<TextPlace>,
    /// How many of the duplicates are older versions of it, by other gatherers.
    older: usize,
    /// Whether all duplicates have its own URL, and other gatherers.
    is_one_place: bool,
    duplicates: Vec<DuplicateShown>,
    /// The broker that has it, if that is another one.
    broker: Option<BrokerShown>,
}

/// A part of a text, with or without a mark.
#[derive(Debug, PartialEq, Serialize)]
pub(super) struct Piece {
    pub(super) text: String,
    pub(super) marked: bool,
}

#[derive(Debug, Serialize)]
pub(super) struct DuplicateShown {
    /// How it stands to the shown object; empty if both are the same.
    relation: &'static str,
    r#type: String,
    place: DisplayUrl,
    gatherer: String,
    summary: String,
    /// The other broker that has it.
    broker: Option<BrokerShown>,
}

#[derive(Debug, Serialize)]
struct FacetShown {
    name: &'static str,
    label: &'static str,
    values: Vec<FacetValue>,
}

#[derive(Debug, Serialize)]
struct FacetValue {
    value: String,
    count: u64,
    chosen: bool,
    address: String,
}

#[derive(Debug, Serialize)]
struct Chip {
    facet: &'static str,
    value: String,
    address: String,
}

#[derive(Debug, Serialize)]
struct SortShown {
    name: &'static str,
    label: &'static str,
    chosen: bool,
}

#[derive(Debug, Default, PartialEq, Serialize)]
struct PageLink {
    number: usize,
    address: String,
    current: bool,
    gap: bool,
}

/// Another spelling of the query.
#[derive(Debug, Serialize)]
struct Suggestion {
    text: String,
    address: String,
    /// Whether the hits are those of the suggestion.
    is_shown: bool,
}

impl Results {
    pub(crate) fn new(asked: &Parameters, request: &SearchRequest, answer: &Answer) -> Self {
        let query = &request.query;
        let first = if answer.hits.is_empty() { 0 } else { asked.offset as u64 + 1 };
        let everywhere = answer.everywhere.as_ref();
        let depth_max = if everywhere.is_some() { route::DEPTH_MAX } else { DEPTH_MAX };
        let reachable = usize::try_from(answer.total).unwrap_or(usize::MAX).min(depth_max);
        let next = asked.offset.saturating_add(asked.limit);
        let has_next = 0 < asked.limit && next < reachable && !answer.hits.is_empty();
        let has_next = has_next && next.saturating_add(asked.limit) <= depth_max;
        let back = asked.offset.saturating_sub(asked.limit);
        let mut keep = asked.parameters();
        keep.retain(|(name, _)| *name != "sort");
        let last = first.saturating_sub(1) + answer.hits.len() as u64;
        let some = answer.total_all + 1;
        let is_best = request.matching == Matching::Best;
        let text = asked.text.as_deref().unwrap_or_default();
        let here = everywhere.map_or("", |it| &*it.by);
        Self {
            total: answer.total,
            total_all: answer.total_all,
            some_follow: is_best && answer.total_all < answer.total,
            first_some: if is_best && (first..=last).contains(&some) { some } else { 0 },
            notice: answer.notice.as_ref().map(|it| Mistake::notice(it, text)),
            suggestion: answer.suggestion.as_ref().map(|it| Suggestion {
                text: harmless(it).into_owned(),
                address: asked.asking(it.clone()).address(),
                is_shown: answer.respelled,
            }),
            took: took(answer.took_us),
            first,
            last,
            hits: answer.hits.iter().map(|it| HitShown::new(it, asked, here)).collect(),
            facets: facets(asked, request, answer),
            chips: chips(asked, request),
            keep,
            sorts: sorts(asked.sort, everywhere.is_some()),
            pages: pages(asked, reachable, depth_max),
            previous: (0 < asked.offset).then(|| asked.at(back).address()),
            next: has_next.then(|| asked.at(next).address()),
            cut: (depth_max as u64 <= answer.total.saturating_sub(1)).then_some(depth_max),
            start: asked.at(0).address(),
            unfiltered: (!asked.filters.is_empty()).then(|| asked.unfiltered().address()),
            api: asked.address(),
            advice: advice(asked, query),
            parts: if has_phrase(query) { answer.parts } else { 0 },
            asked: everywhere
                .map(|it| it.asked.iter().map(AskedShown::new).collect())
                .unwrap_or_default(),
            chosen: everywhere
                .map_or(0, |it| it.asked.iter().filter(|it| it.via.is_none()).count()),
            known: everywhere.map_or(0, |it| it.known),
            foreign: everywhere.and_then(|it| it.foreign.as_ref()).map(ForeignShown::new),
        }
    }
}

impl HitShown {
    /// Describes a hit; `here` is the id of this broker, if others were asked.
    fn new(hit: &Hit, asked: &Parameters, here: &str) -> Self {
        let broker = hit.broker.as_ref().filter(|it| it.id != here).and_then(BrokerShown::new);
        let place = DisplayUrl::of(&hit.url);
        let landing = hit.landing_page.as_deref().map(DisplayUrl::of);
        let open = place.href.as_deref().or_else(|| landing.as_ref()?.href.as_deref());
        let title = if hit.title.trim().is_empty() { &place.text } else { &hit.title };
        let is_of_url = |it: &&Duplicate| it.url == hit.url;
        let of_url = hit.duplicates.iter().filter(is_of_url);
        let duplicates = hit.duplicates.iter();
        let duplicates =
            duplicates.map(|it| DuplicateShown::new(it, (&hit.url, hit.modified), (asked, here)));
        Self {
            title: shortened(&harmless(title), TITLE_CHARS_MAX),
            href: open.map(str::to_owned),
            file: place.local.then(|| hit.url.clone()),
            place,
            part: hit.part,
            text_place: TextPlace::of(hit),
            summary: summary_address(&hit.oid, asked),
            like: asked.like(hit.oid.clone()).address(),
            r#type: harmless(&hit.r#type).into_owned(),
            size: hit.size,
            date: hit.modified.and_then(date),
            gatherer: harmless(&hit.gatherer).into_owned(),
            snippet: snippet(&hit.snippet, &hit.description),
            broker,
            older: of_url.clone().filter(|it| it.similar && it.modified < hit.modified).count(),
            is_one_place: of_url.count() == hit.duplicates.len(),
            duplicates: duplicates.collect(),
        }
    }
}

impl DuplicateShown {
    /// Describes a duplicate of the object at `url`, which was modified then.
    pub(super) fn new(
        duplicate: &Duplicate,
        (url, modified): (&str, Option<i64>),
        (asked, here): (&Parameters, &str),
    ) -> Self {
        Self {
            relation: duplicate.relation(url, modified),
            r#type: harmless(&duplicate.r#type).into_owned(),
            place: DisplayUrl::of(&duplicate.url),
            gatherer: harmless(&duplicate.gatherer).into_owned(),
            summary: summary_address(&duplicate.oid, asked),
            broker: duplicate.broker.as_ref().filter(|it| it.id != here).and_then(BrokerShown::new),
        }
    }
}

/// Returns the URL of an object's page, below the site's base, with the results that lead there.
pub(crate) fn summary_address(oid: &str, asked: &Parameters) -> String {
    let encoded: String = form_urlencoded::byte_serialize(oid.as_bytes()).collect();
    let results = asked.address().replacen('?', "&", 1);
    format!("object?oid={encoded}{}", results.strip_suffix('&').unwrap_or(&results))
}

/// Returns the day of a Unix time in UTC: `2024-03-05`; `None` if it is out of range.
pub(crate) fn date(unix_secs: i64) -> Option<String> {
    let day = Timestamp::from_second(unix_secs).ok()?;
    Some(day.strftime("%Y-%m-%d").to_string())
}

/// Returns at most `chars_max` characters of `text`, with an ellipsis if some are left out.
pub(crate) fn shortened(text: &str, chars_max: usize) -> String {
    match text.char_indices().nth(chars_max) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default().trim_end()),
        None => text.to_owned(),
    }
}

fn took(us: u64) -> String {
    match us {
        0..1_000 => "less than 1 ms".to_owned(),
        1_000..1_000_000 => format!("{} ms", us / 1_000),
        _ => format!("{}.{} s", us / 1_000_000, us / 100_000 % 10),
    }
}

fn snippet(snippet: &Snippet, description: &str) -> Vec<Piece> {
    if snippet.text.trim().is_empty() {
        let text = shortened(description.trim(), DESCRIPTION_CHARS_MAX);
        return if text.is_empty() { Vec::new() } else { vec![Piece { text, marked: false }] };
    }
    pieces(&snippet.text, snippet.highlights.iter().copied())
}

/// Cuts a text at its highlights; skips highlights that do not fit.
pub(super) fn pieces(
    text: &str,
    highlights: impl IntoIterator<Item = (usize, usize)>,
) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut at = 0;
    let mut push = |text: Option<&str>, marked| {
        if let Some(text) = text.filter(|text| !text.is_empty()) {
            pieces.push(Piece { text: harmless(text).into_owned(), marked });
        }
    };
    for (start, end) in highlights {
        let fits = at <= start && text.get(start..end).is_some();
        if fits {
            push(text.get(at..start), false);
            push(text.get(start..end), true);
            at = end;
        }
    }
    push(text.get(at..), false);
    pieces
}

fn label(facet: Facet) -> &'static str {
    match facet {
        Facet::Type => "Type",
        Facet::Host => "Host",
        Facet::Gatherer => "Gatherer",
        Facet::Year => "Year",
        Facet::View => "View",
    }
}

/// Returns the orders to choose from. When a record came to a broker, only that broker knows.
fn sorts(chosen: Sort, is_everywhere: bool) -> Vec<SortShown> {
    let offered = Sort::ALL.into_iter().filter(|it| !is_everywhere || *it != Sort::Updated);
    offered.map(|it| shown_sort(it, chosen)).collect()
}

fn shown_sort(sort: Sort, chosen: Sort) -> SortShown {
    let label = match sort {
        Sort::Relevance => "Relevance",
        Sort::Newest => "Newest first",
        Sort::Oldest => "Oldest first",
        Sort::Updated => "Newest here first",
        Sort::Title => "Title",
        Sort::Size => "Largest first",
        Sort::Url => "Address",
    };
    SortShown { name: sort.name(), label, chosen: sort == chosen }
}

/// Returns the value of a facet for people.
fn shown_value(request: &SearchRequest, filter: &Filter) -> String {
    let mut views = request.views.iter().filter(|_| filter.facet == Facet::View);
    let title = views.find(|it| it.name == filter.value).map(|it| &it.title);
    harmless(title.unwrap_or(&filter.value)).into_owned()
}

fn facets(asked: &Parameters, request: &SearchRequest, answer: &Answer) -> Vec<FacetShown> {
    let shown = Facet::ALL.into_iter().filter_map(|facet| {
        let counted = answer.facets.get(facet.name())?;
        let values = counted.iter().map(|(value, count)| {
            let filter = Filter { facet, value: value.clone() };
            FacetValue {
                chosen: asked.filters.contains(&filter),
                address: asked.toggled(&filter).address(),
                value: shown_value(request, &filter),
                count: *count,
            }
        });
        let values: Vec<_> = values.collect();
        let shown = FacetShown { name: facet.name(), label: label(facet), values };
        (!shown.values.is_empty()).then_some(shown)
    });
    shown.collect()
}

fn chips(asked: &Parameters, request: &SearchRequest) -> Vec<Chip> {
    let chips = asked.filters.iter().map(|filter| Chip {
        facet: label(filter.facet),
        value: shown_value(request, filter),
        address: asked.toggled(filter).address(),
    });
    let like = asked.like.as_ref().map(|it| Chip {
        facet: "Like",
        value: DisplayUrl::of(url_of(it)).text,
        address: Parameters { like: None, ..asked.at(0) }.address(),
    });
    like.into_iter().chain(chips).collect()
}

/// Returns the URL in an OID, or the URL that is given instead of one.
fn url_of(like: &str) -> &str {
    let url = oid_parse(like).map(|it| it.1).filter(|it| !it.starts_with("//"));
    url.unwrap_or(like)
}

/// Returns links to the first page, the pages next to the current page, and the last page, with
/// gaps.
fn pages(asked: &Parameters, reachable: usize, depth_max: usize) -> Vec<PageLink> {
    if asked.limit == 0 {
        return Vec::new();
    }
    let last = reachable.div_ceil(asked.limit).min(depth_max / asked.limit);
    let current = asked.offset / asked.limit + 1;
    let near =
        |number: usize| number == 1 || number == last || number.abs_diff(current) <= PAGES_BESIDE;
    let mut links: Vec<PageLink> = Vec::new();
    for number in (1..=last).filter(|number| near(*number)) {
        if links.last().is_some_and(|before| before.number + 1 < number) {
            links.push(PageLink { gap: true, ..PageLink::default() });
        }
        let address = asked.at((number - 1) * asked.limit).address();
        links.push(PageLink { number, address, current: number == current, gap: false });
    }
    links
}

fn has_phrase(query: &Query) -> bool {
    let mut found = false;
    query.for_each_wanted(&mut |leaf| found |= matches!(leaf.value, Value::Phrase(_)));
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::answer::Everywhere;
    use crate::page::parameters::Unknown;

    fn asked(query: &str) -> Parameters {
        Parameters::parse(Some(query), Unknown::Refused).unwrap()
    }

    fn check_pages(query: &str, reachable: usize, expected: &str) {
        let links = pages(&asked(query), reachable, DEPTH_MAX);
        let shown: Vec<_> = links
            .iter()
            .map(|it| match it {
                PageLink { gap: true, .. } => "…".to_owned(),
                PageLink { current: true, number, .. } => format!("[{number}]"),
                PageLink { number, .. } => number.to_string(),
            })
            .collect();
        assert_eq!(shown.join(" "), expected);
    }

    #[test]
    fn pages_are_named_around_the_current_one() {
        check_pages("q=x", 0, "");
        check_pages("q=x", 10, "[1]");
        check_pages("q=x", 11, "[1] 2");
        check_pages("q=x", 500, "[1] 2 3 … 50");
        check_pages("q=x&offset=100", 500, "1 … 9 10 [11] 12 13 … 50");
        check_pages("q=x&offset=30&limit=10", 45, "1 2 3 [4] 5");
        check_pages("q=x&limit=30", 10_000, "[1] 2 3 … 333");
        check_pages("q=x&limit=0", 100, "");
    }

    #[test]
    fn the_last_reachable_page_has_no_next() {
        let answer = |total| Answer { total, hits: vec![Hit::default()], ..Answer::default() };
        let request = SearchRequest::new(Query::all(), "");
        let found = |query: &str, total| Results::new(&asked(query), &request, &answer(total));
        assert_eq!(found("q=x&offset=9990", 20_000).next, None);
        assert_eq!(found("q=x&offset=9990", 20_000).cut, Some(DEPTH_MAX));
        assert_eq!(found("q=x&offset=9980", 20_000).next.as_deref(), Some("?q=x&offset=9990"));
        assert_eq!(found("q=x&limit=30&offset=9960", 20_000).next, None);
        assert_eq!(found("q=x", 10).next, None);
        assert_eq!(found("q=x", 10).previous, None);
        assert_eq!(found("q=x&offset=5", 20).previous.as_deref(), Some("?q=x"));
        assert_eq!(found("q=x", 10_000).cut, None);
        let of_all = |query: &str| {
            let everywhere = Some(Everywhere::default());
            Results::new(&asked(query), &request, &Answer { everywhere, ..answer(1_000) })
        };
        let first = of_all("q=x&scope=everywhere&limit=30");
        assert_eq!((first.cut, first.pages.last().unwrap().number), (Some(200), 6));
        assert!(first.sorts.iter().all(|it| it.name != "updated") && first.next.is_some());
        assert_eq!(of_all("q=x&scope=everywhere&offset=190").next, None);
    }

    fn check_snippet(text: &str, highlights: &[(usize, usize)], expected: &str) {
        let cut = Snippet {
            text: text.to_owned(),
            highlights: highlights.to_vec(),
            ..Snippet::default()
        };
        let pieces = snippet(&cut, "description");
        let shown = pieces
            .iter()
            .map(|it| if it.marked { format!("[{}]", it.text) } else { it.text.clone() });
        assert_eq!(shown.collect::<String>(), expected);
    }

    #[test]
    fn highlights_cut_the_excerpt() {
        check_snippet("an old oak", &[(3, 6), (7, 10)], "an [old] [oak]");
        check_snippet("", &[], "description");
        check_snippet("äö", &[(1, 2), (0, 99), (2, 4)], "ä[ö]");
        check_snippet("abc", &[(1, 2), (0, 1)], "a[b]c");
    }

    #[test]
    fn small_things() {
        assert_eq!(url_of("0a:http://h/"), "http://h/");
        assert_eq!(url_of("http://h/"), "http://h/");
        assert_eq!(url_of("x"), "x");
        assert_eq!(took(999), "less than 1 ms");
        assert_eq!(took(12_345), "12 ms");
        assert_eq!(took(1_250_000), "1.2 s");
        assert_eq!(date(1_700_000_000).as_deref(), Some("2023-11-14"));
        assert_eq!(date(i64::MAX), None);
        assert_eq!(shortened("äöü", 2), "äö…");
        let oid = "object?oid=0a%3Ahttp%3A%2F%2Fh%2Fa%26b";
        assert_eq!(summary_address("0a:http://h/a&b", &Parameters::default()), oid);
        let asked = asked("q=a%26b&type=PDF&offset=10");
        let expected = format!("{oid}&q=a%26b&type=PDF&offset=10");
        assert_eq!(summary_address("0a:http://h/a&b", &asked), expected);
    }
}
