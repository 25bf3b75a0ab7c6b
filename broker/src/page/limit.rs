//! Limits: what a client that is limited to a view gets of the pages, objects of that view alone.
//!
//! The index counts objects with the same content once, wherever they are, so what it finds is held against the view
//! again, record by record.

use std::sync::Arc;

use collection::{Collection, Oid};
use exchange::push::feed::Select;
use query::record::oid_parse;
use query::{Matcher, Node, Query};
use soif::Record;

use super::PageState;
use super::client::Client;
use crate::answer::Answer;
use crate::error::Error;
use crate::views::View;
use crate::views::selecting::select;

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
    /// Returns what selects of the feed by the views, and within the view to which a client is limited.
    pub(crate) fn selecting(&self) -> Select {
        let this = self.clone();
        let subset = move |view: &View| this.membership.as_ref()?.subset(view);
        let views = self.views.clone();
        Arc::new(move |limit, asked| select(&views.get(), limit, &subset, asked))
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
