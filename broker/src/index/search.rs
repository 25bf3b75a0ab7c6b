//! The search: it answers requests from the last commit.

use std::collections::BTreeMap;

use collection::Oid;
use query::{Query, QueryError};
use tantivy::collector::{Collector, TopDocs};
use tantivy::query::{
    BooleanQuery, BoostQuery, ConstScoreQuery, Occur, Query as Engine, TermQuery,
};
use tantivy::schema::IndexRecordOption;
use tantivy::{DocAddress, Order, Searcher, Term};

use super::compile::Compiler;
use super::deadline::{Deadline, Timely};
use super::document::{PART, content_digest, facet_key, oid_key};
use super::rerank::{RANKED_MAX, Ranked, rerank};
use super::schema::{Fields, name};
use super::tally::{Counts, Tally};
use super::{lookup, shown, suggest, telling};
use crate::answer::{
    Answer, DEPTH_MAX, Facet, Filter, HITS_MAX, Matching, SEARCH_CPU_MAX, SearchRequest, Sort,
};
use crate::views;

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

/// The objects that match a request.
pub(super) struct Found {
    /// The first `offset + limit` of them in the order of the request, or more.
    pub(super) hits: Vec<Ranked>,
    pub(super) counts: Counts,
    /// How many of them have all words of the query.
    pub(super) total_all: u64,
}

/// Answers `request`, without snippets; the caller sets `took_us`. `now` is in Unix seconds.
pub(super) fn search(
    searcher: &Searcher,
    fields: &Fields,
    request: &SearchRequest,
    (now, deadline): (i64, Deadline),
) -> Result<Answer, Refusal> {
    let mut found = rank(searcher, fields, request, (now, deadline))?;
    let is_typed = request.but.is_none();
    let suggested = match is_typed && found.total_all < request.limit as u64 {
        true => suggestion(searcher, fields, request, found.total_all, deadline)?,
        false => None,
    };
    let notice = match found.counts.total {
        0 => suggest::unknown_attribute(searcher, fields, (&request.text, &request.query))?,
        _ => None,
    };
    // Nothing has the words as they are written; what is strict stays as it is.
    let instead = suggested.as_ref().filter(|it| {
        found.total_all == 0
            && request.matching == Matching::Best
            && request.query.differs_in_plain_words(&it.query)
    });
    if let Some(instead) = instead {
        found = rank(searcher, fields, instead, (now, deadline))?;
    }
    let respelled = instead.is_some();
    let suggestion = suggested.map(|it| it.text);
    let Found { hits, counts, total_all } = found;
    let total = counts.total;
    let facets = if request.facets { counts.into_facets(&request.views) } else { BTreeMap::new() };
    let (hits, forms) = shown::hits(searcher, fields, &hits, request, deadline)?;
    let parts = searcher.doc_freq(&Term::from_field_text(fields.names, PART))?;
    let took_us = 0;
    Ok(Answer {
        total,
        total_all,
        matching: request.matching,
        suggestion,
        respelled,
        notice,
        activity: None,
        everywhere: None,
        parts,
        took_us,
        hits,
        forms,
        facets,
    })
}

