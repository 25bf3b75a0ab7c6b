//! Parts of objects: how several become a larger one, or the whole.
//!
//! Source: RFC 9111 §3.4; RFC 9110 §15.3.7.3: only parts with the same strong entity tag are of the same
//! object.
//!
//! Sans-I/O.

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, HeaderValue, StatusCode, header};

use crate::content::Content;
use crate::memory::Object;
use crate::policy::range::{Extent, Part};
use crate::policy::storing::Head;
use crate::transfer::MEMORY_BYTES_MAX;

/// Returns the headers that ask for the rest of an object, whose start is stored.
pub(crate) fn rest_wanted(stored: &Head) -> Option<HeaderMap> {
    let range = format!("bytes={}-", stored.extent()?.part.end);
    let tag = (header::IF_RANGE, stored.strong_tag()?.clone());
    Some([(header::RANGE, HeaderValue::try_from(range).ok()?), tag].into_iter().collect())
}

/// Returns the headers of the whole object, if an answer has the rest of it.
pub(crate) fn completed(stored: &Head, status: StatusCode, rest: &HeaderMap) -> Option<HeaderMap> {
    let (before, after) = (stored.extent()?, Extent::of(rest)?);
    let is_same = before.length == after.length && stored.strong_tag() == rest.get(header::ETAG);
    let is_rest = before.part.end == after.part.start && after.part.end == after.length;
    let named = rest.get(header::CONTENT_LENGTH).and_then(|it| it.to_str().ok()?.parse().ok());
    let is_part = status == StatusCode::PARTIAL_CONTENT
        && named.is_none_or(|it: u64| it == after.part.end - after.part.start);
    (is_part && is_same && is_rest).then(|| as_whole(rest, after.length))
}

/// Returns what two parts of the same object are together, if there is no gap between them, and memory is
/// meant for so much.
pub(crate) fn merged(old: &Object, new: &Object) -> Option<Object> {
    let (earlier, mut head) = (old.head(), new.head());
    let (before, after) = (earlier.extent()?, head.extent()?);
    let tag = head.strong_tag()?;
    let is_same = before.length == after.length && earlier.strong_tag() == Some(tag);
    if !is_same || before.part.end < after.part.start || after.part.end < before.part.start {
        return None;
    }
    let (Content::Memory(old_bytes), Content::Memory(new_bytes)) = (&old.body, &new.body) else {
        return None;
    };
    let part = Part {
        start: before.part.start.min(after.part.start),
        end: before.part.end.max(after.part.end),
    };
    let length =
        usize::try_from(part.end - part.start).ok().filter(|it| *it <= MEMORY_BYTES_MAX)?;
    let mut bytes = BytesMut::zeroed(length);
    // Where both have bytes, they are the same by their tag.
    for (at, piece) in [(before.part.start, old_bytes), (after.part.start, new_bytes)] {
        let at = usize::try_from(at - part.start).ok()?;
        bytes.get_mut(at..at + piece.len())?.copy_from_slice(piece);
    }
    if part == (Part { start: 0, end: after.length }) {
        head.status = StatusCode::OK;
        head.headers = as_whole(&head.headers, after.length);
    } else {
        let range = format!("bytes {}-{}/{}", part.start, part.end - 1, after.length);
        head.headers.insert(header::CONTENT_RANGE, HeaderValue::try_from(range).ok()?);
        head.headers.insert(header::CONTENT_LENGTH, HeaderValue::from(length));
    }
    Some(Object::new(&head, Content::Memory(Bytes::from(bytes))))
}

/// Returns the object of which a part is all.
pub(crate) fn as_object(part: &Object) -> Option<Object> {
    let mut head = part.head();
    let Extent { part: Part { start: 0, end }, length } = head.extent()? else { return None };
    if end != length || part.body.len() != length {
        return None;
    }
    (head.status, head.headers) = (StatusCode::OK, as_whole(&head.headers, length));
    Some(Object::new(&head, part.body.clone()))
}

/// Returns whether a body is all of the part that its head says.
pub(crate) fn is_complete(object: &Object) -> bool {
    let length = object.head().extent().map(|it| it.part.end - it.part.start);
    length.is_none_or(|it| it == object.body.len())
}

fn as_whole(headers: &HeaderMap, length: u64) -> HeaderMap {
    let mut whole = headers.clone();
    whole.remove(header::CONTENT_RANGE);
    whole.insert(header::CONTENT_LENGTH, HeaderValue::from(length));
    whole
}

