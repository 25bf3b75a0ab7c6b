//! Twins: objects with nearly the same text, such as a document in two formats, by their prints.
//!
//! docs/essence.md defines `Text-Print`.
//!
//! Sans-I/O.

use crate::index::document::StoredHit;
use crate::index::standing::name_of;

/// Length of a print, in bytes.
pub(in crate::index) const PRINT_BYTES: usize = 64;
/// Number of equal characters from which two prints are those of twins: nine tenths of all passages
/// of five words are the same. Manuals of similar commands have many in common.
const EQUAL_MIN: usize = 58;
/// The same for two objects of one name, such as `a.html` and `a.txt`: a third are the same, since
/// each format has marks of its own between the words.
const EQUAL_MIN_OF_NAME: usize = 22;

/// Returns whether two hits are the same object from two gatherers, or have nearly the same text.
pub(in crate::index) fn are_twins(one: &StoredHit, other: &StoredHit) -> bool {
    let equal = equal(&one.print, &other.print);
    one.url == other.url
        || EQUAL_MIN <= equal
        || EQUAL_MIN_OF_NAME <= equal && name_of(&one.url) == name_of(&other.url)
}

/// Returns the number of equal characters of two prints; 0 if one is no print.
fn equal(one: &str, other: &str) -> usize {
    let is_print = |it: &str| it.len() == PRINT_BYTES;
    let equal = one.bytes().zip(other.bytes()).filter(|(a, b)| a == b).count();
    if is_print(one) && is_print(other) { equal } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hit(url: &str, same: usize) -> StoredHit {
        let print = "A".repeat(same) + &"B".repeat(PRINT_BYTES - same);
        StoredHit { url: url.to_owned(), print, ..StoredHit::default() }
    }

    #[test]
    fn objects_of_one_name_need_less_in_common() {
        let check = |one: &str, other: &str, same: usize, expected: bool| {
            let (one, other) = (hit(one, PRINT_BYTES), hit(other, same));
            assert_eq!(are_twins(&one, &other), expected, "{} {} {same}", one.url, other.url);
        };
        check("file:///a.html", "file:///b.html", EQUAL_MIN, true);
        check("file:///a.html", "file:///b.html", EQUAL_MIN - 1, false);
        check("file:///a.html", "file:///man/a.1.gz", EQUAL_MIN_OF_NAME, true);
        check("file:///a.html", "file:///man/a.1.gz", EQUAL_MIN_OF_NAME - 1, false);
        check("http://h/", "http://h/", 0, true);
        let none = |url: &str| StoredHit { url: url.to_owned(), ..StoredHit::default() };
        assert!(!are_twins(&none("file:///a.html"), &none("file:///a.txt")));
    }
}
