//! The search: it answers requests from the last commit.

use std::collections::BTreeMap;

use query::record::oid_text;
use query::{Query, QueryError};
use tantivy::collector::{Collector, TopDocs};
use tantivy::query::{BooleanQuery, ConstScoreQuery, Occur, Query as Engine, TermQuery};
use tantivy::schema::IndexRecordOption;
use tantivy::{DocAddress, Order, Searcher, Term};

use super::compile::Compiler;
use super::deadline::{Deadline, Timely};
use super::document::{StoredHit, facet_key, title_of};
use super::lookup;
use super::schema::{Fields, name};
use super::tally::{Counts, Tally};
use crate::answer::{
    Answer, DEPTH_MAX, DUPLICATES_MAX, Duplicate, Facet, Filter, HITS_MAX, Hit, SEARCH_TIME_MAX,
    SearchRequest, Snippet, Sort,
};
use crate::highlight::Highlighter;
use crate::snippet::{self, place};

/// Maximum number of objects of one content that are read to name [`DUPLICATES_MAX`] of them.
const GROUP_READ_MAX: usize = 256;

/// Reason why there is no answer.
#[derive(Debug)]
pub(super) enum Refusal {
    Query(QueryError),
    Late,
    Engine(tantivy::TantivyError),
}

impl From<tantivy::TantivyError> for Refusal {
    fn from(error: tantivy::TantivyError) -> Self {
        if Deadline::is_cause_of(&error) { Self::Late } else { Self::Engine(error) }
    }
}

/// Answers `request`; the caller sets `took_us`.
pub(super) fn search(
    searcher: &Searcher,
    fields: &Fields,
    request: &SearchRequest,
    deadline: Deadline,
) -> Result<Answer, Refusal> {
    let (found, counts) = rank(searcher, fields, request, deadline)?;
    let total = counts.total;
    let facets = if request.facets { counts.into_facets() } else { BTreeMap::new() };
    let highlighter = request.snippets.then(|| Highlighter::new(&request.query));
    let mut hits = Vec::with_capacity(found.len());
    for (score, address) in found {
        deadline.check()?;
        hits.push(hit(searcher, fields, address, score, highlighter.as_ref())?);
    }
    Ok(Answer { total, took_us: 0, hits, facets })
}

/// Finds the requested hits with their scores, and counts all hits.
pub(super) fn rank(
    searcher: &Searcher,
    fields: &Fields,
    request: &SearchRequest,
    deadline: Deadline,
) -> Result<(Vec<(f32, DocAddress)>, Counts), Refusal> {
    let whole = |message: String| {
        Refusal::Query(QueryError { offset: 0, len: request.text.len(), message })
    };
    if HITS_MAX < request.limit {
        return Err(whole(format!(
            "an answer has at most {HITS_MAX} hits; ask for less and page on"
        )));
    }
    if DEPTH_MAX < request.offset.saturating_add(request.limit) {
        return Err(whole(format!(
            "only the first {DEPTH_MAX} hits can be looked through; narrow the search, or choose another order"
        )));
    }
    let asked = Compiler::new(fields, deadline).query(&request.query).map_err(whole)?;
    Ok(find(searcher, &narrowed(fields, request, asked), request, deadline)?)
}

/// Opens the files of every segment that a search reads, so that the first search need not wait.
///
/// # Errors
///
/// The engine failed.
pub(super) fn warm(searcher: &Searcher, fields: &Fields) -> tantivy::Result<()> {
    let word = "harvest";
    let mut request = SearchRequest::new(Query::word(word), word);
    request.limit = 1;
    match search(searcher, fields, &request, Deadline::after(SEARCH_TIME_MAX)) {
        Err(Refusal::Engine(error)) => return Err(error),
        Err(Refusal::Query(_) | Refusal::Late) | Ok(_) => {}
    }
    for (ord, _) in (0..).zip(searcher.segment_readers()) {
        // A segment has at least one document, perhaps a deleted one.
        hit(searcher, fields, DocAddress::new(ord, 0), 0.0, None)?;
    }
    Ok(())
}

/// Narrows a query to the chosen facet values and, unless the request asks for duplicates, to one
/// object of each content.
fn narrowed(fields: &Fields, request: &SearchRequest, asked: Box<dyn Engine>) -> Box<dyn Engine> {
    let mut clauses = vec![(Occur::Must, asked)];
    let mut chosen: BTreeMap<Facet, Vec<&Filter>> = BTreeMap::new();
    for filter in &request.filters {
        chosen.entry(filter.facet).or_default().push(filter);
    }
    for filters in chosen.values() {
        let value = |filter: &&Filter| -> Box<dyn Engine> {
            let key = facet_key(filter.facet, &filter.value);
            let term = Term::from_field_text(fields.facet, &key);
            Box::new(TermQuery::new(term, IndexRecordOption::Basic))
        };
        let values = BooleanQuery::union(filters.iter().map(value).collect());
        clauses.push((Occur::Must, Box::new(ConstScoreQuery::new(Box::new(values), 0.0))));
    }
    if !request.duplicates {
        let term = Term::from_field_bool(fields.duplicate, true);
        clauses.push((Occur::MustNot, Box::new(TermQuery::new(term, IndexRecordOption::Basic))));
    }
    Box::new(BooleanQuery::new(clauses))
}