#[cfg(test)]
mod tests {
    use http::{HeaderName, Method};

    use super::*;
    use crate::policy::freshness::{Rules, Times};
    use crate::policy::storing::{Ask, keep};

    const WHOLE: &[u8] = b"0123456789";

    fn headers(lines: &[(&str, &str)]) -> HeaderMap {
        let line = |(name, value): &(&str, &str)| {
            (name.parse::<HeaderName>().unwrap(), HeaderValue::from_str(value).unwrap())
        };
        lines.iter().map(line).collect()
    }

    fn part(tag: &str, start: usize, end: usize) -> Object {
        let range = format!("bytes {start}-{}/{}", end - 1, WHOLE.len());
        let answer =
            headers(&[("cache-control", "max-age=9"), ("etag", tag), ("content-range", &range)]);
        let (status, none) = (StatusCode::PARTIAL_CONTENT, HeaderMap::new());
        let ask = Ask { method: &Method::GET, headers: &none };
        let head = keep(ask, status, &answer, Times::default(), &Rules::default()).unwrap();
        Object::new(&head, Content::Memory(Bytes::from_static(&WHOLE[start..end])))
    }

    fn bytes(object: &Object) -> &[u8] {
        let Content::Memory(bytes) = &object.body else { panic!("it is not in memory") };
        bytes
    }

    #[test]
    fn parts_without_a_gap_are_one() {
        for (one, other) in [((2, 5), (5, 8)), ((5, 8), (2, 5)), ((2, 8), (4, 6)), ((2, 6), (4, 8))]
        {
            let all =
                merged(&part("\"a\"", one.0, one.1), &part("\"a\"", other.0, other.1)).unwrap();
            assert_eq!(
                (bytes(&all), all.head().status.as_u16()),
                (&WHOLE[2..8], 206),
                "{one:?} {other:?}"
            );
            assert_eq!(all.head().extent().unwrap().part, Part { start: 2, end: 8 });
        }
        let whole = merged(&part("\"a\"", 0, 6), &part("\"a\"", 4, 10)).unwrap();
        assert_eq!((bytes(&whole), whole.head().status.as_u16()), (WHOLE, 200));
        assert!(!whole.head().headers.contains_key("content-range"));
    }

    #[test]
    fn a_part_that_is_all_is_the_object() {
        let all = as_object(&part("\"a\"", 0, 10)).unwrap();
        assert_eq!((bytes(&all), all.head().status.as_u16()), (WHOLE, 200));
        assert!(as_object(&part("\"a\"", 0, 9)).is_none() && as_object(&all).is_none());
    }

    #[test]
    fn what_may_be_of_different_objects_is_not_put_together() {
        assert!(merged(&part("\"a\"", 0, 4), &part("\"a\"", 5, 8)).is_none(), "a gap");
        assert!(merged(&part("\"a\"", 0, 4), &part("\"b\"", 4, 8)).is_none(), "other tags");
        assert!(merged(&part("W/\"a\"", 0, 4), &part("W/\"a\"", 4, 8)).is_none(), "weak tags");
    }

    #[test]
    fn the_rest_completes_the_start_of_the_same_object() {
        let start = part("\"a\"", 0, 4).head();
        let wanted = rest_wanted(&start).unwrap();
        assert_eq!(
            (&wanted["range"], &wanted["if-range"]),
            (&"bytes=4-".parse().unwrap(), &"\"a\"".parse().unwrap())
        );
        let of = |status: u16, tag: &str, range: &str| {
            let answer = headers(&[("etag", tag), ("content-range", range)]);
            completed(&start, status.try_into().unwrap(), &answer)
        };
        let whole = of(206, "\"a\"", "bytes 4-9/10").unwrap();
        assert!(whole["content-length"] == "10" && !whole.contains_key("content-range"));
        for (status, tag, range) in [
            (200, "\"a\"", "bytes 4-9/10"),
            (206, "\"b\"", "bytes 4-9/10"),
            (206, "\"a\"", "bytes 5-9/10"),
            (206, "\"a\"", "bytes 4-8/10"),
            (206, "\"a\"", "bytes 4-10/11"),
        ] {
            assert!(of(status, tag, range).is_none(), "{status} {tag} {range}");
        }
    }
}