/// Finds the requested hits with their scores, and counts all hits.
pub(super) fn rank(
    searcher: &Searcher,
    fields: &Fields,
    request: &SearchRequest,
    (now, deadline): (i64, Deadline),
) -> Result<Found, Refusal> {
    let whole = |message: String| {
        Refusal::Query(QueryError { offset: 0, len: request.text.len(), message })
    };
    if HITS_MAX < request.limit {
        return Err(whole(format!(
            "an answer has at most {HITS_MAX} hits; ask for less and page on"
        )));
    }
    let depth = request.offset.saturating_add(request.limit);
    if DEPTH_MAX < depth {
        return Err(whole(format!(
            "only the first {DEPTH_MAX} hits can be looked through; narrow the search, or choose another order"
        )));
    }
    let joined = expansion(searcher, fields, request, deadline)?;
    let find = |query: &Query, own: Occur, but: Option<Box<dyn Engine>>, hits: usize| {
        let mut compiler = Compiler::new(fields, deadline).scored_by(request.statistics.clone());
        let asked = compiler.query(query).map_err(whole)?;
        let words = compiler.words();
        let ranked = match joined.is_empty() {
            true => asked.box_clone(),
            false => expanded((own, asked.box_clone()), &joined),
        };
        let narrowed = narrowed(fields, request, (ranked, but), deadline).map_err(whole)?;
        let (mut found, counts) = find(searcher, &narrowed, request, hits, deadline)?;
        if request.sort == Sort::Relevance {
            let ranked = RANKED_MAX.min(found.len());
            let (best, _) = found.split_at_mut(ranked);
            rerank((searcher, fields), &words, best, now)?;
        }
        Ok::<_, Refusal>((found, counts, asked))
    };
    let also = || (!joined.is_empty()).then(|| request.query.clone());
    let looser = request.query.loosened().or_else(also);
    let looser = looser.filter(|_| request.matching != Matching::All);
    // Not by how far a reader has come: all pages are of one answer.
    let telling = |looser| telling::telling(searcher, fields, looser, request.limit);
    if let (Some(looser), Matching::Any) = (&looser, request.matching) {
        let (hits, counts, _) = find(&telling(looser.clone())?, Occur::Should, None, depth)?;
        let (_, strict, _) = find(&request.query, Occur::Must, None, 0)?;
        return Ok(Found { hits, counts, total_all: strict.total });
    }
    let (mut hits, mut counts, strict) = find(&request.query, Occur::Must, None, depth)?;
    let total_all = counts.total;
    if let Some(looser) = looser.filter(|_| total_all < request.limit as u64) {
        let room = depth.saturating_sub(hits.len());
        let (more, more_counts, _) = find(&telling(looser)?, Occur::Should, Some(strict), room)?;
        hits.extend(more);
        counts.add(more_counts);
    }
    Ok(Found { hits, counts, total_all })
}

/// Returns the queries for the words that join the query, with their weights.
fn expansion(
    searcher: &Searcher,
    fields: &Fields,
    request: &SearchRequest,
    deadline: Deadline,
) -> tantivy::Result<Vec<Box<dyn Engine>>> {
    let mut joined: Vec<Box<dyn Engine>> = Vec::new();
    for (word, weight) in &request.expansion {
        if telling::is_telling(searcher, fields, word)?
            && let Ok(query) = Compiler::new(fields, deadline).query(&Query::word(word))
        {
            joined.push(Box::new(BoostQuery::new(query, *weight)));
        }
    }
    Ok(joined)
}

/// Returns a query whose score, and if it is not required whose matches, those of `joined` add to.
fn expanded(own: (Occur, Box<dyn Engine>), joined: &[Box<dyn Engine>]) -> Box<dyn Engine> {
    let joined = joined.iter().map(|it| (Occur::Should, it.box_clone()));
    Box::new(BooleanQuery::new(std::iter::once(own).chain(joined).collect()))
}

/// Returns the same request with another spelling, if more objects have all of its words than the
/// `total` that have those of `request`.
fn suggestion(
    searcher: &Searcher,
    fields: &Fields,
    request: &SearchRequest,
    total: u64,
    deadline: Deadline,
) -> Result<Option<SearchRequest>, Refusal> {
    let typed = (request.text.as_str(), &request.query);
    let Some(text) = suggest::respelled(searcher, fields, typed, deadline)? else {
        return Ok(None);
    };
    let Ok(query) = query::parse(&text) else { return Ok(None) };
    // Views are in the scope already.
    let query = match request.scope.is_empty() {
        true => query,
        false => views::split(query).map_or_else(|_fault| request.query.clone(), |it| it.0),
    };
    let suggested = SearchRequest { query, text, ..request.clone() };
    let counted = SearchRequest {
        limit: 0,
        offset: 0,
        matching: Matching::All,
        facets: false,
        views: Vec::new(),
        expansion: Vec::new(),
        ..suggested.clone()
    };
    let found = rank(searcher, fields, &counted, (0, deadline))?;
    Ok((total < found.counts.total).then_some(suggested))
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
    match search(searcher, fields, &request, (0, Deadline::after(SEARCH_CPU_MAX))) {
        Err(Refusal::Engine(error)) => return Err(error),
        Err(Refusal::Query(_) | Refusal::Late) | Ok(_) => {}
    }
    for (ord, _) in (0..).zip(searcher.segment_readers()) {
        // A segment has at least one document, perhaps a deleted one.
        lookup::stored(searcher, fields, DocAddress::new(ord, 0))?;
    }
    Ok(())
}