fn find(
    searcher: &Searcher,
    query: &dyn Engine,
    request: &SearchRequest,
    deadline: Deadline,
) -> tantivy::Result<(Vec<(f32, DocAddress)>, Counts)> {
    let tally = Tally { facets: request.facets };
    if request.limit == 0 {
        let counts = searcher.search(query, &Timely { collector: tally, deadline })?;
        return Ok((Vec::new(), counts));
    }
    let top = || TopDocs::with_limit(request.limit).and_offset(request.offset);
    let by_number = |name: &'static str, order| top().order_by_fast_field::<i64>(name, order);
    let by_text = |name: &'static str| top().order_by_string_fast_field(name, Order::Asc);
    let (asc, desc) = (Order::Asc, Order::Desc);
    match request.sort {
        Sort::Relevance => {
            let collector = (top().order_by_score(), tally);
            searcher.search(query, &Timely { collector, deadline })
        }
        Sort::Newest => ordered(searcher, query, tally, by_number(name::MODIFIED, desc), deadline),
        Sort::Oldest => ordered(searcher, query, tally, by_number(name::MODIFIED, asc), deadline),
        Sort::Size => ordered(searcher, query, tally, by_number(name::SIZE, desc), deadline),
        Sort::Title => ordered(searcher, query, tally, by_text(name::TITLE_KEY), deadline),
        Sort::Url => ordered(searcher, query, tally, by_text(name::URL_KEY), deadline),
    }
}

fn ordered<K: Send + Sync + 'static>(
    searcher: &Searcher,
    query: &dyn Engine,
    tally: Tally,
    top: impl Collector<Fruit = Vec<(K, DocAddress)>>,
    deadline: Deadline,
) -> tantivy::Result<(Vec<(f32, DocAddress)>, Counts)> {
    let collector = (top, tally);
    let (found, counts) = searcher.search(query, &Timely { collector, deadline })?;
    Ok((found.into_iter().map(|(_, address)| (0.0, address)).collect(), counts))
}

fn hit(
    searcher: &Searcher,
    fields: &Fields,
    address: DocAddress,
    score: f32,
    highlighter: Option<&Highlighter>,
) -> tantivy::Result<Hit> {
    let stored = lookup::stored(searcher, fields, address)?;
    let duplicates = duplicates(searcher, fields, address)?;
    let snippet = highlighter.map(|it| excerpt(it, &stored)).unwrap_or_default();
    Ok(Hit {
        title: if stored.title.is_empty() { title_of(&stored.url) } else { stored.title },
        oid: oid_text(&stored.gatherer_id, &stored.url),
        url: stored.url,
        description: stored.description,
        r#type: stored.r#type,
        score,
        gatherer: stored.gatherer,
        gatherer_id: stored.gatherer_id,
        host: stored.host,
        size: stored.size,
        modified: stored.modified,
        landing_page: stored.landing_page,
        snippet,
        duplicates,
    })
}

/// Cuts a snippet from the text or, if the text has no word of the query, from the description.
fn excerpt(highlighter: &Highlighter, stored: &StoredHit) -> Snippet {
    let marks = highlighter.marks(&stored.text);
    if marks.is_empty() && !stored.description.is_empty() {
        let marks = highlighter.marks(&stored.description);
        if !marks.is_empty() || stored.text.is_empty() {
            return snippet::cut(&stored.description, &marks).0;
        }
    }
    let (mut snippet, first) = snippet::cut(&stored.text, &marks);
    snippet.place = first.and_then(|at| place::name(stored.places.as_bytes(), &stored.text, at));
    snippet
}

/// Returns other objects with a hit's content, the first [`DUPLICATES_MAX`] by (URL, gatherer).
fn duplicates(
    searcher: &Searcher,
    fields: &Fields,
    address: DocAddress,
) -> tantivy::Result<Vec<Duplicate>> {
    let Some(digest) = lookup::content_digest(searcher, address)? else { return Ok(Vec::new()) };
    let mut found = Vec::new();
    for duplicate in lookup::having(searcher, fields.content, &digest, GROUP_READ_MAX)? {
        if duplicate != address
            && let Some(oid) = lookup::oid(searcher, duplicate)?
        {
            found.push((oid.key(), duplicate));
        }
    }
    found.sort();
    found.truncate(DUPLICATES_MAX);
    let name = |(_, address): (Vec<u8>, DocAddress)| {
        let stored = lookup::stored(searcher, fields, address)?;
        let oid = oid_text(&stored.gatherer_id, &stored.url);
        Ok(Duplicate { url: stored.url, gatherer: stored.gatherer, oid })
    };
    found.into_iter().map(name).collect()
}
