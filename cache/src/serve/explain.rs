//! Explanations: what is stored of a URL, and what becomes of the next request for it.
//!
//! Sans-I/O.

use http::{HeaderMap, Method};
use serde::{Deserialize, Serialize};

use crate::content::Content;
use crate::memory::Object;
use crate::policy::choice::{Choice, choose, conditions};
use crate::policy::storing::{Ask, Head};

/// What is known of a URL.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Explanation {
    /// The URL, as it is stored.
    pub url: String,
    /// Why requests for it are refused, if they are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refusal: Option<String>,
    /// What is stored: one object, or several that answer different requests.
    pub stored: Vec<StoredObject>,
    /// Who gave the last answer, if it came lately: a host, and why it was asked, by the codes of the status.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub given_by: Option<String>,
    /// What became of the last answer that was not stored, if that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_stored: Option<String>,
    /// What becomes of a plain request now.
    pub next: String,
}

/// A stored object.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredObject {
    /// Status.
    pub status: u16,
    /// Length of the body, in bytes.
    pub bytes: u64,
    /// Whether the body is in memory; or else on disk.
    pub is_in_memory: bool,
    /// Age, in seconds.
    pub age: u64,
    /// Lifetime, in seconds.
    pub lifetime: u32,
    /// What is left of it, in seconds; below 0, since when it is stale.
    #[serde(default)]
    pub left: i64,
    /// What gave it the lifetime.
    pub basis: String,
    /// The headers of requests on which it depends, with their values.
    pub vary: Vec<String>,
}

/// Returns what is stored, and what becomes of a request without headers.
pub(crate) fn explain(url: String, objects: &[std::sync::Arc<Object>], now_ms: u64) -> Explanation {
    let heads: Vec<Head> = objects.iter().map(|it| it.head()).collect();
    let plain = HeaderMap::new();
    let ask = Ask { method: &Method::GET, headers: &plain };
    let left = |index: usize| heads.get(index).map_or(0, |it| it.terms.left_ms(now_ms) / 1_000);
    let asks = |index: usize| {
        let names = heads.get(index).map(conditions).unwrap_or_default();
        names.keys().map(ToString::to_string).collect::<Vec<_>>().join(" and ")
    };
    let next = match choose(ask, &heads, now_ms) {
        Choice::Use { index, validate: false } => {
            format!("it is answered from what is stored, which is fresh for {} s more", left(index))
        }
        Choice::Use { index, validate: true } => format!(
            "it is answered from what is stored, which is stale for {} s, and validated meanwhile",
            -left(index)
        ),
        Choice::Validate { index, why } if asks(index).is_empty() => {
            format!("it is fetched: {why}, and has nothing to be validated by")
        }
        Choice::Validate { index, why } => {
            format!("the origin is asked whether it is still good, by {}: {why}", asks(index))
        }
        Choice::Complete { .. } => "the origin is asked for what is missing".to_owned(),
        Choice::Fetch(why) => format!("it is fetched: {why}"),
        Choice::Nothing => "nothing".to_owned(),
    };
    let stored = objects.iter().zip(&heads).map(|(it, head)| {
        let body = (it.body.len(), matches!(it.body, Content::Memory(_)));
        described(head, body, now_ms)
    });
    let stored = stored.collect();
    Explanation { url, refusal: None, stored, given_by: None, not_stored: None, next }
}

/// Describes an object, of whose body the length is given, and whether it is in memory.
pub(crate) fn described(
    head: &Head,
    (bytes, is_in_memory): (u64, bool),
    now_ms: u64,
) -> StoredObject {
    let value = |value: &Option<String>| value.clone().unwrap_or_else(|| "(none)".to_owned());
    let parts = head.vary.parts().iter();
    StoredObject {
        status: head.status.as_u16(),
        bytes,
        is_in_memory,
        age: head.terms.age(now_ms),
        lifetime: head.terms.lifetime,
        left: head.terms.left_ms(now_ms).div_euclid(1_000),
        basis: head.terms.basis.to_string(),
        vary: parts.map(|(name, it)| format!("{name}: {}", value(it))).collect(),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use bytes::Bytes;
    use http::{HeaderName, HeaderValue, StatusCode};

    use super::*;
    use crate::policy::freshness::{Rules, Times};
    use crate::policy::storing::keep;

    fn object(lines: &[(&str, &str)]) -> Arc<Object> {
        let line = |(name, value): &(&str, &str)| {
            (name.parse::<HeaderName>().unwrap(), HeaderValue::from_str(value).unwrap())
        };
        let (request, answer) = (HeaderMap::new(), lines.iter().map(line).collect());
        let ask = Ask { method: &Method::GET, headers: &request };
        let head = keep(ask, StatusCode::OK, &answer, Times::default(), &Rules::default()).unwrap();
        Arc::new(Object::new(&head, Content::Memory(Bytes::from_static(b"body"))))
    }

    #[test]
    fn the_next_request_is_foretold() {
        let next = |objects: &[Arc<Object>], later: u64| {
            explain("u".to_owned(), objects, later * 1_000).next
        };
        assert_eq!(next(&[], 0), "it is fetched: nothing is stored of this URL");
        let it = [object(&[("cache-control", "max-age=9"), ("etag", "\"a\"")])];
        assert!(next(&it, 2).ends_with("fresh for 7 s more"));
        assert_eq!(
            next(&it, 20),
            "the origin is asked whether it is still good, by if-none-match: what is stored is stale"
        );
        let it = [object(&[("cache-control", "max-age=9, stale-while-revalidate=60")])];
        assert!(next(&it, 20).contains("stale for 11 s, and validated meanwhile"));
        let it = [object(&[("cache-control", "max-age=9"), ("vary", "x")])];
        let stored = &explain("u".to_owned(), &it, 3_000).stored[0];
        assert_eq!((stored.age, stored.lifetime, stored.left, stored.bytes), (3, 9, 6, 4));
        assert_eq!(
            (stored.basis.as_str(), stored.vary.as_slice()),
            ("max-age", &["x: (none)".to_owned()][..])
        );
    }
}
