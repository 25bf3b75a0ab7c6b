//! The stored objects: a list of them, and their removal, by pattern.

use std::collections::BTreeMap;

use regex::{Regex, RegexBuilder};
use serde::{Deserialize, Serialize};

use super::explain::{StoredObject, described};
use crate::proxy::Proxy;

/// Number of objects that are listed, unless another is asked for; and the largest that can be.
pub(crate) const LIMIT: usize = 100;
pub(crate) const LIMIT_MAX: usize = 100_000;

/// Bytes of URLs in a list; it is cut then.
const URLS_BYTES_MAX: usize = 16 << 20;

/// Longest pattern, in characters, and the memory for its program, in bytes.
const PATTERN_CHARS_MAX: usize = 1_000;
const PROGRAM_BYTES_MAX: usize = 1 << 20;

/// A list of stored objects, by URL.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Listing {
    /// The objects; of one URL there are several that answer different requests.
    pub objects: Vec<Listed>,
    /// Whether there are more.
    pub is_cut: bool,
}

/// A stored object in a list.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Listed {
    /// Its URL.
    pub url: String,
    /// The object.
    #[serde(flatten)]
    pub object: StoredObject,
}

/// Reads a pattern for URLs: a regular expression, as those of `[[refresh]]`.
pub(crate) fn pattern(text: &str) -> Result<Regex, String> {
    let read = RegexBuilder::new(text).size_limit(PROGRAM_BYTES_MAX).build();
    match read {
        _ if PATTERN_CHARS_MAX < text.chars().count() => Err(format!(
            "the pattern has more than {PATTERN_CHARS_MAX} characters: give a shorter one"
        )),
        Err(error) => Err(format!(
            "{text:?} is no regular expression: {error}; give one such as ^http://www\\.example\\.org/"
        )),
        Ok(pattern) => Ok(pattern),
    }
}

/// Lists up to `limit` stored objects whose URLs fit, as long as `is_wanted`. Blocks.
pub(crate) fn list(
    proxy: &Proxy,
    (pattern, limit): (Option<&Regex>, usize),
    now_ms: u64,
    is_wanted: impl Fn() -> bool,
) -> Listing {
    let fits = |url: &str| pattern.is_none_or(|it| it.is_match(url));
    let (mut found, mut bytes, mut is_cut) = (BTreeMap::new(), 0, false);
    proxy.objects().look_through(
        fits,
        |url| proxy.rules_of(url),
        |url, head, body| {
            // What is in memory came first.
            let key = (url.to_owned(), head.vary.hash());
            if found.contains_key(&key) {
                return true;
            }
            is_cut = limit <= found.len() || URLS_BYTES_MAX < bytes;
            if !is_cut {
                bytes += url.len();
                found.insert(key, described(head, body, now_ms));
            }
            !is_cut && is_wanted()
        },
    );
    let objects = found.into_iter().map(|((url, _), object)| Listed { url, object });
    Listing { objects: objects.collect(), is_cut }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_is_bounded_and_its_mistakes_are_told() {
        assert!(
            pattern("^http://www\\.example\\.org/").unwrap().is_match("http://www.example.org/a")
        );
        let told = |text: &str| pattern(text).unwrap_err();
        assert!(told("(").contains("is no regular expression"), "{}", told("("));
        assert!(told(&"a".repeat(1_001)).contains("more than 1000 characters"));
        assert!(told("(a{1000}){1000}").contains("size limit"));
    }
}
