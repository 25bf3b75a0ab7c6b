//! The telling words of a query of which any may match: the rare ones.
//!
//! Objects that have nothing but words which many have are no answer, and to count them all takes
//! most of the time. So an object must have one of the rarer words; the others only add to its score.

mod counted;
pub(crate) mod feedback;
pub(super) mod like;

use query::words::split;
use query::{Leaf, Node, Query, Value};
use tantivy::Searcher;

use super::schema::Fields;

/// A word is telling if it is in at most one of so many objects.
const ONE_IN: u64 = 20;
/// Number of objects that the telling words must have together at least, as far as there are so many.
const OBJECTS_MIN: u64 = 200;

/// Returns the query with its frequent words made optional, if it is an OR of words, alone or beside
/// other conditions. The others have at least `wanted` objects together, if so many are there.
///
/// # Errors
///
/// The engine failed.
pub(super) fn telling(
    searcher: &Searcher,
    fields: &Fields,
    query: Query,
    wanted: usize,
) -> tantivy::Result<Query> {
    let (words, mut required) = match query.root {
        Node::Or(words) => (words, Vec::new()),
        Node::Beside(mut members) if matches!(members.first(), Some(Node::Or(_))) => {
            let Node::Or(words) = members.remove(0) else { return Ok(Query::all()) };
            (words, members)
        }
        root => return Ok(Query { root }),
    };
    let mut counted = Vec::with_capacity(words.len());
    for word in words {
        counted.push((count(searcher, fields, &word)?, word));
    }
    counted.sort_by_key(|(count, _)| *count);
    let (mut telling, mut others, mut objects) = (Vec::new(), Vec::new(), 0);
    for (count, word) in counted {
        if objects < OBJECTS_MIN.max(wanted as u64) || count <= searcher.num_docs() / ONE_IN {
            telling.push(word);
        } else {
            others.push(word);
        }
        objects += count;
    }
    required.insert(0, Node::or(telling));
    Ok(Query { root: Node::prefer(required, others) })
}

/// Returns whether so few objects have a word that it tells them from the others.
///
/// # Errors
///
/// The engine failed.
pub(super) fn is_telling(
    searcher: &Searcher,
    fields: &Fields,
    word: &str,
) -> tantivy::Result<bool> {
    let limit = OBJECTS_MIN.max(searcher.num_docs() / ONE_IN);
    Ok(like::objects(searcher, fields, word)? <= limit)
}

/// Returns how many objects have a word, as it is written, in the field where most have it.
fn count(searcher: &Searcher, fields: &Fields, word: &Node) -> tantivy::Result<u64> {
    let Node::Leaf(Leaf { value: Value::Word(text), .. }) = word else { return Ok(0) };
    let mut least = u64::MAX;
    for word in split(text) {
        least = least.min(like::objects(searcher, fields, &word)?);
    }
    Ok(least)
}
