//! Searches within views: those that a search names, and that to which its client is limited.
//!
//! The index counts objects with the same content once, wherever they are, so what it finds is held against the view
//! again, record by record.

use std::sync::Arc;

use collection::{Collection, Oid};
use exchange::push::feed::{Asking, Select};
use net::clock;
use query::record::oid_parse;
use query::{Matcher, Node, Query};
use soif::Record;

use super::PageState;
use super::client::Client;
use crate::answer::{Answer, Facet, SearchRequest};
use crate::error::Error;
use crate::views::View;
use crate::views::selecting::{Known, select};
use crate::views::visible::unknown;

/// Maximum number of views in which the objects of an answer are counted.
const COUNTED_MAX: usize = 1_000;

/// What a client may have.
#[derive(Clone, Debug)]
pub(super) struct Limit {
    pub(super) query: Query,
    matcher: Matcher,
}

impl Limit {
    pub(super) fn has(&self, record: &Record) -> bool {
        self.matcher.matches(record).is_some()
    }

    /// Takes out of an answer what the client may not have.
    pub(super) fn apply(&self, answer: &mut Answer, collection: &Collection) -> Result<(), Error> {
        let has = |oid: &str| {
            let Some((gatherer, url)) = oid_parse(oid) else { return Ok(false) };
            let stored = collection.get(&Oid::new(&gatherer, url))?;
            Ok::<_, Error>(stored.is_some_and(|it| self.has(&it.record)))
        };
        let mut hits = Vec::with_capacity(answer.hits.len());
        for mut hit in std::mem::take(&mut answer.hits) {
            if has(&hit.oid)? {
                hit.duplicates = kept(hit.duplicates, |it| has(&it.oid))?;
                hits.push(hit);
            }
        }
        answer.hits = hits;
        answer.forms = kept(std::mem::take(&mut answer.forms), |it| has(&it.oid))?;
        Ok(())
    }
}

/// Returns those that are to be kept.
fn kept<T>(all: Vec<T>, has: impl Fn(&T) -> Result<bool, Error>) -> Result<Vec<T>, Error> {
    let mut kept = Vec::with_capacity(all.len());
    for it in all {
        if has(&it)? {
            kept.push(it);
        }
    }
    Ok(kept)
}

impl PageState {
    /// Returns the same request, within the views that its query and filters name, of those that the client may see.
    ///
    /// # Errors
    ///
    /// A description of the mistake: there is no such view, or it is not joined to the rest by AND.
    pub(super) fn within_views(
        &self,
        client: &Client,
        mut request: SearchRequest,
    ) -> Result<SearchRequest, String> {
        let views = self.views.get();
        let visible = views.visible(client.limit.as_deref());
        let (rest, mut within) = visible.scope(&request.query)?;
        request.query = rest;
        request.scope.extend(within.iter().map(|it| it.whole.clone()));
        let filters = request.filters.extract_if(.., |it| it.facet == Facet::View);
        let chosen = filters.map(|it| visible.get(&it.value).ok_or_else(|| unknown(&it.value)));
        let chosen: Vec<&View> = chosen.collect::<Result<_, _>>()?;
        if !chosen.is_empty() {
            let any = chosen.iter().map(|it| it.whole.root.clone()).collect();
            request.scope.push(Query { root: Node::or(any) });
        }
        if request.facets
            && let Some(membership) = &self.membership
        {
            within.extend(&chosen);
            let counted = [chosen, visible.next(&within)].concat();
            request.views = membership.counted(&counted, COUNTED_MAX);
        }
        Ok(request)
    }

    /// Returns what selects of the feed by the views, and within the view to which a client is limited.
    pub(crate) fn selecting(&self) -> Select {
        let this = self.clone();
        let views = self.views.clone();
        Arc::new(move |asking: Asking<'_>, asked| {
            let membership = this.membership.as_ref();
            let known = Known {
                view: &|view| membership?.subset(view),
                pulled: &|query| membership?.pulled(query, clock::now_ms()),
            };
            select(&views.get(), asking, &known, asked)
        })
    }

    /// Returns what a client may have; `None`: all.
    pub(super) fn limit_of(&self, client: &Client) -> Option<Limit> {
        let (name, views) = (client.limit.as_ref()?, self.views.get());
        // A limit is a view of the settings, but for the moment in which they change.
        let nothing = || Query { root: Node::negate(Node::All) };
        let query = views.get(name).map_or_else(nothing, |it| it.whole.clone());
        Some(Limit { matcher: Matcher::new(&query), query })
    }
}
