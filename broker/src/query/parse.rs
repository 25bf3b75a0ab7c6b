//! The parser of the query language.
//!
//! Sans-I/O.

use super::{Leaf, Node, QUERY_BYTES_MAX, Query, QueryError, Value};

/// Reads a query.
///
/// # Errors
///
/// Says what is wrong and where; show it with [`QueryError::caret`].
pub fn parse(text: &str) -> Result<Query, QueryError> {
    if QUERY_BYTES_MAX < text.len() {
        let message = format!("the query is longer than {QUERY_BYTES_MAX} bytes");
        return Err(QueryError { offset: QUERY_BYTES_MAX, len: 0, message });
    }
    let words = text.split_whitespace();
    let leaf = |word: &str| Node::Leaf(Leaf { field: None, value: Value::Word(word.to_owned()) });
    Ok(Query { root: Node::and(words.map(leaf).collect()) })
}