/// Narrows a query to the chosen facet values, to what does not match `but`, and, unless the request
/// asks for duplicates, to one object of each content.
fn narrowed(
    fields: &Fields,
    request: &SearchRequest,
    (asked, but): (Box<dyn Engine>, Option<Box<dyn Engine>>),
    deadline: Deadline,
) -> Result<BooleanQuery, String> {
    let mut clauses = vec![(Occur::Must, asked)];
    clauses.extend(but.map(|it| (Occur::MustNot, it)));
    for query in &request.scope {
        let within = Compiler::new(fields, deadline).query(query)?;
        clauses.push((Occur::Must, Box::new(ConstScoreQuery::new(within, 0.0))));
    }
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
    if let Some(record) = &request.but {
        let oid = Oid::of(record).map(|it| (fields.oid, oid_key(&it)));
        let content = content_digest(record).map(|it| (fields.content, it));
        for (field, text) in oid.into_iter().chain(content) {
            let term = Term::from_field_text(field, &text);
            clauses
                .push((Occur::MustNot, Box::new(TermQuery::new(term, IndexRecordOption::Basic))));
        }
    }
    if !request.duplicates {
        let term = Term::from_field_bool(fields.duplicate, true);
        clauses.push((Occur::MustNot, Box::new(TermQuery::new(term, IndexRecordOption::Basic))));
    }
    Ok(BooleanQuery::new(clauses))
}

/// Returns the first `hits` matching objects, or for a second look some more, and all counts.
fn find(
    searcher: &Searcher,
    query: &dyn Engine,
    request: &SearchRequest,
    hits: usize,
    deadline: Deadline,
) -> tantivy::Result<(Vec<Ranked>, Counts)> {
    let tally = Tally::new(request);
    if hits == 0 {
        let counts = searcher.search(query, &Timely { collector: tally, deadline })?;
        return Ok((Vec::new(), counts));
    }
    let top = || TopDocs::with_limit(hits);
    let by_number = |name: &'static str, order| top().order_by_fast_field::<i64>(name, order);
    let by_text = |name: &'static str| top().order_by_string_fast_field(name, Order::Asc);
    let (asc, desc) = (Order::Asc, Order::Desc);
    match request.sort {
        Sort::Relevance => {
            let collector = (TopDocs::with_limit(hits.max(RANKED_MAX)).order_by_score(), tally);
            let (found, counts) = searcher.search(query, &Timely { collector, deadline })?;
            let hits = found.into_iter().map(|(score, address)| Ranked::new(score, address));
            Ok((hits.collect(), counts))
        }
        Sort::Newest => ordered(searcher, query, tally, by_number(name::MODIFIED, desc), deadline),
        Sort::Oldest => ordered(searcher, query, tally, by_number(name::MODIFIED, asc), deadline),
        Sort::Updated => ordered(searcher, query, tally, by_number(name::UPDATED, desc), deadline),
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
) -> tantivy::Result<(Vec<Ranked>, Counts)> {
    let collector = (top, tally);
    let (found, counts) = searcher.search(query, &Timely { collector, deadline })?;
    Ok((found.into_iter().map(|(_, address)| Ranked::new(0.0, address)).collect(), counts))
}
