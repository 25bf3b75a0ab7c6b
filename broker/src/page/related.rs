//! Objects about the same as another one, and queries expanded by what their best hits are about.
//!
//! The index stores no text, so both need the records of the collection.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::Duration;

use collection::{Collection, Oid};
use query::record::oid_parse;
use query::{Leaf, Node, Query, Value};
use soif::Record;
use url::Url;

use super::PageState;
use super::client::Client;
use super::lanes::quick_cpu;
use super::limit::Limit;
use crate::answer::{Answer, Matching, SearchRequest, Sort};
use crate::engine::{Engine, feedback};
use crate::error::Error;

/// Number of objects about the same that an object's page names.
const RELATED_MAX: usize = 5;
/// Processor time for them: whoever goes from object to object costs no more than this each.
const RELATED_CPU_MAX: Duration = Duration::from_millis(20);
/// Number of objects with the words of a URL among which the one with just this URL is looked for.
const NAMED_MAX: usize = 100;

/// How a query is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum How {
    /// With its own words.
    AsTyped,
    /// Expanded, if it consists of plain words.
    Expanded,
}

impl PageState {
    /// Returns the record that is named by its OID or URL; `None` if none is here.
    pub(super) async fn named(
        &self,
        client: &Client,
        limit: Option<&Limit>,
        name: &str,
    ) -> Result<Option<Arc<Record>>, Error> {
        let scope: Vec<Query> = limit.iter().map(|it| it.query.clone()).collect();
        let (engine, collection, name) =
            (self.engine.clone(), self.collection.clone(), name.to_owned());
        let work = move |cpu| named((&engine, cpu), &collection, &scope, &name);
        let quick = Some(quick_cpu(self.collection.len()));
        Ok(self.lanes.run(client.address, quick, work).await?.map(Arc::new))
    }

    /// Calls `show` with some objects about the same as a record, within `limit`, and its other forms; with none if
    /// that fails or takes long, since the page of the object works without them. Both have a place
    /// among the quick searches: to look through a long text takes as long as these.
    ///
    /// # Errors
    ///
    /// `show` panicked, or the runtime is stopping.
    pub(super) async fn with_related<T: Send + 'static>(
        &self,
        record: Arc<Record>,
        limit: Option<Limit>,
        show: impl FnOnce(&Answer) -> T + Send + 'static,
    ) -> Result<T, Error> {
        let mut request = SearchRequest::new(Query::all(), "");
        (request.limit, request.facets, request.snippets) = (RELATED_MAX, false, false);
        request.but = Some(record);
        request.scope.extend(limit.iter().map(|it| it.query.clone()));
        // Without snippets, nobody pays.
        let work = self.work((IpAddr::V4(Ipv4Addr::UNSPECIFIED), limit), request, How::AsTyped);
        let shown = move |cpu| {
            let related = work(cpu).map(|it| it.1).unwrap_or_else(|error| {
                tracing::debug!(%error, "no objects about the same");
                Answer::default()
            });
            Ok(show(&related))
        };
        self.lanes.quick(RELATED_CPU_MAX, shown).await
    }
}

fn named(
    (engine, cpu): (&Engine, Duration),
    collection: &Collection,
    scope: &[Query],
    name: &str,
) -> Result<Option<Record>, Error> {
    let get = |gatherer: &str, url: &str| {
        Ok::<_, Error>(collection.get(&Oid::new(gatherer, url))?.map(|it| it.record))
    };
    if let Some((gatherer, url)) = oid_parse(name)
        && let Some(record) = get(&gatherer, url)?
    {
        return Ok(Some(record));
    }
    let url = Url::from_file_path(name).map_or_else(|()| name.to_owned(), String::from);
    let leaf = Leaf { field: Some("url".to_owned()), value: Value::Phrase(url.clone()) };
    let mut request = SearchRequest::new(Query { root: Node::Leaf(leaf) }, "");
    (request.limit, request.sort, request.duplicates) = (NAMED_MAX, Sort::Newest, true);
    request.facets = false;
    request.scope.extend_from_slice(scope);
    let found = engine.search(&request, cpu)?.hits.into_iter().find(|it| it.url == url);
    found.map_or(Ok(None), |it| get(&it.gatherer_id, &it.url))
}

/// Completes a request by the words of the object that its hits are to be like, or of its best hits.
/// Each search for that may use the processor for `cpu`.
pub(super) fn complete(
    request: &mut SearchRequest,
    how: How,
    (engine, cpu): (&Engine, Duration),
    collection: &Collection,
) -> Result<(), Error> {
    if let Some(record) = &request.but {
        let words = engine.telling_words(record)?;
        let words: Vec<Node> = words.iter().map(|it| Query::word(it).root).collect();
        // Without such words nothing is like it, but it may have other forms.
        let like = if words.is_empty() { Node::negate(Node::All) } else { Node::or(words) };
        let own = std::mem::replace(&mut request.query.root, Node::All);
        let own = (own != Node::All).then_some(own);
        request.query.root = Node::and(own.into_iter().chain([like]).collect());
        return Ok(());
    }
    let is_loose = request.matching != Matching::All && request.sort == Sort::Relevance;
    let words = feedback::plain_words(&request.query).filter(|_| how == How::Expanded && is_loose);
    if let Some(words) = words {
        let best = SearchRequest {
            limit: feedback::DOCUMENTS,
            offset: 0,
            facets: false,
            views: Vec::new(),
            snippets: false,
            explain: false,
            ..request.clone()
        };
        let mut read = Vec::new();
        for hit in engine.search(&best, cpu)?.hits {
            let stored = collection.get(&Oid::new(&hit.gatherer_id, &hit.url))?;
            read.extend(stored.map(|it| (hit.score, it.record)));
        }
        request.expansion = feedback::expansion(words, &read);
    }
    Ok(())
}
