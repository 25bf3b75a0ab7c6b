//! The exploder: one file that lists many things becomes one record each.
//!
//! Source: TR §4 and the user's manual ("an exploder turns one file into a stream of SOIF objects").
//! One module a kind of list, each a function that finds the entries and says of each what there is
//! to say. The file itself keeps a record of its own; that of an entry bears the file's URL, `#` and
//! the entry's key.
//!
//! Lists whose entries are whole objects (mailboxes) are opened as containers: see `unnest`.
//!
//! Sans-I/O.

mod bibtex;

use bytes::Bytes;

use crate::object::ProblemKind;
use crate::summarize::{Draft, Input};
use crate::typing::Type;

/// Longest key that an entry has in its URL, in bytes.
const KEY_BYTES_MAX: usize = 200;

/// One entry of a list.
pub(crate) struct Entry {
    /// What names it in the list, as stable as the list has it; the same key twice is one entry, the
    /// last. Never empty.
    pub(crate) key: String,
    /// Its part of the file: what its size and sum are of.
    pub(crate) bytes: Bytes,
    /// What there is to say.
    pub(crate) draft: Draft<'static>,
}

/// Whether objects of this type are lists that can be exploded.
pub fn is_list(r#type: Type) -> bool {
    matches!(r#type, Type::BibTeX)
}

/// Hands every entry of the list to `each`, in order, until that says `false`, and returns what went
/// wrong with the list as a whole. The list's own summarizer names the entries that are broken.
pub(crate) fn explode(
    input: &Input<'_>,
    each: &mut dyn FnMut(Entry) -> bool,
) -> Vec<(ProblemKind, String)> {
    match input.r#type {
        Type::BibTeX => bibtex::explode(input, each),
        _ => Vec::new(),
    }
}

/// Returns the key, or the entry's number (from 1) where it has none; bounded, without white space at
/// its ends.
fn key(written: &str, number: usize) -> String {
    let mut key = written.trim();
    while KEY_BYTES_MAX < key.len() {
        let mut characters = key.chars();
        characters.next_back();
        key = characters.as_str();
    }
    if key.is_empty() { number.to_string() } else { key.to_owned() }
}
